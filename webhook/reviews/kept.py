"""What the webhook keeps of the workloads that it watches: what an answer to a pod depends on, and nothing else.

No pod is answered by what the containers of its workload ask for, by its status, nor by labels and annotations that
muster does not read; these are nearly all of a manifest of a megabyte. So `kept` leaves them out, and a manifest takes
some hundred bytes for each of its templates, however large these are. The controller needs the amounts, with what
LimitRanges add to each container, and keeps them.

What is left reads as the whole did, but for the amounts: the same roles, the same words of the user, and the same error
where it makes no gang. An amount that is none stays where it stood, so that the refusal names it.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache, lru_cache
from types import NoneType
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec import Struct, structs

from muster.model.names import (
    LONGEST_NAME,
    MANAGED,
    PRIORITY_CLASS_LABEL,
    QUEUE_ANNOTATION,
    QUEUE_LABEL,
    SCHEDULER_LABEL,
    TOPOLOGY_MODE_LABEL,
    TOPOLOGY_TIER_LABEL,
)
from muster.model.objects import (
    Container,
    InvalidObjectError,
    LocalObject,
    ObjectMeta,
    OwnerReference,
    PodTemplate,
    ResourceList,
    ResourceRequirements,
    TemplateSpec,
)
from muster.resources.amounts import Resources, parse_resources
from muster.workloads import WATCHED_KINDS
from muster.workloads.bounds import Bounded

if TYPE_CHECKING:
    from collections.abc import Callable

    from muster.gangs.gang import Gang
    from muster.workloads import Kind

__all__ = ["bare", "kept", "looked_at"]

T = TypeVar("T")

_READ = frozenset(
    {
        MANAGED,
        SCHEDULER_LABEL,
        QUEUE_LABEL,
        QUEUE_ANNOTATION,
        PRIORITY_CLASS_LABEL,
        TOPOLOGY_MODE_LABEL,
        TOPOLOGY_TIER_LABEL,
    }
).union(*(kind.reads for kind in WATCHED_KINDS))
"""The labels and annotations of workloads, and of their templates, by which pods are answered."""
# No name is as long, and so no name is another one when it is cut here.
_LONGEST = LONGEST_NAME + 1
_NO_TEXTS: dict[str, str] = {}
_NO_AMOUNTS: ResourceList = {}
_NOTHING: Resources = {}
_SOUND, _CONTAINER = ResourceRequirements(), Container()


class _Maker(LocalObject, frozen=True):
    """What makes a workload: what is said on it, and who made that in turn, speaks for the workload."""

    metadata: ObjectMeta = ObjectMeta()


def looked_at(kind: Kind) -> type[Any]:
    """The type as which workloads are decoded behind a pod; of those that only make others nothing but the metadata."""
    return kind.decoded if kind.owns_gang else _Maker


def kept(decoded: T) -> T:
    """What is kept of a decoded workload, or of what workloads are made from; of the same type."""
    if not isinstance(decoded, Struct):
        raise TypeError(f"{type(decoded).__name__} is no decoded object")
    kept_: T = _struct(decoded)
    status = next((one for one in structs.fields(decoded) if one.name == "status"), None)
    return kept_ if status is None else structs.replace(kept_, status=status.default)  # type: ignore[type-var] # as above


def bare(gang: Gang) -> Gang:
    """The gang of what is kept of a workload, without what its pods would request: that is not known here."""
    return replace(gang, min_resources=_NOTHING, roles=tuple(replace(role, requests=_NOTHING) for role in gang.roles))


def _struct(value: Any) -> Any:  # noqa: ANN401 - any part of a decoded object
    type_: type[Struct] = type(value)
    changed = structs.replace(value, **{name: keep(getattr(value, name)) for name, keep in _fields(type_)})
    if isinstance(value, Bounded) and value.too_much:
        # Its templates are gone already, so that it would count as empty.
        structs.force_setattr(changed, "too_much", value.too_much)
    return changed


@cache
def _fields(type_: type[Struct]) -> tuple[tuple[str, Callable[[Any], Any]], ...]:
    """The fields of a type of which not all is kept, and what is kept of each."""
    return tuple((one.name, _BY_TYPE.get(one.type, _part)) for one in structs.fields(type_) if one.type not in _SMALL)


def _part(value: Any) -> Any:  # noqa: ANN401 - as above
    match value:
        case str():
            return value[:_LONGEST]
        case PodTemplate():
            return _template(value)
        case Struct():
            return _struct(value)
        case tuple():
            return tuple(map(_part, value))
        case dict():
            return {key[:_LONGEST]: _part(one) for key, one in value.items()}
        case _:
            return value


def _read(texts: dict[str, str]) -> dict[str, str]:
    return {key: text[:_LONGEST] for key, text in texts.items() if key in _READ} or _NO_TEXTS


def _controllers(owners: tuple[OwnerReference, ...]) -> tuple[OwnerReference, ...]:
    controller = next((one for one in owners if one.controller), None)
    return (_struct(controller),) if controller else ()


def _template(template: PodTemplate) -> PodTemplate:
    spec, metadata = template.spec, _struct(template.metadata)
    init, containers = _containers(spec.init_containers), _containers(spec.containers)
    resources, overhead = _requirements(spec.resources), _wrong(spec.overhead)
    scheduler, priority = spec.scheduler_name[:_LONGEST], spec.priority_class_name[:_LONGEST]
    if not (init or containers or resources.named or overhead):
        same = _sound(scheduler, priority, any_container=bool(spec.containers))
        return structs.replace(same, metadata=metadata) if metadata.labels or metadata.annotations else same
    kept_spec = TemplateSpec(
        init_containers=init,
        containers=containers or (_CONTAINER,) * bool(spec.containers),
        resources=resources,
        overhead=overhead,
        scheduler_name=scheduler,
        priority_class_name=priority,
    )
    return PodTemplate(metadata=metadata, spec=kept_spec)


@lru_cache(maxsize=1024)
def _sound(scheduler: str, priority: str, *, any_container: bool) -> PodTemplate:
    """The same object for all templates of which nothing else is kept: a workload may have hundreds."""
    containers = (_CONTAINER,) * any_container
    return PodTemplate(spec=TemplateSpec(containers=containers, scheduler_name=scheduler, priority_class_name=priority))


def _containers(all_: tuple[Container, ...]) -> tuple[Container, ...]:
    """The first container with an amount that is none, in its place; nothing where all are sound."""
    for index, one in enumerate(all_):
        resources = _requirements(one.resources) if one.resources.named else _SOUND
        if resources.named:
            return (*((_CONTAINER,) * index), Container(name=one.name[:_LONGEST], resources=resources))
    return ()


def _requirements(asked: ResourceRequirements) -> ResourceRequirements:
    requests, limits = _wrong(asked.requests), _wrong(asked.limits)
    return ResourceRequirements(requests=requests, limits=limits) if requests or limits else _SOUND


def _wrong(amounts: ResourceList) -> ResourceList:
    """The first amount that is none."""
    try:
        parse_resources(amounts, path="")
    except InvalidObjectError:
        name, amount = next((name, amount) for name, amount in amounts.items() if _is_wrong(amount))
        return {name[:_LONGEST]: _part(amount)}
    return _NO_AMOUNTS


def _is_wrong(amount: str | float) -> bool:
    try:
        parse_resources({"": amount}, path="")
    except InvalidObjectError:
        return True
    return False


def _wrong_if_any(amounts: ResourceList | None) -> ResourceList | None:
    # To say nothing is something else than to say that nothing is needed.
    return None if amounts is None else _wrong(amounts)


_SMALL = (bool, int, int | None, bool | None, NoneType)
_BY_TYPE: dict[Any, Callable[[Any], Any]] = {
    dict[str, str]: _read,
    ResourceList: _wrong,
    ResourceList | None: _wrong_if_any,
    tuple[OwnerReference, ...]: _controllers,
    # By what an autoscaler goes concerns no pod.
    tuple[Any, ...]: lambda _: (),
}
