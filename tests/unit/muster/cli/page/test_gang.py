"""The page of one gang."""

import html
import re

import pytest

from muster.cli.page import gang
from muster.cluster.cluster import Cluster
from muster.model.names import HOLD
from tests.support.cases import cases
from tests.support.cli.page import Served, served
from tests.support.controller.stores import filled
from tests.support.faults.apiserver import failure, hang, listing, only, reply
from tests.support.manifests.gangs import gangs, limited
from tests.support.manifests.observed import JSON, pod_group, queue, ray_owner

WAITS = "gang?namespace=team&name=ray-wait-pg"
EVENTS = "/apis/events.k8s.io/v1/namespaces/team/events"


def seen(page: str) -> str:
    """What a reader sees, in single blanks."""
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", page)).split())


def cluster(message: str = 'needs cpu 3; queue "q" has cpu 1 free') -> Cluster:
    """A queue of 4 cpu in which one gang runs and another one waits, both of 3 cpu."""
    workloads, pods, groups = gangs(["run", "wait"], state="WaitingForQuota", message=message)
    return filled(workloads=workloads, pods=pods, groups=groups, queues=[queue("root"), limited("q", cpu="4")])


def told(page: Served, *events: JSON, pods: int = 2) -> None:
    """Have the apiserver tell the events of whatever is asked about, and these first pods of the waiting gang."""
    _, all_pods, _ = gangs(["wait"])
    found = [one | {"metadata": one["metadata"] | {"creationTimestamp": "2026-11-24T10:00:01Z"}} for one in all_pods]
    page.apiserver.on("LIST", only(EVENTS, reply(listing(1, *events)), reply(listing(1, *found[:pods]))))


async def test_a_gang_is_told_with_roles_queue_position_and_timeline() -> None:
    said = {
        "eventTime": "2026-11-24T10:00:09.000000Z",
        "reason": "WaitingForQuota",
        "note": "needs cpu 3",
        "reportingController": "muster.dev/controller",
    }
    async with served(cluster()) as page:
        told(page, said)
        status, text, _ = await page.get(WAITS)
        asked = [request.query for request in page.apiserver.seen("LIST")]
    assert status == 200
    text = seen(text)
    assert 'WaitingForQuota : needs cpu 3; queue "q" has cpu 1 free' in text
    assert "RayCluster team/ wait As of" in text
    assert "PodGroup ray-wait-pg, minMember 3 Queue q Priority 0 Scheduler volcano Position 1 of 1 waiting" in text
    assert "Short of cpu 2" in text
    assert "headgroup cpu 1, memory 1Gi 1 1 1 0 1 0" in text
    assert "workers cpu 1, memory 1Gi 2 2 1 1 1 0" in text
    assert "q cpu 4 cpu 3, memory 3Gi cpu 1" in text
    assert "team/ raycluster/ run q cpu 3, memory 3Gi" in text
    assert "2026-11-24 10:00:09 8 seconds later WaitingForQuota : needs cpu 3 (muster)" in text
    assert {"ray.io/cluster=wait"} < {query.get("labelSelector", "") for query in asked}
    assert {"regarding.uid=uid-wait", "regarding.uid=uid-ray-wait-pg"} < {
        query.get("fieldSelector", "") for query in asked
    }


async def test_a_running_gang_of_a_queue_on_hold_says_so() -> None:
    workloads, pods, groups = gangs(["run"], state="Running", message="cpu 3")
    held = queue("q", annotations={HOLD: "true"}, cpu="4")
    async with served(filled(workloads=workloads, pods=pods, groups=groups, queues=[queue("root"), held])) as page:
        told(page)
        _, text, _ = await page.get(WAITS.replace("wait", "run"))
    assert 'On hold queue "q" is on hold (its annotation muster.dev/hold)' in seen(text)


async def test_every_gang_of_the_tables_has_its_page() -> None:
    async with served(cluster()) as page:
        told(page)
        _, board, _ = await page.get()
        links = sorted(set(re.findall(r'href="(gang\?[^"]*)"', board)))
        answers = [(await page.get(html.unescape(link)))[0] for link in links]
    assert [html.unescape(link) for link in links] == [WAITS.replace("wait", "run"), WAITS]
    assert answers == [200, 200]


@pytest.mark.parametrize(
    "asked", ["gang", "gang?name=ray-wait-pg", "gang?namespace=team&name=none", "gang?namespace=a&name=<b>&x"]
)
async def test_an_unknown_gang_is_a_page_that_says_so_and_leads_back(asked: str) -> None:
    async with served(cluster()) as page:
        status, text, _ = await page.get(asked)
        requests = page.apiserver.requests
    assert status == 404
    assert "No such gang" in seen(text)
    assert "it has ended and is deleted, the name is wrong, or you may not read it" in seen(text)
    assert 'href="./"' in text
    assert requests == []


async def test_what_may_not_be_read_is_told_on_this_page_alone() -> None:
    async with served(cluster()) as page:
        told(page)
        page.apiserver.on("LIST", failure(403, "Forbidden"))
        status, text, _ = await page.get(WAITS)
        _, board, _ = await page.get()
    assert status == 200
    assert 'cannot list events.events.k8s.io in "team": they are unknown' in seen(text)
    assert 'cannot list pods in "team": they are unknown' in seen(text)
    assert "cannot list" not in board


@cases("answer", ("refused", failure(410, "Gone")), ("late", hang))
async def test_without_the_apiserver_it_shows_what_the_watches_know(
    answer: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gang, "_PATIENCE", 0.2)
    async with served(cluster()) as page:
        page.apiserver.on("LIST", answer)  # type: ignore[arg-type]
        status, text, _ = await page.get(WAITS)
    assert status == 200
    assert "May be out of date: the events of this gang, and the times of its pods, cannot be read" in seen(text)
    assert "workers cpu 1, memory 1Gi 2 2 2 0 2 0" in seen(text)
    assert "2026-11-21 10:00:00 Created : the workload wait (workload)" in seen(text)


async def test_a_podgroup_without_its_workload_says_so() -> None:
    group = pod_group("ray-left-pg", owner=ray_owner("left"), meta={"creationTimestamp": "2026-11-24T10:00:00Z"})
    async with served(filled(groups=[group], queues=[queue()])) as page:
        told(page)
        status, text, _ = await page.get("gang?namespace=team&name=ray-left-pg")
    assert status == 200
    assert "unknown : no workload of it is there, or none that you may read" in seen(text)
    assert "2026-11-24 10:00:00 PodGroup created : ray-left-pg (PodGroup)" in seen(text)


async def test_a_long_timeline_shows_its_end() -> None:
    said = [
        {"eventTime": f"2026-11-24T10:{n // 60:02}:{n % 60:02}.000000Z", "reason": "Odd", "note": f"number {n}."}
        for n in range(gang.MOMENTS + 50)
    ]
    async with served(cluster()) as page:
        told(page, *said, pods=0)
        _, text, _ = await page.get(WAITS)
    assert text.count("<li>") == gang.MOMENTS
    assert "51 older moments are left out" in seen(text)
    assert f"number {gang.MOMENTS + 49}." in text


async def test_only_so_many_holders_are_named() -> None:
    names = [f"run-{number:03}" for number in range(gang.HOLDERS + 5)]
    workloads, pods, groups = gangs([*names, "wait"])
    crowded = filled(workloads=workloads, pods=pods, groups=groups, queues=[queue("root"), limited("q", cpu="4")])
    async with served(crowded) as page:
        told(page)
        _, text, _ = await page.get(WAITS)
    assert f"{gang.HOLDERS} of {gang.HOLDERS + 5}" in seen(text)
    assert text.count("ray-run-") == gang.HOLDERS
