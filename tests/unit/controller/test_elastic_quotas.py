"""Gangs of coscheduling and the ElasticQuota of their namespace: who waits, what they say, and what lets them start."""

from muster.model.names import MESSAGE, STATE
from muster.schedulers import SCHEDULERS
from tests.support.cases import cases
from tests.support.controller import bypass_queue
from tests.support.controller.bypass_queue import LARGE, SMALL
from tests.support.controller.harness import Harness
from tests.support.manifests.observed import JSON, elastic_quota, queue

COSCHEDULING = SCHEDULERS["scheduler-plugins-scheduler"]
COUNTS = 3


def gang(name: str, cpus: int, created: str, queue_name: str = "q") -> tuple[JSON, list[JSON]]:
    """A gang of coscheduling, in a queue that limits nothing."""
    workload, pods = bypass_queue.gang(name, cpus, created=created, labels={"volcano.sh/queue-name": queue_name})
    for one in pods:
        one["spec"]["schedulerName"] = COSCHEDULING.name
        one["metadata"]["labels"]["volcano.sh/queue-name"] = queue_name
    return workload, pods


class OfCoscheduling(Harness):
    """All gangs are of coscheduling."""

    scheduler = COSCHEDULING


def quota(most: str, *, used: str = "0") -> JSON:
    limits = {"cpu": most, "memory": "64Gi"}
    return {**elastic_quota(limits, limits), "status": {"used": {"cpu": used}}}


def harness(*gangs: tuple[JSON, list[JSON]], most: str = "4") -> Harness:
    """These gangs in queues without limits, and the ElasticQuota of their namespace."""
    return OfCoscheduling(
        workloads=[workload for workload, _ in gangs],
        pods=[one for _, pods in gangs for one in pods],
        queues=[queue("q", cpu="0"), queue("r", cpu="0")],
        elastic=[quota(most)],
    )


def two_queues(most: str = "4") -> Harness:
    """Two gangs in two queues, of which the namespace has room for one."""
    large = gang("large", 3, "2026-11-21T10:00:00Z")
    return harness(large, gang("small", 2, "2026-11-21T11:00:00Z", "r"), most=most)


def count(world: Harness) -> None:
    """As often as it takes until less is believed."""
    for _ in range(COUNTS):
        world.reconciler.count_others()


def run(world: Harness, name: str) -> None:
    """All pods of a gang run, and have a node."""
    for pod, manifest in world.client.pods.items():
        if pod.startswith(name):
            manifest["status"]["phase"] = "Running"
            manifest["spec"]["nodeName"] = "n"
    world.watch()


async def test_a_namespace_holds_no_more_than_its_quota_in_all_queues_and_the_others_say_so() -> None:
    world = await two_queues().settled()
    assert world.annotations(LARGE)[STATE] == "Admitted"
    assert world.annotations(SMALL)[STATE] == "WaitingForQuota"
    assert world.annotations(SMALL)[MESSAGE] == (
        'needs cpu 2 and memory 2Gi; ElasticQuota "elastic" has cpu 1 and memory 61Gi free of cpu 4 and memory 64Gi; '
        "position 1 of 1 waiting"
    )


@cases("grows", ("the quota grows", True), ("the other ends", False))
async def test_the_next_starts_when_there_is_room(grows: bool) -> None:
    large, pods = gang("large", 3, "2026-11-21T10:00:00Z")
    world = await harness((large, pods), gang("small", 2, "2026-11-21T11:00:00Z", "r")).settled()
    if grows:
        world.set_elastic_quota(quota("5"))
    else:
        for pod in pods:
            del world.client.pods[pod["metadata"]["name"]]
        world.drop_workload(large)
        world.watch()
    await world.settle()
    assert world.annotations(SMALL)[STATE] == "Admitted"


async def test_a_new_leader_counts_what_was_admitted_before() -> None:
    world = await two_queues().settled()
    world.restart()
    await world.settle()
    assert world.annotations(SMALL)[STATE] == "WaitingForQuota"


async def test_a_gang_that_waits_when_its_quota_is_lowered_is_told_that_it_never_fits() -> None:
    world = await two_queues().settled()
    world.set_elastic_quota(quota("1"))
    await world.settle()
    message = 'needs cpu 2, ElasticQuota "elastic" has max cpu 1'
    assert (world.annotations(SMALL)[STATE], world.annotations(SMALL)[MESSAGE]) == ("ExceedsElasticQuota", message)
    assert ("Warning", "ExceedsElasticQuota", message) in world.events()


async def test_pods_that_are_not_of_gangs_count() -> None:
    """By what the scheduler's controller says is used, less what running gangs ask for."""
    world = two_queues(most="6")
    world.set_elastic_quota(quota("6", used="2"))
    world.reconciler.count_others()
    await world.settle()
    assert world.annotations(LARGE)[STATE] == "Admitted"
    assert "has cpu 1 and" in world.annotations(SMALL)[MESSAGE]
    run(world, "large")
    world.set_elastic_quota(quota("6", used="3"))
    count(world)
    await world.settle()
    assert world.annotations(SMALL)[STATE] == "Admitted"


async def test_what_others_use_counts_as_soon_as_it_is_known() -> None:
    """Not a second later: a gang that has been admitted is not taken back."""
    world = two_queues()
    count(world)
    world.set_elastic_quota(quota("4", used="3"))
    await world.settle()
    assert world.annotations(LARGE)[STATE] == "WaitingForQuota"
    assert 'ElasticQuota "elastic" has cpu 1 and' in world.annotations(LARGE)[MESSAGE]


async def test_what_begins_to_run_hides_nothing_of_what_others_use() -> None:
    """Its pods are seen running before the scheduler's controller has counted them."""
    world = two_queues(most="6")
    world.set_elastic_quota(quota("6", used="2"))
    count(world)
    await world.settle()
    run(world, "large")
    world.reconciler.count_others()
    world.set_elastic_quota(quota("6", used="5"))
    count(world)
    await world.settle()
    assert world.annotations(SMALL)[STATE] == "WaitingForQuota"


async def test_without_a_quota_nothing_is_limited() -> None:
    world = await two_queues().settled()
    world.drop_elastic_quota(quota("4"))
    await world.settle()
    assert world.annotations(SMALL)[STATE] == "Admitted"


async def test_an_elastic_gang_grows_no_further_than_its_quota() -> None:
    large, pods = gang("large", 3, "2026-11-21T10:00:00Z")
    world = await harness((large, pods), most="3").settled()
    run(world, "large")
    more = gang("large", 4, "2026-11-21T10:00:00Z")[1][-1]
    world.client.pods[more["metadata"]["name"]] = more
    await world.catch_up()
    assert "no room yet for cpu 1" in world.annotations(LARGE)[MESSAGE]
    world.set_elastic_quota(quota("4"))
    await world.settle()
    assert "large-3" in world.open_pods()


async def test_gangs_of_a_scheduler_that_heeds_no_quotas_are_not_limited() -> None:
    large = bypass_queue.gang("large", 3, created="2026-11-21T10:00:00Z")
    world = await Harness(workloads=[large[0]], pods=large[1], queues=[queue(cpu="4")], elastic=[quota("1")]).settled()
    assert world.annotations(LARGE)[STATE] == "Admitted"
