"""Whom a change in the ledger wakes."""

import pytest

from controller.admission_queue import AdmissionQueue, Sweeps
from controller.delays import Clock
from muster.cluster.observe import observe
from muster.model.names import QUEUE_LABEL
from muster.model.objects import Queue
from muster.planning.expectations import Expectations
from muster.planning.snapshot import AdmissionRecord
from muster.queueing.entries import EntryKey
from muster.queueing.ledger import GangKey
from tests.support.controller.recorded_queue import RecordedQueue
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
    work, sweeps = RecordedQueue(), Sweeps()
    woken = work.added_keys
    line = AdmissionQueue(work, sweeps, Clock())
    line.set_queue(made(Queue, queue(cpu="0.5")))
    for view in views:
        line.enter_and_wake(view, Expectations())
    assert woken == []
    line.set_queue(made(Queue, queue(cpu="40")))
    line.wake_all()
    assert list(sweeps.steps())
    for view in views:
        line.enter_and_wake(view, Expectations(record=AdmissionRecord(view.uid)))
    assert sorted(woken) == [view.key for view in views]


def test_an_error_in_one_queue_keeps_no_gang_of_another_from_its_turn(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """No object is known on which this fails; where a defect makes it fail on some, the others do not pay for it."""
    queues = ("bad", "good")
    labels = [{QUEUE_LABEL: name} for name in queues]
    cluster = filled(
        workloads=[
            ray_cluster(workers(replicas=0), name=name, uid=f"uid-{name}", labels=label)
            for name, label in zip(queues, labels, strict=True)
        ],
        pods=[ray_pod(f"{name}-head", "headgroup", cluster=name, owner_uid=f"uid-{name}") for name in queues],
    )
    work, sweeps = RecordedQueue(), Sweeps()
    woken = work.added_keys
    line = AdmissionQueue(work, sweeps, Clock())
    views = [observe(GangKey("team", f"ray-{name}-pg"), cluster, DEFAULTS) for name in queues]
    for name, view in zip(queues, views, strict=True):
        line.set_queue(made(Queue, queue(name, cpu="0.5")))
        line.enter_and_wake(view, Expectations())
    whole = line.ledger.newly_startable

    def failing(asked: str, now: float) -> list[EntryKey] | None:
        if asked == "bad":
            raise ValueError("no")
        return whole(asked, now)

    monkeypatch.setattr(line.ledger, "newly_startable", failing)
    for name in queues:
        line.set_queue(made(Queue, queue(name, cpu="4")))
    line.wake_all()
    assert list(sweeps.steps())
    assert woken == [views[1].key]
    assert "of the gangs of queue bad, and of all that share its limits, none may start or grow" in caplog.text
    line.leave(views[0].key)
    assert line.enter_and_wake(views[1], Expectations()).phase.name == "WAITING"
