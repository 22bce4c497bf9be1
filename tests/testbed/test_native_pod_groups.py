"""Kubernetes 1.37 with PodGroups of its own, and the three ways to configure half of it."""

from collections.abc import Iterator
from http import HTTPStatus

import pytest

from hack.testbed import Nodes, Testbed
from muster.kube.resource import PODS
from tests.support.cluster.backends import NATIVE_POD_GROUPS, bound, cluster, member, native_pod_group
from tests.support.cluster.objects import Manifest, gates
from tests.support.cluster.scene import Scene, open_scene
from tests.support.cluster.testbed_fixtures import OwnTestbed

_NODES = Nodes(count=2, gpu=0)
_GATE = "example.com/gate"


@pytest.fixture(scope="module")
def native() -> Iterator[Testbed]:
    """One testbed for this file, with everything that native PodGroups need."""
    with Testbed.start(**cluster("kubernetes", operators=()), nodes=_NODES, progress=print) as running:
        yield running


def _in_group(name: str, *held: str) -> Manifest:
    return member(name, schedulingGroup={"podGroupName": "trio"}, schedulingGates=[{"name": gate} for gate in held])


def _group_of(scene: Scene) -> list[object]:
    return [pod["spec"].get("schedulingGroup") for pod in scene.pods()]


@pytest.mark.long
def test_a_group_is_bound_when_its_last_gate_opens(native: Testbed) -> None:
    """A plain pod that comes after the second gate has opened is bound before any of the group."""
    names = ["a", "b", "c"]
    with open_scene(native, "three-gates", [NATIVE_POD_GROUPS]) as scene:
        scene.create(native_pod_group("trio", 3))
        for name in names:
            scene.create(_in_group(name, _GATE))
        for name in names[:2]:
            scene.patch(PODS, name, {"spec": {"schedulingGates": None}})
        scene.create(member("plain"))
        scene.wait("the plain pod to be bound", lambda: bound(scene.pods()) == ["plain"])
        scene.patch(PODS, names[2], {"spec": {"schedulingGates": None}})
        scene.wait("the group to be bound", lambda: bound(scene.pods()) == [*names, "plain"])
        scene.recorder.settle()
        opened = scene.recorder.first(PODS, lambda pod: pod["metadata"]["name"] == names[2] and not gates(pod))
        first = scene.recorder.first(PODS, lambda pod: pod["metadata"]["name"] in names and bool(bound([pod])))
        assert opened.version < first.version


@pytest.mark.long
def test_it_is_the_version_that_it_says(native: Testbed) -> None:
    version = native.api().get("/version")
    assert (version["gitVersion"], version["major"], version["minor"]) == ("v1.37.2", "1", "37")


@pytest.mark.long
def test_with_the_gate_off_the_field_is_dropped_without_a_word(own_testbed: OwnTestbed) -> None:
    one = own_testbed(parts=[], nodes=_NODES, kubernetes="1.37-gate-off")
    with open_scene(one, "gate-off", []) as scene:
        assert _status_of_pod_groups(scene) == HTTPStatus.NOT_FOUND
        assert scene.apply(_in_group("a")) == []
        scene.wait("the pod to be bound alone", lambda: bound(scene.pods()) == ["a"])
        assert _group_of(scene) == [None]


@pytest.mark.long
def test_where_pod_groups_are_not_served_no_pod_is_placed(own_testbed: OwnTestbed) -> None:
    one = own_testbed(parts=[], nodes=_NODES, kubernetes="1.37-not-served")
    log = one.logs / "kube-scheduler.log"
    with open_scene(one, "not-served", []) as scene:
        assert _status_of_pod_groups(scene) == HTTPStatus.NOT_FOUND
        scene.create(_in_group("a"))
        scene.create(member("plain"))
        known = log.stat().st_size

        def complains() -> bool:
            return b"failed to list *v1beta1.PodGroup" in log.read_bytes()[known:]

        scene.wait("the scheduler to look for PodGroups in vain", complains)
        assert _group_of(scene) == [{"podGroupName": "trio"}, None]
        assert bound(scene.pods()) == []


@pytest.mark.long
def test_a_scheduler_without_the_gate_binds_members_one_by_one(own_testbed: OwnTestbed) -> None:
    one = own_testbed(parts=[], nodes=_NODES, kubernetes="1.37-scheduler-gate-off")
    with open_scene(one, "scheduler-off", [NATIVE_POD_GROUPS]) as scene:
        scene.create(native_pod_group("trio", 3))
        scene.create(_in_group("a"))
        scene.wait("the lone member to be bound", lambda: bound(scene.pods()) == ["a"])
        assert _group_of(scene) == [{"podGroupName": "trio"}]


def _status_of_pod_groups(scene: Scene) -> int:
    return scene.api("GET", NATIVE_POD_GROUPS.path(scene.namespace)).status
