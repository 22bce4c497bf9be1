"""Gangs that wait in no line because the apiserver does not take what is written for them.

Their room goes to others; `muster.planning.expectations` says when they come back.
"""

from __future__ import annotations

from contextlib import suppress

from controller.gangs import enter, observe_gang, plan_and_enter
from controller.reports import annotations_match
from controller.term import Term
from controller.work import Work
from muster.kube.errors import ApiError
from muster.model.gang_states import GangState
from muster.planning import messages
from muster.planning.expectations import WrittenPart, version_of
from muster.queueing.ledger import GangKey


class SetAside:
    """Gives the room of such gangs to others, reports why, and brings them back."""

    def __init__(self, term: Term) -> None:
        self._term = term
        # Those for which writes fail: the apiserver may fail for all.
        self._failing: set[GangKey] = set()

    async def keep(self, work: Work, *, write: bool) -> None:
        """Give back the gang's room, and report why: to `write` also on its PodGroup, where that is taken."""
        term, snapshot, expects = self._term, work.snapshot, work.expects
        if (doubt := expects.yield_room(snapshot, term.clock.now())) > 0:
            work.again(doubt)
            return
        if expects.refused.fails:
            self._failing.add(snapshot.key)
        state, message = GangState.INVALID, messages.set_aside(snapshot, expects.refused.words)
        record = snapshot.record if snapshot.open else expects.record
        plan_and_enter(term, snapshot)
        if (
            write
            and snapshot.pod_group is not None
            and snapshot.ours
            and not annotations_match(snapshot, record, state, message)
        ):
            # It may be the very write that is not taken.
            with suppress(ApiError):
                expects.written = await term.reporter.record(snapshot, record, state, message)
                if expects.refused.part is WrittenPart.MARK:
                    expects.refused.about = version_of(expects.written)
                plan_and_enter(term, observe_gang(term, snapshot.key))
        term.reporter.report(snapshot, state, message, term.clock.now())

    def come_back(self, key: GangKey) -> None:
        """Put the gang back in line, and with it all for which the apiserver has failed: their order holds."""
        self._failing.discard(key)
        back = (key, *self._failing)
        self._failing.clear()
        for one in back:
            self._term.expectations.of(one).refused.come_back()
            enter(self._term, one)
        for one in back:
            self._term.workqueue.add(one)

    def forget(self, key: GangKey) -> None:
        """Drop what is known of a gang that is gone."""
        self._failing.discard(key)
