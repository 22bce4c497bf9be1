"""Every number that a document states is the default that is shipped."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, cast

import pytest

from muster.gangs.intent import Defaults
from muster.observe.cluster import Cluster
from tests.support.pages.numbers import CHECKOUT, Elsewhere, Row, found, measures, prose, spans, stated
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


def _reasons(pattern: str) -> list[Any]:
    found_ = [(row, match) for row in ELSEWHERE for match in re.finditer(pattern, row.why)]
    return [pytest.param(row, *match.groups(), id=f"{row.document}: {row.quote}") for row, match in found_]


@pytest.mark.parametrize(("row", "path", "name"), _reasons(r"(tests/[\w/]+\.py)(?:::(\w+))?"))
def test_who_is_said_to_hold_a_number_speaks_of_it(row: Elsewhere, path: str, name: str) -> None:
    """A test by its file and its function; the file has the page's name, the number's words, or a command beside it."""
    source = (CHECKOUT / path).read_text()
    assert re.search(rf"^(async )?def {name}\(", source, re.MULTILINE), f"{path} has no {name}"
    words = [row.document, *re.findall("(?<=«).*?(?=»)", row.quote), *re.findall("(?<=`).*?(?=`)", row.quote)]
    assert any(re.search(rf"\b{re.escape(word)}\b", source, re.IGNORECASE) for word in words)


@pytest.mark.parametrize(("row", "module"), _reasons(r"hack\.bench\.([\w.]+)"))
def test_the_bench_behind_a_number_is_named_on_its_page(row: Elsewhere, module: str) -> None:
    """So that an operator can run it, and the program is there."""
    path = CHECKOUT / "hack/bench" / module.replace(".", "/")
    assert path.with_suffix(".py").exists() or (path / "__main__.py").exists()
    assert re.search(rf"(hack\.bench\.|`){module}(?![\w.])", prose(row.document))


# Pages with numbers for which no row is asked, and why.
_EXEMPT = {
    "docs/conformance.md": "written by tests/conformance, which compares every number with the operators' own",
    "docs/design-notes.md": "tells what was measured when something was decided; what is shipped has its rows",
    "docs/kubectl.md": "recorded by tests on clusters; tests/docs/test_kubectl.py compares it with the records",
    "docs/seeds.md": "its stories are told by tests on clusters, each of which compares its own section",
}
_PAGES = sorted(
    str(path.relative_to(CHECKOUT))
    for pattern in ("*.md", "docs/*.md", "charts/**/*.md", "hack/bench/*.md")
    for path in CHECKOUT.glob(pattern)
)


def _without_row(page: str) -> list[str]:
    rows: list[Row | Elsewhere] = [*ROWS, *ELSEWHERE]
    known = [span for row in rows if row.document == page for span in spans(row)]
    return [
        words
        for start, end, words in measures(page)
        if not any(begin < end and start < until for begin, until in known)
    ]


@pytest.mark.parametrize("page", [page for page in _PAGES if page not in _EXEMPT])
def test_every_number_has_a_row(page: str) -> None:
    """What a page says in seconds, bytes, rates and times is in the table, or has somebody else behind it."""
    assert _without_row(page) == []


def test_no_page_is_exempt_for_nothing() -> None:
    assert {"README.md", "CHANGELOG.md", "SECURITY.md", "docs/operations.md"} < set(_PAGES)
    assert [page for page in _EXEMPT if not _without_row(page)] == []
