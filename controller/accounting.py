"""The accounts of a leader's term: follows what each gang holds and waits for, and how its admission or its wait ends.

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
from muster.planning.candidate import maker
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
# What becomes of such a gang counts from when it was first seen: it may leave the line and come back.
_MAY_WAIT = (Phase.ASSEMBLING, Phase.WAITING, Phase.REQUEUED)


class _Use(NamedTuple):
    """Amounts that a gang holds and waits for since a time; when it was admitted, and when its wait began, or None."""

    since: float
    scope: Scope
    held: Mapping[str, float]
    waited: Mapping[str, float]
    idle: bool
    admitted: float | None
    asked: float | None


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

    @property
    def gangs(self) -> int:
        """The number of gangs that it follows."""
        return len(self._uses)

    def steps(self) -> Iterator[None]:
        """Add what all gangs have held until now, a gang or a row in a step; nothing else is added until `go_on`."""
        self.go_on()
        if (accounts := self._accounts) is None:
            return
        self._cut = accounts.until = self._now()
        for key in list(self._uses):
            if (use := self._uses.get(key)) is not None:
                self._uses[key] = self._count(accounts, use, self._cut)
            yield
        yield from accounts.encode()

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
        if old is None and not (held or waited or phase in _MAY_WAIT):
            return
        scope = old.scope if old is not None and snapshot.decoded is None else self._scope(accounts, snapshot)
        scope = scope._replace(queue=queue or scope.queue)
        idle = bool(held) and not _runs(snapshot)
        requeued = seconds_of(snapshot.record.requeued_at or expects.record.requeued_at)
        # When the first pod was made is asked of all pods: not of those of a gang that stays admitted.
        stays = old is not None and admitted is not None and admitted == old.admitted
        begun = None if stays else max((one for one in (snapshot.since, requeued) if one is not None), default=None)
        asked = old.asked if old is not None and old.asked is not None else begun
        if old is None:
            new = admitted is not None and admitted > self._begin
            # A gang that was admitted since then has waited before.
            before = ({}, waited or held) if new else (held, waited)
            since = admitted if admitted is not None and not new else begun
            since = min(max(now if since is None else since, self._begin), now)
            old = _Use(since, scope, *before, idle, None if new else admitted, asked)
        turn = now
        if admitted is not None and admitted != old.admitted:
            turn = min(max(admitted, old.since), now)
            wait = max(admitted - asked, 0.0) if asked is not None else 0.0
            self._add(turn, partial(accounts.add_wait, scope, wait, turn))
        if old.admitted is not None and admitted != old.admitted:
            asked = begun
        if (how := _end_of(old, admitted, snapshot, phase, ended)) is not None:
            self._add(now, partial(accounts.add_end, old.scope, how, now))
        new_use = _Use(turn, scope, held, waited, idle, admitted, None if admitted is not None else asked)
        if new_use[1:] != old[1:]:
            self._count(accounts, old, turn)
            old = new_use
        if held or waited or admitted is not None or phase in _MAY_WAIT:
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


def _end_of(
    use: _Use, admitted: float | None, snapshot: GangSnapshot, phase: Phase, ended: Outcome | None
) -> Outcome | None:
    """How a gang ended: its admission, or its wait if it was deleted; None for one that left muster's hands."""
    if admitted == use.admitted:
        return "deleted" if phase is Phase.GONE and use.waited and admitted is None else None
    if use.admitted is None or ended is not None:
        return ended if use.admitted is not None else None
    how = _ENDS.get(phase)
    by_kueue = snapshot.kueue is not None and not snapshot.kueue.admitted
    evicted = (how == "suspended" and by_kueue) or (how == "requeued" and snapshot.pause is not Pause.NONE)
    return "evicted" if evicted else how
