"""A gang as the stores show it."""

from collections.abc import Iterable

from muster.cluster.cluster import Cluster
from muster.cluster.observe import observe
from muster.cluster.triggers import GangTriggers
from muster.model.names import GROUP_NAME
from muster.model.objects import Node, PriorityClass
from muster.model.pods import Pod
from muster.planning.expectations import Expectations
from muster.planning.snapshot import GangSnapshot
from muster.queueing.ledger import GangKey
from muster.resources.pod_defaults import LimitRange, RuntimeClass
from muster.workloads.ray import RAY_CLUSTER
from muster.workloads.trainer import CLUSTER_TRAINING_RUNTIME, TrainingRuntime
from tests.support.cases import cases
from tests.support.controller.stores import fill_outsiders, filled
from tests.support.manifests.observed import (
    DEFAULTS,
    JSON,
    KEY,
    NAMESPACE,
    amounts,
    as_json,
    limit_range,
    made,
    old_pod,
    pod,
    pod_group,
    priority_class,
    pytorch_job,
    pytorch_pod,
    ray_cluster,
    ray_pod,
    runtime_class,
    template,
    workers,
)
from tests.support.manifests.train_jobs import patch

HEAD = ray_pod("head", "headgroup")


def seen(*pods: JSON, opened: tuple[str, ...] = (), **stores: list[JSON]) -> GangSnapshot:
    cluster = filled(**{"workloads": [ray_cluster()], "pods": list(pods), **stores})
    return observe(KEY, cluster, DEFAULTS, Expectations(opened=set(opened)))


def names(view: GangSnapshot) -> list[str]:
    return [member.pod.metadata.name for member in view.members]


def test_a_template_with_a_low_class_lowers_its_gang_and_leaves_the_roles_in_their_order() -> None:
    """The webhook has told the pods of which role are needed before it knew any of them."""
    job = pytorch_job(
        policy={"queue": "q", "priorityClass": "high", "minAvailable": 2},
        replicas={
            "Master": {"replicas": 1, "template": template(priorityClassName="low")},
            "Worker": {"replicas": 2, "template": template()},
        },
    )
    there = [pytorch_pod(f"w-{number}", priorityClassName="high", priority=1000) for number in range(2)]
    there.append(pytorch_pod("m", "master", priorityClassName="low", priority=1))
    classes = [priority_class("high", 1000), priority_class("low", 1)]
    cluster = filled(workloads=[job], pods=there, classes=classes)
    view = observe(GangKey(NAMESPACE, "train"), cluster, DEFAULTS)
    assert view.intent is not None
    assert view.gang is not None
    assert (view.intent.priority_class, view.gang.min_task_member) == ("low", {"worker": 2})


def test_members_are_the_living_pods_of_the_workload_by_name() -> None:
    view = seen(
        ray_pod("w-1"),
        HEAD,
        ray_pod("w-0"),
        ray_pod("ended", phase="Succeeded"),
        ray_pod("dying", meta={"deletionTimestamp": "2026-11-21T10:00:00Z"}),
        ray_pod("of-a-former-life", owner_uid="uid-of-old"),
    )
    assert names(view) == ["head", "w-0", "w-1"]
    assert [member.role for member in view.members] == ["headgroup", "workers", "workers"]


def test_a_member_is_held_until_its_gate_is_open_or_was_opened_by_us() -> None:
    view = seen(ray_pod("w-0"), ray_pod("w-1", held=False), ray_pod("w-2"), opened=("uid-w-2",))
    assert [member.gated for member in view.members] == [True, False, False]


def test_requests_are_those_of_the_pod_not_of_the_template() -> None:
    """Operators add containers, admission adds defaults."""
    view = seen(ray_pod("w-0", **template("7")["spec"]))
    assert view.members[0].requests == amounts(cpu="7", memory="1Gi")


@cases(
    "pods, assembled",
    ("none", [], False),
    ("a worker lacks", [HEAD, ray_pod("w-0")], False),
    ("enough pods, but no head", [ray_pod("w-0"), ray_pod("w-1"), ray_pod("w-2")], False),
    ("all", [HEAD, ray_pod("w-0"), ray_pod("w-1")], True),
    ("more than all", [HEAD, ray_pod("w-0"), ray_pod("w-1"), ray_pod("w-2")], True),
    ("one has ended", [HEAD, ray_pod("w-0"), ray_pod("w-1", phase="Failed")], False),
)
def test_assembled_means_that_every_role_has_its_minimum(pods: list[JSON], assembled: bool) -> None:
    assert seen(*pods).assembled is assembled


def test_without_a_workload_only_the_group_and_the_pods_it_left_behind_are_known() -> None:
    """Until the garbage collector has taken them they use what they use."""
    view = seen(HEAD, ray_pod("w-0", held=False), workloads=[], groups=[pod_group()])
    assert (view.decoded, view.gang, view.uid) == (None, None, "")
    assert view.pod_group is not None
    assert [(member.role, member.gated) for member in view.members] == [("", True), ("", False)]


def test_a_workload_of_the_same_name_and_another_uid_is_another() -> None:
    view = seen(HEAD, workloads=[ray_cluster(uid="uid-new")])
    assert view.decoded is not None
    assert (view.decoded.metadata.uid, view.members, view.former) == ("uid-new", (), {})


def test_what_runs_of_a_former_workload_of_the_name_is_counted_once() -> None:
    former = ray_pod("left", owner_uid="uid-old", held=False, nodeName="node")
    view = seen(HEAD, former, groups=[pod_group()])
    assert view.ours
    assert (names(view), view.former, view.placed) == (["head"], view.members[0].requests, {})


def test_the_group_alone_leads_to_its_workload() -> None:
    view = seen(groups=[pod_group()])
    assert view.decoded is not None
    assert view.gang is not None


def test_pods_of_a_new_life_lead_to_the_new_workload_when_the_old_one_is_gone() -> None:
    view = seen(
        ray_pod("head", "headgroup", owner_uid="uid-new"),
        workloads=[ray_cluster(uid="uid-new")],
        groups=[pod_group(owner_uid="uid-old")],
    )
    assert view.decoded is not None
    assert view.decoded.metadata.uid == "uid-new"
    assert names(view) == ["head"]


def test_a_workload_that_is_not_musters_has_no_gang() -> None:
    view = seen({**HEAD, "spec": {**HEAD["spec"], "schedulingGates": []}}, workloads=[ray_cluster(labels={})])
    assert (view.gang, view.intent, view.error) == (None, None, "")
    assert view.decoded is not None


def test_numbers_that_make_no_gang_are_told() -> None:
    view = seen(HEAD, workloads=[ray_cluster(workers(replicas=-1))])
    assert view.gang is None
    assert view.error.startswith("spec.workerGroupSpecs[0].replicas: -1 is negative")
    assert names(view) == ["head"]


def test_a_pod_whose_amounts_cannot_be_read_is_told() -> None:
    view = seen(HEAD, ray_pod("w-0", overhead={"cpu": "x"}))
    assert view.error.startswith("pod w-0: spec.overhead.cpu: ")


def test_a_pytorch_job_is_seen_alike() -> None:
    cluster = filled(
        workloads=[pytorch_job(policy={"queue": "q"})],
        pods=[pytorch_pod("m", "master"), pytorch_pod("w-0"), pytorch_pod("w-1")],
    )
    view = observe(GangKey("team", "train"), cluster, DEFAULTS)
    assert view.assembled


@cases(
    "group, ours, marked",
    ("ours", pod_group(), True, ""),
    ("ours and marked", pod_group(admitted="uid-demo"), True, "uid-demo"),
    ("somebody else's", pod_group(ours=False), False, ""),
)
def test_whose_the_group_is(group: JSON, ours: bool, marked: str) -> None:
    view = seen(groups=[group])
    assert (view.ours, view.marked_for) == (ours, marked)


JOB_SET: JSON = {
    "apiVersion": "jobset.x-k8s.io/v1alpha2",
    "kind": "JobSet",
    "metadata": {"name": "waves", "namespace": NAMESPACE, "uid": "uid-waves", "labels": {"volcano.sh/queue-name": "q"}},
    "spec": {"replicatedJobs": [{"name": "work", "replicas": 2, "template": {"spec": {"template": template()}}}]},
}


def job_set_pod(name: str, workload: JSON | str) -> JSON:
    """A pod of a Job, bound as the webhook binds it."""
    said = workload if isinstance(workload, str) else as_json(workload)
    return pod(
        name,
        owner={"apiVersion": "batch/v1", "kind": "Job", "name": "waves-0", "uid": "uid-job", "controller": True},
        labels={"jobset.sigs.k8s.io/replicatedjob-name": "work", "muster.dev/gang": "waves"},
        annotations={"scheduling.k8s.io/group-name": "waves", "muster.dev/workload": said},
    )


def reference(manifest: JSON) -> JSON:
    meta = manifest["metadata"]
    named = {"apiVersion": manifest["apiVersion"], "kind": manifest["kind"], "name": meta["name"], "uid": meta["uid"]}
    return {**named, "controller": True}


def test_the_pods_of_a_job_are_members_of_the_workload_that_is_written_on_them() -> None:
    """There is no store of Jobs; those of a former JobSet of the name are none."""
    former = {**reference(JOB_SET), "uid": "uid-of-old"}
    pods = [
        job_set_pod("a", reference(JOB_SET)),
        job_set_pod("b", reference(JOB_SET)),
        job_set_pod("c", former),
        job_set_pod("d", "no reference"),
    ]
    view = observe(GangKey(NAMESPACE, "waves"), filled(workloads=[JOB_SET], pods=pods), DEFAULTS)
    assert names(view) == ["a", "b"]
    assert view.assembled


def test_who_made_the_workload_speaks_for_it() -> None:
    """A RayCronJob hands no labels down."""
    cron = {"apiVersion": "ray.io/v1", "kind": "RayCronJob", "metadata": {"name": "nightly", "namespace": NAMESPACE}}
    cron["metadata"] |= {"uid": "uid-cron", "labels": {"volcano.sh/queue-name": "theirs"}}  # type: ignore[operator] # a dict
    job = {"apiVersion": "ray.io/v1", "kind": "RayJob", "metadata": {"name": "job", "namespace": NAMESPACE}}
    job["metadata"] |= {"uid": "uid-job", "ownerReferences": [reference(cron)]}  # type: ignore[operator] # a dict
    cluster = ray_cluster(labels={}, meta={"ownerReferences": [reference(job)]})
    view = seen(HEAD, workloads=[cluster, job, cron])
    assert view.intent is not None
    assert view.intent.queue == "theirs"


_TORCH: JSON = {
    "apiVersion": "trainer.kubeflow.org/v1alpha1",
    "kind": "ClusterTrainingRuntime",
    "metadata": {"name": "torch"},
    "spec": {"template": {"spec": JOB_SET["spec"]}},
}


def test_a_train_job_is_counted_with_its_runtime() -> None:
    job = {
        **JOB_SET,
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "spec": {"runtimeRef": {"name": "torch"}},
    }
    key, pods = GangKey(NAMESPACE, "waves"), [job_set_pod("a", reference(job))]
    view = observe(key, filled(workloads=[job, _TORCH], pods=pods), DEFAULTS)
    assert view.gang is not None
    assert view.gang.min_member == 2
    without = observe(key, filled(workloads=[job], pods=pods), DEFAULTS)
    assert 'ClusterTrainingRuntime "torch" is not known' in without.error


@cases(
    "patched, runtime, of_set, queue",
    ("nobody says anything", "", "", "", None),
    ("a patch, and the JobSet is not there yet", "patched", "", "", "patched"),
    ("a patch", "patched", "", "patched", "patched"),
    ("a patch before the runtime", "patched", "of-runtime", "patched", "patched"),
    ("the runtime as it was when the JobSet was made", "", "since", "of-runtime", "of-runtime"),
    ("the JobSet alone", "", "", "made", "made"),
)
def test_the_queue_of_a_train_job(patched: str, runtime: str, of_set: str, queue: str | None) -> None:
    def said(queue: str) -> JSON:
        return {"labels": {"volcano.sh/queue-name": queue} if queue else {}}

    job = {
        **JOB_SET,
        "apiVersion": _TORCH["apiVersion"],
        "kind": "TrainJob",
        "metadata": {"name": "waves", "namespace": NAMESPACE, "uid": "uid-train"},
        "spec": {"runtimeRef": {"name": "torch"}, "runtimePatches": [patch(meta=said(patched))]},
    }
    job_set = {**JOB_SET, "metadata": {**JOB_SET["metadata"], **said(of_set), "ownerReferences": [reference(job)]}}
    of_runtime = {**_TORCH, "spec": {"template": {"metadata": said(runtime), "spec": JOB_SET["spec"]}}}
    cluster = filled(workloads=[job, of_runtime, *([job_set] if of_set else [])])
    view = observe(GangKey(NAMESPACE, "waves"), cluster, DEFAULTS)
    assert (view.intent.queue if view.intent else None) == queue


def listen(cluster: Cluster, told: list[GangKey]) -> None:
    """Note which gangs are told of changes, each once for a change."""

    def many(_: object, keys: Iterable[GangKey | None]) -> None:
        told.extend(dict.fromkeys(key for key in keys if key))

    GangTriggers(cluster, told.append, many).subscribe()


def test_a_runtime_that_comes_later_brings_its_train_jobs_back() -> None:
    job = {**JOB_SET, "apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob"}
    other = {**job, "metadata": {**JOB_SET["metadata"], "name": "other"}, "spec": {"runtimeRef": {"name": "jax"}}}
    cluster = filled(workloads=[{**job, "spec": {"runtimeRef": {"name": "torch"}}}, other])
    told: list[GangKey] = []
    listen(cluster, told)
    cluster.sources[CLUSTER_TRAINING_RUNTIME].apply("added", made(TrainingRuntime, {"metadata": {"name": "torch"}}))
    assert told == [GangKey(NAMESPACE, "waves")]


def test_a_status_that_muster_does_not_read_is_no_change_for_a_gang() -> None:
    """KubeRay writes the status of a RayCluster once more for each of its pods."""
    cluster = filled(workloads=[ray_cluster()], pods=[HEAD])
    told: list[GangKey] = []
    listen(cluster, told)

    def show(version: int, **changes: JSON) -> list[GangKey]:
        told.clear()
        manifest = ray_cluster()
        manifest["metadata"] |= {"resourceVersion": str(version), **changes.pop("metadata", {})}
        cluster.workloads[RAY_CLUSTER].apply("modified", made(RAY_CLUSTER.decoded, {**manifest, **changes}))
        return told

    assert show(7, status={"availableWorkerReplicas": 1}) == []
    assert show(8, status={"availableWorkerReplicas": 2}) == []
    assert show(9, metadata={"annotations": {"muster.dev/requeue-after": "5m"}}) == [KEY]
    assert show(10, spec={**ray_cluster()["spec"], "suspend": True}) == [KEY]


def test_pods_of_a_workload_that_asks_for_nothing_are_not_gone_through() -> None:
    for labels, found in (({}, 0), (ray_cluster()["metadata"]["labels"], 1)):
        manifest = ray_cluster()
        manifest["metadata"]["labels"] = labels
        cluster = filled(workloads=[manifest])
        fill_outsiders(cluster.unmanaged_pods, [made(Pod, old_pod("demo-w-0"))])
        assert len(observe(KEY, cluster, DEFAULTS).unmanaged_pods) == found


def test_a_gang_is_told_when_its_node_takes_no_more_pods_and_when_it_does_again() -> None:
    """What may be taken back of the gang is another then, and its pods do not change."""
    node: JSON = {"metadata": {"name": "n"}, "status": {"conditions": [{"type": "Ready", "status": "True"}]}}
    cordoned = {**node, "spec": {"unschedulable": True}}
    cluster = filled(workloads=[ray_cluster()], pods=[{**HEAD, "spec": {**HEAD["spec"], "nodeName": "n"}}])
    cluster.nodes.replace_all([made(Node, node)])
    told: list[GangKey] = []
    listen(cluster, told)
    for said, away in ((node, []), (cordoned, ["n"]), ({**cordoned, "status": {}}, ["n"]), (node, [])):
        cluster.nodes.apply("modified", made(Node, said))
        assert [*observe(KEY, cluster, DEFAULTS).away] == away
    assert told == [KEY, KEY]
    cluster.nodes.apply("modified", made(Node, cordoned))
    cluster.nodes.apply("deleted", made(Node, cordoned))
    assert not cluster.away


BARE = {"spec": {"containers": [{"name": "main"}], "runtimeClassName": "kata"}}


def test_a_gang_is_counted_with_what_the_cluster_adds_to_its_pods() -> None:
    """As admission counts it, and a plan: by what the pods will have, which no template shows."""
    job = pytorch_job(policy={"queue": "q"}, replicas={"Worker": {"replicas": 2, "template": BARE}})
    cluster = filled(workloads=[job], ranges=[limit_range(cpu="500m")], runtimes=[runtime_class("kata", cpu="250m")])
    view = observe(GangKey(NAMESPACE, "train"), cluster, DEFAULTS)
    assert view.gang is not None
    assert view.gang.min_resources == amounts(cpu="1500m")


def test_a_change_of_what_is_added_brings_the_gangs_back() -> None:
    told: list[GangKey] = []
    cluster = filled(workloads=[ray_cluster()])
    listen(cluster, told)
    cluster.added.ranges.apply("added", made(LimitRange, limit_range(namespace="elsewhere")))
    assert not told
    cluster.added.ranges.apply("added", made(LimitRange, limit_range()))
    cluster.added.runtimes.apply("added", made(RuntimeClass, runtime_class("kata")))
    assert told == [KEY, KEY]


def test_a_plain_pod_has_been_given_already_what_it_gets() -> None:
    """A LimitRange of a later day gives its gang nothing."""
    annotations = {"muster.dev/gang-size": "1", GROUP_NAME: "pair"}
    one = pod("p", labels={"muster.dev/gang": "pair"}, annotations=annotations, containers=[{"name": "main"}])
    view = observe(GangKey(NAMESPACE, "pair"), filled(pods=[one], ranges=[limit_range(cpu="500m")]), DEFAULTS)
    assert view.gang is not None
    assert (view.gang.min_resources, view.gang.roles[0].requests) == ({}, {})


def test_a_priority_class_that_changes_brings_the_gangs_back() -> None:
    """Who is next in line depends on it."""
    told: list[GangKey] = []
    cluster = filled(workloads=[ray_cluster()])
    listen(cluster, told)
    cluster.priority_classes.apply("added", made(PriorityClass, priority_class("high", 1000)))
    assert told == [KEY]


def test_of_a_workload_that_nobody_can_read_no_pod_counts_as_older_than_its_members() -> None:
    """Made in the same second by a webhook that was not there yet; what its roles are nobody knows now."""
    at = {"creationTimestamp": "2026-11-21T10:00:00Z"}
    held = ray_pod("w-0")
    held["metadata"] |= at
    pods = [held, old_pod("old", meta={**old_pod("old")["metadata"], **at})]
    view = observe(KEY, filled(workloads=[ray_cluster(workers(replicas=-1))], pods=pods), DEFAULTS)
    assert view.error
    assert view.unmanaged_pods
    assert not view.left_alone
