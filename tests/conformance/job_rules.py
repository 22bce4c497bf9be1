"""What the Training operator (rules T) and the MPI operator (rules M) do otherwise than muster."""

import itertools
from collections.abc import Iterator
from dataclasses import replace

import msgspec

from muster.model.pods import Container, PodSpec, ResourceRequirements
from tests.conformance.case import MPI, TRAINING, Case, replica_specs
from tests.conformance.groups import PRIORITIES, Group, Pods
from tests.conformance.rules import DESIGN, MUSTER, REFUSED, Rule, each, policy, same


def _requests_hide_limits(spec: PodSpec) -> PodSpec:
    def of(container: Container) -> Container:
        if not container.resources.requests:
            return container
        only = ResourceRequirements(requests=container.resources.requests)
        return msgspec.structs.replace(container, resources=only)

    return msgspec.structs.replace(spec, containers=tuple(of(one) for one in spec.containers))


def _priority(pods: Pods) -> int:
    return PRIORITIES.get(pods.spec.priority_class_name, 0)


def _policy_queue(case: Case, group: Group) -> Iterator[Group]:
    yield replace(group, queue=policy(case).get("queue") or "default")


def _policy_priority(case: Case, group: Group) -> Iterator[Group]:
    yield replace(group, priority_class=policy(case).get("priorityClass", ""))


def _ends_with_zero(case: Case) -> str | None:
    return REFUSED if any(spec.get("replicas") == 0 for spec in replica_specs(case.manifest).values()) else None


def _any_order(case: Case, group: Group) -> Iterator[Group]:
    available = policy(case).get("minAvailable")
    if available is None:
        yield group
        return
    for order in itertools.permutations(group.pods.items()):
        left, counts = available, {}
        for name, pods in order:
            counts[name] = min(pods.replicas, left)
            left -= counts[name]
        yield group.counting(counts)


def _mpi_queue(case: Case, group: Group) -> Iterator[Group]:
    annotation = case.manifest["metadata"].get("annotations", {}).get("scheduling.volcano.sh/queue-name", "")
    yield replace(group, queue=policy(case).get("queue") or annotation or "default")


def _mpi_priority(case: Case, group: Group) -> Iterator[Group]:
    templates = (group.pods[role].spec.priority_class_name for role in ("launcher", "worker") if role in group.pods)
    yield replace(group, priority_class=policy(case).get("priorityClass") or next(filter(None, templates), ""))


def _launcher_counts(case: Case, group: Group) -> Iterator[Group]:
    if case.manifest["spec"].get("launcherCreationPolicy") != "WaitForWorkersReady":
        yield group
        return
    available = policy(case).get("minAvailable")
    workers = group.pods["worker"].replicas if "worker" in group.pods else 0
    member = workers + 1 if available is None else available
    yield replace(group, min_member=member).counting({"launcher": 1, "worker": max(min(workers, member - 1), 0)})


def _workers_first(case: Case, group: Group) -> Iterator[Group]:
    launcher, worker = group.pods.get("launcher"), group.pods.get("worker")
    available = policy(case).get("minAvailable")
    if not available or launcher is None or worker is None or available >= launcher.replicas + worker.replicas:
        yield group
    elif _priority(worker) > _priority(launcher):
        yield group.counting({"launcher": available - 1, "worker": worker.replicas})
    else:
        yield group.counting({"launcher": 1, "worker": available - 1})


def _nothing_for_none(case: Case, group: Group) -> Iterator[Group]:
    if policy(case).get("minAvailable") == 0 and group.given is None:
        yield replace(group, given={})
    else:
        yield group


JOB_RULES: tuple[Rule, ...] = (
    Rule(
        "T1",
        (TRAINING,),
        MUSTER,
        "If a container has any request, the Training operator ignores its limits, such as a GPU without a request.",
        each(_requests_hide_limits),
    ),
    Rule(
        "T2",
        (TRAINING,),
        MUSTER,
        "With a minAvailable below all pods, the Training operator counts the roles in Go map order, which changes at"
        " every reconcile; muster high priorities first, then Master, Chief and Launcher, then by name.",
        _any_order,
    ),
    Rule(
        "T3",
        (TRAINING,),
        MUSTER,
        "The Training operator reads queue and priority from schedulingPolicy only, muster also from labels, Volcano's"
        " annotation and the templates.",
        lambda case, group: (new for one in _policy_queue(case, group) for new in _policy_priority(case, one)),
    ),
    Rule(
        "T4",
        (TRAINING,),
        DESIGN,
        "The Training operator's own webhook refuses a role of 0 replicas; muster counts the other roles.",
        same,
        ends=_ends_with_zero,
    ),
    Rule(
        "M1",
        (MPI,),
        MUSTER,
        "Under WaitForWorkersReady the MPI operator counts the launcher in minMember, though it creates it when all "
        "workers are ready: nothing ever starts (mpi-operator#608).",
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
        "For minAvailable 0 the MPI operator writes no minResources, and Volcano lets the group into any queue.",
        _nothing_for_none,
    ),
    Rule(
        "M4",
        (MPI,),
        MUSTER,
        "The MPI operator reads neither queue nor priority from labels, and takes the class of the launcher; muster "
        "that of the workers.",
        lambda case, group: (new for one in _mpi_queue(case, group) for new in _mpi_priority(case, one)),
    ),
)
