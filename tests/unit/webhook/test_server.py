"""The HTTP side: what cannot be decided is an error, so that the failure policy of the configuration decides."""

from __future__ import annotations

import asyncio
import io
from typing import TYPE_CHECKING

import pytest
from aiohttp.test_utils import TestClient, TestServer

from muster.kube.errors import Unreachable
from tests.unit.builders import DEFAULTS, JSON, as_json, pod, ray_cluster
from tests.unit.webhook.reviews import Reader, knowing, review
from webhook.server import make_app

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from aiohttp import web

    Http = TestClient[web.Request, web.Application]

OWNER = {"apiVersion": "ray.io/v1", "kind": "RayCluster", "name": "demo", "uid": "uid-demo", "controller": True}
MEMBER = pod("", owner=OWNER, labels={"ray.io/cluster": "demo", "ray.io/group": "workers"}, schedulerName="")


class Silent(Reader):
    """An apiserver that never answers."""

    async def get(self, *_: object, **__: object) -> bytes:
        """Wait for ever."""
        await asyncio.Event().wait()
        return b""


@pytest.fixture
async def reader() -> Reader:
    return Reader()


@pytest.fixture
async def http(reader: Reader) -> AsyncIterator[Http]:
    async with TestClient(TestServer(make_app(knowing(reader), DEFAULTS))) as client:
        yield client


async def test_a_review_is_answered_with_a_review(http: Http, reader: Reader) -> None:
    reader.objects["rayclusters/demo"] = ray_cluster()
    answer = await http.post("/mutate/pods?timeout=5s", data=as_json(review(MEMBER)))
    assert (answer.status, answer.content_type) == (200, "application/json")
    response = (await answer.json())["response"]
    assert (response["uid"], response["allowed"]) == ("705ab4f5-6393-11e8-b7cc-42010a800002", True)
    assert response["patchType"] == "JSONPatch"


async def test_a_refusal_is_an_answer_too(http: Http) -> None:
    answer = await http.post("/validate/workloads", data=as_json(review(ray_cluster())))
    assert answer.status == 200
    response = (await answer.json())["response"]
    assert (response["allowed"], response["status"]["reason"]) == (False, "QueueNotFound")


@pytest.mark.parametrize(
    "body",
    [
        pytest.param("no json", id="no JSON"),
        pytest.param(as_json(review(None)), id="no object"),
        pytest.param(as_json(review({"spec": 1})), id="no pod"),
    ],
)
async def test_what_is_no_review_of_a_pod_is_400(http: Http, body: str) -> None:
    answer = await http.post("/mutate/pods", data=body)
    assert (answer.status, answer.content_type) == (400, "text/plain")


async def test_an_apiserver_that_does_not_say_is_503_and_tells_nothing_of_it(http: Http, reader: Reader) -> None:
    reader.objects["rayclusters/demo"] = Unreachable("10.0.0.1 refused")
    answer = await http.post("/mutate/pods", data=as_json(review(MEMBER)))
    assert (answer.status, await answer.text()) == (503, "muster cannot read what it needs from the apiserver\n")


async def test_an_apiserver_that_is_silent_is_504_before_the_caller_gives_up() -> None:
    async with TestClient(TestServer(make_app(knowing(Silent()), DEFAULTS, decision_seconds=0.01))) as client:
        answer = await client.post("/mutate/pods", data=as_json(review(MEMBER)))
        assert answer.status == 504


async def test_two_objects_of_the_largest_size_fit(http: Http) -> None:
    large: JSON = ray_cluster(labels={}, annotations={"a": "x" * (3 * 2**20 - 4096)})
    body = as_json(review(large, old=large, operation="UPDATE"))
    answer = await http.post("/validate/workloads", data=io.BytesIO(body.encode()))
    assert answer.status == 200


async def test_a_body_beyond_anything_that_the_apiserver_takes_is_413(http: Http) -> None:
    answer = await http.post("/validate/workloads", data=io.BytesIO(b" " * (7 * 2**20 + 1)))
    assert answer.status == 413


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("GET", "/mutate/pods", 405), ("POST", "/", 404), ("POST", "/mutate/pods/", 404)],
)
async def test_nothing_else_is_served(http: Http, method: str, path: str, status: int) -> None:
    assert (await http.request(method, path)).status == status
