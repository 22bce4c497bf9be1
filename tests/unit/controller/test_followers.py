"""JobSets with exclusive placement: all pods of a Job but the first are made when that has a node."""

import pytest

from muster.model.names import STATE
from tests.support.controller.harness import Harness
from tests.support.manifests.observed import JSON, NAMESPACE, QUEUE_LABELS, pytorch_job, pytorch_pod, queue, template
from tests.unit.controller.test_waves import of_wave

EXCLUSIVE = {"alpha.jobset.sigs.k8s.io/exclusive-topology": "rack"}


def job(name: str = "w", replicas: int = 2, **rest: object) -> JSON:
    """A replicated job with Jobs of four pods of 1 cpu."""
    spec = {"parallelism": 4, "completions": 4, "template": template()}
    return {"name": name, "replicas": replicas, "template": {"spec": spec}, **rest}


def exclusive(*jobs: JSON) -> JSON:
    meta = {"name": "set", "namespace": NAMESPACE, "uid": "uid-set", "labels": QUEUE_LABELS, "annotations": EXCLUSIVE}
    spec = {"replicatedJobs": list(jobs or (job(),))}
    return {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": meta, "spec": spec}


def leaders(role: str = "w", replicas: int = 2, life: str = "") -> list[JSON]:
    names = [f"{role}-{number}-0" for number in range(replicas)]
    return [of_wave(name, role, meta={"uid": f"uid-{name}{life}"}) for name in names]


def follower(role: str = "w", number: int = 1, of: int = 0) -> JSON:
    return of_wave(f"{role}-{of}-{number}", role)


async def let_come(harness: Harness, *pods: JSON) -> None:
    harness.client.pods |= {pod["metadata"]["name"]: pod for pod in pods}
    await harness.catch_up()


def place(harness: Harness) -> None:
    """The scheduler gives every open pod a node."""
    for name in harness.open_pods():
        harness.client.pods[name]["spec"]["nodeName"] = "n"


async def test_the_leaders_are_the_gang_and_the_followers_join_it() -> None:
    """JobSet lets no follower be made before its leader has a node, so that nobody may wait for one."""
    harness = await Harness(pods=leaders(), workloads=[exclusive()], queues=[queue(cpu="8")]).settled()
    assert harness.open_pods() == ["w-0-0", "w-1-0"]
    spec = harness.client.groups["set"]["spec"]
    assert (spec["minMember"], spec["minTaskMember"]) == (2, {"w": 2})
    assert spec["minResources"]["cpu"] == "8"
    place(harness)
    await let_come(harness, *(follower(number=number, of=of) for of in range(2) for number in range(1, 4)))
    assert len(harness.open_pods()) == 8


async def test_the_room_of_the_followers_is_there_before_their_leaders_start() -> None:
    harness = await Harness(pods=leaders(), workloads=[exclusive()], queues=[queue(cpu="7")]).settled()
    assert harness.open_pods() == []
    assert harness.annotations("set")[STATE] == "ExceedsCapability"


@pytest.mark.parametrize(("cpu", "state"), [("9", "ExceedsCapability"), ("10", "Admitted")])
async def test_the_room_of_the_followers_is_kept_beside_what_their_leaders_really_ask_for(cpu: str, state: str) -> None:
    """Somebody has added a sidecar of 1 cpu to each of two leaders of 1 cpu; six followers come."""
    pods = leaders()
    for pod in pods:
        pod["spec"]["containers"].append({"name": "sidecar", "resources": {"requests": {"cpu": "1"}}})
    harness = await Harness(pods=pods, workloads=[exclusive()], queues=[queue(cpu=cpu)]).settled()
    assert harness.annotations("set")[STATE] == state


async def test_nobody_takes_the_room_of_followers_that_are_still_to_come() -> None:
    other = pytorch_job(policy={"queue": "q"}, replicas={"Worker": {"replicas": 1, "template": template()}})
    harness = await Harness(
        pods=[*leaders(), pytorch_pod("train-worker-0")], workloads=[exclusive(), other], queues=[queue(cpu="8")]
    ).settled()
    assert harness.open_pods() == ["w-0-0", "w-1-0"]
    assert harness.annotations("train")[STATE] == "WaitingForQuota"


async def test_a_later_wave_starts_with_its_leaders_when_there_is_room_for_all_of_it() -> None:
    """Its leaders hold the room of all, from the moment in which they start."""
    first = {"name": "first", "template": {"spec": {"template": template()}}}
    later = job("then", 1, dependsOn=[{"name": "first", "status": "Complete"}])
    harness = await Harness(
        pods=[of_wave("first", "first")], workloads=[exclusive(first, later)], queues=[queue(cpu="3")]
    ).settled()
    await let_come(harness, *leaders("then", 1))
    assert harness.open_pods() == ["first"], "a leader without room for those who follow it"
    harness.set_queue(queue(cpu="5"))
    await harness.settle()
    assert harness.open_pods() == ["first", "then-0-0"]
    place(harness)
    harness.set_queue(queue(cpu="1"))
    await let_come(harness, *(follower("then", number) for number in range(1, 4)))
    assert harness.open_pods() == ["first", "then-0-0", "then-0-1", "then-0-2", "then-0-3"], "their room was theirs"


async def test_nobody_takes_the_room_of_followers_while_their_gang_pauses_after_an_eviction() -> None:
    first = {"name": "first", "template": {"spec": {"template": template()}}}
    later = job("then", 1, dependsOn=[{"name": "first", "status": "Ready"}])
    other = pytorch_job(policy={"queue": "q"}, replicas={"Worker": {"replicas": 2, "template": template()}})
    waits = [pytorch_pod("train-worker-0"), pytorch_pod("train-worker-1")]
    harness = await Harness(
        pods=[of_wave("first", "first")], workloads=[exclusive(first, later), other], queues=[queue(cpu="5")]
    ).settled()
    await let_come(harness, *leaders("then", 1))
    place(harness)
    evicted = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
    harness.client.pods["first"]["status"]["conditions"] = [evicted]
    harness.client.pods["first"]["metadata"]["deletionTimestamp"] = "2026-11-21T12:00:00Z"
    await let_come(harness, *waits)
    del harness.client.pods["first"]
    await let_come(harness)
    assert harness.open_pods() == ["then-0-0"]


async def test_the_leaders_of_a_later_wave_wait_for_each_other() -> None:
    first = {"name": "first", "template": {"spec": {"template": template()}}}
    later = job("then", 2, dependsOn=[{"name": "first", "status": "Complete"}])
    harness = Harness(pods=[of_wave("first", "first")], workloads=[exclusive(first, later)], queues=[queue(cpu="9")])
    await let_come(harness, *leaders("then", 1))
    assert harness.open_pods() == ["first"]
    await let_come(harness, *leaders("then", 2))
    assert harness.open_pods() == ["first", "then-0-0", "then-1-0"]


@pytest.mark.parametrize(("placed", "nudges"), [(False, 0), (True, 1)])
async def test_nobody_is_asked_for_followers_before_their_leaders_have_nodes(nudges: int, *, placed: bool) -> None:
    """They would be refused again, and each refusal makes the Job controller wait longer."""
    harness = await Harness(pods=leaders(), workloads=[exclusive()], queues=[queue(cpu="8")]).settled()
    if placed:
        place(harness)
        harness.watch()
    await harness.settle()
    harness.now += 60
    for key in harness.cluster.gangs():
        harness.queue.add(key)
    await harness.settle()
    assert len([write for write in harness.client.writes if write.verb == "annotate"]) == nudges


async def test_a_job_set_that_starts_again_starts_with_its_leaders() -> None:
    """A restart makes all pods anew; its place is kept."""
    harness = await Harness(pods=leaders(), workloads=[exclusive()], queues=[queue(cpu="8")]).settled()
    place(harness)
    await let_come(harness, *(follower(number=number, of=of) for of in range(2) for number in range(1, 4)))
    harness.client.pods.clear()
    await harness.catch_up()
    await let_come(harness, *leaders(life="-again"))
    assert harness.open_pods() == ["w-0-0", "w-1-0"]
