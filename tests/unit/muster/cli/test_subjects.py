"""Which pods are taken for those of a workload about which a user asks."""

import pytest
from aiohttp import web

from muster.cli.explain.subjects import events_about, find
from muster.cli.names import ObjectName
from muster.cli.snapshot import ClusterSnapshot
from muster.model.names import GANG, GANG_SIZE
from muster.model.objects import ObjectMeta
from tests.support.faults.apiserver import FaultyApiserver, failure, listing, only, reply
from tests.support.manifests.observed import JSON, template

SPEAKS: JSON = {"labels": {GANG: "pair"}, "annotations": {GANG_SIZE: "1"}}
KINDS = {
    "job": ("Job", "apis/batch/v1"),
    "statefulset": ("StatefulSet", "apis/apps/v1"),
    "pod": ("Pod", "api/v1"),
}


def meta(name: str, **rest: object) -> JSON:
    return {"name": name, "namespace": "team", "uid": f"uid-{name}", **rest}


async def test_events_are_sorted_by_their_times_and_not_by_their_text() -> None:
    """As text `36.624595Z` sorts before `36Z`, which was earlier."""
    written: list[JSON] = [
        {"metadata": {"name": time}, "eventTime": f"2026-11-25T19:30:{time}Z", "reason": time}
        for time in ("36.624595", "36")
    ]
    async with FaultyApiserver.serving() as server, server.client() as client:
        server.on("LIST", reply(listing(1, *written)))
        found = await events_about(client, ObjectMeta(name="demo", namespace="team", uid="u"), ClusterSnapshot())
    assert [one.reason for one in found] == ["36", "36.624595"]


@pytest.mark.parametrize("word", KINDS)
async def test_a_plain_gang_may_have_another_name_than_what_makes_its_pods(word: str) -> None:
    """Its pods are found by the gang's name, which stands in the template."""
    kind, group = KINDS[word]
    owner = {"apiVersion": group.partition("/")[2], "kind": kind, "name": "train", "uid": "uid-train"}
    asked = {"metadata": meta("train"), "spec": {"template": {**template("1"), "metadata": SPEAKS}}}
    pods: list[JSON] = [
        {"metadata": meta(name, **SPEAKS, ownerReferences=[{**owner, "controller": True}])} for name in ("a", "b")
    ]
    if kind == "Pod":
        asked = {"metadata": meta("train", **SPEAKS), "spec": template("1")["spec"]}
        pods = [asked]

    async def selected(request: web.Request) -> web.StreamResponse:
        found = pods if request.query.get("labelSelector") == f"{GANG}=pair" else []
        return await reply(listing(1, *found))(request)

    async with FaultyApiserver.serving() as server, server.client() as client:
        where = f"/{group}/namespaces/team/{word}s/train"
        server.on("GET", only(where, reply(asked), failure(404, "NotFound")))
        server.on("LIST", only("/api/v1/namespaces/team/pods", selected, reply(listing(1))))
        (subject,) = await find(client, ObjectName(word, "train"), "team", ClusterSnapshot())
    assert [pod.metadata.name for pod in subject.pods] == [pod["metadata"]["name"] for pod in pods]


async def test_what_a_workload_has_made_is_told_as_it_was_listed() -> None:
    """One of two clusters that is deleted a moment later hides the other one no longer."""
    owner = {"apiVersion": "ray.io/v1", "kind": "RayService", "name": "demo", "uid": "uid-demo", "controller": True}
    clusters = [{"metadata": meta(name, ownerReferences=[owner])} for name in ("old", "new")]

    async def gets(request: web.Request) -> web.StreamResponse:
        answer = reply({"metadata": meta("demo")}) if request.path.endswith("/demo") else failure(404)
        return await answer(request)

    async def lists(request: web.Request) -> web.StreamResponse:
        return await reply(listing(1, *(clusters if request.path.endswith("/rayclusters") else ())))(request)

    async with FaultyApiserver.serving() as server, server.client() as client:
        server.on("GET", gets)
        server.on("LIST", lists)
        found = await find(client, ObjectName("rayservice", "demo"), "team", ClusterSnapshot())
    assert [one.decoded.metadata.name for one in found] == ["old", "new"]
