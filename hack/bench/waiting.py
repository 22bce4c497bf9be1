"""CPU time of an event while many gangs wait; no two of them need the same.

In most rows one gang ends and another comes, all start that may, each is asked whom it passes, and the newcomer why it
waits. All but the last row are the ledger alone: what a reconcile adds grows with a gang's own pods. Each curve is to
be flat, and the goals hold for 16,000 gangs:

- one queue: below 2 ms, also where every gang has been bypassed, where all have time limits and a pass has a
  reservation, where an unexpected gang begins, and where as many admitted gangs have no node; below 10 ms with
  preemption;
- 100 queues below one limit: flat; with 1,000 it grows with the queues; with 3,000 below 50 ms, as any step;
- a claim turns soft, a Queue is edited: below 50 ms;
- one gang passes all (`passed_by` alone): below 1 ms, and two PodGroups are written for it at most;
- a gang ends while elastic gangs want more, and the room of up to 5,000 nodes after a pod has come: below 1 ms.
"""

import random
import statistics
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from hack.bench.harness import Table, milliseconds, options
from muster.cluster.cluster import Cluster
from muster.cluster.nodes import NodeRoom
from muster.model.objects import Node, convert
from muster.model.pods import Pod
from muster.process.lifecycle import tune_gc
from muster.queueing.entries import Claim, EndKind, EntryKey, Growth, Run
from muster.queueing.growth import GrowthQueue
from muster.queueing.ledger import Candidate, GangKey, Ledger
from muster.queueing.queue_view import ROOT, QueueView
from muster.queueing.usage import amounts_of
from muster.resources.amounts import Resources, minus, parse_resources

_EVENTS = 60
_NOW = 1_000_000.0
# So many cpu there are for each gang that waits: about as many run.
_CPU = 8
_PODS_PER_NODE = 20
_Figures = tuple[list[float], float]


class _Cluster:
    """A ledger with as many gangs that run as there is room for, and n that wait."""

    def __init__(
        self,
        waiting: int,
        queues: int = 1,
        *,
        preempts: bool = False,
        passed: bool = False,
        unplaced: bool = False,
        limited: bool = False,
    ) -> None:
        """`passed`: all have been bypassed; `limited`: also beyond their patience, with run times up to two days.

        `unplaced`: as many more are admitted, and their pods have found no node for long.
        """
        self.random = random.Random(1)  # noqa: S311 - the same history in every run
        self.ledger = Ledger()
        self.queues = [f"queue-{number}" for number in range(queues)]
        self.running: list[Candidate] = []
        self.waits: dict[EntryKey, Candidate] = {}
        self.unplaced: list[EntryKey] = []
        self._made = 0
        self._passed_since = _NOW - 5000 if limited else _NOW - 100 if passed else None
        self._limited = limited
        room = _resources(waiting * _CPU * 1000, 1 << 40)
        if queues > 1:
            self.ledger.set_queue(QueueView(ROOT, "Open", room, parent=""))
        for name in self.queues:
            self.ledger.set_queue(QueueView(name, "Open", {} if queues > 1 else room, preempts=preempts))
        for one in self._fill(waiting * _CPU):
            self._hold(one)
        for _ in range(waiting if unplaced else 0):
            self._hold_in_vain(self._gang())
        for _ in range(waiting):
            self._wait(self._gang())
        # A pass lets a number start at a time.
        while self.start():
            pass

    def _fill(self, cpus: int) -> Iterator[Candidate]:
        taken = 0.0
        while True:
            one = self._gang()
            taken += one.need["cpu"].nano / 1e9
            if taken > cpus:
                return
            yield one

    def _gang(self) -> Candidate:
        self._made += 1
        chance, number = self.random, self._made
        return Candidate(
            GangKey("bench", f"gang-{number}"),
            chance.choice(self.queues),
            chance.choice([0, 0, 10]),
            f"2026-11-{1 + number % 28:02}T10:00:{number % 60:02}Z",
            _resources(chance.randrange(4000, 12000), chance.randrange(1, 500)),
            passed_since=self._passed_since,
            preempts=True,
            run=Run(chance.randrange(600, 172_800), EndKind.SAID) if self._limited else None,
        )

    def _wait(self, one: Candidate) -> None:
        self.ledger.wait(one)
        self.waits[one.key] = one

    def _hold(self, one: Candidate) -> None:
        self.waits.pop(one.key, None)
        self.ledger.hold(one.claim(_NOW))
        self.running.append(one)

    def _hold_in_vain(self, one: Candidate) -> None:
        self.ledger.hold(Claim(one.key, one.queue, one.need, since=one.since, soft=one.need, idle=True))
        self.unplaced.append(one.key)

    def start(self) -> int:
        """Let all start that may; return how many did."""
        started = 0
        # All queues compete.
        for key in self.ledger.startable(self.queues[0], _NOW):
            if (waits := self.ledger.candidate(key)) is not None:
                self.ledger.passed_by(key, _NOW)
                self._hold(waits)
                started += 1
        return started

    def event(self) -> None:
        """One ends, one comes, all start that may, and the newcomer asks why it waits."""
        ending, coming = self.running.pop(self.random.randrange(len(self.running))), self._gang()
        self.ledger.forget(ending.key)
        self._wait(coming)
        self.start()
        self.ledger.decide(coming.key, _NOW)

    def out_of_order(self) -> None:
        """One that waits has begun, as a leader finds it by its pods, and another ends; then as in `event`."""
        self._hold(self.random.choice([*self.waits.values()]))
        self.event()

    def turns_soft(self) -> None:
        """One that was admitted and has no node is gone, another turns soft; then as in `event`."""
        self.ledger.forget(self.unplaced.pop(self.random.randrange(len(self.unplaced))))
        self._hold_in_vain(self._gang())
        self.event()


def _resources(milli_cpu: int, gigabytes: int) -> Resources:
    return parse_resources({"cpu": f"{milli_cpu}m", "memory": f"{gigabytes}Gi"}, path="")


def _events(
    waiting: int, queues: int = 1, event: Callable[[_Cluster], object] = _Cluster.event, **how: bool
) -> _Figures:
    cluster = _Cluster(waiting, queues, **how)
    return [milliseconds(partial(event, cluster)) for _ in range(_EVENTS)], 0


def _passing(waiting: int, *, passed: bool) -> _Figures:
    """Small gangs start before all that wait, and none of these fits; the second figure is PodGroups for each."""
    ledger = Ledger()
    ledger.set_queue(QueueView("queue", "Open", _resources(4000, 1 << 40)))
    ledger.hold(Claim(GangKey("bench", "runs"), "queue", _resources(1000, 1), since="2025"))
    for number in range(waiting):
        key, since = GangKey("bench", f"large-{number}"), _NOW - 100 if passed else None
        ledger.wait(Candidate(key, "queue", 0, f"2026-{number:06}", _resources(3001 + number, 1), passed_since=since))
    took, written = [], 0

    def pass_all(key: EntryKey) -> None:
        nonlocal written
        written += len(ledger.passed_by(key, _NOW))

    for number in range(_EVENTS):
        small = Candidate(GangKey("bench", f"small-{number}"), "queue", 0, "2027", _resources(1000 + number, 1))
        ledger.wait(small)
        if ledger.startable("queue", _NOW) != [small.key]:
            raise AssertionError("the small gang fits, and no other does")
        took.append(milliseconds(partial(pass_all, small.key)))
        ledger.hold(small.claim(_NOW))
        ledger.forget(small.key)
    return took, written / _EVENTS


def _edit(waiting: int) -> _Figures:
    """A Queue's capability changes, in a tree of ten organisations."""
    ledger, queues = Ledger(), max(waiting // 50, 10)
    for number in range(10):
        ledger.set_queue(QueueView(f"org-{number}", "Open", _resources(200_000 * queues, 1 << 40)))
    for number in range(queues):
        ledger.set_queue(QueueView(f"queue-{number}", "Open", _resources(200_000, 1 << 40), f"org-{number % 10}"))
    for number in range(waiting):
        need = _resources(150_000 + number, 1)
        ledger.wait(Candidate(GangKey("bench", f"gang-{number}"), f"queue-{number % queues}", 0, "2026", need))

    def edit(number: int) -> None:
        ledger.set_queue(QueueView(f"queue-{number}", "Open", _resources(100_000, 1 << 40), f"org-{number % 10}"))
        for queue in ledger.changed_subtrees(_NOW):
            ledger.newly_startable(queue, _NOW)

    # The first one counts all queues.
    return [milliseconds(partial(edit, number)) for number in range(10)][1:], 0


def _elastic(waiting: int) -> _Figures:
    """Elastic gangs fill a queue and want more, each another amount; a small gang ends, and none of them may grow."""
    ledger = Ledger()
    growing = GrowthQueue()
    ledger.set_queue(QueueView("queue", "Open", _resources(1000 * waiting + 100, 1 << 40)))
    for number in range(waiting):
        key, held = GangKey("bench", f"gang-{number}"), _resources(1000, 1)
        ledger.hold(Claim(key, "queue", held, since="2026"))
        claim = _resources(1500 + number, 1)
        more = amounts_of(minus(claim, held))
        growing.enter(key, Growth(key, "queue", since="2026", refused=((claim, more),)))

    def end(key: EntryKey) -> None:
        ledger.forget(key)
        ledger.newly_startable("queue", _NOW)
        if growing.first(ledger.outcome("queue", _NOW)) is not None:
            raise AssertionError("a gang may grow for which there is no room")

    took = []
    for number in range(20):
        ending = GangKey("bench", f"ends-{number}")
        ledger.hold(Claim(ending, "queue", _resources(100, 1), since="2026"))
        took.append(milliseconds(partial(end, ending)))
    return took, 0


def _nodes(waiting: int) -> _Figures:
    """One pod is bound, and what nodes have free is counted."""
    room, count = NodeRoom(Cluster()), min(waiting, 5000)
    status = {
        "allocatable": {"cpu": "96", "memory": "700Gi", "nvidia.com/gpu": "8", "pods": "110"},
        "conditions": [{"type": "Ready", "status": "True"}],
    }
    nodes = [{"metadata": {"name": f"n{number}", "uid": f"n{number}"}, "status": status} for number in range(count)]
    room.nodes.replace_all([convert(node, Node) for node in nodes])
    room.others.replace_all([_pod(f"n{number % count}", number) for number in range(count * _PODS_PER_NODE)])
    room.free()

    def bind(pod: Pod) -> None:
        room.others.apply("added", pod)
        room.free()

    pods = [_pod(f"n{number}", count * _PODS_PER_NODE + number) for number in range(20)]
    return [milliseconds(partial(bind, pod)) for pod in pods], 0


def _pod(node: str, number: int) -> Pod:
    requests = {"cpu": "100m", "memory": "200Mi"}
    spec = {"nodeName": node, "containers": [{"name": "main", "resources": {"requests": requests}}]}
    meta = {"name": f"pod-{number}", "namespace": "bench", "uid": f"pod-{number}"}
    return convert({"metadata": meta, "spec": spec, "status": {"phase": "Running"}}, Pod)


_ROWS: dict[str, Callable[[int], _Figures]] = {
    "one queue": _events,
    "one queue, all passed before": partial(_events, passed=True),
    "one queue, all limited, all passed before": partial(_events, limited=True),
    "100 queues, all limited, all passed before": partial(_events, queues=100, limited=True),
    "one queue that preempts": partial(_events, preempts=True),
    "one queue, and an unexpected gang begins": partial(_events, event=_Cluster.out_of_order),
    "100 queues below one limit": partial(_events, queues=100),
    "100 queues, all passed before": partial(_events, queues=100, passed=True),
    "1000 queues below one limit": partial(_events, queues=1000),
    "3000 queues below one limit": partial(_events, queues=3000),
    "one queue, as many admitted without a node": partial(_events, unplaced=True),
    "100 queues, as many admitted without a node": partial(_events, queues=100, unplaced=True),
    "100 queues, and a claim turns soft": partial(_events, queues=100, event=_Cluster.turns_soft, unplaced=True),
    "one passes all, none passed before": partial(_passing, passed=False),
    "one passes all, all passed before": partial(_passing, passed=True),
    "a Queue is edited": _edit,
    "one ends while elastic gangs want more": _elastic,
    "the room of nodes after a pod has come": _nodes,
}


def main(argv: Sequence[str]) -> None:
    """Measure and print."""
    given = options(argv, __doc__, waiting=[1000, 4000, 16_000])
    # As the processes do.
    tune_gc()
    table = Table("ms of CPU", "waiting", "median", "worst", "PodGroups")
    for title, measure in _ROWS.items():
        for waiting in given.waiting:
            took, written = measure(waiting)
            table.row(title, waiting, statistics.median(took), max(took), written or "")
