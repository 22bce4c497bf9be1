"""Brings one gang at a time to where it should be; everything it needs to know is in the cluster.

The order within one gang is what makes it safe to die at any moment: the PodGroup before anything else, the mark
`muster.dev/admitted` before the first gate, the gates last. The next leader reads the mark and goes on.
"""

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping
from math import inf

from controller import admission, pod_groups
from controller.admission import open_gates, report_kueue_wait, still_admits, take_off, try_gates
from controller.assembling import Assembling, delete_unplaced, requeued_at
from controller.delays import Loss, Pace
from controller.pod_groups import SetAside
from controller.reports import annotations_match
from controller.term import Takeover, Term, Work, enter_lost_gangs, observe_gang, plan_and_enter
from controller.touches import Touches
from muster.admitters.kueue import KueueAnswer
from muster.cluster.gang_pods import look_again_in
from muster.cluster.triggers import GangTriggers
from muster.kube.errors import ApiError
from muster.kube.store import Change
from muster.model.gang_states import GangState
from muster.model.names import GATE, REQUEUE_AFTER
from muster.model.objects import Namespace, PodGroup, Queue
from muster.planning import messages
from muster.planning.candidate import queue_held
from muster.planning.expectations import DOUBLINGS, ready_in, too_long
from muster.planning.phase import Phase
from muster.planning.pod_group import RESERVING, desired, relaxed_pod_group, shown, unreserved
from muster.planning.record import without_units
from muster.planning.snapshot import AdmissionRecord, Pause
from muster.planning.writes import WrittenPart
from muster.queueing.ledger import GangKey, queue_not_found
from muster.queueing.queue_view import ROOT
from muster.resources.amounts import Resources


class Reconciler:
    """The work on each gang in a leader's term, and what changes of the cluster bring."""

    def __init__(self, term: Term) -> None:
        self.term = term
        self._takeover = Takeover(term)
        self._touches = Touches(term)
        self._assembling = Assembling(term, self._touches)
        self._set_aside = SetAside(term)
        self._pace = Pace(term.cluster)
        self._counted = term.clock.now()
        self._held: dict[tuple[str, str], float] = {}

    # --- what changes in the cluster ----------------------------------------------------------------------------------

    def subscribe(self) -> None:
        """Hear of all changes of the cluster from now on."""
        cluster = self.term.cluster
        cluster.pods.subscribe(lambda change: self.term.evictions.note(change, self.term.clock.now()))
        cluster.elastic_quotas.subscribe(self._namespace_limited)
        cluster.namespaces.subscribe(self._namespace_changed)
        cluster.queues.subscribe(self.queue_changed)
        GangTriggers(cluster, self.gang_changed, self.gangs_changed).subscribe()

    def prime(self, groups: Iterable[PodGroup] = ()) -> Iterator[None]:
        """The steps, before any decision, that enter all there is; `groups` are listed since the lease is held."""
        self.term.quota_use.begin()
        return self._takeover.steps(groups)

    def gang_changed(self, key: GangKey) -> None:
        """Reconcile a gang that has changed."""
        self._takeover.touched(key)
        self.term.workqueue.add_after(key, self._pace.delay(key, self.term.clock.now()))

    def gangs_changed(self, which: Hashable, keys: Iterable[GangKey | None]) -> None:
        """Reconcile all of these gangs, soon; None stands for one that is not concerned. `which` names them."""
        if self.term.taking_over:
            self._takeover.touched_many(keys)
        else:
            self.term.sweeps.add(which, self._add_each(keys))

    def _add_each(self, keys: Iterable[GangKey | None]) -> Iterator[None]:
        seen: set[GangKey | None] = {None}
        for key in keys:
            if key is not None and key not in seen:
                seen.add(key)
                self.term.workqueue.add(key)
            yield

    def queue_changed(self, change: Change[Queue]) -> None:
        """Take a queue's change into the ledger, and reconcile every gang that it may concern."""
        term, name = self.term, change.object.metadata.name
        before = term.admission.terms(name)
        if change.new is None:
            changed = term.ledger.drop_queue(name)
            term.metrics.forget(name)
            self._held = {key: amount for key, amount in self._held.items() if key[0] != name}
        else:
            changed = term.admission.set_queue(change.new)
        if changed and not term.taking_over:
            term.admission.wake_all()
        if term.admission.terms(name) != before:
            self._may_be_found(term.ledger.tree.with_below(name))
            # Also gangs that are not in the ledger: it may be there for them now, or nothing may be left to wait for.
            self.gangs_changed(None, term.cluster.each_gang())

    def _namespace_changed(self, change: Change[Namespace]) -> None:
        """Queues may be there for its gangs now."""
        self._may_be_found(self.term.admission.lost.queues_of(change.object.metadata.name))

    def _may_be_found(self, queues: Iterable[str]) -> None:
        """Enter the gangs that waited for these queues before a new gang there is decided for."""
        for queue in () if self.term.taking_over else queues:
            enter_lost_gangs(self.term, queue)

    def _namespace_limited(self, namespace: str) -> None:
        """Take another limit of a namespace into the ledger, and reconcile every gang that it may concern."""
        if self.term.quota_use.limit(namespace) and not self.term.taking_over:
            self.term.admission.wake_all()

    # --- what time brings ---------------------------------------------------------------------------------------------

    def tick(self) -> None:
        """Count what others use and what gangs hold, read numbers and refresh messages; called about every second."""
        if self.term.ledger.note_use(self.term.clock.wall()):
            self.term.admission.wake_all()
        self.count_others()
        self.count_held()
        term, queues = self.term, self.term.metrics.queues
        if queues.due(term.clock.now()):
            term.sweeps.add(queues, queues.read(term.ledger, term.clock))
        self.refresh_messages()

    def refresh_messages(self) -> None:
        """Refresh the message of each waiting gang whose words have changed."""
        self.term.admission.refresh_messages()

    def count_others(self) -> None:
        """Count what pods that are not of gangs use of ElasticQuotas."""
        if self.term.quota_use.count():
            self.term.admission.wake_all()

    @property
    def bound_by_nodes(self) -> bool:
        """True if the root queue asks for no more to start than the nodes can hold."""
        return self.term.ledger.tree.settings(ROOT).bound_by_nodes

    def bound(self, nodes: Resources | None) -> None:
        """Let no more start than the nodes can hold, or, with None, whatever the queues allow."""
        self.term.admission.bound(nodes)

    # --- numbers, for any thread --------------------------------------------------------------------------------------

    def kept(self) -> dict[str, int]:
        """The number of entries of each part of this term, by its name."""
        term = self.term
        return {
            "ledger": term.ledger.gangs,
            "memories": term.expectations.gangs,
            "reports": term.reporter.reported,
            "evictions": term.evictions.gangs,
            "nudges": self._touches.nudges.gangs,
            "wakes": self._touches.wakes.gangs,
            "pace": self._pace.gangs,
            "accounts": term.accounting.gangs,
        }

    def reserved(self) -> Mapping[tuple[str, str], int]:
        """The reservations, by the queue of the gang and by what their start rests on."""
        return Counter((queue, one.basis or "none") for queue, one in self.term.ledger.reserved())

    def count_held(self) -> None:
        """Count what gangs have held since the last call."""
        since, self._counted = self._counted, self.term.clock.now()
        for queue, resource, amount in self.term.ledger.held():
            self._held[queue, resource] = self._held.get((queue, resource), 0.0) + amount * (self._counted - since)

    def held(self) -> Mapping[tuple[str, str], float]:
        """The resources that gangs have held since this term began, by queue and resource, in units times seconds."""
        return dict(self._held)

    # --- one gang -----------------------------------------------------------------------------------------------------

    async def reconcile(self, key: GangKey) -> None:
        """Bring one gang a step further; raises ApiError for a write not taken, NotLeaderError without the lease."""
        with self.term.reporter.collecting(key):
            work = self._observe_and_plan(key)
            try:
                self._record(work)
                self._report_notes(work)
                self._wait(work)
                if await self._touches.touch(work):
                    self._observe_again(work)
                await self._carry_out(work)
            finally:
                if work.due < inf:
                    self.term.workqueue.add_after(key, work.requeue_after)

    def _observe_and_plan(self, key: GangKey) -> Work:
        """Observe the gang with what is expected of it, and plan it."""
        term, expects = self.term, self.term.expectations.of(key)
        behind = expects.expire_unseen_write(
            term.clock.now(), shown=shown(term.cluster.pod_group(key), expects.written)
        )
        snapshot = observe_gang(term, key)
        ours = expects.opened | expects.tried
        pods = term.cluster.pods_of(key) if ours else ()
        gated = {pod.metadata.uid for pod in pods if pod.metadata.uid in ours and pod.gated(GATE)}
        term.reporter.forget(expects.update(snapshot, gated, term.clock.now()))
        term.run_times.expect(snapshot, expects)
        work = Work(snapshot, plan_and_enter(term, snapshot), expects, term.clock.now)
        work.again(behind or None)
        return work

    def _record(self, work: Work) -> None:
        """Record how the gang stands now: its run, how often it is reconciled, and what is over."""
        term, snapshot, expects, phase = self.term, work.snapshot, work.expects, work.plan.phase
        ended = term.run_times.follow(snapshot, phase, expects, term.clock.now())
        term.accounting.follow(snapshot, phase, expects, ended)
        assembling = phase is Phase.ASSEMBLING
        needed = snapshot.gang.min_member if assembling and snapshot.gang is not None else 0
        pods = term.cluster.pods_of(work.key)
        self._pace.record(work.key, len(pods) + len(snapshot.unmanaged_pods), term.clock.now(), needed=needed)
        if not assembling:
            self._assembling.over(work.key, expects)
        if not work.admitted:
            # What is no admitted gang keeps no room for what was begun: others may have taken it.
            expects.units = frozenset()
            expects.tried.clear()
        elif expects.requeues and snapshot.open and not snapshot.unplaced and not expects.unready:
            expects.requeues = 0
        work.again(look_again_in(pods, term.clock.wall()))

    def _report_notes(self, work: Work) -> None:
        """Report what is to be known other than the gang's state: deadlines, rivals, pods that do not become ready."""
        term, snapshot, now = self.term, work.snapshot, self.term.clock.now()
        pod_groups.check_kueue(term, work)
        if work.admitted:
            pod_groups.check_run(term, work)
        shut_out = work.plan.lost and work.plan.phase is Phase.FOREIGN
        term.reporter.report_rivals(snapshot, now, shut_out=shut_out)
        self._report_eviction(work)
        slow = work.expects.unready, now, term.ledger.tree.settings(queue_held(snapshot)).unplaced_after
        if term.reporter.report_notes(snapshot, work.expects, too_long(*slow)) or work.plan.changed:
            term.admission.request_refresh(work.key)
        work.again(ready_in(*slow))

    def _report_eviction(self, work: Work) -> None:
        """Report once what Kueue has taken from the gang, or its scheduler for others, when it has said for which."""
        term, snapshot, now = self.term, work.snapshot, self.term.clock.now()
        if snapshot.kueue is not None:
            self._report_kueue_eviction(work, snapshot.kueue)
        loss = term.evictions.loss(work.key, now)
        if not isinstance(loss, Loss):
            work.again(loss)
            return
        # Of others' PodGroups the ledger knows only those that hold something.
        groups = ((one, term.cluster.pod_group(one)) for one in loss.claimants)
        queues = ((one, term.ledger.queue_of(one) or (group.queue if group else "")) for one, group in groups)
        shown = ((one, queue if term.ledger.tree.open_to(queue, snapshot.namespace) else "") for one, queue in queues)
        claimants = list(dict.fromkeys(messages.claimant(snapshot, one, queue) for one, queue in shown))
        waits = term.evictions.wait(work.key, now)
        work.expects.evicted = messages.evicted(loss.pods, loss.requests, claimants, waits, term.clock.wall())
        term.reporter.report_eviction(snapshot, work.expects.evicted, now)

    def _report_kueue_eviction(self, work: Work, kueue: KueueAnswer) -> None:
        """Report once what an admitted gang loses by Kueue's eviction: its pods go a moment later."""
        term, expects, before = self.term, work.expects, work.expects.evicted_by_kueue
        if before is None:
            # A former leader may have reported it.
            before = kueue.evicted_in(expects.reported[1])
        expects.evicted_by_kueue = kueue.evicted
        if (jobs := kueue.evicted - before) and work.snapshot.marked_for == work.snapshot.uid != "":
            words = messages.evicted_by_kueue(work.snapshot, kueue, jobs, term.clock.wall())
            term.reporter.report_eviction(work.snapshot, words, term.clock.now())

    def _wait(self, work: Work) -> None:
        """Request a reconcile for when a wait is over: after evictions, or for a write that was refused."""
        term = self.term
        term.evictions.unplaced(work.key, waits=work.plan.awaits_node)
        evicted = term.evictions.wait(work.key, term.clock.now())
        if evicted > 0 or work.snapshot.pause is not Pause.NONE:
            # The pause that the plan goes by may have ended since it was made.
            work.again(evicted)
        work.again(work.expects.rejected.wait(term.clock.now()) or None)

    def _observe_again(self, work: Work) -> None:
        """Observe and plan again if the gang has changed: a touch takes up to ten seconds where a webhook is away."""
        if (seen := observe_gang(self.term, work.key)) != work.snapshot:
            work.snapshot, work.plan = seen, plan_and_enter(self.term, seen)

    async def _carry_out(self, work: Work) -> None:
        """Take the step of the gang's phase."""
        term, snapshot = self.term, work.snapshot
        match work.plan.phase:
            case Phase.GONE:
                await self._forget(work)
            case Phase.FOREIGN:
                if snapshot.members or (snapshot.unmanaged_pods and snapshot.gang is not None):
                    term.reporter.report(snapshot, *messages.in_the_way(snapshot), term.clock.now())
            case Phase.STALE:
                await pod_groups.delete(term, work)
            case Phase.INVALID:
                await pod_groups.report(term, work, without_units(snapshot.record), GangState.INVALID, snapshot.error)
            case Phase.RELEASED | Phase.NOT_MANAGED:
                await self._release(work)
            case Phase.INACTIVE:
                await self._finish(work)
            case Phase.OUTGROWN:
                await self._queue_again(work)
            case Phase.ASSEMBLING | Phase.WAITING | Phase.ADMITTED | Phase.REQUEUED:
                await self._advance(work)

    async def _advance(self, work: Work) -> None:
        """Take the step of a gang that is to run, or, where a write is not taken, give its room to others."""
        term, expects = self.term, work.expects
        rejected, out = expects.rejected, expects.rejected.out(term.clock.now())
        if rejected.wait(term.clock.now()) > 0:
            await self._set_aside.keep(work, write=not expects.yielded)
            return
        try:
            if out and rejected.part is WrittenPart.GATE:
                await try_gates(term, [member for member in work.snapshot.members if member.gated], expects)
                rejected.come_back()
            else:
                await self._take_step(work)
        except ApiError:
            if rejected.wait(term.clock.now()) > 0:
                work.snapshot = observe_gang(term, work.key)
                await self._set_aside.keep(work, write=True)
            raise
        if out and not rejected.out(term.clock.now()):
            self._set_aside.come_back(work.key)

    async def _take_step(self, work: Work) -> None:
        """Keep the gang's PodGroup as it should be, and take the step of its phase."""
        term, snapshot, expects = self.term, work.snapshot, work.expects
        opened_elsewhere = expects.release_in_progress(snapshot, term.clock.now())
        if work.admitted and opened_elsewhere > 0:
            work.again(opened_elsewhere)
            return
        if not await pod_groups.keep(term, work):
            return
        requeues, opening = work.plan.requeues, work.plan.opening
        match work.plan.phase:
            case Phase.ASSEMBLING:
                await self._assembling.wait(work)
            case Phase.WAITING:
                if await admission.decide(term, work):
                    await open_gates(term, work, tried=True)
            case Phase.REQUEUED:
                await delete_unplaced(term.writer, work.plan.deletes)
            case Phase.ADMITTED if requeues is not None and requeues <= term.clock.now():
                await self._requeue(work)
            case _ if opening is None or not opening.members or await still_admits(term, work.snapshot):
                await open_gates(term, work)

    async def _release(self, work: Work) -> None:
        """Leave a workload alone: its PodGroup asks for nothing, and pods that are held go as there is room."""
        term, snapshot, expects, opening = self.term, work.snapshot, work.expects, work.plan.opening
        rejected, now = expects.rejected, term.clock.now()
        if rejected.out(now) and rejected.wait(now) <= 0:
            self._set_aside.come_back(work.key)
            return
        record = expects.record_unmanaged(snapshot)
        state, message = messages.left_alone(snapshot)
        if work.plan.lost and snapshot.members:
            found = queue_not_found(queue_held(snapshot), work.key.namespace)
            state, message = found.state, found.message
        elif snapshot.members:
            await pod_groups.ensure(term, work, relaxed_pod_group(snapshot))
            if opening is not None:
                if opening.members:
                    await take_off(term, opening.members, expects)
                message += messages.beyond(opening, {}, work.plan.on_hold)
            message += f"; {rejected.words}" if rejected.words else ""
        # A workload that asks for nothing, and has nothing of muster's, is left alone.
        if work.snapshot.pod_group is not None or snapshot.gang is not None or work.plan.lost:
            await pod_groups.report(term, work, record, state, message)

    async def _requeue(self, work: Work) -> None:
        """Give back a place that the gang cannot use, as its workload asks for: the mark goes first, then its pods.

        Its operator replaces them, held by the gate, and the gang queues again behind those that waited since.
        """
        term, snapshot, expects = self.term, work.snapshot, work.expects
        asked = snapshot.decoded.metadata.annotations[REQUEUE_AFTER].partition(",")[0] if snapshot.decoded else ""
        asked = f"{2**expects.requeues} times {asked}" if expects.requeues else asked
        expects.requeues = min(expects.requeues + 1, DOUBLINGS)
        message = messages.given_back(snapshot, asked, {uid: one.reason for uid, one in expects.unready.items()})
        record = AdmissionRecord(requeued_at=requeued_at(snapshot, term.clock.wall()))
        await pod_groups.write_record(term, work, record, GangState.REQUEUED, message)
        expects.record = record
        work.has_written()
        term.reporter.report(work.snapshot, GangState.REQUEUED, message, term.clock.now())
        await delete_unplaced(term.writer, plan_and_enter(term, work.snapshot).deletes)

    async def _queue_again(self, work: Work) -> None:
        """Take the mark off a gang that has outgrown it: without that it waits, for what it asks for now."""
        work.expects.record = record = AdmissionRecord(requeued_at=work.snapshot.record.requeued_at)
        await pod_groups.report(self.term, work, record, GangState.REQUEUED, messages.too_large(work.snapshot))

    async def _finish(self, work: Work) -> None:
        """A finished or suspended workload gives its mark back, so that it queues again when it resumes."""
        term, snapshot = self.term, work.snapshot
        work.expects.record = AdmissionRecord()
        if snapshot.workload is None:
            return
        state, message = messages.at_rest(snapshot.workload, snapshot.kueue)
        if snapshot.pod_group is None:
            # What Kueue suspends from the beginning has no pods, and no PodGroup for them.
            if snapshot.kueue is not None and state is not GangState.FINISHED:
                report_kueue_wait(term, work, state, message)
            return
        if not annotations_match(snapshot, AdmissionRecord(), state, message):
            await pod_groups.report(term, work, AdmissionRecord(), state, message)
            # Without the mark its place is free.
            work.snapshot = snapshot = observe_gang(term, work.key)
            plan_and_enter(term, snapshot)
        if snapshot.pod_group is not None and snapshot.pod_group.status.phase in RESERVING:
            await pod_groups.ensure(term, work, unreserved(snapshot, desired(snapshot, admitted=True)))

    async def _forget(self, work: Work) -> None:
        """Clean up after a gang that is gone."""
        term, key, pods = self.term, work.key, self.term.cluster.pods_of(work.key)
        # Its time limit, say, may be weeks away.
        term.workqueue.drop_later(key)
        work.due = inf
        work.again(look_again_in(pods, term.clock.wall()))
        await pod_groups.leave(term, work, pods)
        term.reporter.forget(term.expectations.forget(key, ending=bool(pods)).workload)
        self._touches.forget(key)
        term.evictions.forget(key)
        self._pace.forget(key)
        self._set_aside.forget(key)
        term.admission.forget(key)
        if work.snapshot.group_owner is not None:
            term.reporter.forget(work.snapshot.group_owner.uid)
