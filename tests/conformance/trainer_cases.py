"""TrainJobs: one for every runtime that the Trainer ships, and variants of some, of the TrainJob and of the runtime.

The Trainer has no flag: a runtime turns its gang scheduling on, so that every runtime here gets a podGroupPolicy.
"""

import copy
import random
from collections.abc import Callable, Iterator

import yaml

from hack.testbed.modules import module_dir
from tests.conformance.case import TRAINER, Case, Manifest

Edit = Callable[[Manifest, Manifest], None]
"""Changes a TrainJob and its runtime."""

_QUEUE_LABEL, _QUEUE_ANNOTATION = "volcano.sh/queue-name", "scheduling.volcano.sh/queue-name"
_MODE, _TIER = "volcano.sh/network-topology-mode", "volcano.sh/network-topology-highest-tier-allowed"
_GENERATED = 40


def trainer_cases() -> list[Case]:
    """All of them; always the same, in one order."""
    samples = list(_samples())
    by_source = {sample.source: sample for sample in samples}
    made = [
        _edited(by_source[source], variant, (edit,))
        for source, edits in _VARIANTS.items()
        for variant, edit in edits.items()
    ]
    return samples + made + list(_together(by_source["torch_distributed.yaml"]))


def _samples() -> Iterator[Case]:
    root = module_dir(TRAINER.module) / TRAINER.folder
    for path in sorted(root.rglob("*.y*ml")):
        runtime = yaml.load(path.read_bytes(), yaml.CSafeLoader)
        if runtime["kind"] == "ClusterTrainingRuntime":
            runtime["spec"]["podGroupPolicy"] = {"volcano": {}}
            job: Manifest = {
                "apiVersion": runtime["apiVersion"],
                "kind": "TrainJob",
                "metadata": {"name": "train"},
                "spec": {"runtimeRef": {"name": runtime["metadata"]["name"]}},
            }
            yield Case(TRAINER, str(path.relative_to(root)), "", job, context=(runtime,))


def _edited(sample: Case, variant: str, edits: tuple[Edit, ...], *, generated: bool = False) -> Case:
    """A variant; its runtime is one of the namespace, so that each can have its own."""
    job, runtime = copy.deepcopy(sample.manifest), copy.deepcopy(sample.context[0])
    runtime["kind"] = job["spec"]["runtimeRef"]["kind"] = "TrainingRuntime"
    for edit in edits:
        edit(job, runtime)
    return Case(TRAINER, sample.source, variant, job, generated, (runtime,))


def _together(sample: Case) -> Iterator[Case]:
    """Three variants at once, chosen by chance that is the same every time."""
    chance = random.Random(TRAINER.part)  # noqa: S311 (no secret)
    for _ in range(_GENERATED):
        names = chance.sample(sorted(_ANY), 3)
        yield _edited(sample, " + ".join(names), tuple(_ANY[name] for name in names), generated=True)


# --- variants -------------------------------------------------------------------------------------------------------


def _trainer(**fields: object) -> Edit:
    return lambda job, _: job["spec"].setdefault("trainer", {}).update(copy.deepcopy(fields))


def _spec(**fields: object) -> Edit:
    return lambda job, _: job["spec"].update(copy.deepcopy(fields))


def _patch(template: Manifest) -> Edit:
    """One more patch of the JobSet's template."""

    def edit(job: Manifest, _: Manifest) -> None:
        patches = job["spec"].setdefault("runtimePatches", [])
        spec = {"template": copy.deepcopy(template)}
        patches.append({"manager": f"example.com/{len(patches)}", "trainingRuntimeSpec": spec})

    return edit


def _meta(field: str, key: str, value: str) -> Edit:
    return lambda job, _: job["metadata"].setdefault(field, {}).update({key: value})


def _policy(**fields: object) -> Edit:
    return lambda _, runtime: runtime["spec"]["mlPolicy"].update(copy.deepcopy(fields))


def _without_policy(_: Manifest, runtime: Manifest) -> None:
    del runtime["spec"]["mlPolicy"]


def _template_meta(field: str, key: str, value: str) -> Edit:
    return lambda _, runtime: (
        runtime["spec"]["template"].setdefault("metadata", {}).setdefault(field, {}).update({key: value})
    )


def _topology(**fields: object) -> Edit:
    return lambda _, runtime: runtime["spec"].update(podGroupPolicy={"volcano": {"networkTopology": fields}})


def _jobs(runtime: Manifest) -> list[Manifest]:
    found: list[Manifest] = runtime["spec"]["template"]["spec"]["replicatedJobs"]
    return found


def _job(index: int, **fields: object) -> Edit:
    """Fields of the Job of a replicated job."""
    return lambda _, runtime: _jobs(runtime)[index]["template"]["spec"].update(copy.deepcopy(fields))


def _pods(index: int | None = None, **fields: object) -> Edit:
    """Fields of the pods of a replicated job, or of all; `resources_` are the first container's."""
    resources = fields.pop("resources_", None)

    def edit(_: Manifest, runtime: Manifest) -> None:
        for number, job in enumerate(_jobs(runtime)):
            if index in (None, number):
                spec = job["template"]["spec"]["template"]["spec"]
                spec.update(copy.deepcopy(fields))
                if resources is not None:
                    spec["containers"][0]["resources"] = copy.deepcopy(resources)

    return edit


def _another_job(name: str, **fields: object) -> Edit:
    """A replicated job that is no step of a TrainJob."""

    def edit(_: Manifest, runtime: Manifest) -> None:
        pod = {"containers": [{"name": "main", "image": "none", "resources": _SMALL}]}
        _jobs(runtime).append({"name": name, "template": {"spec": {"template": {"spec": pod}}}, **fields})

    return edit


def _in_order(_: Manifest, runtime: Manifest) -> None:
    """In place of a `dependsOn`, which JobSet takes only without."""
    for job in _jobs(runtime):
        job.pop("dependsOn", None)
    runtime["spec"]["template"]["spec"]["startupPolicy"] = {"startupPolicyOrder": "InOrder"}


def _all(*edits: Edit) -> Edit:
    def edit(job: Manifest, runtime: Manifest) -> None:
        for one in edits:
            one(job, runtime)

    return edit


_BIG, _SMALL = {"requests": {"cpu": "4", "memory": "8Gi"}}, {"requests": {"cpu": "1", "memory": "1Gi"}}
_GPU = {"requests": {"cpu": "2"}, "limits": {"cpu": "4", "nvidia.com/gpu": "2"}}
_INIT = {"name": "load", "image": "none", "resources": {"requests": {"cpu": "9", "memory": "9Gi"}}}
_SIDECAR = {"name": "proxy", "image": "none", "restartPolicy": "Always", "resources": {"requests": {"cpu": "250m"}}}

_PATCHED: Manifest = {
    "name": "node",
    "template": {
        "spec": {
            "template": {
                "metadata": {"labels": {"team": "a"}},
                "spec": {"schedulingGates": [{"name": "example.com/wait"}]},
            }
        }
    },
}

# Any of these can be together with any other.
_ANY: dict[str, Edit] = {
    "numNodes": _all(_pods(resources_=_SMALL), _trainer(numNodes=3)),
    "numNodes of the runtime": _policy(numNodes=4),
    "resourcesPerNode": _trainer(resourcesPerNode=_BIG),
    "resourcesPerNode with a GPU in limits": _trainer(resourcesPerNode=_GPU),
    "queue by label": _meta("labels", _QUEUE_LABEL, "team-a"),
    "queue in Volcano's annotation": _meta("annotations", _QUEUE_ANNOTATION, "team-a"),
    "queue in a patch": _patch({"metadata": {"annotations": {_QUEUE_ANNOTATION: "team-b"}}}),
    "queue by label in a patch": _patch({"metadata": {"labels": {_QUEUE_LABEL: "team-b"}}}),
    "queue in the runtime": _template_meta("annotations", _QUEUE_ANNOTATION, "team-c"),
    "queue by label in the runtime": _template_meta("labels", _QUEUE_LABEL, "team-c"),
    "priority by label": _meta("labels", "ray.io/priority-class-name", "urgent"),
    "priority class in the template": _pods(priorityClassName="modest"),
    "network topology": _topology(mode="soft", highestTierAllowed=2),
    "network topology by label": _all(_meta("labels", _MODE, "hard"), _meta("labels", _TIER, "3")),
    "another job next to the nodes": _another_job("beside", replicas=3),
    "another job after the nodes": _another_job("after", dependsOn=[{"name": "node", "status": "Ready"}]),
    "limits only": _pods(resources_={"limits": {"cpu": "4", "memory": "8Gi"}}),
    "GPU in limits next to requests": _pods(resources_=_GPU),
    "a large init container": _pods(initContainers=[_INIT]),
    "a sidecar among the init containers": _pods(initContainers=[_SIDECAR]),
    "pod overhead": _pods(overhead={"cpu": "100m", "memory": "64Mi"}),
    "pod-level requests": _pods(resources={"requests": {"cpu": "12", "memory": "12Gi"}}),
    "a patch of the pods": _patch({"spec": {"replicatedJobs": [_PATCHED]}}),
}
_TUNE_PODS = _all(_pods(0, resources_=_SMALL), _pods(1, resources_=_BIG), _pods(2, resources_=_GPU))
_VARIANTS: dict[str, dict[str, Edit]] = {
    "torch_distributed.yaml": {
        **_ANY,
        "suspended": _spec(suspend=True),
        "no node": _trainer(numNodes=0),
        "the runtime's number is 0": _policy(numNodes=0),
        "parallelism": _job(0, parallelism=4, completions=4),
        "parallelism without an mlPolicy": _all(_without_policy, _job(0, parallelism=4, completions=4)),
        "numNodes without an mlPolicy": _all(_without_policy, _trainer(numNodes=3)),
        "resourcesPerNode over larger ones": _all(
            _pods(resources_={**_BIG, "limits": {"memory": "9Gi"}}), _trainer(resourcesPerNode=_SMALL)
        ),
        "empty resourcesPerNode": _all(_pods(resources_=_BIG), _trainer(resourcesPerNode={"limits": {}})),
        "network topology with the defaults": _topology(),
        "network topology by label and by policy": _all(_topology(mode="hard"), _meta("labels", _MODE, "soft")),
        "queue in all places": _all(
            _meta("labels", _QUEUE_LABEL, "team-a"),
            _patch({"metadata": {"annotations": {_QUEUE_ANNOTATION: "team-b"}}}),
            _template_meta("annotations", _QUEUE_ANNOTATION, "team-c"),
        ),
        "nothing asked for": _pods(resources_={}),
        "another scheduler in the template": _pods(schedulerName="my-scheduler"),
        "for another scheduler": _meta("labels", "ray.io/scheduler-name", "yunikorn"),
    },
    "deepspeed_distributed.yaml": {
        "numNodes, the launcher is a node": _all(_pods(resources_=_SMALL), _trainer(numNodes=4)),
        "numNodes, the launcher is no node": _all(
            _pods(resources_=_SMALL),
            lambda _, runtime: runtime["spec"]["mlPolicy"]["mpi"].update(runLauncherAsNode=False),
            _trainer(numNodes=4, resourcesPerNode=_BIG),
        ),
        "numNodes of the runtime": _all(_pods(resources_=_SMALL), _policy(numNodes=3)),
        "resourcesPerNode": _trainer(numNodes=3, resourcesPerNode=_GPU),
        "priority classes that differ": _all(
            _pods(0, priorityClassName="modest"), _pods(1, priorityClassName="urgent")
        ),
        "in order": _all(_pods(0, resources_=_SMALL), _pods(1, resources_=_BIG), _in_order),
    },
    "torchtune/llama3_2/llama3_2_1B.yaml": {
        "three shapes": _all(_TUNE_PODS, _trainer(numNodes=4)),
        "three shapes, resourcesPerNode": _all(_TUNE_PODS, _trainer(numNodes=4, resourcesPerNode=_BIG)),
        "priority class of the nodes": _all(_TUNE_PODS, _pods(2, priorityClassName="urgent")),
        "suspended": _spec(suspend=True),
    },
    "data-cache/torch_distributed_with_cache.yaml": {
        "two shapes": _all(_pods(0, resources_=_SMALL), _pods(1, resources_=_BIG), _trainer(numNodes=2)),
    },
}
