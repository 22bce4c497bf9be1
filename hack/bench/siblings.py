"""Teams that flood and rest below one limit: `python -m hack.bench.siblings [--plot docs/images/siblings.svg]`.

A day of twenty teams in a simulation: the ledger decides, and time is a number. Each team sends a gang now and then,
and once a flood of what the room can run in a twentieth of the day. The same day runs twice, with siblings by age
and with siblings that share. Prints for both how much of the room was used while anybody waited, how long gangs waited
(those of teams in a lull, that had no other gang waiting, apart), and for how much of the time a team below its share
waited beside one above. Plots what each team held.
"""

from __future__ import annotations

import argparse
import heapq
import random
import statistics
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from muster.gangs.history import History, lineage_of
from muster.process.lifecycle import spare_collector
from muster.queueing.ledger import Candidate, GangKey, Ledger, Run
from muster.queueing.queue_view import ROOT, QueueView
from muster.resources.amounts import Resources, parse_resources

if TYPE_CHECKING:
    from muster.queueing.entries import EntryKey

_TEAMS = 20
_CPU = 2_000
_MINUTES = 24 * 60
# A gang has 1 to 20 pods of 4 cpu, and runs for 5 to 60 minutes.
_MOST_PODS, _POD, _SHORTEST, _LONGEST = 20, 4, 5, 60
_FLOOD = 105
_EVERY = 100
# Minutes between two points of the plot.
_STEP = 15
_WIDTH, _HEIGHT, _LEFT, _TOP, _GAP = 960, 260, 56, 34, 64


@dataclass(frozen=True)
class _Arrival:
    minute: float
    candidate: Candidate
    runs: float


__all__ = ["Day", "plot", "report", "simulated"]


@dataclass
class Day:
    """What was seen in one day; waits in minutes."""

    held: list[list[int]] = field(default_factory=list)
    used: float = 0.0
    contended: float = 0.0
    unfair: float = 0.0
    lull: list[float] = field(default_factory=list)
    flood: list[float] = field(default_factory=list)


def _cpu(amount: int) -> Resources:
    return parse_resources({"cpu": str(amount)}, path="")


def _arrivals(chance: random.Random) -> list[_Arrival]:
    arrivals: list[_Arrival] = []
    number = count()

    def one(team: int, minute: float) -> None:
        name = f"gang-{next(number):04}"
        need = _cpu(_POD * chance.randint(1, _MOST_PODS))
        # Minutes of the day, as text that sorts as they do.
        candidate = Candidate(GangKey("bench", name), f"team-{team:02}", 0, f"{minute:09.3f}", need)
        arrivals.append(_Arrival(minute, candidate, chance.uniform(_SHORTEST, _LONGEST)))

    for team in range(_TEAMS):
        minute = chance.expovariate(1 / _EVERY)
        while minute < _MINUTES:
            one(team, minute)
            minute += chance.expovariate(1 / _EVERY)
        start = chance.uniform(0, 0.8 * _MINUTES)
        for _ in range(_FLOOD):
            one(team, start)
    return sorted(arrivals, key=lambda one: (one.minute, one.candidate.key))


class _Simulation:
    """One day of a ledger."""

    def __init__(self, arrivals: list[_Arrival], *, by_age: bool, patience: float) -> None:
        self.ledger = Ledger()
        self.ledger.set_queue(QueueView(ROOT, "Open", _cpu(_CPU), parent="", by_age=by_age))
        self.teams = [f"team-{team:02}" for team in range(_TEAMS)]
        for team in self.teams:
            self.ledger.set_queue(QueueView(team, "Open", {}, patience=patience))
        self.day = Day()
        self._arrivals = {one.candidate.key: one for one in arrivals}
        self._events = [(one.minute, 0, one.candidate.key) for one in arrivals]
        self._events += [(float(minute), 2, GangKey("", "")) for minute in range(_MINUTES)]
        heapq.heapify(self._events)
        self._holds = dict.fromkeys(self.teams, 0)
        self._waits: dict[EntryKey, Candidate] = {}
        self._alone: set[EntryKey] = set()
        self._history = History()

    def run(self) -> Day:
        """All that happens; what still runs at the end is left."""
        before = 0.0
        while self._events and self._events[0][0] < _MINUTES:
            minute, what, key = heapq.heappop(self._events)
            self._account(before, minute)
            before = minute
            if what == 0:
                if not self.ledger.waiting(self._arrivals[key].candidate.queue):
                    self._alone.add(key)
                candidate = self._arrivals[key].candidate
                about = self._history.estimates(lineage_of(candidate.queue, "", candidate.queue), candidate.queue)
                run = Run.about(about)
                self._wait(replace(candidate, run=run))
            elif what == 1:
                queue = self._arrivals[key].candidate.queue
                self._holds[queue] -= self._size(key)
                self.ledger.forget(key)
                self._history.record(lineage_of(queue, "", queue), queue, self._arrivals[key].runs * 60)
            elif minute % _STEP == 0:
                self.day.held.append([self._holds[team] for team in self.teams])
            self._start(minute)
        return self.day

    def _size(self, key: EntryKey) -> int:
        return self._arrivals[key].candidate.need["cpu"].nano // 10**9

    def _wait(self, candidate: Candidate) -> None:
        self.ledger.wait(candidate)
        self._waits[candidate.key] = candidate

    def _start(self, minute: float) -> None:
        now = minute * 60
        # All queues compete. What may start is asked again after each: in between nothing ends.
        while startable := self.ledger.startable(self.teams[0], now):
            key = startable[0]
            arrival, waits = self._arrivals[key], self._waits.pop(key)
            for passed in self.ledger.passed_by(key, now):
                if passed in self._waits:
                    self._wait(replace(self._waits[passed], passed_since=now))
            (self.day.lull if key in self._alone else self.day.flood).append(minute - arrival.minute)
            self.ledger.hold(waits.claim(now))
            self._holds[waits.queue] += self._size(key)
            heapq.heappush(self._events, (minute + arrival.runs, 1, key))

    def _account(self, before: float, minute: float) -> None:
        if minute == before or not self._waits:
            return
        self.day.contended += minute - before
        self.day.used += (minute - before) * sum(self._holds.values())
        share = _CPU / _TEAMS
        below = any(self._holds[one.queue] < share for one in self._waits.values())
        if below and max(self._holds.values()) > share:
            self.day.unfair += minute - before


def report(days: dict[str, Day]) -> list[str]:
    """What was seen in each day, in lines of text."""
    lines = []
    for title, day in days.items():
        used, unfair = 100 * day.used / day.contended / _CPU, 100 * day.unfair / day.contended
        lines.append(f"{title}: {used:.1f} % used in {day.contended / 60:.0f} h in which anybody waited")
        lines.append(f"  a team below its share waited beside one above in {unfair:.0f} % of them")
        for what, waits in ("lull", sorted(day.lull)), ("flood", sorted(day.flood)):
            late = waits[int(0.95 * len(waits))]
            numbers = f"median {statistics.median(waits):.0f}, 95 % {late:.0f}, longest {waits[-1]:.0f} minutes"
            lines.append(f"  {len(waits):5} gangs of teams in a {what:5} waited: {numbers}")
    return lines


def plot(days: dict[str, Day]) -> str:
    """What the teams hold, one above the other, a panel for each day."""
    width, height = _LEFT + _WIDTH + 16, _TOP + len(days) * (_HEIGHT + _GAP)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif">',
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
    ]
    for number, (title, day) in enumerate(days.items()):
        top = _TOP + number * (_HEIGHT + _GAP)
        lines.append(f'<text x="{_LEFT}" y="{top - 10}">{title}: cpu held by each of {_TEAMS} teams</text>')
        lines += _panel(day, top)
    return "\n".join([*lines, "</svg>", ""])


def _panel(day: Day, top: int) -> list[str]:
    def x(point: int) -> int:
        return _LEFT + round(_WIDTH * point * _STEP / _MINUTES)

    def y(cpu: float) -> int:
        return top + _HEIGHT - round(_HEIGHT * cpu / _CPU)

    lines = []
    floor = [0] * len(day.held)
    for team in range(_TEAMS):
        ceiling = [low + held[team] for low, held in zip(floor, day.held, strict=True)]
        points = [f"{x(at)},{y(cpu)}" for at, cpu in enumerate(ceiling)]
        points += [f"{x(at)},{y(cpu)}" for at, cpu in reversed([*enumerate(floor)])]
        colour = f"hsl({team * 360 * 7 // _TEAMS % 360},{55 + 20 * (team % 2)}%,{45 + 15 * (team % 3)}%)"
        lines.append(f'<polygon fill="{colour}" points="{" ".join(points)}"/>')
        floor = ceiling
    right, bottom = _LEFT + _WIDTH, top + _HEIGHT
    lines.append(f'<path d="M{_LEFT} {top}V{bottom}H{right}" fill="none" stroke="#333"/>')
    lines += [f'<text x="{_LEFT - 8}" y="{y(cpu) + 4}" text-anchor="end">{cpu}</text>' for cpu in (0, _CPU // 2, _CPU)]
    lines += [
        f'<text x="{x(hour * 60 // _STEP)}" y="{bottom + 18}" text-anchor="middle">{hour} h</text>'
        for hour in range(0, 25, 4)
    ]
    return lines


def simulated(seed: int = 1, patience: float = 600.0) -> dict[str, Day]:
    """The same day with both orders; another seed is another day, patience is in seconds."""
    arrivals = _arrivals(random.Random(seed))  # noqa: S311 - the same day in every run
    return {
        "by age": _Simulation(arrivals, by_age=True, patience=patience).run(),
        "shared": _Simulation(arrivals, by_age=False, patience=patience).run(),
    }


def main() -> None:
    """Simulate, print, plot."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plot", type=Path, help="the SVG to write")
    parser.add_argument("--seed", type=int, default=1, help="another day")
    parser.add_argument("--patience", type=float, default=600.0, help="of the queues, in seconds")
    arguments = parser.parse_args()
    spare_collector()
    days = simulated(arguments.seed, arguments.patience)
    print("\n".join(report(days)))
    if arguments.plot:
        arguments.plot.write_text(plot(days))


if __name__ == "__main__":
    main()
