"""What the webhook does when it cannot know whose a pod is: one read, with an end; then it says so, and no pod is made.

A member that passed ungated could never be gated afterwards, and its gang would start in part. docs/limits.md has
the cases.
"""

import asyncio
import json
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest

from hack.testbed import Testbed, wait_for
from hack.testbed.api import Api
from hack.testbed.muster import MusterInstall
from muster.gangs.intent import Defaults
from muster.kube.config import Connection
from muster.kube.errors import ApiError
from muster.model.names import GATE, QUEUE_LABEL
from muster.model.resource import CLUSTER_ROLE_BINDINGS, JOBS, MUTATING_WEBHOOKS, PODS, QUEUES
from tests.support.cases import cases
from tests.support.cluster.desk import PATIENCE, Desk, Manifest
from tests.support.faults.apiserver import Answer, FaultyApiserver, eventually, failure, hang, only, reset
from tests.support.faults.loop_clock import LoopClock
from tests.support.manifests.applied import queue, ray_cluster
from tests.support.manifests.owner_chains import member
from webhook.reviews.cluster_cache import ClusterCache
from webhook.reviews.cluster_reader import ClusterReader
from webhook.reviews.codec import AdmissionRequest, decode_review
from webhook.reviews.pods import review_pod
from webhook.server.limits import Limits, ReviewClass

pytestmark = pytest.mark.part("processes")

_WORKER = {"ray.io/cluster": "c", "ray.io/group": "worker", "ray.io/node-type": "worker"}
# For one read; it passes where a test has it pass, and else never.
_READ_SECONDS = 600.0


@pytest.fixture
def cluster(desk: Desk) -> Iterator[Manifest]:
    """A RayCluster of a gang."""
    desk.create(queue(desk.namespace, cpu="8"))
    yield desk.create(ray_cluster("c").label(QUEUE_LABEL, desk.namespace).workers(2).manifest())
    desk.delete(QUEUES, desk.namespace)


def _request(pod: Manifest, namespace: str) -> AdmissionRequest:
    kind = {"group": "", "version": "v1", "kind": "Pod"}
    asked = {"uid": "u", "kind": kind, "operation": "CREATE", "namespace": namespace, "object": pod}
    review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": asked}
    return decode_review(json.dumps(review).encode())


@asynccontextmanager
async def _knowing(bare: Testbed) -> AsyncIterator[tuple[FaultyApiserver, ClusterReader]]:
    """What a webhook knows whose watches have shown nothing yet, and the way by which it asks."""

    async def login(_: bool) -> str:
        return f"Bearer {bare.admin_token}"

    async with (
        FaultyApiserver.in_front_of(bare) as server,
        server.client(Connection(server.url, login=login)) as client,
    ):
        cache = ClusterCache(client, Defaults(), _READ_SECONDS)
        yield server, ClusterReader(cache, ReviewClass(Limits()).slot(large=False, seconds=600))


async def test_pod_that_is_quicker_than_the_watch_costs_one_read_of_each(
    bare: Testbed, desk: Desk, cluster: Manifest
) -> None:
    """Nothing was ever watched here: the namespace and the owner are read, each once, and the pod is a member."""
    async with _knowing(bare) as (server, knowledge):
        answer = await review_pod(_request(member(cluster, _WORKER), desk.namespace), knowledge)
        assert {"op": "add", "path": "/spec/schedulingGates", "value": [{"name": GATE}]} in answer.patch
        assert [request.path for request in server.seen("GET")] == [
            f"/api/v1/namespaces/{desk.namespace}",
            f"/apis/ray.io/v1/namespaces/{desk.namespace}/rayclusters/c",
        ]


@cases(
    "fault",
    ("the apiserver does not answer", hang),
    ("the connection breaks", reset),
    ("the apiserver is broken", failure(500, "InternalError")),
    ("a right is missing", failure(403, "Forbidden")),
)
async def test_owner_that_cannot_be_read_is_no_answer_when_the_time_for_it_is_up(
    bare: Testbed, desk: Desk, cluster: Manifest, fault: Answer
) -> None:
    """The server makes a 503 of it, and the failure policy decides."""
    path = f"/apis/ray.io/v1/namespaces/{desk.namespace}/rayclusters/c"
    request = _request(member(cluster, _WORKER), desk.namespace)
    async with _knowing(bare) as (server, knowledge):
        server.on("GET", only(path, fault, server.forward))
        clock = LoopClock()
        asking = asyncio.create_task(review_pod(request, knowledge))
        await eventually(lambda: any(one.path == path for one in server.seen("GET")), PATIENCE)
        clock.forward(_READ_SECONDS)
        # A small part of that, which is no more than the turns of the loop need.
        await asyncio.wait({asking}, timeout=_READ_SECONDS / 10)
        assert asking.done()
        with pytest.raises(ApiError):
            await asking


async def test_dry_run_reads_as_the_real_thing_and_writes_nothing(bare: Testbed, desk: Desk, cluster: Manifest) -> None:
    """The same answer; what it asked the apiserver was read only."""
    async with _knowing(bare) as (server, knowledge):
        real, dry = (_request(member(cluster, _WORKER), desk.namespace) for _ in range(2))
        answers = [await review_pod(one, knowledge) for one in (dry, real)]
        assert answers[0] == answers[1]
        assert {request.kind for request in server.requests} == {"GET"}


@pytest.fixture
def without_rights(calls: Api, webhook: MusterInstall) -> Iterator[None]:
    """The webhook's rights in the whole cluster are taken away, while it runs."""
    path = CLUSTER_ROLE_BINDINGS.path(name=f"{webhook.release}-webhook")
    binding = calls.done("GET", path)
    calls.done("DELETE", path)
    account = f"system:serviceaccount:{webhook.namespace}:{webhook.release}-webhook"

    asked = {"verb": "get", "group": JOBS.group, "resource": JOBS.plural}
    review = {"spec": {"user": account, "resourceAttributes": asked}}

    def may() -> bool:
        return bool(calls.create("/apis/authorization.k8s.io/v1/subjectaccessreviews", review)["status"]["allowed"])

    wait_for("the rights to be gone", lambda: not may(), PATIENCE)
    yield
    binding["metadata"] = {"name": binding["metadata"]["name"], "labels": binding["metadata"]["labels"]}
    calls.done("POST", CLUSTER_ROLE_BINDINGS.path(), binding)
    wait_for("the rights to be back", may, PATIENCE)


@pytest.mark.usefixtures("without_rights")
def test_pod_is_refused_and_not_let_through_while_a_right_is_missing(desk: Desk) -> None:
    """Its Job is read directly, and cannot be."""
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "none"}]}}
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "set-work-0"}, "spec": {"template": template}}
    labels = {"jobset.sigs.k8s.io/jobset-name": "set", "jobset.sigs.k8s.io/replicatedjob-name": "work"}
    answer = desk.ask(member(desk.create(job), labels))
    assert 'failed calling webhook "jobset.pods.muster.dev"' in answer.message
    # The words that the apiserver has for a 503.
    assert "the server is currently unable to handle the request" in answer.message


@pytest.mark.usefixtures("without_rights")
def test_replica_that_may_not_list_what_it_needs_never_becomes_ready(webhook: MusterInstall) -> None:
    """It says which kind it is; the replicas that were there before go on."""
    process = webhook.start_webhook()

    def unready() -> str:
        try:
            with urllib.request.urlopen(webhook.url(process, "/readyz"), timeout=60) as response:  # noqa: S310 - loopback
                return f"ready: {response.read().decode()}"
        except urllib.error.HTTPError as error:
            with error:
                return error.read().decode()

    try:
        wait_for("the replica to say what it lacks", lambda: "rayclusters.ray.io" in unready(), PATIENCE)
        wait_for(
            "its log to say why",
            lambda: "rayclusters.ray.io: 403 Forbidden" in process.log.read_text(),
            PATIENCE,
        )
        assert not unready().startswith("ready")
    finally:
        webhook.webhooks.remove(process)
        process.stop()


@pytest.fixture
def ignoring(calls: Api, webhook: MusterInstall) -> Iterator[None]:
    """`webhook.failurePolicy: Ignore`, for pods."""
    path = MUTATING_WEBHOOKS.path(name=webhook.release)

    def all_to(policy: str) -> None:
        names = [one["name"] for one in calls.done("GET", path)["webhooks"]]
        wanted = [{"name": name, "failurePolicy": policy} for name in names]
        calls.done("PATCH", path, {"webhooks": wanted}, patch="strategic-merge")

    all_to("Ignore")
    yield
    all_to("Fail")


@pytest.mark.usefixtures("ignoring")
def test_with_ignore_a_gang_of_which_a_part_slipped_by_is_left_alone_as_a_whole(
    calls: Api, webhook: MusterInstall, desk: Desk, cluster: Manifest
) -> None:
    """Its next members pass untouched, too, until none of those that slipped by is left."""
    webhook.stop_webhooks()

    def held(pod: Manifest) -> bool:
        return bool(pod["spec"].get("schedulingGates"))

    def ask() -> Manifest:
        return calls("POST", f"{PODS.path(desk.namespace)}?dryRun=All", member(cluster, _WORKER)).body

    wait_for("failures to be ignored", lambda: ask()["kind"] == "Pod", PATIENCE)
    slipped = desk.create(member(cluster, _WORKER))
    assert not held(slipped)
    webhook.start_webhook()
    webhook.wait_ready(PATIENCE)
    beside = desk.create(member(cluster, _WORKER))
    assert not held(beside)
    for pod in (slipped, beside):
        calls.done("DELETE", PODS.path(desk.namespace, pod["metadata"]["name"]), {"gracePeriodSeconds": 0})
    wait_for("the webhook to see them go", lambda: held(ask()), PATIENCE)
