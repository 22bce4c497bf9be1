"""What the apiserver makes of muster's patch on a new pod."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from muster.kube.resource import POD_GROUPS
from muster.names import (
    GANG,
    GANG_SIZE,
    GATE,
    GROUP_NAME,
    MANAGED,
    PRIORITY_CLASS_LABEL,
    QUEUE_LABEL,
    SCHEDULER_LABEL,
    TASK_SPEC,
    WORKLOAD,
)
from tests.support.manifests.owner_chains import wait_for_class
from tests.support.manifests.workloads import PyTorchJob, RayCluster, pytorch_job, queue, ray_cluster

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hack.testbed.api import Api
    from tests.support.cluster.desk import Desk, Manifest

_GATES = [{"name": GATE}]


@pytest.fixture
def lane(desk: Desk) -> Iterator[str]:
    """A queue of the test's own."""
    desk.create(queue(desk.namespace, cpu="8"))
    yield desk.namespace
    desk.kubectl("delete", "queue", desk.namespace)


@pytest.fixture
def cluster(desk: Desk, lane: str) -> Manifest:
    """A RayCluster of a gang."""
    return desk.create(ray_cluster("c").label(QUEUE_LABEL, lane).workers(2).manifest())


@pytest.mark.parametrize(
    ("workload", "role", "group"),
    [
        pytest.param(ray_cluster("c").workers(2), "headgroup", "ray-c-pg", id="head of a RayCluster"),
        pytest.param(ray_cluster("c").workers(2), "worker", "ray-c-pg", id="worker of a RayCluster"),
        pytest.param(pytorch_job("j").workers(2), "master", "j", id="master of a PyTorchJob"),
        pytest.param(pytorch_job("j").workers(2), "worker", "j", id="worker of a PyTorchJob"),
    ],
)
def test_member_is_bound_and_held(
    desk: Desk, lane: str, workload: RayCluster | PyTorchJob, role: str, group: str
) -> None:
    """Scheduler, group, role, queue, gang and gate, all in the pod that is stored."""
    owner = desk.create(workload.label(QUEUE_LABEL, lane).manifest())
    pod = desk.create(desk.member(owner, role))
    assert pod["spec"]["schedulerName"] == "volcano"
    assert pod["spec"]["schedulingGates"] == _GATES
    assert pod["metadata"]["annotations"] == {GROUP_NAME: group, TASK_SPEC: role}
    assert pod["metadata"]["labels"].items() >= {GANG: group, QUEUE_LABEL: lane}.items()
    assert pod["metadata"]["name"].startswith(pod["metadata"]["generateName"])


def test_what_the_pod_has_is_kept(desk: Desk, cluster: Manifest) -> None:
    """Labels, annotations and gates of others stay, in their order."""
    wanted = desk.member(
        cluster, "worker", schedulingGates=[{"name": "example.com/first"}, {"name": "example.com/second"}]
    )
    wanted["metadata"]["annotations"] = {"example.com/note": "a/b~c"}
    wanted["metadata"]["labels"]["example.com/team"] = "blue"
    pod = desk.create(wanted)
    assert [gate["name"] for gate in pod["spec"]["schedulingGates"]] == [
        "example.com/first",
        "example.com/second",
        GATE,
    ]
    assert pod["metadata"]["annotations"]["example.com/note"] == "a/b~c"
    assert pod["metadata"]["labels"].items() >= wanted["metadata"]["labels"].items()
    assert pod["metadata"]["ownerReferences"] == wanted["metadata"]["ownerReferences"]


def test_patching_twice_changes_nothing_more(desk: Desk, cluster: Manifest) -> None:
    """A patched pod that is reviewed again, as under reinvocation, comes out as it went in."""
    once = desk.create(desk.member(cluster, "worker"), "--dry-run=server")
    again = {key: once[key] for key in ("apiVersion", "kind", "spec")}
    # The token's volume is the apiserver's own addition, under another name each time.
    again["spec"] = {
        **once["spec"],
        "volumes": [],
        "containers": [{**once["spec"]["containers"][0], "volumeMounts": []}],
    }
    kept = ("generateName", "labels", "annotations", "ownerReferences")
    again["metadata"] = {key: once["metadata"][key] for key in kept}
    twice = desk.create(again)
    for key in ("labels", "annotations", "ownerReferences"):
        assert twice["metadata"][key] == once["metadata"][key]
    for key in ("schedulerName", "schedulingGates", "priority", "preemptionPolicy", "tolerations"):
        assert twice["spec"].get(key) == once["spec"].get(key), key


def test_dry_run_shows_the_patch_and_stores_nothing(desk: Desk, cluster: Manifest) -> None:
    """`--dry-run=server` answers as the real thing would."""
    pod = desk.create(desk.member(cluster, "headgroup"), "--dry-run=server")
    assert pod["spec"]["schedulingGates"] == _GATES
    assert desk.pods() == []
    assert desk.list(POD_GROUPS) == []


@pytest.fixture
def classes(desk: Desk, calls: Api) -> Iterator[tuple[str, str]]:
    """Two PriorityClasses: of value 700 that never preempts, and one of value 5 that is everybody's default."""
    names = (f"patient-{desk.namespace}", f"usual-{desk.namespace}")
    desk.kubectl("create", "priorityclass", names[0], "--value=700", "--preemption-policy=Never")
    desk.kubectl("create", "priorityclass", names[1], "--value=5", "--global-default=true")
    wait_for_class(calls, names[0])
    wait_for_class(calls, names[1], everybodys=True)
    yield names
    desk.kubectl("delete", "priorityclass", *names)


def test_class_comes_with_its_value_and_its_preemption_policy(desk: Desk, lane: str, classes: tuple[str, str]) -> None:
    """The class of the workload replaces the cluster's default, and the apiserver computes the numbers anew."""
    patient, usual = classes
    labelled = ray_cluster("c").label(QUEUE_LABEL, lane).label(PRIORITY_CLASS_LABEL, patient)
    pod = desk.create(desk.member(desk.create(labelled.manifest()), "headgroup"))
    assert _priority(pod) == (patient, 700, "Never")

    plain = desk.create(ray_cluster("plain").label(QUEUE_LABEL, lane).manifest())
    assert _priority(desk.create(desk.member(plain, "headgroup"))) == (usual, 5, "PreemptLowerPriority")


def test_class_of_a_template_is_its_users(desk: Desk, lane: str, classes: tuple[str, str]) -> None:
    """A role whose template names a class keeps it; the other role gets the workload's."""
    patient, usual = classes
    owner = desk.create(
        ray_cluster("c")
        .label(QUEUE_LABEL, lane)
        .label(PRIORITY_CLASS_LABEL, patient)
        .head(priorityClassName=usual)
        .workers(1)
        .manifest()
    )
    head = desk.create(desk.member(owner, "headgroup", priorityClassName=usual))
    worker = desk.create(desk.member(owner, "worker"))
    assert _priority(head) == (usual, 5, "PreemptLowerPriority")
    assert _priority(worker) == (patient, 700, "Never")


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        pytest.param({"nodeName": "node-0"}, "it has a node", id="a pod with a node"),
        pytest.param({"schedulerName": "my-own"}, "it has a scheduler", id="a pod of another scheduler"),
    ],
)
def test_not_free_is_untouched(desk: Desk, cluster: Manifest, spec: Manifest, why: str) -> None:
    """A pod that is bound to a node or to another scheduler is not muster's."""
    pod = desk.create(desk.member(cluster, "worker", **spec))
    assert _traces(pod) == [], why
    assert pod["spec"]["schedulerName"] == spec.get("schedulerName", "default-scheduler")


def test_bound_by_its_operator_is_untouched(desk: Desk, cluster: Manifest) -> None:
    """A pod that already names its PodGroup gets neither gate nor label."""
    wanted = desk.member(cluster, "worker", schedulerName="volcano")
    wanted["metadata"]["annotations"] = {GROUP_NAME: "ray-c-pg"}
    pod = desk.create(wanted)
    assert _traces(pod) == []
    assert pod["metadata"]["annotations"] == {GROUP_NAME: "ray-c-pg"}


@pytest.mark.parametrize(
    "workload",
    [
        pytest.param(ray_cluster("c"), id="no intent"),
        pytest.param(ray_cluster("c").label(SCHEDULER_LABEL, "yunikorn"), id="another scheduler's"),
        pytest.param(ray_cluster("c").label(SCHEDULER_LABEL, "volcano").label(MANAGED, "false"), id="opted out"),
    ],
)
def test_members_of_other_workloads_are_untouched(desk: Desk, workload: RayCluster) -> None:
    """Only what asks for muster gets it."""
    assert _traces(desk.create(desk.member(desk.create(workload.manifest()), "headgroup"))) == []


def test_opting_in_is_enough(desk: Desk) -> None:
    """`muster.dev/managed: "true"` alone makes a gang, in the default queue."""
    desk.create(queue("default", cpu="8"))
    owner = desk.create(ray_cluster("c").label(MANAGED, "true").manifest())
    assert _traces(desk.create(desk.member(owner, "headgroup"))) == [GANG, GATE]
    desk.kubectl("delete", "queue", "default")


def test_cleanup_pod_is_no_member(desk: Desk, cluster: Manifest) -> None:
    """KubeRay's redis clean-up runs when the cluster is deleted: held, it would keep it for ever."""
    wanted = desk.member(cluster, "headgroup")
    wanted["metadata"]["labels"]["ray.io/node-type"] = "redis-cleanup"
    assert _traces(desk.create(wanted)) == []


def test_owner_of_a_former_life_is_no_owner(desk: Desk, cluster: Manifest) -> None:
    """A pod whose owner's UID is of a deleted workload of the same name is left to the garbage collector."""
    wanted = desk.member(cluster, "worker")
    wanted["metadata"]["ownerReferences"][0]["uid"] = "00000000-0000-0000-0000-000000000000"
    assert _traces(desk.create(wanted)) == []


_DAEMON = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "u", "controller": True}


@pytest.mark.parametrize("kind", ["a pod with a node", "the mirror of a static pod", "a daemon"])
def test_what_is_certain_of_its_node_is_left_as_it_is(desk: Desk, cluster: Manifest, kind: str) -> None:
    """Also with the labels of a gang, by which it is seen."""
    wanted = desk.member(cluster, "worker", **({} if kind == "a daemon" else {"nodeName": "node-0"}))
    if kind == "a daemon":
        wanted["metadata"]["ownerReferences"] = [_DAEMON]
    if kind == "the mirror of a static pod":
        del wanted["metadata"]["ownerReferences"]
        wanted["metadata"]["annotations"] = dict.fromkeys(
            ("kubernetes.io/config.mirror", "kubernetes.io/config.hash"), "x"
        )
    pod = desk.create(wanted, "--dry-run=server")
    assert _traces(pod) == []
    assert pod["spec"]["schedulerName"] == "default-scheduler"
    assert pod["metadata"].get("annotations", {}) == wanted["metadata"].get("annotations", {})


@pytest.mark.parametrize(
    ("spec", "owner"),
    [
        pytest.param({}, "silent", id="a workload's that is none of muster's"),
        pytest.param({"nodeName": "node-0"}, "c", id="with a node from its first moment on"),
        pytest.param({}, "", id="a daemon"),
    ],
)
def test_nobody_but_muster_makes_a_member(desk: Desk, cluster: Manifest, spec: Manifest, owner: str) -> None:
    """One that runs would be a sign that the gang was admitted: what carries the marks of another's gang loses them."""
    silent = desk.create(ray_cluster("silent").workers(1).manifest())
    wanted = desk.member(
        {"silent": silent, "c": cluster, "": cluster}[owner], "worker", schedulerName="volcano", **spec
    )
    if not owner:
        wanted["metadata"]["ownerReferences"] = [_DAEMON]
        wanted["metadata"]["labels"] = {"ray.io/group": "worker"}
    meta = cluster["metadata"]
    claimed = {"apiVersion": "ray.io/v1", "kind": "RayCluster", "name": "c", "uid": meta["uid"], "controller": True}
    wanted["metadata"]["labels"][GANG] = "ray-c-pg"
    wanted["metadata"]["annotations"] = {GROUP_NAME: "ray-c-pg", GANG_SIZE: "1", WORKLOAD: json.dumps(claimed)}
    made = desk.create(wanted)["metadata"]
    assert WORKLOAD not in made["annotations"]
    assert not (GANG in made["labels"] and GROUP_NAME in made["annotations"])


def _priority(pod: Manifest) -> tuple[str, int, str]:
    spec = pod["spec"]
    return spec["priorityClassName"], spec["priority"], spec["preemptionPolicy"]


def _traces(pod: Manifest) -> list[str]:
    """What muster put on the pod: its label, its gate."""
    label = [GANG] if GANG in pod["metadata"].get("labels", {}) else []
    return label + [gate["name"] for gate in pod["spec"].get("schedulingGates", []) if gate["name"] == GATE]
