"""Keeps the PodGroup of a gang as its phase wants it: whether there is to be one, and what it asks for.

`controller.pod_group_writer` writes it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace

from controller.admission_queue import AdmissionQueue
from controller.assembling import SILENCE
from controller.deadlines import Deadlines
from controller.memory import Memory
from controller.pod_group_writer import PodGroupWriter
from controller.refused import Part, manifest_of
from controller.reports import Reporter
from muster.kube.errors import ApiError
from muster.model.gang_states import GangState
from muster.model.objects import Pod
from muster.observe import messages
from muster.observe.admitted_terms import carried, terms_of
from muster.observe.context import EntryContext
from muster.observe.ledger_entry import Standing
from muster.observe.phases import Phase
from muster.observe.pod_groups import desired, unreserved, while_assembling
from muster.observe.view import Mark, View
from muster.queueing.ledger import GangKey


class PodGroupKeeper:
    """The PodGroups of gangs; `context` gives what is known of a gang beside its view.

    `clock` never goes back, `wall` is the time of day; both in seconds.
    """

    def __init__(
        self,
        admission_queue: AdmissionQueue,
        group_writer: PodGroupWriter,
        reporter: Reporter,
        *,
        deadlines: Deadlines,
        context: Callable[[GangKey], EntryContext],
        clock: Callable[[], float],
        wall: Callable[[], float],
    ) -> None:
        self._admission_queue = admission_queue
        self._group_writer = group_writer
        self._reporter = reporter
        self._deadlines = deadlines
        self._context = context
        self._clock = clock
        self._wall = wall

    async def keep(self, view: View, standing: Standing, memory: Memory) -> View | None:
        """The view with its PodGroup as it should be; None where there is none, and is to be none yet.

        Raises ApiError for a write that was not taken, and NotLeaderError.
        """
        if view.pod_group is None and not self._may_be_made(view, standing, memory):
            return None
        try:
            admitted = standing.phase is Phase.ADMITTED
            wanted = standing.wanted or desired(view, admitted=admitted)
            if standing.phase is Phase.ASSEMBLING:
                wanted = while_assembling(view, wanted)
            memory.terms = carried(wanted.group.spec, terms_of(view) if admitted else None)
            if standing.soft or standing.lost or memory.assembling_for(self._clock()) >= SILENCE:
                wanted = unreserved(view, wanted)
            view = await self._group_writer.ensure(replace(view, terms=memory.terms), memory, wanted)
        except ApiError as error:
            if error.conflict:
                # Another PodGroup of that name, or none any more: the watch will tell.
                memory.written = None
            if error.refused and self._is_for_its_queue(view, standing, memory):
                if standing.phase is Phase.WAITING:
                    return None
            else:
                words = messages.without_pod_group(view, error)
                memory.refused.note(Part.POD_GROUP, manifest_of(view), words, error, self._clock())
            raise
        memory.refused.taken(Part.POD_GROUP)
        return view if view.pod_group is not None else None

    async def leave(self, view: View, pods: Collection[Pod], memory: Memory) -> None:
        """Let go of the PodGroup of a gang that is gone, of which these pods are still being deleted.

        The PodGroup of a workload is deleted with its owner. The PodGroup of plain pods has no owner: it is deleted
        with the last pod that has a node, and waits for no others, for they hold nothing.
        """
        if not view.ours or view.pod_group is None or view.group_owner is not None:
            return
        goes = all(pod.metadata.deletion_timestamp and not pod.spec.node_name for pod in pods)
        # Kubernetes keeps its own PodGroups while pods name them, those of the next gang of the name among them.
        at_once = goes and not view.pod_group.metadata.finalizers
        if view.mark.admitted and not at_once and not view.members:
            # Its room is given away, and pods that come while the last of these end are to wait as any others do.
            await self._group_writer.write(view, memory, Mark(), GangState.FINISHED, "its pods are being deleted")
        if at_once or not pods:
            await self._group_writer.delete(view, gone=memory.plain_pods)

    def _may_be_made(self, view: View, standing: Standing, memory: Memory) -> bool:
        """It is made when the first held pod is there, never on sight of the workload.

        And not in a queue with others below it (one there stops the whole cluster under Volcano's capacity plugin), nor
        where there is none for it: Volcano would keep room for it in a queue that is not its own.
        """
        waits = view.members and standing.phase is not Phase.ADMITTED
        refusal = self._admission_queue.refusal(view, self._context(view.key)) if waits else None
        if refusal is None or refusal.state not in (GangState.QUEUE_NOT_LEAF, GangState.QUEUE_NOT_FOUND):
            return bool(view.members)
        # Its time runs, too.
        message = refusal.message + self._deadlines.heed(view, refusal.state, memory, self._wall())
        self._reporter.tell(view, refusal.state, message, self._clock())
        return False

    def _is_for_its_queue(self, view: View, standing: Standing, memory: Memory) -> bool:
        """Whether the PodGroup was refused for its queue alone (by Volcano's own webhook), which is said then.

        A gang that waits stays in line for it, and comes again when the queue has changed.
        """
        decision = self._admission_queue.refusal(view, self._context(view.key))
        if decision is None or decision.state not in (GangState.QUEUE_NOT_FOUND, GangState.QUEUE_CLOSED):
            return False
        message = decision.message
        if standing.phase is Phase.WAITING:
            message += self._deadlines.heed(view, decision.state, memory, self._wall())
        self._reporter.tell(view, decision.state, message, self._clock())
        return True
