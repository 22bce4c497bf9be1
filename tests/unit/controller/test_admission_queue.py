"""Whom a change in the ledger wakes."""

from __future__ import annotations

from controller.admission_queue import AdmissionQueue
from controller.sweeps import Sweeps
from muster.model.objects import Queue
from muster.observe.context import EntryContext
from muster.observe.observing import observe
from muster.observe.view import Mark
from muster.queueing.ledger import GangKey
from tests.support.controller.stores import filled
from tests.support.manifests.observed import DEFAULTS, made, queue, ray_cluster, ray_pod, workers

NAMES = [f"g{number:02}" for number in range(40)]


def test_when_many_start_at_once_each_is_woken_once_and_not_for_every_start_of_another() -> None:
    """Else the starts of thousands would cost as much as the square of their number."""
    cluster = filled(
        workloads=[ray_cluster(workers(replicas=0), name=name, uid=f"uid-{name}") for name in NAMES],
        pods=[ray_pod(f"{name}-head", "headgroup", cluster=name, owner_uid=f"uid-{name}") for name in NAMES],
    )
    views = [observe(GangKey("team", f"ray-{name}-pg"), cluster, DEFAULTS) for name in NAMES]
    woken: list[GangKey] = []
    sweeps = Sweeps()
    line = AdmissionQueue(woken.append, wall=lambda: 0.0, sweep=sweeps.add)
    line.set_queue(made(Queue, queue(cpu="0.5")))
    for view in views:
        line.stand(view, EntryContext(0.0, {"": 0}))
    assert woken == []
    line.set_queue(made(Queue, queue(cpu="40")))
    line.wake_all()
    assert list(sweeps.steps())
    for view in views:
        line.stand(view, EntryContext(0.0, {"": 0}, Mark(view.uid)))
    assert sorted(woken) == [view.key for view in views]
