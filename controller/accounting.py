"""The accounts of a leader's term: follows what each gang holds, runs and waits for, and how its admission ends.

What a gang holds is added when it changes, and for all gangs before each write. What changes between these steps and
the write is added after it: what is stored counts up to its `until`, and nothing of later. The next leader goes on
from there for the gangs that still hold or wait, so nothing counts twice.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import NamedTuple

from controller.delays import Clock
from muster.gangs.accounts import Accounts, Outcome, Scope
from muster.model.times import seconds_of
from muster.planning.candidate import maker, waiting_since
from muster.planning.expectations import Expectations
from muster.planning.phase import Phase
from muster.planning.snapshot import GangSnapshot, Pause
from muster.queueing.ledger import GangKey, Ledger
from muster.queueing.usage import amounts_of

_UNIT = 10**9
_ENDS: Mapping[Phase, Outcome] = {
    Phase.GONE: "deleted",
    Phase.STALE: "deleted",
    Phase.FOREIGN: "deleted",
    Phase.INACTIVE: "suspended",
    Phase.ASSEMBLING: "requeued",
    Phase.WAITING: "requeued",
    Phase.OUTGROWN: "requeued",
    Phase.REQUEUED: "requeued",
}


class _Use(NamedTuple):
    """What a gang holds and waits for since a time, and when it was admitted; None while it is not."""

    since: float
    scope: Scope
    held: Mapping[str, float]
    waited: Mapping[str, float]
    idle: bool
    admitted: float | None


class Accounting:
    """Follows all gangs; without `accounts` it follows none."""

    def __init__(self, accounts: Accounts | None, ledger: Ledger, clock: Clock) -> None:
        self._accounts = accounts
        self._ledger = ledger
        self._now = clock.now
        # Former leaders have counted up to here.
        self._begin = (accounts.until if accounts is not None else 0.0) or clock.now()
        self._uses: dict[GangKey, _Use] = {}
        # Between `steps` and `go_on`: the time up to which the accounts count, and what is to be added later.
        self._cut: float | None = None
        self._later: list[Callable[[], None]] = []

    def steps(self) -> Iterator[None]:
        """Add what all gangs have held until now, a gang in a step; nothing else is added until `go_on`."""
        self.go_on()
        if (accounts := self._accounts) is None:
            return
        self._cut = accounts.until = self._now()
        for key in list(self._uses):
            if (use := self._uses.get(key)) is not None:
                self._uses[key] = self._count(accounts, use, self._cut)
            yield

    def go_on(self) -> None:
        """Add what has changed since `steps`: the accounts are written."""
        self._cut, later, self._later = None, self._later, []
        for add in later:
            add()

    def follow(self, snapshot: GangSnapshot, phase: Phase, expects: Expectations, ended: Outcome | None) -> None:
        """Note what the gang holds and waits for now; `ended` is how its workload ended, None where it has not."""
        accounts, key, now = self._accounts, snapshot.key, self._now()
        if accounts is None:
            return
        queue, held, waited = self._amounts(key)
        admitted = None
        if phase is Phase.ADMITTED:
            marked = snapshot.record if snapshot.marked_for == snapshot.uid else expects.record
            admitted = seconds_of(marked.admitted_at)
        old = self._uses.get(key)
        if old is None and not (held or waited):
            return
        scope = old.scope if old is not None and snapshot.decoded is None else self._scope(accounts, snapshot)
        scope = scope._replace(queue=queue or scope.queue)
        idle = bool(held) and not _runs(snapshot)
        turn, asked = (
            now,
            seconds_of(waiting_since(snapshot, snapshot.record.requeued_at or expects.record.requeued_at)),
        )
        if old is None:
            # What was admitted by now has waited before.
            since = asked if asked is not None and (admitted is None or admitted > self._begin) else admitted
            since = min(max(since if since is not None else now, self._begin), now)
            new = admitted is None or admitted > self._begin
            old = _Use(
                since, scope, {} if new else held, (waited or held) if new else {}, idle, None if new else admitted
            )
        if admitted != old.admitted:
            if old.admitted is not None and (how := ended or _end_of(snapshot, phase)) is not None:
                self._add(now, partial(accounts.add_end, old.scope, how, now))
            if admitted is not None:
                turn = min(max(admitted, old.since), now)
                wait = max(admitted - asked, 0.0) if asked is not None else 0.0
                self._add(turn, partial(accounts.add_wait, scope, wait, turn))
        new_use = _Use(turn, scope, held, waited, idle, admitted)
        if new_use[1:] != old[1:]:
            self._count(accounts, old, turn)
            old = new_use
        if held or waited or admitted is not None:
            self._uses[key] = old
        else:
            self._uses.pop(key, None)

    def _amounts(self, key: GangKey) -> tuple[str, dict[str, float], dict[str, float]]:
        """The queue of the gang, and what it holds and waits for, in base units."""
        queue, sums = "", ({}, {})  # type: tuple[str, tuple[dict[str, float], dict[str, float]]]
        for one in key.all:
            claim, candidate = self._ledger.claim(one), self._ledger.candidate(one)
            for found, amounts, to in (
                (claim, claim.amounts if claim else (), sums[0]),
                (candidate, amounts_of(candidate.need) if candidate else (), sums[1]),
            ):
                queue = queue or (found.queue if found is not None else "")
                for name, amount in amounts:
                    to[name] = to.get(name, 0.0) + amount / _UNIT
        return queue, *sums

    def _scope(self, accounts: Accounts, snapshot: GangSnapshot) -> Scope:
        labels = snapshot.decoded.metadata.labels if snapshot.decoded is not None else {}
        values = tuple(labels.get(key, "") for key in accounts.label_keys)
        return Scope("", "", snapshot.key.namespace, "/".join(maker(snapshot)), values)

    def _count(self, accounts: Accounts, use: _Use, until: float) -> _Use:
        """Add what the gang has held and waited for since it was last counted."""
        if (cut := self._cut) is not None and use.since < cut < until:
            use = self._count(accounts, use, cut)
        if until <= use.since:
            return use
        used = partial(accounts.add, use.scope, use.since, until, idle=use.idle)
        self._add(until, partial(used, held=use.held, waited=use.waited))
        return use._replace(since=until)

    def _add(self, at: float, add: Callable[[], None]) -> None:
        if self._cut is not None and at > self._cut:
            self._later.append(add)
        else:
            add()


def _runs(snapshot: GangSnapshot) -> bool:
    """True if any pod of the gang runs, also one that is being deleted."""
    if snapshot.leaving or snapshot.former or snapshot.left or snapshot.running:
        return True
    return any(member.pod.status.phase == "Running" for member in snapshot.members)


def _end_of(snapshot: GangSnapshot, phase: Phase) -> Outcome | None:
    """How the admission of a gang ended whose workload has not ended; None for one that left muster's hands."""
    how = _ENDS.get(phase)
    by_kueue = snapshot.kueue is not None and not snapshot.kueue.admitted
    evicted = (how == "suspended" and by_kueue) or (how == "requeued" and snapshot.pause is not Pause.NONE)
    return "evicted" if evicted else how
