"""What the accounts say of gangs, whatever becomes of the leaders that keep them."""

import pytest

from muster.gangs.accounts import Totals, wait_quantile
from muster.model.names import HOLD
from muster.queueing.ledger import GangKey
from tests.support.cases import cases
from tests.support.controller.harness import Harness
from tests.support.manifests.observed import JSON, NAMESPACE, QUEUE_LABELS, pytorch_job, pytorch_pod, queue

HOUR = 3600.0
TRAIN = GangKey(NAMESPACE, "train")


def job(*conditions: str, suspend: bool = False) -> JSON:
    said = [{"type": one, "status": "True"} for one in conditions]
    made = pytorch_job(labels=QUEUE_LABELS, conditions=said, suspend=suspend)
    made["metadata"]["creationTimestamp"] = "1970-01-01T00:16:41Z"
    return made


def train(**annotations: str) -> Harness:
    """A PyTorchJob of three pods of a cpu each, made by no other object."""
    pods = [pytorch_pod("m", "master"), pytorch_pod("w-0"), pytorch_pod("w-1")]
    for one in pods:
        one["metadata"]["creationTimestamp"] = "1970-01-01T00:16:41Z"
    harness = Harness(workloads=[job()], pods=pods, queues=[queue(cpu="4", annotations=annotations)])
    harness.now += 1
    return harness


def totals(harness: Harness) -> Totals:
    """The sums of all rows."""
    harness.store_accounts()
    whole = Totals()
    for _, row in harness.accounts.rows():
        whole.add(row)
    return whole


async def looked_at(harness: Harness) -> None:
    harness.reconciler.gang_changed(TRAIN)
    await harness.settle()


async def pods_are(harness: Harness, phase: str) -> None:
    for pod in harness.client.pods.values():
        pod["status"]["phase"] = phase
    harness.watch()
    await looked_at(harness)


async def test_a_gang_holds_from_its_admission_and_is_idle_until_a_pod_runs() -> None:
    harness = train(**{HOLD: "true"})
    await harness.settle()
    harness.now += 600
    harness.set_queue(queue(cpu="4"))
    await harness.settle()
    harness.now += 60
    await pods_are(harness, "Running")
    harness.now += 2 * HOUR
    harness.set_workload(job("Succeeded"))
    await pods_are(harness, "Succeeded")
    harness.now += HOUR
    found = totals(harness)
    assert found.held["cpu"] == pytest.approx(3 * (60 + 2 * HOUR))
    assert found.idle["cpu"] == pytest.approx(3 * 60)
    assert found.ends == {"succeeded": 1}
    assert sum(found.waits.values()) == 1
    (scope, _), *more = harness.accounts.rows()
    assert ((scope.day, scope.queue, scope.namespace, scope.owner), more) == (
        ("1970-01-01", "q", NAMESPACE, "PyTorchJob/train"),
        [],
    )


async def test_a_gang_waits_for_what_it_needs() -> None:
    harness = train()
    harness.set_queue(queue(cpu="2"))
    await harness.settle()
    harness.now += HOUR
    harness.set_queue(queue(cpu="4"))
    await harness.settle()
    harness.now += 60
    found = totals(harness)
    assert found.waited["cpu"] == pytest.approx(3 * HOUR)
    assert found.held["cpu"] == pytest.approx(180)
    assert wait_quantile(found.waits, 0.5) >= HOUR / 1.1


@cases(
    "manifest, how",
    ("failed", job("Failed"), "failed"),
    ("suspended", job(suspend=True), "suspended"),
    ("deleted", None, "deleted"),
)
async def test_ends_are_counted_by_outcome(manifest: JSON | None, how: str) -> None:
    harness = train()
    await harness.settle()
    harness.now += HOUR
    if manifest is None:
        manifest = job()
        manifest["metadata"]["deletionTimestamp"] = "2026-11-21T12:00:00Z"
    harness.set_workload(manifest)
    for _ in range(2):
        await looked_at(harness)
    assert totals(harness).ends == {how: 1}


async def test_the_next_leader_goes_on_where_the_accounts_end() -> None:
    """What the former one had counted and not written counts once, and so does the time when no one led."""
    harness = train()
    await harness.settle()
    await pods_are(harness, "Running")
    for _ in range(5):
        harness.now += 60
        harness.store_accounts()
        harness.now += 30
        await looked_at(harness)
        harness.restart()
        await harness.settle()
    harness.now += 10
    found = totals(harness)
    assert found.held["cpu"] == pytest.approx(3 * (5 * 90 + 10), abs=3)
    assert sum(found.waits.values()) == 1
    assert found.idle.get("cpu", 0) == pytest.approx(0, abs=3)


async def test_gangs_are_accounted_by_the_labels_that_were_asked_for() -> None:
    harness = train()
    harness.history_labels = ("team", "cost")
    harness.restart()
    labelled = job()
    labelled["metadata"]["labels"] |= {"team": "ml", "other": "x"}
    harness.set_workload(labelled)
    await harness.settle()
    harness.now += 60
    harness.store_accounts()
    assert {scope.labels for scope, _ in harness.accounts.rows()} == {("ml", "")}


async def test_what_changes_while_the_accounts_are_written_counts_after_that() -> None:
    harness = train()
    await harness.settle()
    harness.now += 100
    for _ in harness.term.accounting.steps():
        pass
    harness.now += 20
    harness.set_workload(job("Succeeded"))
    await looked_at(harness)
    (_, row), *_ = harness.accounts.rows()
    assert row.held["cpu"] == pytest.approx(300)
    assert not row.ends
    harness.term.accounting.go_on()
    assert row.held["cpu"] == pytest.approx(360)
    assert row.ends == {"succeeded": 1}
