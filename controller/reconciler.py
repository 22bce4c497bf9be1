"""Brings one gang at a time to where it should be; everything it needs to know is in the cluster.

The order within one gang is what makes it safe to die at any moment: the PodGroup before anything else, the mark
`muster.dev/admitted` before the first gate, the gates last. Whoever comes next reads the mark and goes on.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from controller.gates import open_gates
from controller.podgroups import desired, lenient, up_to_date
from controller.reports import Reporter
from controller.standing import Phase, Standing, enter, former_of
from controller.view import View, observe
from muster.kube.errors import ApiError
from muster.kube.resource import POD_GROUPS
from muster.ledger import GangKey, Ledger
from muster.names import ADMITTED, GATE, STATE
from muster.objects import InvalidObjectError, PodGroup, Queue, decode
from muster.queues import read_queue
from muster.reasons import State
from muster.resources import describe, total

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from controller.cluster import Cluster
    from controller.writer import Writer
    from muster.intent import Defaults
    from muster.kube.store import Change
    from muster.kube.workqueue import WorkQueue

__all__ = ["Reconciler"]

logger = logging.getLogger(__name__)

WORKLOAD_MANAGER = "muster"
# Seconds for which a gang may lack pods before it is said.
_ASSEMBLING_SILENCE = 5.0


@dataclass(slots=True)
class _Memory:
    """What this leader did and the watches may not show yet."""

    marked: str = ""
    written: PodGroup | None = None
    opened: set[str] = field(default_factory=set)
    surplus: bool = False
    assembling_since: float | None = None


class Reconciler:
    """One leader's term: a ledger made from the cluster, and the work on each gang."""

    def __init__(
        self,
        writer: Writer,
        cluster: Cluster,
        queue: WorkQueue[GangKey],
        defaults: Defaults,
        *,
        instance: str,
        clock: Callable[[], float],
    ) -> None:
        self._writer = writer
        self._cluster = cluster
        self._queue = queue
        self._defaults = defaults
        self._clock = clock
        self._ledger = Ledger()
        self._reporter = Reporter(writer, instance)
        self._memory: dict[GangKey, _Memory] = {}

    def prime(self, groups: Iterable[PodGroup] = ()) -> None:
        """Enter everything that is in the cluster before the first decision, and queue all of it for work.

        `groups` are all PodGroups as listed since the lease is ours: the watch may not have shown yet what the leader
        before us wrote last.
        """
        for queue in self._cluster.queues:
            self._enter_queue(queue)
        for group in groups:
            key = GangKey(group.metadata.namespace, group.metadata.name)
            self._memory[key] = _Memory(written=group)
        for key in self._cluster.gangs() | self._memory.keys():
            self._stand(self._observe(key))
            self._queue.add(key)

    def queue_changed(self, change: Change[Queue]) -> None:
        """Take a queue's change into the ledger and look again at everybody who waits there."""
        name = change.object.metadata.name
        if change.new is None:
            self._ledger.drop_queue(name)
        else:
            self._enter_queue(change.new)
        self._wake(name)

    async def reconcile(self, key: GangKey) -> None:
        """Bring one gang a step further; raises ApiError for a write not taken, NotLeaderError without the lease."""
        memory = self._memory.setdefault(key, _Memory())
        view = self._observe(key)
        # What the watch shows by now need not be remembered.
        memory.opened &= {member.pod.metadata.uid for member in view.members if member.pod.gated(GATE)}
        memory.written = None if view.pod_group is not memory.written else memory.written
        standing = self._stand(view)
        if standing.phase is not Phase.ASSEMBLING:
            memory.assembling_since = None
        match standing.phase:
            case Phase.GONE:
                self._forget(view)
            case Phase.FOREIGN:
                if view.members:
                    message = f'a PodGroup "{key.name}" that muster did not make is in the way; delete or rename it'
                    await self._report(view, "", State.FOREIGN_POD_GROUP, message)
            case Phase.STALE:
                await self._delete_stale(view)
            case Phase.INVALID:
                await self._report(view, view.marked_for, State.INVALID, view.error)
            case Phase.RELEASED:
                await self._release(view)
            case Phase.INACTIVE:
                await self._retire(view)
            case Phase.ASSEMBLING | Phase.WAITING | Phase.ADMITTED:
                await self._advance(view, standing, memory)

    def _observe(self, key: GangKey) -> View:
        memory = self._memory.get(key) or _Memory()
        return observe(key, self._cluster, self._defaults, memory.opened, memory.written)

    def _stand(self, view: View) -> Standing:
        """Enter the gang into the ledger, and wake its neighbours when that changes something for them."""
        memory = self._memory.get(view.key)
        keys = (view.key, former_of(view.key))
        before = {self._ledger.queue_of(key) for key in keys}
        standing = enter(view, self._ledger, self._cluster.priorities(), memory.marked if memory else "")
        if memory is not None:
            memory.surplus = bool(standing.opening and standing.opening.surplus)
        if standing.changed:
            for queue in before | {self._ledger.queue_of(key) for key in keys}:
                if queue is not None:
                    self._wake(queue, but=view.key)
        return standing

    async def _advance(self, view: View, standing: Standing, memory: _Memory) -> None:
        if not view.members and view.pod_group is None:
            # Made when the first held pod is there, never on sight of the workload.
            return
        try:
            view = await self._ensure_pod_group(view, admitted=standing.phase is Phase.ADMITTED)
        except ApiError as error:
            if error.refused and standing.phase is not Phase.ADMITTED:
                await self._without_pod_group(view, error)
            raise
        if standing.phase is Phase.ASSEMBLING:
            await self._assemble(view, memory)
        elif standing.phase is Phase.WAITING:
            await self._decide(view, memory)
        else:
            await self._open(view, standing, memory)

    async def _without_pod_group(self, view: View, error: ApiError) -> None:
        """Say that the PodGroup was refused (by a quota, a policy, Volcano's own webhook), and wait for no room."""
        decision = self._ledger.decide(view.key)
        queue = self._ledger.queue_of(view.key)
        if self._ledger.forget(view.key) and queue is not None:
            self._wake(queue, but=view.key)
        if decision is not None and decision.state in (State.QUEUE_NOT_FOUND, State.QUEUE_CLOSED):
            await self._reporter.tell(view, decision.state, decision.message, self._clock())
        else:
            message = f"the PodGroup was refused: {error.message}"
            await self._reporter.tell(view, State.INVALID, message, self._clock())

    async def _release(self, view: View) -> None:
        """Let the pods of a workload go that the user took out of muster's hands.

        They are bound to a PodGroup, without which Volcano never looks at them; where there is none yet they get one
        that asks for nothing.
        """
        held = [member for member in view.members if member.held]
        if held and view.pod_group is None and view.decoded is not None and view.kind is not None:
            await self._writer.apply(POD_GROUPS, lenient(view), field_manager=WORKLOAD_MANAGER)
        await open_gates(self._writer, held)

    async def _assemble(self, view: View, memory: _Memory) -> None:
        """Say which pods are missing, but not in the moment in which an operator makes them one by one."""
        now = self._clock()
        if memory.assembling_since is None:
            memory.assembling_since = now
        wait = memory.assembling_since + _ASSEMBLING_SILENCE - now
        if wait > 0:
            self._queue.add_after(view.key, wait)
            return
        await self._report(view, "", State.ASSEMBLING, _missing(view))

    async def _decide(self, view: View, memory: _Memory) -> None:
        """Admit the gang if the ledger says so, else write down why it waits."""
        decision = self._ledger.decide(view.key)
        if decision is None:
            return
        if not decision.fits:
            await self._report(view, "", decision.state, decision.message)
            return
        # From here on it counts as admitted, so that no other decision takes the same room while this one is written.
        memory.marked = view.decoded.metadata.uid if view.decoded else ""
        standing = self._stand(view)
        try:
            memory.written = await self._reporter.mark(view, memory.marked, State.ADMITTED, decision.message)
        except ApiError as error:
            if error.refused:
                memory.marked = ""
                self._stand(view)
            # Otherwise nobody knows whether the mark is there: the room stays taken until the next round writes it.
            raise
        await self._reporter.tell(view, State.ADMITTED, decision.message, self._clock())
        await self._open(replace(view, pod_group=memory.written), standing, memory)

    async def _open(self, view: View, standing: Standing, memory: _Memory) -> None:
        """Open the gates of an admitted gang, the mark first."""
        uid = view.decoded.metadata.uid if view.decoded else ""
        claim = self._ledger.holds(view.key) or {}
        message = f'{describe(claim)} of queue "{self._ledger.queue_of(view.key)}"'
        if view.marked_for != uid:
            memory.written = await self._reporter.mark(view, uid, State.ADMITTED, message)
            view = replace(view, pod_group=memory.written)
        memory.marked = uid
        opening = standing.opening
        if opening is not None and opening.members:
            memory.opened |= set(await open_gates(self._writer, opening.members))
        if opening is not None and opening.surplus:
            names = ", ".join(member.pod.metadata.name for member in opening.surplus)
            message += f"; no room yet for {describe(total(m.requests for m in opening.surplus))} more ({names})"
        running = view.pod_group is not None and view.pod_group.status.phase == "Running"
        await self._report(view, uid, State.RUNNING if running else State.ADMITTED, message)

    async def _report(self, view: View, admitted: str, state: State, message: str) -> None:
        group = await self._reporter.report(view, admitted, state, message, self._clock())
        if group is not view.pod_group:
            self._memory.setdefault(view.key, _Memory()).written = group

    async def _ensure_pod_group(self, view: View, *, admitted: bool) -> View:
        manifest = desired(view, admitted=admitted)
        if view.pod_group is not None and up_to_date(view.pod_group, manifest):
            return view
        data = await self._writer.apply(POD_GROUPS, manifest, field_manager=WORKLOAD_MANAGER)
        group = decode(data, PodGroup)
        self._memory.setdefault(view.key, _Memory()).written = group
        return replace(view, pod_group=group)

    async def _delete_stale(self, view: View) -> None:
        """Take away the PodGroup of a former workload of this name; its deletion brings the gang back here."""
        if view.pod_group is None or view.pod_group.metadata.deletion_timestamp:
            return
        meta = view.pod_group.metadata
        logger.info("%s: deleting the PodGroup of a former workload of this name", view.key)
        await self._writer.delete(POD_GROUPS, meta.name, meta.namespace, uid=meta.uid)

    async def _retire(self, view: View) -> None:
        """A finished or suspended workload gives its mark back, so that it queues again when it resumes."""
        memory = self._memory.setdefault(view.key, _Memory())
        memory.marked = ""
        memory.opened.clear()
        if view.pod_group is None or view.workload is None:
            return
        said = view.pod_group.metadata.annotations
        if view.workload.finished:
            state, message = State.FINISHED, "the workload has ended"
        else:
            state, message = State.SUSPENDED, "the workload is suspended"
        if ADMITTED in said or said.get(STATE) != state:
            await self._report(view, "", state, message)

    def _forget(self, view: View) -> None:
        self._memory.pop(view.key, None)
        if view.group_owner is not None:
            self._reporter.forget(view.group_owner.uid)

    def _enter_queue(self, queue: Queue) -> None:
        try:
            self._ledger.set_queue(read_queue(queue))
        except InvalidObjectError as error:
            logger.warning("queue %s cannot be read, nothing new starts there: %s", queue.metadata.name, error)
            self._ledger.drop_queue(queue.metadata.name)

    def _wake(self, queue: str, but: GangKey | None = None) -> None:
        """Look again at all who wait for room in a queue."""
        for key in self._ledger.waiting(queue):
            if key != but:
                self._queue.add(key)
        for key, memory in self._memory.items():
            if memory.surplus and key != but and self._ledger.queue_of(key) == queue:
                self._queue.add(key)


def _missing(view: View) -> str:
    """Which pods the gang still lacks, in words."""
    if view.gang is None:
        return ""
    lacking = []
    for role in view.gang.roles:
        there = sum(member.role == role.name for member in view.members)
        if there < role.minimum:
            lacking.append(f"{role.name} {there} of {role.minimum}")
    return f"waiting for its pods: {', '.join(lacking)}"
