"""What the Trainer does otherwise than muster, where a runtime's podGroupPolicy has it make PodGroups."""

from collections.abc import Iterator
from dataclasses import replace

import msgspec

from muster.model.pods import Container, PodSpec, ResourceRequirements
from tests.conformance.case import TRAINER, Case, Manifest
from tests.conformance.groups import Group
from tests.conformance.rules import DESIGN, MUSTER, Rule, each

_QUEUE_ANNOTATION = "scheduling.volcano.sh/queue-name"


def _runtime(case: Case) -> Manifest:
    found: Manifest = case.context[0]["spec"]
    return found


def _jobs(case: Case) -> dict[str, Manifest]:
    return {job["name"]: job for job in _runtime(case)["template"]["spec"]["replicatedJobs"]}


def _pod(job: Manifest) -> Manifest:
    found: Manifest = job["template"]["spec"]["template"]["spec"]
    return found


def _every_wave(_: Case, group: Group) -> Iterator[Group]:
    counts = {name: pods.replicas for name, pods in group.pods.items()}
    yield replace(group, min_member=max(group.min_member, sum(counts.values()))).counting(counts)


def _replicas_forgotten(case: Case, group: Group) -> Iterator[Group]:
    counts = {name: group.pods[name].count // job.get("replicas", 1) for name, job in _jobs(case).items()}
    fewer = sum(pods.count - counts[name] for name, pods in group.pods.items())
    yield replace(group, min_member=group.min_member - fewer).counting(counts)


def _no_member(_: Case, group: Group) -> Iterator[Group]:
    yield replace(group, min_member=0) if not any(pods.count for pods in group.pods.values()) else group


def _requests_only(spec: PodSpec) -> PodSpec:
    def of(containers: tuple[Container, ...]) -> tuple[Container, ...]:
        return tuple(
            msgspec.structs.replace(one, resources=ResourceRequirements(requests=one.resources.requests))
            for one in containers
        )

    return msgspec.structs.replace(
        spec,
        containers=of(spec.containers),
        init_containers=of(spec.init_containers),
        resources=ResourceRequirements(requests=spec.resources.requests),
    )


def _annotated_queue(case: Case, group: Group) -> Iterator[Group]:
    patches = (one["trainingRuntimeSpec"]["template"] for one in case.manifest["spec"].get("runtimePatches", ()))
    annotations: dict[str, str] = {}
    for template in (_runtime(case)["template"], *patches):
        annotations |= template.get("metadata", {}).get("annotations", {})
    yield replace(group, queue=annotations.get(_QUEUE_ANNOTATION) or "default")


def _last_priority(case: Case, group: Group) -> Iterator[Group]:
    names = [_pod(job).get("priorityClassName") for job in _jobs(case).values()]
    yield replace(group, priority_class=next(filter(None, reversed(names)), ""))


def _topology_of_policy(case: Case, group: Group) -> Iterator[Group]:
    asked = _runtime(case)["podGroupPolicy"]["volcano"].get("networkTopology")
    text = "" if asked is None else f"{asked.get('mode', 'hard')} {asked.get('highestTierAllowed', 1)}"
    yield replace(group, topology=text)


TRAINER_RULES: tuple[Rule, ...] = (
    Rule(
        "R1",
        (TRAINER,),
        MUSTER,
        "The Trainer counts the pods of all waves, although JobSet creates later ones only when others are ready or "
        "complete: nothing ever starts.",
        _every_wave,
    ),
    Rule(
        "R2",
        (TRAINER,),
        MUSTER,
        "The Trainer counts one replica of a replicated job with several; JobSet creates all.",
        _replicas_forgotten,
    ),
    Rule(
        "R3",
        (TRAINER,),
        MUSTER,
        "The Trainer adds up the requests in the runtime and in resourcesPerNode; the apiserver makes requests of "
        "limits without one, such as a GPU's.",
        each(_requests_only),
    ),
    Rule(
        "R4",
        (TRAINER,),
        MUSTER,
        "The Trainer reads the queue from Volcano's annotation in patches and in the runtime's template only; muster "
        "also from labels, the TrainJob's own first.",
        _annotated_queue,
    ),
    Rule(
        "R5",
        (TRAINER,),
        DESIGN,
        "The Trainer reads no priority label, and takes the last of several classes in the templates; muster the "
        "lowest.",
        _last_priority,
    ),
    Rule(
        "R6",
        (TRAINER,),
        MUSTER,
        "The Trainer takes network topology from the runtime's podGroupPolicy only; muster first from the labels.",
        _topology_of_policy,
    ),
    Rule(
        "R7",
        (TRAINER,),
        MUSTER,
        "For a TrainJob of no pods the Trainer writes minMember 0, which Volcano takes for finished.",
        _no_member,
    ),
)
