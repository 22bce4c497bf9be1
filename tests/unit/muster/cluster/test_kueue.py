"""Which of Kueue's Workloads speaks for a gang."""

from dataclasses import replace

import pytest

from muster.admitters import Admitter
from muster.admitters.kueue import KueueAnswer, KueueWorkload
from muster.admitters.kueue_quota import ClusterQueue, LocalQueue
from muster.cluster.cluster import Cluster
from muster.cluster.observe import observe
from muster.cluster.stores import KueueObjects
from muster.cluster.triggers import GangTriggers
from muster.model.names import ADMITTER
from muster.queueing.ledger import GangKey
from tests.support.cases import cases
from tests.support.controller.stores import fill_pods, filled
from tests.support.manifests.kueue import ADMITTED, EVICTED, PENDING, flavored_queue, kueue_workload, pod_set
from tests.support.manifests.observed import DEFAULTS, JSON, KEY, NAMESPACE, made, namespace, ray_cluster, ray_pod
from tests.support.manifests.owner_chains import owned

KUEUES = replace(DEFAULTS, admitters=(Admitter.LEDGER, Admitter.KUEUE))
LABELS = {"volcano.sh/queue-name": "q", "kueue.x-k8s.io/queue-name": "team"}


def ray_job(*, suspend: bool = False) -> JSON:
    meta = {"name": "mine", "namespace": NAMESPACE, "uid": "uid-mine", "labels": LABELS}
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayJob",
        "metadata": meta,
        "spec": {"suspend": suspend, "rayClusterSpec": ray_cluster()["spec"]},
        "status": {"rayClusterName": "demo"},
    }


def seen(*workloads: JSON, kueue: list[JSON], key: GangKey = KEY, pods: list[JSON] | None = None) -> KueueAnswer:
    there = pods if pods is not None else [ray_pod("head", "headgroup")]
    world = filled(
        workloads=workloads, pods=there, kueue=kueue, namespaces=[namespace(annotations={ADMITTER: "kueue"})]
    )
    found = observe(key, world, KUEUES).kueue
    assert found is not None
    return found


def test_the_cluster_of_a_ray_job_is_admitted_with_the_job() -> None:
    job = ray_job()
    made_of_it = owned(ray_cluster(labels=LABELS), job)
    of_job = kueue_workload(ADMITTED, owner_uid="uid-mine")
    assert seen(made_of_it, job, kueue=[of_job]).admitted
    # One that somebody made for the cluster itself says nothing.
    of_cluster = kueue_workload(ADMITTED, name="another", uid="uid-another", owner_uid="uid-demo")
    waiting = kueue_workload(PENDING, owner_uid="uid-mine")
    assert not seen(made_of_it, job, kueue=[waiting, of_cluster]).admitted


def test_an_owner_reference_alone_shares_no_admission() -> None:
    """Anybody may write one: to a RayJob that has another cluster."""
    job = ray_job()
    forged = owned(ray_cluster(name="forged", uid="uid-forged", labels=LABELS), job)
    of_job = kueue_workload(ADMITTED, owner_uid="uid-mine")
    head = ray_pod("head", "headgroup", cluster="forged", owner_uid="uid-forged")
    key = GangKey(NAMESPACE, "ray-forged-pg")
    assert not seen(forged, job, kueue=[of_job], key=key, pods=[head]).admitted


def test_a_suspended_ray_job_opens_nothing_of_its_cluster() -> None:
    job = ray_job(suspend=True)
    answer = seen(owned(ray_cluster(labels=LABELS), job), job, kueue=[kueue_workload(ADMITTED, owner_uid="uid-mine")])
    assert not answer.admitted
    assert answer.message.startswith('RayJob "mine" is suspended; Kueue has admitted it and resumes it')


def test_a_workload_is_found_by_its_owner_or_its_label() -> None:
    unowned = kueue_workload(ADMITTED)
    del unowned["metadata"]["ownerReferences"]
    unlabelled = kueue_workload(ADMITTED)
    del unlabelled["metadata"]["labels"]
    for one in (unowned, unlabelled):
        assert seen(ray_cluster(labels=LABELS), kueue=[one]).admitted
    of_a_former_life = kueue_workload(ADMITTED, owner_uid="uid-before")
    assert not seen(ray_cluster(labels=LABELS), kueue=[of_a_former_life]).admitted


@cases("labelled", ("in a queue of Kueue's", True), ("in none", False))
def test_of_plain_pods_kueue_holds_its_own(labelled: bool) -> None:
    """By a gate of its own; its Workloads of pod groups are many pods'."""
    labels = {"muster.dev/gang": "plain", **({"kueue.x-k8s.io/queue-name": "team"} if labelled else {})}
    pod = ray_pod("p-0")
    pod["metadata"] |= {"ownerReferences": [], "labels": labels}
    pod["metadata"]["annotations"] = {"muster.dev/gang-size": "1", "scheduling.k8s.io/group-name": "plain"}
    answer = seen(kueue=[], key=GangKey(NAMESPACE, "plain"), pods=[pod])
    assert answer.admitted is labelled


PLAIN = GangKey(NAMESPACE, "plain")


def plain(name: str, *, queue: str | None = None, job: str = "", size: int = 1) -> JSON:
    """A pod of a plain gang, in a queue of Kueue's, and made by a Job of this UID, where it says so."""
    one = ray_pod(name)
    labels = {"muster.dev/gang": "plain", **({} if queue is None else {"kueue.x-k8s.io/queue-name": queue})}
    maker = {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": job, "controller": True}
    one["metadata"] |= {"labels": labels, "ownerReferences": [maker] if job else []}
    one["metadata"]["annotations"] = {"muster.dev/gang-size": str(size), "scheduling.k8s.io/group-name": "plain"}
    return one


def of_job(conditions: list[JSON], uid: str = "uid-j") -> JSON:
    return kueue_workload(conditions, name=f"job-{uid}", uid=f"of-{uid}", owner_uid=uid)


@cases("queue", ("its template has no label", None), ("its template has one, too", "team"))
@cases(
    "conditions, admitted",
    ("admitted", ADMITTED, True),
    ("resumed by hand", PENDING, False),
    ("evicted", EVICTED, False),
)
def test_the_pods_of_a_job_are_admitted_with_the_job(conditions: list[JSON], admitted: bool, queue: str | None) -> None:
    """Kueue holds no pod by a gate whose Job it manages, and puts its label on none."""
    answer = seen(kueue=[of_job(conditions)], key=PLAIN, pods=[plain("j-0", job="uid-j", queue=queue)])
    assert answer.admitted is admitted
    assert answer.workload is not None


def test_all_pods_of_a_plain_gang_are_to_be_admitted() -> None:
    """They are one gang by their own word: by one pod's label the others would pass the quota."""
    labelled, bare = plain("p-0", queue="team", size=2), plain("p-1", size=2)
    assert not seen(kueue=[], key=PLAIN, pods=[labelled, bare]).admitted
    assert not seen(kueue=[], key=PLAIN, pods=[plain("p-0", queue="")]).admitted
    first, second = plain("j-0", job="uid-j", size=2), plain("k-0", job="uid-k", size=2)
    both = [of_job(ADMITTED), of_job(PENDING, "uid-k")]
    assert not seen(kueue=both, key=PLAIN, pods=[first, second]).admitted
    assert seen(kueue=[of_job(ADMITTED), of_job(ADMITTED, "uid-k")], key=PLAIN, pods=[first, second]).admitted


def two_jobs(*conditions: list[JSON]) -> KueueAnswer:
    """What Kueue says of a gang of two Jobs, whose Workloads have these conditions."""
    kueue = [of_job(one, uid) for one, uid in zip(conditions, ("uid-j", "uid-k"), strict=True)]
    pods = [plain("p-0", job="uid-j", size=2), plain("p-1", job="uid-k", size=2)]
    pods[1]["metadata"]["ownerReferences"][0]["name"] = "k"
    return seen(kueue=kueue, key=PLAIN, pods=pods)


@cases("conditions, name", ("the first", (PENDING, ADMITTED), "j"), ("the second", (ADMITTED, PENDING), "k"))
def test_of_several_jobs_it_is_said_which_one_kueue_has_not_admitted(
    conditions: tuple[list[JSON], ...], name: str
) -> None:
    said = two_jobs(*conditions)
    assert said.message.startswith(f'Job "{name}": Kueue has not admitted it: insufficient unused quota')
    alone = seen(kueue=[of_job(PENDING)], key=PLAIN, pods=[plain("j-0", job="uid-j")])
    assert alone.message.startswith("Kueue has not admitted it: ")


def test_every_workload_that_speaks_for_pods_of_a_gang_is_known_once() -> None:
    pods = [plain("p-0", job="uid-j"), plain("p-1", job="uid-k"), plain("p-2", job="uid-k"), plain("p-3", queue="team")]
    answer = seen(kueue=[of_job(ADMITTED), of_job(ADMITTED, "uid-k")], key=PLAIN, pods=pods)
    assert [one.metadata.uid for one in answer.workloads] == ["of-uid-j", "of-uid-k"]


def test_of_several_jobs_the_time_counts_that_ends_first() -> None:
    later = [{**one, "lastTransitionTime": "2026-11-21T10:00:10Z"} for one in ADMITTED]
    first = two_jobs(ADMITTED, ADMITTED).awaited
    assert first is not None
    assert two_jobs(later, ADMITTED).awaited == first
    assert two_jobs(ADMITTED, later).awaited == first


def test_a_label_that_names_no_queue_is_none() -> None:
    answer = seen(ray_cluster(labels={**LABELS, "kueue.x-k8s.io/queue-name": ""}), kueue=[])
    assert "in none of its queues" in answer.message


@pytest.mark.parametrize("uid", ["uid-j", "uid-k"])
def test_the_plain_gang_of_a_job_is_told_what_kueue_says_of_it(uid: str) -> None:
    """Of each of its Jobs, where it has several."""
    world = Cluster(admitters=KUEUES.admitters)
    fill_pods(world, [plain("j-0", job="uid-j"), plain("k-0", job="uid-k")])
    told: list[GangKey] = []
    GangTriggers(world, told.append, lambda *_: None).subscribe()
    world.kueue.workloads.apply("added", made(KueueWorkload, of_job(PENDING, uid)))
    assert told == [PLAIN]


def test_where_the_ledger_admits_kueue_is_not_asked() -> None:
    world = filled(workloads=[ray_cluster(labels=LABELS)], pods=[ray_pod("head", "headgroup")])
    view = observe(KEY, world, KUEUES)
    assert (view.admitter, view.kueue) == (Admitter.LEDGER, None)


def test_a_change_of_a_workload_is_told_to_the_gangs_that_it_is_about() -> None:
    job = ray_job()
    world = filled(workloads=[owned(ray_cluster(labels=LABELS), job), job, ray_cluster(name="other", uid="uid-other")])
    told: list[GangKey] = []
    GangTriggers(world, told.append, lambda _, keys: told.extend(key for key in keys if key)).subscribe()
    world.kueue.workloads.apply("added", made(KueueWorkload, kueue_workload(PENDING, owner_uid="uid-mine")))
    assert set(told) == {KEY}


def test_a_job_that_kueue_has_not_met_yet_names_no_workload_of_kueues() -> None:
    """Suspended by hand while its cluster's admission is known: there is none to take out of Kueue's hands."""
    unlabelled = ray_job(suspend=True)
    unlabelled["metadata"] = {**unlabelled["metadata"], "labels": {}}
    answer = seen(owned(ray_cluster(labels={"volcano.sh/queue-name": "q"}), unlabelled), unlabelled, kueue=[])
    assert not answer.admitted
    assert answer.message


def test_who_stops_kueue_from_resuming_a_ray_job_is_told_which_workload_to_write_to() -> None:
    job = ray_job(suspend=True)
    of_job = kueue_workload(ADMITTED, name="rayjob-mine-7b1", owner_uid="uid-mine")
    answer = seen(owned(ray_cluster(labels=LABELS), job), job, kueue=[of_job])
    assert 'Kueue\'s Workload "rayjob-mine-7b1"' in answer.message


@cases(
    "where, quota, words",
    ("too small", "ns", "1", 'it needs cpu 3, and all flavors of ClusterQueue "cq" have cpu 1'),
    ("large enough", "ns", "3", ""),
    ("one that nobody can read", "ns", "a lot", ""),
    ("its LocalQueue is another namespace's", "another", "1", ""),
)
def test_what_its_cluster_queue_can_never_hold_is_known_by_the_local_queue_of_its_namespace(
    where: str, quota: str, words: str
) -> None:
    kueue = KueueObjects()
    local = {"metadata": {"name": "team", "namespace": where}, "spec": {"clusterQueue": "cq"}}
    kueue.local_queues.apply("added", made(LocalQueue, local))
    kueue.cluster_queues.apply("added", made(ClusterQueue, flavored_queue({"cpu": quota})))
    assert kueue.never_fits(made(KueueWorkload, kueue_workload(PENDING, pod_set("worker", 3, cpu="1")))) == words


def test_a_workload_of_kueues_that_nobody_can_read_is_not_said_to_be_too_large() -> None:
    kueue = KueueObjects()
    local = {"metadata": {"name": "team", "namespace": "ns"}, "spec": {"clusterQueue": "cq"}}
    kueue.local_queues.apply("added", made(LocalQueue, local))
    kueue.cluster_queues.apply("added", made(ClusterQueue, flavored_queue({"cpu": "1"})))
    assert kueue.never_fits(made(KueueWorkload, kueue_workload(PENDING, pod_set("worker", 3, cpu="a lot")))) == ""


def test_a_ray_job_that_nobody_can_read_takes_nothing_back_that_kueue_has_admitted() -> None:
    """An edit that the operator refuses, too: its cluster goes on as it was."""
    job = ray_job()
    del job["spec"]["rayClusterSpec"]
    assert seen(
        owned(ray_cluster(labels=LABELS), job), job, kueue=[kueue_workload(ADMITTED, owner_uid="uid-mine")]
    ).admitted
