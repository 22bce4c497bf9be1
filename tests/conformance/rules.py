"""The numbered rules of docs/conformance.md: what an operator does otherwise than muster, and exactly how.

A rule takes muster's group and gives the group as the operator would make it; where the operator leaves it to chance,
it gives all that may come. After all rules of an operator one of the groups must be the operator's, in every field.
"""

from __future__ import annotations

import copy
import itertools
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import msgspec

from muster.objects import Container, PodSpec, ResourceRequirements
from tests.conformance.case import KUBERAY, MPI, TRAINER, TRAINING
from tests.conformance.groups import PRIORITIES, Group, Pods

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from tests.conformance.case import Case, Manifest, Operator

__all__ = ["NONE", "REFUSED", "RULES", "Rule", "each"]

NONE, REFUSED = "no PodGroup", "refused"
MUSTER, DESIGN = "muster", "both"


@dataclass(frozen=True)
class Rule:
    """One difference: whose numbers serve the user better (`better`), and what it does to muster's group."""

    number: str
    operators: tuple[Operator, ...]
    better: str
    says: str
    change: Callable[[Case, Group], Iterable[Group]]
    asked: Callable[[Case], Case | None] = lambda _: None
    """Where muster makes no group: the case for which it makes the one to go on from, if the rule knows one."""
    ends: Callable[[Case], str | None] = lambda _: None
    """Where the operator makes no group: NONE."""


# --- what the rules are made of -------------------------------------------------------------------------------------


def _same(_case: Case, group: Group) -> Iterator[Group]:
    yield group


def each(change: Callable[[PodSpec], PodSpec]) -> Callable[[Case, Group], Iterator[Group]]:
    """The change of a rule that reads every pod otherwise."""

    def changed(_case: Case, group: Group) -> Iterator[Group]:
        yield replace(group, pods={name: replace(pods, spec=change(pods.spec)) for name, pods in group.pods.items()})

    return changed


_ADDED = frozenset({"autoscaler", "wait-gcs-ready", "init-pytorch", "kubectl-delivery"})


def _as_written(spec: PodSpec) -> PodSpec:
    return msgspec.structs.replace(
        spec,
        containers=tuple(one for one in spec.containers if one.name not in _ADDED),
        init_containers=tuple(one for one in spec.init_containers if one.name not in _ADDED),
    )


def _containers_only(spec: PodSpec) -> PodSpec:
    return msgspec.structs.replace(spec, init_containers=(), overhead={}, resources=ResourceRequirements())


def _requests_hide_limits(spec: PodSpec) -> PodSpec:
    def of(container: Container) -> Container:
        if not container.resources.requests:
            return container
        only = ResourceRequirements(requests=container.resources.requests)
        return msgspec.structs.replace(container, resources=only)

    return msgspec.structs.replace(spec, containers=tuple(of(one) for one in spec.containers))


def _policy(case: Case) -> Manifest:
    run = case.manifest["spec"].get("runPolicy") or {}
    return run.get("schedulingPolicy") or {}


def _replica_specs(manifest: Manifest) -> Manifest:
    found: Manifest = next(value for name, value in manifest["spec"].items() if name.endswith("ReplicaSpecs"))
    return found


def _suspended(case: Case) -> bool:
    spec = case.manifest["spec"]
    cluster = spec.get("rayClusterConfig") or {}
    return bool(spec.get("suspend") or cluster.get("suspend") or (spec.get("runPolicy") or {}).get("suspend"))


def _ends_suspended(case: Case) -> str | None:
    return NONE if _suspended(case) else None


def _priority(pods: Pods) -> int:
    return PRIORITIES.get(pods.spec.priority_class_name, 0)


# --- all operators --------------------------------------------------------------------------------------------------


def _without_other_scheduler(original: Case) -> Case | None:
    case = copy.deepcopy(original)
    case.manifest["metadata"].get("labels", {}).pop("ray.io/scheduler-name", None)
    for template in (one for manifest in (case.manifest, *case.context) for one in _all_templates(manifest)):
        template.pop("schedulerName", None)
    return None if case == original else case


def _all_templates(manifest: Manifest) -> Iterator[Manifest]:
    if manifest["apiVersion"].startswith("ray.io"):
        spec = manifest["spec"]
        cluster = spec.get("rayClusterSpec") or spec.get("rayClusterConfig") or spec
        for group in (cluster.get("headGroupSpec") or {}, *(cluster.get("workerGroupSpecs") or ())):
            yield group.get("template", {}).get("spec", {})
    elif manifest["kind"] == "TrainingRuntime":
        for job in manifest["spec"]["template"]["spec"]["replicatedJobs"]:
            yield job["template"]["spec"]["template"]["spec"]
    elif manifest["kind"] != "TrainJob":
        for replicas in _replica_specs(manifest).values():
            yield replicas["template"]["spec"]


# --- KubeRay --------------------------------------------------------------------------------------------------------


def _cluster(case: Case) -> Manifest:
    spec = case.manifest["spec"]
    found: Manifest = spec.get("rayClusterSpec") or spec.get("rayClusterConfig") or spec
    return found


def _ray_queue(case: Case, group: Group) -> Iterator[Group]:
    yield replace(group, queue=_label(case, "volcano.sh/queue-name") or "default")


def _ray_priority(case: Case, group: Group) -> Iterator[Group]:
    yield replace(group, priority_class=_label(case, "ray.io/priority-class-name"))


def _label(case: Case, key: str) -> str:
    return str(case.manifest["metadata"].get("labels", {}).get(key, ""))


def _unclamped(case: Case, group: Group) -> Iterator[Group]:
    cluster = _cluster(case)
    if cluster.get("enableInTreeAutoscaling"):
        yield group
        return
    counts = {
        one["groupName"]: one.get("replicas", 0) * one.get("numOfHosts", 1)
        for one in cluster.get("workerGroupSpecs") or ()
        if not one.get("suspend")
    }
    yield group.counting(counts)


def _without_a_replica(original: Case) -> Case | None:
    """With no replica in place of those that have no host."""
    manifest = copy.deepcopy(original.manifest)
    spec = manifest["spec"]
    for one in (spec.get("rayClusterSpec") or spec.get("rayClusterConfig") or spec).get("workerGroupSpecs") or ():
        if one.get("numOfHosts", 1) < 1:
            one |= {"replicas": 0, "minReplicas": 0, "numOfHosts": 1}
    return None if manifest == original.manifest else replace(original, manifest=manifest)


def _named_after_job(case: Case, group: Group) -> Iterator[Group]:
    meta = case.manifest["metadata"]
    name = meta.get("name") or f"{meta['generateName']}xxxxx"
    yield replace(group, name=f"ray-{name}-pg") if case.kind == "RayJob" else group


_SUBMITTER = Container(resources=ResourceRequirements(requests={"cpu": "500m", "memory": "200Mi"}))


def _submitter(case: Case, group: Group) -> Iterator[Group]:
    spec = case.manifest["spec"]
    if case.kind != "RayJob" or spec.get("submissionMode", "K8sJobMode") != "K8sJobMode":
        yield group
        return
    own = (spec.get("submitterPodTemplate") or {}).get("spec")
    pod = msgspec.convert(own, PodSpec) if own else PodSpec(containers=(_SUBMITTER,))
    yield replace(group, pods={**group.pods, "": Pods(_containers_only(pod), 1, 1)})


# --- Training operator ----------------------------------------------------------------------------------------------


def _policy_queue(case: Case, group: Group) -> Iterator[Group]:
    yield replace(group, queue=_policy(case).get("queue") or "default")


def _policy_priority(case: Case, group: Group) -> Iterator[Group]:
    yield replace(group, priority_class=_policy(case).get("priorityClass", ""))


def _possible_min_available(original: Case) -> Case | None:
    """With every pod in place of a minAvailable that no gang can have."""
    manifest = copy.deepcopy(original.manifest)
    policy = manifest["spec"].get("runPolicy", {}).get("schedulingPolicy", {})
    if "minAvailable" not in policy:
        return None
    waiting = manifest["spec"].get("launcherCreationPolicy") == "WaitForWorkersReady"
    policy["minAvailable"] = sum(
        spec.get("replicas", 1)
        for role, spec in _replica_specs(manifest).items()
        if not (waiting and role == "Launcher")
    )
    return replace(original, manifest=manifest)


def _min_available(case: Case, group: Group) -> Iterator[Group]:
    available = _policy(case).get("minAvailable")
    yield group if available is None else replace(group, min_member=available)


def _ends_with_zero(case: Case) -> str | None:
    return REFUSED if any(spec.get("replicas") == 0 for spec in _replica_specs(case.manifest).values()) else None


def _any_order(case: Case, group: Group) -> Iterator[Group]:
    available = _policy(case).get("minAvailable")
    if available is None:
        yield group
        return
    for order in itertools.permutations(group.pods.items()):
        left, counts = available, {}
        for name, pods in order:
            counts[name] = min(pods.replicas, left)
            left -= counts[name]
        yield group.counting(counts)


# --- MPI operator ---------------------------------------------------------------------------------------------------


def _mpi_queue(case: Case, group: Group) -> Iterator[Group]:
    annotation = case.manifest["metadata"].get("annotations", {}).get("scheduling.volcano.sh/queue-name", "")
    yield replace(group, queue=_policy(case).get("queue") or annotation or "default")


def _mpi_priority(case: Case, group: Group) -> Iterator[Group]:
    templates = (group.pods[role].spec.priority_class_name for role in ("launcher", "worker") if role in group.pods)
    yield replace(group, priority_class=_policy(case).get("priorityClass") or next(filter(None, templates), ""))


def _launcher_counts(case: Case, group: Group) -> Iterator[Group]:
    if case.manifest["spec"].get("launcherCreationPolicy") != "WaitForWorkersReady":
        yield group
        return
    available = _policy(case).get("minAvailable")
    workers = group.pods["worker"].replicas if "worker" in group.pods else 0
    member = workers + 1 if available is None else available
    yield replace(group, min_member=member).counting({"launcher": 1, "worker": max(min(workers, member - 1), 0)})


def _workers_first(case: Case, group: Group) -> Iterator[Group]:
    launcher, worker = group.pods.get("launcher"), group.pods.get("worker")
    available = _policy(case).get("minAvailable")
    if not available or launcher is None or worker is None or available >= launcher.replicas + worker.replicas:
        yield group
    elif _priority(worker) > _priority(launcher):
        yield group.counting({"launcher": available - 1, "worker": worker.replicas})
    else:
        yield group.counting({"launcher": 1, "worker": available - 1})


def _nothing_for_none(case: Case, group: Group) -> Iterator[Group]:
    if _policy(case).get("minAvailable") == 0 and group.given is None:
        yield replace(group, given={})
    else:
        yield group


RULES: tuple[Rule, ...] = (
    Rule(
        "A1",
        (KUBERAY, TRAINING, MPI),
        DESIGN,
        "A suspended workload has no PodGroup at the operator; a plan shows the one that it gets when it is resumed.",
        _same,
        ends=_ends_suspended,
    ),
    Rule(
        "A2",
        (KUBERAY, TRAINING, MPI, TRAINER),
        MUSTER,
        "A workload that names another scheduler, by label or in a template, is left alone by muster. The operators "
        "make a PodGroup for Volcano all the same.",
        _same,
        asked=_without_other_scheduler,
    ),
    Rule(
        "A3",
        (TRAINING, MPI),
        MUSTER,
        "muster refuses a minAvailable above the pods that there are (the gang could never start) or below 1 (Volcano "
        "takes it for finished). The operators write it down as it is.",
        _min_available,
        asked=_possible_min_available,
    ),
    Rule(
        "A5",
        (KUBERAY, TRAINING, MPI),
        MUSTER,
        "Containers that the operator itself adds to its pods are counted by muster, not by the operator: KubeRay's "
        "autoscaler and wait-gcs-ready, the Training operator's init-pytorch and kubectl-delivery.",
        each(_as_written),
    ),
    Rule(
        "A6",
        (KUBERAY, TRAINING, MPI),
        MUSTER,
        "Init containers, sidecars among them, pod overhead and pod-level requests count as the scheduler counts them. "
        "The operators add up the plain containers only: the room they ask for is too small.",
        each(_containers_only),
    ),
    Rule(
        "K1",
        (KUBERAY,),
        MUSTER,
        "KubeRay clamps replicas to minReplicas and maxReplicas for minMember, but not for minResources: the room does "
        "not fit the pods.",
        _unclamped,
    ),
    Rule(
        "K2",
        (KUBERAY,),
        MUSTER,
        "The gang belongs to the RayCluster that a RayJob makes, so that a retry is a gang of its own; KubeRay makes "
        "one PodGroup per RayJob, named after it, which outlives its clusters.",
        _named_after_job,
    ),
    Rule(
        "K3",
        (KUBERAY,),
        DESIGN,
        "KubeRay adds the submitter's requests of a RayJob to minResources, though the submitter is no member. Under "
        "muster the submitter runs by the default scheduler and uses nothing of the queue.",
        _submitter,
    ),
    Rule(
        "K4",
        (KUBERAY,),
        MUSTER,
        "KubeRay reads queue and priority from labels only; muster also from Volcano's annotation and, the priority, "
        "from the templates.",
        lambda case, group: (new for one in _ray_queue(case, group) for new in _ray_priority(case, one)),
    ),
    Rule(
        "K5",
        (KUBERAY,),
        MUSTER,
        "muster refuses a numOfHosts of 0. KubeRay takes it, and makes no worker of that group, without a word.",
        _same,
        asked=_without_a_replica,
    ),
    Rule(
        "T1",
        (TRAINING,),
        MUSTER,
        "As soon as a container has any request, the Training operator forgets its limits: a GPU that stands in limits "
        "only is not counted. The apiserver makes it a request.",
        each(_requests_hide_limits),
    ),
    Rule(
        "T2",
        (TRAINING,),
        MUSTER,
        "With a minAvailable below all pods, the Training operator counts the roles in the order of a Go map, which is "
        "another at every reconcile: it means to sort them by priority class, but never starts the informer that knows "
        "the classes. muster counts the urgent first, then Master, Chief and Launcher, then by name.",
        _any_order,
    ),
    Rule(
        "T3",
        (TRAINING,),
        MUSTER,
        "The Training operator reads queue and priority from schedulingPolicy only; muster also from the labels, from "
        "Volcano's annotation and, the priority, from the templates.",
        lambda case, group: (new for one in _policy_queue(case, group) for new in _policy_priority(case, one)),
    ),
    Rule(
        "T4",
        (TRAINING,),
        DESIGN,
        "The Training operator's own webhook refuses a role of 0 replicas; muster, which sees it first or not at all, "
        "counts what is left.",
        _same,
        ends=_ends_with_zero,
    ),
    Rule(
        "M1",
        (MPI,),
        MUSTER,
        "Under WaitForWorkersReady the MPI operator counts the launcher in minMember, though it makes it when all "
        "workers are ready: nothing ever starts (mpi-operator#608). muster counts the workers and keeps the launcher's "
        "room.",
        _launcher_counts,
    ),
    Rule(
        "M2",
        (MPI,),
        MUSTER,
        "With a minAvailable below all pods and workers of a higher priority than the launcher, the MPI operator "
        "counts all workers, and the launcher, which is one pod, minAvailable - 1 times.",
        _workers_first,
    ),
    Rule(
        "M3",
        (MPI,),
        MUSTER,
        "For minAvailable 0 the MPI operator writes no minResources, and Volcano lets the group into any queue unseen.",
        _nothing_for_none,
    ),
    Rule(
        "M4",
        (MPI,),
        MUSTER,
        "The MPI operator reads no labels: neither the queue nor the priority.",
        lambda case, group: (new for one in _mpi_queue(case, group) for new in _mpi_priority(case, one)),
    ),
)
