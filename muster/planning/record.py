"""The terms of an admission, as an annotation of the PodGroup that policies keep: the next leader reads it there.

The PodGroup's spec says the same, but others may write PodGroups, too.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace

import msgspec

from muster.gangs.roles import Role
from muster.model.names import ADMITTED_FOR
from muster.model.objects import InvalidObjectError, PodGroup, PodGroupSpec, ResourceList, decode
from muster.planning.snapshot import AdmissionRecord, GangSnapshot
from muster.resources.amounts import (
    Resources,
    as_text,
    largest,
    minus,
    parse_resources,
    part_of,
    positive,
    times,
    total,
    within,
)
from muster.resources.quantity import ZERO

# All annotations of an object may have 256 KiB together; for a workload of thousands of roles its spec counts.
_LONGEST = 16_384


class AdmittedTerms(PodGroupSpec, frozen=True, omit_defaults=True):
    """The spec that muster wrote into a PodGroup, and what the gang `needs` where its pods request more.

    `requests` are what the pods of a role requested together where that is more than by their template: what others add
    to them comes back with their replacements. `opening_units` are units beyond the minimum that are being opened.
    """

    needs: ResourceList = msgspec.field(default_factory=dict)
    requests: dict[str, ResourceList] = msgspec.field(default_factory=dict)
    opening_units: tuple[str, ...] = ()


def with_need(
    spec: PodGroupSpec, need: Resources, requested: Mapping[str, Resources], roles: Iterable[Role]
) -> AdmittedTerms:
    """The terms of a gang that is admitted now and needs these resources; its roles have so much `requested`."""
    declared = readable(spec.min_resources)
    more = any(amount > declared.get(name, ZERO) for name, amount in need.items())
    beyond: dict[str, ResourceList] = {
        role.name: {**as_text(requested[role.name])}
        for role in roles
        if not within(requested[role.name], times(role.requests, role.minimum + role.reserved))
    }
    return _terms(spec, need if more else {}, beyond)


def carried(spec: PodGroupSpec, before: PodGroupSpec | None) -> PodGroupSpec:
    """The terms of an admitted gang whose PodGroup has this spec by now; what it needs beyond the spec still counts.

    Of fewer pods it needs less beyond it, in proportion.
    """
    if not isinstance(before, AdmittedTerms) or not (before.needs or before.requests):
        return spec
    declared, now = readable(before.min_resources), readable(spec.min_resources)
    owed, owed_now = before.min_task_member, spec.min_task_member
    more = positive(minus(readable(before.needs), declared))
    beyond = part_of(more, sum(owed_now.values()), max(1, sum(owed.values())))
    kept: dict[str, ResourceList] = {
        role: {**as_text(part_of(readable(one), owed_now.get(role, 0), owed.get(role, 0)))}
        for role, one in before.requests.items()
    }
    return _terms(spec, total((now, beyond)) if before.needs else {}, kept)


def as_admitted(role: Role, terms: PodGroupSpec) -> Role:
    """The role with the minimum with which its gang was admitted, and with what its pods requested then if recorded."""
    owed = terms.min_task_member.get(role.name, 0)
    least, found = min(role.minimum, owed), terms.requests.get(role.name) if isinstance(terms, AdmittedTerms) else None
    if found is None:
        return replace(role, minimum=least)
    return replace(role, minimum=least, granted=part_of(readable(found), least + role.reserved, owed + role.reserved))


def granted(terms: PodGroupSpec) -> Resources:
    """The resources that a gang was admitted for: what its workload declares, or what its pods request."""
    return largest(readable(terms.min_resources), readable(terms.needs) if isinstance(terms, AdmittedTerms) else {})


def _terms(spec: PodGroupSpec, needs: Resources, requests: dict[str, ResourceList]) -> AdmittedTerms:
    fields = {name: getattr(spec, name) for name in PodGroupSpec.__struct_fields__}
    return AdmittedTerms(**fields, needs={**as_text(needs)}, requests=requests)


def readable(amounts: ResourceList) -> Resources:
    """Return these amounts; nothing when they cannot be read."""
    try:
        return parse_resources(amounts, path="needs")
    except InvalidObjectError:
        return {}


def admitted_for(spec: PodGroupSpec | None, units: Iterable[str] = ()) -> str:
    """The annotation's text: JSON, the same for the same terms; "" where there are none, or too many to write.

    `units` are those beyond the minimum that are being opened (`muster.planning.opening`).
    """
    if spec is None:
        return ""
    written = spec if isinstance(spec, AdmittedTerms) else _terms(spec, {}, {})
    # The topology is the workload's, admitted or not.
    written = msgspec.structs.replace(written, network_topology=PodGroupSpec().network_topology, opening_units=())
    text = _text(msgspec.structs.replace(written, opening_units=tuple(sorted(units))))
    # Without the terms everything would be doubtful, without the units only what is opened at this moment.
    text = text if len(text) <= _LONGEST else _text(written)
    return text if len(text) <= _LONGEST else ""


def _text(written: AdmittedTerms) -> str:
    return msgspec.json.encode(written, order="deterministic").decode()


def units_of(record: AdmissionRecord, uid: str) -> frozenset[str]:
    """The units that are being opened, by the mark of this workload."""
    if not uid or record.admitted != uid or not record.admitted_for:
        return frozenset()
    try:
        return frozenset(decode(record.admitted_for, AdmittedTerms).opening_units)
    except InvalidObjectError:
        return frozenset()


def without_units(record: AdmissionRecord) -> AdmissionRecord:
    """The mark of a gang that keeps no room for units which were being opened."""
    if not units_of(record, record.admitted):
        return record
    written = decode(record.admitted_for, AdmittedTerms)
    return replace(record, admitted_for=_text(msgspec.structs.replace(written, opening_units=())))


def written_spec_of(snapshot: GangSnapshot) -> PodGroupSpec | None:
    """The spec that muster wrote into the gang's PodGroup: as this leader remembers it, else as the annotation has it.

    None where it is not known: the gang is not admitted, or was by a muster that wrote no annotation.
    """
    return snapshot.written_spec if snapshot.written_spec is not None else recorded_terms(snapshot)


def recorded_queue(group: PodGroup | None) -> str:
    """The queue for which the gang of a PodGroup was admitted, whatever its workload was; "" without a mark."""
    text = group.metadata.annotations.get(ADMITTED_FOR, "") if group is not None else ""
    try:
        return decode(text, AdmittedTerms).queue if text else ""
    except InvalidObjectError:
        return ""


def recorded_terms(snapshot: GangSnapshot) -> PodGroupSpec | None:
    """As `written_spec_of`, by the annotation alone: it is behind what this leader knows until that is written."""
    if not snapshot.record.admitted_for or not snapshot.uid or snapshot.marked_for != snapshot.uid:
        return None
    try:
        return decode(snapshot.record.admitted_for, AdmittedTerms)
    except InvalidObjectError:
        return None
