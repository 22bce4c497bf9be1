"""A pod that asks the webhook itself, without any certificate, in the name of whomever it likes."""

import http.client
import json
import socket
import ssl
from typing import Any

import pytest

from hack.testbed import wait_for
from hack.testbed.api import Api
from hack.testbed.muster import MusterInstall
from muster.model.names import NAMESPACE_SELECTOR, QUEUE_LABEL
from muster.model.resource import POD_GROUPS, PODS, QUEUES
from tests.support.cases import cases
from tests.support.cluster.desk import PATIENCE, Desk, Manifest
from tests.support.cluster.recorder import RAY_CLUSTERS
from tests.support.manifests import applied

pytestmark = pytest.mark.part("processes")

_ADMINISTRATOR = {"username": "kubernetes-admin", "groups": ["system:masters"]}


def _asked(webhook: MusterInstall, calls: Api, manifest: Manifest) -> dict[str, Any]:
    """What the webhook answers to a review of a new RayCluster by an administrator."""
    service = calls.done("GET", f"/api/v1/namespaces/{webhook.namespace}/services/muster-webhook")["spec"]
    request = {
        "uid": "forged",
        "kind": {"group": "ray.io", "version": "v1", "kind": "RayCluster"},
        "resource": {"group": "ray.io", "version": "v1", "resource": "rayclusters"},
        "name": manifest["metadata"]["name"],
        "namespace": manifest["metadata"]["namespace"],
        "operation": "CREATE",
        "userInfo": _ADMINISTRATOR,
        "object": manifest,
    }
    review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
    # Who means harm does not look whose certificate it is.
    context = ssl._create_unverified_context()  # noqa: S323
    connection = http.client.HTTPSConnection(
        service["clusterIP"], service["ports"][0]["port"], timeout=60, context=context
    )
    connection.request("POST", "/validate/workloads", json.dumps(review), {"Content-Type": "application/json"})
    answer = json.loads(connection.getresponse().read())["response"]
    connection.close()
    assert isinstance(answer, dict)
    return answer


def test_who_asks_the_webhook_itself_learns_of_no_queue_and_changes_nothing(
    webhook: MusterInstall, calls: Api, desk: Desk
) -> None:
    """A queue of another's is told from one that does not exist by no word; nothing is made of what was asked about."""
    theirs, open_one = f"{desk.namespace}-theirs", f"{desk.namespace}-open"
    closed = applied.queue(theirs, cpu="8")
    closed["metadata"]["annotations"] = {NAMESPACE_SELECTOR: "team=theirs"}
    desk.create(closed)
    desk.create(applied.queue(open_one, cpu="8"))

    def answer(queue: str) -> dict[str, Any]:
        manifest = applied.ray_cluster("forged").label(QUEUE_LABEL, queue).manifest()
        manifest["metadata"]["namespace"] = desk.namespace
        return _asked(webhook, calls, manifest)

    wait_for("the queues to be known", lambda: answer(open_one)["allowed"], PATIENCE)
    missing = f"{desk.namespace}-there-is-none"
    told = [json.dumps(answer(queue)).replace(queue, "") for queue in (theirs, missing)]
    assert "does not exist" in told[0]
    assert told[0] == told[1]
    assert [*desk.list(RAY_CLUSTERS), *desk.list(POD_GROUPS), *desk.list(PODS)] == []
    desk.delete(QUEUES, theirs, open_one)


@cases("sent", ("half TLS", b"\x16\x03\x01"), ("plain", b"GET / HTTP/1.1\r\n\r\n"), ("nothing", b""))
def test_who_speaks_no_tls_gets_no_answer_and_keeps_nobody_waiting(
    webhook: MusterInstall, calls: Api, desk: Desk, sent: bytes
) -> None:
    service = calls.done("GET", f"/api/v1/namespaces/{webhook.namespace}/services/muster-webhook")["spec"]
    with socket.create_connection((service["clusterIP"], service["ports"][0]["port"]), timeout=60) as rude:
        rude.sendall(sent)
        refused = desk.refused(applied.ray_cluster("a").label(QUEUE_LABEL, "none").manifest())
        assert "does not exist" in refused
