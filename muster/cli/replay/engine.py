"""Runs a load on the ledger itself: gangs come when they came, and run for as long as they ran.

Everything is decided as the controller decides it, by the same code, at once and without an error. A run time is known
only when it has ended: until then the gang's time limit or an estimate from former runs is used.
"""

import heapq
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from math import inf

from muster.cli.replay.load import Arrival, Load
from muster.gangs.history import History, Lineage, lineage_of
from muster.model.times import duration_of
from muster.queueing.entries import EntryKey
from muster.queueing.forecast import forecast, start
from muster.queueing.ledger import Candidate, EndKind, Ledger, Run
from muster.queueing.queue_view import QueueView
from muster.queueing.usage import amounts_of

_KEYS = "queueing=strict, patience=10m, reserves=estimates or bounds, drain-after=72h, half-life=24h, bounds=0.3"
# Spreads the gangs that have a time limit over the log, the same for every policy.
_STEP = 0.6180339887498949
_COMES, _ENDS, _LOOK = 0, 1, 2


@dataclass(frozen=True, slots=True)
class Policy:
    """Settings, None for those of the queue."""

    text: str
    strict: bool | None = None
    patience: float | None = None
    trusts_estimates: bool | None = None
    drain_after: float | None = None
    half_life: float | None = None
    bounds: float = 1.0
    """The part of the gangs with a time limit whose limit counts."""

    def applied(self, view: QueueView) -> QueueView:
        """The queue under this policy."""
        names = ("strict", "patience", "trusts_estimates", "drain_after", "half_life")
        return replace(view, **{name: value for name in names if (value := getattr(self, name)) is not None})

    def bounded(self, number: int) -> bool:
        """True if the time limit of the gang of that number counts."""
        return number * _STEP % 1.0 < self.bounds


def parse_policy(text: str) -> Policy:
    """The policy of a text such as `patience=10m,bounds=0.3`, "" for the settings of the queues; raises ValueError."""
    policy = Policy(text)
    for part in filter(None, text.split(",")):
        name, _, value = part.strip().partition("=")
        seconds = duration_of(value)
        match name:
            case "queueing" if value == "strict":
                policy = replace(policy, strict=True)
            case "patience" if seconds is not None:
                policy = replace(policy, patience=seconds)
            case "drain-after" if seconds is not None:
                policy = replace(policy, drain_after=seconds)
            case "half-life" if seconds is not None:
                policy = replace(policy, half_life=seconds)
            case "reserves" if value in ("estimates", "bounds"):
                policy = replace(policy, trusts_estimates=value == "estimates")
            case "bounds" if value.replace(".", "", 1).isdecimal() and float(value) <= 1:
                policy = replace(policy, bounds=float(value))
            case _:
                raise ValueError(f'"{part.strip()[:80]}" is no setting of a policy; use {_KEYS}')
    return policy


@dataclass(frozen=True, slots=True)
class Started:
    """A gang that has started."""

    gang: Arrival
    at: float
    """The time at which it started (seconds)."""
    expected: float | None = None
    """The start that was forecast when it came; infinity for none, None where it was not asked."""

    @property
    def waited(self) -> float:
        """Seconds from its arrival to its start."""
        return self.at - self.gang.at


@dataclass(slots=True)
class Replayed:
    """The result of a load under a policy."""

    started: list[Started] = field(default_factory=list)
    never: list[Arrival] = field(default_factory=list)
    """The gangs that were still waiting at the end."""
    busy: float = 0.0
    """The part of the counted resource that was held while any gang waited."""


@dataclass(slots=True)
class _Run:
    load: Load
    policy: Policy
    ask_every: int
    ledger: Ledger = field(default_factory=Ledger)
    history: History = field(default_factory=History)
    events: list[tuple[float, int, int]] = field(default_factory=list)
    waiting: dict[EntryKey, int] = field(default_factory=dict)
    of_namespace: dict[str, set[EntryKey]] = field(default_factory=dict)
    expected: dict[int, float] = field(default_factory=dict)
    result: Replayed = field(default_factory=Replayed)

    def run(self, progress: Callable[[int], None]) -> Replayed:
        for view in self.load.queues:
            self.ledger.set_queue(self.policy.applied(view))
        self.events = [(gang.at, _COMES, number) for number, gang in enumerate(self.load.arrivals)]
        heapq.heapify(self.events)
        name, most = self.load.counted
        held, used, last, waited = 0, 0.0, 0.0, 0.0
        while self.events:
            now = self.events[0][0]
            if self.waiting:
                used += held * (now - last)
                waited += now - last
            last, came = now, []
            self.ledger.note_use(now)
            while self.events and self.events[0][0] == now:
                _, kind, number = heapq.heappop(self.events)
                if kind == _COMES:
                    self._come(number)
                    came.append(number)
                elif kind == _ENDS:
                    self._end(number)
                    held -= dict(amounts_of(self.load.arrivals[number].need)).get(name, 0)
            for number in self._start(now):
                held += dict(amounts_of(self.load.arrivals[number].need)).get(name, 0)
            for number in came:
                self._ask(number, now)
            self._look_again(now)
            progress(len(self.result.started))
        self.result.never = [self.load.arrivals[number] for number in self.waiting.values()]
        self.result.busy = used / waited / most if waited and most else 0.0
        return self.result

    def _come(self, number: int) -> None:
        gang = self.load.arrivals[number]
        key = gang.key
        self.waiting[key] = number
        self.of_namespace.setdefault(gang.namespace, set()).add(key)
        since = f"{gang.at:018.6f}"
        waits = Candidate(key, gang.queue, gang.priority, since, gang.need, run=self._expects(number))
        self.ledger.wait(replace(waits, drain_after=self.history.drain_after(gang.queue)))

    def _end(self, number: int) -> None:
        gang = self.load.arrivals[number]
        self.ledger.forget(gang.key)
        self.history.record(_lineage(gang), gang.queue, gang.runs)
        for key in self.of_namespace[gang.namespace]:
            waits = self.ledger.candidate(key)
            if waits is not None:
                self.ledger.wait(replace(waits, run=self._expects(self.waiting[key])))

    def _start(self, now: float) -> Iterator[int]:
        while changed := self.ledger.changed_subtrees(now):
            for queue in changed:
                for key in start(self.ledger, queue, now):
                    number = self.waiting.pop(key)
                    self.of_namespace[key.namespace].discard(key)
                    gang = self.load.arrivals[number]
                    heapq.heappush(self.events, (now + gang.runs, _ENDS, number))
                    self.result.started.append(Started(gang, now, self.expected.pop(number, None)))
                    yield number

    def _look_again(self, now: float) -> None:
        """A patience may end, or a run turn out longer than expected, though nothing happens."""
        following = self.ledger.next_moment()
        if self.waiting and now < following < inf and not (self.events and self.events[0][0] <= following):
            heapq.heappush(self.events, (following, _LOOK, 0))

    def _expects(self, number: int) -> Run | None:
        gang = self.load.arrivals[number]
        if gang.limit is not None and self.policy.bounded(number):
            return Run(gang.limit, EndKind.ENFORCED)
        return Run.about(self.history.estimates(_lineage(gang), gang.queue))

    def _ask(self, number: int, now: float) -> None:
        gang = self.load.arrivals[number]
        key = gang.key
        if self.ask_every and number % self.ask_every == 0 and key in self.waiting:
            starts = forecast(self.ledger.copy(), now)
            self.expected[number] = next((start.at for start in starts if start.key == key), inf)


def _lineage(gang: Arrival) -> Lineage:
    return lineage_of(gang.namespace, "Job", gang.lineage)


def replay(load: Load, policy: Policy, progress: Callable[[int], None], *, ask_every: int = 0) -> Replayed:
    """Run a load; `progress` gets the number of gangs that have started.

    With `ask_every` the start of every so manieth gang that does not start at once is forecast when it comes.
    """
    return _Run(load, policy, ask_every).run(progress)
