"""What several operators do otherwise than muster: rules A."""

import copy
from collections.abc import Iterator
from dataclasses import replace

import msgspec

from muster.model.pods import PodSpec
from tests.conformance.case import KUBERAY, MPI, TRAINER, TRAINING, Case, Manifest, ray_cluster, replica_specs
from tests.conformance.groups import Group
from tests.conformance.rules import DESIGN, MUSTER, NONE, Rule, containers_only, each, policy, same

_ADDED = frozenset({"autoscaler", "wait-gcs-ready", "init-pytorch", "kubectl-delivery"})


def _as_written(spec: PodSpec) -> PodSpec:
    return msgspec.structs.replace(
        spec,
        containers=tuple(one for one in spec.containers if one.name not in _ADDED),
        init_containers=tuple(one for one in spec.init_containers if one.name not in _ADDED),
    )


def _suspended(case: Case) -> bool:
    spec = case.manifest["spec"]
    cluster = spec.get("rayClusterConfig") or {}
    return bool(spec.get("suspend") or cluster.get("suspend") or (spec.get("runPolicy") or {}).get("suspend"))


def _ends_suspended(case: Case) -> str | None:
    return NONE if _suspended(case) else None


def _without_other_scheduler(original: Case) -> Case | None:
    case = copy.deepcopy(original)
    case.manifest["metadata"].get("labels", {}).pop("ray.io/scheduler-name", None)
    for template in (one for manifest in (case.manifest, *case.context) for one in _all_templates(manifest)):
        template.pop("schedulerName", None)
    return None if case == original else case


def _all_templates(manifest: Manifest) -> Iterator[Manifest]:
    if manifest["apiVersion"].startswith("ray.io"):
        cluster = ray_cluster(manifest)
        for group in (cluster.get("headGroupSpec") or {}, *(cluster.get("workerGroupSpecs") or ())):
            yield group.get("template", {}).get("spec", {})
    elif manifest["kind"] == "TrainingRuntime":
        for job in manifest["spec"]["template"]["spec"]["replicatedJobs"]:
            yield job["template"]["spec"]["template"]["spec"]
    elif manifest["kind"] != "TrainJob":
        for replicas in replica_specs(manifest).values():
            yield replicas["template"]["spec"]


def _possible_min_available(original: Case) -> Case | None:
    """With every pod in place of a minAvailable that no gang can have."""
    manifest = copy.deepcopy(original.manifest)
    said = manifest["spec"].get("runPolicy", {}).get("schedulingPolicy", {})
    if "minAvailable" not in said:
        return None
    waiting = manifest["spec"].get("launcherCreationPolicy") == "WaitForWorkersReady"
    said["minAvailable"] = sum(
        spec.get("replicas", 1)
        for role, spec in replica_specs(manifest).items()
        if not (waiting and role == "Launcher")
    )
    return replace(original, manifest=manifest)


def _min_available(case: Case, group: Group) -> Iterator[Group]:
    available = policy(case).get("minAvailable")
    yield group if available is None else replace(group, min_member=available)


SHARED_RULES: tuple[Rule, ...] = (
    Rule(
        "A1",
        (KUBERAY, TRAINING, MPI),
        DESIGN,
        "The operator makes no PodGroup for a suspended workload; a plan shows the later one.",
        same,
        ends=_ends_suspended,
    ),
    Rule(
        "A2",
        (KUBERAY, TRAINING, MPI, TRAINER),
        MUSTER,
        "For a workload that names another scheduler the operators make a PodGroup for Volcano; muster makes none.",
        same,
        asked=_without_other_scheduler,
    ),
    Rule(
        "A3",
        (TRAINING, MPI),
        MUSTER,
        "The operators copy a minAvailable that is above the number of pods, or below 1; muster refuses it.",
        _min_available,
        asked=_possible_min_available,
    ),
    Rule(
        "A5",
        (KUBERAY, TRAINING, MPI),
        MUSTER,
        "The operators do not count the containers that they add: KubeRay's autoscaler and wait-gcs-ready, the "
        "Training operator's init-pytorch and kubectl-delivery.",
        each(_as_written),
    ),
    Rule(
        "A6",
        (KUBERAY, TRAINING, MPI),
        MUSTER,
        "The operators count no init containers, sidecars, pod overhead or pod-level requests, as the scheduler does.",
        each(containers_only),
    ),
)
