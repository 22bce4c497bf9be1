"""What KubeRay does otherwise than muster: rules K."""

import copy
from collections.abc import Iterator
from dataclasses import replace

import msgspec

from muster.model.pods import Container, PodSpec, ResourceRequirements
from tests.conformance.case import KUBERAY, Case, ray_cluster
from tests.conformance.groups import Group, Pods
from tests.conformance.rules import DESIGN, MUSTER, Rule, containers_only, same


def _ray_queue(case: Case, group: Group) -> Iterator[Group]:
    yield replace(group, queue=_label(case, "volcano.sh/queue-name") or "default")


def _ray_priority(case: Case, group: Group) -> Iterator[Group]:
    yield replace(group, priority_class=_label(case, "ray.io/priority-class-name"))


def _label(case: Case, key: str) -> str:
    return str(case.manifest["metadata"].get("labels", {}).get(key, ""))


def _unclamped(case: Case, group: Group) -> Iterator[Group]:
    cluster = ray_cluster(case.manifest)
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
    for one in ray_cluster(manifest).get("workerGroupSpecs") or ():
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
    yield replace(group, pods={**group.pods, "": Pods(containers_only(pod), 1, 1)})


RAY_RULES: tuple[Rule, ...] = (
    Rule(
        "K1",
        (KUBERAY,),
        MUSTER,
        "KubeRay clamps replicas to minReplicas and maxReplicas for minMember, but not for minResources.",
        _unclamped,
    ),
    Rule(
        "K2",
        (KUBERAY,),
        MUSTER,
        "KubeRay makes one PodGroup for a RayJob, muster one for each of its RayClusters.",
        _named_after_job,
    ),
    Rule(
        "K3",
        (KUBERAY,),
        DESIGN,
        "KubeRay adds the requests of a RayJob's submitter to minResources, though the submitter is no member.",
        _submitter,
    ),
    Rule(
        "K4",
        (KUBERAY,),
        MUSTER,
        "KubeRay reads queue and priority from labels only, muster also from Volcano's annotation and the templates.",
        lambda case, group: (new for one in _ray_queue(case, group) for new in _ray_priority(case, one)),
    ),
    Rule(
        "K5",
        (KUBERAY,),
        MUSTER,
        "For a numOfHosts of 0 KubeRay silently makes no worker; muster refuses it.",
        same,
        asked=_without_a_replica,
    ),
)
