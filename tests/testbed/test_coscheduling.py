"""Scheduler-plugins on the testbed, beside kube-scheduler and in its place: gangs, ElasticQuotas, its controller."""

from collections.abc import Iterator

import pytest

from hack.testbed import Nodes, Testbed
from muster.kube.resource import ELASTIC_QUOTAS, PODS
from tests.support.cluster.backends import (
    COSCHEDULING_POD_GROUPS,
    bound,
    cluster,
    coscheduling_pod_group,
    elastic_quota,
    member,
    scheduled,
)
from tests.support.cluster.scene import Scene, open_scene, phase
from tests.support.cluster.testbed_fixtures import OwnTestbed

_SECOND = "scheduler-plugins-scheduler"
_LABEL = "scheduling.x-k8s.io/pod-group"
_KINDS = (COSCHEDULING_POD_GROUPS, ELASTIC_QUOTAS)


@pytest.fixture(scope="module")
def second() -> Iterator[Testbed]:
    """One testbed for this file, on which it is the second scheduler."""
    asked = cluster("coscheduling", operators=())
    with Testbed.start(**asked, nodes=Nodes(count=2, gpu=0), progress=print) as running:
        yield running


def _binds_no_half_gang(scene: Scene, scheduler: str) -> None:
    """A lone member of a group of two waits for the other; a pod without a group does not."""
    scene.create(coscheduling_pod_group("pair", 2))
    scene.create(member("first", labels={_LABEL: "pair"}, schedulerName=scheduler))
    scene.wait("the scheduler to refuse it", lambda: "Unschedulable" in "".join(map(scheduled, scene.pods())))
    scene.create(member("alone", schedulerName=scheduler))
    scene.wait("the pod without a group to be bound", lambda: bound(scene.pods()) == ["alone"])
    scene.create(member("second", labels={_LABEL: "pair"}, schedulerName=scheduler))
    scene.wait("the group to be bound", lambda: bound(scene.pods()) == ["alone", "first", "second"])
    scene.recorder.settle()
    came = scene.recorder.first(PODS, lambda pod: pod["metadata"]["name"] == "second")
    went = scene.recorder.first(PODS, lambda pod: pod["metadata"]["name"] == "first" and bool(bound([pod])))
    assert came.version < went.version, "the first was bound before the second was there"
    scene.wait(
        "the controller to say so",
        lambda: [phase(group) for group in scene.recorder.now(COSCHEDULING_POD_GROUPS)] == ["Running"],
    )


@pytest.mark.long
def test_pods_of_a_group_are_bound_together_by_the_second_scheduler(second: Testbed) -> None:
    with open_scene(second, "pair-of-second", _KINDS) as scene:
        _binds_no_half_gang(scene, _SECOND)


@pytest.mark.long
def test_the_default_scheduler_is_another_beside_it(second: Testbed) -> None:
    """It knows no groups: the label alone holds nothing back."""
    with open_scene(second, "default-beside", _KINDS) as scene:
        scene.create(coscheduling_pod_group("pair", 2))
        scene.create(member("first", labels={_LABEL: "pair"}))
        scene.wait("the lone member to be bound", lambda: bound(scene.pods()) == ["first"])


@pytest.mark.long
def test_an_elastic_quota_is_the_most_that_its_namespace_gets(second: Testbed) -> None:
    with open_scene(second, "elastic-quota", _KINDS) as scene:
        scene.create(elastic_quota("most", cpu="2"))
        scene.create(member("first", schedulerName=_SECOND))
        scene.create(member("second", schedulerName=_SECOND))
        scene.wait("two to be bound", lambda: bound(scene.pods()) == ["first", "second"])
        scene.create(member("third", schedulerName=_SECOND))

        def refusal() -> str:
            return "".join(scheduled(pod) for pod in scene.pods() if pod["metadata"]["name"] == "third")

        scene.wait("the third to be refused", lambda: "ElasticQuota" in refusal())
        assert bound(scene.pods()) == ["first", "second"]

        def used() -> list[str]:
            quotas = scene.recorder.now(ELASTIC_QUOTAS)
            return [quota.get("status", {}).get("used", {}).get("cpu", "") for quota in quotas]

        scene.wait("the controller to count them", lambda: used() == ["2"])
        scene.delete(PODS, "first")
        # The scheduler may have tried the third before its plugin heard of the end of the first: a change of the quota
        # has it try again.
        scene.wait("the first to count no more", lambda: used() == ["1"] or len(bound(scene.pods())) == 2)
        scene.annotate(ELASTIC_QUOTAS, "most", again="")
        scene.wait("the third to be bound", lambda: bound(scene.pods()) == ["second", "third"])


@pytest.mark.long
def test_it_is_the_default_scheduler_where_asked(own_testbed: OwnTestbed) -> None:
    one = own_testbed(**cluster("coscheduling-as-default", operators=()), nodes=Nodes(count=2, gpu=0))
    assert "kube-scheduler" not in one.processes()
    with open_scene(one, "pair-of-default", _KINDS) as scene:
        _binds_no_half_gang(scene, "default-scheduler")
