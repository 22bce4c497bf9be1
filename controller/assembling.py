"""Gangs that lack pods: reports which pods are missing, and why where muster knows, and lets a gang give back its own.

A held pod is charged to ResourceQuotas like any other, so that two gangs, each with a part of its pods, may keep each
other from the rest for ever. Nothing of it is seen but how each of them stood when it was last reconciled.

Pods are deleted only where the workload asks for that (`muster.dev/requeue-after`), and only of a gang without which
another gang, before it in the queue, would be complete. Its operator makes them again, some of them before the other
gang's: so the deletion is repeated, less and less often, and the other gang keeps what it has.
"""

import asyncio
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from controller import pod_groups
from controller.apiserver import Writer
from controller.term import Term, Work, observe_gang
from controller.touches import Touches
from muster.gangs.gang import charge_of
from muster.kube.concurrency import burst
from muster.kube.errors import ApiError
from muster.model.gang_states import GangState
from muster.model.resource import PODS
from muster.model.times import seconds_of, text_of
from muster.planning.candidate import candidate
from muster.planning.expectations import SILENCE, Expectations
from muster.planning.messages import lacking
from muster.planning.snapshot import AdmissionRecord, GangSnapshot, Member
from muster.queueing.entries import Order
from muster.queueing.ledger import GangKey
from muster.resources.amounts import Resources, describe, times, total, within
from muster.resources.pod_defaults import PodDefaults
from muster.resources.quota_charges import PodCharge, short_of
from muster.resources.resource_quotas import LIMITS, charge, left_of
from muster.workloads import PLAIN_POD


@dataclass(frozen=True, slots=True)
class _Share:
    """A gang's part of a quota: what it holds and what it lacks; the smallest `order` goes first.

    `gives` tells that its workload asks to give back what it cannot use.
    """

    order: Order
    held: Resources
    lacks: Resources
    gives: bool


@dataclass(frozen=True, slots=True)
class Shortage:
    """The reason why a gang has not got its next pod: a quota has only so much `left`.

    `rival` is another gang that lacks pods for the same quota, the first in order; `yields` is a gang that would have
    all its pods if this gang, and others that ask for it, gave theirs back.
    """

    quota: str
    asks: Resources
    left: Resources
    rival: GangKey | None = None
    rivals_share: Resources | None = None
    yields: GangKey | None = None

    @property
    def words(self) -> str:
        """The shortage, and what to do about it."""
        short = describe({name: self.asks[name] for name in self.left})
        refusal = (
            f'ResourceQuota "{self.quota}" refuses the next one, which needs {short}: it has {describe(self.left)} left'
        )
        if self.rival is None or self.rivals_share is None:
            return f"{refusal}; raise the quota, or delete something that uses it"
        return (
            f'{refusal}; gang "{self.rival.name}" holds {describe(self.rivals_share)} of it and lacks pods as well: '
            "delete one of the two, or raise the quota"
        )


class QuotaShares:
    """The gangs that lack pods, by the ResourceQuota that stops them."""

    def __init__(self) -> None:
        self._shares: dict[tuple[str, str], dict[GangKey, _Share]] = {}
        self._quota_of: dict[GangKey, tuple[str, str]] = {}

    def forget(self, key: GangKey) -> None:
        """The gang has its pods, or wants none."""
        quota = self._quota_of.pop(key, None)
        if quota is not None:
            shares = self._shares[quota]
            del shares[key]
            if not shares:
                del self._shares[quota]

    def look(self, snapshot: GangSnapshot, pod_defaults: PodDefaults, order: Order, *, gives: bool) -> Shortage | None:
        """The quota that refuses the gang's next pod, and other gangs that lack pods for it; None where none does."""
        self.forget(snapshot.key)
        missing, limits = _missing(snapshot, pod_defaults)
        found = short_of(pod_defaults.quotas, missing[0][0]) if missing else None
        if found is None:
            return None
        quota, left = found
        key = snapshot.key.namespace, quota.metadata.name
        held = total((charge(total(member.requests for member in snapshot.members), len(snapshot.members)), limits))
        lacks = total(times(pod.amounts, count) for pod, count in missing)
        shares = self._shares.setdefault(key, {})
        own = shares[snapshot.key] = _Share(order, held, lacks, gives)
        self._quota_of[snapshot.key] = key
        asks = missing[0][0].amounts
        others = [one for one in shares if one != snapshot.key]
        if not others:
            return Shortage(quota.metadata.name, asks, left)
        rival = min(others, key=lambda one: shares[one].order)
        share = {name: shares[rival].held[name] for name in left if name in shares[rival].held}
        first = shares[rival]
        helps = gives and first.order < own.order and _helps(first, left_of(pod_defaults.quotas), shares.values())
        return Shortage(quota.metadata.name, asks, left, rival, share, rival if helps else None)


def _helps(first: _Share, left: Resources, shares: Iterable[_Share]) -> bool:
    """True if what is left of all quotas, and what those behind it give back, is all that the first one lacks."""
    given = total(one.held for one in shares if one.gives and one.order > first.order)
    return within({name: first.lacks[name] for name in left if name in first.lacks}, total((left, given)))


def _missing(snapshot: GangSnapshot, pod_defaults: PodDefaults) -> tuple[list[tuple[PodCharge, int]], Resources]:
    """The pods that the gang lacks, role by role, and the limits of those that are there, as quotas count both."""
    if snapshot.gang is None or snapshot.workload is None:
        return [], {}
    there = Counter(member.role for member in snapshot.members)
    missing, limits = [], []
    for role in snapshot.gang.roles:
        if spec := snapshot.workload.role(role.name):
            pod = charge_of(spec, snapshot.intent, pod_defaults)
            of_pod = {key: amount for key, amount in pod.amounts.items() if key in LIMITS}
            limits.append(times(of_pod, there[role.name]))
            if role.minimum > there[role.name]:
                missing.append((pod, role.minimum - there[role.name]))
    return missing, total(limits)


def requeued_at(snapshot: GangSnapshot, now: float) -> str:
    """The time at which the gang gives its claim back, for its mark: never before one of its pods was made.

    By that time its replacements are known, and the clocks of the operator and of muster may differ.
    """
    made = (seconds_of(member.pod.metadata.creation_timestamp) or 0.0 for member in snapshot.members)
    return text_of(max((now, *made)))


async def delete_unplaced(writer: Writer, members: Sequence[Member]) -> None:
    """Delete these pods as they were seen, many at once; raises the first ApiError after all were tried.

    A pod that has changed since is skipped: the watch will show how it is now.
    """

    async def delete_one(member: Member) -> None:
        try:
            await writer.delete(PODS, member.pod.metadata, as_seen=True)
        except ApiError as error:
            if not error.conflict:
                raise

    await burst(delete_one, members)


# What a quota has left changes with every pod, which concerns no gang: they look again after so many seconds.
_LOOK_AGAIN = 15.0
# Pods that were given back and came again before the other gang had its own are deleted again after so many seconds,
# then after twice as many, and so on, but no later than at first.
_AGAIN = 15.0
# No wait is doubled more often: after a thousand times it would be more seconds than a float holds.
_DOUBLINGS = 30


@dataclass(slots=True)
class _Given:
    """The number of times a gang has given its pods back, and when it may do so again."""

    times: int = 0
    next: float = 0.0


class Assembling:
    """Reports what gangs lack, and has them give back what they cannot use."""

    def __init__(self, term: Term, touches: Touches) -> None:
        self._term = term
        self._touches = touches
        self._shares = QuotaShares()
        self._given: dict[GangKey, _Given] = {}

    def over(self, key: GangKey, expects: Expectations) -> None:
        """The gang has its pods, or wants none."""
        expects.assembling_since = None
        self._shares.forget(key)
        self._given.pop(key, None)

    async def wait(self, work: Work) -> None:
        """Report which pods are missing, but not in the moment in which an operator makes them one by one.

        Raises ApiError, and NotLeaderError.
        """
        snapshot, expects, now = work.snapshot, work.expects, self._term.clock.now()
        if expects.assembling_since is None:
            expects.assembling_since = now
        if (wait := SILENCE - expects.assembling_for(now)) > 0:
            work.again(wait)
            return
        pod_defaults, gives = self._term.cluster.added.of(snapshot.key.namespace), _gives(snapshot)
        shortage = None
        if pod_defaults.quotas and snapshot.gang is not None and snapshot.intent is not None:
            order = candidate(snapshot, expects.record).order
            if snapshot.on_hold_by is not None:
                # It would not start with the pods that others give up for it.
                order = order._replace(urgency=sys.maxsize)
            shortage = self._shares.look(snapshot, pod_defaults, order, gives=gives)
        words = lacking(snapshot)
        if shortage is not None:
            words = f"{words}; {shortage.words}"
            work.again(_LOOK_AGAIN)
        message = words + expects.notes
        await pod_groups.report(self._term, work, expects.record_waiting(snapshot), GangState.ASSEMBLING, message)
        if shortage is not None and shortage.yields is not None and snapshot.members:
            await self._give_back(work, shortage)

    async def _give_back(self, work: Work, shortage: Shortage) -> None:
        """Delete the gang's pods when it is time, and have those made that the other gang lacks."""
        term, snapshot, expects = self._term, work.snapshot, work.expects
        now, after = term.clock.now(), snapshot.requeue_delay or 0.0
        given = self._given.setdefault(snapshot.key, _Given(next=now + after - expects.assembling_for(now)))
        if given.next > now:
            work.again(given.next - now)
            return
        given.times += 1
        given.next = now + min(_AGAIN * 2 ** min(given.times - 1, _DOUBLINGS), max(after, _AGAIN))
        first = shortage.yields
        if given.times == 1:
            message = (
                f"it has lacked pods for {int(expects.assembling_for(now))} s; what it holds of ResourceQuota "
                f'"{shortage.quota}" is given back to gang "{first.name if first else ""}"'
            )
            record = AdmissionRecord(requeued_at=requeued_at(snapshot, term.clock.wall()))
            await pod_groups.write_record(term, work, record, GangState.REQUEUED, message)
            expects.record = record
            term.reporter.report(replace(snapshot, pod_group=expects.written), GangState.REQUEUED, message, now)
        # At once: an operator that works on one gang after another would have made these again first each time.
        touched = [self._touches.touch_workload(observe_gang(term, first))] if first is not None else []
        await asyncio.gather(delete_unplaced(term.writer, snapshot.members), *touched)
        work.again(given.next - now)


def _gives(snapshot: GangSnapshot) -> bool:
    """True if its workload asks to give back what the gang cannot use, and its operator makes deleted pods again.

    To a Job a pod that is deleted is one that failed.
    """
    again = snapshot.kind is not None and snapshot.kind is not PLAIN_POD and not snapshot.kind.pods_of_jobs
    return again and snapshot.requeue_delay is not None
