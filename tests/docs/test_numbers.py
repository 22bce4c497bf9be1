"""Every number that a document states is the default that is shipped."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pytest

from muster.gangs.intent import Defaults
from muster.observe.cluster import Cluster
from tests.support.pages.numbers import Elsewhere, Row, found, measures, prose, spans, stated
from tests.support.pages.stated import ELSEWHERE, ROWS
from webhook.certificates.bundles import CONFIGURATIONS
from webhook.reviews.knowledge import Knowledge

if TYPE_CHECKING:
    from muster.kube.client import Client


def _id(row: Row) -> str:
    return f"{row.document}: {row.quote} = {', '.join(row.places)}"


@pytest.mark.parametrize("row", ROWS, ids=_id)
def test_a_number_in_a_document_is_the_default(row: Row) -> None:
    """The document says the sentence, and its number is what the programs have at the row's places."""
    assert spans(row)
    (said,) = stated(row)
    values = [found(place) for place in row.places]
    for value in [row.rule(*values)] if row.rule else values:
        assert value == pytest.approx(said, rel=row.about or 1e-9), row.places


def test_the_watches_are_counted() -> None:
    """Those of the webhook's knowledge, and of its certificates: the Secret and both configurations."""
    client = cast("Client", None)
    webhook = len(Knowledge(client, Defaults()).reflectors()) + 1 + len(CONFIGURATIONS)
    said = f"A webhook has {webhook} watches, a controller {len(Cluster().reflectors(client))}."
    assert said in prose("docs/operations.md")


def test_every_number_has_a_row() -> None:
    """What the pages for users say in seconds, bytes, rates and times is in the table, or has somebody else behind it.

    docs/design-notes.md is left out: it tells what was measured when something was decided.
    """
    rows: list[Row | Elsewhere] = [*ROWS, *ELSEWHERE]
    pages = {row.document for row in rows} - {"docs/design-notes.md"}
    unknown = []
    for page in sorted(pages | {"SECURITY.md"}):
        known = [span for row in rows if row.document == page for span in spans(row)]
        unknown += [
            f"{page}: {words}"
            for start, end, words in measures(page)
            if not any(begin < end and start < until for begin, until in known)
        ]
    assert unknown == []
