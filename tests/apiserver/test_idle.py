"""What processes that have nothing to do ask of the apiserver, counted against docs/limits.md."""

import asyncio
import re
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pytest

from hack.testbed import Testbed
from hack.testbed.costs import resident
from hack.testbed.muster import MusterInstall
from muster.model.resource import LEASES, SECRETS
from tests.apiserver.conftest import running
from tests.support.cluster.desk import PATIENCE
from tests.support.faults.apiserver import FaultyApiserver, Request, eventually
from tests.support.pages.numbers import prose
from webhook.certificates.bundles import CONFIGURATIONS

pytestmark = pytest.mark.part("processes")

_SECRET = SECRETS.path("muster-system", "muster-webhook-tls")
_LEASE = LEASES.path("muster-system", "muster-controller")
# Seconds; a busy machine makes them longer, and never shorter.
_LOOK, _RENEWAL = 10.0, 2.0
# A watch in which nothing happens is opened again after so long, and the apiserver asked for its version before.
_SILENCE, _PER_SILENCE = 90.0, 2
# A kind that is not served is asked for after so long.
_ABSENT = 30.0
_LOOKS, _RENEWALS = 3, 10
# The first of them may have been told late by a proxy that waits for a core.
_LATE = 0.6


def _told(requests: list[Request]) -> Counter[str]:
    return Counter(f"{request.kind} {request.path}" for request in requests)


def _of_watches(requests: list[Request]) -> list[Request]:
    """What only keeps the watches up: their beginnings, and the lists of one by which versions are compared."""
    return [one for one in requests if one.kind == "WATCH" or (one.kind == "LIST" and one.query["limit"] == "1")]


def _watch(request: Request) -> tuple[str, str, str]:
    return request.path, request.query.get("labelSelector", ""), request.query.get("fieldSelector", "")


def _whole(requests: list[Request]) -> list[Request]:
    """The lists that are asked for in pages."""
    return [one for one in requests if one.kind == "LIST" and one not in _of_watches(requests)]


def _hold(before: list[Request], after: list[Request]) -> None:
    """No watch began sooner than it may, and no kind that is there was listed anew."""
    watches, seconds = {_watch(one) for one in before if one.kind == "WATCH"}, after[-1].at - after[0].at
    of_watches = _of_watches(after)
    assert len(of_watches) <= len(watches) * _PER_SILENCE * (1 + seconds / _SILENCE), _told(of_watches)
    # A cluster has one of the two MPIJobs; the watch of the other one finds nothing.
    served = {path for path, _, _ in watches}
    assert {one.path for one in _whole(after)} <= {one.path for one in _whole(before)} - served
    assert len(_whole(after)) <= 1 + seconds / _ABSENT, _told(_whole(after))


class Asked(NamedTuple):
    """What a process asked for until it had nothing to do, and from then on."""

    before: list[Request]
    after: list[Request]


async def _webhook(bare: Testbed, webhook: MusterInstall, folder: Path) -> Asked:
    """A webhook that looks at its certificates some times."""
    webhook.stop_webhooks()
    async with FaultyApiserver.in_front_of(bare) as proxy:
        process = webhook.start_webhook(webhook.through("webhook", proxy.url, folder))
        await asyncio.to_thread(webhook.wait_ready, PATIENCE)

        def looks() -> list[Request]:
            return [one for one in proxy.seen("GET") if one.path == _SECRET]

        # It looks more often until its first rotation has had its time.
        await eventually(lambda: len(looks()) > 1 and looks()[-1].at - looks()[-2].at > _LOOK / 2)
        before = list(proxy.requests)
        proxy.requests.clear()
        await eventually(lambda: len(looks()) >= _LOOKS)
        after = list(proxy.requests)
        webhook.webhooks.remove(process)
        await asyncio.to_thread(process.stop)
    return Asked(before, after)


async def _controller(bare: Testbed, webhook: MusterInstall, folder: Path) -> Asked:
    """A controller that renews its lease some times."""
    async with FaultyApiserver.in_front_of(bare) as proxy:
        process = webhook.start_controller(webhook.through("controller", proxy.url, folder))

        def renewals() -> list[Request]:
            return [one for one in proxy.seen("PUT") if one.path == _LEASE]

        await eventually(lambda: len(renewals()) >= 2)
        before = list(proxy.requests)
        proxy.requests.clear()
        await eventually(lambda: len(renewals()) >= _RENEWALS)
        after = list(proxy.requests)
        webhook.controllers.remove(process)
        await asyncio.to_thread(process.stop)
        webhook.free_lease()
    return Asked(before, after)


@pytest.fixture(scope="module")
def asked(
    bare: Testbed,
    every_kind: None,  # noqa: ARG001 (all are watched)
    webhook_of_session: MusterInstall,
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[Asked, Asked]:
    """What webhook and controller ask, looked at beside each other: most of it is to wait for what does not come."""
    webhook = running(webhook_of_session)
    folders = [tmp_path_factory.mktemp(name) for name in ("webhook", "controller")]

    async def both() -> tuple[Asked, Asked]:
        return await asyncio.gather(
            _webhook(bare, webhook, folders[0]),
            _controller(bare, webhook, folders[1]),
        )

    return asyncio.run(both())


def test_an_idle_webhook_looks_at_its_certificates_and_no_more(asked: tuple[Asked, Asked]) -> None:
    """The Secret and both configurations every ten seconds; everything else comes by watches."""
    (before, seen), _ = asked
    looked = [one for one in seen if one.path == _SECRET]
    assert looked[-1].at - looked[0].at > (len(looked) - 1) * _LOOK * _LATE
    _hold(before, seen)
    rest = [one for one in seen if one not in [*_of_watches(seen), *_whole(seen)]]
    known = {_SECRET, *(kind.path(name="muster") for kind in CONFIGURATIONS)}
    assert {one.path for one in rest} <= known, _told(rest)
    assert len(rest) <= len(looked) * len(known), _told(rest)


def test_an_idle_controller_renews_its_lease_and_no_more(asked: tuple[Asked, Asked]) -> None:
    """A write every two seconds, and not a read beside it; everything else comes by watches."""
    _, (before, seen) = asked
    renewed = [one for one in seen if one.path == _LEASE]
    assert {one.kind for one in renewed} == {"PUT"}
    assert renewed[-1].at - renewed[0].at > (len(renewed) - 1) * _RENEWAL * _LATE
    _hold(before, seen)
    assert _told([one for one in seen if one not in [*_of_watches(seen), *_whole(seen), *renewed]]) == {}


def test_processes_that_were_just_started_take_the_memory_of_the_sizing(
    every_kind: None,  # noqa: ARG001 (all are watched)
    webhook_of_session: MusterInstall,
) -> None:
    """What is resident differs by Python and its libraries, so the table has some room on both sides."""
    said = re.search(r"just installed \| (\d+) MB, (\d+) MB of memory", prose("docs/operations.md"))
    assert said is not None
    webhook = running(webhook_of_session)
    webhook.stop_webhooks()
    processes = webhook.start_webhook(), webhook.start_controller()
    webhook.wait_ready(PATIENCE)
    taken = [resident(process.pid) for process in processes]
    webhook.controllers.remove(processes[1])
    processes[1].stop()
    webhook.free_lease()
    assert all(0.8 < own / float(of_table) < 1.2 for own, of_table in zip(taken, said.groups(), strict=True)), taken
