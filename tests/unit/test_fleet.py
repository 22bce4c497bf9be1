"""The benches of many gangs: the same gangs for the same seed, rooms as seen from outside, and what counts as flat."""

import random
import re
from collections.abc import Iterator
from itertools import islice

import pytest

from hack.bench.churn import plot, verdicts
from hack.bench.curves import Panel, curves, panels
from hack.bench.fleet.__main__ import Result
from hack.bench.fleet.__main__ import plot as drawn
from hack.bench.fleet.gangs import Fleet, Seen
from hack.bench.fleet.sampling import Samples
from hack.bench.fleet.shape import LARGEST, One, QueueOf, Room, gangs, needed_nodes, teams_of, tree
from hack.bench.trends import percentile, trend
from muster.kube.store import ChangeKind
from muster.model.names import GANG, GATE
from muster.model.objects import ObjectMeta, Pod, PodSpec, PodStatus, SchedulingGate
from tests.support.manifests.observed import as_client

_HOUR = 3600.0


def test_the_same_seed_makes_the_same_gangs_of_all_sizes_in_all_teams() -> None:
    teams = teams_of(tree(100))
    made = [*islice(gangs(teams, 1), 15_000)]
    assert [*islice(gangs(teams, 1), 100)] == made[:100]
    assert [*islice(gangs(teams, 2), 100)] != made[:100]
    assert {one.pods for one in made} == set(range(1, 21))
    assert len({(one.pods, one.milli) for one in made}) == len(made)
    assert [sum(one.queue == team for one in made) for team in teams] == [150] * 100
    assert len({one.name for one in made}) == len(made)
    assert max(one.need for one in made) <= LARGEST


def test_a_gang_runs_for_as_long_as_it_may() -> None:
    assert {one.seconds for one in islice(gangs(["q"], 1, (3, 5)), 200)} == {3, 4, 5}
    assert {one.seconds for one in islice(gangs(["q"], 1), 20)} == {0}


@pytest.mark.parametrize("teams", [1, 5, 6, 21, 100])
def test_queues_have_three_levels_of_which_each_holds_the_largest_gang(teams: int) -> None:
    made = tree(teams)
    names = [queue.name for queue in made]
    above = {queue.name: queue.parent for queue in made}
    assert len(teams_of(made)) == teams
    assert all(queue.milli >= LARGEST for queue in made)
    assert all(queue.parent == "root" or names.index(queue.parent) < names.index(queue.name) for queue in made)
    assert all(above[above[above[team]]] == "root" for team in teams_of(made))


def test_a_hundred_teams_are_limited_by_those_above_them() -> None:
    """Or the levels above the teams would be there for nothing."""
    made = {queue.name: queue for queue in tree(100)}
    for name, queue in made.items():
        below = sum(one.milli for one in made.values() if one.parent == name)
        assert not below or queue.milli < below
    assert needed_nodes([*made.values()], 16) == 83


def test_no_queue_is_no_fleet() -> None:
    with pytest.raises(ValueError, match="0 queues"):
        tree(0)


_TREE = [QueueOf("org", "root", 10), QueueOf("a", "org", 8), QueueOf("b", "org", 8)]


def test_there_is_room_when_its_last_part_is_free() -> None:
    room = Room(_TREE)
    assert room.take("a", 8, 1.0) == 0.0
    room.free("a", 2, 5.0)
    room.free("a", 2, 6.0)
    room.free("a", 4, 7.0)
    assert room.take("a", 3, 8.0) == 6.0
    assert room.take("a", 5, 8.0) == 7.0


def test_room_that_another_took_meanwhile_is_there_again_later() -> None:
    room = Room(_TREE)
    room.take("a", 8, 1.0)
    room.free("a", 4, 2.0)
    room.take("a", 2, 3.0)
    room.free("a", 2, 4.0)
    assert room.take("a", 4, 5.0) == 4.0


def test_there_is_room_when_it_is_at_every_level() -> None:
    room = Room(_TREE)
    assert room.take("a", 8, 1.0) == 0.0
    # Its own queue has been free all the time; of the one above it 2 have.
    assert room.take("b", 2, 2.0) == 0.0
    room.free("a", 8, 3.0)
    assert room.take("b", 6, 4.0) == 3.0


def test_a_gang_that_starts_before_its_room_is_seen_has_no_time_and_takes_it_all_the_same() -> None:
    room = Room(_TREE)
    room.take("a", 8, 1.0)
    assert room.take("a", 4, 2.0) is None
    room.free("a", 4, 5.0)
    room.free("a", 4, 6.0)
    assert room.take("a", 4, 7.0) == 6.0


def test_since_when_there_is_room_is_what_one_finds_who_remembers_everything() -> None:
    chance = random.Random(3)  # noqa: S311 - the same in every run
    room, free, seen = Room([QueueOf("q", "root", 100)]), 100, [(0.0, 100)]
    for step in range(1, 2000):
        now, amount = float(step), chance.randint(1, 30)
        if chance.random() < 0.5:
            since = next((until for (_, left), (until, _) in pairwise_back(seen) if left < amount), 0.0)
            assert room.take("q", amount, now) == (since if free >= amount else None)
            free -= amount
        else:
            amount = min(amount, 100 - free)
            room.free("q", amount, now)
            free += amount
        seen.append((now, free))


def pairwise_back(seen: list[tuple[float, int]]) -> Iterator[tuple[tuple[float, int], tuple[float, int]]]:
    """Each two that follow each other, the last first."""
    return zip(reversed(seen[:-1]), reversed(seen[1:]), strict=True)


@pytest.mark.parametrize(
    ("numbers", "part", "found"),
    [
        pytest.param([1.0, 2.0, 3.0, 4.0], 0.5, 3.0, id="the median is the upper one"),
        pytest.param([float(number) for number in range(1000)], 0.99, 990.0, id="p99"),
        pytest.param([1.0], 1.0, 1.0, id="never beyond the last"),
    ],
)
def test_percentiles(numbers: list[float], part: float, found: float) -> None:
    assert percentile(numbers, part) == found


def test_the_percentile_of_nothing_is_no_number() -> None:
    assert str(percentile([], 0.5)) == "nan"


def _points(*quarters: float, noise: float = 0.0) -> list[tuple[float, float]]:
    """Two hours, with a number for each quarter that goes up and down by `noise`."""
    return [
        (minute * 60.0, quarters[min(minute // 30, 3)] + (noise if minute % 2 else -noise)) for minute in range(121)
    ]


@pytest.mark.parametrize(
    ("points", "flat"),
    [
        pytest.param(_points(50, 100, 100, 100), True, id="what grows in the first quarter is a start"),
        pytest.param(_points(100, 100, 100, 104), True, id="a twentieth is nothing"),
        pytest.param(_points(100, 100, 100, 106), False, id="more than a twentieth is"),
        pytest.param(_points(100, 100, 100, 50), True, id="what falls does not grow"),
        pytest.param(_points(10, 10, 10, 12), True, id="as little as is allowed"),
        pytest.param(_points(100, 100, 100, 110, noise=10), True, id="as much as it goes up and down anyway"),
        pytest.param([(float(second), second / 100) for second in range(7200)], False, id="a line"),
        pytest.param([(float(second), 100 + second / 720) for second in range(7200)], True, id="a line that is slow"),
    ],
)
def test_flat_is_what_does_not_grow_from_the_second_quarter_to_the_last(
    points: list[tuple[float, float]],
    flat: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    found = trend(points, 3.0)
    assert found is not None
    assert found.flat == flat


def test_the_slope_is_the_growth_of_an_hour() -> None:
    found = trend([(float(second), second / _HOUR) for second in range(0, 14401, 10)], 0.0)
    assert found is not None
    assert found.slope == pytest.approx(1.0, rel=0.01)
    assert found.grown == pytest.approx(2.0, rel=0.01)
    assert found.hours == 2.0


def test_a_quarter_without_a_sample_says_nothing() -> None:
    assert trend([], 0.0) is None
    assert trend([(0.0, 1.0)], 0.0) is None
    assert trend([(0.0, 1.0), (100.0, 1.0)], 0.0) is None


def test_entries_that_grow_with_the_gangs_that_are_there_are_no_fault_and_memory_is() -> None:
    steady, growing = _points(100, 100, 100, 100, noise=1), _points(100, 100, 150, 200)
    points = {
        "controller MB": growing,
        "controller cores": growing,
        "controller nodes": [(at, 20.0) for at, _ in steady],
        "webhook ledger": growing,
        "kube-apiserver MB": growing,
    }

    def said(there: list[tuple[float, float]], **more: list[tuple[float, float]]) -> tuple[dict[str, str], bool]:
        rows, flat = verdicts({**points, "gangs there": there, **more})
        return {row[0]: row[-1] for row in rows}, flat

    words, flat = said(steady)
    assert words == {
        "controller MB": "GROWS",
        "webhook ledger": "GROWS",
        "kube-apiserver MB": "(grows)",
        "gangs there": "(flat)",
    }
    assert not flat
    words, flat = said(growing)
    assert (words["webhook ledger"], words["controller MB"], flat) == ("with the gangs", "GROWS", False)
    points["controller MB"] = steady
    assert said(growing) == ({**words, "controller MB": "flat"}, True)


def test_a_figure_has_a_panel_below_the_other() -> None:
    one = curves("up", "right", {"a": [(0.0, 0.0), (1.0, 2.0)]})
    two = panels([Panel("up", "right", {"a": [(0.0, 0.0), (1.0, 2.0)]}), Panel("more", "right", {"b": []})])
    (height,), (of_both,) = (re.findall(r'viewBox="0 0 846 (\d+)"', svg) for svg in (one, two))
    assert int(of_both) == 2 * int(height)
    assert one.splitlines()[2:-1] == two.splitlines()[2:][: len(one.splitlines()) - 3]
    assert ">15000<" in curves("up", "gangs", {"a": [(15000.0, 1.0)]})


def test_a_churn_is_drawn_by_minutes() -> None:
    svg = plot({"controller MB": [(0.0, 90.0), (120.0, 91.0)]})
    assert ">2</text>" in svg
    assert "webhook" not in svg


def test_a_line_of_the_table_and_the_figure_have_what_was_measured() -> None:
    samples = Samples([], deep=False)
    for name in ("controller", "webhook"):
        samples.points[f"{name} MB"] = [(0.0, 90.0), (5.0, 110.0), (10.0, 95.0)]
        samples.points[f"{name} cores"] = [(5.0, 0.25), (10.0, 0.5)]
    seen = Seen(to_last_gate=[0.1, 0.2, 0.9])
    cpu, callers = {"controller": 88.4, "webhook": 13.6, "etcd": 50.0}, {"muster-controller": 23.04, "kwok": 33.0}
    one = Result(500, 7.04, 70.4, seen, cpu, {"PATCH pods": 10.5}, callers, samples)
    assert one.row() == ["500", "7.0", "70", "0.20", "0.90", "88", "14", "23.0", "0.0", "110", "110"]
    svg = drawn([one])
    assert len(re.findall("<polyline", svg)) == 1 + 2 + 2 + 2
    assert ">0.9<" in svg


class Nobody:
    """A client whose writes do nothing: the test is the watch."""

    async def create(self, *_: object, **__: object) -> bytes:
        """Nothing comes."""
        return b""


async def test_a_fleet_follows_a_gang_from_its_gates_to_its_end() -> None:
    one = One(7, "team-000", pods=2, milli=100, seconds=0)
    fleet = Fleet(as_client(Nobody()), tree(1))
    await fleet.make([one])

    def show(name: str, change: ChangeKind, phase: str = "Pending", *, held: bool = False) -> None:
        meta = ObjectMeta(name=name, namespace="fleet", labels={GANG: one.name})
        gates = (SchedulingGate(GATE),) if held else ()
        fleet._pods.apply(change, Pod(meta, PodSpec(scheduling_gates=gates), PodStatus(phase=phase)))

    first, second = one.members
    show(first, "added", held=True)
    assert fleet.waiting == 0
    show(second, "added", held=True)
    assert fleet.waiting == 1
    fleet.seen = seen = Seen(since=1e-9)
    show(first, "modified")
    assert (fleet.opened, seen.to_last_gate) == (0, [])
    show(second, "modified")
    assert (fleet.opened, fleet.waiting, len(seen.to_last_gate), seen.early) == (1, 0, 1, 0)
    show(first, "modified", "Running")
    assert fleet.ran.empty()
    show(second, "modified", "Running")
    assert fleet.ran.get_nowait() == one
    show(first, "modified", "Succeeded")
    assert (fleet.left, fleet.ended.empty()) == (0, True)
    show(second, "modified", "Succeeded")
    assert (fleet.left, fleet.ended.get_nowait()) == (1, one)
    show(first, "deleted", "Succeeded")
    assert len(fleet) == 1
    show(second, "deleted", "Succeeded")
    assert (len(fleet), fleet.left) == (0, 1)
