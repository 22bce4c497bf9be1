"""A generated day of gangs, with leaders that are killed: the accounts agree with the pods' own times."""

import random

import pytest

from muster.gangs.accounts import Accounts, Totals
from muster.model.times import stamp_of
from tests.support.controller.harness import Harness
from tests.support.manifests.observed import JSON, NAMESPACE, QUEUE_LABELS, pytorch_job, pytorch_pod, queue

DAY, STEP = 86400, 120
CAPACITY = 12


class GeneratedDay:
    """Jobs of three pods of a cpu each that come and end, and leaders that go without a word."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)  # noqa: S311 - no secret
        self.harness = Harness(queues=[queue(cpu=str(CAPACITY))])
        self.harness.now += 1
        self.due: dict[str, float] = {}
        self.opened: dict[str, float] = {}
        self.held = self.waited = 0.0
        self.came: dict[str, float] = {}
        self.kills = 0
        self.over: set[str] = set()

    def job(self, name: str, *conditions: str) -> JSON:
        """The manifest of a job, as it stands."""
        said = [{"type": one, "status": "True"} for one in conditions]
        made = pytorch_job(name=name, uid=f"uid-{name}", labels=QUEUE_LABELS, conditions=said)
        made["metadata"]["creationTimestamp"] = stamp_of(self.came[name])
        return made

    def come(self, name: str) -> None:
        """A user applies a job, and its operator makes the pods."""
        self.came[name] = self.harness.now
        for number in range(3):
            made = pytorch_pod(f"{name}-{number}", "worker" if number else "master", job=name)
            meta = made["metadata"]
            meta |= {"uid": f"uid-{name}-{number}", "creationTimestamp": stamp_of(self.harness.now)}
            self.harness.client.pods[meta["name"]] = made
        self.harness.set_workload(self.job(name))

    def end(self, name: str) -> None:
        """The pods of a job end, and so does the job."""
        for number in range(3):
            del self.harness.client.pods[f"{name}-{number}"]
        self.harness.set_workload(self.job(name, "Succeeded"))
        self.held += 3 * (self.harness.now - self.opened.pop(name))
        self.over.add(name)

    async def live(self) -> Totals:
        """Live through the day; the pods' own times stand beside the accounts afterwards."""
        harness, dice, number = self.harness, self.dice, 0
        for _ in range(DAY // STEP):
            harness.now += STEP
            if dice.random() < STEP / 1500:
                number += 1
                self.come(f"job-{number}")
            for name in [one for one, due in self.due.items() if due <= harness.now]:
                del self.due[name]
                self.end(name)
            await harness.catch_up()
            self.look()
            if dice.random() < STEP / 2400:
                self.kills += 1
                harness.restart()
                await harness.settle()
                self.look()
            harness.store_accounts()
        return self.rest()

    def look(self) -> None:
        """See which pods are open now."""
        for name in sorted(self.came.keys() - self.opened.keys() - self.over):
            if not self.harness.client.pods[f"{name}-0"]["spec"]["schedulingGates"]:
                self.opened[name] = self.harness.now
                self.waited += 3 * (self.harness.now - self.came[name])
                self.due[name] = self.harness.now + self.dice.randint(600, 7200)

    def rest(self) -> Totals:
        """Count what holds and waits at the end of the day, and return what the accounts say."""
        harness = self.harness
        self.held += sum(3 * (harness.now - since) for since in self.opened.values())
        for name in sorted(self.came.keys() - self.opened.keys() - self.over):
            self.waited += 3 * (harness.now - self.came[name])
        harness.store_accounts()
        stored, whole = Accounts(), Totals()
        stored.read(harness.stored_accounts)
        for scope, row in stored.rows():
            assert (scope.namespace, scope.queue) == (NAMESPACE, "q")
            whole.add(row)
        return whole


@pytest.mark.parametrize("seed", [1, 27])
async def test_the_accounts_of_a_day_agree_with_the_pods_within_a_hundredth(seed: int) -> None:
    """Seed 27 is the one of forty in which most is lost with the leaders: 0.3 %."""
    day = GeneratedDay(seed)
    whole = await day.live()
    assert day.kills > 10
    assert len(day.over) > 30
    assert whole.held["cpu"] == pytest.approx(day.held, rel=0.01)
    assert whole.waited["cpu"] == pytest.approx(day.waited, rel=0.01)
    assert sum(whole.waits.values()) == len(day.opened) + len(day.over)
    assert len(day.over) - day.kills <= whole.ends["succeeded"] <= len(day.over)
