"""What is compared: every sample of the operators' modules of a kind that muster knows, and variants of some."""

from __future__ import annotations

import copy
import random
from typing import TYPE_CHECKING

import yaml

from hack.testbed.modules import module_dir
from muster.workloads import kind_of
from tests.conformance.case import TRAINER, Case, Manifest, Operator
from tests.conformance.trainer_cases import trainer_cases

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

__all__ = ["cases"]

# Made by a schedule only, and only with a feature gate: there is no group to compare until a minute begins.
_NOT_RUN = frozenset({"RayCronJob"})


def cases(operator: Operator) -> list[Case]:
    """All cases of an operator: samples, variants, and several variants at once; always the same, in one order."""
    if operator is TRAINER:
        return trainer_cases()
    samples = list(_samples(operator))
    by_source = {sample.source: sample for sample in samples}
    made = []
    for source, edits in _VARIANTS[operator.part].items():
        for variant, edit in edits.items():
            manifest = copy.deepcopy(by_source[source].manifest)
            edit(manifest)
            made.append(Case(operator, source, variant, manifest))
    return samples + made + list(_together(operator, by_source))


def _together(operator: Operator, by_source: Mapping[str, Case]) -> Iterator[Case]:
    """Three variants of a sample at once, chosen by chance that is the same every time."""
    chance = random.Random(operator.part)  # noqa: S311 (no secret)
    source = next(iter(_VARIANTS[operator.part]))
    edits = {name: edit for name, edit in _VARIANTS[operator.part][source].items() if name not in _ALONE}
    for _ in range(_GENERATED):
        manifest = copy.deepcopy(by_source[source].manifest)
        names = chance.sample(sorted(edits), 3)
        for name in names:
            edits[name](manifest)
        yield Case(operator, source, " + ".join(names), manifest, generated=True)


def _samples(operator: Operator) -> Iterator[Case]:
    root = module_dir(operator.module) / operator.folder
    for path in sorted(root.rglob("*.y*ml")):
        documents = [one for one in yaml.load_all(path.read_bytes(), yaml.CSafeLoader) if isinstance(one, dict)]
        ours = [one for one in documents if _is_workload(one, operator)]
        for manifest in ours:
            manifest["metadata"].pop("namespace", None)
            source = str(path.relative_to(root))
            yield Case(operator, f"{source} {manifest['metadata'].get('name')}" if ours[1:] else source, "", manifest)


def _is_workload(manifest: Manifest, operator: Operator) -> bool:
    api_version, kind = str(manifest.get("apiVersion", "")), str(manifest.get("kind", ""))
    return api_version in operator.groups and kind not in _NOT_RUN and kind_of(api_version, kind) is not None


# --- variants -------------------------------------------------------------------------------------------------------

_QUEUE_LABEL, _PRIORITY_LABEL = "volcano.sh/queue-name", "ray.io/priority-class-name"
_QUEUE_ANNOTATION = "scheduling.volcano.sh/queue-name"
_INIT: Manifest = {
    "name": "load",
    "image": "none",
    "resources": {"requests": {"cpu": "9", "memory": "9Gi", "ephemeral-storage": "1Gi"}},
}
_SIDECAR: Manifest = {
    "name": "proxy",
    "image": "none",
    "restartPolicy": "Always",
    "resources": {"requests": {"cpu": "250m"}},
}
_LIMITS_ONLY = {"limits": {"cpu": "2", "memory": "3Gi"}}
_GPU_IN_LIMITS = {"requests": {"cpu": "1"}, "limits": {"cpu": "4", "nvidia.com/gpu": "1"}}


def _meta(field: str, **entries: str) -> Callable[[Manifest], None]:
    def edit(manifest: Manifest) -> None:
        manifest["metadata"].setdefault(field, {}).update(entries)

    return edit


def _labels(entries: Mapping[str, str]) -> Callable[[Manifest], None]:
    return _meta("labels", **entries)


def _all(*edits: Callable[[Manifest], None]) -> Callable[[Manifest], None]:
    def edit(manifest: Manifest) -> None:
        for one in edits:
            one(manifest)

    return edit


def _cluster(manifest: Manifest) -> Manifest:
    spec = manifest["spec"]
    found: Manifest = spec.get("rayClusterSpec") or spec.get("rayClusterConfig") or spec
    return found


def _group(**fields: object) -> Callable[[Manifest], None]:
    """Fields of the first worker group; one that is None is taken away."""

    def edit(manifest: Manifest) -> None:
        _set(_cluster(manifest)["workerGroupSpecs"][0], fields)

    return edit


def _ray(**fields: object) -> Callable[[Manifest], None]:
    def edit(manifest: Manifest) -> None:
        _set(_cluster(manifest), fields)

    return edit


def _spec(**fields: object) -> Callable[[Manifest], None]:
    def edit(manifest: Manifest) -> None:
        _set(manifest["spec"], fields)

    return edit


def _set(target: Manifest, fields: Mapping[str, object]) -> None:
    for name, value in fields.items():
        if value is None:
            target.pop(name, None)
        else:
            target[name] = value


def _templates(manifest: Manifest) -> dict[str, Manifest]:
    """The pod specs of a workload, by role."""
    if manifest["apiVersion"].startswith("ray.io"):
        cluster = _cluster(manifest)
        groups = {group["groupName"]: group["template"] for group in cluster.get("workerGroupSpecs", [])}
        return {name: one["spec"] for name, one in {"head": cluster["headGroupSpec"]["template"], **groups}.items()}
    return {name: spec["template"]["spec"] for name, spec in _replicas(manifest).items()}


def _replicas(manifest: Manifest) -> dict[str, Manifest]:
    found: dict[str, Manifest] = next(
        value for name, value in manifest["spec"].items() if name.endswith("ReplicaSpecs")
    )
    return found


def _pods(role: str = "", **fields: object) -> Callable[[Manifest], None]:
    """Fields of the pod specs of a role, or of all; `resources_` are the first container's."""
    resources = fields.pop("resources_", None)

    def edit(manifest: Manifest) -> None:
        for name, spec in _templates(manifest).items():
            if role in ("", name):
                _set(spec, copy.deepcopy(fields))
                if resources is not None:
                    spec["containers"][0]["resources"] = copy.deepcopy(resources)

    return edit


def _worker_pods(**fields: object) -> Callable[[Manifest], None]:
    def edit(manifest: Manifest) -> None:
        _set(_cluster(manifest)["workerGroupSpecs"][0]["template"]["spec"], copy.deepcopy(fields))

    return edit


def _role(role: str, **fields: object) -> Callable[[Manifest], None]:
    """Fields of a replica spec of a Kubeflow job."""

    def edit(manifest: Manifest) -> None:
        _set(_replicas(manifest)[role], fields)

    return edit


def _policy(**fields: object) -> Callable[[Manifest], None]:
    def edit(manifest: Manifest) -> None:
        manifest["spec"].setdefault("runPolicy", {}).setdefault("schedulingPolicy", {}).update(fields)

    return edit


def _without(role: str) -> Callable[[Manifest], None]:
    def edit(manifest: Manifest) -> None:
        del _replicas(manifest)[role]

    return edit


def _suspend(manifest: Manifest) -> None:
    manifest["spec"].setdefault("runPolicy", {})["suspend"] = True


def _second_group(manifest: Manifest) -> None:
    groups = _cluster(manifest)["workerGroupSpecs"]
    more = copy.deepcopy(groups[0])
    more |= {"groupName": "large", "replicas": 2, "minReplicas": 1, "maxReplicas": 4, "numOfHosts": 3}
    more["template"]["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "8", "memory": "32Gi"}}
    groups.append(more)


_SHAPES: dict[str, Callable[[Manifest], None]] = {
    "limits only": _pods(resources_=_LIMITS_ONLY),
    "GPU in limits beside requests": _pods(resources_=_GPU_IN_LIMITS),
    "nothing asked for": _pods(resources_={}),
    "a large init container": _pods(initContainers=[_INIT]),
    "a sidecar among the init containers": _pods(initContainers=[_SIDECAR]),
    "pod overhead": _pods(overhead={"cpu": "100m", "memory": "64Mi"}),
    "pod-level requests": _pods(resources={"requests": {"cpu": "12", "memory": "12Gi"}}),
    "a priority class in every template": _pods(priorityClassName="urgent"),
    "another scheduler in the templates": _pods(schedulerName="my-scheduler"),
}
_AUTOSCALING = _ray(enableInTreeAutoscaling=True)
_RAY_CLUSTER: dict[str, Callable[[Manifest], None]] = {
    "replicas between bounds": _group(replicas=3, minReplicas=1, maxReplicas=5),
    "replicas above maxReplicas": _group(replicas=10, minReplicas=1, maxReplicas=3),
    "replicas below minReplicas": _group(replicas=1, minReplicas=3, maxReplicas=5),
    "replicas and minReplicas left out": _group(replicas=None, minReplicas=None),
    "replicas left out": _group(replicas=None, minReplicas=2),
    "minReplicas above maxReplicas": _group(replicas=2, minReplicas=4, maxReplicas=3),
    "no replica": _group(replicas=0, minReplicas=0),
    "numOfHosts": _group(replicas=2, numOfHosts=4),
    "numOfHosts above bounds": _group(replicas=9, maxReplicas=2, numOfHosts=4),
    "numOfHosts of none": _group(replicas=2, numOfHosts=0),
    "two groups": _second_group,
    "a suspended group": _all(_second_group, _group(suspend=True)),
    "suspended": _spec(suspend=True),
    "no worker group": _ray(workerGroupSpecs=None),
    "autoscaling": _all(_group(replicas=3, minReplicas=1), _AUTOSCALING),
    "autoscaling from none": _all(_group(replicas=3, minReplicas=0), _AUTOSCALING),
    "autoscaling, two groups": _all(_second_group, _AUTOSCALING),
    "autoscaling, own resources": _all(
        _AUTOSCALING, _ray(autoscalerOptions={"resources": {"requests": {"cpu": "2"}, "limits": {"memory": "1Gi"}}})
    ),
    "queue": _labels({_QUEUE_LABEL: "team-a"}),
    "queue in Volcano's annotation": _meta("annotations", **{_QUEUE_ANNOTATION: "team-a"}),
    "priority": _labels({_PRIORITY_LABEL: "urgent"}),
    "network topology": _labels(
        {"volcano.sh/network-topology-mode": "hard", "volcano.sh/network-topology-highest-tier-allowed": "2"}
    ),
    "for another scheduler": _labels({"ray.io/scheduler-name": "yunikorn"}),
    "a large init container of the workers, two of them": _all(
        _group(replicas=2), _worker_pods(initContainers=[_INIT])
    ),
    **_SHAPES,
}
_RAY_JOB: dict[str, Callable[[Manifest], None]] = {
    "queue and priority": _labels({_QUEUE_LABEL: "team-a", _PRIORITY_LABEL: "urgent"}),
    "HTTPMode": _spec(submissionMode="HTTPMode"),
    "suspended": _spec(suspend=True, shutdownAfterJobFinishes=True),
    "own submitter": _spec(
        submitterPodTemplate={
            "spec": {
                "restartPolicy": "Never",
                "containers": [{"name": "submit", "image": "none", "resources": _LIMITS_ONLY}],
            }
        }
    ),
    "autoscaling": _all(_group(replicas=3, minReplicas=1), _AUTOSCALING),
    "replicas above maxReplicas": _group(replicas=10, minReplicas=1, maxReplicas=3),
    "retried": _spec(backoffLimit=3),
}
_RAY_SERVICE: dict[str, Callable[[Manifest], None]] = {
    "queue and priority": _labels({_QUEUE_LABEL: "team-a", _PRIORITY_LABEL: "urgent"}),
    "autoscaling": _all(_group(replicas=3, minReplicas=1), _AUTOSCALING),
    "its cluster suspended": _ray(suspend=True),
}
_ANY_JOB: dict[str, Callable[[Manifest], None]] = {
    "suspended": _suspend,
    "queue": _policy(queue="team-a"),
    "queue by label": _labels({_QUEUE_LABEL: "team-a"}),
    "queue by label and by policy": _all(_labels({_QUEUE_LABEL: "team-a"}), _policy(queue="team-b")),
    "queue in Volcano's annotation": _meta("annotations", **{_QUEUE_ANNOTATION: "team-a"}),
    "priority": _policy(priorityClass="urgent"),
    "priority by label": _labels({_PRIORITY_LABEL: "urgent"}),
    "minResources": _policy(minResources={"cpu": "3", "memory": "5Gi"}),
    "minResources and minAvailable": _policy(minResources={"cpu": "3"}, minAvailable=1),
    "scheduleTimeoutSeconds": _policy(scheduleTimeoutSeconds=30),
    **_SHAPES,
}
_BIG, _SMALL = (
    {"requests": {"cpu": "4", "memory": "8Gi"}},
    {"requests": {"cpu": "1", "memory": "1Gi"}},
)


def _two_shapes(leader: str) -> Callable[[Manifest], None]:
    return _all(_pods(leader, resources_=_BIG), _pods("Worker", resources_=_SMALL))


def _parts(leader: str) -> dict[str, Callable[[Manifest], None]]:
    """Variants in which a part of the pods is enough, so that it matters which of them count."""
    shapes = _all(_two_shapes(leader), _role("Worker", replicas=4))
    return {
        "minAvailable of equal pods": _all(
            _pods(resources_=_SMALL), _role("Worker", replicas=4), _policy(minAvailable=3)
        ),
        "minAvailable of unequal pods": _all(shapes, _policy(minAvailable=3)),
        "minAvailable of all": _all(shapes, _policy(minAvailable=5)),
        "minAvailable of one": _all(shapes, _policy(minAvailable=1)),
        "minAvailable above all": _all(shapes, _policy(minAvailable=9)),
        "minAvailable 0": _all(shapes, _policy(minAvailable=0)),
        "minAvailable, workers first": _all(
            shapes, _pods("Worker", priorityClassName="urgent"), _policy(minAvailable=3)
        ),
        f"minAvailable, {leader.lower()} first": _all(
            shapes, _pods(leader, priorityClassName="urgent"), _policy(minAvailable=3)
        ),
        "minAvailable, both urgent, differently": _all(
            shapes,
            _pods("Worker", priorityClassName="modest"),
            _pods(leader, priorityClassName="urgent"),
            _policy(minAvailable=2),
        ),
    }


_GENERATED = 40
# Not together with others: they take away what those change, or are refused in company.
_ALONE = frozenset(
    {
        "suspended",
        "a suspended group",
        "autoscaling, two groups",
        "no worker group",
        "minReplicas above maxReplicas",
        "no worker",
        "no replica of the workers",
        "replicas of the workers left out",
        "launcher works alone",
        "WaitForWorkersReady, no worker",
        "numOfHosts of none",
    }
)
_WAITING = _spec(launcherCreationPolicy="WaitForWorkersReady")
_VARIANTS: dict[str, dict[str, dict[str, Callable[[Manifest], None]]]] = {
    "kuberay": {
        "ray-cluster.sample.yaml": _RAY_CLUSTER,
        "ray-cluster.complete.yaml": {
            name: _RAY_CLUSTER[name]
            for name in (
                "replicas above maxReplicas",
                "autoscaling, two groups",
                "a suspended group",
                "a large init container of the workers, two of them",
            )
        },
        "ray-job.sample.yaml": _RAY_JOB,
        "ray-job.sidecar-mode.yaml": {"autoscaling": _RAY_JOB["autoscaling"]},
        "ray-service.sample.yaml": _RAY_SERVICE,
    },
    "training-mpi": {
        "pytorch/simple.yaml": {
            **_ANY_JOB,
            **_parts("Master"),
            "replicas left out": _role("Worker", replicas=None),
            "no worker": _role("Worker", replicas=0),
            "many workers": _all(_pods(resources_=_SMALL), _role("Worker", replicas=40)),
        },
        "pytorch/elastic/echo/echo.yaml": {
            "more than the least": _all(_pods(resources_=_SMALL), _role("Worker", replicas=2)),
            "minAvailable": _all(_pods(resources_=_SMALL), _policy(minAvailable=1)),
        },
        "tensorflow/dist-mnist/tf_job_mnist.yaml": {
            "three shapes": _all(_two_shapes("Chief"), _pods("PS", resources_=_LIMITS_ONLY)),
            "three shapes, minAvailable": _all(
                _two_shapes("Chief"), _pods("PS", resources_=_LIMITS_ONLY), _policy(minAvailable=2)
            ),
            "three urgencies, minAvailable": _all(
                _two_shapes("Chief"),
                _pods("PS", resources_=_LIMITS_ONLY, priorityClassName="urgent"),
                _pods("Worker", priorityClassName="modest"),
                _policy(minAvailable=2),
            ),
        },
        "xgboost/xgboostjob.yaml": {"a large init container": _SHAPES["a large init container"]},
        "paddlepaddle/simple-gpu.yaml": {
            "GPU in limits beside requests": _SHAPES["GPU in limits beside requests"],
        },
        "jax/cpu-demo/demo.yaml": {"limits only": _SHAPES["limits only"]},
        "mpi/tensorflow-mnist.yaml": {
            "replicas of the workers left out": _role("Worker", replicas=None),
            "launcher asks for little": _pods("Launcher", resources_={"requests": {"cpu": "10m", "memory": "10Mi"}}),
            "minAvailable of unequal pods": _all(_two_shapes("Launcher"), _policy(minAvailable=2)),
            "suspended": _suspend,
        },
    },
    "mpi": {
        "v2beta1/pi/pi.yaml": {
            **_ANY_JOB,
            **_parts("Launcher"),
            "replicas of the launcher left out": _role("Launcher", replicas=None),
            "replicas of the workers left out": _role("Worker", replicas=None),
            "no replica of the workers": _role("Worker", replicas=0),
            "no worker": _without("Worker"),
            "launcher works": _spec(runLauncherAsWorker=True),
            "launcher works alone": _all(_spec(runLauncherAsWorker=True), _without("Worker")),
            "WaitForWorkersReady": _all(_two_shapes("Launcher"), _WAITING),
            "WaitForWorkersReady, minAvailable": _all(
                _two_shapes("Launcher"), _role("Worker", replicas=4), _WAITING, _policy(minAvailable=3)
            ),
            "WaitForWorkersReady, minResources": _all(_WAITING, _policy(minResources={"cpu": "3"})),
            "WaitForWorkersReady, no worker": _all(_WAITING, _without("Worker")),
            "priority class of the workers": _pods("Worker", priorityClassName="modest"),
            "priority classes that differ": _all(
                _pods("Worker", priorityClassName="urgent"), _pods("Launcher", priorityClassName="modest")
            ),
        },
    },
}
