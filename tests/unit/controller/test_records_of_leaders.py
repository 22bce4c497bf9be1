"""Leaders that go without a last word: what the next one knows of the past is no more than a minute's worth off."""

import random
from collections.abc import Callable

import pytest

from controller.apiserver import Writer
from controller.history import HistoryStore
from muster.gangs.accounts import Accounts, Totals
from muster.gangs.history import History, lineage_of
from muster.gangs.start_errors import StartErrors
from muster.kube.errors import Unreachable
from muster.queueing.past_use import PastUse
from tests.support.cases import cases
from tests.support.controller.config_maps import OWN, ConfigMaps
from tests.support.controller.harness import Harness
from tests.support.manifests.observed import JSON, QUEUE_LABELS, as_client, pytorch_job, pytorch_pod, queue

MINUTE, TICK = 60.0, 20.0
NIGHTLY = lineage_of("team", "RayCronJob", "nightly")
CPUS, HALF_LIFE = 3, 20 * MINUTE


def job(*conditions: str) -> JSON:
    said = [{"type": one, "status": "True"} for one in conditions]
    return pytorch_job(labels=QUEUE_LABELS, conditions=said)


class Leaders:
    """Leaders one after the other, with the store of each, over a gang of three CPUs that comes and ends."""

    def __init__(self) -> None:
        root = queue("root", cpu="8", annotations={"muster.dev/half-life": "20m"})
        self.harness = Harness(queues=[root, queue(cpu="8"), queue("other", cpu="8")])
        self.config_maps = ConfigMaps()

    async def takes_over(self) -> None:
        """The former one is gone; this one reads what there is."""
        client = as_client(self.config_maps)
        self.accounts, self.past, self.run_times = Accounts(), PastUse(), History()
        self.store = HistoryStore(
            client,
            Writer(client, lambda: 60.0),
            namespace="muster",
            name=OWN,
            parts={"runs": self.run_times, "use": self.accounts, "past": self.past},
            starts=StartErrors(),
        )
        await self.store.read()
        self.harness.restart((self.accounts, self.past))
        await self.harness.settle()

    async def live(self, minutes: float, *, ends: float = 1e9, at: Callable[[float], bool] = lambda _: False) -> None:
        """Work for some time, and write each minute; another leader takes over `at` moments."""
        harness, begun = self.harness, self.harness.now
        while (passed := harness.now - begun) < minutes * MINUTE:
            harness.now += TICK
            if passed == ends:
                harness.client.pods.clear()
                harness.set_workload(job("Succeeded"))
                await harness.catch_up()
            harness.reconciler.tick()
            if at(passed):
                await self.takes_over()
            elif passed % MINUTE == 0:
                await self.store.account(harness.term.accounting)

    async def runs(self) -> None:
        """A user's gang comes, and runs."""
        for one in (pytorch_pod("m", "master"), pytorch_pod("w-0"), pytorch_pod("w-1")):
            self.harness.client.pods[one["metadata"]["name"]] = one
        self.harness.set_workload(job())
        await self.harness.catch_up()
        for one in self.harness.client.pods.values():
            one["spec"]["nodeName"], one["status"]["phase"] = "node", "Running"
        await self.harness.catch_up()

    def average(self) -> float:
        """The CPUs that the queue has held, decayed."""
        return self.past.of("q").get("cpu", 0) / 10**9

    def totals(self) -> Totals:
        """The sums of all rows, with what is held until now."""
        for _ in self.harness.term.accounting.steps():
            pass
        self.harness.term.accounting.go_on()
        whole = Totals()
        for _, row in self.accounts.rows():
            whole.add(row)
        return whole


async def lived(minutes: float, *, ends: float = 1e9, at: Callable[[float], bool] = lambda _: False) -> Leaders:
    leaders = Leaders()
    await leaders.takes_over()
    await leaders.runs()
    await leaders.live(minutes, ends=ends, at=at)
    return leaders


def worth(seconds: float) -> float:
    """What so many seconds of the gang add to the average."""
    return CPUS * (1 - 2 ** -(seconds / HALF_LIFE))


@cases("seed", *((f"seed {seed}", seed) for seed in range(3)))
async def test_use_survives_leaders_that_are_killed_within_a_minute_s_worth(seed: int) -> None:
    """One change after the other, before and after the gang has ended, none with a last write."""
    dice = random.Random(seed)  # noqa: S311 - no secret
    kills = sorted(dice.sample(range(int(60 * MINUTE / TICK)), 6))
    whole, killed = (
        await lived(60, ends=45 * MINUTE),
        await lived(60, ends=45 * MINUTE, at=lambda at: at / TICK in kills),
    )
    assert whole.average() > 0.5
    assert killed.average() == pytest.approx(whole.average(), abs=worth(MINUTE))
    told, known = whole.totals(), killed.totals()
    assert known.held["cpu"] == pytest.approx(told.held["cpu"], abs=CPUS * MINUTE)
    assert known.ends == told.ends == {"succeeded": 1}
    assert sum(known.waits.values()) == sum(told.waits.values()) == 1


@cases("leap", ("behind", -300.0), ("ahead", 30.0))
async def test_the_clock_of_the_next_leader_may_be_another(leap: float) -> None:
    """One that is behind counts on from its own time; one that is ahead counts as much more as it is."""
    whole, killed = await lived(40), await lived(20)
    killed.harness.leap = leap
    await killed.takes_over()
    await killed.live(20)
    assert killed.average() == pytest.approx(whole.average(), abs=worth(MINUTE))
    assert killed.totals().held["cpu"] == pytest.approx(whole.totals().held["cpu"], abs=CPUS * MINUTE)


async def test_a_leader_that_could_not_read_at_first_adds_what_it_counted_since() -> None:
    whole, killed = await lived(40), await lived(20)
    # As often as it asks in ten minutes: at first, and each minute for each ConfigMap.
    killed.config_maps.fails = [Unreachable("silent")] * 22
    before = dict(killed.config_maps.data[OWN])
    await killed.takes_over()
    await killed.live(5)
    assert killed.config_maps.data[OWN] == before, "good records stay"
    await killed.live(15)
    assert not killed.config_maps.fails
    assert killed.average() == pytest.approx(whole.average(), abs=worth(MINUTE))
    assert killed.totals().held["cpu"] == pytest.approx(whole.totals().held["cpu"], abs=CPUS * MINUTE)


@cases("last", ("by its last write", True), ("killed after a write", False))
async def test_what_is_read_late_is_in_what_is_written_at_once(last: bool) -> None:
    """The leader may be gone before it counts again."""
    killed = await lived(20)
    average = killed.average()
    killed.config_maps.fails = [Unreachable("silent")] * 2
    await killed.takes_over()
    killed.harness.reconciler.tick()
    killed.harness.now += TICK
    await killed.store.account(killed.harness.term.accounting, last=last)
    assert not killed.config_maps.fails
    await killed.takes_over()
    assert killed.average() == pytest.approx(average, abs=worth(MINUTE))


async def test_what_is_written_to_a_config_map_that_was_made_again_is_everything() -> None:
    """Deleted by hand, it is made again by the next upgrade of the chart, maybe before the next minute."""
    whole, killed = await lived(40), await lived(20)
    for _ in range(3):
        killed.run_times.record(NIGHTLY, "q", 3600.0)
    await killed.live(2)
    del killed.config_maps.data[OWN]
    await killed.live(5)
    killed.config_maps.data[OWN] = {}
    await killed.live(5)
    killed.config_maps.data[OWN] = {}
    await killed.live(8)
    await killed.takes_over()
    assert killed.run_times.estimates(NIGHTLY, "q") == (3600.0,) * 3
    assert killed.average() == pytest.approx(whole.average(), abs=worth(MINUTE))
    assert killed.totals().held["cpu"] == pytest.approx(whole.totals().held["cpu"], abs=CPUS * MINUTE)


@cases("key, text", ("use is cut off", "use", "{"), ("past is cut off", "past", "{"), ("past of others", "past", "[]"))
async def test_a_part_that_is_damaged_costs_no_other_part(key: str, text: str) -> None:
    killed = await lived(20)
    average, held = killed.average(), killed.totals().held["cpu"]
    killed.config_maps.data[OWN][key] = text
    await killed.takes_over()
    assert killed.average() == (pytest.approx(average, rel=0.01) if key == "use" else 0)
    assert killed.totals().held.get("cpu", 0) == pytest.approx(held if key == "past" else 0, abs=CPUS * MINUTE)
    await killed.live(2)
    assert killed.config_maps.data[OWN][key] != text
