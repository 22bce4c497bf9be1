"""What processes that have nothing to do ask of the apiserver, counted against docs/operations.md."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest

from hack.testbed.site import kubeconfig_text
from muster.kube.resource import LEASES, SECRETS
from tests.support.cluster.desk import PATIENCE
from tests.support.faults.apiserver import FaultyApiserver, eventually
from webhook.certificates.bundles import CONFIGURATIONS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from hack.testbed import Testbed
    from hack.testbed.muster import MusterInstall
    from tests.support.faults.apiserver import Request

_SECRET = SECRETS.path("muster-system", "muster-webhook-tls")
_LEASE = LEASES.path("muster-system", "muster-controller")
# Seconds; a busy machine makes them longer, and never shorter.
_LOOK, _RENEWAL = 10.0, 2.0
# A watch in which nothing happens is opened again after so long, and the apiserver asked for its version before.
_SILENCE, _PER_SILENCE = 90.0, 2
# A kind that is not served is asked for after so long.
_ABSENT = 30.0
_LOOKS, _RENEWALS = 3, 10


@asynccontextmanager
async def _counting(
    bare: Testbed, webhook: MusterInstall, program: str, folder: Path
) -> AsyncIterator[FaultyApiserver]:
    """A door to the apiserver that notes every request, and a kubeconfig of the program's that leads there."""
    (own,) = json.loads(webhook.programs[program].kubeconfig.read_text())["users"]
    async with FaultyApiserver.in_front_of(bare) as proxy:
        (folder / "kubeconfig").write_text(kubeconfig_text(proxy.url, bare.ca_file, own["user"]["token"]))
        yield proxy


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


@pytest.mark.usefixtures("every_kind")
async def test_an_idle_webhook_looks_at_its_certificates_and_no_more(
    bare: Testbed, webhook: MusterInstall, tmp_path: Path
) -> None:
    """The Secret and both configurations every ten seconds; everything else comes by watches."""
    webhook.stop_webhooks()
    async with _counting(bare, webhook, "webhook", tmp_path) as proxy:
        process = webhook.start_webhook(f"--kubeconfig={tmp_path / 'kubeconfig'}")
        await asyncio.to_thread(webhook.wait_ready, PATIENCE)

        def looks() -> list[Request]:
            return [one for one in proxy.seen("GET") if one.path == _SECRET]

        # It looks more often until its first rotation has had its time.
        await eventually(lambda: len(looks()) > 1 and looks()[-1].at - looks()[-2].at > _LOOK / 2)
        before = list(proxy.requests)
        proxy.requests.clear()
        await eventually(lambda: len(looks()) == _LOOKS)
        seen = list(proxy.requests)
        webhook.webhooks.remove(process)
        await asyncio.to_thread(process.stop)
    looked = [one for one in seen if one.path == _SECRET]
    assert looked[-1].at - looked[0].at > (_LOOKS - 1) * _LOOK * 0.9
    _hold(before, seen)
    rest = [one for one in seen if one not in [*_of_watches(seen), *_whole(seen)]]
    known = {_SECRET, *(kind.path(name="muster") for kind in CONFIGURATIONS)}
    assert {one.path for one in rest} <= known, _told(rest)
    assert len(rest) <= _LOOKS * len(known), _told(rest)


@pytest.mark.usefixtures("every_kind")
async def test_an_idle_controller_renews_its_lease_and_no_more(
    bare: Testbed, webhook: MusterInstall, tmp_path: Path
) -> None:
    """A write every two seconds, and not a read beside it; everything else comes by watches."""
    async with _counting(bare, webhook, "controller", tmp_path) as proxy:
        process = webhook.start_controller(f"--kubeconfig={tmp_path / 'kubeconfig'}")

        def renewals() -> list[Request]:
            return [one for one in proxy.seen("PUT") if one.path == _LEASE]

        await eventually(lambda: len(renewals()) >= 2)
        before = list(proxy.requests)
        proxy.requests.clear()
        await eventually(lambda: len(renewals()) == _RENEWALS)
        seen = list(proxy.requests)
        webhook.controllers.remove(process)
        await asyncio.to_thread(process.stop)
        webhook.free_lease()
    renewed = [one for one in seen if one.path == _LEASE]
    assert {one.kind for one in renewed} == {"PUT"}
    assert renewed[-1].at - renewed[0].at > (_RENEWALS - 1) * _RENEWAL * 0.9
    _hold(before, seen)
    assert _told([one for one in seen if one not in [*_of_watches(seen), *_whole(seen), *renewed]]) == {}
