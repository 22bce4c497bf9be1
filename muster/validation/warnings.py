"""Warnings for workloads that are accepted, and will not do what their users may expect."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from muster.gangs.intent import LEAST_REQUEUE, Intent, IntentScope, requeue_after, unreadable_limits
from muster.gangs.roles import Gang, Role
from muster.model.findings import Finding, Reason, finding
from muster.model.modes import GateMode
from muster.model.names import KUEUE_MOST_RUN, QUEUE_LABEL, REQUEUE_AFTER, TOPOLOGY_MODE_LABEL
from muster.model.objects import InvalidObjectError, ObjectMeta
from muster.model.pods import Pod
from muster.model.texts import listed
from muster.model.times import duration_of
from muster.queueing.queue_tree import Place, QueueLevel
from muster.queueing.verdicts import queue_on_hold
from muster.resources.amounts import Resources, describe, parse_resources, times, total
from muster.resources.pod_defaults import NOTHING_ADDED, PodDefaults
from muster.resources.quantity import ZERO
from muster.workloads import RoleSpec, Workload
from muster.workloads.mpi import LAUNCHER
from muster.workloads.ray import RAY_CLUSTER
from muster.workloads.volcano_job import VOLCANO_JOB

# Most roles in a line.
_NAMED = 3
# Most later roles whose need together with other roles is computed: those with the most other roles first.
_LOOKED_AT = 10


@dataclass(frozen=True, slots=True)
class Case:
    """A workload that makes a gang, its queue, and the additions of the cluster to its pods.

    `held` returns the usage of a queue, as Volcano counts it; None if the workload may be in it already. `gate` is the
    gate mode of the gang.
    """

    workload: Workload
    gang: Gang
    intent: Intent
    place: Place | None = None
    held: Callable[[str], Resources] | None = None
    pod_defaults: PodDefaults = NOTHING_ADDED
    gate: GateMode = GateMode.QUEUE

    @property
    def queue_path(self) -> str:
        """The path of the field that names the queue, or should."""
        return self.intent.paths.get("queue", self.workload.label_path(QUEUE_LABEL))

    @property
    def levels(self) -> tuple[QueueLevel, ...]:
        """The limits of its queue and of those above; () if the queue takes no gangs, which is reported instead."""
        return self.place.levels if self.place and self.takes_gangs else ()

    @property
    def takes_gangs(self) -> bool:
        """True if its queue takes gangs at all."""
        return self.place is not None and self.place.leaf and not self.place.view.closed

    def above(self, need: Resources) -> tuple[QueueLevel, str, str] | None:
        """Return the first limit that the need exceeds, and both in words."""
        for level in self.levels:
            if over := level.exceeded(need):
                return level, *over
        return None

    def path_of(self, role: Role) -> str:
        """Return the path of a role's template."""
        spec = self.workload.role(role.name)
        return spec.path if spec else "spec"


def surprises(case: Case) -> Iterator[Finding]:
    """Yield all warnings, each once."""
    yield from case.workload.findings
    for rule in (_classes, _time, _requests, _minimum, _room, _bound):
        yield from rule(case)


def _classes(case: Case) -> Iterator[Finding]:
    # Not refused: the class may be created later, and until then the apiserver refuses the pods.
    for role in case.workload.roles:
        if role.replicas and (found := case.pod_defaults.objection(role.template.spec, path=role.path)):
            yield found


def _time(case: Case) -> Iterator[Finding]:
    workload, scheduler = case.workload, case.intent.gang_scheduler
    for limit in workload.time_limits:
        rest = (
            f"{limit.text} are counted while the gang waits for room, too; when they are over, "
            "the workload fails, whether it has run or not"
        )
        yield finding(Reason.TIME_LIMIT_WHILE_WAITING, limit.path, rest)
    text = workload.metadata.annotations.get(REQUEUE_AFTER, "")
    if text and workload.kind.pods_of_jobs:
        rest = "it is ignored for this kind: a Job that loses its pod counts a failure against its backoffLimit"
        yield finding(Reason.VALUE_IGNORED, workload.annotation_path(REQUEUE_AFTER), rest)
    elif text and requeue_after(text) is None:
        rest = f'"{text[:80]}" is not a duration such as 30s, 10m or 1h30m; it is ignored'
        yield finding(Reason.VALUE_IGNORED, workload.annotation_path(REQUEUE_AFTER), rest)
    elif text and (duration_of(text.partition(",")[0].strip()) or 0) < LEAST_REQUEUE:
        rest = f'"{text[:80]}" is below {LEAST_REQUEUE:g}s, which counts'
        yield finding(Reason.VALUE_IGNORED, workload.annotation_path(REQUEUE_AFTER), rest)
    if case.intent.topology is not None and not scheduler.topology:
        path = workload.label_path(TOPOLOGY_MODE_LABEL)
        rest = f"{scheduler.name} knows no network topology; it is ignored, and pods may be far from each other"
        yield finding(Reason.VALUE_IGNORED, path, rest)
    if workload.policy.schedule_timeout_seconds is not None and not scheduler.timeouts:
        path = f"{workload.policy_path}.scheduleTimeoutSeconds"
        rest = f"{scheduler.name} does not know it; the gang waits for as long as it must"
        yield finding(Reason.SCHEDULE_TIMEOUT_IGNORED, path, rest)


def _requests(case: Case) -> Iterator[Finding]:
    """Yield the findings about requests of the pods."""
    workload, gang, scheduler = case.workload, case.gang, case.intent.gang_scheduler
    if not any(role.replicas for role in gang.roles):
        yield finding(
            Reason.NO_PODS, "spec", f'gang "{gang.name}" has no pods; nothing starts until its replicas are raised'
        )
    yield from _missing(case)
    claiming = [role for role in workload.roles if role.template.spec.resource_claims]
    if claiming:
        yield uncounted_claims(claiming[0].path, f"pods of {_names(claiming)}")
    as_a_whole = [role for role in workload.roles if role.replicas and role.template.spec.resources.named]
    if as_a_whole and scheduler.pod_level_since:
        rest = (
            f"{scheduler.name} before {scheduler.pod_level_since} does not count what pods of {_names(as_a_whole)} ask "
            "for as a whole, so that a node may be given more than it has; ask for it in the containers"
        )
        yield finding(Reason.POD_LEVEL_RESOURCES, f"{as_a_whole[0].path}.resources", rest)


def uncounted_claims(path: str, pods: str) -> Finding:
    """Return the finding for pods with devices by ResourceClaims; their specification is at `path`."""
    rest = (
        f"{pods} get devices by ResourceClaims, which count in no queue, whatever it allows; ask for them as an "
        "extended resource"
    )
    return finding(Reason.RESOURCE_CLAIMS, f"{path}.resourceClaims", rest)


def _missing(case: Case) -> Iterator[Finding]:
    """Yield findings for pods without requests, or without requests for the resources of their queue."""
    # A launcher of MPI only starts the program on the workers.
    needed = [role for role in case.gang.roles if role.minimum and role.name != LAUNCHER]
    asking = [role for role in needed if any(role.requests.values())]
    if case.place and len(asking) < len(needed):
        nothing = [role for role in needed if not any(role.requests.values())]
        rest = f"the pods of {_roles(nothing)} request nothing, so that no queue keeps room for them"
        path = f"{case.path_of(nothing[0])}.containers"
        yield finding(Reason.REQUESTS_MISSING, path, f"{rest}; give their containers requests")
    for resource in ("cpu", "memory"):
        without = [role for role in asking if not role.requests.get(resource)]
        level = next((one for one in case.levels if resource in one.limit), None)
        if without and level:
            rest = (
                f"the pods of {_roles(without)} request no {resource}, and {level.called(case.intent.queue)} limits "
                f"{resource} ({level.limit[resource]}); give their containers a request for it"
            )
            yield finding(Reason.REQUESTS_MISSING, f"{case.path_of(without[0])}.containers", rest)


def _minimum(case: Case) -> Iterator[Finding]:
    """Yield the finding for a minAvailable with which the gang starts, and cannot work."""
    workload, available = case.workload, case.workload.policy.min_available
    if available is not None and available < workload.needs:
        starting = "pod starts" if available == 1 else "pods start"
        rest = (
            f"{available} {starting} the gang, but the job cannot work with fewer than {workload.needs}, "
            "and those that run hold their room; raise it, or leave it out"
        )
        yield finding(Reason.MIN_AVAILABLE_TOO_LOW, f"{workload.policy_path}.minAvailable", rest)


def _room(case: Case) -> Iterator[Finding]:
    """Yield findings about room in the queue, other than the refusal of a gang that never fits."""
    gang, queue = case.gang, case.intent.queue
    if case.above(gang.needed) is not None:
        # Refused or warned for that.
        return
    if case.place and (zeros := [name for name in case.place.view.zeros if gang.needed.get(name)]):
        rest = (
            f'queue "{queue}" has capability {" and ".join(f"{name} 0" for name in zeros)}, which means unlimited to '
            f"Volcano; the gang needs {describe({name: gang.needed[name] for name in zeros})} and gets it"
        )
        yield finding(Reason.CAPABILITY_OF_ZERO, case.queue_path, rest)
    twice = case.above(times(gang.needed, 2)) if case.workload.upgrade_doubles else None
    if twice:
        level, need, limit = twice
        rest = (
            f"while it is upgraded two clusters run, which need {need} together, and {level.called(queue)} has "
            f"capability {limit}; the new one waits until there is room, raise the capability or upgrade in another way"
        )
        yield finding(Reason.NO_ROOM_TO_UPGRADE, case.workload.upgrade_doubles, rest)
    yield from _growth(case)
    yield from _later(case)
    yield from _nearly_full(case)


def _growth(case: Case) -> Iterator[Finding]:
    growing = {role.name: role.growth for role in case.workload.roles if role.growth}
    pods = {role.name: growing[role.name].most if role.name in growing else role.minimum for role in case.gang.roles}
    over = case.above(total(times(role.requests, pods[role.name]) for role in case.gang.roles)) if growing else None
    if over:
        level, need, limit = over
        first = next(iter(growing.values()))
        rest = (
            f"grown to all {sum(pods.values())} pods it needs {need}, and {level.called(case.intent.queue)} has "
            f"capability {limit}; pods beyond that wait, whatever the autoscaler asks for"
        )
        yield finding(Reason.GROWS_BEYOND_CAPABILITY, first.path, rest)


def _later(case: Case) -> Iterator[Finding]:
    """Yield the finding for the first role that comes when others are ready, and never fits together with these."""
    # A group that starts at once, and never fits, is refused.
    later = [spec for spec in case.workload.roles if spec.together and spec.runs_with and not spec.group]
    if case.gate is not GateMode.QUEUE or not case.levels:
        return
    if len(later) > _LOOKED_AT:
        later = sorted(later, key=lambda spec: spec.runs_with.bit_count())[-_LOOKED_AT:]
    for spec in later:
        others = [role.name for place, role in enumerate(case.workload.roles) if spec.runs_with >> place & 1]
        own, names = case.gang.role(spec.name), {spec.name, *others}
        over = case.above(total(role.whole for role in case.gang.roles if role.name in names))
        # A role that is too large by itself is refused or warned for that.
        if over and own and not case.above(own.whole):
            level, need, limit = over
            rest = (
                f'"{spec.name}" comes when {listed(others, _NAMED)} {"is" if len(others) == 1 else "are"} ready; '
                f"together they need {need}, and {level.called(case.intent.queue)} has capability {limit}; "
                "its pods wait until the others have ended, however long that takes"
            )
            yield finding(Reason.GROWS_BEYOND_CAPABILITY, spec.path, rest)
            return


def _nearly_full(case: Case) -> Iterator[Finding]:
    """Yield the finding for a queue without room now: others use it, or the queue is on hold.

    There is no such finding if other gangs are preempted for this one.

    The message does not contain the usage of others: any client of the webhook may ask.
    """
    if case.held is None or case.workload.suspended or case.place is None:
        return
    if case.place.on_hold_by and case.takes_gangs and case.gate is not GateMode.OFF:
        # With or without room.
        rest = f"{queue_on_hold(case.intent.queue, case.place.on_hold_by).message}; the gang waits until then"
        yield finding(Reason.QUEUE_ON_HOLD, case.queue_path, rest)
        return
    if case.place.view.preempts and _preempts(case):
        return
    need = {name: amount for name, amount in case.gang.needed.items() if amount > ZERO}
    for level in case.levels:
        held = case.held(level.queue)
        short = [name for name in need if name in level.limit and held.get(name, ZERO) + need[name] > level.limit[name]]
        if short:
            asked = describe({name: need[name] for name in short})
            rest = (
                f'gang "{case.gang.name}" needs {asked}; {level.called(case.intent.queue)} has less than that free now '
                f"(its capability is {describe({name: level.limit[name] for name in short})}); the gang waits until "
                "there is room, and its event WaitingForQuota says its position"
            )
            yield finding(Reason.QUEUE_NEARLY_FULL, case.queue_path, rest)
            return


def _preempts(case: Case) -> bool:
    """True if gangs of lower priority are evicted for the gang; the policy of its PriorityClass is not known."""
    forbidden = any(role.template.spec.preemption_policy == "Never" for role in case.workload.roles)
    return case.intent.gang_scheduler.preempts and case.intent.topology is None and not forbidden


def _bound(case: Case) -> Iterator[Finding]:
    scheduler, groups = case.intent.gang_scheduler, {}
    for role in case.workload.roles:
        template = role.template.metadata
        pod = Pod(metadata=ObjectMeta(labels=template.labels, annotations=template.annotations))
        groups[role.name] = scheduler.bound_to(pod)
    held = [role for role in case.workload.roles if role.replicas and role.gated and not groups[role.name]]
    others = f"and those of {_roles(held)} wait for them in vain; bind the pods of all roles, or of none"
    seen = {""}
    for role in case.workload.roles:
        group, path = groups[role.name], f"{role.path.removesuffix('spec')}metadata"
        if group not in seen:
            seen.add(group)
            rest = f'its pods come bound to PodGroup "{group}"; muster leaves them to it, '
            yield finding(Reason.BOUND_TO_POD_GROUP, path, rest + (others if held else "and makes none"))


def _roles(roles: list[Role] | list[RoleSpec]) -> str:
    return f"{'role' if len(roles) == 1 else 'roles'} {_names(roles)}"


def _names(roles: list[Role] | list[RoleSpec]) -> str:
    return listed([role.name for role in roles], _NAMED)


def run_time_findings(workload: Workload, intent: Intent, scope: IntentScope) -> Iterator[Finding]:
    """Yield the findings; for a workload that a controller made only warnings, since its maker is judged itself."""
    made = workload.metadata.controller is not None
    for path, text in unreadable_limits(workload, scope.intent_sources):
        rest = f'"{text[:80]}" is not a duration from 1m to 1440h (60 days); write one such as 90m or 36h'
        yield finding(Reason.VALUE_IGNORED if made else Reason.INVALID, path, rest)
    run = intent.run_limit
    # Kueue itself enforces its own label.
    if run is None or made or KUEUE_MOST_RUN in run.path:
        return
    if workload.kind is VOLCANO_JOB:
        yield finding(Reason.VALUE_IGNORED, run.path, "it is ignored, for muster does not start Volcano's own Jobs")
        return
    if workload.lasts:
        rest = f"it is ignored, for a {workload.kind.kind} stays until it is deleted"
        cure = "; set shutdownAfterJobFinishes in a RayJob" if workload.kind is RAY_CLUSTER else ""
        yield finding(Reason.VALUE_IGNORED, run.path, rest + cure)
        return
    limits = [limit for limit in workload.time_limits if limit.frees_after is not None]
    if any(limit.seconds <= run.seconds for limit in limits):
        return
    longer = f"; {limits[0].path} ends it after {limits[0].text} only" if limits else ""
    rest = f"gangs behind count on {run.text}, and nothing ends the workload then{longer}"
    yield finding(Reason.BOUND_NOT_ENFORCED, run.path, rest)


def unreadable_amounts(workload: Workload) -> list[Finding]:
    """Return a finding for each amount of a container that is no quantity."""
    found = []
    for role in workload.roles:
        spec = role.template.spec
        for field, containers in (("containers", spec.containers), ("initContainers", spec.init_containers)):
            for index, one in enumerate(containers):
                for part, amounts in (("requests", one.resources.requests), ("limits", one.resources.limits)):
                    path = f"{role.path}.{field}[{index}].resources.{part}"
                    found += [*_unreadable(amounts, path)]
    return found


def _unreadable(amounts: Mapping[str, str | int | float], path: str) -> Iterator[Finding]:
    for name, amount in amounts.items():
        try:
            parse_resources({name: amount}, path=path)
        except InvalidObjectError as error:
            yield Finding(Reason.INVALID, error.field, str(error))
