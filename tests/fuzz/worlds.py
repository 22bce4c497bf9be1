"""Clusters in which a review may come, and the reviews that a pod, a workload or nobody at all would send there."""

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from muster.gangs.intent import Defaults
from muster.kube.errors import ApiError, Unreachable
from muster.model.findings import read_validation
from muster.model.modes import GateMode
from muster.model.objects import InvalidObjectError, Namespace, PodGroup, Queue
from muster.schedulers import SCHEDULERS
from muster.workloads import SOURCES, WATCHED_KINDS, kind_of
from tests.fuzz.growth import grown
from tests.fuzz.mutation import mutated, spoilt
from tests.fuzz.scenery import CLASSES, GROUPS, QUEUES, QUOTAS, RANGES, RUNTIMES
from tests.fuzz.spice import spiced
from tests.support.manifests.generators import EXTRAS, KINDS, labels_of, small
from tests.support.manifests.observed import JSON, NAMESPACE, made, namespace, pod, priority_class, queue, template
from tests.support.webhook.admission_reviews import Reader, knowing, review
from webhook.reviews.cluster_reader import ClusterReader
from webhook.reviews.codec import AdmissionRequest, AdmissionResponse
from webhook.reviews.pods import review_pod
from webhook.reviews.queues import review_named_queue, review_pod_group, review_queue
from webhook.reviews.workloads import review_workload

Review = Callable[[AdmissionRequest, ClusterReader], Awaitable[AdmissionResponse]]

_OLD = "2026-11-21T10:00:00Z"
_NAMES = (*"q q small closed parent leaf off theirs full zero snug snug late gone Q й".split(), "")  # noqa: SIM905
_LABELS: Mapping[str, Sequence[str]] = {
    "volcano.sh/queue-name": _NAMES,
    "ray.io/scheduler-name": ("volcano", "volcano", "yunikorn", "mine", "scheduler-plugins-scheduler"),
    "ray.io/priority-class-name": ("high", "late", "gone", "system-node-critical", "No Name"),
    "volcano.sh/network-topology-mode": ("hard", "soft", "medium"),
    "volcano.sh/network-topology-highest-tier-allowed": ("1", "-1", "\u0665", "99999999999"),
    "muster.dev/managed": ("true", "false", "True"),
    "kueue.x-k8s.io/queue-name": ("theirs",),
}
_ANNOTATIONS: Mapping[str, Sequence[str]] = {
    "scheduling.volcano.sh/queue-name": _NAMES,
    "muster.dev/requeue-after": ("30m", "soon"),
    "muster.dev/runs-at-most": ("2h", "soon"),
    "muster.dev/hold": ("true", "yes"),
    "muster.dev/admitted": ("uid-demo",),
    "muster.dev/workload": ("{}", '{"kind": "RayCluster", "name": "theirs"}', "no JSON"),
    "scheduling.k8s.io/group-name": ("other",),
}
_OF_NAMESPACES: Mapping[str, Sequence[str]] = {
    "scheduling.volcano.sh/queue-name": _NAMES,
    "muster.dev/gate": ("queue", "assemble", "off", "never"),
}
_OF_QUEUES: Mapping[str, Sequence[str]] = {
    "muster.dev/namespace-selector": (
        "team=ml",
        "team notin (a, b)",
        "x/team!=b",
        "",
        "a in (b",
        "a=b=c",
        f"kubernetes.io/metadata.name={NAMESPACE}",
        "!team",
    ),
    "muster.dev/patience": ("10m", "soon"),
    "muster.dev/unplaced-after": ("1h", "never"),
    "muster.dev/half-life": ("1h", "0s"),
    "muster.dev/hold": ("true", "yes"),
    "muster.dev/queueing": ("strict", "lax"),
    "muster.dev/preemption": ("lower-priority", "always"),
    "muster.dev/gate": ("off", "never"),
}
_QUEUE_SPEC: Mapping[str, Sequence[Any]] = {
    "parent": ("root", "parent", "small", "leaf", "gone", "q"),
    "capability": ({"cpu": "1"}, {"cpu": "9", "memory": "1Gi"}, {"cpu": "many"}, {}),
    "guarantee": ({"resource": {"cpu": "5"}}, {"resource": {"cpu": "1"}}, {"resource": {"cpu": "-1"}}),
    "weight": (0, 1, 70_000),
}
_POD_SPEC: Mapping[str, Sequence[Any]] = {
    "schedulerName": ("", "default-scheduler", "volcano", "mine", "scheduler-plugins-scheduler"),
    "schedulingGates": (None, [], [{"name": "other"}], [{"name": "muster.dev/gang"}, {"name": "other"}]),
    "priorityClassName": ("", "high", "low"),
    "priority": (None, 0, 5),
    "preemptionPolicy": ("Never", "PreemptLowerPriority"),
    "initContainers": ([{"name": "a", "restartPolicy": "Always", "resources": {"limits": {"cpu": "2"}}}], [{}]),
    "overhead": ({"cpu": "10m"},),
    "resources": ({"requests": {"cpu": "3"}},),
    "nodeName": ("n",),
    "runtimeClassName": ("kata", "kata", "gone"),
}
_REASONS = ((), (), ("QueueNotFound=warn", "NoPods=deny"), ("Invalid=off",))
_ERRORS = (Unreachable("silent"), ApiError(403, "Forbidden", "no"), ApiError(500, "", "broken"))
# Those of which there is most to read.
_INTRICATE = [
    family for family in KINDS if family.kind in ("Job", "MPIJob", "RayCluster", "RayJob", "RayService", "TrainJob")
]


@dataclass(frozen=True)
class World:
    """What a webhook knows: by its watches (`seen`), and by reading (`reads`, by `plural/name`; PodGroups or none).

    `ranged`: the namespace's LimitRange gives memory to containers that ask for none, and it has ResourceQuotas.
    """

    defaults: Defaults
    namespaces: tuple[JSON, ...]
    seen: tuple[JSON, ...]
    reads: dict[str, JSON | Exception] = field(default_factory=dict)
    unmanaged_pods: tuple[JSON, ...] = ()
    groups: bool = True
    ranged: bool = False

    def knowledge(self) -> ClusterReader:
        """The same in the webhook's own form."""
        return knowing(
            Reader(dict(self.reads), pod_groups=GROUPS if self.groups else None),
            workloads=self.seen,
            queues=QUEUES,
            classes=CLASSES,
            namespaces=self.namespaces,
            pods=self.unmanaged_pods,
            ranges=RANGES if self.ranged else (),
            runtimes=RUNTIMES,
            quotas=QUOTAS if self.ranged else (),
            defaults=self.defaults,
        )


@dataclass(frozen=True)
class Question:
    """A body, the review that it is sent to, and the cluster where that happens."""

    world: World
    review: Review
    body: bytes


def any_question(number: int) -> Question:
    """The question of that number."""
    chance = Random(number)  # noqa: S311 - so that it can be had again
    manifest = _workload(chance)
    world = _world(chance, manifest)
    review_: Review
    asked = chance.randrange(10)
    if asked <= 4:
        review_, envelope = review_pod, _asking(review({}), mutated(chance, _member(chance, manifest)))
    elif asked <= 8:
        review_, envelope = review_workload, _asking_about(chance, manifest)
    else:
        review_, envelope = _about_queues(chance, manifest)
    if not chance.randrange(20):
        envelope = mutated(chance, envelope)
    return Question(world, review_, spoilt(chance, json.dumps(envelope).encode()))


def _about_queues(chance: Random, manifest: JSON) -> tuple[Review, JSON]:
    """The review of a Queue, or of what names one by itself."""
    which = chance.randrange(3)
    if which == 0:
        new, old = (mutated(chance, grown(chance, Queue, _queue(chance))) for _ in range(2))
        operation = chance.choice(("CREATE", "UPDATE"))
        if operation == "UPDATE" and not chance.randrange(3):
            # As most of the time: nothing but its capability is another one.
            new = _queue(chance)
            new["spec"] |= {"capability": {"cpu": chance.choice(("1", "2"))}}
            old = {**new, "spec": {**new["spec"], "capability": {"cpu": chance.choice(("1", "16"))}}}
        return review_queue, _asking(review({}, old=old if operation == "UPDATE" else None, operation=operation), new)
    if which == 1:
        group = {"metadata": {"name": "g", "namespace": NAMESPACE}, "spec": {"queue": chance.choice(_NAMES)}}
        return review_pod_group, _asking(review({}), mutated(chance, grown(chance, PodGroup, group)))
    new = _member(chance, manifest)
    new["metadata"]["labels"] = _some(chance, _LABELS, 2)
    new["metadata"]["annotations"] = _some(chance, _ANNOTATIONS, 2)
    return review_named_queue, _asking(review({}), mutated(chance, new))


def _queue(chance: Random) -> JSON:
    one = chance.choice(QUEUES)
    meta = {**one["metadata"], "annotations": _some(chance, _OF_QUEUES)}
    return {**one, "metadata": meta, "spec": {**one["spec"], **_some(chance, _QUEUE_SPEC)}}


def _one_in(chance: Random, many: int) -> bool:
    return chance.randrange(many) == 0


def _some(chance: Random, offered: Mapping[str, Sequence[Any]], one_in: int = 4) -> JSON:
    return {key: chance.choice(values) for key, values in offered.items() if _one_in(chance, one_in)}


def _template(chance: Random) -> JSON:
    cpu = chance.choice(("1", "1", "1", "", "250m", "0", "1e3", "9E", "1n", "-1"))
    made_ = {**template(cpu), "metadata": {"labels": _some(chance, _LABELS, 20)}}
    if _one_in(chance, 3):
        made_["metadata"] |= {"annotations": _some(chance, _ANNOTATIONS)}
        made_["spec"] |= _some(chance, _POD_SPEC, 6)
    return made_


def _workload(chance: Random) -> JSON:
    """A workload of any kind, with labels and annotations of many, and what an apiserver adds."""
    family = chance.choice(KINDS if chance.randrange(3) else _INTRICATE)
    labels = _some(chance, _LABELS) or {"volcano.sh/queue-name": "q"}
    name = chance.choice(("demo", "demo", "demo", "d" * 70, "d" * 250))
    manifest = family.manifest(_template(chance), _template(chance), name=name, labels=labels)
    manifest["spec"] |= chance.choice(EXTRAS[family.api_version])
    manifest = spiced(chance, manifest)
    meta = manifest["metadata"]
    meta |= {"uid": "uid-demo", "creationTimestamp": _OLD, "annotations": _some(chance, _ANNOTATIONS)}
    if _one_in(chance, 10):
        meta["deletionTimestamp"] = _OLD
    kind = kind_of(manifest["apiVersion"], manifest["kind"])
    if kind is not None and _one_in(chance, 2):
        spec = manifest["spec"]
        more: JSON = grown(chance, kind.decoded, {"metadata": {}, "spec": spec})
        manifest |= {"spec": {**spec, **more["spec"]}} | ({"status": more["status"]} if "status" in more else {})
        if "madeFrom" in spec:
            made_from: JSON = grown(chance, SOURCES[0].decoded, spec["madeFrom"])
            manifest["spec"]["madeFrom"] = made_from
    return manifest


def _runtime(manifest: JSON) -> JSON:
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "ClusterTrainingRuntime",
        "metadata": {"name": "torch"},
        "spec": manifest["spec"].get("madeFrom", {}).get("spec", {}),
    }


def _owner(manifest: JSON) -> JSON:
    meta = manifest["metadata"]
    owner = {"apiVersion": manifest["apiVersion"], "kind": manifest["kind"], "name": meta["name"], "uid": meta["uid"]}
    return {**owner, "controller": True}


def _owned(api_version: str, kind: str, name: str, owner: JSON, spec: JSON) -> JSON:
    meta = {"name": name, "namespace": NAMESPACE, "uid": f"uid-{name}", "ownerReferences": [owner]}
    return {"apiVersion": api_version, "kind": kind, "metadata": meta, "spec": spec}


def _between(manifest: JSON) -> list[JSON]:
    """What an operator makes between this workload and its pods, the nearest to the workload first."""
    spec, kind, owner = manifest["spec"], manifest["kind"], _owner(manifest)
    if kind in ("RayJob", "RayService"):
        inner = spec.get("rayClusterSpec", {}) if kind == "RayJob" else spec["rayClusterConfig"]
        return [_owned("ray.io/v1", "RayCluster", "demo-x", owner, inner)]
    if kind == "RayCronJob":
        job = _owned("ray.io/v1", "RayJob", "demo-j", owner, spec["jobTemplate"])
        return [job, _owned("ray.io/v1", "RayCluster", "demo-x", _owner(job), spec["jobTemplate"]["rayClusterSpec"])]
    between = []
    if kind == "TrainJob":
        inner = _runtime(manifest)["spec"]["template"]["spec"]
        between.append(_owned("jobset.x-k8s.io/v1alpha2", "JobSet", "demo-x", owner, inner))
    known = kind_of(manifest["apiVersion"], kind)
    if known is not None and known.pods_of_jobs:
        between.append(_owned("batch/v1", "Job", "demo-y", _owner(between[-1]) if between else owner, {}))
    return between


def _world(chance: Random, manifest: JSON) -> World:
    """A cluster in which there is this workload, and what its operator has made of it."""
    defaults = Defaults(
        queue=chance.choice(("default", "q", "small")),
        schedulers=chance.choice(({"volcano": SCHEDULERS["volcano"]}, SCHEDULERS)),
        gate=chance.choice(tuple(GateMode)),
        validation=read_validation(chance.choice(("deny", "deny", "warn", "off")), chance.choice(_REASONS)),
    )
    labels = _some(chance, {"muster.dev/managed": ("true", "false", "yes")})
    around = mutated(chance, namespace(labels=labels, annotations=_some(chance, _OF_NAMESPACES)), most=1)
    seen: list[JSON] = []
    reads: dict[str, JSON | Exception] = {"queues/late": queue("late", cpu="3"), f"namespaces/{NAMESPACE}": namespace()}
    reads["priorityclasses/late"] = priority_class("late", 3)
    for there in (manifest, *_between(manifest), _runtime(manifest)):
        one = mutated(chance, there) if _one_in(chance, 5) else there
        if not _is_shown(one):
            continue
        kind = kind_of(one["apiVersion"], one["kind"])
        key = f"{kind.plural if kind else one['kind'].lower() + 's'}/{one['metadata']['name']}"
        if _one_in(chance, 20):
            reads[key] = chance.choice(_ERRORS)
        elif (kind is not None and kind not in WATCHED_KINDS) or _one_in(chance, 3):
            reads[key] = one
        else:
            seen.append(one)
    labels = _labels_of(manifest, _role(chance, manifest))
    old = pod("old", owner=_owner(manifest), labels=labels, phase="Running")
    unmanaged_pods = (old,) if _one_in(chance, 20) else ()
    namespaces = (around,) if _is_namespace(around) else ()
    return World(
        defaults,
        namespaces,
        tuple(seen),
        reads,
        unmanaged_pods,
        groups=not _one_in(chance, 10),
        ranged=_one_in(chance, 2),
    )


def _is_shown(manifest: Any) -> bool:  # noqa: ANN401 - any JSON
    """Whether a watch would show it; what it cannot read it passes over."""
    types = {(one.resource.api_version, one.resource.kind): one.decoded for one in SOURCES}
    try:
        kind = kind_of(manifest["apiVersion"], manifest["kind"])
        shown = made(kind.decoded if kind else types[manifest["apiVersion"], manifest["kind"]], manifest)
        return isinstance(shown.metadata.name, str) and bool(shown.metadata.name)
    except (InvalidObjectError, KeyError, TypeError, AttributeError):
        return False


def _is_namespace(manifest: Any) -> bool:  # noqa: ANN401 - any JSON
    try:
        return made(Namespace, manifest).metadata.name == NAMESPACE
    except InvalidObjectError:
        return False


def _labels_of(manifest: JSON, role: str) -> dict[str, str]:
    """The labels by which its operator knows the workload's pods of that role."""
    kind = kind_of(manifest["apiVersion"], manifest["kind"])
    assert kind is not None
    return labels_of(kind, role, manifest["metadata"]["name"])


def _role(chance: Random, manifest: JSON) -> str:
    """A role that workloads of the kind have, or seldom one that none has."""
    kind = kind_of(manifest["apiVersion"], manifest["kind"])
    assert kind is not None
    return "gone" if _one_in(chance, 24) else chance.choice(small(kind).roles).name


def _member(chance: Random, manifest: JSON) -> JSON:
    """A new pod as an operator sends it, or somebody who would like to be taken for one."""
    between = _between(manifest)
    owner = _owner(between[-1] if between else manifest)
    owner |= _some(chance, {"uid": ("uid-former", ""), "controller": (False, None), "kind": ("Job", "RayCluster")}, 20)
    # A Job has no labels that an operator would put on its pods.
    named = next((one for one in reversed(between) if one["kind"] != "Job"), manifest)
    labels = _labels_of(named, _role(chance, named))
    if _one_in(chance, 20):
        # As the pod of another operator.
        other = _workload(chance)
        labels |= _labels_of(other, _role(chance, other))
    annotations = _some(chance, _ANNOTATIONS, 12)
    if _one_in(chance, 6):
        labels["muster.dev/gang"] = chance.choice(("demo", "pair", "Two Words", ""))
        annotations["muster.dev/gang-size"] = chance.choice(("1", "2", "0", "many", "", "1" * 30))
    if _one_in(chance, 4):
        labels |= {"a/b": "c", "x~y": "z"}
    new = pod("", owner=owner if chance.randrange(8) else None, labels=labels, annotations=annotations)
    new["spec"] |= {"schedulerName": "default-scheduler"} | _some(chance, _POD_SPEC, 8)
    if _one_in(chance, 4):
        new["metadata"].pop(chance.choice(("labels", "annotations")))
    return new


def _asking_about(chance: Random, manifest: JSON) -> JSON:
    """The review of a new or changed workload."""
    if _one_in(chance, 8):
        manifest["metadata"]["ownerReferences"] = [_owner(_workload(chance))]
    operation = chance.choice(("CREATE", "UPDATE"))
    old = mutated(chance, manifest) if operation == "UPDATE" else None
    group, _, version = manifest["apiVersion"].rpartition("/")
    envelope = review({}, old=old, operation=operation, group=group, version=version, kind=manifest["kind"])
    return _asking(envelope, mutated(chance, manifest))


def _asking(envelope: JSON, new: Any) -> JSON:  # noqa: ANN401 - any JSON
    """The review of that object, whatever it is."""
    return {**envelope, "request": {**envelope["request"], "object": new}}
