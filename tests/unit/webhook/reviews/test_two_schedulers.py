"""New pods of a workload whose labels name another scheduler than the one that it began with."""

from dataclasses import replace

import jsonpatch

from muster.model.names import MANAGED_BY, SCHEDULER_LABEL
from muster.schedulers import named
from tests.support.cases import cases
from tests.support.manifests.observed import DEFAULTS, JSON, pod, ray_cluster, ray_owner
from tests.support.webhook.admission_reviews import Reader, knowing, patch_of, request
from webhook.reviews.pods import review_pod

BOTH = replace(DEFAULTS, schedulers=named("volcano", "coscheduling"))
OTHER = "scheduler-plugins-scheduler"
NOW = ray_cluster(labels={"volcano.sh/queue-name": "q", SCHEDULER_LABEL: "volcano"})
OWNER = {"apiVersion": "ray.io/v1", "kind": "RayCluster", "name": "demo", "controller": True}


def group(uid: str, manager: str = "muster") -> JSON:
    """A PodGroup of coscheduling for the workload of that UID."""
    return {
        "metadata": {
            "name": "ray-demo-pg",
            "namespace": "team",
            "labels": {MANAGED_BY: manager},
            "ownerReferences": [{**OWNER, "uid": uid}],
        },
        "spec": {"minMember": 3},
    }


@cases(
    "there, scheduler",
    ("it began with the other one", group("uid-demo"), OTHER),
    ("a former workload did", group("uid-former"), "volcano"),
    ("a PodGroup that is not muster's", group("uid-demo", "helm"), "volcano"),
    ("it has not begun", None, "volcano"),
)
async def test_they_get_the_scheduler_with_which_it_began(there: JSON | None, scheduler: str) -> None:
    new = pod(
        "w-0",
        owner=ray_owner(controller=True),
        labels={"ray.io/cluster": "demo", "ray.io/group": "workers"},
        schedulerName="default-scheduler",
    )
    reader = Reader({"podgroups/ray-demo-pg": there} if there else {})
    knowledge = knowing(reader, workloads=[NOW], defaults=BOTH)
    made = jsonpatch.apply_patch(new, patch_of(await review_pod(request(new), knowledge)))
    assert made["spec"]["schedulerName"] == scheduler
    assert ("scheduling.x-k8s.io/pod-group" in made["metadata"]["labels"]) is (scheduler == OTHER)
