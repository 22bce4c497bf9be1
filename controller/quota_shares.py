"""Gangs that lack pods because a ResourceQuota refuses them, and which of them goes first.

A held pod is charged like any other, so that two gangs, each with a part of its pods, may keep each other from the rest
for ever. Nothing of it is seen but what each of them said when it was looked at last.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from muster.gangs.gang import charge_of
from muster.planning.snapshot import GangSnapshot
from muster.queueing.entries import Order
from muster.queueing.ledger import GangKey
from muster.resources.amounts import Resources, describe, times, total, within
from muster.resources.pod_defaults import PodDefaults
from muster.resources.quota_charges import PodCharge, short_of
from muster.resources.resource_quotas import LIMITS, charge, left_of


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
        said = (
            f'ResourceQuota "{self.quota}" refuses the next one, which needs {short}: it has {describe(self.left)} left'
        )
        if self.rival is None or self.rivals_share is None:
            return f"{said}; have it raised, or end what else is charged to it"
        return (
            f'{said}; gang "{self.rival.name}" holds {describe(self.rivals_share)} of it and lacks pods as well: '
            "delete one of the two, or have it raised"
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
