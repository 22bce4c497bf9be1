"""What the webhook keeps of a workload: all that an answer to a pod depends on, and little more."""

import asyncio
import copy
import gc
import inspect
import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.model.names import READ_KEYS
from muster.model.pods import PodTemplate
from muster.model.projection import Projection
from muster.workloads import GANG_KINDS, Kind, RoleSpec, kind_of
from muster.workloads.bounds import MOST, TEMPLATE
from tests.support.cases import cases
from tests.support.manifests.families import FAMILIES, judged
from tests.support.manifests.generators import labels_of, recounted, small, workloads
from tests.support.manifests.observed import (
    JSON,
    NAMESPACE,
    QUEUE_LABELS,
    lines,
    made,
    pod,
    ray_cluster,
    ray_owner,
    template,
)
from tests.support.manifests.train_jobs import patch
from tests.support.webhook.admission_reviews import Reader, answered, knowing, request
from webhook.reviews.cluster_reader import ClusterReader
from webhook.reviews.pods import review_pod

# Of a manifest of 1.5 MB, and of the answers to its pods.
MANIFEST_BYTES, MOST_BYTES, MOST_OF_ANSWERS = 1_500_000, 100_000, 150_000
# Each has a container, and the head two amounts.
_MOST_ROLES = MOST // (TEMPLATE + 10) - 2
SPOILED = {"requests", "limits", "overhead", "minResources"}
EXCLUSIVE = {"alpha.jobset.sigs.k8s.io/exclusive-topology": "rack"}
STEP = {"trainer.kubeflow.org/trainjob-ancestor-step": "dataset-initializer"}
BY_NODE_LABELS = {"alpha.jobset.sigs.k8s.io/node-selector": "true"}


def size(of: object) -> int:
    """The bytes of an object and of all that hangs on it; classes and what they hold are everybody's."""
    seen: set[int] = set()
    left, total = [of], 0
    while left:
        one = left.pop()
        if id(one) in seen or isinstance(one, type) or callable(one):
            continue
        seen.add(id(one))
        total += sys.getsizeof(one)
        left += gc.get_referents(one)
    return total


def of_kind(manifest: JSON) -> Kind:
    kind = kind_of(manifest["apiVersion"], manifest["kind"])
    assert kind is not None
    return kind


def knowledge_of(manifest: JSON, *, whole: bool = False) -> ClusterReader:
    """What the webhook knows once it has seen the workload, and what that is made from."""
    made_from = manifest["spec"].get("madeFrom")
    runtime = {
        "apiVersion": manifest["apiVersion"],
        "kind": "ClusterTrainingRuntime",
        "metadata": {"name": "torch"},
        **(made_from or {}),
    }
    knowledge = knowing(workloads=[runtime] if made_from else [])
    kind = of_kind(manifest)
    if whole:
        knowledge.cache.workloads[kind].apply("added", made(knowledge.cache.workload_type(kind), manifest))
    else:
        read = Projection(knowledge.cache.workload_type(kind)).decode
        knowledge.cache.workloads[kind].apply("added", read(json.dumps(manifest).encode()))
    return knowledge


def pods_of(manifest: JSON) -> Iterator[JSON]:
    """A new pod of each role that the family has, and one that is of none."""
    owner = {"apiVersion": manifest["apiVersion"], "kind": manifest["kind"], "name": "demo", "controller": True}
    kind = of_kind(manifest)
    for role in (*(one.name for one in small(kind).roles), "none"):
        labels = labels_of(kind, role)
        yield pod("", owner={**owner, "uid": "uid-demo"}, labels=labels, schedulerName="default-scheduler", priority=0)


def keys_of(kind: Kind) -> list[str]:
    """What looks like the key of a label or annotation in the kind's file, written there or imported."""
    module = sys.modules[kind.read.__module__]
    texts = [one for one in vars(module).values() if isinstance(one, str)] + re.findall(
        r'"([^" ]+)"', inspect.getsource(module)
    )
    return sorted(one for one in set(texts) if re.fullmatch(r"([a-z0-9-]+\.)+[a-z]+/[\w.-]+", one))


def words_of(kind: Kind) -> list[str]:
    """What may be the value of one of these keys."""
    source = inspect.getsource(sys.modules[kind.read.__module__])
    return sorted({"true", *re.findall(r'"([a-z]+(?:-[a-z]+)*)"', source)})


def saying(value: Any, said: Mapping[str, str], *, top: bool = True) -> Any:  # noqa: ANN401 - any JSON
    """The manifest with these labels and annotations, on itself and on every template in it."""
    if isinstance(value, dict):
        more = {key: saying(item, said, top=False) for key, item in value.items() if top or key != "metadata"}
        meta = value.get("metadata", {})
        both = {name: {**(meta.get(name) or {}), **said} for name in ("labels", "annotations")}
        return {**more, "metadata": {**meta, **both}} if "spec" in value else more
    return [saying(item, said, top=False) for item in value] if isinstance(value, list) else value


def answers(manifest: JSON, knowledge: ClusterReader) -> list[JSON]:
    async def all_() -> list[JSON]:
        return [answered(await review_pod(request(new), knowledge)) for new in pods_of(manifest)]

    return asyncio.run(all_())


def spoiled(value: Any, amount: Callable[[], Any]) -> Any:  # noqa: ANN401 - any JSON
    """The same with other amounts, of the containers and of the workload."""
    if isinstance(value, dict):
        return {
            key: {name: amount() for name in item} if key in SPOILED and item else spoiled(item, amount)
            for key, item in value.items()
        }
    return [spoiled(item, amount) for item in value] if isinstance(value, list) else value


@st.composite
def seen_workloads(draw: st.DrawFn) -> JSON:
    """A workload as the watch of its kind shows it; now and then its amounts are none."""
    manifest = draw(workloads().filter(lambda one: of_kind(one) in GANG_KINDS))
    manifest = copy.deepcopy(manifest)
    kind = of_kind(manifest)
    if draw(st.booleans()):
        said = st.dictionaries(st.sampled_from(sorted(READ_KEYS | {*keys_of(kind)})), st.sampled_from(words_of(kind)))
        manifest = saying(manifest, draw(said))
    manifest["metadata"] |= {"uid": "uid-demo", "resourceVersion": "1"}
    if draw(st.booleans()):
        amounts = st.sampled_from(["1", "1", "1", "-1", "x", 1, -1, "x" * 1000])
        manifest = spoiled(manifest, lambda: draw(amounts))
    return manifest


@given(seen_workloads())
def test_a_pod_gets_the_same_answer_as_if_the_whole_workload_were_kept(manifest: JSON) -> None:
    """The same patch, or the same refusal with the same words."""
    assert answers(manifest, knowledge_of(manifest)) == answers(manifest, knowledge_of(manifest, whole=True))


def _job_set(**annotations: str) -> JSON:
    """Its Jobs have two pods each."""
    jobs = [
        {"name": name, "replicas": 2, "template": {"spec": {"parallelism": 2, "template": template()}}} for name in "ab"
    ]
    return _seen("jobset.x-k8s.io/v1alpha2", "JobSet", annotations, {"replicatedJobs": jobs})


def _train_job(
    annotations: Mapping[str, str] | None = None, step: Mapping[str, str] | None = None, patched: JSON | None = None
) -> JSON:
    """The second job of its runtime waits for the first, which has nothing to do unless it is a step of the Trainer."""
    jobs = _job_set()["spec"]["replicatedJobs"]
    jobs[0]["template"]["metadata"] = {"labels": dict(step or {})}
    if step is not None:
        jobs[0]["replicas"] = 0
        jobs[1]["dependsOn"] = [{"name": "a", "status": "Complete"}]
    override = {"targetJobs": [{"name": "a"}], "metadata": {"annotations": dict(annotations or {})}}
    spec = {
        "runtimeRef": {"name": "torch"},
        "madeFrom": {"spec": {"template": {"spec": {"replicatedJobs": jobs}}}},
        "podTemplateOverrides": [override],
        "runtimePatches": [patch({"name": "a", "template": {"metadata": patched}})] if patched else [],
    }
    return _seen("trainer.kubeflow.org/v1alpha1", "TrainJob", {}, spec)


def _seen(api_version: str, kind: str, annotations: Mapping[str, str], spec: JSON) -> JSON:
    meta = {"name": "demo", "namespace": NAMESPACE, "uid": "uid-demo", "resourceVersion": "1"}
    labels = {"volcano.sh/queue-name": "q"}
    said = {"labels": labels, "annotations": dict(annotations)}
    return {"apiVersion": api_version, "kind": kind, "metadata": {**meta, **said}, "spec": spec}


@cases(
    "manifest, without",
    ("exclusive placement", _job_set(**EXCLUSIVE), _job_set()),
    ("by labels of nodes", _job_set(**EXCLUSIVE), _job_set(**EXCLUSIVE, **BY_NODE_LABELS)),
    ("in an override", _train_job(EXCLUSIVE), _train_job()),
    ("a step of the Trainer", _train_job(step=STEP), _train_job(step={})),
    ("in a patch of the runtime", _train_job(patched={"annotations": EXCLUSIVE}), _train_job()),
    ("a step by a patch", _train_job(step={}, patched={"labels": STEP}), _train_job(step={})),
    ("the queue", ray_cluster(), ray_cluster(labels={})),
    ("a mode", ray_cluster(labels={**QUEUE_LABELS, "volcano.sh/network-topology-mode": "near"}), ray_cluster()),
    (
        "a tier",
        ray_cluster(labels={**QUEUE_LABELS, "volcano.sh/network-topology-highest-tier-allowed": "x"}),
        ray_cluster(),
    ),
)
def test_what_an_answer_depends_on_is_kept(manifest: JSON, without: JSON) -> None:
    found = answers(manifest, knowledge_of(manifest))
    assert found == answers(manifest, knowledge_of(manifest, whole=True))
    assert found != answers(without, knowledge_of(without))


def counted(manifest: JSON) -> list[RoleSpec] | str:
    """The roles without their templates, or why there are none."""
    verdict = judged(manifest)
    if verdict.workload is None:
        return "".join(lines(verdict.refusals))
    return [replace(role, template=PodTemplate()) for role in verdict.workload.roles]


@pytest.mark.parametrize("kind", GANG_KINDS, ids=lambda kind: f"{kind.kind} {kind.versions[0]}")
def test_a_kind_names_the_labels_and_annotations_by_which_it_counts(kind: Kind) -> None:
    """Stores keep no others: the cluster would be counted otherwise than in a plan."""
    family = next(one for one in FAMILIES if kind_of(one.api_version, one.kind) is kind)
    # Of Jobs of one pod, of one Job and of one group most ways to count are the same.
    manifest = recounted(family.manifest(), lambda: 2)
    without = counted(manifest)
    needed = {
        key for key in keys_of(kind) for word in words_of(kind) if counted(saying(manifest, {key: word})) != without
    }
    assert needed <= READ_KEYS, f"give these to `read_key`: {sorted(needed - READ_KEYS)}"


@pytest.mark.parametrize(("where", "index"), [("initContainers", 3), ("containers", 0), ("containers", 7)], ids=str)
def test_a_refusal_names_the_amount_that_is_none_where_it_stands(where: str, index: int) -> None:
    containers = [{"name": f"c{number}", "resources": {"requests": {"cpu": "1"}}} for number in range(10)]
    spec: JSON = {"containers": containers, "initContainers": copy.deepcopy(containers)}
    spec[where][index]["resources"]["limits"] = {"memory": "much"}
    manifest = ray_cluster(head={"spec": spec})
    new = pod("", owner=ray_owner(controller=True), labels={"ray.io/group": "headgroup"}, schedulerName="")
    answer = asyncio.run(review_pod(request(new), knowing(workloads=[manifest])))
    field = f"spec.headGroupSpec.template.spec.{where}[{index}].resources.limits.memory"
    assert f'{field}: "much" is not a quantity' in answered(answer)["status"]["message"]


@cases("roles, variables", ("large roles", 100, 180), ("as many roles as muster reads", _MOST_ROLES, 80))
async def test_what_is_made_for_its_pods_is_small_too(roles: int, variables: int) -> None:
    """Of all its hundreds of roles, once a pod of each has come."""
    large = {"containers": [{"name": "ray", "env": [{"name": f"V{at}", "value": "v" * 60} for at in range(variables)]}]}
    groups: list[JSON] = [
        {"groupName": f"g{number}", "replicas": 1, "template": {"spec": large}} for number in range(roles)
    ]
    manifest = ray_cluster(*groups)
    assert len(json.dumps(manifest)) > MANIFEST_BYTES
    knowledge = knowing(workloads=[manifest])
    for group in groups:
        new = pod("", owner=ray_owner(controller=True), labels={"ray.io/group": group["groupName"]}, schedulerName="")
        assert (await review_pod(request(new), knowledge)).patch
    (entry,) = knowledge.cache.templates._entries.values()
    assert size(knowledge.cache.workloads[of_kind(manifest)]) < MOST_BYTES
    assert size(entry) < MOST_OF_ANSWERS


async def test_what_a_direct_read_has_shown_is_as_small() -> None:
    """A read may be quicker than the watch, and its answer serves until the workload changes."""
    amounts = {f"example.com/{number}": "1" for number in range(60)}
    head: JSON = {"spec": {"containers": [{"name": "ray", "resources": {"requests": amounts}}]}}
    manifest = ray_cluster(head=head)
    knowledge = knowing(Reader({"rayclusters/demo": manifest}))
    new = pod("", owner=ray_owner(controller=True), labels={"ray.io/group": "headgroup"}, schedulerName="")
    assert (await review_pod(request(new), knowledge)).patch
    (entry,) = knowledge.cache.templates._entries.values()
    assert size(entry) < MOST_BYTES / 5
