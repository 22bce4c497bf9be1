"""What the real apiserver does to its clients by itself: expiry, restarts, a restored etcd, overload, kinds that go."""

import asyncio
import json
import logging
import shutil
import socket
import ssl
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http import HTTPStatus
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from aiohttp import web

from hack.testbed import PATIENCE, Testbed, wait_for
from muster.kube.client import Client
from muster.kube.config import Connection
from muster.kube.errors import ApiError
from tests.support.cluster import grants
from tests.support.faults.apiserver import FaultyApiserver, eventually, reset
from tests.support.faults.loop_clock import LoopClock
from tests.support.faults.things import THINGS, Things, crd, through, watched_from_now_on, watching

_CRD = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{THINGS.full_name}"
_FLOW = "/apis/flowcontrol.apiserver.k8s.io/v1"


def compact(cluster: Testbed, revision: str) -> None:
    """Have etcd forget everything before this revision."""
    body = json.dumps({"revision": revision, "physical": True}).encode()
    url = f"http://127.0.0.1:{cluster.port('etcd')}/v3/kv/compaction"
    with urllib.request.urlopen(url, body, timeout=60):
        pass


def revision(things: Things) -> str:
    """The version of the cluster now."""
    return str(things.api.get(things.path(THINGS))["metadata"]["resourceVersion"])


def restart(cluster: Testbed, things: Things) -> None:
    """Start the apiserver anew, and wait until it takes watches of Things."""
    cluster.restart_part("kube-apiserver")
    wait_for("Things to be watched", lambda: watched_from_now_on(things.api))


async def test_a_restart_is_survived_and_nothing_missed(
    cluster: Testbed, proxy: FaultyApiserver, things: Things
) -> None:
    """What happened before, during and after is told once; the store stays what it was while nobody answers."""
    things.make("a", "b")
    async with through(proxy, cluster) as client, watching(client, things) as watched:
        await watched.reflector.wait_synced(PATIENCE)
        await asyncio.to_thread(cluster.stop_part, "kube-apiserver", kill=True)
        await eventually(lambda: watched.reflector.statistics.failures >= 1)
        assert watched.sizes == {"a": 1, "b": 1}
        cluster.start_part("kube-apiserver")
        things.delete(THINGS, "a")
        things.make("c")
        await eventually(lambda: watched.sizes == {"b": 1, "c": 1})
        assert watched.changes[2:] == [("deleted", "a"), ("added", "c")]


async def test_a_deletion_that_no_watch_can_tell_any_more_is_told(
    cluster: Testbed, proxy: FaultyApiserver, things: Things
) -> None:
    """The apiserver that comes back remembers nothing: its 410 leads to a list, and that to the difference."""
    things.make("a", "b", "c")
    async with through(proxy, cluster) as client, watching(client, things) as watched:
        await watched.reflector.wait_synced(PATIENCE)
        proxy.on("WATCH", reset)
        proxy.drop()
        things.delete(THINGS, "b")
        things.resize("c", 5)
        restart(cluster, things)
        proxy.on("WATCH")
        await eventually(lambda: watched.sizes == {"a": 1, "c": 5})
        assert sorted(watched.changes[3:]) == [("deleted", "b"), ("modified", "c")]
        assert watched.reflector.statistics.lists == 2


async def test_an_expired_page_restarts_the_list(cluster: Testbed, proxy: FaultyApiserver, things: Things) -> None:
    """Between two pages etcd forgets their version: what the first page said is not mixed with what is now."""
    things.make("a", "b", "c", "d")
    clock, release = LoopClock(), asyncio.Event()

    async def held(request: web.Request) -> web.StreamResponse:
        await release.wait()
        return await proxy.forward(request)

    proxy.on("LIST", proxy.forward, held, proxy.forward)
    async with through(proxy, cluster) as client, watching(client, things, page=2) as watched:
        await eventually(lambda: len(proxy.seen("LIST")) == 2)
        things.delete(THINGS, "a")
        compact(cluster, revision(things))
        # However long it takes, the page that is held has its time.
        with clock.stopped():
            restart(cluster, things)
        release.set()
        await watched.reflector.wait_synced(PATIENCE)
        assert watched.changes == [("added", name) for name in "bcd"]
    assert 410 in proxy.statuses


async def test_an_etcd_that_is_away_and_comes_back(cluster: Testbed, proxy: FaultyApiserver, things: Things) -> None:
    """The apiserver without its etcd answers nothing: requests end in time, and nothing counts as deleted."""
    things.make("a")
    async with through(proxy, cluster) as client, watching(client, things, watch_seconds=2) as watched:
        await watched.reflector.wait_synced(PATIENCE)
        await asyncio.to_thread(cluster.stop_part, "etcd", kill=True)
        with pytest.raises(ApiError):
            await client.get(THINGS, "a", things.namespace, deadline=2)
        assert watched.sizes == {"a": 1}
        cluster.start_part("etcd")
        await asyncio.to_thread(wait_for, "writes", lambda: _writable(things))
        await eventually(lambda: watched.sizes == {"a": 1, "b": 1})
        assert watched.changes == [("added", "a"), ("added", "b")]


def _writable(things: Things) -> bool:
    manifest = {"apiVersion": THINGS.api_version, "kind": THINGS.kind, "metadata": {"name": "b"}, "spec": {"size": 1}}
    return things.api("POST", things.path(THINGS), manifest).status in {201, 409}


async def test_a_restored_etcd_is_noticed(
    cluster: Testbed, proxy: FaultyApiserver, things: Things, tmp_path: Path
) -> None:
    """Back to a backup, the cluster's versions are older than ours: what was lost with it is told as deleted.

    A watch of the future would be silent, and the lost changes never told.
    """
    things.make("kept")
    cluster.stop_part("kube-apiserver")
    cluster.stop_part("etcd")
    shutil.copytree(cluster.state / "etcd", tmp_path / "backup")
    cluster.start_part("etcd")
    cluster.start_part("kube-apiserver")
    things.make("lost")
    # Far more than the others here write until muster is back.
    for size in range(500):
        things.resize("kept", size)
    things.resize("kept", 9)
    wait_for("Things to be watched", lambda: watched_from_now_on(things.api))
    async with through(proxy, cluster) as client, watching(client, things) as watched:
        # A watch that only begins when the cluster has gone back would notice nothing before it is silent for too long.
        await eventually(lambda: watched.sizes == {"kept": 9, "lost": 1} and len(proxy.statuses) >= 2)
        cluster.stop_part("kube-apiserver", kill=True)
        cluster.stop_part("etcd", kill=True)
        shutil.rmtree(cluster.state / "etcd")
        shutil.copytree(tmp_path / "backup", cluster.state / "etcd")
        cluster.start_part("etcd")
        cluster.start_part("kube-apiserver")
        await eventually(lambda: watched.sizes == {"kept": 1})
        assert watched.changes[-2:] == [("deleted", "lost"), ("modified", "kept")]


async def test_a_kind_may_come_later_and_go_and_come_back(
    cluster: Testbed, proxy: FaultyApiserver, things: Things
) -> None:
    """KubeRay installed after muster, removed and installed again: nobody restarts, and each Thing is told."""
    calls = things.api
    calls.done("DELETE", _CRD)
    await asyncio.to_thread(wait_for, "the kind to be gone", lambda: calls("GET", _CRD).status == 404)
    async with through(proxy, cluster) as client, watching(client, things) as watched:
        await watched.reflector.wait_synced(PATIENCE)
        assert watched.reflector.absent
        await asyncio.to_thread(_install, things)
        things.make("a")
        await eventually(lambda: watched.sizes == {"a": 1})
        calls.done("DELETE", _CRD)
        await eventually(lambda: watched.reflector.absent and watched.sizes == {})
        await asyncio.to_thread(_install, things)
        things.make("b")
        await eventually(lambda: watched.sizes == {"b": 1})
        assert watched.changes == [("added", "a"), ("deleted", "a"), ("added", "b")]


def _install(things: Things) -> None:
    calls = things.api

    def installed() -> bool:
        # While the old one still goes, its name is taken.
        calls("POST", _CRD.rpartition("/")[0], crd(THINGS))
        return calls("GET", f"{_CRD}").body.get("metadata", {}).get("deletionTimestamp") is None

    wait_for("the CRD", installed)

    def served() -> bool:
        probe = {"apiVersion": THINGS.api_version, "kind": THINGS.kind, "metadata": {"name": "probe"}}
        dry = f"{things.path(THINGS)}?dryRun=All"
        return calls("POST", dry, probe).ok

    wait_for("Things to be served", served)


async def test_odd_objects_stop_nobody(
    cluster: Testbed, proxy: FaultyApiserver, things: Things, caplog: pytest.LogCaptureFixture
) -> None:
    """Unknown fields are passed over; what cannot be read is skipped, counted and said, and taken in once mended."""
    things.make("sound", unknown={"deep": [{"er": None}]}, status=None)
    things.make("odd", size="many")
    nested: list[object] = []
    for _ in range(400):
        nested = [nested]
    things.make("deep", size="x", load=nested)
    with caplog.at_level(logging.WARNING):
        async with through(proxy, cluster) as client, watching(client, things) as watched:
            await watched.reflector.wait_synced(PATIENCE)
            assert watched.sizes == {"sound": 1}
            things.resize("sound", {"not": "a number"})
            things.make("also-odd", size=[1])
            things.make("last")
            await eventually(lambda: "last" in watched.sizes)
            assert watched.sizes == {"sound": 1, "last": 1}
            assert watched.reflector.statistics.malformed == 4
            things.resize("odd", 3)
            things.delete(THINGS, "sound")
            await eventually(lambda: watched.sizes == {"odd": 3, "last": 1})
            statistics = watched.reflector.statistics
            assert (statistics.lists, statistics.failures) == (1, 0)
    odd = f"{THINGS.full_name} {things.namespace}/odd"
    assert f"{odd}: skipped: spec.size: expected an integer, found a string" in caplog.text


@contextmanager
def serving_nobody_else(cluster: Testbed, things: Things, token: str) -> Iterator[None]:
    """Let the apiserver have room for one request of the namespace's ServiceAccounts, and hold it."""
    calls, name = things.api, things.namespace
    limited = {
        "nominalConcurrencyShares": 0,
        "lendablePercent": 0,
        "borrowingLimitPercent": 0,
        "limitResponse": {"type": "Reject"},
    }
    subject = {"kind": "Group", "group": {"name": f"system:serviceaccounts:{name}"}}
    anything = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"], "namespaces": ["*"], "clusterScope": True}
    level = {"metadata": {"name": name}, "spec": {"type": "Limited", "limited": limited}}
    flow = {
        "metadata": {"name": name},
        "spec": {
            "matchingPrecedence": 2,
            "priorityLevelConfiguration": {"name": name},
            "rules": [{"subjects": [subject], "resourceRules": [anything]}],
        },
    }
    calls.done("POST", f"{_FLOW}/prioritylevelconfigurations", level)
    own = cluster.api(token)
    with ExitStack() as held:
        held.callback(own.close)
        for kind in ("flowschemas", "prioritylevelconfigurations"):
            held.callback(calls, "DELETE", f"{_FLOW}/{kind}/{name}")
        calls.done("POST", f"{_FLOW}/flowschemas", flow)

        def no_room() -> bool:
            # What came before the apiserver had heard of them has a place of another level, and keeps that.
            held.enter_context(_never_whole(cluster, things, token))
            answer = own("GET", THINGS.path(name), once=True)
            # And not that of a kind whose storage is read anew.
            return answer.status == HTTPStatus.TOO_MANY_REQUESTS and answer.message.startswith("Too many requests")

        wait_for("no room for another request", no_room, interval=0.5)
        yield


@contextmanager
def _never_whole(cluster: Testbed, things: Things, token: str) -> Iterator[None]:
    """A request whose body never comes whole keeps its place."""
    address = urlsplit(cluster.server)
    context = ssl.create_default_context(cafile=str(cluster.ca_file))
    with (
        socket.create_connection((address.hostname, address.port)) as raw,
        context.wrap_socket(raw, server_hostname=address.hostname) as connection,
    ):
        head = f"POST {THINGS.path(things.namespace)} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n"
        connection.sendall(f"{head}Content-Type: application/json\r\nContent-Length: 9999\r\n\r\n{{".encode())
        yield


async def test_an_overloaded_apiserver_is_given_the_time_that_it_asks_for(
    cluster: Testbed, proxy: FaultyApiserver, things: Things
) -> None:
    """The apiserver's own 429 with Retry-After: nobody asks again before that, and when there is room all goes on."""
    things.make("a")
    # Its own: the one that kube-controller-manager makes may come minutes after a restart of the apiserver.
    accounts = f"/api/v1/namespaces/{things.namespace}/serviceaccounts"
    things.api.create(accounts, {"metadata": {"name": "reader"}})
    token = str(things.api.create(f"{accounts}/reader/token", {"spec": {}})["status"]["token"])

    async def login(_: bool) -> str:
        return f"Bearer {token}"

    async with Client(Connection(proxy.url, login=login), user_agent="muster-test") as client:
        with reading_things(things):
            with serving_nobody_else(cluster, things, token):
                async with watching(client, things) as watched:
                    await eventually(lambda: proxy.statuses.count(429) >= 2)
                    first, second = [r for r, s in zip(proxy.requests, proxy.statuses, strict=False) if s == 429][:2]
                    assert second.at - first.at >= 1.0
                    assert not watched.reflector.store.synced
            async with watching(client, things) as watched:
                await watched.reflector.wait_synced(PATIENCE)
                assert watched.sizes == {"a": 1}


@contextmanager
def reading_things(things: Things) -> Iterator[None]:
    """Let the ServiceAccount `reader` do everything."""
    grants.bind(things.api, things.namespace, "cluster-admin", grants.account(things.namespace, "reader"))
    try:
        yield
    finally:
        grants.revoke(things.api, things.namespace)
