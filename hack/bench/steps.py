"""The longest step of the controller's event loop for each event.

A step is what the loop does between two looks at its connections and timers: CPU time of its thread, so that other
programs and the waiting do not count. During a step no lease is renewed, no watch is read and no probe is brought up to
date. Each row is an event, and what follows from it until nothing is left to do; no two gangs need the same, half of
them run. The goal is one for all rows: no step above 50 ms with 50,000 gangs and 5,000 nodes. The seconds of the whole
have no goal. A step has a slice of 10 ms (`muster/kube/concurrency.py`) of the workers, of the sweeps and of each
watch; a longer step is one that is not sliced.
"""

import asyncio
import gc
import time
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import msgspec

from hack.bench.harness import Table, options
from hack.bench.many import Client, Leader, One, filled, leader, queue, worker_pod, workloads
from muster.cluster.cluster import Cluster
from muster.cluster.nodes import NodeWatch
from muster.kube.concurrency import TimeSlice, in_slices
from muster.kube.reflector import Reflector, Watched
from muster.kube.store import ChangeKind, Store
from muster.kube.workqueue import work
from muster.model.objects import Namespace, Node, PriorityClass, Queue, convert
from muster.model.pods import Pod
from muster.model.resource import NODES, PODS
from muster.process.event_loop import Turns, run_measured
from muster.process.lifecycle import tune_gc

_NODES, _PODS_PER_NODE = 5000, 20
_WORKERS = 16
_ORGANISATIONS = 10
# Gangs of a queue.
_GANGS = 50


class _Bench:
    """Events, one after the other, and the longest step for each."""

    def __init__(self, turns: Turns, table: Table, gangs: int) -> None:
        self._turns = turns
        self._table = table
        self._gangs = gangs

    async def row(self, title: str, event: Callable[[], Any], world: Leader | None = None) -> None:
        """Have the event happen, wait until nothing is left to do, and print the longest step."""
        # The row before is over.
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        self._turns.longest, begun = 0.0, time.thread_time()
        happening = event()
        if happening is not None:
            await happening
        while world is not None and world.busy:  # noqa: ASYNC110 - others have their turn
            await asyncio.sleep(0)
        await asyncio.sleep(0)
        used = time.thread_time() - begun
        self._table.row(title, self._gangs, self._turns.longest * 1e3, used)


class _Server:
    """Lists so many objects, in pages that another thread makes, and sends no event afterwards."""

    def __init__(self, **made: tuple[int, dict[str, Any]]) -> None:
        """`made` has a count and an example by resource: NUMBER and NODE stand for its own and its node's number."""
        self._made = {name: (count, msgspec.json.encode(one)) for name, (count, one) in made.items()}

    async def list_page(self, resource: Any, *, limit: int, continue_: str = "", **_: object) -> bytes:  # noqa: ANN401
        """One page."""
        return await asyncio.to_thread(self._page, resource.plural, int(continue_ or 0), limit)

    def _page(self, plural: str, begin: int, limit: int) -> bytes:
        count, one = self._made.get(plural, (0, b""))
        end = min(begin + (limit or count), count)
        items = (
            one.replace(b"NUMBER", b"%d" % number).replace(b"NODE", b"%d" % (number % _NODES))
            for number in range(begin, end)
        )
        more = b'"%d"' % end if end < count else b'""'
        return b'{"metadata":{"resourceVersion":"1","continue":%s},"items":[%s]}' % (more, b",".join(items))

    @asynccontextmanager
    async def watch(self, *_: object, **__: object) -> AsyncIterator[AsyncIterator[bytes]]:
        """Nothing happens."""

        async def lines() -> AsyncIterator[bytes]:
            await asyncio.Event().wait()
            yield b""

        yield lines()


async def _listing(bench: _Bench, gangs: int) -> None:
    """The first list of pods of 6 kB, two for each gang."""
    one = worker_pod(0)
    one["metadata"] |= {"name": "NUMBER", "uid": "NUMBER", "namespace": "bench", "resourceVersion": "1"}
    one["metadata"]["labels"]["muster.dev/gang"] = "gang-NODE"
    server: Any = _Server(pods=(2 * gangs, one))
    cluster = Cluster()
    reflector = Reflector(server, Watched(PODS, Pod, cluster.pods.of("volcano")))
    running = asyncio.create_task(reflector.run())
    await bench.row("the first list of all pods", lambda: reflector.wait_synced(3600))
    running.cancel()


async def _nodes(bench: _Bench) -> None:
    """The nodes and what others have there, from nothing to the first sum."""
    status = {
        "allocatable": {"cpu": "96", "memory": "700Gi", "nvidia.com/gpu": "8", "pods": "110"},
        "conditions": [{"type": "Ready", "status": "True"}],
    }
    node = {"metadata": {"name": "nNUMBER", "uid": "nNUMBER", "resourceVersion": "1"}, "status": status}
    requests = {"cpu": "100m", "memory": "200Mi"}
    other = {
        "metadata": {"name": "NUMBER", "uid": "NUMBER", "namespace": "others", "resourceVersion": "1"},
        "spec": {"nodeName": "nNODE", "containers": [{"name": "main", "resources": {"requests": requests}}]},
        "status": {"phase": "Running"},
    }
    server: Any = _Server(nodes=(_NODES, node), pods=(_NODES * _PODS_PER_NODE, other))
    cluster = Cluster()
    reflector = Reflector(server, Watched(NODES, Node, cluster.nodes))
    running = asyncio.create_task(reflector.run())
    watch = NodeWatch(server, cluster)
    await bench.row(f"the first count of {_NODES} nodes", lambda: watch.room(wanted=True))

    def cordon() -> Any:  # noqa: ANN401 - an awaitable
        for each in list(cluster.nodes):
            meta = {"name": each.metadata.name, "uid": each.metadata.uid, "resourceVersion": "2"}
            cluster.nodes.apply("modified", convert({"metadata": meta, "spec": {"unschedulable": True}}, Node))
        return watch.room(wanted=True)

    await bench.row("all of them are cordoned", cordon)
    await bench.row("they are counted again a second later", lambda: watch.room(wanted=True))
    await watch.stop()
    running.cancel()


def _tree(gangs: int) -> tuple[Iterable[One], list[Queue]]:
    """Queues of fifty gangs, below ten that limit them; in each as much as runs."""
    count = max(gangs // _GANGS, _ORGANISATIONS)
    queues = [queue(f"org-{number}", str(count * 1000)) for number in range(_ORGANISATIONS)]
    # A gang has 2 to 8 cpu.
    limit = str(_GANGS * 5 // 2)
    queues += [queue(f"q{number}", limit, parent=f"org-{number % _ORGANISATIONS}") for number in range(count)]
    ones = (
        One(number, f"q{number % count}", 1000 + (number * 7919) % 3000, admitted=number // count % 2 == 0)
        for number in range(gangs)
    )
    return ones, queues


def _line(gangs: int, **how: str) -> tuple[Iterable[One], list[Queue]]:
    """One queue that has all."""
    ones = (
        One(number, "q0", 1000 + (number * 7919) % 3000 + number % 7, admitted=number % 2 == 0)
        for number in range(gangs)
    )
    return ones, [queue("q0", str(gangs * 5 // 2), **how)]


async def _office(bench: _Bench, what: str, ones: Iterable[One], queues: Iterable[Queue]) -> Leader:
    """A leader takes office."""
    cluster = filled(ones, queues)
    world = leader(cluster, Client(cluster, None))
    groups = list(world.cluster.pod_groups)
    await bench.row(f"{what}: a leader takes office", lambda: in_slices(world.reconciler.prime(groups)))
    return world


@asynccontextmanager
async def _at_work(world: Leader) -> AsyncIterator[None]:
    """The leader's workers, and its sweeps."""
    tasks = [
        asyncio.create_task(work(world.queue, world.reconciler.reconcile, _WORKERS)),
        asyncio.create_task(world.reconciler.term.sweeps.run()),
    ]
    yield
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)


def _ends(world: Leader, one: One) -> None:
    for each in one.pods:
        world.cluster.pods.of("volcano").apply("deleted", each)
    world.cluster.pod_groups.of("volcano").apply("deleted", one.group)
    workloads(world.cluster).apply("deleted", one.cluster)


def _comes(world: Leader, one: One) -> None:
    workloads(world.cluster).apply("added", one.cluster)
    for each in one.pods:
        world.cluster.pods.of("volcano").apply("added", each)


async def _events_in_a_tree(bench: _Bench, gangs: int) -> None:
    made, queues = _tree(gangs)
    ones = list(made)
    world = await _office(bench, "a tree", ones, queues)
    cluster = world.cluster
    limit = str(_GANGS * 4)
    namespace = convert({"metadata": {"name": "bench", "labels": {"team": "a"}}}, Namespace)
    normal = convert({"metadata": {"name": "normal"}, "value": 20}, PriorityClass)
    sharing = [queue(f"org-{number}", str(gangs * 20), **{"half-life": "24h"}) for number in range(_ORGANISATIONS)]
    some = [one for one in queues if one.metadata.name.startswith("q")][5:105]

    def edit(edited: Queue) -> Callable[[], None]:
        return lambda: cluster.queues.apply("modified", edited)

    events: list[tuple[str, Callable[[], Any]]] = [
        ("then each gang is looked at", lambda: None),
        ("a gang ends", lambda: _ends(world, ones[0])),
        ("a gang comes", lambda: _comes(world, replace(ones[0], admitted=False))),
        ("a Queue has more room", edit(queue("q1", limit, parent="org-1"))),
        ("a Queue has another patience", edit(queue("q2", limit, parent="org-2", patience="1m"))),
        ("a Queue comes", edit(queue("new", "10", parent="org-1"))),
        ("a Queue goes to another parent", edit(queue("q3", limit, parent="org-1"))),
        ("the root gets a limit", edit(queue("root", str(gangs * 2)))),
        ("the nodes count", lambda: world.reconciler.bound({})),
        ("a Queue has another gate mode", edit(queue("q4", limit, parent="org-4", gate="assemble"))),
        ("a PriorityClass changes", lambda: cluster.priority_classes.apply("modified", normal)),
        ("a namespace gets a label", lambda: cluster.namespaces.apply("added", namespace)),
        ("messages are refreshed", world.reconciler.refresh_messages),
        ("the queues' numbers are read", lambda: _read_numbers(world)),
        ("the organisations set a half-life", lambda: _in_turn(cluster.queues, "modified", sharing)),
        ("what they hold is noted", lambda: _note_use(world, 0)),
        ("and again a minute later", lambda: _note_use(world, 60)),
        ("the accounts are written", lambda: _account(world)),
        (f"{len(some)} Queues go", lambda: _in_turn(cluster.queues, "deleted", some)),
        ("they come back", lambda: _in_turn(cluster.queues, "added", some)),
    ]
    async with _at_work(world):
        for what, event in events:
            await bench.row(f"a tree: {what}", event, world)


def _note_use(world: Leader, later: float) -> None:
    """As the reconciler does each minute."""
    term = world.reconciler.term
    if term.ledger.note_use(term.clock.wall() + later):
        term.admission.wake_all()


def _read_numbers(world: Leader) -> None:
    term = world.reconciler.term
    term.sweeps.add(_read_numbers, term.metrics.queues.read(term.ledger, term.clock))


async def _account(world: Leader) -> None:
    """Count what all gangs have held, and encode it, as the leader does each minute."""
    term = world.reconciler.term
    await in_slices(term.accounting.steps())
    if term.accounts is not None:
        term.accounts.text()
    term.accounting.go_on()


async def _in_turn(store: Store[Any], kind: ChangeKind, objects: Iterable[Any]) -> None:
    """Apply them as a watch that receives all of them at once."""
    slice_ = TimeSlice()
    for one in objects:
        store.apply(kind, one)
        await slice_.rest()


async def _events_in_a_line(bench: _Bench, gangs: int, what: str, **how: str) -> None:
    made, queues = _line(gangs, **how)
    ones = list(made)
    world = await _office(bench, what, ones, queues)
    room = gangs * 5 // 2

    def edit(cpu: int, **settings: str) -> Callable[[], None]:
        return lambda: world.cluster.queues.apply("modified", queue("q0", str(cpu), **settings))

    events: list[tuple[str, Callable[[], Any]]] = [
        ("then each gang is looked at", lambda: None),
        ("a gang ends", lambda: _ends(world, ones[0])),
        ("a gang comes", lambda: _comes(world, replace(ones[0], admitted=False))),
        ("messages are refreshed", world.reconciler.refresh_messages),
        ("the queue's numbers are read", lambda: _read_numbers(world)),
        ("it has another patience", edit(room, **how, patience="1m")),
        ("it preempts", edit(room, preemption="lower-priority")),
        ("it does not", edit(room)),
        ("all that wait may start", edit(gangs * 20, **how)),
    ]
    async with _at_work(world):
        for title, event in events:
            await bench.row(f"{what}: {title}", event, world)


async def _measure(turns: Turns, sizes: Iterable[int]) -> None:
    table = Table("the longest step", "gangs", "ms", "s in all")
    for gangs in sizes:
        # The objects of the last size are freed; else the collector does as in the processes.
        gc.unfreeze()
        tune_gc()
        bench = _Bench(turns, table, gangs)
        await _listing(bench, gangs)
        await _nodes(bench)
        await _events_in_a_tree(bench, gangs)
        await _events_in_a_line(bench, gangs, "a line")
        await _events_in_a_line(bench, gangs, "a line that preempts", preemption="lower-priority")


def main(argv: Sequence[str]) -> None:
    """Measure and print."""
    given = options(argv, __doc__, gangs=[1000, 4000, 16_000, 50_000])
    run_measured(lambda turns: _measure(turns, given.gangs), time.thread_time)
