"""Who may use a queue, at admission: to all others it does not exist, in the very words."""

import json

import pytest

from muster.kube.errors import ApiError
from muster.model.names import GATE_MODE, NAMESPACE_SELECTOR
from tests.support.cases import cases
from tests.support.manifests.observed import (
    ASK,
    JSON,
    NO_QUEUE,
    namespace,
    pod,
    pod_group,
    queue,
    ray_cluster,
    ray_owner,
    template,
)
from tests.support.webhook.admission_reviews import Reader, answered, knowing, patch_of, request
from webhook.reviews.cluster_reader import ClusterReader
from webhook.reviews.pods import review_pod
from webhook.reviews.queues import review_pod_group
from webhook.reviews.workloads import review_workload

TEAMS = [namespace(labels={"team": "web"})]
KEPT = queue(cpu="4", state="Closed", annotations={NAMESPACE_SELECTOR: "team=ml", GATE_MODE: "off"})
OWNER = ray_owner(controller=True)
VOLCANO_JOB: JSON = {
    "apiVersion": "batch.volcano.sh/v1alpha1",
    "kind": "Job",
    "metadata": {"name": "job", "namespace": "team"},
    "spec": {"queue": "q", "tasks": [{"name": "worker", "replicas": 1, "template": template("1")}]},
}
SAID = NO_QUEUE + ASK


def worlds(*workloads: JSON) -> list[ClusterReader]:
    """One without the queue, and one in which it is kept for others."""
    return [knowing(queues=queues, namespaces=TEAMS, workloads=workloads) for queues in ([], [KEPT])]


@cases("manifest", ("RayCluster", ray_cluster()), ("Volcano's Job", VOLCANO_JOB))
async def test_a_forbidden_queue_is_refused_as_a_missing_one(manifest: JSON) -> None:
    missing, forbidden = [json.dumps(answered(await review_workload(request(manifest), world))) for world in worlds()]
    assert missing == forbidden
    assert json.dumps(SAID)[1:-1] in missing


@cases("others", ("missing", []), ("kept for others", [KEPT]))
async def test_the_queue_that_may_be_meant_is_named_where_the_namespace_may_use_it(others: list[JSON]) -> None:
    """A queue that is kept for others is never proposed, nor is one that takes no gangs."""
    ours = queue("qq-team", annotations={NAMESPACE_SELECTOR: "team=web"})
    theirs = queue("qq-taem", annotations={NAMESPACE_SELECTOR: "team=ml"})
    shut = queue("qq-tema", state="Closed")
    world = knowing(queues=[*others, theirs, shut, ours], namespaces=TEAMS)
    for name, meant in (
        ("qq-teams", ' (did you mean "qq-team"?)'),
        ("qq-taem", ' (did you mean "qq-team"?)'),
        ("q", ""),
    ):
        asked = request(ray_cluster(labels={"volcano.sh/queue-name": name}))
        message = answered(await review_workload(asked, world))["status"]["message"]
        assert f'queue "{name}" does not exist, or is not open to namespace "team"{meant}; name another one' in message


async def test_its_own_namespaces_are_judged_as_everywhere() -> None:
    knowledge = knowing(queues=[KEPT], namespaces=[namespace(labels={"team": "ml"})])
    answer = answered(await review_workload(request(ray_cluster()), knowledge))
    assert 'queue "q" is Closed' in answer["status"]["message"]


async def test_what_named_it_before_stays_editable() -> None:
    """The workload may run: it was let in before the queue was closed to it."""
    _, knowledge = worlds()
    asked = request(ray_cluster(suspend=True), old=ray_cluster(), operation="UPDATE")
    answer = answered(await review_workload(asked, knowledge))
    assert answer["allowed"]
    assert SAID in answer["warnings"][0]


async def test_pods_for_a_forbidden_queue_are_held_whatever_its_mode() -> None:
    """As for a missing one; opened, Volcano would place them there."""
    labels = {"ray.io/cluster": "demo", "ray.io/group": "headgroup"}
    head = pod("", owner=OWNER, labels=labels, schedulerName="default-scheduler")
    patches = [patch_of(await review_pod(request(head), world)) for world in worlds(ray_cluster())]
    assert patches[0] == patches[1]
    assert {"op": "add", "path": "/spec/schedulingGates", "value": [{"name": "muster.dev/gang"}]} in patches[0]


def below(**spec: str) -> JSON:
    made = queue("child", cpu="4")
    return {**made, "spec": {**made["spec"], **spec}}


@cases("parents", ("above it", ["parent"]), ("further up", ["middle", "parent"]))
@pytest.mark.parametrize("seen", ["nothing", "the child", "its parents", "all"])
async def test_a_queue_whose_parent_the_watch_has_not_shown_is_judged_by_that(seen: str, parents: list[str]) -> None:
    """A child that is read, or that the watch has shown first, says nothing of whom its parent is there for."""
    chain = [below(parent=parents[0])]
    for name, above in zip(parents, [*parents[1:], "root"], strict=True):
        chain.append(queue(name, cpu="8", annotations={NAMESPACE_SELECTOR: "team=ml"} if above == "root" else None))
        chain[-1]["spec"]["parent"] = above
    shown = {"nothing": [], "the child": chain[:1], "its parents": chain[1:], "all": chain}[seen]
    reader = Reader(objects={f"queues/{one['metadata']['name']}": one for one in chain})
    group = pod_group("mine", ours=False, queue="child")
    group |= {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup"}
    cluster = ray_cluster(labels={"volcano.sh/queue-name": "child"})
    for team, allowed in (("web", False), ("ml", True)):
        world = knowing(reader, queues=shown, namespaces=[namespace(labels={"team": team})])
        assert answered(await review_pod_group(request(group), world))["allowed"] is allowed
        assert answered(await review_workload(request(cluster), world))["allowed"] is allowed


async def test_a_queue_whose_parent_is_not_there_is_open_to_nobody() -> None:
    world = knowing(queues=[below(parent="gone")])
    answer = answered(await review_workload(request(ray_cluster(labels={"volcano.sh/queue-name": "child"})), world))
    assert 'queue "child" does not exist' in answer["status"]["message"]


async def test_of_queues_in_a_ring_each_is_read_once() -> None:
    ring = [below(parent="parent"), {**queue("parent"), "spec": {"parent": "child"}}]
    reader = Reader(objects={f"queues/{one['metadata']['name']}": one for one in ring})
    await knowing(reader).tree_with("child")
    assert reader.reads == ["queues/child", "queues/parent"]


@cases(
    "where, held",
    ("it has no PodGroup", None, False),
    ("it is in this queue", pod_group(queue="free"), False),
    ("it is in another queue", pod_group(), True),
    ("nobody can tell", ApiError(503, "", "busy"), True),
)
async def test_a_gang_that_is_in_another_queue_goes_by_no_other_ones_mode(
    where: JSON | ApiError | None, held: bool
) -> None:
    """Relabelled while it runs: its new pods are bound to its PodGroup, and so to the queue that it holds room in."""
    cluster = ray_cluster(labels={"volcano.sh/queue-name": "free"})
    reader = Reader(objects={} if where is None else {"podgroups/ray-demo-pg": where})
    world = knowing(reader, workloads=[cluster], queues=[queue(), queue("free", annotations={GATE_MODE: "off"})])
    labels = {"ray.io/cluster": "demo", "ray.io/group": "headgroup"}
    head = pod("", owner=OWNER, labels=labels, schedulerName="default-scheduler")
    patch = patch_of(await review_pod(request(head), world))
    assert ("/spec/schedulingGates" in [operation["path"] for operation in patch]) is held
