"""JobSet (`jobset.x-k8s.io/v1alpha2`): replicated jobs, each of several batch Jobs of several pods.

Jobs that wait until others are complete are later waves, and join the gang. Jobs that wait until others are ready, or
come later in order, run together with these: they are made when the gang has started, and their room is kept from then
on. With exclusive placement JobSet refuses all pods of a Job but the first until that has a node: the first ones are
the gang, and the room of the others is kept in the same way.
"""

import dataclasses
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import reduce
from operator import or_
from typing import ClassVar

from msgspec.structs import replace

from muster.model.findings import Finding, Reason
from muster.model.names import read_key
from muster.model.objects import Condition, InvalidObjectError, LocalObject, Object, is_true
from muster.model.pods import PodTemplate, TemplateMeta
from muster.workloads.bounds import Bounded
from muster.workloads.model import Kind, RoleSpec, TimeLimit, Workload, label_of

_SET_LABEL = read_key("jobset.sigs.k8s.io/jobset-name")
_JOB_LABEL = read_key("jobset.sigs.k8s.io/replicatedjob-name")
_FINAL = ("Completed", "Failed")
# Actions of a failure policy after which nothing runs again where `maxRestarts` is 0.
_FINAL_ACTIONS = ("FailJobSet", "RestartJobSet")
# Annotations on a JobSet, on the template of a replicated job or on its pod template: the topology domain in which each
# Job is placed alone; and the placement by existing labels of nodes, which delays no pod.
_EXCLUSIVE = read_key("alpha.jobset.sigs.k8s.io/exclusive-topology")
_BY_NODE_LABELS = read_key("alpha.jobset.sigs.k8s.io/node-selector")


class _JobSpec(LocalObject, frozen=True):
    parallelism: int = 1
    active_deadline_seconds: int | None = None
    completions: int | None = None
    template: PodTemplate = PodTemplate()


class _JobTemplate(LocalObject, frozen=True):
    metadata: TemplateMeta = TemplateMeta()
    spec: _JobSpec = _JobSpec()


class _DependsOn(LocalObject, frozen=True):
    name: str = ""
    status: str = ""


class ReplicatedJob(LocalObject, frozen=True):
    """A number of equal Jobs."""

    name: str = ""
    replicas: int = 1
    depends_on: tuple[_DependsOn, ...] = ()
    template: _JobTemplate = _JobTemplate()

    @property
    def pods_of_each(self) -> int:
        """The number of pods that each of its Jobs has at once."""
        job = self.template.spec
        return job.parallelism if job.completions is None else min(job.parallelism, job.completions)

    @property
    def pods(self) -> int:
        """The number of pods that it has at once."""
        return self.replicas * self.pods_of_each

    @property
    def complete(self) -> bool:
        """True if it has nothing to do, so that it is complete as soon as it exists."""
        return self.replicas == 0 or self.template.spec.completions == 0


class _FailureRule(LocalObject, frozen=True):
    action: str = ""


class _FailurePolicy(LocalObject, frozen=True):
    max_restarts: int = 0
    rules: tuple[_FailureRule, ...] = ()

    @property
    def restarts(self) -> bool:
        """True if Jobs may run again after a failure, each with a new clock."""
        return self.max_restarts > 0 or any(rule.action not in _FINAL_ACTIONS for rule in self.rules)


class _StartupPolicy(LocalObject, frozen=True):
    startup_policy_order: str = "AnyOrder"


class JobSetSpec(Bounded, frozen=True):
    """The specification of a JobSet; also the template of Trainer's runtimes."""

    replicated_jobs: tuple[ReplicatedJob, ...] = ()
    startup_policy: _StartupPolicy = _StartupPolicy()
    failure_policy: _FailurePolicy = _FailurePolicy()
    suspend: bool = False
    managed_by: str = ""
    held: ClassVar[tuple[str, ...]] = ("replicated_jobs",)

    def templates(self) -> Iterator[PodTemplate]:
        """Yield the pod templates of all replicated jobs."""
        yield from (job.template.spec.template for job in self.replicated_jobs)


class JobsStatus(LocalObject, frozen=True):
    """The number of Jobs of a replicated job that have succeeded; those are not started again."""

    name: str = ""
    succeeded: int = 0


class _Status(LocalObject, frozen=True):
    conditions: tuple[Condition, ...] = ()
    terminal_state: str = ""
    replicated_jobs_status: tuple[JobsStatus, ...] = ()


class JobSet(Object, frozen=True):
    """A set of Jobs that belong together."""

    api_version: str = "jobset.x-k8s.io/v1alpha2"
    spec: JobSetSpec = JobSetSpec()
    status: _Status = _Status()


def wave_roles(spec: JobSetSpec, path: str, annotations: Mapping[str, str]) -> tuple[RoleSpec, ...]:
    """Return the roles of a JobSet with these annotations; roles of later waves have no minimum.

    Raises InvalidObjectError for negative numbers and for names that are missing or taken.
    """
    spec.check(path)
    if not spec.replicated_jobs:
        raise InvalidObjectError(f"{path}.replicatedJobs", "empty; a JobSet has at least one")
    names: set[str] = set()
    for index, job in enumerate(spec.replicated_jobs):
        _check(job, names, f"{path}.replicatedJobs[{index}]")
        names.add(job.name)
    return _waves(spec, path, annotations, {})


def roles_left(
    spec: JobSetSpec, path: str, annotations: Mapping[str, str], status: Iterable[JobsStatus]
) -> tuple[RoleSpec, ...]:
    """Return the roles that are left: `wave_roles` without the Jobs that have succeeded; () if none has."""
    succeeded = {one.name: one.succeeded for one in status if one.succeeded > 0}
    return _waves(spec, path, annotations, succeeded) if succeeded else ()


def late_followers(roles: Iterable[RoleSpec]) -> tuple[Finding, ...]:
    """Return a finding for pods that are made only when others have a node."""
    follow = [role for role in roles if role.made_first]
    if not follow:
        return ()
    path, first = follow[0].path, sum(role.made_first for role in follow)
    rest = (
        f"exclusive-topology has JobSet make {first} of {sum(role.replicas for role in follow)} pods first, and the "
        "others when these have nodes; the queue keeps room for the others from the beginning, and no node does"
    )
    return (Finding(Reason.FOLLOWERS_COME_LATER, path, f"{path}: {rest}"),)


def time_limits(spec: JobSetSpec, path: str) -> tuple[TimeLimit, ...]:
    """Return the time limits of its Jobs, each counted from the start of its Job, which makes the pods.

    The longest of them is the limit of the JobSet if each Job has one, all start together, and none runs again.
    """
    seconds = [job.template.spec.active_deadline_seconds for job in spec.replicated_jobs]
    waits = spec.startup_policy.startup_policy_order == "InOrder" or any(job.depends_on for job in spec.replicated_jobs)
    known = [one for one in seconds if one is not None]
    whole = len(known) == len(seconds) and not (waits or spec.failure_policy.restarts)
    return tuple(
        TimeLimit(
            f"{path}.replicatedJobs[{index}].template.spec.activeDeadlineSeconds",
            f"{limit} s",
            seconds=limit,
            frees_after=0.0 if whole and limit == max(known) else None,
            role=job.name,
        )
        for index, (job, limit) in enumerate(zip(spec.replicated_jobs, seconds, strict=True))
        if limit is not None
    )


def _waves(
    spec: JobSetSpec, path: str, annotations: Mapping[str, str], succeeded: Mapping[str, int]
) -> tuple[RoleSpec, ...]:
    in_order = spec.startup_policy.startup_policy_order == "InOrder"
    before: dict[str, ReplicatedJob] = {}
    running: dict[str, int] = {}
    groups = _Groups()
    previous = ""
    first, roles = [], []
    for index, replicated in enumerate(spec.replicated_jobs):
        done = min(succeeded.get(replicated.name, 0), replicated.replicas)
        job = replace(replicated, replicas=replicated.replicas - done)
        # No job waits for a job without pods.
        waits = [one for one in job.depends_on if not _reached(before.get(one.name), one.status)]
        ready = {one.name for one in waits if one.status == "Ready"}
        if in_order and previous:
            ready.add(previous)
        runs_with = _runs_with(job, before, running, in_order=in_order)
        running[job.name] = runs_with | 1 << index
        groups.add(job.name, 1 << index, ready, {one.name for one in waits} - ready)
        role = RoleSpec(
            name=job.name,
            replicas=job.pods,
            minimum=0,
            template=job.template.spec.template,
            path=f"{path}.replicatedJobs[{index}].template.spec.template.spec",
            made_first=job.replicas if job.pods > job.replicas and _exclusive(job, annotations) else 0,
            runs_with=runs_with,
        )
        roles.append(role)
        first.append(not waits and not (in_order and previous))
        before[job.name] = job
        previous = job.name if job.pods else previous
    start = {groups.of(role.name) for role, now in zip(roles, first, strict=True) if now}
    return tuple(
        dataclasses.replace(role, group=groups.shared(role.name)).of_wave(
            now=now or groups.of(role.name) in start, joins=not now
        )
        for role, now in zip(roles, first, strict=True)
    )


class _Groups:
    """The groups of jobs that run at the same time: a job that waits until others are ready is in their group.

    A job that starts when one of that group is complete takes its room, and is in a group of its own.
    """

    def __init__(self) -> None:
        self._parents: dict[str, str] = {}
        self._members: dict[str, int] = {}
        self._over: dict[str, int] = {}
        self._bits: dict[str, int] = {}

    def add(self, name: str, bit: int, ready: Iterable[str], complete: Iterable[str]) -> None:
        """Add a job, with the jobs that must be ready, or complete, before it is made; `bit` represents it."""
        known = [one for one in ready if one in self._bits]
        over = [self._over[one] | self._bits[one] for one in complete if one in self._bits]
        self._over[name] = reduce(or_, [*over, *(self._over[one] for one in known)], 0)
        self._parents[name], self._bits[name], self._members[name] = name, bit, bit
        others = {self.of(one) for one in known}
        if not self._over[name] & reduce(or_, (self._members[one] for one in others), 0):
            for one in others:
                self._parents[one] = name
                self._members[name] |= self._members[one]

    def of(self, name: str) -> str:
        """Return the job that represents the group of this one."""
        while self._parents[name] != name:
            self._parents[name] = self._parents[self._parents[name]]
            name = self._parents[name]
        return name

    def shared(self, name: str) -> int:
        """Return a number for the group of the job; 0 if no other job is in it."""
        of = self.of(name)
        return self._bits[of].bit_length() if self._members[of].bit_count() > 1 else 0


def _runs_with(
    job: ReplicatedJob, before: Mapping[str, ReplicatedJob], running: Mapping[str, int], *, in_order: bool
) -> int:
    """Return `RoleSpec.runs_with` of a job; `running` has that of each job `before`, with the job itself."""
    if in_order:
        return (1 << len(before)) - 1
    return reduce(or_, (running.get(one.name, 0) for one in job.depends_on if one.status == "Ready"), 0)


def _exclusive(job: ReplicatedJob, annotations: Mapping[str, str]) -> bool:
    """True if all pods of a Job but the first wait for its node (pkg/webhooks/pod_webhook.go of 0.12.0).

    JobSet copies both annotations from the object on which it finds the first one.
    """
    of_pods = job.template.spec.template.metadata.annotations
    asking = [one for one in (annotations, job.template.metadata.annotations, of_pods) if _EXCLUSIVE in one]
    return bool(asking) and not any(_BY_NODE_LABELS in one for one in (*asking, of_pods))


def _check(job: ReplicatedJob, before: Collection[str], where: str) -> None:
    if not job.name:
        raise InvalidObjectError(f"{where}.name", "missing; a replicated job needs a name")
    if job.name in before:
        raise InvalidObjectError(f"{where}.name", f'"{job.name}" is taken; names of replicated jobs differ')
    for name, number in (
        ("replicas", job.replicas),
        ("template.spec.parallelism", job.template.spec.parallelism),
        ("template.spec.completions", job.template.spec.completions or 0),
    ):
        if number < 0:
            raise InvalidObjectError(f"{where}.{name}", f"{number} is negative; use 0 or more")


def _reached(job: ReplicatedJob | None, status: str) -> bool:
    """True if the awaited status is reached at the start, as JobSet counts it (jobset_controller.go of 0.12.0)."""
    if job is None:
        return False
    return job.complete if status == "Complete" else not job.pods


def _read(job_set: JobSet) -> Workload:
    annotations = job_set.metadata.annotations
    roles = wave_roles(job_set.spec, "spec", annotations)
    return Workload(
        kind=JOB_SET,
        api_version=job_set.api_version,
        metadata=job_set.metadata,
        pod_group=job_set.metadata.name,
        roles=roles,
        remaining_roles=roles_left(job_set.spec, "spec", annotations, job_set.status.replicated_jobs_status),
        findings=late_followers(roles),
        time_limits=time_limits(job_set.spec, "spec"),
        suspended=job_set.spec.suspend,
        managed_by=job_set.spec.managed_by,
        finished=bool(job_set.status.terminal_state) or is_true(job_set.status.conditions, *_FINAL),
        failed=job_set.status.terminal_state == "Failed" or is_true(job_set.status.conditions, "Failed"),
    )


JOB_SET = Kind(
    group="jobset.x-k8s.io",
    versions=("v1alpha2",),
    kind="JobSet",
    plural="jobsets",
    pod_label=_SET_LABEL,
    maker="JobSet",
    decoded=JobSet,
    read=_read,
    role_of=label_of(_JOB_LABEL),
    pod_labels=lambda workload, role: {_SET_LABEL: workload.metadata.name, _JOB_LABEL: role.name},
    in_waves=True,
    pods_of_jobs=True,
)
