"""How soon a large gang is looked at again."""

from typing import Any

import pytest

from controller.delays import Pace
from muster.queueing.ledger import GangKey
from tests.support.controller.harness import Harness
from tests.support.manifests.observed import KEY, queue, ray_cluster, ray_pod, workers

OTHER = GangKey("team", "other")


class Paced:
    """A pace whose clock and pods are set here."""

    def __init__(self) -> None:
        self.now, self.pods = 100.0, 0
        cluster: Any = self
        self.pace = Pace(cluster)

    def pods_of(self, _: GangKey) -> list[None]:
        """As many pods as are set here."""
        return [None] * self.pods

    def waits(self, after: float) -> float:
        """For how long a change waits that comes so many seconds after the last look."""
        self.now += after
        return round(self.pace.delay(KEY, self.now), 6)


@pytest.mark.parametrize(
    ("pods", "seconds"), [(1, 0.0), (49, 0.0), (50, 0.01), (500, 0.1), (4_000, 0.5), (100_000, 0.5)]
)
def test_a_large_gang_is_left_alone_for_a_moment(pods: int, seconds: float) -> None:
    paced = Paced()
    paced.pace.record(KEY, pods, paced.now)
    assert paced.waits(0.0) == seconds
    assert paced.pace.delay(OTHER, paced.now) == 0.0
    assert paced.waits(seconds / 4) == round(0.75 * seconds, 6)
    assert paced.waits(seconds) == 0.0


def test_the_pod_that_makes_it_complete_waits_for_nothing() -> None:
    paced = Paced()
    paced.pace.record(KEY, 300, paced.now, needed=500)
    paced.pods = 499
    assert paced.waits(0.0) == 0.06
    paced.pods = 500
    assert paced.waits(0.0) == 0.0


def test_a_gang_that_is_small_by_now_or_gone_leaves_nothing() -> None:
    paced = Paced()
    paced.pace.record(KEY, 500, paced.now)
    paced.pace.record(OTHER, 0, paced.now, needed=500)
    assert paced.pace.gangs == 2
    paced.pace.record(KEY, 3, paced.now)
    paced.pace.forget(OTHER)
    assert (paced.pace.gangs, paced.waits(0.0)) == (0, 0.0)


def test_a_gang_of_which_something_changes_without_end_is_looked_at_at_a_pace() -> None:
    """Whoever may write one object could otherwise keep the controller busy alone."""
    paced, looks = Paced(), 0
    end = paced.now + 60
    while paced.now < end:
        wait = paced.waits(0.001)
        paced.now += wait
        paced.pace.record(KEY, 3, paced.now)
        looks += 1
    assert looks <= 100 + 60 * 5 + 1
    assert paced.pace.delay(OTHER, paced.now) == 0.0
    assert paced.waits(60) == 0.0


def test_what_a_gang_of_usual_size_changes_on_its_way_waits_for_nothing() -> None:
    paced = Paced()
    for _ in range(90):
        paced.pace.record(KEY, 30, paced.now)
        assert paced.waits(0.0) == 0.0


def test_of_gangs_that_rest_nothing_is_remembered() -> None:
    paced = Paced()
    for number in range(5_000):
        paced.pace.record(GangKey("team", f"g{number}"), 3, paced.now)
        paced.now += 0.01
    assert len(paced.pace._at_rest) <= 1_000


class Arriving:
    """A gang whose pods a watch shows one by one, and a queue whose delays go by the same clock as all else."""

    def __init__(self, pods: int) -> None:
        cluster = ray_cluster(workers(replicas=pods - 1))
        self.harness = Harness(workloads=[cluster], queues=[queue(cpu=str(pods), memory="1Ti")])
        self._due: list[float] = []
        self.harness.queue.add_after = self._later  # type: ignore[method-assign]

    def _later(self, key: GangKey, seconds: float) -> None:
        if seconds <= 0:
            self.harness.queue.add(key)
        else:
            self._due.append(self.harness.now + seconds)

    async def shows(self) -> None:
        """A watch shows what there is, 2 ms after it has shown what there was."""
        harness = self.harness
        harness.now += 0.002
        harness.watch()
        if self._due and min(self._due) <= harness.now:
            self._due = [moment for moment in self._due if moment > harness.now]
            harness.queue.add(KEY)
        await harness.work()

    @property
    def looks(self) -> int:
        """How often it was to be looked at so far."""
        return self.harness.queue.statistics().added


async def test_a_gang_whose_pods_come_one_by_one_is_looked_at_now_and_then_and_starts_with_the_last() -> None:
    """As KubeRay makes them; and each of its pods is bound later, one by one."""
    names = ["head", *(f"worker-{number:03}" for number in range(119))]
    arriving = Arriving(len(names))
    harness = arriving.harness
    for name in names:
        assert harness.open_pods() == []
        harness.client.pods[name] = ray_pod(name, "headgroup" if name == "head" else "workers")
        await arriving.shows()
    assert len(harness.open_pods()) == len(names)
    before = arriving.looks
    assert before < len(names) / 3
    for pod in harness.client.pods.values():
        pod["spec"]["nodeName"] = "node"
        await arriving.shows()
    assert 0 < arriving.looks - before < len(names) / 3
