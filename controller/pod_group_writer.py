"""Writes PodGroups and their messages; less and less often where others keep changing them."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace

from controller.fenced_writes import Writer
from controller.history import RunTimes
from controller.memory import Memory
from controller.refused import Part, version_of
from controller.reports import Reporter, annotations_of, says
from muster.kube.errors import ApiError
from muster.model.gang_states import BEFORE_ADMISSION, GangState
from muster.model.objects import ObjectMeta, PodGroup, decode
from muster.observe import messages
from muster.observe.pod_groups import WORKLOAD_MANAGER, Wanted, applicable, up_to_date
from muster.observe.resources import resource_of_group
from muster.observe.view import Mark, View
from muster.queueing.ledger import GangKey

logger = logging.getLogger(__name__)

# Seconds after which a PodGroup that seemed to be nobody's, and is somebody's, is looked at again.
_BEHIND = 5.0


class PodGroupWriter:
    """Keeps the PodGroups as they should be; `look_again` is called with a gang and the seconds until it is due.

    `alive` is asked whether a PodGroup is still somebody's (`muster.observe.alive`). All of it raises ApiError for a
    write that was not taken, and NotLeaderError. `clock` never goes back.
    """

    def __init__(
        self,
        writer: Writer,
        reporter: Reporter,
        look_again: Callable[[GangKey, float], None],
        *,
        run_times: RunTimes,
        alive: Callable[[ObjectMeta], Awaitable[bool]],
        clock: Callable[[], float],
    ) -> None:
        self._run_times = run_times
        self._alive = alive
        self._writer = writer
        self._reporter = reporter
        self._look_again = look_again
        self._clock = clock

    async def ensure(self, view: View, memory: Memory, wanted: Wanted) -> View:
        """Have the PodGroup be as it should."""
        if view.pod_group is not None and up_to_date(view.pod_group, wanted):
            return view
        manifest, now = wanted.manifest, self._clock()
        wait = memory.repairs.wait(manifest, now)
        if wait > 0:
            self._look_again(view.key, wait)
            return view
        group = await self._apply(wanted, view.pod_group)
        if view.pod_group is None and not up_to_date(group, wanted):
            # Volcano's own webhook sends new ones from queue "default" to the namespace's; what is changed it lets be.
            group = await self._apply(wanted, group)
        memory.repairs.note(manifest, now)
        memory.written = group
        return replace(view, pod_group=group)

    async def _apply(self, wanted: Wanted, group: PodGroup | None) -> PodGroup:
        body = applicable(wanted.manifest, group)
        resource = resource_of_group(wanted.group)
        return decode(await self._writer.apply(resource, body, field_manager=WORKLOAD_MANAGER), type(wanted.group))

    async def report(self, view: View, memory: Memory, mark: Mark, state: GangState, message: str) -> None:
        """Bring annotations and events up to date; nothing is written when nothing changed."""
        if view.pod_group is not None and view.ours and not says(view, mark, state, message):
            await self.write(view, memory, mark, state, message)
        self._reporter.tell(view, state, message, self._clock())

    async def write(self, view: View, memory: Memory, mark: Mark, state: GangState, message: str) -> View:
        """Have the PodGroup say what was decided, and why."""
        words, now = annotations_of(mark, state, message), self._clock()
        # Whatever becomes of the write: a gang has its turn for other numbers once, and they are written until they are
        # there.
        memory.said = str(state), message
        wait = memory.words.wait(words, now)
        if wait > 0:
            self._look_again(view.key, wait)
            return view
        await self.mark(view, memory, mark, state, message)
        memory.words.note(words, now)
        return replace(view, pod_group=memory.written)

    async def mark(self, view: View, memory: Memory, mark: Mark, state: GangState, message: str) -> None:
        """Write it at once, with the gang's estimated run time, and remember where that is not taken."""
        self._run_times.expect(view, memory, renew=state in BEFORE_ADMISSION)
        mark = replace(mark, runs_about=memory.runs_about if mark.admitted or state in BEFORE_ADMISSION else "")
        try:
            memory.written = await self._reporter.mark(view, mark, state, message)
        except ApiError as error:
            about, words = version_of(view.pod_group), messages.unmarked(view, error)
            memory.refused.note(Part.MARK, about, words, error, self._clock())
            raise
        memory.refused.taken(Part.MARK)

    async def delete(self, view: View, *, gone: bool = False) -> None:
        """Delete a PodGroup whose workload is gone, as the apiserver confirms; its deletion reconciles the gang.

        Of plain pods that this leader has seen, and whose watch says that they are `gone`, it need not: the apiserver
        would look through all pods of the namespace for each gang that ends.
        """
        if view.pod_group is None or view.pod_group.metadata.deletion_timestamp:
            return
        meta = view.pod_group.metadata
        if not gone and await self._alive(meta):
            # A watch is behind, or another workload has the name as well: whoever it is that runs goes on.
            self._look_again(view.key, _BEHIND)
            return
        logger.info("%s: deleting the PodGroup", view.key, extra={"event": "podgroup.deleted"})
        await self._writer.delete(resource_of_group(view.pod_group), meta.name, meta.namespace, uid=meta.uid)
