"""Who may use a queue, at admission: to all others it does not exist, in the very words."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from muster.names import GATE_MODE, NAMESPACE_SELECTOR
from tests.support.manifests.observed import DEFAULTS, JSON, namespace, pod, queue, ray_cluster, ray_owner, template
from tests.support.webhook.admission_reviews import answered, knowing, patch_of, request
from webhook.pods import review_pod
from webhook.workloads import review_workload

if TYPE_CHECKING:
    from webhook.knowledge import Knowledge

TEAMS = [namespace(labels={"team": "web"})]
KEPT = queue(cpu="4", state="Closed", annotations={NAMESPACE_SELECTOR: "team=ml", GATE_MODE: "off"})
OWNER = ray_owner(controller=True)
VOLCANO_JOB: JSON = {
    "apiVersion": "batch.volcano.sh/v1alpha1",
    "kind": "Job",
    "metadata": {"name": "job", "namespace": "team"},
    "spec": {"queue": "q", "tasks": [{"name": "worker", "replicas": 1, "template": template("1")}]},
}
SAID = 'queue "q" does not exist; name an existing queue or create it first'


def worlds(*workloads: JSON) -> list[Knowledge]:
    """One without the queue, and one in which it is kept for others."""
    return [knowing(queues=queues, namespaces=TEAMS, workloads=workloads) for queues in ([], [KEPT])]


@pytest.mark.parametrize("manifest", [ray_cluster(), VOLCANO_JOB], ids=["RayCluster", "Volcano's Job"])
async def test_a_forbidden_queue_is_refused_as_a_missing_one(manifest: JSON) -> None:
    missing, forbidden = [
        json.dumps(answered(await review_workload(request(manifest), world, DEFAULTS))) for world in worlds()
    ]
    assert missing == forbidden
    assert json.dumps(SAID)[1:-1] in missing


async def test_its_own_namespaces_are_judged_as_everywhere() -> None:
    knowledge = knowing(queues=[KEPT], namespaces=[namespace(labels={"team": "ml"})])
    answer = answered(await review_workload(request(ray_cluster()), knowledge, DEFAULTS))
    assert 'queue "q" is Closed' in answer["status"]["message"]


async def test_what_named_it_before_stays_editable() -> None:
    """The workload may run: it was let in before the queue was closed to it."""
    _, knowledge = worlds()
    asked = request(ray_cluster(suspend=True), old=ray_cluster(), operation="UPDATE")
    answer = answered(await review_workload(asked, knowledge, DEFAULTS))
    assert answer["allowed"]
    assert SAID in answer["warnings"][0]


async def test_pods_for_a_forbidden_queue_are_held_whatever_its_mode() -> None:
    """As for a missing one; opened, Volcano would place them there."""
    labels = {"ray.io/cluster": "demo", "ray.io/group": "headgroup"}
    head = pod("", owner=OWNER, labels=labels, schedulerName="default-scheduler")
    patches = [patch_of(await review_pod(request(head), world, DEFAULTS)) for world in worlds(ray_cluster())]
    assert patches[0] == patches[1]
    assert {"op": "add", "path": "/spec/schedulingGates", "value": [{"name": "muster.dev/gang"}]} in patches[0]
