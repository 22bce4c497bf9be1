"""The bench of a drain: the stages of a gang, from a watch that is made up."""

import time
from itertools import pairwise

import pytest

from hack.bench.drain.gangs import SIZE, STAGES, Drained, Gangs
from muster.kube.resource import PODS, Resource
from muster.model.names import ADMITTED, ADMITTED_AT, GANG, GATE, STATE
from muster.model.objects import ObjectMeta, Pod, PodGroup, PodSpec, SchedulingGate, WrittenMeta
from muster.model.times import text_of
from tests.support.manifests.observed import JSON, as_client


def _pod(gang: str, member: int, *, held: bool) -> Pod:
    meta = ObjectMeta(name=f"{gang}-{member}", namespace="bench", labels={GANG: gang})
    return Pod(metadata=meta, spec=PodSpec(scheduling_gates=(SchedulingGate(GATE),) if held else ()))


def _group(gang: str, **said: str) -> PodGroup:
    return PodGroup(metadata=WrittenMeta(name=gang, namespace="bench", annotations=said))


class _Shown:
    """Shows at once what is made, and opens the gates of a gang as soon as another has gone."""

    def __init__(self) -> None:
        self.gangs = Gangs(as_client(self), slots=1)
        self.waits: list[str] = []

    async def create(self, resource: Resource, body: JSON, *_: object, **__: object) -> bytes:
        """A pod; with the last of a gang its PodGroup is there."""
        assert resource == PODS
        gang, member = body["metadata"]["name"].rsplit("-", 1)
        self.gangs._pods.apply("added", _pod(gang, int(member), held=True))
        if int(member) == SIZE - 1:
            self.gangs._groups.apply("added", _group(gang, **{STATE: "WaitingForQuota"}))
            self.waits.append(gang)
        return b"{}"

    async def delete(self, _: object, name: str, *__: object, **___: object) -> None:
        """A pod; with the last of a gang the next one starts."""
        gang, member = name.rsplit("-", 1)
        self.gangs._pods.apply("deleted", _pod(gang, int(member), held=False))
        if int(member) == SIZE - 1:
            self.start()

    def start(self) -> None:
        """The next one is decided, marked and opened."""
        gang = self.waits.pop(0)
        said = {STATE: "Admitted", ADMITTED: "uid", ADMITTED_AT: text_of(time.time())}
        self.gangs._groups.apply("modified", _group(gang, **said))
        for member in range(SIZE):
            self.gangs._pods.apply("modified", _pod(gang, member, held=False))


async def test_each_stage_of_a_gang_that_leaves_is_seen_in_its_order() -> None:
    shown = _Shown()
    gangs = shown.gangs
    await gangs.make(6)
    shown.start()
    for turn in (2, 3):
        await gangs.drain(turn)
        assert gangs.seen.left == turn
        # Of the last, which has started, the next turn sees how it goes.
        assert len(gangs.seen.between("last gate", "seen")) == turn - 1
        for earlier, later in pairwise(STAGES[:-1]):
            times = gangs.seen.between(earlier, later)
            assert len(times) == turn
            # The wall clock is not that of the others.
            assert min(times) > -0.01, (earlier, later)


def test_only_gangs_that_left_in_a_turn_count_in_it() -> None:
    seen = Drained()
    for stage, at in ("created", 1.0), ("assembled", 2.0), ("marked", 8.0), ("last gate", 9.0):
        seen.note(stage, "left", at)
        seen.note(stage, "left", at + 100)
    seen.note("created", "waits", 1.0)
    seen.note("assembled", "waits", 5.0)
    assert seen.between("created", "assembled") == [1.0]
    assert seen.between("fits", "marked") == []
    after = seen.next_turn()
    after.note("marked", "waits", 10.0)
    after.note("last gate", "waits", 10.5)
    assert after.between("created", "assembled") == [4.0]
    assert after.between("marked", "last gate") == [pytest.approx(0.5)]
