"""Refusals of gangs that a namespace's quotas and LimitRanges never allow, or that Kueue's ClusterQueue never holds.

Pods are judged as their templates, their operators and the apiserver's defaults make them. Patches of other webhooks
are not known here, and do not avert a refusal.

The capability of the gang's own queue is judged in `muster.validation.workload`, with the queue's name.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from msgspec import structs

from muster.admitters import Admitter
from muster.admitters.kueue_quota import PodSetNeed, never_fits
from muster.gangs.gang import charge_of
from muster.gangs.intent import Intent
from muster.gangs.roles import Gang, Role
from muster.model.findings import Finding, Reason, finding
from muster.model.modes import GateMode
from muster.model.names import KUEUE_PARTIAL, KUEUE_QUEUE
from muster.model.objects import InvalidObjectError
from muster.queueing.queue_tree import exceeding
from muster.resources.amounts import Resources, times, total
from muster.resources.limit_bounds import OutOfBounds, out_of_bounds
from muster.resources.pod_defaults import PodDefaults
from muster.resources.pod_requests import pod_requests
from muster.resources.quantity import ZERO
from muster.resources.quota_charges import PodCharge, counts, demands
from muster.resources.resource_quotas import limits
from muster.validation.context import Context
from muster.workloads import RoleSpec, Workload

# Most roles in a line.
_NAMED = 3


@dataclass(frozen=True, slots=True)
class TooMuch(Finding):
    """A need that exceeds a quota, so that it is never met."""

    quota: str = field(default="", compare=False)
    need: Resources = field(default_factory=dict, compare=False)

    def no_worse_than(self, before: Finding) -> bool:
        """True if the need was too much for the same quota before, and has not grown."""
        return (
            isinstance(before, TooMuch)
            and (self.reason, self.quota) == (before.reason, before.quota)
            # Also where `before` does not name a resource, which `amounts.within` takes for no limit.
            and all(amount <= before.need.get(name, ZERO) for name, amount in self.need.items())
        )


def needs(gang: Gang, least: Resources, gate: GateMode) -> Iterator[tuple[str, Resources]]:
    """Yield the gang's need of `least`, and if it waits for room that of each later wave, which starts as a whole."""
    yield f'gang "{gang.name}"', least
    for wave in gang.waves if gate is GateMode.QUEUE else ():
        yield _called(gang, [role.name for role in wave]), total(role.whole for role in wave)


def _called(gang: Gang, wave: Sequence[str]) -> str:
    names = " and ".join(f'"{name}"' for name in wave[:_NAMED])
    more = f" and {len(wave) - _NAMED} more" if len(wave) > _NAMED else ""
    return f'{"role" if len(wave) == 1 else "roles"} {names}{more} of gang "{gang.name}", which starts as a whole,'


def resource_quota_findings(
    workload: Workload, gang: Gang | None, intent: Intent, context: Context
) -> Iterator[Finding]:
    """Yield findings for pods that the namespace's quotas always refuse: such pods are never made.

    The current charge may be given back, and is not looked at.
    """
    if gang is None or not context.pod_defaults.quotas:
        return
    pods = [*_pods(workload, gang, intent, context)]
    for quota in context.pod_defaults.quotas:
        try:
            hard = limits(quota)
        except InvalidObjectError:
            # Reported when the quota was read; the apiserver accepts no such quota.
            continue
        counted = [one for one in pods if counts(quota, one.charge)]
        called = f'ResourceQuota "{quota.metadata.name}"'
        for one in counted:
            if unsaid := demands(quota, one.charge):
                yield _unset(one.spec, unsaid, called)
        found = (
            (needing, need, exceeding(need, hard))
            for needing, need in _charged(gang, pods, counted, context.gate(intent))
        )
        needing, need, over = next((one for one in found if one[2]), ("", {}, None))
        if over:
            message = (
                f"spec: {needing} needs {over[0]}, {called} has hard {over[1]}; lower the replicas or raise the quota"
            )
            yield TooMuch(Reason.EXCEEDS_RESOURCE_QUOTA, "spec", message, quota.metadata.name, need)


@dataclass(frozen=True, slots=True)
class _Pods:
    """The pods of a role, or those that an operator makes for the workload outside its gang."""

    spec: RoleSpec
    charge: PodCharge
    role: Role | None

    @property
    def now(self) -> int:
        """The number of pods when the gang runs."""
        return self.role.minimum + self.role.reserved if self.role else self.spec.replicas

    def charged(self, count: int) -> Resources:
        """Return the charge of `count` of them."""
        return times(self.charge.amounts, count)


def _pods(workload: Workload, gang: Gang, intent: Intent, context: Context) -> Iterator[_Pods]:
    for spec in (*workload.roles, *workload.outside_gang):
        if not spec.makes_pods:
            continue
        role = gang.role(spec.name)
        with suppress(InvalidObjectError):
            # A submitter's, which is no member: the apiserver judges its Job.
            yield _Pods(spec, charge_of(spec, intent if role else None, context.pod_defaults), role)


def _charged(
    gang: Gang, pods: Sequence[_Pods], counted: Sequence[_Pods], gate: GateMode
) -> Iterator[tuple[str, Resources]]:
    """Yield the least charges to a quota that counts these pods: at the start, for a later wave, for a single pod."""
    called = f'gang "{gang.name}"'
    uncounted = [one.spec.name for one in counted if one.role is None]
    if len(counted) < len(pods):
        needing = f"what it counts of {called} ({', '.join(one.spec.name for one in counted[:_NAMED])})"
    else:
        needing = f"{called} with its {uncounted[0]}" if uncounted else called
    yield needing, total(one.charged(one.now) for one in counted if one.now)
    # A wave that only assembles must be there as a whole, too.
    for wave in gang.waves if gate is not GateMode.OFF else ():
        if some := [one for one in counted if one.role in wave]:
            yield _called(gang, [one.spec.name for one in some]), total(one.charged(one.spec.replicas) for one in some)
    for one in counted:
        yield f'each pod of "{one.spec.name}"', one.charge.amounts


def _unset(spec: RoleSpec, unsaid: Mapping[str, Sequence[str]], called: str) -> Finding:
    """Return the finding for containers that do not set what a quota demands."""
    path = f"{spec.path}.containers"
    keys: dict[str, list[str]] = {}
    for key, containers in unsaid.items():
        for one in containers:
            keys.setdefault(one, []).append(key)
    first, more = next(iter(keys)), f" (and {len(keys) - 1} more containers)" if len(keys) > 1 else ""
    message = (
        f"{first} does not set {' and '.join(keys[first])}, which {called} demands of every container{more}; "
        "write them, or have a LimitRange give them"
    )
    return finding(Reason.REQUIRED_BY_RESOURCE_QUOTA, path, message)


def limit_range_findings(workload: Workload, gang: Gang | None, context: Context) -> Iterator[Finding]:
    """Yield findings for roles whose pods the namespace's LimitRanges always refuse."""
    if gang is None or not context.pod_defaults.ranges:
        return
    for spec in (*workload.roles, *workload.outside_gang):
        found: tuple[OutOfBounds, ...] = ()
        with suppress(InvalidObjectError):
            # As above.
            found = (
                out_of_bounds(spec.template.spec, context.pod_defaults.ranges, path=spec.path)
                if spec.makes_pods
                else ()
            )
        for path, faults in (
            (f"{spec.path}.containers", [one for one in found if one.container]),
            (spec.path, [one for one in found if not one.container]),
        ):
            if faults:
                first, more = faults[0], f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
                message = (
                    f"{first.container or 'the pod as a whole'} {first.words}{more}; "
                    "the apiserver refuses such pods, change the amounts or change the LimitRange"
                )
                yield finding(Reason.OUTSIDE_LIMIT_RANGE, path, message)


def elastic_quota_findings(gang: Gang | None, intent: Intent, context: Context) -> Iterator[Finding]:
    """Yield findings for needs that the namespace's ElasticQuotas never allow, where the scheduler enforces them."""
    if gang is None or context.ceiling is None or not intent.gang_scheduler.elastic_quotas:
        return
    gate = context.gate(intent)
    # Only the ledger counts the user's minResources; they are no pod's requests.
    least = gang.needed if gate is GateMode.QUEUE else gang.requested
    for needing, need in needs(gang, least, gate):
        if never := context.ceiling.never(need):
            message = f"spec: {needing} {never}; lower the replicas or raise the quota"
            yield TooMuch(Reason.EXCEEDS_ELASTIC_QUOTA, "spec", message, need=need)
            return


def kueue_findings(workload: Workload, gang: Gang | None, context: Context) -> Iterator[Finding]:
    """Yield the findings for which Kueue never admits the workload, if Kueue is its admitter."""
    if context.admitter is not Admitter.KUEUE:
        return
    # For makers of plain pods Kueue reads its own label, unlike muster.
    path = f"metadata.labels[{KUEUE_QUEUE}]"
    metadata = (workload.metadata, *context.scope.owners)
    if not any(one.labels.get(KUEUE_QUEUE) for one in metadata):
        rest = "missing; Kueue admits the gangs of this namespace, and this one waits for ever: name a LocalQueue"
        yield finding(Reason.IN_NO_KUEUE_QUEUE, path, rest)
    if context.cluster_queue is None or gang is None or KUEUE_PARTIAL in workload.metadata.annotations:
        return
    try:
        sets = [_pod_set(role, context.pod_defaults) for role in (*workload.roles, *workload.outside_gang)]
    except InvalidObjectError:
        # A submitter's, which is no member: the apiserver judges its Job, and Kueue cannot count it either.
        return
    if never := never_fits(sets, context.cluster_queue):
        rest = f"{never}, so that Kueue never admits it; lower the replicas or use a larger ClusterQueue"
        yield finding(Reason.EXCEEDS_KUEUE_QUOTA, path, rest)


def _pod_set(role: RoleSpec, pod_defaults: PodDefaults) -> PodSetNeed:
    """Return a role as Kueue counts it: by the manifest, without the init containers that its operator adds later."""
    spec = role.template.spec
    written = structs.replace(spec, init_containers=spec.init_containers[: len(spec.init_containers) - role.added])
    requests = pod_requests(pod_defaults.completed(written, path=role.path), path=role.path)
    return PodSetNeed(role.name, times(requests, role.replicas))
