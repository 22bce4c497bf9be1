"""Brings one gang at a time to where it should be; everything it needs to know is in the cluster.

The order within one gang is what makes it safe to die at any moment: the PodGroup before anything else, the mark
`muster.dev/admitted` before the first gate, the gates last. Whoever comes next reads the mark and goes on.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import replace

from controller.admission import Admission
from controller.admission_queue import AdmissionQueue
from controller.assembling import Assembling
from controller.bypass import BypassTracker
from controller.deadlines import Deadlines
from controller.entering import Entering
from controller.events import Announcer
from controller.evictions import Evictions
from controller.fenced_writes import Writer
from controller.gates import Gates
from controller.history import RunTimes
from controller.kueue import Kueue
from controller.memory import Memories, Memory
from controller.metrics import Metrics
from controller.nudges import Nudges
from controller.pace import Pace
from controller.pod_group_keeper import PodGroupKeeper
from controller.pod_group_writer import PodGroupWriter
from controller.refused import Part
from controller.reports import Reporter, says
from controller.requeue import delete_unplaced, requeued_at
from controller.set_aside import SetAside
from controller.sweeps import Sweeps
from controller.takeover import Takeover
from controller.wakes import Wakes
from muster.admitters import KueueWorkload
from muster.gangs.history import History
from muster.gangs.intent import Defaults
from muster.kube.errors import ApiError
from muster.kube.store import Change
from muster.kube.workqueue import WorkQueue
from muster.model.gang_states import GangState
from muster.model.names import GATE, REQUEUE_AFTER
from muster.model.objects import Namespace, ObjectMeta, PodGroup, Queue
from muster.model.times import steady
from muster.observe import messages
from muster.observe.admitted_terms import without_units
from muster.observe.candidates import queue_held
from muster.observe.cluster import Cluster
from muster.observe.context import DOUBLINGS, EntryContext
from muster.observe.ledger_entry import Standing, waits_for_a_node
from muster.observe.observing import observe
from muster.observe.phases import Phase, given_back
from muster.observe.pod_groups import RESERVING, desired, lenient, shown, unreserved
from muster.observe.quota_use import QuotaUse
from muster.observe.readiness import ready_in, too_long
from muster.observe.terminating import look_again_in
from muster.observe.triggers import GangTriggers
from muster.observe.view import Mark, View
from muster.queueing.ledger import GangKey, queue_not_found
from muster.queueing.queue_view import ROOT
from muster.resources.amounts import Resources

logger = logging.getLogger(__name__)

_WANTS_PODS = frozenset({Phase.ASSEMBLING, Phase.WAITING, Phase.ADMITTED})


class Reconciler:
    """One leader's term: a ledger made from the cluster, and the work on each gang; `jobs` as `Nudges` has it.

    `admitted` is asked whether a Workload of Kueue's is admitted now. What this leader sees is timed by `clock`, which
    never goes back; only times that others have written are compared with `wall`, the time of day. `history` has the
    run times of former gangs; None where none are kept.
    """

    def __init__(
        self,
        writer: Writer,
        cluster: Cluster,
        queue: WorkQueue[GangKey],
        defaults: Defaults,
        announcer: Announcer,
        *,
        alive: Callable[[ObjectMeta], Awaitable[bool]],
        jobs: Callable[[str, str], Awaitable[list[ObjectMeta]]],
        admitted: Callable[[KueueWorkload], Awaitable[bool]],
        metrics: Metrics,
        clock: Callable[[], float],
        wall: Callable[[], float],
        history: History | None = None,
    ) -> None:
        self._writer = writer
        self._metrics = metrics
        self._cluster = cluster
        self._queue = queue
        self._defaults = defaults
        self._clock = clock
        self._wall = wall
        self._now = now = steady(clock, wall)
        self._counted = clock()
        self._held: dict[tuple[str, str], float] = {}
        self.sweeps = Sweeps()
        self._admission_queue = AdmissionQueue(queue.add, wall=now, sweep=self.sweeps.add)
        self._ledger = self._admission_queue.ledger
        self._quota_use = QuotaUse(cluster, self._ledger)
        self._reporter = Reporter(writer, announcer, there=cluster.has)
        self._run_times = RunTimes(cluster, history)
        self._group_writer = PodGroupWriter(
            *(writer, self._reporter, queue.add_after), run_times=self._run_times, alive=alive, clock=clock
        )
        self._memories = Memories()
        self._bypass = BypassTracker(
            *(self._ledger, self._memories, queue.add, self._admission_queue.wake, self._run_times.drain_after)
        )
        self._deadlines = Deadlines(self._admission_queue, self._reporter, queue.add_after, defaults.kueues_timeout)
        self._kueue = Kueue(self._reporter, queue.add_after, admitted=admitted, clock=clock, wall=wall)
        self._nudges = Nudges(writer, jobs, clock=clock, wall=wall)
        self._wakes = Wakes(writer, clock=clock, wall=wall)
        self._assembling = Assembling(
            *(writer, cluster, self._reporter, self._group_writer, self._nudges),
            look_again=queue.add_after,
            see=self._observe,
            clock=clock,
            wall=wall,
        )
        self._evictions = Evictions(clock)
        self._pace = Pace(lambda key: len(cluster.pods_of(key)), clock)
        self._gates = Gates(
            *(writer, self._ledger),
            group_writer=self._group_writer,
            bypass=self._bypass,
            evictions=self._evictions,
            metrics=metrics,
            look_again=queue.add_after,
            clock=clock,
            now=now,
        )
        self._admission = Admission(
            *(self._admission_queue, self._reporter),
            gates=self._gates,
            group_writer=self._group_writer,
            bypass=self._bypass,
            deadlines=self._deadlines,
            kueue=self._kueue,
            quota_use=self._quota_use,
            metrics=metrics,
            see=self._observe,
            stand=self._stand,
            look_again=queue.add_after,
            clock=clock,
            now=now,
            wall=wall,
        )
        self._pod_groups = PodGroupKeeper(
            *(self._admission_queue, self._group_writer, self._reporter),
            deadlines=self._deadlines,
            context=self._context,
            clock=clock,
            wall=wall,
        )
        self._set_aside = SetAside(
            *(queue, self._memories, self._reporter),
            see=self._observe,
            stand=self._stand,
            enter=self._enter,
            clock=clock,
        )
        self._entering = Entering(cluster, self._admission_queue, self._memories, self._enter)
        self._takeover = Takeover(cluster, self._admission_queue, self._memories, self._entering.enter, queue.add)
        cluster.pods.subscribe(self._evictions.note)
        cluster.elastic_quotas.subscribe(self._namespace_limited)
        cluster.namespaces.subscribe(self._namespace_changed)

    def prime(self, groups: Iterable[PodGroup] = ()) -> Iterator[None]:
        """The steps, before any decision, that enter all there is; `groups` are listed since the lease is ours."""
        self._quota_use.begin()
        return self._takeover.steps(groups)

    def subscribe(self) -> None:
        """Hear of all changes of the cluster from now on."""
        self._cluster.queues.subscribe(self.queue_changed)
        GangTriggers(self._cluster, self.gang_changed, self.gangs_changed).subscribe()

    def gang_changed(self, key: GangKey) -> None:
        """Work on the gang, of which something has changed."""
        self._takeover.touched(key)
        self._queue.add_after(key, self._pace.wait(key))

    def gangs_changed(self, which: Hashable, keys: Iterable[GangKey | None]) -> None:
        """Work on all of these gangs, soon; None stands for one that is not concerned. `which` names them."""
        if self._takeover.under_way:
            self._takeover.touched_many(keys)
        else:
            self.sweeps.add(which, self._look_at_each(keys))

    def _look_at_each(self, keys: Iterable[GangKey | None]) -> Iterator[None]:
        seen: set[GangKey | None] = {None}
        for key in keys:
            if key is not None and key not in seen:
                seen.add(key)
                self._queue.add(key)
            yield

    def tell_who_waits(self) -> None:
        """Refresh the message of each waiting gang whose words have changed; to be called about every second."""
        self._admission_queue.tell()

    def queue_changed(self, change: Change[Queue]) -> None:
        """Take a queue's change into the ledger, and reconcile every gang that it may concern."""
        name = change.object.metadata.name
        terms = self._admission_queue.terms(name)
        if change.new is None:
            changed = self._ledger.drop_queue(name)
            self._metrics.forget(name)
            self._held = {key: amount for key, amount in self._held.items() if key[0] != name}
        else:
            changed = self._admission_queue.set_queue(change.new)
        if changed and not self._takeover.under_way:
            self._admission_queue.wake_all()
        if self._admission_queue.terms(name) != terms:
            self._may_be_found(self._ledger.tree.with_below(name))
            # Also those who are not in the ledger: it may be there for them now, or nothing may be left to wait for.
            self.gangs_changed(None, self._cluster.each_gang())

    def _namespace_changed(self, change: Change[Namespace]) -> None:
        """Queues may be there for its gangs now."""
        self._may_be_found(self._admission_queue.lost.queues_of(change.object.metadata.name))

    def _may_be_found(self, queues: Iterable[str]) -> None:
        """Have those that were lost in these queues enter before a new gang, which knows of none, is decided for."""
        for queue in () if self._takeover.under_way else queues:
            self._admission_queue.lost.found(queue, self._entering.enter)

    def _namespace_limited(self, namespace: str) -> None:
        """Take another limit of a namespace into the ledger, and reconcile every gang that it may concern."""
        if self._quota_use.limit(namespace) and not self._takeover.under_way:
            self._admission_queue.wake_all()

    def count_others(self) -> None:
        """Count what pods that are not of gangs use of ElasticQuotas; to be called about every second."""
        if self._quota_use.count():
            self._admission_queue.wake_all()

    @property
    def bound_by_nodes(self) -> bool:
        """Whether the root queue asks for no more to start than the nodes can hold."""
        return self._ledger.tree.settings(ROOT).bound_by_nodes

    def bound(self, nodes: Resources | None) -> None:
        """Let no more start than the nodes can hold, or, with None, whatever the queues allow."""
        self._admission_queue.bound(nodes)

    def kept(self) -> dict[str, int]:
        """How many entries each part of this term has, by its name; any thread may ask."""
        return {
            "ledger": self._ledger.gangs,
            "memories": self._memories.gangs,
            "reports": self._reporter.told,
            "evictions": self._evictions.gangs,
            "nudges": self._nudges.gangs,
            "wakes": self._wakes.gangs,
            "pace": self._pace.gangs,
        }

    def reserved(self) -> Mapping[tuple[str, str], int]:
        """The reservations, by the queue of the gang and by what their start rests on; any thread may ask."""
        return Counter((queue, one.basis or "none") for queue, one in self._ledger.reserved())

    def count_held(self) -> None:
        """Count what gangs have held since the last call; to be called about every second."""
        since, self._counted = self._counted, self._clock()
        for queue, resource, amount in self._ledger.held():
            self._held[queue, resource] = self._held.get((queue, resource), 0.0) + amount * (self._counted - since)

    def held(self) -> Mapping[tuple[str, str], float]:
        """What gangs have held since this term began, by queue and resource, in units times seconds; for any thread."""
        return dict(self._held)

    def groupless(self) -> Mapping[tuple[str, str], int]:
        """The gangs whose state stands on no PodGroup, by queue and state; any thread may ask."""
        return self._reporter.groupless()

    async def reconcile(self, key: GangKey) -> None:
        """Bring one gang a step further; raises ApiError for a write not taken, NotLeaderError without the lease."""
        with self._reporter.looking_at(key):
            await self._reconcile(key)

    async def _reconcile(self, key: GangKey) -> None:
        memory = self._memories.of(key)
        if (left := memory.doubt(self._clock(), shown=shown(self._cluster.pod_group(key), memory.written))) > 0:
            self._queue.add_after(key, left)
        view = self._observe(key)
        pods = self._cluster.pods_of(key)
        ours = memory.opened | memory.tried
        gated = {pod.metadata.uid for pod in pods if pod.metadata.uid in ours and pod.gated(GATE)} if ours else set()
        self._reporter.forget(memory.notice(view, gated, self._now()))
        self._run_times.expect(view, memory)
        standing = self._stand(view)
        self._run_times.follow(view, standing.phase, memory, self._now())
        assembling = standing.phase is Phase.ASSEMBLING
        needed = view.gang.min_member if assembling and view.gang is not None else 0
        self._pace.looked(key, len(pods) + len(view.unmanaged_pods), needed=needed)
        if not assembling:
            self._assembling.over(key, memory)
        if standing.phase is not Phase.ADMITTED:
            # What is no admitted gang keeps no room for what was begun: others may have taken it.
            memory.units = frozenset()
            memory.tried.clear()
        elif memory.requeues and view.open and not view.unplaced and not memory.unready:
            memory.requeues = 0
        self._deadlines.heed_kueue(view, memory, self._wall())
        if standing.phase is Phase.ADMITTED:
            self._deadlines.check_run(view, memory, self._wall())
        shut_out = standing.lost and standing.phase is Phase.FOREIGN
        self._reporter.tell_others(view, self._clock(), shut_out=shut_out)
        slow = memory.unready, self._now(), self._ledger.tree.settings(queue_held(view)).unplaced_after
        if self._reporter.tell_aside(view, memory, too_long(*slow)) or standing.changed:
            self._admission_queue.give_turn(key)
        self._evictions.unplaced(key, waits=waits_for_a_node(view, standing))
        evicted, out = self._evictions.wait(key), memory.refused.wait(self._clock())
        nudged = await self._nudges.nudge(view, wants=standing.phase in _WANTS_PODS)
        woken = await self._wakes.wake(view, admitted=standing.phase is Phase.ADMITTED)
        for again in filter(
            None, (evicted, nudged.again, woken.again, look_again_in(pods, self._wall()), out, ready_in(*slow))
        ):
            self._queue.add_after(key, again)
        # A touch takes up to ten seconds where a webhook is away, and meanwhile a pod may have gone.
        if (nudged.sent or woken.sent) and (seen := self._observe(key)) != view:
            view, standing = seen, self._stand(seen)
        await self._step(view, standing, memory)

    async def _step(self, view: View, standing: Standing, memory: Memory) -> None:
        match standing.phase:
            case Phase.GONE:
                await self._leave(view)
            case Phase.FOREIGN:
                if view.members or (view.unmanaged_pods and view.gang is not None):
                    self._reporter.tell(view, *messages.in_the_way(view), self._clock())
            case Phase.STALE:
                await self._group_writer.delete(view)
            case Phase.INVALID:
                mark = without_units(view.mark)
                await self._group_writer.report(view, memory, mark, GangState.INVALID, view.error)
            case Phase.RELEASED | Phase.NOT_MANAGED:
                await self._release(view, standing, memory)
            case Phase.INACTIVE:
                await self._retire(view, memory)
            case Phase.OUTGROWN:
                await self._queue_again(view, memory)
            case Phase.ASSEMBLING | Phase.WAITING | Phase.ADMITTED | Phase.REQUEUED:
                await self._advance(view, standing, memory)

    def _observe(self, key: GangKey) -> View:
        memory = self._memories.seen(key)
        known = memory.opened, memory.written
        # A leader that takes over believes the marks. Later one counts that it wrote, or for which the gang holds room.
        believed = self._takeover.under_way or bool(memory.mark.admitted) or self._ledger.holds(key) is not None
        seen = observe(key, self._cluster, self._defaults, *known, now=self._wall(), believed=believed)
        view = memory.completed(seen)
        return replace(view, pause=self._evictions.pause(key))

    def _stand(self, view: View) -> Standing:
        lost = view.key in self._admission_queue.lost
        standing = self._admission_queue.stand(view, self._context(view.key))
        memory = self._memories.seen(view.key)
        memory.yielded = memory.yielded and (standing.yields or standing.phase is not Phase.ADMITTED)
        if lost and not standing.lost:
            self._admission_queue.lost.found(queue_held(view), self._entering.enter)
        return standing

    def _enter(self, key: GangKey) -> None:
        self._admission_queue.enter(self._observe(key), replace(self._context(key), grow=False))

    def _context(self, key: GangKey) -> EntryContext:
        memory = self._memories.seen(key)
        refused = memory.refused.out(self._clock())
        since = min((one.since for one in memory.unready.values()), default=None)
        mark = replace(memory.mark, runs_about=memory.runs_about)
        known = mark, memory.unplaced_since, memory.waiting, True, refused, memory.units, memory.tried
        context = EntryContext(
            self._now(), self._cluster.priorities(), *known, yielded=memory.yielded, unready_since=since
        )
        return replace(context, requeues=memory.requeues)

    async def _advance(self, view: View, standing: Standing, memory: Memory) -> None:
        """Take the step of the gang's phase, or, where a write is not taken, give its room to others."""
        refused, out = memory.refused, memory.refused.out(self._clock())
        if refused.wait(self._clock()) > 0:
            await self._set_aside.keep(view, memory, write=not memory.yielded)
            return
        try:
            if out and refused.part is Part.GATE:
                await self._gates.try_out([member for member in view.members if member.held], memory)
                refused.come_back()
            else:
                await self._take_step(view, standing, memory)
        except ApiError:
            if refused.wait(self._clock()) > 0:
                await self._set_aside.keep(self._observe(view.key), memory, write=True)
            raise
        if out and not refused.out(self._clock()):
            self._set_aside.come_back(view.key)

    async def _take_step(self, view: View, standing: Standing, memory: Memory) -> None:
        """Keep the gang's PodGroup as it should be, and take the step of its phase."""
        wait = memory.being_opened(view, self._clock())
        if standing.phase is Phase.ADMITTED and wait > 0:
            self._queue.add_after(view.key, wait)
            return
        with_group = await self._pod_groups.keep(view, standing, memory)
        if with_group is None:
            return
        view = with_group
        match standing.phase:
            case Phase.ASSEMBLING:
                await self._assembling.wait(view, memory, self._context(view.key))
            case Phase.WAITING:
                admitted = await self._admission.decide(view, standing, memory)
                if admitted is not None:
                    await self._gates.open(*admitted, memory, tried=True)
            case Phase.REQUEUED:
                since = view.mark.requeued_at or memory.mark.requeued_at
                await delete_unplaced(self._writer, given_back(view, since))
            case Phase.ADMITTED if standing.requeues is not None and standing.requeues <= self._now():
                await self._requeue(view, memory)
            case _ if standing.opening is None or not standing.opening.members or await self._kueue.still_admits(view):
                await self._gates.open(view, standing, memory)

    async def _release(self, view: View, standing: Standing, memory: Memory) -> None:
        """Leave a workload alone: its PodGroup asks for nothing, and pods that are held go as there is room."""
        refused, now = memory.refused, self._clock()
        if refused.out(now) and refused.wait(now) <= 0:
            self._set_aside.come_back(view.key)
            return
        mark = memory.left_alone(view)
        state, message = messages.left_alone(view)
        if standing.lost and view.members:
            state, message = GangState.QUEUE_NOT_FOUND, queue_not_found(queue_held(view)).message
        elif view.members:
            view = await self._group_writer.ensure(view, memory, lenient(view))
            if standing.opening is not None:
                if standing.opening.members:
                    await self._gates.take_off(standing.opening.members, memory)
                message += messages.beyond(standing.opening, {}, standing.on_hold)
            message += f"; {refused.words}" if refused.words else ""
        # A workload that asks for nothing, and that muster has nothing of, is none of its business.
        if view.pod_group is not None or view.gang is not None or standing.lost:
            await self._group_writer.report(view, memory, mark, state, message)

    async def _requeue(self, view: View, memory: Memory) -> None:
        """Give back a place that the gang cannot use, as its workload asks for: the mark goes first, then its pods.

        Its operator replaces them, held by the gate, and the gang queues again behind those that waited meanwhile.
        """
        asked = view.decoded.metadata.annotations[REQUEUE_AFTER].partition(",")[0] if view.decoded else ""
        asked = f"{2**memory.requeues} times {asked}" if memory.requeues else asked
        memory.requeues = min(memory.requeues + 1, DOUBLINGS)
        unready = {uid: one.reason for uid, one in memory.unready.items()}
        message = messages.given_back(view, asked, unready)
        mark = Mark(requeued_at=requeued_at(view, self._wall()))
        await self._group_writer.mark(view, memory, mark, GangState.REQUEUED, message)
        memory.mark = mark
        view = replace(view, pod_group=memory.written)
        self._reporter.tell(view, GangState.REQUEUED, message, self._clock())
        self._stand(view)
        await delete_unplaced(self._writer, given_back(view, mark.requeued_at))

    async def _queue_again(self, view: View, memory: Memory) -> None:
        """Take the mark off a gang that has outgrown it: without that it waits, for what it asks for now."""
        memory.mark = Mark(requeued_at=view.mark.requeued_at)
        await self._group_writer.report(view, memory, memory.mark, GangState.REQUEUED, messages.too_large(view))

    async def _retire(self, view: View, memory: Memory) -> None:
        """A finished or suspended workload gives its mark back, so that it queues again when it resumes."""
        memory.mark = Mark()
        if view.workload is None:
            return
        state, message = messages.at_rest(view.workload, view.kueue)
        if view.pod_group is None:
            # What Kueue suspends from the beginning has no pods, and no PodGroup for them.
            if view.kueue is not None and state is not GangState.FINISHED:
                self._kueue.tell(view, state, message)
            return
        if not says(view, Mark(), state, message):
            await self._group_writer.report(view, memory, Mark(), state, message)
            # Without the mark its place is free.
            view = self._observe(view.key)
            self._stand(view)
        if view.pod_group is not None and view.pod_group.status.phase in RESERVING:
            await self._group_writer.ensure(view, memory, unreserved(view, desired(view, admitted=True)))

    async def _leave(self, view: View) -> None:
        """Clean up after a gang that is gone."""
        pods = self._cluster.pods_of(view.key)
        # Its time limit, say, may be weeks away.
        self._queue.drop_later(view.key)
        if again := look_again_in(pods, self._wall()):
            self._queue.add_after(view.key, again)
        await self._pod_groups.leave(view, pods, self._memories.of(view.key))
        self._reporter.forget(self._memories.forget(view.key, ending=bool(pods)).workload)
        self._nudges.forget(view.key)
        self._wakes.forget(view.key)
        self._evictions.forget(view.key)
        self._pace.forget(view.key)
        self._set_aside.forget(view.key)
        self._admission_queue.forget(view.key)
        if view.group_owner is not None:
            self._reporter.forget(view.group_owner.uid)
