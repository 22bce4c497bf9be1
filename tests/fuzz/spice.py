"""What one kind of workload has and no other: modes, autoscaling, overrides, partitions, and very many roles."""

import copy
from collections.abc import Callable
from random import Random
from typing import Any

from tests.support.manifests.observed import JSON
from tests.support.manifests.train_jobs import patch

_PER_NODE: tuple[JSON, ...] = (
    {"requests": {"cpu": "1"}},
    {"limits": {"cpu": "500m", "memory": "1Gi"}},
    {"requests": {"cpu": "many"}},
    {},
)


def spiced(chance: Random, manifest: JSON) -> JSON:
    """The manifest, now and then with what its kind alone knows; one that is broken stays as it is."""
    spice = _SPICES.get((manifest["apiVersion"].partition("/")[0], manifest["kind"]))
    if spice is None or chance.randrange(2):
        return manifest
    richer = copy.deepcopy(manifest)
    try:
        spice(chance, richer["spec"])
    except (KeyError, TypeError, AttributeError, IndexError):
        return manifest
    if manifest["kind"] == "RayCluster" and not chance.randrange(4):
        # An older version, which knows less.
        richer["apiVersion"] = "ray.io/v1alpha1"
    return richer


def _cluster(chance: Random, spec: JSON) -> None:
    groups = spec["workerGroupSpecs"]
    if not chance.randrange(8):
        # More warnings than an apiserver passes on.
        named = {"groupName": f"workers-of-a-very-long-name-{'x' * 40}", "replicas": 1, "minReplicas": 1}
        empty = {"template": {"spec": {"containers": [{"name": "main"}]}}}
        groups += [{**named, **empty, "groupName": f"{named['groupName']}-{at}"} for at in range(90)]
        return
    group = chance.choice(groups)
    if not chance.randrange(4):
        # Hosts and pauses of a group, a name that is taken, a pod without containers.
        group |= chance.choice(
            (
                {"numOfHosts": 2},
                {"suspend": True},
                {"groupName": ""},
                {"groupName": "headgroup"},
                {"template": {"spec": {"containers": []}}},
            )
        )
    spec["enableInTreeAutoscaling"] = True
    group |= {"minReplicas": chance.choice((0, 1)), "maxReplicas": chance.choice((3, 50, 2**31 - 1))}
    if chance.randrange(2):
        spec["autoscalerOptions"] = {"resources": {"requests": {"cpu": "100m"}}}


def _ray_job(chance: Random, spec: JSON) -> None:
    spec["submissionMode"] = chance.choice(("SidecarMode", "K8sJobMode", "HTTPMode", "InteractiveMode"))
    if not chance.randrange(4):
        spec["clusterSelector"] = {"ray.io/cluster": "there"}
    if not chance.randrange(4):
        del spec["rayClusterSpec"]
    else:
        _cluster(chance, spec["rayClusterSpec"])


def _ray_service(chance: Random, spec: JSON) -> None:
    spec["upgradeStrategy"] = {"type": chance.choice(("NewCluster", "None", "NewClusterWithIncrementalUpgrade"))}
    if not chance.randrange(2):
        _cluster(chance, spec["rayClusterConfig"])


def _train_job(chance: Random, spec: JSON) -> None:
    trainer = spec.setdefault("trainer", {})
    trainer |= {"numNodes": chance.choice((1, 2, 4)), "resourcesPerNode": chance.choice(_PER_NODE)}
    runtime = spec["madeFrom"]["spec"]
    runtime["mlPolicy"] = chance.choice(
        (
            {"numNodes": 2},
            {"mpi": {"runLauncherAsNode": True}},
            {"mpi": {"runLauncherAsNode": False}, "numNodes": 3},
            {},
        )
    )
    for replicated in runtime["template"]["spec"]["replicatedJobs"]:
        if chance.randrange(2):
            replicated["name"] = "node"
            for container in replicated["template"]["spec"]["template"]["spec"]["containers"]:
                container["name"] = "node"
        if chance.randrange(2):
            meta = replicated["template"].setdefault("metadata", {})
            step = chance.choice(("trainer", "trainer", "dataset-initializer"))
            meta["labels"] = {"trainer.kubeflow.org/trainjob-ancestor-step": step}
        targets = [{"name": chance.choice((replicated["name"], "gone"))}]
        more = {"metadata": {"labels": {"a": "b"}}, "spec": {"schedulingGates": [{"name": "other"}]}}
        spec.setdefault("podTemplateOverrides", []).append({"targetJobs": targets, **more})
        change = {"name": chance.choice((replicated["name"], "gone")), "template": {"spec": {"template": more}}}
        spec.setdefault("runtimePatches", []).append(patch(change, meta={"labels": {"volcano.sh/queue-name": "b"}}))


def _volcano_job(chance: Random, spec: JSON) -> None:
    task = chance.choice(spec["tasks"])
    faults: tuple[JSON, ...] = (
        {"minAvailable": 1},
        {"minAvailable": -1},
        {"minAvailable": 99},
        {"replicas": -1},
        {"name": spec["tasks"][0].get("name", "default0")},
        {"name": ""},
        {"partitionPolicy": {"totalPartitions": 2, "partitionSize": 1, "minPartitions": 1}},
        {"partitionPolicy": {"totalPartitions": 9, "partitionSize": 9, "minPartitions": 9}},
        {"partitionPolicy": {"totalPartitions": 1}},
    )
    task |= chance.choice(faults)


_SPICES: dict[tuple[str, str], Callable[[Random, Any], None]] = {
    ("ray.io", "RayCluster"): _cluster,
    ("ray.io", "RayJob"): _ray_job,
    ("ray.io", "RayService"): _ray_service,
    ("trainer.kubeflow.org", "TrainJob"): _train_job,
    ("batch.volcano.sh", "Job"): _volcano_job,
}
