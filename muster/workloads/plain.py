"""Pods, batch Jobs and StatefulSets that opt in: label `muster.dev/gang` and annotation `muster.dev/gang-size`.

They are on the pod, or on the pod template of the Job or StatefulSet; nothing broader, so that no other pod is ever
looked at. Pods of one name are one gang, made by hand, by a StatefulSet or by ReplicaSets; so the PodGroup has no
owner, and exists for as long as a pod of the gang does. A template that is run again and again (by a CronJob, a
workflow) makes a gang of each run: the webhook gives its pods a name of their own.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import replace

import msgspec

from muster.model import names
from muster.model.objects import Condition, InvalidObjectError, LocalObject, Object, ObjectMeta, OwnerReference, is_true
from muster.model.pods import Pod, PodTemplate, TemplateSpec
from muster.model.times import seconds_of
from muster.workloads.model import Kind, RoleSpec, SchedulingPolicy, TimeLimit, Workload

_ROLE = "member"
_HASH_LENGTH = 10
_LONGEST_SIZE = 9  # digits; minMember is an int32
_FINAL = ("Complete", "Failed")
_LONGEST_LABEL = 63
_NAMES_JOB = ("batch.kubernetes.io/job-name", "job-name")
# Kinds that replace pods next to others of the same gang, which may be another object's, as in a rollout.
_REPLACING = frozenset(
    {("apps", "StatefulSet"), ("apps", "ReplicaSet"), ("apps", "DaemonSet"), ("", "ReplicationController")}
)


class _Spec(LocalObject, frozen=True):
    parallelism: int = 1
    completions: int | None = None
    suspend: bool = False
    active_deadline_seconds: int | None = None
    managed_by: str = ""
    template: PodTemplate = PodTemplate()


class _Status(LocalObject, frozen=True):
    conditions: tuple[Condition, ...] = ()
    start_time: str = ""


class PlainJob(Object, frozen=True):
    """A Job (`batch/v1`)."""

    api_version: str = "batch/v1"
    spec: _Spec = _Spec()
    status: _Status = _Status()


class _SetSpec(LocalObject, frozen=True):
    replicas: int = 1
    pod_management_policy: str = "OrderedReady"
    template: PodTemplate = PodTemplate()


class PlainStatefulSet(Object, frozen=True):
    """A StatefulSet (`apps/v1`)."""

    api_version: str = "apps/v1"
    spec: _SetSpec = _SetSpec()


def _said(labels: Mapping[str, str]) -> SchedulingPolicy:
    # A policy must be set for the workload to be muster's; the number is read, and checked, with the rest.
    return SchedulingPolicy(min_available=1) if labels.get(names.GANG) else SchedulingPolicy()


def _gang(labels: Mapping[str, str], path: str) -> str:
    """Return the name of the gang and of its PodGroup; a label value may be no valid name."""
    name = labels.get(names.GANG, "")
    if not names.is_object_name(name):
        raise InvalidObjectError(
            f"{path}.labels[{names.GANG}]",
            f'"{name}" is no name; use lower case letters and digits, "-" and "." between them',
        )
    return name


def runs(maker: OwnerReference) -> bool:
    """True if each object of this kind is a run of its own: a Job, a workflow."""
    return (maker.group, maker.kind) not in _REPLACING


def gang_of_run(gang: str, run: str, *, made: bool) -> str:
    """Return the gang of a run of this name whose template names a gang, as a label value.

    A run that has a controller (`made`), and one whose name begins with the gang's, has a gang of its own. Pods that
    have its name already keep it.
    """
    if run.startswith(f"{gang}-"):
        return run
    if not (made and run) or gang == run:
        return gang
    own, mark = f"-{run}", f"-{hashlib.sha256(run.encode()).hexdigest()[:_HASH_LENGTH]}"
    if gang.endswith((own, mark)):
        return gang
    return gang + own if len(gang + own) <= _LONGEST_LABEL else gang[: _LONGEST_LABEL - len(mark)].rstrip("-.") + mark


def run_of(pod: Pod) -> str:
    """Return the UID of the Job that made a plain pod, if that Job makes a whole gang; "" if only a part of one."""
    completions, maker = completions_of(pod), pod.metadata.controller
    size = _number(pod.metadata.annotations.get(names.GANG_SIZE, ""))
    return maker.uid if maker is not None and completions and size and completions >= size else ""


def _size(annotations: Mapping[str, str], path: str) -> int:
    where = f"{path}.annotations[{names.GANG_SIZE}]"
    text = annotations.get(names.GANG_SIZE, "")
    if not text:
        raise InvalidObjectError(where, "missing; set the number of pods that the gang needs to start")
    size = _number(text)
    if not size:
        raise InvalidObjectError(where, f'"{text}" is not a number of pods; use 1 or more')
    return size


def _number(text: str) -> int | None:
    """Return a number of pods; None if the text is no number."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _LONGEST_SIZE else None


def completions_of(pod: Pod) -> int | None:
    """Return the number of pods of its Job that are to succeed; None if the webhook did not record it."""
    return _number(pod.metadata.annotations.get(names.GANG_COMPLETIONS, ""))


def time_limit_of(pod: Pod) -> int | None:
    """Return the time limit of its Job in seconds; None if the webhook did not record one."""
    return _number(pod.metadata.annotations.get(names.GANG_TIME_LIMIT, ""))


def of_size(workload: Workload, size: int) -> Workload:
    """Return the same plain gang with this minimum."""
    roles = tuple(replace(role, replicas=size, minimum=size) for role in workload.roles)
    return replace(workload, roles=roles, policy=SchedulingPolicy(min_available=size))


def _read_job(job: PlainJob) -> Workload:
    template = job.spec.template
    if not template.metadata.labels.get(names.GANG):
        # Opted in by its namespace or by a label of its own; such a Job's pods are no gang.
        return Workload(PLAIN_JOB, job.api_version, job.metadata)
    path = "spec.template.metadata"
    made = job.metadata.controller is not None
    gang = gang_of_run(_gang(template.metadata.labels, path), job.metadata.name, made=made)
    size = _size(template.metadata.annotations, path)
    completions = job.spec.completions
    for name, number in (("parallelism", job.spec.parallelism), ("completions", completions or 0)):
        if number < 0:
            raise InvalidObjectError(f"spec.{name}", f"{number} is negative; use 0 or more")
    pods = job.spec.parallelism if completions is None else min(job.spec.parallelism, completions)
    _check_size(size, pods, "there are at once; raise parallelism and completions, or lower it in a new Job")
    return Workload(
        kind=PLAIN_JOB,
        api_version=job.api_version,
        metadata=_intent_metadata(job),
        pod_group=gang,
        roles=(_members(pods, size, template),),
        policy=_policy(size, pods),
        suspended=job.spec.suspend,
        managed_by=job.spec.managed_by,
        finished=is_true(job.status.conditions, *_FINAL),
        failed=is_true(job.status.conditions, "Failed"),
        template=template.metadata,
        time_limits=_time_limits(job.spec.active_deadline_seconds, seconds_of(job.status.start_time)),
    )


def _time_limits(seconds: int | None, since: float | None = None, role: str = "") -> tuple[TimeLimit, ...]:
    """Return the limit of a Job, whose controller deletes the pods at its end."""
    path = "spec.activeDeadlineSeconds"
    return () if seconds is None else (TimeLimit(path, f"{seconds} s", since, seconds, frees_after=0.0, role=role),)


def _read_set(found: PlainStatefulSet) -> Workload:
    template, path = found.spec.template, "spec.template.metadata"
    if not template.metadata.labels.get(names.GANG):
        return Workload(PLAIN_STATEFUL_SET, found.api_version, found.metadata)
    gang, size, pods = (
        _gang(template.metadata.labels, path),
        _size(template.metadata.annotations, path),
        found.spec.replicas,
    )
    if pods < 0:
        raise InvalidObjectError("spec.replicas", f"{pods} is negative; use 0 or more")
    if size > 1 and found.spec.pod_management_policy != "Parallel":
        raise InvalidObjectError(
            "spec.podManagementPolicy",
            f"{found.spec.pod_management_policy} makes a pod when the one before it is ready, and none of the gang "
            f"starts before {size} are there; use Parallel, with which all pods are made at once",
        )
    _check_size(size, pods, "there are; lower it or raise replicas")
    return Workload(
        kind=PLAIN_STATEFUL_SET,
        api_version=found.api_version,
        metadata=_intent_metadata(found),
        pod_group=gang,
        roles=(_members(pods, size, template),),
        policy=_policy(size, pods),
        template=template.metadata,
        lasts=True,
    )


def _members(pods: int, size: int, template: PodTemplate) -> RoleSpec:
    return RoleSpec(_ROLE, pods, min(size, pods), template, "spec.template.spec")


def _policy(size: int, pods: int) -> SchedulingPolicy:
    """Return the policy of a gang, which is set even if there is no pod of it."""
    return SchedulingPolicy(min_available=size) if pods else SchedulingPolicy(min_resources={})


def _check_size(size: int, pods: int, there: str) -> None:
    """Check the size of a gang; without pods a Job is paused, or a StatefulSet stopped, and nothing waits."""
    if size > pods > 0:
        raise InvalidObjectError(
            f"spec.template.metadata.annotations[{names.GANG_SIZE}]", f"{size} is above the {pods} pods that {there}"
        )


def _intent_metadata(maker: PlainJob | PlainStatefulSet) -> ObjectMeta:
    """Return the metadata of its pods, which Kubernetes makes of the template alone; Kueue reads the maker's.

    A maker whose template names no gang is judged by its own metadata, so that its user is warned that it makes none.
    """
    own, template = maker.metadata, maker.spec.template.metadata
    if not template.labels.get(names.GANG):
        return own
    queue = {names.KUEUE_QUEUE: own.labels[names.KUEUE_QUEUE]} if names.KUEUE_QUEUE in own.labels else {}
    part = {names.KUEUE_PARTIAL: own.annotations[names.KUEUE_PARTIAL]} if names.KUEUE_PARTIAL in own.annotations else {}
    labels, annotations = {**queue, **template.labels}, {**part, **template.annotations}
    return msgspec.structs.replace(own, labels=labels, annotations=annotations)


def _read_pod(pod: Pod) -> Workload:
    if not pod.metadata.labels.get(names.GANG):
        return Workload(PLAIN_POD, "v1", pod.metadata)
    size = _size(pod.metadata.annotations, "metadata")
    return Workload(
        kind=PLAIN_POD,
        api_version="v1",
        metadata=pod.metadata,
        pod_group=_gang(pod.metadata.labels, "metadata"),
        roles=(RoleSpec(_ROLE, size, size, PodTemplate(spec=TemplateSpec.of(pod.spec)), "spec"),),
        policy=SchedulingPolicy(min_available=size),
        finished=not pod.living,
        failed=pod.status.phase == "Failed",
        time_limits=_time_limits(time_limit_of(pod), role=_ROLE),
    )


def _role_of(pod: Pod) -> str | None:
    return _ROLE if pod.metadata.labels.get(names.GANG) else None


PLAIN_JOB = Kind(
    group="batch",
    versions=("v1",),
    kind="Job",
    plural="jobs",
    pod_label=names.GANG,
    decoded=PlainJob,
    policy=lambda job: _said(job.spec.template.metadata.labels),
    read=_read_job,
    intent_metadata=_intent_metadata,
    role_of=_role_of,
    pod_labels=lambda workload, _: dict.fromkeys(_NAMES_JOB, workload.metadata.name),
    owns_pod_group=False,
)
PLAIN_STATEFUL_SET = Kind(
    group="apps",
    versions=("v1",),
    kind="StatefulSet",
    plural="statefulsets",
    pod_label=names.GANG,
    decoded=PlainStatefulSet,
    policy=lambda found: _said(found.spec.template.metadata.labels),
    read=_read_set,
    intent_metadata=_intent_metadata,
    role_of=_role_of,
    pod_labels=lambda workload, _: workload.template.labels if workload.template else {},
    owns_pod_group=False,
)
PLAIN_POD = Kind(
    group="",
    versions=("v1",),
    kind="Pod",
    plural="pods",
    pod_label=names.GANG,
    decoded=Pod,
    policy=lambda pod: _said(pod.metadata.labels),
    read=_read_pod,
    role_of=_role_of,
    pod_labels=lambda workload, _: workload.metadata.labels,
    owns_pod_group=False,
)
