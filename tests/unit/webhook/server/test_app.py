"""The HTTP side: what cannot be decided is an error, so that the failure policy of the configuration decides."""

import asyncio
import io
import json
import logging
from collections.abc import AsyncIterator

import pytest
from aiohttp import web
from aiohttp.test_utils import RawTestServer, TestClient
from prometheus_client import CollectorRegistry

from hack.testbed.waiting import PATIENCE
from muster.kube.errors import ApiError, Unreachable
from muster.process.logs import FORMATS
from tests.support.cases import cases
from tests.support.faults.loop_clock import LoopClock
from tests.support.manifests.observed import JSON, as_json, pod, ray_cluster, ray_owner
from tests.support.webhook.admission_reviews import Reader, knowing, review
from webhook.metrics import ReviewMetrics
from webhook.server.app import make_handler
from webhook.server.limits import Limits, ReviewLimits

Http = TestClient[web.BaseRequest, None]

OWNER = ray_owner(controller=True)
MEMBER = pod("", owner=OWNER, labels={"ray.io/cluster": "demo", "ray.io/group": "workers"}, schedulerName="")


class Silent(Reader):
    """An apiserver that never answers; `asked` is released once for every read."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = asyncio.Semaphore(0)

    async def get(self, *_: object, **__: object) -> bytes:
        """Wait for ever."""
        self.asked.release()
        await asyncio.Event().wait()
        return b""


@pytest.fixture
async def reader() -> Reader:
    return Reader()


@pytest.fixture
def registry() -> CollectorRegistry:
    return CollectorRegistry()


def serving(reader: Reader, registry: CollectorRegistry, limits: Limits) -> Http:
    """A client of a server, both started by `async with`; its content type is JSON unless it says otherwise."""
    handler = make_handler(knowing(reader).cache, ReviewMetrics(registry), ReviewLimits(limits))
    return TestClient(RawTestServer(handler), headers={"Content-Type": "application/json"})


@pytest.fixture
async def http(reader: Reader, registry: CollectorRegistry) -> AsyncIterator[Http]:
    async with serving(reader, registry, Limits(decision_seconds=600)) as client:
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


@cases(
    "body",
    ("no JSON", "no json"),
    ("no object", as_json(review(None))),
    ("no pod", as_json(review({"spec": 1}))),
    ("another kind", as_json(review(ray_cluster()))),
    ("another version", as_json(review(MEMBER) | {"apiVersion": "admission.k8s.io/v1beta1"})),
    ("another review", as_json(review(MEMBER) | {"kind": "x" * 2**20})),
    ("deep", "[" * 100_000),
    ("deep pod", as_json(review({"metadata": "deep"})).replace('"deep"', "[" * 10**5 + "]" * 10**5)),
    ("half a character", '{"apiVersion": "\\ud800"}'),
)
async def test_what_is_no_review_of_a_pod_is_400(http: Http, body: str) -> None:
    answer = await http.post("/mutate/pods", data=io.BytesIO(body.encode()))
    assert (answer.status, answer.content_type) == (400, "text/plain")
    assert len(await answer.text()) < 300


async def test_an_apiserver_that_does_not_say_is_503_and_tells_nothing_of_it(http: Http, reader: Reader) -> None:
    reader.objects["rayclusters/demo"] = Unreachable("10.0.0.1 refused")
    answer = await http.post("/mutate/pods", data=as_json(review(MEMBER)))
    assert (answer.status, await answer.text()) == (503, "muster cannot read what it needs from the apiserver\n")
    assert answer.headers["Retry-After"] == "1"


async def test_a_right_that_is_missing_is_503_for_good(http: Http, reader: Reader) -> None:
    reader.objects["rayclusters/demo"] = ApiError(403, "Forbidden", "no")
    answer = await http.post("/mutate/pods", data=as_json(review(MEMBER)))
    assert (answer.status, "Retry-After" in answer.headers) == (503, False)


async def late(registry: CollectorRegistry, limits: Limits, granted: str = "") -> str:
    """Ask an apiserver that is silent, let 100 s pass when it has been asked, and give the body of the 504."""
    clock, silent = LoopClock(), Silent()
    async with serving(silent, registry, limits) as client:
        path = f"/mutate/pods?timeout={granted}" if granted else "/mutate/pods"
        asking = asyncio.create_task(client.post(path, data=as_json(review(MEMBER))))
        await silent.asked.acquire()
        clock.forward(100)
        answer = await asking
        assert answer.status == 504
        return await answer.text()


async def test_an_apiserver_that_is_silent_is_504_before_the_caller_gives_up(registry: CollectorRegistry) -> None:
    assert await late(registry, Limits(decision_seconds=60)) == "muster did not decide within 60 s\n"
    assert registry.get_sample_value("muster_webhook_errors_total", {"webhook": "pods", "code": "504"}) == 1


@pytest.mark.parametrize("granted", ["60000ms", "1m", "0m60.0s", "60000000us", "60000000000ns"])
async def test_what_the_apiserver_grants_is_a_bound_too(registry: CollectorRegistry, granted: str) -> None:
    """It sends less than its configuration says when other webhooks have used up its patience."""
    assert await late(registry, Limits(decision_seconds=90), granted) == "muster did not decide within 48 s\n"


@pytest.mark.parametrize("granted", ["1m30s", "1h", "", "soon", "-1s", "1" * 100 + "s", "10"])
async def test_no_more_time_is_taken_than_configured(registry: CollectorRegistry, granted: str) -> None:
    assert await late(registry, Limits(decision_seconds=60), granted) == "muster did not decide within 60 s\n"


async def test_two_objects_of_the_largest_size_fit(http: Http) -> None:
    large: JSON = ray_cluster(labels={}, annotations={"a": "x" * (3 * 2**20 - 4096)})
    body = as_json(review(large, old=large, operation="UPDATE"))
    answer = await http.post("/validate/workloads", data=io.BytesIO(body.encode()))
    assert answer.status == 200


async def test_a_body_beyond_anything_that_the_apiserver_takes_is_413(http: Http) -> None:
    answer = await http.post("/validate/workloads", data=io.BytesIO(b" " * (7 * 2**20 + 1)))
    assert answer.status == 413


@cases(
    "headers",
    ("not JSON", {"Content-Type": "text/plain"}),
    ("protobuf", {"Content-Type": "application/vnd.kubernetes.protobuf"}),
    ("compressed", {"Content-Encoding": "gzip"}),
)
async def test_what_does_not_say_that_it_is_plain_json_is_415(http: Http, headers: dict[str, str]) -> None:
    answer = await http.post("/mutate/pods", data=as_json(review(MEMBER)).encode(), headers=headers)
    assert answer.status == 415


async def test_a_body_of_unknown_length_is_bounded_as_well(http: Http) -> None:
    async def endless() -> AsyncIterator[bytes]:
        while True:
            yield b" " * 2**16

    answer = await http.post("/mutate/pods", data=endless())
    assert (answer.status, answer.headers["Connection"]) == (413, "close")


async def test_reviews_beyond_the_bound_are_told_at_once_to_come_again(registry: CollectorRegistry) -> None:
    """The apiserver does so by itself after that second."""
    silent, body = Silent(), as_json(review(MEMBER))
    async with serving(silent, registry, Limits(decision_seconds=300, reviews=2)) as client, asyncio.timeout(PATIENCE):
        waiting = [asyncio.create_task(client.post("/mutate/pods", data=body)) for _ in range(2)]
        for _ in waiting:
            await silent.asked.acquire()
        refused = await client.post("/mutate/pods", data=body)
        assert (refused.status, refused.headers["Retry-After"]) == (429, "1")
        assert await refused.text() == "too many reviews at once\n"
        for task in waiting:
            task.cancel()


async def test_a_flood_of_refusals_that_come_again_fills_no_log(
    registry: CollectorRegistry, caplog: pytest.LogCaptureFixture
) -> None:
    """The metrics count them; what is wrong for good is a warning, and twenty of it are one line."""
    caplog.set_level(logging.DEBUG, "webhook.server.app")
    async with serving(Reader(), registry, Limits(decision_seconds=300, reviews=0)) as client:
        assert (await client.post("/mutate/pods", data=as_json(review(MEMBER)))).status == 429
    async with serving(Reader(), CollectorRegistry(), Limits(decision_seconds=300)) as client:
        for _ in range(20):
            assert (await client.post("/mutate/pods", data="{")).status == 400
    told = [(one.levelname, one.getMessage()[:24]) for one in caplog.records if one.name == "webhook.server.app"]
    assert told == [("DEBUG", "request refused with 429"), ("WARNING", "request refused with 400")]


async def test_a_failure_that_nobody_foresaw_is_500_and_ends_nothing(
    http: Http, reader: Reader, caplog: pytest.LogCaptureFixture, registry: CollectorRegistry
) -> None:
    reader.objects["rayclusters/demo"] = ZeroDivisionError("secret words")
    answer = await http.post("/mutate/pods", data=as_json(review(MEMBER)))
    assert (answer.status, await answer.text()) == (500, "internal error; see the log of muster-webhook\n")
    assert "a review failed" in caplog.text
    assert registry.get_sample_value("muster_webhook_errors_total", {"webhook": "pods", "code": "500"}) == 1
    reader.objects["rayclusters/demo"] = ray_cluster()
    assert (await http.post("/mutate/pods", data=as_json(review(MEMBER)))).status == 200


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("GET", "/mutate/pods", 405), ("POST", "/", 404), ("POST", "/mutate/pods/", 404)],
)
async def test_nothing_else_is_served(http: Http, method: str, path: str, status: int) -> None:
    assert (await http.request(method, path)).status == status


async def test_every_answer_is_counted_by_what_it_says(http: Http, reader: Reader, registry: CollectorRegistry) -> None:
    reader.objects["rayclusters/demo"] = ray_cluster()
    for _ in range(3):
        await http.post("/mutate/pods", data=as_json(review(MEMBER)))
    await http.post("/validate/workloads", data=as_json(review(ray_cluster())))
    await http.post("/validate/workloads", data=io.BytesIO(b" " * (7 * 2**20 + 1)))

    def value(name: str, **labels: str) -> float | None:
        return registry.get_sample_value(f"muster_webhook_{name}", labels)

    assert value("reviews_total", webhook="pods", allowed="true") == 3
    assert value("reviews_total", webhook="workloads", allowed="false") == 1
    assert value("reviews_total", webhook="workloads", allowed="true") == 0
    assert value("refusals_total", reason="QueueNotFound") == 1
    assert value("refusals_total", reason="QueueClosed") == 0
    assert value("warnings_total", reason="NoPods") == 0
    assert value("errors_total", webhook="workloads", code="413") == 1
    assert value("review_duration_seconds_count", webhook="pods") == 3
    assert value("review_duration_seconds_count", webhook="workloads") == 2


async def test_each_line_about_a_review_says_which_and_none_holds_its_body(http: Http, reader: Reader) -> None:
    written = io.StringIO()
    handler = logging.StreamHandler(written)
    handler.setFormatter(FORMATS["json"]())
    root = logging.getLogger()
    before = root.level
    root.addHandler(handler)
    root.setLevel("DEBUG")
    try:
        reader.objects["rayclusters/demo"] = ray_cluster()
        member = MEMBER | {"spec": {"containers": [{"name": "c", "env": [{"name": "TOKEN", "value": "s3cret"}]}]}}
        await http.post("/mutate/pods", data=as_json(review(member)))
        await http.post("/validate/workloads", data=as_json(review(ray_cluster(annotations={"a": "s3cret"}))))
        reader.objects["rayclusters/demo"] = Unreachable("refused")
        await http.post("/mutate/pods", data=as_json(review(member)))
    finally:
        root.removeHandler(handler)
        root.setLevel(before)
    lines = [json.loads(line) for line in written.getvalue().splitlines()]
    ours = [line for line in lines if line["logger"].startswith("webhook")]
    assert len(ours) >= 3
    assert {line.get("uid") for line in ours} == {"705ab4f5-6393-11e8-b7cc-42010a800002"}
    assert "s3cret" not in written.getvalue()
