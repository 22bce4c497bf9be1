"""Manifests of workloads, written in one line: `ray_cluster("a").label(QUEUE_LABEL, "q").workers(2, cpu="1")`.

Every builder is a value; each word gives a new one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

Manifest = dict[str, Any]

RUN_SECONDS = "testbed.muster.dev/run-seconds"
FAIL_AFTER_SECONDS = "testbed.muster.dev/fail-after-seconds"


@dataclass(frozen=True)
class _Pods:
    """A group of equal pods."""

    count: int
    cpu: str
    memory: str
    spec: Mapping[str, Any] = field(default_factory=dict)

    def template(self, container: str, annotations: Mapping[str, str]) -> Manifest:
        requests = {name: value for name, value in (("cpu", self.cpu), ("memory", self.memory)) if value}
        return {
            "metadata": {"annotations": dict(annotations)},
            "spec": {
                "containers": [{"name": container, "image": "none", "resources": {"requests": requests}}],
                **self.spec,
            },
        }


@dataclass(frozen=True)
class _Workload:
    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    pod_annotations: Mapping[str, str] = field(default_factory=dict)

    def label(self, key: str, value: str) -> Self:
        """Set a label of the workload."""
        return replace(self, labels={**self.labels, key: value})

    def annotate(self, key: str, value: str) -> Self:
        """Set an annotation of the workload."""
        return replace(self, annotations={**self.annotations, key: value})

    def runs(self, seconds: int) -> Self:
        """Let every pod succeed so many seconds after its start."""
        return replace(self, pod_annotations={**self.pod_annotations, RUN_SECONDS: str(seconds)})

    def _metadata(self) -> Manifest:
        # As in Kubernetes' own examples, a name that ends with a dash is one to be completed.
        key = "generateName" if self.name.endswith("-") else "name"
        return {key: self.name, "labels": dict(self.labels), "annotations": dict(self.annotations)}


@dataclass(frozen=True)
class RayCluster(_Workload):
    """A RayCluster; without `workers` it is a head alone."""

    head_pods: _Pods = _Pods(1, "1", "1Gi")
    groups: tuple[tuple[str, _Pods, Mapping[str, Any]], ...] = ()
    spec: Mapping[str, Any] = field(default_factory=dict)

    def head(self, *, cpu: str = "1", memory: str = "1Gi", **spec: object) -> RayCluster:
        """Set what the head asks for; further words are fields of its pod's spec."""
        return replace(self, head_pods=_Pods(1, cpu, memory, spec))

    def workers(
        self, count: int, *, cpu: str = "1", memory: str = "1Gi", group: str = "worker", **fields: object
    ) -> RayCluster:
        """Set a worker group; further words are fields of the group (`maxReplicas=4`)."""
        others = tuple(known for known in self.groups if known[0] != group)
        return replace(self, groups=(*others, (group, _Pods(count, cpu, memory), fields)))

    def suspended(self, *, suspend: bool = True) -> RayCluster:
        """Suspend it or resume it."""
        return replace(self, spec={**self.spec, "suspend": suspend})

    def manifest(self) -> Manifest:
        """Return the manifest."""
        groups = [
            {
                "groupName": name,
                "replicas": pods.count,
                "minReplicas": 0,
                "maxReplicas": 100,
                "rayStartParams": {},
                "template": pods.template("ray-worker", self.pod_annotations),
                **fields,
            }
            for name, pods, fields in self.groups
        ]
        return {
            "apiVersion": "ray.io/v1",
            "kind": "RayCluster",
            "metadata": self._metadata(),
            "spec": {
                "rayVersion": "2.52.0",
                "headGroupSpec": {
                    "rayStartParams": {},
                    "template": self.head_pods.template("ray-head", self.pod_annotations),
                },
                "workerGroupSpecs": groups,
                **self.spec,
            },
        }


@dataclass(frozen=True)
class PyTorchJob(_Workload):
    """A PyTorchJob of a master and perhaps workers; without `policy` muster has nothing to do with it."""

    roles: Mapping[str, _Pods] = field(default_factory=lambda: {"Master": _Pods(1, "1", "1Gi")})
    scheduling: Mapping[str, Any] = field(default_factory=dict)
    run_policy: Mapping[str, Any] = field(default_factory=dict)

    def master(self, *, cpu: str = "1", memory: str = "1Gi", **spec: object) -> PyTorchJob:
        """Set what the master asks for; further words are fields of its pod's spec."""
        return replace(self, roles={**self.roles, "Master": _Pods(1, cpu, memory, spec)})

    def workers(self, count: int, *, cpu: str = "1", memory: str = "1Gi", **spec: object) -> PyTorchJob:
        """Set the workers; further words are fields of their pods' spec."""
        return replace(self, roles={**self.roles, "Worker": _Pods(count, cpu, memory, spec)})

    def policy(self, **scheduling: object) -> PyTorchJob:
        """Set fields of `runPolicy.schedulingPolicy`."""
        return replace(self, scheduling={**self.scheduling, **scheduling})

    def suspended(self, *, suspend: bool = True) -> PyTorchJob:
        """Suspend it or resume it."""
        return replace(self, run_policy={**self.run_policy, "suspend": suspend})

    def manifest(self) -> Manifest:
        """Return the manifest."""
        policy = dict(self.run_policy) | ({"schedulingPolicy": dict(self.scheduling)} if self.scheduling else {})
        return {
            "apiVersion": "kubeflow.org/v1",
            "kind": "PyTorchJob",
            "metadata": self._metadata(),
            "spec": {
                "runPolicy": policy,
                "pytorchReplicaSpecs": {
                    role: {
                        "replicas": pods.count,
                        "restartPolicy": "OnFailure",
                        "template": pods.template("pytorch", self.pod_annotations),
                    }
                    for role, pods in self.roles.items()
                },
            },
        }


def ray_cluster(name: str) -> RayCluster:
    """Begin a RayCluster: a head of 1 cpu and 1Gi."""
    return RayCluster(name)


def pytorch_job(name: str) -> PyTorchJob:
    """Begin a PyTorchJob: a master of 1 cpu and 1Gi."""
    return PyTorchJob(name)


def queue(name: str, **capability: str) -> Manifest:
    """Return a Queue of Volcano with this capability."""
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": name},
        "spec": {"weight": 1, "capability": capability},
    }


def volcano_job(name: str, queue: str, cpu: str, replicas: int = 1) -> Manifest:
    """Return a Job of Volcano: one task of pods of so much cpu, restarted when evicted, complete when they are."""
    template = {
        # kwok ends the pods of any Job at once, unless told otherwise.
        "metadata": {"annotations": {RUN_SECONDS: "3600"}},
        "spec": {
            "restartPolicy": "Never",
            "containers": [{"name": "nginx", "image": "none", "resources": {"requests": {"cpu": cpu}}}],
        },
    }
    task = {
        "name": "nginx",
        "replicas": replicas,
        "policies": [{"event": "TaskCompleted", "action": "CompleteJob"}],
        "template": template,
    }
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {
            "minAvailable": 1,
            "schedulerName": "volcano",
            "queue": queue,
            "policies": [{"event": "PodEvicted", "action": "RestartJob"}],
            "tasks": [task],
        },
    }


def pod(name: str, **spec: object) -> Manifest:
    """Return a pod that asks for nothing."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": [{"name": "main", "image": "none"}], **spec},
    }


def config_map(name: str) -> Manifest:
    """Return an empty ConfigMap."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}


def deployment(name: str, *, replicas: int) -> Manifest:
    """Return a Deployment of pods that ask for nothing."""
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "none"}]}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template},
    }
