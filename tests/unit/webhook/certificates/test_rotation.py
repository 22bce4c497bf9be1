"""Certificates and authorities change in an order in which no call meets one that its apiserver does not trust."""

import datetime as dt
from dataclasses import replace

import pytest
from cryptography.x509 import Certificate
from hypothesis import given, settings
from hypothesis import strategies as st

from muster.process.certificates import Certificates, Lives, issue
from tests.support.cases import cases
from tests.support.examples import examples
from tests.support.webhook.certificate_store import (
    BOTH,
    GARBAGE,
    NAMES,
    Places,
    held_and_trusted,
    rounds,
    served,
    started,
    trust,
)
from webhook.certificates.authority import CertificateManager, RotationTiming
from webhook.certificates.bundles import ChangedMeanwhileError
from webhook.certificates.rotation import RotationStep, Situation, next_step

_DAY = dt.timedelta(days=1)


@pytest.mark.parametrize("asked", ["serving", "authority"])
async def test_a_rotation_that_was_asked_for(asked: str) -> None:
    """Once, and then the annotation is gone."""
    places = Places.as_installed()
    one = await started(places)
    before = places.held
    places.ask(asked)
    await rounds(places, one, count=12)
    after = places.held
    assert places.asked() is None
    assert after.pair != before.pair
    assert (after.authorities[0] != before.authorities[0]) is (asked == "authority")
    assert served(one) == after.pair
    writes = len(places.writes)
    await rounds(places, one)
    assert len(places.writes) == writes
    assert "CertificateRotated" in places.reasons()


async def test_a_rotation_that_nobody_knows_is_said_and_does_nothing() -> None:
    places = Places.as_installed()
    one = await started(places)
    before = places.held
    places.ask("everything")
    await rounds(places, one)
    assert places.held == before
    assert "'everything' is not known; use serving or authority" in places.notes("InvalidRotation")[0]


async def test_an_authority_changes_in_order() -> None:
    """Trusted everywhere and for long enough, then it signs, then the old one goes."""
    places = Places.as_installed()
    one = await started(places, RotationTiming(trust_delay=30, overlap=600))
    old, pair = places.held.authorities[0], places.held.pair
    places.ask("authority")
    await one.reconcile(places.time.monotonic)
    new = places.held.authorities[0]
    assert list(places.held.authorities) == [new, old]
    assert held_and_trusted(places)
    await rounds(places, one, count=2)
    assert places.held.pair == pair, "not before the delay"
    await rounds(places, one, count=4)
    assert places.held.issuer == new
    assert served(one) == places.held.pair
    assert all(old in bundle for bundle in places.bundles()), "a replica may be behind"
    await rounds(places, one, count=70)
    assert list(places.held.authorities) == [new]
    assert places.bundles() == [{new}] * 3


async def test_many_rotations_in_a_hurry_keep_the_bundle_small() -> None:
    """Somebody asks again and again, and nobody waits for the overlap."""
    places = Places.as_installed()
    one = await started(places, RotationTiming(trust_delay=1, overlap=1e6))
    for _ in range(12):
        places.ask("authority")
        await rounds(places, one, count=3)
        assert served(one) == places.held.pair
        assert one._serving.issuer == places.held.authorities[0]
    assert len(places.held.authorities) == 4
    assert {len(bundle) for bundle in places.bundles()} == {8}


async def test_one_replica_that_is_behind_another_in_a_rotation() -> None:
    """It serves the old certificate for as long as it likes within the overlap; its authority stays."""
    places = Places.as_installed()
    terms = RotationTiming(trust_delay=30, overlap=600)
    ahead, behind = await started(places, terms), await started(places, terms)
    old = served(behind)
    places.ask("authority")
    await rounds(places, ahead, count=30)
    assert served(ahead) != served(behind) == old
    assert all({ahead._serving.issuer, behind._serving.issuer} <= bundle for bundle in places.bundles())
    await rounds(places, ahead, behind, count=5)
    assert served(ahead) == served(behind)


async def test_a_replica_behind_never_puts_back_an_older_bundle() -> None:
    """Its patch holds for what it has read, and for nothing later."""
    places = Places.as_installed()
    one = await started(places)
    stale = await one._bundles.read()
    places.objects[BOTH[0]]["metadata"]["resourceVersion"] = "99"
    with pytest.raises(ChangedMeanwhileError):
        await one._bundles.write(stale[0], [])


@cases(
    "days, certificates, authorities",
    ("two months", 55, 1, 1),
    ("a third of the certificate's life is left", 65, 2, 1),
    ("a third of the authority's life is left", 250, 6, 2),
    ("three years", 3 * 365, 22, 5),
)
async def test_renewal_in_time(days: int, certificates: int, authorities: int) -> None:
    """Looked at once a day, nothing that is served or trusted ever runs out."""
    places = Places.as_installed()
    one = await started(places)
    pairs, firsts = {served(one)}, {places.held.authorities[0]}
    for _ in range(days):
        await one.reconcile(places.time.monotonic)
        assert one._serving.valid(places.time.now)
        assert all(one._serving.issuer in bundle for bundle in places.bundles())
        pairs.add(served(one))
        firsts.add(places.held.authorities[0])
        places.time.passes(days=1)
    assert (len(pairs), len(firsts)) == (certificates, authorities)
    assert "CertificateExpiring" not in places.reasons()


def test_authorities_that_nobody_needs_go_and_the_one_that_signs_stays() -> None:
    """The others stay, too: a replica may serve by them."""
    now = dt.datetime.now(dt.UTC)
    made = issue(NAMES, now)
    needed, idle = (issue([name], now).authorities[0] for name in ("needed", "idle"))
    found = replace(made, authorities=(*made.authorities, needed, idle))
    assert found.issuer is not None
    situation = Situation(
        found=found,
        serving=found.pair,
        serving_issuer=found.issuer,
        trusted=frozenset(found.authorities),
        idle=frozenset({found.issuer, idle}),
        requested=None,
        now=now,
    )
    step = next_step(situation, NAMES, Lives())
    assert step is not None
    assert step.certificates.authorities == (found.issuer, needed)


async def test_clock_skew_a_certificate_that_is_not_valid_yet_is_replaced() -> None:
    """Its maker's apiserver had a clock two days ahead of the one that answers now."""
    places = Places.as_installed(issue(NAMES, dt.datetime.now(dt.UTC) + 2 * _DAY).secret_data())
    one = trust(places)
    await rounds(places, one)
    assert one.ready
    assert one._serving.valid(places.time.now)
    assert all(one._serving.issuer in bundle for bundle in places.bundles())


@pytest.mark.parametrize("years", [-30, 30])
async def test_clock_skew_the_apiserver_s_clock_is_the_one_that_counts(years: int) -> None:
    """It judges the certificates; what this machine believes plays no part."""
    places = Places.as_installed()
    places.time.passes(days=365 * years)
    one = await started(places)
    assert places.held.pair.leaf.not_valid_before_utc <= places.time.now < places.held.pair.leaf.not_valid_after_utc
    await rounds(places, one, count=20)
    assert places.writes == ["secrets", *BOTH]


async def test_clock_skew_an_expired_certificate_is_replaced_at_once() -> None:
    """After a suspension of a year there is nobody left to wait for."""
    places = Places.as_installed()
    one = await started(places)
    places.time.passes(days=400)
    await rounds(places, one, count=2, seconds=1)
    assert one.ready
    assert one._serving.valid(places.time.now)
    assert all(one._serving.issuer in bundle for bundle in places.bundles())


_STEPS = st.lists(
    st.sampled_from(
        [
            *("turn 0", "turn 1", "turn 2") * 4,
            *("1 s", "12 s", "40 s", "700 s") * 2,
            *("ask serving", "ask authority", "empty", "corrupt", "backup", "restart 1", "restart 2", "100 days"),
        ]
    ),
    max_size=40,
)


@given(steps=_STEPS)
@settings(max_examples=examples(15), deadline=None)
async def test_no_replica_ever_serves_what_an_apiserver_does_not_trust(steps: list[str]) -> None:
    """Three replicas in any order, whatever people do to the Secret; an apiserver may be 5 s behind the others."""
    places = Places.as_installed()
    terms = RotationTiming(Lives(90 * _DAY, 365 * _DAY), trust_delay=30, overlap=3600)
    replicas = [await started(places, terms) for _ in range(3)]
    backup = places.objects["secrets"]["data"]
    seen: list[tuple[float, frozenset[Certificate]]] = []
    for step in steps:
        await _take(step, places, replicas, terms, backup)
        now = places.time.monotonic
        seen = [one for one in seen if now - one[0] < 5]
        seen += [(now, bundle) for bundle in places.bundles()]
        for one in replicas:
            assert not one.ready or all(one._serving.issuer in bundle for _, bundle in seen)
    await rounds(places, *replicas, count=8)
    assert {served(one) for one in replicas} == {Certificates.from_secret(places.objects["secrets"]["data"]).pair}


async def _take(
    step: str, places: Places, replicas: list[CertificateManager], terms: RotationTiming, backup: dict[str, str]
) -> None:
    word, _, rest = step.partition(" ")
    if word == "turn":
        await replicas[int(rest)].reconcile(places.time.monotonic)
    elif rest == "s":
        if float(word) > 60:
            # None may be behind by more than the overlap.
            await rounds(places, *replicas, count=1, seconds=0)
        places.time.passes(seconds=float(word))
    elif word == "ask":
        places.ask(rest)
    elif word == "restart":
        replicas[int(rest)] = trust(places, terms)
    elif rest == "days":
        # A long time, in which all replicas look, and none is left behind.
        for _ in range(int(word) // 5):
            places.time.passes(days=5)
            for one in [*replicas, *replicas]:
                await one.reconcile(places.time.monotonic)
    else:
        places.set_data({"empty": None, "corrupt": GARBAGE, "backup": backup}[word])


def test_a_serving_certificate_that_was_asked_for_says_so() -> None:
    """The administrator who asked reads it in an event."""
    now = dt.datetime.now(dt.UTC)
    found = issue(NAMES, now)
    assert found.issuer is not None
    trusted = frozenset(found.authorities)
    asked = Situation(
        found, found.pair, found.issuer, trusted=trusted, idle=frozenset(), requested=RotationStep.SERVING, now=now
    )
    step = next_step(asked, NAMES, Lives())
    assert step is not None
    assert (step.reason, step.fulfils_request) == ("made a new serving certificate, as was asked for", True)
