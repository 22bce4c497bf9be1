"""A tenant with Kubernetes' role `edit`, who may write RayClusters and PodGroups, on the real Volcano."""

import pytest

from hack.testbed.api import Answer
from muster.model.names import ADMITTED, GANG, GANG_SIZE, MANAGED_BY, MUSTER, QUEUE_LABEL
from muster.model.resource import POD_GROUPS, PODS
from tests.support.cluster.grants import bind, grant, on, user
from tests.support.cluster.objects import alive, gates, message
from tests.support.cluster.recorder import RAY_CLUSTERS, Manifest
from tests.support.cluster.scene import Scene
from tests.support.manifests.applied import ray_cluster

TENANT, FORBIDDEN = "tenant", 403
GROUP = "ray-first-pg"


def as_tenant(scene: Scene, verb: str, name: str, body: Manifest | None = None) -> Answer:
    path = scene.path(POD_GROUPS, name)
    return scene.api(verb, path, body, patch="merge" if verb == "PATCH" else "", user=TENANT)


@pytest.fixture
def queue(scene: Scene) -> str:
    """A queue of 2 cpu in which a gang of the tenant's runs, and another waits for it."""
    bind(scene.api, "edit", "edit", user(TENANT), namespace=scene.namespace)
    may = [on(resource, "*") for resource in (POD_GROUPS, RAY_CLUSTERS)]
    grant(scene.api, "writes", may, user(TENANT), namespace=scene.namespace)
    queue = scene.queue(cpu="2")
    scene.apply(ray_cluster("first").label(QUEUE_LABEL, queue).workers(1))
    scene.await_running(GROUP, 2)
    scene.apply(ray_cluster("next").label(QUEUE_LABEL, queue).workers(1))
    scene.await_state("ray-next-pg", "WaitingForQuota")
    return queue


def waits(scene: Scene) -> None:
    """The second gang is held, and what runs is the first."""
    assert [gates(pod) for pod in scene.pods("ray-next-pg")] == [["muster.dev/gang"]] * 2
    assert len([pod for pod in scene.pods(GROUP) if alive(pod)]) == 2
    scene.assert_never_open_above()


def test_no_write_of_a_tenant_moves_a_running_gang(scene: Scene, queue: str) -> None:
    """Each is refused, or muster makes it good: the PodGroup may be deleted, and another one be made by hand."""
    other = scene.queue("-other", cpu="2")
    moved = {"spec": {"queue": other}}
    for patch in (
        moved,
        {"metadata": {"labels": {MANAGED_BY: None}}, **moved},
        {"metadata": {"ownerReferences": None, "finalizers": ["tenant.io/keeps"]}, **moved},
        {"metadata": {"annotations": {ADMITTED: None}}},
    ):
        answer = as_tenant(scene, "PATCH", GROUP, patch)
        assert (answer.status, "only muster" in answer.message) == (FORBIDDEN, True)
    by_hand: Manifest = {
        "apiVersion": POD_GROUPS.api_version,
        "kind": POD_GROUPS.kind,
        "metadata": {"name": GROUP, "namespace": scene.namespace},
        "spec": {"minMember": 1, "queue": other},
    }
    labelled: Manifest = {**by_hand, "metadata": {**by_hand["metadata"], "labels": {MANAGED_BY: MUSTER}}}
    assert as_tenant(scene, "DELETE", GROUP).ok
    assert scene.api("POST", scene.path(POD_GROUPS), labelled, user=TENANT).status == FORBIDDEN
    answer = scene.api("POST", scene.path(POD_GROUPS), by_hand, user=TENANT)
    if answer.ok:
        # Until that is gone Volcano, and the judge of these tests, count the pods in the queue that it names.
        waits(scene)
        assert as_tenant(scene, "DELETE", GROUP).ok
    scene.await_state(GROUP, "Running")
    assert scene.pod_group(GROUP)["spec"]["queue"] == queue
    waits(scene)


def test_orphans_of_a_tenant_count_until_they_are_gone(scene: Scene, queue: str) -> None:
    """`kubectl delete --cascade=orphan`: the garbage collector takes the owners off, and KubeRay adopts the pods."""
    orphan = {"propagationPolicy": "Orphan"}
    path = scene.path(RAY_CLUSTERS, "first")
    assert scene.api("DELETE", path, orphan, user=TENANT).ok
    scene.wait("the workload to be gone", lambda: scene.recorder.get(RAY_CLUSTERS, "first") is None)
    pods = [pod for pod in scene.pods(GROUP) if alive(pod)]
    assert [pod["metadata"].get("ownerReferences") for pod in pods] == [None, None]
    scene.apply(ray_cluster("first").label(QUEUE_LABEL, queue).workers(1))
    scene.apply(ray_cluster("third").label(QUEUE_LABEL, queue).workers(1))
    scene.await_state("ray-third-pg", "WaitingForQuota")
    waits(scene)
    scene.delete(RAY_CLUSTERS, "first")
    scene.delete(PODS, *(pod["metadata"]["name"] for pod in pods))
    scene.await_running("ray-next-pg", 2)
    scene.assert_never_open_above()


def test_an_admission_of_a_tenant_ends_with_its_pods(scene: Scene, queue: str) -> None:
    """Suspended, the gang gives its mark back, whatever was tried with its PodGroup; resumed it waits in line."""
    assert not as_tenant(scene, "PATCH", GROUP, {"metadata": {"labels": {MANAGED_BY: None}}}).ok
    scene.patch(RAY_CLUSTERS, "first", {"spec": {"suspend": True}})
    scene.await_running("ray-next-pg", 2)
    assert not as_tenant(scene, "PATCH", GROUP, {"metadata": {"annotations": {ADMITTED: "a"}}}).ok
    scene.patch(RAY_CLUSTERS, "first", {"spec": {"suspend": False}})
    group = scene.await_state(GROUP, "WaitingForQuota")
    assert ADMITTED not in group["metadata"]["annotations"]
    assert group["spec"]["queue"] == queue


@pytest.mark.parametrize("policy", ["Foreground", "Background"])
def test_a_gang_is_deleted_whatever_way_its_tenant_asks_for(scene: Scene, queue: str, policy: str) -> None:
    """In the foreground with a finalizer; and so the PodGroup alone, which muster makes again."""
    del queue
    path = scene.path(RAY_CLUSTERS, "first")
    assert scene.api("DELETE", path, {"propagationPolicy": policy}, user=TENANT).ok
    scene.wait("its PodGroup to be gone", lambda: not scene.pod_group(GROUP)["metadata"])
    scene.await_running("ray-next-pg", 2)
    foreground = {"propagationPolicy": "Foreground"}
    assert scene.api("DELETE", scene.path(POD_GROUPS, "ray-next-pg"), foreground, user=TENANT).ok
    scene.await_running("ray-next-pg", 2)


def _plain(name: str, queue: str, cpu: str = "1") -> Manifest:
    """A pod of a gang of two, which no operator replaces."""
    container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": cpu}}}
    labels, annotations = {GANG: "pair", QUEUE_LABEL: queue}, {GANG_SIZE: "2"}
    metadata = {"name": name, "labels": labels, "annotations": annotations}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container]}}


def _of_tenant(scene: Scene, verb: str, name: str, body: Manifest | None = None) -> None:
    path = scene.path(PODS) if verb == "POST" else scene.path(PODS, name)
    answer = scene.api(verb, path, body, patch="merge" if verb == "PATCH" else "", user=TENANT)
    assert answer.ok, answer


def test_a_tenant_replaces_a_lost_pod_by_no_larger_one_and_only_once(scene: Scene) -> None:
    """Made by hand, of 1,000 cpu; and again and again, while what left the gang runs on."""
    bind(scene.api, "edit", "edit", user(TENANT), namespace=scene.namespace)
    queue = scene.queue(cpu="2")
    for name in ("p-0", "p-1"):
        _of_tenant(scene, "POST", name, _plain(name, queue))
    scene.await_running("pair", 2)
    _of_tenant(scene, "DELETE", "p-1")
    _of_tenant(scene, "POST", "large", _plain("large", queue, "1000"))
    scene.wait("word of it", lambda: "no room yet for cpu 1k more (large)" in message(scene.pod_group("pair")))
    _of_tenant(scene, "DELETE", "large")
    _of_tenant(scene, "POST", "p-2", _plain("p-2", queue))
    scene.await_running("pair", 2)
    _of_tenant(scene, "PATCH", "p-2", {"metadata": {"annotations": {GANG_SIZE: None}}})
    _of_tenant(scene, "POST", "p-3", _plain("p-3", queue))
    scene.wait("word of it", lambda: "still hold cpu 1" in message(scene.pod_group("pair")))
    assert gates(scene.get(PODS, "p-3")) == ["muster.dev/gang"]
    _of_tenant(scene, "DELETE", "p-2")
    scene.wait("the place to be free", lambda: gates(scene.get(PODS, "p-3")) == [])
    scene.assert_never_open_above()
