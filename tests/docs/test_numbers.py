"""The numbers that documents state are the defaults that are shipped."""

import os
import re
from typing import cast

import pytest

from muster.cluster.cluster import Cluster
from muster.gangs.intent import Defaults
from muster.kube.client import Client
from tests.support.pages.blocks import pages
from tests.support.pages.named_numbers import PLACES, RULES, UNMARKED
from tests.support.pages.numbers import CHECKOUT, MARK, amount, found, prose, restated, updated
from webhook.certificates.bundles import CONFIGURATIONS
from webhook.reviews.cluster_cache import ClusterCache

_PAGES = pages()


def _number(name: str) -> float:
    places = PLACES[name]
    values = [found(place) for place in ([places] if isinstance(places, str) else places)]
    if rule := RULES.get(name):
        return rule(*values)
    assert values == pytest.approx([values[0]] * len(values)), f"the places of {name} disagree"
    return values[0]


@pytest.mark.parametrize("page", _PAGES)
def test_marked_numbers_are_the_defaults(page: str) -> None:
    """`MUSTER_REWRITE=1` writes the present numbers into the page."""
    path = CHECKOUT / page
    text, present = path.read_text(), updated(path.read_text(), _number)
    if os.environ.get("MUSTER_REWRITE") and text != present:
        path.write_text(present)
    assert text == present, "MUSTER_REWRITE=1 pytest tests/docs/test_numbers.py writes the numbers"


@pytest.mark.parametrize(("page", "quote", "name"), UNMARKED)
def test_numbers_without_a_mark_are_the_defaults(page: str, quote: str, name: str) -> None:
    assert quote.replace("«", "").replace("»", "") in prose(page)
    (stated,) = re.findall("«(.*?)»", quote)
    assert amount(stated) == pytest.approx(_number(name))


def test_every_name_is_used() -> None:
    marks = {mark[1] for page in _PAGES for mark in MARK.finditer((CHECKOUT / page).read_text())}
    assert marks | {name for _, _, name in UNMARKED} == set(PLACES)
    assert list(PLACES) == sorted(PLACES)


@pytest.mark.parametrize(
    ("old", "value", "new"),
    [
        ("five minutes", 120, "two minutes"),
        ("five minutes", 60, "a minute"),
        ("five minutes", 90, "90 seconds"),
        ("a minute", 3600, "60 minutes"),
        ("Three", 4, "Four"),
        ("twice", 3, "three"),
        ("20,000", 30000, "30,000"),
        ("30 seconds", 45, "45 seconds"),
        ("95 %", 0.9, "90 %"),
        ("10 MiB", 2**19, "512 KiB"),
        ("512Mi", 2**30, "1,024Mi"),
        ("0.8 seconds", 0.5, "500 ms"),
    ],
)
def test_a_changed_number_keeps_the_form_of_the_old_one(old: str, value: float, new: str) -> None:
    assert restated(value, old) == new
    assert updated(f"it is {old}<!--=name-->.", lambda _: value) == f"it is {new}<!--=name-->."


@pytest.mark.parametrize(
    "places",
    [
        ("flag:webhook/__main__.py --shutdown-delay", "values:webhook.shutdownDelaySeconds"),
        ("flag:webhook/__main__.py --port", "values:webhook.ports.reviews"),
        (
            "flag:controller/__main__.py --lease-duration",
            "muster.kube.lease:LeaseTiming.lease",
            "values:controller.lease.durationSeconds",
        ),
        (
            "flag:controller/__main__.py --renew-deadline",
            "muster.kube.lease:LeaseTiming.renew",
            "values:controller.lease.renewDeadlineSeconds",
        ),
        (
            "flag:controller/__main__.py --retry-period",
            "muster.kube.lease:LeaseTiming.retry",
            "values:controller.lease.retryPeriodSeconds",
        ),
    ],
)
def test_the_chart_has_the_defaults_of_the_programs(places: tuple[str, ...]) -> None:
    assert len({found(place) for place in places}) == 1


def test_the_deadlines_of_a_review_follow_its_timeout() -> None:
    timeout = found("values:webhook.timeoutSeconds")
    assert found("webhook.server.limits:Limits.decision_seconds") == timeout * _number("decision-share")
    assert found("webhook.reviews.cluster_cache:ClusterCache.__init__.read_seconds") == _number("read-seconds")
    assert found("flag:muster/cli/commands.py --settle") == timeout + _number("settle")


def test_the_watches_are_counted() -> None:
    """Those of the webhook's cache and of its certificates: the Secret and both configurations."""
    client = cast("Client", None)
    webhook = len(ClusterCache(client, Defaults()).reflectors()) + 1 + len(CONFIGURATIONS)
    stated = f"A webhook has {webhook} watches, a controller {len(Cluster().reflectors(client))}."
    assert stated in prose("docs/limits.md")
