"""The gang of a workload: the pods that must start together, its roles, and its least needs."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from muster.gangs.intent import Intent
from muster.gangs.roles import Gang, Role
from muster.model.names import LONGEST_NAME
from muster.model.objects import InvalidObjectError, PriorityClass
from muster.resources.amounts import check_few, parse_resources, times, total
from muster.resources.pod_defaults import NOTHING_ADDED, PodDefaults
from muster.resources.pod_requests import check_size, pod_requests
from muster.resources.quota_charges import PodCharge, pod_charge
from muster.workloads import RoleSpec, Workload

# minMember is an int32.
_MOST_PODS = 2**31 - 1


def priority_value(name: str, priorities: Mapping[str, int]) -> int:
    """Return the value of a PriorityClass; unknown ones count 0. Key "" of `priorities` is for pods without a class."""
    return priorities.get(name, 0)


def priority_values(classes: Iterable[PriorityClass]) -> dict[str, int]:
    """Return the values of PriorityClasses by name; key "" is for pods without a class (the global default, or 0).

    If there are several global defaults the lowest counts, as for the apiserver's Priority plugin.
    """
    known = list(classes)
    values = {item.metadata.name: item.value for item in known}
    return values | {"": min((item.value for item in known if item.global_default), default=0)}


def as_its_pods(intent: Intent, workload: Workload, priorities: Mapping[str, int]) -> Intent:
    """Return the intent with no higher class than its pods get, if the workload as a whole names one.

    A pod keeps the class of its template, and the controller goes by the lowest class of the pods that exist when the
    gang is admitted (`class_of_pods`): later pods do not count, and neither does an unknown class.
    """
    if not (intent.prioritise_pods and workload.kind.owns_gang):
        return intent
    first = (spec for spec in workload.roles if spec.replicas and spec.gated and not spec.together)
    classes = {spec.template.spec.priority_class_name for spec in first} - {""}
    known = ((priorities[name], name) for name in classes if name in priorities)
    value, name = min(known, default=(0, ""))
    if not name or priority_value(intent.priority_class, priorities) <= value:
        return intent
    return replace(intent, priority_class=name)


def gang_of(
    workload: Workload,
    intent: Intent,
    priorities: Mapping[str, int],
    pod_defaults: PodDefaults = NOTHING_ADDED,
) -> Gang:
    """Return the gang of a workload.

    `priorities` maps PriorityClass names to values; `pod_defaults` are the cluster's additions to the pods of the
    templates. Raises InvalidObjectError, with the field's path, if the workload makes no gang: amounts that are no
    quantities, minAvailable below 1 or above the number of pods, pods without containers, more pods or a longer name
    than a PodGroup can have.
    """
    _check(workload)

    def order(spec: RoleSpec) -> tuple[int, bool]:
        # As the operators sort: the urgent first; among equals the pods that the others wait for.
        own = spec.template.spec.priority_class_name
        name = own or (intent.priority_class if intent.prioritise_pods else "")
        return -priority_value(name, priorities), not spec.leads

    specs = sorted(workload.roles, key=order)
    available = workload.policy.min_available
    least = sum(spec.minimum for spec in specs)
    if available is not None:
        # A pod that comes only when the others run cannot be one of those that they wait for.
        least = _checked_min_available(available, workload, sum(spec.replicas for spec in specs if spec.gated))
    if least > _MOST_PODS:
        raise InvalidObjectError(
            "spec", f"{least} pods are more than the {_MOST_PODS} of a PodGroup; lower the replicas"
        )
    roles = tuple(_roles(specs, least, pod_defaults))
    if workload.policy.min_resources is not None:
        min_resources = parse_resources(
            workload.policy.min_resources,
            path=f"{workload.policy_path}.minResources",
        )
    else:
        needed = ((role.requests, role.minimum + role.reserved) for role in roles)
        min_resources = total(times(requests, count) for requests, count in needed if count)
    check_few({name for role in roles for name in role.requests}.union(min_resources), "spec")
    return Gang(
        namespace=workload.metadata.namespace,
        name=workload.pod_group,
        roles=roles,
        # Volcano takes a gang without pods for a finished one.
        min_member=max(least, 1),
        min_resources=min_resources,
        uid=workload.metadata.uid if workload.kind.owns_pod_group else "",
    )


def charge_of(spec: RoleSpec, intent: Intent | None, pod_defaults: PodDefaults) -> PodCharge:
    """Return the charge to quotas for a pod of the role; `intent` is None for pods outside the gang.

    Raises InvalidObjectError, with the field's path, for amounts that are no quantities.
    """
    template, path = spec.template.spec, spec.path
    of_gang = intent.priority_class if intent is not None and intent.prioritise_pods else ""
    return pod_charge(pod_defaults.completed(template, path=path), template.priority_class_name or of_gang, path=path)


def _check(workload: Workload) -> None:
    name = workload.pod_group
    if len(name) > LONGEST_NAME:
        raise InvalidObjectError(
            "metadata.name",
            f'its PodGroup "{name}" would have {len(name)} characters and may have {LONGEST_NAME}; use a shorter name',
        )
    for role in workload.roles:
        if not role.template.spec.containers:
            raise InvalidObjectError(f"{role.path}.containers", "empty; a pod has at least one container")
    seconds = workload.policy.schedule_timeout_seconds
    if seconds is not None and seconds < 0:
        path = f"{workload.policy_path}.scheduleTimeoutSeconds"
        raise InvalidObjectError(path, f"{seconds} is negative; use 0 or more seconds")


def _checked_min_available(available: int, workload: Workload, replicas: int) -> int:
    path = f"{workload.policy_path}.minAvailable"
    if available < 1:
        raise InvalidObjectError(path, f"{available} is below 1; a gang starts with at least one pod")
    if available > replicas:
        raise InvalidObjectError(
            path,
            f"{available} is above the {replicas} pods that there are; lower it or raise the replicas",
        )
    return available


def _roles(specs: list[RoleSpec], least: int, pod_defaults: PodDefaults) -> list[Role]:
    # The roles' own minimums hold while they are no more than `least`; the rest of it is filled up in order.
    own = sum(spec.minimum for spec in specs)
    left = least - own if own <= least else least
    roles = []
    for spec in specs:
        minimum = spec.minimum if own <= least else 0
        more = min(spec.replicas - minimum, left) if spec.gated else 0
        left -= more
        check_size(spec.template.spec, spec.path)
        requests = pod_requests(pod_defaults.completed(spec.template.spec, path=spec.path), path=spec.path)
        role = Role(spec.name, spec.replicas, minimum + more, requests, spec.leads, spec.gated, spec.reserved)
        role = replace(role, together=spec.together, grows=spec.grows, made_first=spec.made_first, unit=spec.unit)
        roles.append(
            replace(role, priority_class=spec.template.spec.priority_class_name, done=spec.done, group=spec.group)
        )
    return roles
