"""What carries on work that was asked for earlier has that place in the line: the retry of a RayJob."""

from muster.cluster.observe import observe
from muster.cluster.triggers import GangTriggers
from muster.model.names import MANAGED
from muster.queueing.ledger import GangKey
from muster.workloads.ray import RAY_CLUSTER
from muster.workloads.ray_parents import RAY_JOB, RAY_SERVICE
from tests.support.cases import cases
from tests.support.controller.harness import Harness
from tests.support.controller.stores import filled, workload_store
from tests.support.controller.two_gangs import members
from tests.support.manifests.observed import (
    DEFAULTS,
    JSON,
    NAMESPACE,
    QUEUE_LABELS,
    made,
    queue,
    ray_cluster,
    ray_pod,
)
from tests.support.manifests.owner_chains import owned

ASKED, BETWEEN, RETRIED = (f"2026-11-21T{hour}:00:00Z" for hour in (10, 11, 12))
KEY = GangKey(NAMESPACE, "ray-again-pg")


def maker(kind: str = "RayJob", name: str = "mine", **status: object) -> JSON:
    meta = {"name": name, "namespace": NAMESPACE, "uid": f"uid-{name}", "creationTimestamp": ASKED}
    return {"apiVersion": "ray.io/v1", "kind": kind, "metadata": meta, "status": status}


def job(cluster: str = "again", state: str = "Initializing") -> JSON:
    return maker(rayClusterName=cluster, jobDeploymentStatus=state)


def service(active: str, pending: str) -> JSON:
    return maker(
        "RayService",
        activeServiceStatus={"rayClusterName": active},
        pendingServiceStatus={"rayClusterName": pending},
    )


def cluster(name: str, made_at: str, **meta: object) -> JSON:
    return ray_cluster(name=name, uid=f"uid-{name}", meta={"creationTimestamp": made_at, **meta})


def line(*workloads: JSON) -> Harness:
    """A gang that came between, and the one that is retried; room for one of them."""
    retried = next((one for one in workloads if one["kind"] != "RayCluster"), None)
    again = cluster("again", RETRIED)
    gangs = [cluster("between", BETWEEN), owned(again, retried) if retried else again]
    pods = [*members("between"), *members("again")]
    return Harness(workloads=[*gangs, *workloads], pods=pods, queues=[queue(cpu="4")])


async def first(harness: Harness) -> str:
    await harness.settle()
    return harness.open_pods()[0].partition("-")[0]


async def test_the_retry_of_a_ray_job_keeps_the_place_of_the_job() -> None:
    """It is another cluster, and a gang of its own; those who came after the job are still behind it."""
    assert await first(line(job())) == "again"


async def test_a_cluster_that_nobody_retries_has_its_own_age() -> None:
    assert await first(line()) == "between"


@cases(
    "above",
    ("a RayJob that made another cluster", job(cluster="another")),
    ("one that has made none yet", job(cluster="")),
    ("one that is complete", job(state="Complete")),
    ("one that failed for good", job(state="Failed")),
    ("a RayCronJob, each of whose jobs is work of its own", maker("RayCronJob")),
)
async def test_an_owner_reference_alone_gives_nobody_an_older_place(above: JSON) -> None:
    """Anybody may write one, to a job of last year; KubeRay names in the status the cluster that is its own."""
    assert await first(line(above)) == "between"


async def test_a_service_whose_cluster_is_lost_gets_the_next_one_at_its_own_place() -> None:
    assert await first(line(service("lost", "again"))) == "again"


def since(*workloads: JSON) -> str:
    above = next(one for one in workloads if one["kind"] != "RayCluster")
    pod = ray_pod("again-head", "headgroup", cluster="again", owner_uid="uid-again")
    return observe(
        KEY, filled(workloads=[owned(cluster("again", RETRIED), above), *workloads], pods=[pod]), DEFAULTS
    ).above.since


def test_the_upgrade_of_a_service_is_asked_for_when_it_is_made() -> None:
    """The old cluster serves on: nothing was lost that was to be given back."""
    assert not since(service("old", "again"), cluster("old", ASKED))
    assert since(service("old", "again"), cluster("old", ASKED, deletionTimestamp=RETRIED)) == ASKED
    assert since(service("again", "next"), cluster("next", RETRIED)) == ASKED


async def test_a_job_that_names_its_cluster_a_moment_later_brings_the_gang_back() -> None:
    """The two come by watches of their own."""
    harness = line(job(cluster=""))
    store = workload_store(harness.cluster, RAY_JOB)
    harness.set_queue(queue(cpu="1"))
    await harness.settle()
    store.apply("modified", made(RAY_JOB.decoded, job()))
    assert harness.queue.statistics().ready == 1
    harness.set_queue(queue(cpu="4"))
    assert await first(harness) == "again"


async def test_the_next_cluster_hears_that_the_one_before_it_is_lost() -> None:
    old = owned(cluster("old", ASKED), service("old", "again"))
    harness = line(service("old", "again"), old)
    harness.set_queue(queue(cpu="1"))
    await harness.settle()
    workload_store(harness.cluster, RAY_CLUSTER).apply("deleted", made(RAY_CLUSTER.decoded, old))
    harness.set_queue(queue(cpu="4"))
    assert await first(harness) == "again"


def test_other_words_of_a_service_are_no_news_for_its_clusters() -> None:
    """Its status is written every few seconds."""
    above = service("again", "")
    watched = filled(workloads=[owned(cluster("again", RETRIED), above), above])
    told: list[GangKey] = []
    GangTriggers(watched, told.append, lambda _, keys: told.extend(key for key in keys if key)).subscribe()
    above["status"]["serviceStatus"] = "Running"
    workload_store(watched, RAY_SERVICE).apply("modified", made(RAY_SERVICE.decoded, above))
    assert told == []


@cases("between", ("a RayJob", False), ("the RayCronJob above it", True))
async def test_what_is_written_on_the_maker_of_a_cluster_later_is_heard(*, between: bool) -> None:
    """It speaks for its cluster, which may wait where nothing else happens: the next leader would have heard it."""
    top = maker("RayCronJob", "top") if between else maker()
    chain = [top, owned(maker(), top)] if between else [top]
    waiting = owned(ray_cluster(labels={MANAGED: "true"}, name="again", uid="uid-again"), chain[-1])
    queues = [queue("default", cpu="1"), queue(cpu="4")]
    harness = await Harness(workloads=[*chain, waiting], pods=members("again"), queues=queues).settled()
    assert harness.open_pods() == []
    harness.set_workload({**top, "metadata": {**top["metadata"], "labels": QUEUE_LABELS}})
    await harness.settle()
    assert len(harness.open_pods()) == len(members("again"))
