"""Use by queue against its weight over weeks, with a half-life and without, on a log and on a generated week.

The log is split by its users into ten queues of weights 1 to 3, below 80 of its 100 processors; larger jobs are left
out. In each week, all queues with as much as they ask for and the rest by weight would be the target: `off target` is
the part of all use that another queue has. `off weight` is of the queues in which gangs waited all week, each
compared with all of these; it counts how many there are. The waits are in hours.
"""

import random
import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from hack.bench.harness import Table, options
from muster.cli.replay.engine import Replayed, parse_policy, replay
from muster.cli.replay.load import Arrival, Load, needs, read_swf
from muster.cli.replay.results import waits
from muster.process.lifecycle import tune_gc
from muster.queueing.queue_view import ROOT, QueueView

HOUR, DAY = 3600.0, 86400.0
WEEK = 7 * DAY
LONGEST = 12 * HOUR
"""Seconds that the longest gang of a generated week runs; so long is the time limit of all."""

_GPU = "nvidia.com/gpu"
_GPUS, _TEAMS = 80, 20
_LOG = Path(__file__).parents[3] / "shared" / "data" / "KTH-SP2-1996.swf.gz"
_GROUPS, _PROCESSORS = 10, 80
# A queue waited all week if gangs of it waited in so much of it.
_ALL_WEEK = 0.95


def generated_week(seed: int) -> Load:
    """A week of twenty teams with weights 1 to 3 that share 80 GPUs: a gang needs at most half of its team's share.

    Eight ask for nearly twice their shares all week. Six ask for less than half of theirs, at random times; six for
    nothing but three floods, each of two and a half days of their shares, after a day without.
    """
    rng = random.Random(seed)  # noqa: S311
    teams = [QueueView(f"team-{number:02}", "Open", {}, weight=1 + number % 3) for number in range(_TEAMS)]
    weights, arrivals = sum(team.weight for team in teams), list[Arrival]()
    # For each team: when work comes, for how long it does, and how many seconds of its share that is.
    busy, light = [(0.0, 0.0, 2 * DAY), (0.0, 6 * DAY, 11 * DAY)], [(0.0, WEEK, 0.4 * WEEK)]
    floods = [(day * DAY, 2 * HOUR, 2.6 * DAY) for day in (1, 3, 5)]
    for number, team in enumerate(teams):
        for begin, lasts, seconds in (busy, light, floods)[number // 3 % 3]:
            work = seconds * _GPUS * team.weight / weights
            while work > 0:
                at, runs = begin + rng.random() * lasts, rng.uniform(LONGEST / 3, LONGEST)
                name, size = f"gang-{len(arrivals):05}", rng.randint(1, team.weight)
                arrivals.append(Arrival(name, team.name, at, runs, needs(f"{size}", _GPU), team.name, limit=LONGEST))
                work -= runs * size
    queues = (QueueView(ROOT, "Open", needs(f"{_GPUS}", _GPU), parent=""), *teams)
    return Load(queues, tuple(sorted(arrivals, key=lambda one: (one.at, one.name))))


@dataclass(frozen=True, slots=True)
class Team:
    """A queue in a week, in seconds of the resource that the load counts.

    :ivar asks: The most that its gangs could have used: each runs as it comes, or as the week begins.
    :ivar waits: The part of the week in which gangs of it waited.
    """

    weight: int
    used: float
    asks: float
    waits: float


def week(load: Load, replayed: Replayed, begin: float = 0.0) -> dict[str, Team]:
    """The queues that used or asked for anything in the week that begins then."""
    end, resource = begin + WEEK, load.counted[0]
    used, asks = defaultdict[str, float](float), defaultdict[str, float](float)
    waiting = defaultdict[str, list[tuple[float, float]]](list)
    for one in replayed.started:
        gang, ends = one.gang, one.at + one.gang.runs
        if gang.at < end and ends > begin:
            amount, runs = gang.need[resource].nano / 1e9, ends - max(one.at, begin)
            used[gang.queue] += amount * max(min(runs, end - max(one.at, begin)), 0.0)
            asks[gang.queue] += amount * min(runs, end - max(gang.at, begin))
            waiting[gang.queue].append((max(gang.at, begin), min(one.at, end)))
    weights = {view.name: view.weight for view in load.queues}
    return {name: Team(weights[name], used[name], asks[name], _covered(waiting[name]) / WEEK) for name in asks}


def _covered(spans: Iterable[tuple[float, float]]) -> float:
    """Seconds in any of the spans."""
    covered, last = 0.0, 0.0
    for begin, end in sorted(spans):
        covered += max(end - max(begin, last), 0.0)
        last = max(last, end)
    return covered


def targets(teams: Mapping[str, Team]) -> dict[str, float]:
    """The same use by weight: none gets more than it asks for, and what one leaves goes to the others by weight."""
    left, room, level = dict(teams), sum(team.used for team in teams.values()), 0.0
    for name, team in sorted(teams.items(), key=lambda one: one[1].asks / one[1].weight):
        level = room / sum(one.weight for one in left.values())
        if team.asks > level * team.weight:
            break
        room -= team.asks
        del left[name]
    return {name: level * team.weight if name in left else team.asks for name, team in teams.items()}


def _log() -> Load:
    """The log, split by its users."""
    load = read_swf(str(_LOG))
    queues = tuple(QueueView(f"group-{number}", "Open", {}, weight=1 + number % 3) for number in range(_GROUPS))
    arrivals = tuple(
        replace(one, queue=f"group-{int(one.namespace.removeprefix('user-')) % _GROUPS}")
        for one in load.arrivals
        if one.need["cpu"].nano <= _PROCESSORS * 10**9
    )
    return Load((QueueView(ROOT, "Open", needs(f"{_PROCESSORS}"), parent=""), *queues), arrivals)


def _row(table: Table, title: str, load: Load, policy: str) -> None:
    replayed = replay(load, parse_policy(policy), lambda _: None)
    first, last = load.arrivals[0].at, load.arrivals[-1].at
    off_target, whole, off_weight = 0.0, 0.0, list[float]()
    for number in range(max(round((last - first) / WEEK), 1)):
        teams = week(load, replayed, first + number * WEEK)
        target = targets(teams)
        off_target += sum(max(team.used - target[name], 0.0) for name, team in teams.items())
        whole += sum(team.used for team in teams.values())
        all_week = [team for team in teams.values() if team.waits >= _ALL_WEEK]
        level = sum(team.used for team in all_week) / max(sum(team.weight for team in all_week), 1)
        off_weight += [abs(team.used / team.weight / level - 1) for team in all_week if len(all_week) > 1]
    table.row(
        f"{title}, {policy or 'without'}",
        100 * off_target / whole,
        len(off_weight),
        100 * statistics.median(off_weight or [0.0]),
        100 * max(off_weight, default=0.0),
        100 * replayed.busy,
        *((seconds or 0.0) / HOUR for seconds in waits([one.waited for one in replayed.started]).values()),
    )


def main(argv: Sequence[str]) -> None:
    """Measure and print."""
    given = options(argv, __doc__, seeds=[1])
    tune_gc()
    loads = {f"week {seed}": generated_week(seed) for seed in given.seeds}
    if _LOG.exists():
        loads["KTH"] = _log()
    else:
        print(f"{_LOG} is not there: generated weeks alone")
    table = Table("%, hours", "off target", "queues", "off weight", "most", "used", "mean wait", "p95", "max")
    for title, load in loads.items():
        for policy in ("", "half-life=12h", "half-life=24h", "half-life=72h"):
            _row(table, title, load, policy)
