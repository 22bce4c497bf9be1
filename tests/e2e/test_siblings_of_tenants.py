"""A tenant with Kubernetes' role `edit` beside a full set of policies: what it writes takes no room of other queues."""

from muster.model.names import GROUP_NAME, QUEUE_LABEL
from muster.model.resource import POD_GROUPS, PODS
from tests.support.cluster.grants import bind, grant, on, user
from tests.support.cluster.objects import gates
from tests.support.cluster.recorder import RAY_CLUSTERS, Manifest
from tests.support.cluster.scene import Scene
from tests.support.manifests.applied import ray_cluster

TENANT = "tenant-of-a-sibling"
MUCH = {"cpu": "1000"}


def _queue(name: str, parent: str, cpu: str) -> Manifest:
    spec = {"parent": parent, "reclaimable": False, "capability": {"cpu": cpu}}
    return {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": name}, "spec": spec}


def _tree(scene: Scene) -> tuple[str, str]:
    """The tenant's queue of 2 cpu beside one of 8, below one of 10."""
    org, small, large = (f"{scene.namespace}-{name}" for name in ("org", "small", "large"))
    for name in (small, large, org):
        scene.adopt_queue(name)
    scene.apply(_queue(org, "root", "10"))
    scene.apply(_queue(small, org, "2"), _queue(large, org, "8"))
    for name in (org, small, large):
        scene.await_queue(name)
    bind(scene.api, "edit", "edit", user(TENANT), namespace=scene.namespace)
    grant(scene.api, "writes", [on(POD_GROUPS, "*"), on(RAY_CLUSTERS, "*")], user(TENANT), namespace=scene.namespace)
    return small, large


def _pod(scene: Scene, name: str, **spec: object) -> Manifest:
    """A pod in the group of the tenant's own gang, that asks for more than all queues have."""
    container = {"name": "c", "image": "none", "resources": {"requests": MUCH}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": scene.namespace, "annotations": {GROUP_NAME: "ray-own-pg"}},
        "spec": {"schedulerName": "volcano", "containers": [container], "terminationGracePeriodSeconds": 3600, **spec},
    }


def test_what_a_tenant_writes_keeps_no_gang_of_a_sibling_waiting(scene: Scene) -> None:
    """Pods on a node that does not exist, one of them deleted, and PodGroups of its own in every phase."""
    small, large = _tree(scene)
    scene.apply(ray_cluster("own").label(QUEUE_LABEL, small).workers(1))
    scene.await_running("ray-own-pg", 2)

    def made() -> bool:
        return scene.api("POST", scene.path(PODS), _pod(scene, "ghost", nodeName="no-such-node"), user=TENANT).ok

    scene.wait("the tenant's rights to count", made)
    going = _pod(scene, "going", nodeName="no-such-node")
    assert scene.api("POST", scene.path(PODS), going, user=TENANT).ok
    assert scene.api("DELETE", scene.path(PODS, "going"), user=TENANT).ok
    for phase in ("Inqueue", "Running", "Unknown"):
        group: Manifest = {
            "apiVersion": POD_GROUPS.api_version,
            "kind": POD_GROUPS.kind,
            "metadata": {"name": phase.lower(), "namespace": scene.namespace},
            "spec": {"minMember": 1, "queue": small, "minResources": MUCH},
            "status": {"phase": phase},
        }
        answer = scene.api("POST", scene.path(POD_GROUPS), group, user=TENANT)
        assert answer.ok, answer.message
    scene.apply(ray_cluster("large").label(QUEUE_LABEL, large).workers(7))
    # Volcano itself keeps room for what such PodGroups ask for, and may place it later.
    scene.wait("muster to open the gang", lambda: [gates(pod) for pod in scene.pods("ray-large-pg")] == [[]] * 8)
