"""Plain gangs of Jobs: what a Job has completed it does not make again."""

from collections.abc import Iterable

import pytest

from muster.model.names import GANG_COMPLETIONS, GANG_SIZE, MESSAGE, STATE
from muster.queueing.ledger import GangKey
from tests.support.cases import cases
from tests.support.controller.harness import Harness
from tests.support.manifests.observed import JSON, NAMESPACE, pod, queue, template

KEY = GangKey(NAMESPACE, "pair")
_SPEAKS = {"muster.dev/gang": "pair", "volcano.sh/queue-name": "q"}


def of_job(name: str, *, second: int = 0, completions: int | None = 4, job: str = "job", size: str = "4") -> JSON:
    """A held pod of a Job, as the webhook makes it, created in that second."""
    said = {GANG_SIZE: size, "scheduling.k8s.io/group-name": "pair"}
    if completions is not None:
        said[GANG_COMPLETIONS] = str(completions)
    return pod(
        name,
        owner={"apiVersion": "batch/v1", "kind": "Job", "name": job, "uid": f"uid-{job}", "controller": True},
        labels=_SPEAKS,
        annotations=said,
        meta={"creationTimestamp": f"2026-11-21T10:00:{second:02}Z"},
        schedulingGates=[{"name": "muster.dev/gang"}],
        **template("1")["spec"],
    )


async def started(pods: Iterable[JSON]) -> Harness:
    """A gang that runs, each pod on a node."""
    harness = await Harness(pods=list(pods), queues=[queue(cpu="9")]).settled()
    for one in harness.client.pods.values():
        one["status"]["phase"] = "Running"
        one["spec"]["nodeName"] = "n"
    await harness.catch_up()
    assert harness.open_pods() == sorted(harness.client.pods)
    return harness


async def ended(harness: Harness, **phases: str) -> None:
    for name, phase in phases.items():
        harness.client.pods[name]["status"]["phase"] = phase
    await harness.catch_up()


async def come(harness: Harness, *pods: JSON) -> None:
    harness.client.pods |= {one["metadata"]["name"]: one for one in pods}
    await harness.catch_up()
    # What a gang lacks is said after a moment.
    harness.now += 10
    harness.reconciler.gang_changed(KEY)
    await harness.settle()


async def test_the_last_pod_of_a_job_is_retried_when_all_others_have_succeeded() -> None:
    harness = await started(of_job(name) for name in "abcd")
    await ended(harness, a="Succeeded", b="Succeeded", c="Succeeded")
    await ended(harness, d="Failed")
    assert harness.annotations("pair")[STATE] == "Finished"
    await come(harness, of_job("e", second=20))
    assert "e" in harness.open_pods()
    assert harness.client.groups["pair"]["spec"]["minMember"] == 1
    assert harness.annotations("pair")[MESSAGE] == 'cpu 1 and memory 1Gi of queue "q"'
    harness.restart()
    await harness.settle()
    assert harness.annotations("pair")[MESSAGE] == 'cpu 1 and memory 1Gi of queue "q"'


async def test_a_job_that_is_resumed_half_done_starts_with_all_that_it_has_left_to_do() -> None:
    harness = await started(of_job(name) for name in "abcd")
    del harness.client.pods["c"], harness.client.pods["d"]
    await ended(harness, a="Succeeded", b="Succeeded")
    await come(harness, of_job("e", second=20))
    assert "e" not in harness.open_pods(), "a part of it was started"
    await come(harness, of_job("f", second=20))
    assert harness.open_pods() == ["a", "b", "e", "f"]


@pytest.mark.parametrize(("completions", "last"), [(6, 2), (8, 4), (7, 3)])
async def test_a_round_of_a_job_starts_when_all_its_pods_are_there(completions: int, last: int) -> None:
    """The pods of the round before have all ended in one moment, so that the gang queues again."""
    harness = await started(of_job(name, completions=completions) for name in "abcd")
    await ended(harness, **dict.fromkeys("abcd", "Succeeded"))
    *first, late = (of_job(f"r-{n}", second=20, completions=completions) for n in range(last))
    await come(harness, *first)
    assert harness.open_pods() == ["a", "b", "c", "d"], "a part of it was started"
    await come(harness, late)
    assert harness.open_pods() == sorted(harness.client.pods)


@cases(
    "done, later",
    ("what failed is made again", "Failed", of_job("e", second=20)),
    ("a former Job's pods count for nothing", "Succeeded", of_job("e", second=20, job="next")),
    ("nobody knows how many are to succeed", "Succeeded", of_job("e", second=20, completions=None)),
    ("more have succeeded than it wants", "Succeeded", of_job("e", second=20, completions=2)),
)
async def test_no_part_of_a_gang_starts_for_what_has_ended(done: str, later: JSON) -> None:
    harness = await started(of_job(name) for name in "abcd")
    await ended(harness, a=done, b=done, c=done, d="Failed")
    await come(harness, later)
    assert "e" not in harness.open_pods()
    assert harness.annotations("pair")[MESSAGE] == "waiting for its pods: member 1 of 4"


async def test_pods_of_two_jobs_are_awaited_as_their_gang_says() -> None:
    """Each makes a part of it: of several makers nobody knows how many are to come."""
    parts = {"a": "job", "b": "job", "c": "other", "d": "other"}
    harness = await started(of_job(name, completions=2, job=job) for name, job in parts.items())
    await ended(harness, a="Succeeded", b="Failed", c="Succeeded", d="Failed")
    await come(harness, of_job("e", completions=2, second=20), of_job("f", completions=2, second=21, job="other"))
    assert harness.annotations("pair")[MESSAGE] == "waiting for its pods: member 2 of 4"


def run(number: int, *names: str, completions: int = 3) -> list[JSON]:
    """Pods of a Job of the same template, which is a whole gang."""
    of = f"run-{number}"
    return [of_job(name, second=20 * number, completions=completions, size="3", job=of) for name in names]


async def two_runs(*, cpu: str = "4", second: int = 3) -> Harness:
    """A Job that runs, and so many pods of a second one that names the same gang."""
    world = await Harness(pods=run(1, "a1", "a2", "a3"), queues=[queue(cpu=cpu)]).settled()
    for one in world.client.pods.values():
        one["status"]["phase"], one["spec"]["nodeName"] = "Running", "n"
    await come(world, *run(2, *[f"b{number}" for number in range(second)]))
    return world


@pytest.mark.parametrize("restarted", [False, True])
@cases("cpu", ("no room for both", "4"), ("room for both", "9"))
async def test_a_second_job_is_no_growth_of_the_first(*, cpu: str, restarted: bool) -> None:
    """It waits as a whole until the first has ended, and then starts as a whole."""
    world = await two_runs(cpu=cpu)
    if restarted:
        world.restart()
        await world.settle()
    assert world.open_pods() == ["a1", "a2", "a3"]
    why = "another Job of the same gang waits until it has ended (b0, b1, b2): give each Job a gang of its own"
    assert world.annotations("pair")[MESSAGE] == f'cpu 3 and memory 3Gi of queue "q"; {why}'
    waits = 'the PodGroup "pair" belongs to Pod "a1"; this workload waits until the other is gone; rename one of them'
    told = [(event["regarding"]["name"], event["note"]) for event in world.events_on("Pod")]
    assert ("b0", waits) in told
    await ended(world, a1="Succeeded", a2="Succeeded")
    await come(world)
    assert "b0" not in world.open_pods()
    await ended(world, a3="Succeeded")
    await come(world)
    assert {"b0", "b1", "b2"} <= set(world.open_pods())


async def test_a_second_job_that_lacks_pods_starts_no_part_when_the_first_has_ended() -> None:
    world = await two_runs(second=2)
    await ended(world, a1="Succeeded", a2="Succeeded", a3="Succeeded")
    await come(world)
    assert world.open_pods() == ["a1", "a2", "a3"]
    assert world.annotations("pair")[MESSAGE] == "waiting for its pods: member 2 of 3"
    await come(world, *run(2, "b2"))
    assert len(world.open_pods()) == 6


async def test_a_lost_pod_of_the_first_job_is_replaced_while_a_second_one_waits() -> None:
    world = await two_runs()
    await ended(world, a2="Failed")
    await come(world, *run(1, "a4"))
    assert world.open_pods() == ["a1", "a2", "a3", "a4"]


async def test_of_two_jobs_that_wait_one_starts_and_no_part_of_the_other() -> None:
    world = await Harness(
        pods=[*run(2, "a1", "a2", "a3"), *run(1, "b1", "b2", "b3")], queues=[queue(cpu="1")]
    ).settled()
    assert world.open_pods() == []
    world.set_queue(queue(cpu="5"))
    await world.settle()
    assert world.open_pods() == ["b1", "b2", "b3"], "the older one"
