"""Gangs that stand in no line because the apiserver does not take what is written for them (`controller.refused`)."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from controller.memory import Memories, Memory
from controller.refused import Part, version_of
from controller.reports import Reporter, says
from muster.kube.errors import ApiError
from muster.kube.workqueue import WorkQueue
from muster.model.gang_states import GangState
from muster.observe import messages
from muster.observe.ledger_entry import Standing
from muster.observe.view import View
from muster.queueing.ledger import GangKey


class SetAside:
    """Gives the room of such gangs to others, says why, and brings them back.

    `see` gives a gang as it is there now, `stand` and `enter` enter it into the ledger, the second without waking
    others. `clock` never goes back.
    """

    def __init__(
        self,
        queue: WorkQueue[GangKey],
        memories: Memories,
        reporter: Reporter,
        *,
        see: Callable[[GangKey], View],
        stand: Callable[[View], Standing],
        enter: Callable[[GangKey], None],
        clock: Callable[[], float],
    ) -> None:
        self._queue = queue
        self._memories = memories
        self._reporter = reporter
        self._see = see
        self._stand = stand
        self._enter = enter
        self._clock = clock
        # Those for which writes fail: the apiserver may fail for all.
        self._failing: set[GangKey] = set()

    async def keep(self, view: View, memory: Memory, *, write: bool) -> None:
        """Give back the gang's room, and say why: to `write` also on its PodGroup, where that is taken."""
        if (doubt := memory.set_aside(view, self._clock())) > 0:
            self._queue.add_after(view.key, doubt)
            return
        if memory.refused.fails:
            self._failing.add(view.key)
        state, message = GangState.INVALID, messages.set_aside(view, memory.refused.words)
        mark = view.mark if view.open else memory.mark
        self._stand(view)
        if write and view.pod_group is not None and view.ours and not says(view, mark, state, message):
            # It may be the very write that is not taken.
            with suppress(ApiError):
                memory.written = await self._reporter.mark(view, mark, state, message)
                if memory.refused.part is Part.MARK:
                    memory.refused.about = version_of(memory.written)
                self._stand(self._see(view.key))
        self._reporter.tell(view, state, message, self._clock())

    def come_back(self, key: GangKey) -> None:
        """Have the gang stand in line again, and with it all for which the apiserver has failed: their order holds."""
        self._failing.discard(key)
        back = (key, *self._failing)
        self._failing.clear()
        for one in back:
            self._memories.of(one).refused.come_back()
            self._enter(one)
        for one in back:
            self._queue.add(one)

    def forget(self, key: GangKey) -> None:
        """Drop what is known of a gang that is gone."""
        self._failing.discard(key)
