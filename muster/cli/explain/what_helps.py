"""Changes that would let a waiting gang start now, for `muster explain --what-would-help`.

Each answer is a decision of the ledger itself on a copy that differs in one thing: the gang is smaller, waits in
another queue or ends in time, or other gangs have ended. There are few questions, so that not everything that would
help is found.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from muster.cli.ui import counted
from muster.gangs.intent import LONGEST_RUN
from muster.gangs.roles import Role
from muster.model.names import RUNS_AT_MOST
from muster.model.texts import listed
from muster.model.times import duration_text
from muster.queueing.entries import Candidate, EndKind, EntryKey, Run
from muster.queueing.ledger import GangKey, Ledger
from muster.resources.amounts import minus, positive, times

NOTHING_HELPS = "nothing was found: neither fewer pods, nor another queue, nor a time limit, nor the end of a few gangs"
# Questions of all kinds together, then of each: the rest is for the ends of other gangs.
_QUESTIONS, _OF_ROLES, _OF_QUEUES = 20, 7, 4
_ROLES, _GANGS = 2, 64
_BOUNDS = 3
_MINUTE = 60.0


def what_helps(
    ledger: Ledger, key: GangKey, now: float, roles: Sequence[Role], namespace: Mapping[str, str]
) -> list[dict[str, Any]]:
    """Changes that would let a gang start now, each with its words; none for one that does not wait, or may start.

    `namespace` are the labels of its namespace. The ledger has the gangs of all namespaces.
    """
    waits = ledger.candidate(key)
    decision = ledger.decide(key, now)
    if waits is None or decision is None or decision.fits:
        return []
    questions = _Questions(ledger, waits, now)
    return [*questions.bounds(), *questions.fewer(roles), *questions.queues(namespace), *questions.ends()]


@dataclass(slots=True)
class _Questions:
    ledger: Ledger
    waits: Candidate
    now: float
    left: int = _QUESTIONS

    def starts(self, waits: Candidate | None = None, without: Iterable[EntryKey] = ()) -> bool:
        """True if the gang starts as this candidate, once those entries are gone; False after the last question."""
        if not self.left:
            return False
        self.left -= 1
        copy = self.ledger.copy()
        for key in without:
            copy.forget(key)
        if waits is not None:
            copy.wait(waits)
        decision = copy.decide(self.waits.key, self.now)
        return decision is not None and decision.fits

    def first(self, most: int, helps: Callable[[int], bool]) -> int | None:
        """The least number from 1 that helps, where more helps no less; None where that many do not."""
        if most < 1 or not helps(most):
            return None
        low, high = 1, most
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if helps(middle) else (middle + 1, high)
        return high

    def bounds(self) -> Iterator[dict[str, Any]]:
        """The longest time limit with which reservations let it pass."""
        kind, seconds = EndKind.SAID, LONGEST_RUN
        for _ in range(_BOUNDS):
            trial = replace(self.waits, run=Run(seconds, kind))
            outcome = self.ledger.outcome(self.waits.queue, self.now)
            reservation = outcome.blocking(trial, trial.amounts)
            if reservation is None:
                break
            if reservation.kind < kind:
                kind = reservation.kind
            elif self.now + seconds > reservation.start:
                seconds = (reservation.start - self.now) // _MINUTE * _MINUTE
            else:
                return
        if _MINUTE <= seconds < LONGEST_RUN and self.starts(replace(self.waits, run=Run(seconds, kind))):
            length = duration_text(seconds)
            limited = f"with {RUNS_AT_MOST}: {length}"
            enforced = f"with a limit such as activeDeadlineSeconds that ends it within {length}"
            text = f"{enforced if kind is EndKind.ENFORCED else limited} it starts now"
            yield {"by": "bound", "seconds": seconds, "enforced": kind is EndKind.ENFORCED, "text": text}

    def fewer(self, roles: Sequence[Role]) -> Iterator[dict[str, Any]]:
        """Fewer pods of a role with which the gang starts, down to one."""
        large = [role for role in roles if role.minimum > 1]
        large.sort(key=lambda role: max((amount.nano for amount in role.whole.values()), default=0), reverse=True)
        stop = self.left - _OF_ROLES
        for role in large[:_ROLES]:
            fewer = self.first(role.minimum - 1, partial(self._less, role, stop))
            if fewer is not None:
                leaves = role.minimum - fewer
                text = f"with {fewer} fewer {role.name} ({leaves} of {role.minimum}) it starts now"
                yield {"by": "fewer", "role": role.name, "fewer": fewer, "leaves": leaves, "text": text}

    def _less(self, role: Role, stop: int, fewer: int) -> bool:
        need = positive(minus(self.waits.need, times(role.requests, fewer)))
        return self.left > stop and self.starts(replace(self.waits, need=need))

    def queues(self, namespace: Mapping[str, str]) -> Iterator[dict[str, Any]]:
        """The queues open to its namespace in which it starts."""
        asked = 0
        for name in sorted(set(self.ledger.tree.names_for(namespace)) - {self.waits.queue}):
            trial = replace(self.waits, queue=name, passed_since=None, drain_after=None)
            # What is not in use has no pass yet: that it can never start there is known without one.
            if self.ledger.refusal(trial, self.now) is not None or self._lacks(trial):
                continue
            if asked == _OF_QUEUES:
                return
            asked += 1
            if self.starts(trial):
                yield {"by": "queue", "queue": name, "text": f"in queue {name} it starts now"}

    def _lacks(self, trial: Candidate) -> bool:
        place = self.ledger.tree.place(trial.queue)
        return place is None or any(
            trial.need.get(name, amount) > amount
            for level in place.levels
            for name, amount in minus(level.limit, self.ledger.used(level.queue)).items()
        )

    def ends(self) -> Iterator[dict[str, Any]]:
        """The fewest gangs that would have to end, found by taking the largest first."""
        holders = self._holders()
        gangs = sorted(holders, key=lambda gang: (-holders[gang][0], gang))[:_GANGS]

        def start(ended: Sequence[GangKey]) -> bool:
            return self.starts(without=[entry for gang in ended for entry in holders[gang][1]])

        needed = self.first(len(gangs), lambda number: start(gangs[:number]))
        if needed is None:
            return
        chosen = gangs[:needed]
        for gang in gangs[: needed - 1]:
            rest = [one for one in chosen if one != gang]
            if start(rest):
                chosen = rest
        own = [str(gang.name) for gang in chosen if gang.namespace == self.waits.key.namespace]
        others = len(chosen) - len(own)
        words = [listed(own)] if own else []
        words += [f"{counted(others, 'gang')} of others"] if others else []
        text = f"it starts when {' and '.join(words)} {'has' if len(chosen) == 1 else 'have'} ended"
        yield {"by": "ends", "gangs": own, "others": others, "text": text}

    def _holders(self) -> dict[GangKey, tuple[float, list[EntryKey]]]:
        """The gangs that hold what it lacks, each with its size as parts of the need, and its entries."""
        outcome, path = self.ledger.outcome(self.waits.queue, self.now), self.ledger.tree.path(self.waits.queue)
        lacking = outcome.lacking(self.waits, self.waits.amounts) or {level: list(self.waits.need) for level in path}
        names = {name for each in lacking.values() for name in each}
        needs = {name: amount for name, amount in self.waits.amounts if name in names}
        below = {queue for level in lacking for queue in self.ledger.tree.with_below(level)}
        sizes: dict[GangKey, float] = {}
        entries: dict[GangKey, list[EntryKey]] = {}
        for queue in below.intersection(self.ledger.queues_in_use()):
            for key, claim in self.ledger.claims(queue).items():
                size = sum(amount / needs[name] for name, amount in claim.amounts if needs.get(name))
                if size > 0 and key.gang != self.waits.key:
                    sizes[key.gang] = sizes.get(key.gang, 0.0) + size
                    entries.setdefault(key.gang, []).append(key)
        return {gang: (sizes[gang], entries[gang]) for gang in entries}
