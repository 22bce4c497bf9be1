"""What a leader does beside the work on single gangs, whatever the apiserver answers."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from controller import __main__ as process
from controller.metrics import Metrics, TermMetrics
from controller.reconciler import Reconciler
from muster.kube.workqueue import WorkQueue
from muster.model.objects import Queue
from muster.model.resource import POD_GROUPS
from tests.support.controller.stores import filled
from tests.support.faults.apiserver import FaultyApiserver, eventually, failure, listing, only, reply
from tests.support.manifests.observed import DEFAULTS, made, queue


async def test_who_waits_is_told_while_the_pods_on_the_nodes_cannot_be_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The nodes begin to bound the queues, and the list that this takes fails, or takes long in a large cluster."""
    told = 0

    def tell(_: Reconciler) -> None:
        nonlocal told
        told += 1

    monkeypatch.setattr(process, "_TICK", 0.01)
    monkeypatch.setattr(Reconciler, "refresh_messages", tell)
    async with FaultyApiserver.serving() as server, server.client() as client:
        server.on("LIST", only(POD_GROUPS.path(None), reply(listing(1)), failure(403, "Forbidden")))
        cluster, registry = filled(queues=[queue("root")]), CollectorRegistry()
        elector: Any = SimpleNamespace(alone_for=lambda: 60.0)
        term = TermMetrics(cluster, "lease", lambda: True, registry)
        parts: Any = client, cluster, WorkQueue[Any](), elector, Metrics(registry), term, "pod-0", "muster"
        made_of: Any = {"history": "", "history_labels": (), "defaults": DEFAULTS, "bound_by_nodes": False}
        leading = asyncio.create_task(process._lead(process._Parts(*parts, **made_of)))
        await eventually(lambda: told > 1)
        bounding = made(Queue, queue("root", annotations={"muster.dev/bound": "nodes"}))
        cluster.queues.apply("modified", bounding)
        await eventually(lambda: len(server.seen("LIST")) > 1)
        before = told
        await eventually(lambda: told > before + 2)
        assert not leading.done()
        leading.cancel()
        await asyncio.wait({leading})
