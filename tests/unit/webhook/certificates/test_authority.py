"""The Secret, what is served, and what the apiserver trusts, kept in step by every replica alone."""

import asyncio
import base64
import datetime as dt
import logging
from contextlib import suppress

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from hack.testbed.waiting import PATIENCE
from muster.kube.errors import ApiError, Unreachable
from muster.process.certificates import issue
from tests.support.cases import cases
from tests.support.faults.loop_clock import LoopClock
from tests.support.manifests.observed import as_client
from tests.support.webhook.certificate_store import (
    BOTH,
    GARBAGE,
    NAMES,
    SECRET,
    Places,
    configuration,
    held_and_trusted,
    listening,
    presented,
    rounds,
    served,
    started,
    trust,
)
from webhook.certificates.authority import RotationTiming
from webhook.certificates.bundles import CertificateEvents, ChangedMeanwhileError
from webhook.metrics import CertificateDates

_DAY = dt.timedelta(days=1)


async def test_the_empty_secret_is_filled_served_and_trusted() -> None:
    """In one look."""
    places = Places.as_installed()
    one = trust(places)
    assert not one.ready
    await one.reconcile(places.time.monotonic)
    assert places.held.pair == served(one)
    assert held_and_trusted(places)
    assert one.ready


async def test_what_else_is_in_the_secret_stays() -> None:
    places = Places.as_installed()
    places.objects["secrets"]["metadata"]["labels"] = {"a": "b"}
    await started(places)
    assert places.objects["secrets"]["metadata"]["labels"] == {"a": "b"}
    assert places.objects["secrets"]["type"] == "Opaque"


async def test_nothing_is_written_again_when_all_is_in_step() -> None:
    places = Places.as_installed()
    one = await started(places)
    await rounds(places, one, count=20)
    assert places.writes == ["secrets", *BOTH]


async def test_a_second_replica_takes_what_is_there() -> None:
    places = Places.as_installed(issue(NAMES, dt.datetime.now(dt.UTC)).secret_data())
    await started(places)
    assert places.writes == list(BOTH)


async def test_first_start_race_of_two_replicas(caplog: pytest.LogCaptureFixture) -> None:
    """Both find it empty; one's certificates count, and losing is no trouble worth a warning."""
    places = Places.as_installed()
    one, other = trust(places), trust(places)
    secret, raw = await one._read_secret()
    assert secret is not None
    await other.reconcile(places.time.monotonic)
    winner = places.held
    # It read the Secret before the other one wrote.
    assert await one._step(secret, raw, None) == (True, None)
    await rounds(places, one, other)
    assert places.held == winner
    assert served(one) == served(other) == winner.pair
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


@cases("data", ("emptied", None), ("incomplete", {"tls.crt": "Z2FyYmFnZQ=="}), ("garbage", GARBAGE))
async def test_a_secret_that_holds_nothing_is_filled_before_anything_is_served(data: dict[str, str] | None) -> None:
    places = Places.as_installed(data)
    one = await started(places)
    assert served(one) == places.held.pair
    assert ("CertificateInvalid" in places.reasons()) is (data is not None)


@cases("data", ("emptied", None), ("corrupted", {**GARBAGE, "tls.key": "é"}))
async def test_a_running_replica_goes_on_with_what_it_has_while_the_secret_is_recreated(
    data: dict[str, str] | None,
) -> None:
    """No call meets a certificate that its apiserver does not know yet."""
    places = Places.as_installed()
    one = await started(places)
    before = served(one)
    places.set_data(data)
    await one.reconcile(places.time.monotonic)
    assert served(one) == before == places.held.pair
    assert len(places.held.authorities) == 2
    assert held_and_trusted(places)
    await rounds(places, one)
    assert served(one) != before
    assert places.held.issuer == places.held.authorities[0]


async def test_a_restarted_replica_that_finds_garbage_does_not_break_the_one_that_runs() -> None:
    """It knows nothing of the old authority but what is in the configurations, and leaves that there."""
    places = Places.as_installed()
    one = await started(places)
    (old,) = places.held.authorities
    places.set_data(GARBAGE)
    other = trust(places)
    ready = []
    for _ in range(2):
        await other.reconcile(places.time.monotonic)
        ready.append(other.ready)
        places.time.passes(seconds=6)
    assert ready == [False, True], "at first an apiserver may not have heard yet"
    assert all(old in bundle for bundle in places.bundles())
    assert one._serving.issuer == old
    await rounds(places, one, other)
    assert served(one) == served(other) == places.held.pair


async def test_a_deleted_secret_is_said_and_what_was_loaded_is_served() -> None:
    """It has no right to create one, for a Secret may hold a token of anybody."""
    places = Places.as_installed()
    one = await started(places)
    secret = places.objects.pop("secrets")
    places.objects[BOTH[0]] = configuration("Cg==", None)
    await rounds(places, one)
    assert one.ready
    assert all(one._serving.issuer in bundle for bundle in places.bundles())
    assert len(places.notes("SecretMissing")) == 1
    places.objects["secrets"] = {**secret, "data": {}}
    await one.reconcile(places.time.monotonic)
    assert served(one) == places.held.pair


@pytest.mark.parametrize("overwritten", ["Cg==", "not base64", "", None])
async def test_an_overwritten_bundle_is_written_again(overwritten: str | None) -> None:
    """`helm upgrade --force`, or a GitOps tool that puts back what it rendered."""
    places = Places.as_installed()
    one = await started(places)
    places.objects[BOTH[0]] = configuration(overwritten, overwritten)
    places.objects[BOTH[1]] = configuration(overwritten)
    await one.reconcile(places.time.monotonic)
    assert places.bundles() == [set(places.held.authorities)] * 3


async def test_an_authority_of_somebody_else_goes_after_the_overlap() -> None:
    """Until then pods of before may serve by it: cert-manager's, when that is turned off."""
    places = Places.as_installed()
    one = await started(places, RotationTiming(overlap=600))
    foreign = base64.b64encode(_foreign_authority()).decode()
    places.objects[BOTH[1]] = configuration(foreign)
    await one.reconcile(places.time.monotonic)
    assert held_and_trusted(places)
    assert {len(bundle) for bundle in places.bundles()} == {2}
    await rounds(places, one, count=60)
    assert places.bundles() == [set(places.held.authorities)] * 3


@pytest.mark.parametrize("gone", [BOTH[:1], BOTH[1:], BOTH])
async def test_a_configuration_that_was_taken_away_stops_nothing(gone: tuple[str, ...]) -> None:
    """An administrator did that in an emergency: it is not undone, and calls for the other one are answered."""
    places = Places.as_installed()
    one = await started(places)
    for plural in gone:
        del places.objects[plural]
    await rounds(places, one)
    assert one.ready
    assert set(places.objects) == {"secrets", *BOTH} - set(gone)
    for plural in gone:
        places.objects[plural] = configuration(None)
    await one.reconcile(places.time.monotonic)
    assert held_and_trusted(places)


@pytest.mark.parametrize("verb", ["get", "replace", "json_patch"])
async def test_an_apiserver_that_fails_is_asked_again(verb: str) -> None:
    places = Places.as_installed()
    places.fails[verb] = [Unreachable("silent"), ApiError(403, "Forbidden", "no"), ApiError(500, "", "broken")]
    one = trust(places)
    await rounds(places, one)
    assert one.ready


@cases("status, reason", ("RBAC", 403, "Forbidden"), ("a ValidatingAdmissionPolicy without a reason", 422, "Invalid"))
async def test_a_bundle_that_cannot_be_written_is_said_and_not_served_on_trust(status: int, reason: str) -> None:
    places = Places.as_installed()
    places.fails["json_patch"] = [ApiError(status, reason, "no") for _ in range(40)]
    one = trust(places)
    await rounds(places, one)
    assert not one.ready
    assert not one.trusted
    assert not one._changed.is_set(), "the same again at once would be in vain"
    assert f"cannot be written: {status} {reason}: no" in places.notes("CertificateNotTrusted")[0]
    assert len(places.notes("CertificateNotTrusted")) == 2, "once for each configuration"


async def test_a_bundle_that_somebody_else_was_quicker_to_write_is_looked_at_again_at_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Or one whose configuration is gone since it was read; neither is a refusal."""
    places = Places.as_installed()
    one = await started(places)
    places.objects.update({BOTH[0]: configuration(None), BOTH[1]: configuration(None)})
    stale = await one._bundles.read()
    places.objects[BOTH[0]]["metadata"]["resourceVersion"] = "99"
    one._changed.clear()
    assert not await one._write_bundles(places.held, stale)
    assert one._changed.is_set()
    places.fails["json_patch"] = [ApiError(422, "Invalid", "the test did not hold")]
    del places.objects[BOTH[0]]
    with pytest.raises(ChangedMeanwhileError):
        await one._bundles.write(stale[0], places.held.authorities)
    assert places.reasons() == ["CertificateRotated"]
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


async def test_a_certificate_that_nobody_can_renew_is_said_before_it_ends() -> None:
    """No right to write the Secret: with a quarter of its life left, long after renewal was due."""
    places = Places.as_installed()
    one = await started(places)
    places.fails["replace"] = [ApiError(403, "Forbidden", "no") for _ in range(900)]
    for _ in range(70):
        with suppress(ApiError):
            await one.reconcile(places.time.monotonic)
        places.time.passes(days=1)
    assert "cannot write it: 403 Forbidden: no" in places.notes("SecretNotWritten")[0]
    assert "the serving certificate ends" in places.notes("CertificateExpiring")[0]


async def test_an_event_that_cannot_be_written_keeps_nothing_up() -> None:
    places = Places.as_installed(GARBAGE)
    places.fails["create"] = [ApiError(403, "Forbidden", "no") for _ in range(40)]
    await started(places)


async def test_two_replicas_say_the_same_once_an_hour() -> None:
    places = Places.as_installed()
    one, other = await started(places), await started(places)
    del places.objects["secrets"]
    for _ in range(3):
        await rounds(places, one, other, count=3)
        places.time.passes(hours=1)
    assert len(places.notes("SecretMissing")) == 3
    about = places.events[-1]["regarding"]
    assert (about["kind"], about["name"], about["uid"]) == ("Secret", "muster-webhook-tls", "u")


async def test_what_a_replica_has_said_within_the_hour_it_does_not_try_to_say_again() -> None:
    places = Places.as_installed()
    events = CertificateEvents(as_client(places), "muster-system", SECRET, "pod")
    places.fails["create"] = [ApiError(500, "", "broken") for _ in range(9)]
    for _ in range(3):
        await events.report("SecretMissing", "it is not there")
    assert len(places.fails["create"]) == 8
    places.time.passes(hours=1)
    await events.report("SecretMissing", "it is not there")
    assert len(places.fails["create"]) == 7
    assert len(events._reported) == 1, "what was said before is forgotten"


async def test_a_renewed_certificate_is_served_to_new_connections() -> None:
    """The listening socket stays."""
    places = Places.as_installed()
    one = await started(places)
    async with listening(one) as port:
        before = await presented(port)
        places.ask("serving")
        await rounds(places, one)
        after = await presented(port)
    assert before != after
    assert after == places.held.pair.certificate


async def test_metrics_tell_when_certificates_end_and_whether_they_are_trusted() -> None:
    one = await started(Places.as_installed())
    registry = CollectorRegistry()
    CertificateDates(one, registry)
    text = generate_latest(registry).decode()
    name = "muster_webhook_certificate_expiration_timestamp_seconds"
    assert f"# HELP {name} When the serving certificate, or its authority, ends (seconds since 1970)." in text
    for certificate, moment in one.expirations.items():
        assert registry.get_sample_value(name, {"certificate": certificate}) == moment
    assert registry.get_sample_value("muster_webhook_certificate_trusted") == 1


def test_there_is_nothing_to_serve_before_it_is_loaded() -> None:
    with pytest.raises(RuntimeError, match="no certificate yet"):
        _ = trust(Places.as_installed()).context


async def test_the_loop_survives_what_nobody_foresaw(caplog: pytest.LogCaptureFixture) -> None:
    places = Places.as_installed()
    places.fails["get"] = [RuntimeError("a mistake")]
    one = trust(places)
    task = asyncio.create_task(one.run())
    async with asyncio.timeout(PATIENCE):
        await one.loaded.wait()
    task.cancel()
    assert "internal error" in caplog.text


async def test_an_idle_replica_looks_every_ten_seconds() -> None:
    """And when the next authority has been trusted for long enough; no watch has told it of anything."""
    places = Places.as_installed()
    one = trust(places, RotationTiming(trust_delay=30.5, overlap=600))
    await rounds(places, one, count=2, seconds=10)
    waits = []
    for _ in range(5):
        waits.append(await one.reconcile(places.time.monotonic))
        places.time.passes(seconds=waits[-1])
    assert waits == [10.0, 10.0, 0.5, 10.0, 10.0]


async def test_between_two_looks_nothing_is_asked() -> None:
    places, clock = Places.as_installed(), LoopClock()
    one = trust(places)
    task = asyncio.create_task(one.run())

    async def looks_after(seconds: float) -> int:
        clock.forward(seconds)
        for _ in range(20):
            await asyncio.sleep(0)
        return places.reads["secrets"]

    # It has taken a step at first, and looks soon whether that was all.
    while await looks_after(0.5) < 2:
        pass
    assert [await looks_after(seconds) for seconds in (0.5, 5, 6)] == [2, 2, 3]
    task.cancel()


def _foreign_authority() -> bytes:
    return issue(["somebody.else"], dt.datetime.now(dt.UTC)).pair.certificate
