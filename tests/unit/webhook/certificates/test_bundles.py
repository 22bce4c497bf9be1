"""The apiserver calls nothing before it has reached a replica, and then all of it."""

import asyncio
import logging
from collections.abc import Coroutine
from functools import partial
from typing import Any

import pytest

from muster.kube.errors import ApiError
from tests.support.cases import cases
from tests.support.manifests.observed import as_client
from tests.support.webhook.certificate_store import BOTH, SECRET, Places, rounds, started, trust
from webhook.certificates.bundles import CLOSED, Bundles, CertificateEvents, _activate, ensure_active

_OTHER = {"name": "asks-for-gang-scheduling", "expression": "true"}


@pytest.fixture
def places() -> Places:
    """A first installation: the conditions are there."""
    places = Places.as_installed()
    for plural in BOTH:
        for webhook in places.objects[plural]["webhooks"]:
            webhook["matchConditions"] = [{"name": CLOSED, "expression": "false"}, _OTHER]
    return places


def conditions(places: Places) -> list[Any]:
    return [webhook.get("matchConditions") for plural in BOTH for webhook in places.objects[plural]["webhooks"]]


def unreachable(times: int) -> list[Exception]:
    return [ApiError(500, "InternalError", "failed calling webhook") for _ in range(times)]


def entrance(places: Places) -> partial[Coroutine[Any, Any, bool]]:
    client = as_client(places)
    events = CertificateEvents(client, "muster-system", SECRET, "pod")
    return partial(ensure_active, Bundles(client, "muster"), events)


async def test_what_is_trusted_and_reached_is_called(places: Places) -> None:
    """The caBundles first, the other conditions as they were."""
    one = trust(places)
    await one.reconcile(places.time.monotonic)
    assert conditions(places) == [[_OTHER]] * 3
    assert one.trusted
    assert places.writes == ["secrets", *BOTH, *BOTH]
    assert places.reasons() == ["CertificateRotated"]


async def test_what_is_not_reached_is_not_called_and_asked_again_in_a_second(places: Places) -> None:
    places.fails["ask"] = unreachable(1)
    one = trust(places)
    assert await one.reconcile(places.time.monotonic) == 1.0
    assert all(CLOSED in str(found) for found in conditions(places))
    await one.reconcile(places.time.monotonic)
    assert conditions(places) == [[_OTHER]] * 3


async def test_one_answer_of_three_is_not_enough(places: Places) -> None:
    """Other apiservers, and other nodes, may not have heard yet."""
    opened = entrance(places)
    bundles = Bundles(as_client(places), "muster")
    places.fails["ask"] = unreachable(1)
    assert not await opened(await bundles.read())
    assert places.asked_about == 1
    assert await opened(await bundles.read())
    assert places.asked_about == 4


async def test_nobody_is_asked_where_nothing_is_closed() -> None:
    places = Places.as_installed()
    one = await started(places)
    await rounds(places, one)
    assert places.asked_about == 0


async def test_two_replicas_open_it_once(places: Places) -> None:
    one, other = entrance(places), entrance(places)
    read = await Bundles(as_client(places), "muster").read()
    await asyncio.gather(one(read), other(read))
    assert conditions(places) == [[_OTHER]] * 3
    assert places.writes == list(BOTH)


async def test_what_somebody_changed_meanwhile_is_looked_at_again(
    places: Places, caplog: pytest.LogCaptureFixture
) -> None:
    """Which is no trouble worth a word."""
    caplog.set_level(logging.INFO)
    one = entrance(places)
    bundles = Bundles(as_client(places), "muster")
    stale = await bundles.read()
    places.objects[BOTH[0]]["metadata"]["resourceVersion"] = "99"
    assert not await _activate(one.args[0], one.args[1], stale[0])
    assert not caplog.records
    assert await one(stale)
    assert conditions(places) == [[_OTHER]] * 3
    assert places.events == []


@cases("status, reason", ("RBAC", 403, "Forbidden"), ("a ValidatingAdmissionPolicy without a reason", 422, "Invalid"))
async def test_what_may_not_be_opened_is_said_and_the_other_one_is_opened(
    places: Places, caplog: pytest.LogCaptureFixture, status: int, reason: str
) -> None:
    """The apiserver does reach the webhook then, and a network is not to be searched."""
    caplog.set_level(logging.INFO)
    places.fails["json_patch"] = [ApiError(status, reason, "frozen")]
    one = entrance(places)
    bundles = Bundles(as_client(places), "muster")
    assert not await one(await bundles.read())
    assert "does not reach" not in caplog.text
    (note,) = places.notes("WebhookNotActivated")
    assert note.endswith(f"cannot be activated: {status} {reason}: frozen")
    assert places.writes == [BOTH[1]]
    assert await one(await bundles.read())
    assert conditions(places) == [[_OTHER]] * 3


async def test_a_replica_that_ends_opens_nothing(places: Places) -> None:
    """Of a release that was removed a moment ago, and is installed anew: its pods are still behind the Service."""
    one = trust(places)
    one.ending = True
    await rounds(places, one)
    assert all(CLOSED in str(found) for found in conditions(places))
    assert places.asked_about == 0
