"""Small histories whose hours can be counted by hand: what a gang held, waited for and left idle."""

from collections.abc import Iterator, Mapping

import pytest

from muster.gangs.accounts import Totals, wait_quantile
from muster.model.names import GATE_MODE, HOLD
from muster.model.times import stamp_of
from muster.queueing.ledger import GangKey
from tests.support.cases import cases
from tests.support.controller.harness import Harness
from tests.support.manifests.observed import JSON, NAMESPACE, QUEUE_LABELS, pytorch_job, pytorch_pod, queue, template

HOUR, DAY = 3600.0, 86400.0
_NOON = 20_000 * DAY + 12 * HOUR


class History:
    """Jobs of a master and workers of a cpu each in the queue q, from noon on, hour by hour."""

    def __init__(self, cpu: str, annotations: Mapping[str, str] | None = None) -> None:
        self.harness = Harness(queues=[queue(cpu=cpu, annotations=annotations)])
        self.harness.now = _NOON
        self.harness.restart()
        self.made: dict[str, float] = {}

    def job(self, name: str, *conditions: str, suspend: bool = False, workers: int = 2, deleted: bool = False) -> None:
        """Apply the job, or show it as it stands."""
        said = [{"type": one, "status": "True"} for one in conditions]
        replicas = {
            role: {"replicas": count, "template": template()} for role, count in (("Master", 1), ("Worker", workers))
        }
        made = pytorch_job(
            name=name,
            uid=f"uid-{name}",
            labels=QUEUE_LABELS,
            conditions=said,
            suspend=suspend,
            replicas=replicas,
        )
        made["metadata"]["creationTimestamp"] = stamp_of(self.made.setdefault(name, self.harness.now))
        if deleted:
            made["metadata"]["deletionTimestamp"] = stamp_of(self.harness.now)
        self.harness.set_workload(made)

    def pods(self, name: str, *numbers: int) -> None:
        """The operator makes these pods, all three of them by default."""
        for number in numbers or range(3):
            made: JSON = pytorch_pod(f"{name}-{number}", "worker" if number else "master", job=name)
            meta = made["metadata"]
            meta |= {"uid": f"uid-{name}-{number}-{self.harness.now}", "creationTimestamp": stamp_of(self.harness.now)}
            self.harness.client.pods[meta["name"]] = made

    def gone(self, name: str, *numbers: int) -> None:
        """These pods are gone, all of them by default."""
        for one in [*self.of(name)]:
            if not numbers or int(one.rpartition("-")[2]) in numbers:
                del self.harness.client.pods[one]

    def of(self, name: str) -> Iterator[str]:
        """The pods of a job."""
        return (one for one in self.harness.client.pods if one.startswith(f"{name}-"))

    async def run(self, name: str) -> None:
        """Muster sees all so far, then the pods of the job run."""
        await self.hours(0)
        for one in self.of(name):
            self.harness.client.pods[one]["status"]["phase"] = "Running"
            self.harness.client.pods[one]["spec"]["nodeName"] = "node"
        await self.hours(0)

    async def hours(self, hours: float) -> None:
        """Muster sees how all stands, and so many hours pass."""
        for _ in range(2):
            for name in self.made:
                self.harness.reconciler.gang_changed(GangKey(NAMESPACE, name))
            await self.harness.catch_up()
        self.harness.now += hours * HOUR

    async def no_leader(self, hours: float) -> None:
        """The leader writes, and is killed; another one comes after so many hours."""
        self.harness.store_accounts()
        self.harness.now += hours * HOUR
        self.harness.restart()
        await self.harness.settle()

    def totals(self) -> dict[tuple[str, str], Totals]:
        """The sums by date and job."""
        self.harness.store_accounts()
        return {(scope.day, scope.owner.partition("/")[2]): row for scope, row in self.harness.accounts.rows()}

    def total(self) -> tuple[float, float, float, dict[str, int]]:
        """Cpu-hours held, idle and waited, and how gangs ended, over all days and jobs."""
        whole = Totals()
        for row in self.totals().values():
            whole.add(row)
        held, idle, waited = (round(sums.get("cpu", 0.0) / HOUR, 2) for sums in (whole.held, whole.idle, whole.waited))
        return held, idle, waited, whole.ends

    def wait(self, name: str) -> float:
        """The hours that the job waited, of all its admissions the longest."""
        return max(wait_quantile(row.waits, 1) for (_, one), row in self.totals().items() if one == name) / HOUR


async def test_one_runs_over_midnight_while_another_waits() -> None:
    history = History("3")
    history.job("a")
    history.pods("a")
    await history.run("a")
    await history.hours(1)
    history.job("b")
    history.pods("b")
    await history.hours(17)
    history.job("a", "Succeeded")
    history.gone("a")
    await history.hours(2)
    await history.run("b")
    await history.hours(1)
    found = history.totals()
    days = "2024-10-04", "2024-10-05"
    held = {key: row.held.get("cpu", 0.0) / HOUR for key, row in found.items()}
    assert held == pytest.approx(
        {(days[0], "a"): 36, (days[0], "b"): 0, (days[1], "a"): 18, (days[1], "b"): 9}, abs=0.1
    )
    assert [found[day, "b"].waited["cpu"] / HOUR for day in days] == pytest.approx([33, 18], abs=0.1)
    assert history.total() == (63, 6, 51, {"succeeded": 1})
    assert history.wait("b") == pytest.approx(17, rel=0.1)


async def test_a_suspended_workload_does_not_wait() -> None:
    """Neither before its first admission nor between two: what counts is how long its pods waited."""
    history = History("3")
    history.job("a", suspend=True)
    await history.hours(10)
    for hours in (4, 2):
        history.job("a")
        history.pods("a")
        await history.run("a")
        await history.hours(hours)
        history.job("a", suspend=True)
        history.gone("a")
        await history.hours(5)
    assert history.total() == (18, 0, 0, {"suspended": 2})
    assert history.wait("a") == 0


@cases("killed", ("one leader", False), ("a leader that is killed", True))
async def test_a_gang_that_leaves_the_line_and_comes_back_waits_in_it_alone(*, killed: bool) -> None:
    """A waiting pod is deleted, and comes again an hour later: two hours in line, two for another leader."""
    history = History("2")
    history.job("a")
    history.pods("a")
    await history.hours(1)
    history.gone("a", 1)
    await history.hours(1)
    history.pods("a", 1)
    await history.hours(1)
    if killed:
        await history.no_leader(1)
        await history.hours(1)
    assert history.total() == (0, 0, 12 if killed else 6, {})
    history.harness.set_queue(queue(cpu="4"))
    await history.hours(1)
    assert history.total() == (3, 3, 12 if killed else 6, {})
    assert history.wait("a") == pytest.approx(5 if killed else 3, rel=0.1), "from its first pod to its admission"


async def test_a_queue_on_hold_lets_its_gangs_wait_in_line() -> None:
    history = History("4", {HOLD: "true"})
    history.job("a")
    history.pods("a")
    await history.hours(2)
    history.harness.set_queue(queue(cpu="4"))
    await history.hours(1)
    assert history.total() == (3, 3, 6, {})


async def test_a_gang_that_is_deleted_while_it_waits_has_ended() -> None:
    history = History("2")
    history.job("a")
    history.pods("a")
    await history.hours(4)
    history.job("a", deleted=True)
    await history.hours(0)
    history.gone("a")
    await history.hours(1)
    assert history.total() == (0, 0, 12, {"deleted": 1})


async def test_pods_that_come_again_hold_and_are_idle_until_one_runs() -> None:
    history = History("3")
    history.job("a")
    history.pods("a")
    await history.run("a")
    await history.hours(2)
    history.gone("a", 1)
    await history.hours(0.5)
    history.pods("a", 1)
    await history.hours(0.5)
    assert history.total() == (9, 0, 0, {})
    history.gone("a")
    await history.hours(1)
    history.pods("a")
    await history.run("a")
    await history.hours(1)
    assert history.total() == (15, 3, 0, {})


async def test_growth_holds_from_when_it_is_granted() -> None:
    history = History("8")
    history.job("a")
    history.pods("a")
    await history.run("a")
    await history.hours(2)
    history.job("a", workers=4)
    history.pods("a", 3, 4)
    await history.run("a")
    await history.hours(1)
    assert history.total() == (11, 0, 0, {})


async def test_gangs_that_nothing_holds_back_hold_too() -> None:
    """Also for the next leader, which finds them running."""
    history = History("2", {GATE_MODE: "off"})
    history.job("a")
    history.pods("a")
    await history.run("a")
    await history.hours(2)
    await history.no_leader(1)
    await history.hours(1)
    history.job("a", "Succeeded")
    history.gone("a")
    await history.hours(1)
    assert history.total() == (12, 0, 0, {"succeeded": 1})
