"""What muster opened, against the limits of the queues: the ledger's promise, judged from a scene's record alone.

Volcano by itself never places more than a queue's capability, so that pods with nodes say nothing of muster. Here its
own acts are judged: that it marks a gang as admitted, and that it takes a gate off. The rule is today's, and stands
here and nowhere else in the tests:

- A gang claims the larger of what its opened pods ask for and of what it was admitted for (its minResources, or what
  its pods really asked for), that from the mark on until the mark is gone, or its workload has ended or is being
  deleted. A pod that is being deleted counts until it is gone, if it has a node, but not against those that come in its
  place: an act of its own gang. Plain pods, which have no workload, claim what they were admitted for as long as one of
  them lives.
- A gang of which nothing has had a node for as long as its queue says (`muster.dev/unplaced-after`, five minutes) is
  soft: in its own queue its claim counts for nothing until one has, and in those above as well where none of its pods
  is open. Pods beyond what it was admitted for that have had no node for so long are soft in the same way. What is soft
  of a queue is never more than its limit; what would be beyond counts.
- Nothing of that is soft where the gang's scheduler bounds no queue, which is so of all but Volcano.
- Where a queue says `muster.dev/preemption: lower-priority`, claims of lower priority there are left out for gangs of
  Volcano whose pods may preempt.
- An act must leave room in its queue and in every queue above it, of every resource that the act takes more of.
- Where the gate is `assemble` or `off` muster waits for no room, and what it opens is no act. Nor is what Kueue has
  admitted. What such gangs hold counts for the others.

The queues are Volcano's and muster's own, the PodGroups those of every scheduler: `claim_terms` reads them all alike.
An act is judged by what is on record, so that its PodGroup, its owner and its queue must be.

A queue's guarantee to its siblings, a bound by nodes and ElasticQuotas are not judged. Nor is what others open or hold,
nor what was done while the record had a gap, for the apiserver itself was killed: what had ended by then is unknown.
"""

import json
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain

from muster.model.names import ADMITTED_FOR, ADMITTER, GATE, GATE_MODE, PREEMPTION, QUEUE_LABEL, UNPLACED_AFTER
from muster.model.resource import EVENTS, POD_GROUPS, PODS
from muster.model.times import duration_of
from muster.resources.quantity import parse_quantity
from tests.support.cluster.claim_terms import ALL_POD_GROUPS, ALL_QUEUES, Terms, asked_of, gang_of_group, settings_of
from tests.support.cluster.objects import (
    Manifest,
    admitted,
    alive,
    annotations_of,
    gang_of,
    gates,
    has_condition,
    node_of,
    phase,
)
from tests.support.cluster.recorder import State

Amounts = dict[str, int]
"""Billionths, by resource."""

# Seconds: when a claim turns soft where the queue does not say; what the record may have come later than to muster; and
# for how long muster may not have heard yet that a queue was lowered.
_SOFT_AFTER, _LATE, _HEARS_WITHIN = 300.0, 5.0, 10.0
_ENDS = ("Succeeded", "Failed", "Complete", "Completed")
# The modes of the gate in which no gang waits for room.
_UNBOUNDED = frozenset({"assemble", "off"})
# To Volcano these are plain fields, which are 0 where nothing is said.
_UNLIMITED_AT_ZERO = frozenset({"cpu", "memory"})


def opened_above(states: Iterable[State], excused: Collection[str] = ()) -> tuple[list[str], int]:
    """Judge all of muster's acts in a record: what was above a limit, in words, and how many acts took anything.

    Whatever opens `excused` gangs is not judged; what they hold counts for the others.
    """
    record, above, acts = _Record(), [], 0
    in_order = sorted(states, key=lambda state: state.version)
    gaps = _gaps(in_order)
    for seen in in_order:
        gang = "" if any(first < seen.version <= last for first, last in gaps) else record.opens(seen)
        before = record.claim(gang) if gang else {}
        record.enter(seen)
        if not gang:
            continue
        after = record.claim(gang)
        more = {name for name, amount in after.items() if amount > before.get(name, 0)}
        if not more or gang in excused or record.waits_for_no_room(gang):
            continue
        acts += 1
        above += [f"at version {seen.version} {gang} opened: {words}" for words in record.above(gang, more, seen.at)]
    return above, acts


def _gaps(states: Iterable[State]) -> list[tuple[int, int]]:
    """Between which versions the watch of a kind was cut, until a list told what there was."""
    gaps: list[tuple[int, int]] = []
    known: dict[str, int] = {}
    for seen in states:
        if seen.after_a_gap:
            gaps.append((known.get(seen.resource.full_name, 0), seen.version))
        else:
            known[seen.resource.full_name] = seen.version
    return gaps


@dataclass
class _Gang:
    """A gang: its PodGroup, its living pods by UID, and those that are on their way out.

    `known` tells whether it ever had a PodGroup on record, `bounded` whether its scheduler bounds queues.
    `placeless` is since when none of them has a node, `waiting` since when those have been open that have none.
    """

    group: Manifest = field(default_factory=dict)
    known: bool = False
    bounded: bool = False
    members: dict[str, Manifest] = field(default_factory=dict)
    leaving: dict[str, Manifest] = field(default_factory=dict)
    placeless: float | None = None
    waiting: dict[str, float] = field(default_factory=dict)

    @property
    def owner(self) -> str:
        """The UID of the workload, "" where plain pods are a gang by themselves."""
        return next((owner["uid"] for owner in self.group["metadata"].get("ownerReferences", [])), "")

    @property
    def terms(self) -> Terms:
        """What it was admitted for."""
        mark = annotations_of(self.group).get(ADMITTED_FOR)
        return Terms.of(json.loads(mark)) if mark else asked_of(self.group)

    @property
    def queue(self) -> str:
        """The queue of its terms, or that of its pods."""
        pods = chain(self.members.values(), self.leaving.values())
        labelled = next((pod["metadata"]["labels"].get(QUEUE_LABEL, "") for pod in pods), "")
        return (self.terms.queue if self.group else "") or labelled or "default"

    @property
    def may_preempt(self) -> bool:
        return all(pod["spec"].get("preemptionPolicy") != "Never" for pod in self.members.values())

    @property
    def priority(self) -> int:
        return max((int(pod["spec"].get("priority", 0)) for pod in self.members.values()), default=0)


class _Record:
    """The cluster at one version of it."""

    def __init__(self) -> None:
        self._gangs: dict[str, _Gang] = {}
        self._over: dict[str, bool] = {}
        # Each with all limits of the last seconds, the present one last.
        self._limits: dict[str, list[tuple[float, Amounts]]] = {}
        self._queues: dict[str, Manifest] = {}
        self._settings: dict[str, dict[str, str]] = {}

    def opens(self, seen: State) -> str:
        """The gang for which this is an act of muster's, "" where it is none."""
        if seen.gone:
            return ""
        if seen.resource in ALL_POD_GROUPS:
            name = gang_of_group(seen.resource, seen.object)
            known = self._gangs.get(name, _Gang())
            marked = admitted(known.group) if known.group else ""
            return name if admitted(seen.object) not in ("", marked) else ""
        if seen.resource == PODS and gang_of(seen.object) in self._gangs:
            before = self._gangs[gang_of(seen.object)].members.get(seen.object["metadata"]["uid"])
            let_go = before is not None and GATE in gates(before) and GATE not in gates(seen.object)
            return gang_of(seen.object) if let_go else ""
        return ""

    def enter(self, seen: State) -> None:
        """Note what there is from this version on."""
        meta = seen.object["metadata"]
        if seen.resource == PODS:
            if gang_of(seen.object):
                self._enter_pod(self._gangs.setdefault(gang_of(seen.object), _Gang()), seen)
        elif seen.resource in ALL_POD_GROUPS:
            gang = self._gangs.setdefault(gang_of_group(seen.resource, seen.object), _Gang())
            if _of_a_former_life(seen, gang):
                return
            gang.bounded = seen.resource == POD_GROUPS
            if not seen.gone and admitted(seen.object) and not (gang.group and admitted(gang.group)):
                gang.placeless = seen.at
            gang.group, gang.known = {} if seen.gone else seen.object, True
        elif seen.resource in ALL_QUEUES:
            self._queues[seen.name] = seen.object
            self._settings[seen.name] = settings_of(seen.resource, seen.object)
            former = [] if seen.gone else self._limits.get(seen.name, [])
            self._limits[seen.name] = [*former, (seen.at, _limit(seen.object))]
        elif seen.resource != EVENTS:
            over = seen.gone or "deletionTimestamp" in meta or any(has_condition(seen.object, end) for end in _ENDS)
            self._over[meta["uid"]] = over

    @staticmethod
    def _enter_pod(gang: _Gang, seen: State) -> None:
        uid = seen.object["metadata"]["uid"]
        living, waits = (
            not seen.gone and alive(seen.object),
            GATE not in gates(seen.object) and not node_of(seen.object),
        )
        ends = phase(seen.object) in {"Succeeded", "Failed"} or not node_of(seen.object)
        gang.members.pop(uid, None)
        gang.leaving.pop(uid, None)
        if living:
            gang.members[uid] = seen.object
        elif not seen.gone and not ends:
            gang.leaving[uid] = seen.object
        if living and waits:
            gang.waiting.setdefault(uid, seen.at)
        else:
            gang.waiting.pop(uid, None)
        if any(map(node_of, gang.members.values())):
            gang.placeless = None
        elif gang.placeless is None:
            gang.placeless = seen.at

    def claim(self, name: str) -> Amounts:
        """What a gang claims at this moment for itself."""
        return self._claim(self._gangs[name], leaving=False)

    def _claim(self, gang: _Gang, *, leaving: bool = True) -> Amounts:
        opened = [_asked(pod) for pod in gang.members.values() if GATE not in gates(pod)]
        taken = _total([*opened, *(_asked(pod) for pod in gang.leaving.values() if leaving)])
        granted = self._granted(gang)
        return {one: max(taken.get(one, 0), granted.get(one, 0)) for one in {*taken, *granted}}

    def _granted(self, gang: _Gang) -> Amounts:
        if not gang.group or not admitted(gang.group) or self._ended(gang):
            return {}
        if not gang.owner and not gang.members:
            return {}
        said, needs = _amounts(gang.terms.resources), _amounts(gang.terms.needs)
        return {one: max(said.get(one, 0), needs.get(one, 0)) for one in {*said, *needs}}

    def _soft(self, gang: _Gang, queue: str, at: float) -> Amounts:
        """What of the claim may count for nothing in this queue."""
        known = duration_of(self._said(gang.queue, UNPLACED_AFTER))
        due = at + _LATE - (_SOFT_AFTER if known is None else known)
        idle = all(GATE in gates(pod) for pod in gang.members.values())
        if not gang.bounded or not gang.group or not admitted(gang.group) or (queue != gang.queue and not idle):
            return {}
        claim = self._claim(gang)
        if gang.placeless is not None:
            return claim if gang.placeless < due else {}
        late = _total(_asked(gang.members[uid]) for uid, since in gang.waiting.items() if since < due)
        granted = self._granted(gang)
        return {one: min(late.get(one, 0), max(0, amount - granted.get(one, 0))) for one, amount in claim.items()}

    def _ended(self, gang: _Gang) -> bool:
        if not gang.owner:
            return False
        assert gang.owner in self._over, f"the owner of {gang.group['metadata']['name']} is not on record"
        return self._over[gang.owner]

    def waits_for_no_room(self, name: str) -> bool:
        """Whether muster opens the gang as soon as it is whole, or when another admitter says so."""
        gang = self._gangs[name]
        elsewhere = bool(gang.group and annotations_of(gang.group).get(ADMITTER))
        return elsewhere or self._said(gang.queue, GATE_MODE) in _UNBOUNDED

    def _said(self, queue: str, name: str) -> str:
        """What a queue says of how its gangs wait, "" where it does not say."""
        return self._settings.get(queue, {}).get(name, "")

    def above(self, name: str, more: set[str], at: float) -> Iterator[str]:
        """Where, of these resources, more is claimed than the limit when a gang takes some, in words."""
        gang = self._gangs[name]
        if not gang.known:
            yield "its PodGroup is not on record"
        if gang.queue not in self._queues:
            yield f'its queue "{gang.queue}" is not on record'
        counted = [other for key, other in self._gangs.items() if key == name or not self._makes_room(other, gang)]
        for queue in self._path(gang.queue):
            below = [other for other in counted if queue in self._path(other.queue)]
            claimed = _total(self._claim(other, leaving=other is not gang) for other in below)
            soft = _total(self._soft(other, queue, at) for other in below if other is not gang)
            for one, most in self._limit(queue, at).items():
                counts = claimed.get(one, 0) - min(soft.get(one, 0), most)
                if one in more and counts > most:
                    yield f'{one} {counts / 1e9:g} of the {most / 1e9:g} that queue "{queue}" has'

    def _makes_room(self, its: _Gang, gang: _Gang) -> bool:
        """Whether Volcano is to preempt the other for the gang."""
        preempts = gang.bounded and gang.may_preempt and self._said(gang.queue, PREEMPTION) == "lower-priority"
        return preempts and its.queue == gang.queue and its.priority < gang.priority

    def _path(self, queue: str) -> list[str]:
        path: list[str] = []
        while queue and queue not in path:
            path.append(queue)
            spec = self._queues.get(queue, {}).get("spec", {})
            queue = "" if queue == "root" else spec.get("parent") or "root"
        return path

    def _limit(self, queue: str, at: float) -> Amounts:
        """The limit, the highest where it was lowered a moment ago."""
        known = self._limits.get(queue, [])
        ended = chain((moment for moment, _ in known[1:]), [at])
        lately = [limit for (_, limit), end in zip(known, ended, strict=False) if at - end <= _HEARS_WITHIN]
        common = set.intersection(*(set(limit) for limit in lately)) if lately else set()
        return {one: max(limit[one] for limit in lately) for one in common}


def _of_a_former_life(seen: State, gang: _Gang) -> bool:
    """Whether the PodGroup is not the gang's any more: kube-scheduler's stays while a pod of its name does."""
    over = seen.gone or "deletionTimestamp" in seen.object["metadata"]
    return over and bool(gang.group) and gang.group["metadata"]["uid"] != seen.object["metadata"]["uid"]


def _limit(queue: Manifest) -> Amounts:
    """What the capability names; cpu and memory of 0 limit nothing."""
    named = _amounts(queue["spec"].get("capability") or {})
    return {name: max(most, 0) for name, most in named.items() if most > 0 or name not in _UNLIMITED_AT_ZERO}


def _asked(pod: Manifest) -> Amounts:
    """What the containers ask for; test pods have no larger init containers."""
    return _total(_amounts(one.get("resources", {}).get("requests", {})) for one in pod["spec"]["containers"])


def _amounts(texts: dict[str, str]) -> Amounts:
    return {name: parse_quantity(str(text)).nano for name, text in texts.items()}


def _total(several: Iterable[Amounts]) -> Amounts:
    total: Amounts = {}
    for amounts in several:
        for name, amount in amounts.items():
            total[name] = total.get(name, 0) + amount
    return total
