"""What an event costs while n gangs wait: `python -m hack.bench.waiting [--waiting 1000,4000,16000]`.

In each row no two gangs need the same. One gang ends and another comes, then all start that may; after each start it is
asked whom it passes, and at last why the one that came waits. Prints milliseconds of CPU for each such event, the
median and the worst; then one start that passes all who wait, an edit of one Queue, an end while elastic gangs want to
grow, and the room of nodes after a pod has come. README.md says what each number means.
"""

from __future__ import annotations

import argparse
import random
import statistics
import time
from typing import TYPE_CHECKING

from muster.model.objects import Node, Pod, convert
from muster.observe.cluster import Cluster
from muster.observe.nodes import NodeRoom
from muster.process.lifecycle import spare_collector
from muster.queueing.entries import Claim, EndKind, EntryKey, Growth, Run
from muster.queueing.growth import Growing
from muster.queueing.ledger import Candidate, GangKey, Ledger
from muster.queueing.queue_view import ROOT, QueueView
from muster.queueing.usage import amounts_of
from muster.resources.amounts import Resources, minus, parse_resources

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_EVENTS = 60
_NOW = 1_000_000.0
# So many cpu there are for each gang that waits: about as many run.
_CPU = 8
_PODS_PER_NODE = 20


class _Cluster:
    """A ledger with as many gangs that run as there is room for, and n that wait."""

    def __init__(
        self,
        waiting: int,
        queues: int,
        *,
        preempts: bool = False,
        passed: bool = False,
        unplaced: bool = False,
        limited: bool = False,
    ) -> None:
        """`unplaced` has n more that were admitted, and whose pods have found no node for long.

        With `limited` each says how long it runs, up to two days, and the patience of all that wait is over.
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
        """Let all start that may; returns how many did."""
        started = 0
        # All queues compete.
        for key in self.ledger.startable(self.queues[0], _NOW):
            if (waits := self.ledger.candidate(key)) is not None:
                self.ledger.passed_by(key, _NOW)
                self._hold(waits)
                started += 1
        return started

    def event(self) -> int:
        """One ends, one comes, all start that may, and the newcomer asks why it waits; returns how many started."""
        ending, coming = self.running.pop(self.random.randrange(len(self.running))), self._gang()
        self.ledger.forget(ending.key)
        self._wait(coming)
        started = self.start()
        self.ledger.decide(coming.key, _NOW)
        return started

    def out_of_order(self) -> int:
        """One that waits has begun, as a leader finds it by its pods, and another ends; then as in `event`."""
        self._hold(self.random.choice([*self.waits.values()]))
        return self.event()

    def turns_soft(self) -> int:
        """One that was admitted and has no node is gone, another turns soft; then as in `event`."""
        self.ledger.forget(self.unplaced.pop(self.random.randrange(len(self.unplaced))))
        self._hold_in_vain(self._gang())
        return self.event()


def _resources(milli_cpu: int, gigabytes: int) -> Resources:
    return parse_resources({"cpu": f"{milli_cpu}m", "memory": f"{gigabytes}Gi"}, path="")


def _measure(
    title: str, waiting: int, queues: int = 1, *, event_of: Callable[[_Cluster], int] = _Cluster.event, **how: bool
) -> None:
    cluster = _Cluster(waiting, queues, **how)
    events: list[tuple[float, int]] = []
    for _ in range(_EVENTS):
        before = time.process_time()
        started = event_of(cluster)
        events.append(((time.process_time() - before) * 1e3, started))
    worst, most = max(events)
    median = statistics.median(took for took, _ in events)
    print(f"{title:46} {waiting:6} wait: median {median:7.2f} ms, worst {worst:8.2f} ms with {most} starts", flush=True)


def _passing(waiting: int, *, passed: bool) -> None:
    """One small gang after the other starts before all that wait, none of which fits; only `passed_by` is timed."""
    ledger = Ledger()
    ledger.set_queue(QueueView("queue", "Open", _resources(4000, 1 << 40)))
    ledger.hold(Claim(GangKey("bench", "runs"), "queue", _resources(1000, 1), since="2025"))
    for number in range(waiting):
        key, since = GangKey("bench", f"large-{number}"), _NOW - 100 if passed else None
        ledger.wait(Candidate(key, "queue", 0, f"2026-{number:06}", _resources(3001 + number, 1), passed_since=since))
    took, firsts = [], 0
    for number in range(_EVENTS):
        small = Candidate(GangKey("bench", f"small-{number}"), "queue", 0, "2027", _resources(1000 + number, 1))
        ledger.wait(small)
        if ledger.startable("queue", _NOW) != [small.key]:
            raise AssertionError("the small gang fits, and no other does")
        before = time.process_time()
        firsts += len(ledger.passed_by(small.key, _NOW))
        took.append((time.process_time() - before) * 1e3)
        ledger.hold(small.claim(_NOW))
        ledger.forget(small.key)
    title = f"one passes all, {'all passed before' if passed else 'none passed before'}"
    told = f"{firsts / _EVENTS:.0f} told"
    print(f"{title:46} {waiting:6} wait: median {statistics.median(took):7.3f} ms, worst {max(took):8.3f} ms, {told}")


def _edit(waiting: int) -> None:
    """A Queue's capability changes, in a tree of ten organisations."""
    ledger, queues = Ledger(), max(waiting // 50, 10)
    for number in range(10):
        ledger.set_queue(QueueView(f"org-{number}", "Open", _resources(200_000 * queues, 1 << 40)))
    for number in range(queues):
        ledger.set_queue(QueueView(f"queue-{number}", "Open", _resources(200_000, 1 << 40), f"org-{number % 10}"))
    for number in range(waiting):
        need = _resources(150_000 + number, 1)
        ledger.wait(Candidate(GangKey("bench", f"gang-{number}"), f"queue-{number % queues}", 0, "2026", need))
    took = []
    for number in range(10):
        before = time.process_time()
        changed = QueueView(f"queue-{number}", "Open", _resources(100_000, 1 << 40), f"org-{number % 10}")
        ledger.set_queue(changed)
        for queue in ledger.changed_subtrees(_NOW):
            ledger.newly_startable(queue, _NOW)
        took.append((time.process_time() - before) * 1e3)
    print(f"{'a Queue is edited':44} {waiting:6} wait: median {statistics.median(took[1:]):7.2f} ms", flush=True)


def _elastic(count: int) -> None:
    """Elastic gangs fill a queue and want more, each another amount; a small gang ends, and nobody may grow."""
    ledger = Ledger()
    growing = Growing(ledger)
    ledger.set_queue(QueueView("queue", "Open", _resources(1000 * count + 100, 1 << 40)))
    for number in range(count):
        key, held = GangKey("bench", f"gang-{number}"), _resources(1000, 1)
        ledger.hold(Claim(key, "queue", held, since="2026"))
        claim = _resources(1500 + number, 1)
        more = amounts_of(minus(claim, held))
        growing.enter(key, Growth(key, "queue", since="2026", refused=((claim, more),)))
    took = []
    for number in range(20):
        ending = GangKey("bench", f"ends-{number}")
        ledger.hold(Claim(ending, "queue", _resources(100, 1), since="2026"))
        before = time.process_time()
        ledger.forget(ending)
        ledger.newly_startable("queue", _NOW)
        if growing.first({"queue"}, _NOW) is not None:
            raise AssertionError("a gang may grow for which there is no room")
        took.append((time.process_time() - before) * 1e3)
    print(f"{'one ends while elastic gangs want more':44} {count:6} want: median {statistics.median(took):7.3f} ms")


def _nodes(count: int) -> None:
    room = NodeRoom(Cluster())
    status = {
        "allocatable": {"cpu": "96", "memory": "700Gi", "nvidia.com/gpu": "8", "pods": "110"},
        "conditions": [{"type": "Ready", "status": "True"}],
    }
    nodes = [{"metadata": {"name": f"n{number}", "uid": f"n{number}"}, "status": status} for number in range(count)]
    room.nodes.replace_all([convert(node, Node) for node in nodes])
    room.others.replace_all([_pod(f"n{number % count}", number) for number in range(count * _PODS_PER_NODE)])
    room.free()
    took = []
    for number in range(20):
        pod = _pod(f"n{number}", count * _PODS_PER_NODE + number)
        before = time.process_time()
        room.others.apply("added", pod)
        room.free()
        took.append((time.process_time() - before) * 1e3)
    print(f"{'the room of nodes after a pod has come':44} {count:6} nodes: median {statistics.median(took):6.3f} ms")


def _pod(node: str, number: int) -> Pod:
    requests = {"cpu": "100m", "memory": "200Mi"}
    spec = {"nodeName": node, "containers": [{"name": "main", "resources": {"requests": requests}}]}
    meta = {"name": f"pod-{number}", "namespace": "bench", "uid": f"pod-{number}"}
    return convert({"metadata": meta, "spec": spec, "status": {"phase": "Running"}}, Pod)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--waiting", default="1000,4000,16000", help="how many gangs wait, a list")
    # As the processes do.
    spare_collector()
    sizes = [int(text) for text in parser.parse_args().waiting.split(",")]
    rows: list[Callable[[int], None]] = [
        lambda size: _measure("one queue", size),
        lambda size: _measure("one queue, all passed before", size, passed=True),
        lambda size: _measure("one queue, all limited, all passed before", size, limited=True),
        lambda size: _measure("100 queues, all limited, all passed before", size, 100, limited=True),
        lambda size: _measure("one queue that preempts", size, preempts=True),
        lambda size: _measure("one queue, and one that nobody expected begins", size, event_of=_Cluster.out_of_order),
        lambda size: _measure("100 queues below one limit", size, 100),
        lambda size: _measure("100 queues, all passed before", size, 100, passed=True),
        lambda size: _measure("1000 queues below one limit", size, 1000),
        lambda size: _measure("3000 queues below one limit", size, 3000),
        lambda size: _measure("one queue, as many admitted without a node", size, unplaced=True),
        lambda size: _measure("100 queues, as many admitted without a node", size, 100, unplaced=True),
        lambda size: _measure(
            "100 queues, and a claim turns soft", size, 100, event_of=_Cluster.turns_soft, unplaced=True
        ),
        lambda size: _passing(size, passed=False),
        lambda size: _passing(size, passed=True),
        _edit,
        _elastic,
        lambda size: _nodes(min(size, 5000)),
    ]
    for row in rows:
        for size in sizes:
            row(size)


if __name__ == "__main__":
    main()
