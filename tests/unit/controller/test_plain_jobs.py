"""Plain gangs of Jobs: what a Job has completed it does not make again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from muster.model.names import GANG_COMPLETIONS, GANG_SIZE, MESSAGE, STATE
from muster.queueing.ledger import GangKey
from tests.support.controller.recording_client import Harness
from tests.support.manifests.observed import JSON, NAMESPACE, pod, queue, template

if TYPE_CHECKING:
    from collections.abc import Iterable

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
    harness = Harness(pods=list(pods), queues=[queue(cpu="9")])
    await harness.settle()
    for one in harness.client.pods.values():
        one["status"]["phase"] = "Running"
        one["spec"]["nodeName"] = "n"
    harness.watch()
    await harness.settle()
    assert harness.open_pods() == sorted(harness.client.pods)
    return harness


async def ended(harness: Harness, **phases: str) -> None:
    for name, phase in phases.items():
        harness.client.pods[name]["status"]["phase"] = phase
    harness.watch()
    await harness.settle()


async def come(harness: Harness, *pods: JSON) -> None:
    harness.client.pods |= {one["metadata"]["name"]: one for one in pods}
    harness.watch()
    await harness.settle()
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


@pytest.mark.parametrize(
    ("done", "later"),
    [
        pytest.param("Failed", of_job("e", second=20), id="what failed is made again"),
        pytest.param("Succeeded", of_job("e", second=20, job="next"), id="a former Job's pods count for nothing"),
        pytest.param("Succeeded", of_job("e", second=20, completions=None), id="nobody knows how many are to succeed"),
        pytest.param("Succeeded", of_job("e", second=20, completions=2), id="more have succeeded than it wants"),
    ],
)
async def test_no_part_of_a_gang_starts_for_what_has_ended(done: str, later: JSON) -> None:
    harness = await started(of_job(name) for name in "abcd")
    await ended(harness, a=done, b=done, c=done, d="Failed")
    await come(harness, later)
    assert "e" not in harness.open_pods()
    assert harness.annotations("pair")[MESSAGE] == "waiting for its pods: member 1 of 4"


async def test_pods_of_two_jobs_are_awaited_as_their_gang_says() -> None:
    harness = await started(of_job(name) for name in "abcd")
    await ended(harness, a="Succeeded", b="Succeeded", c="Succeeded", d="Failed")
    await come(harness, of_job("e", second=20), of_job("f", second=21, job="other"))
    assert harness.annotations("pair")[MESSAGE] == "waiting for its pods: member 2 of 4"
