"""The PodGroup and the binding of pods in KAI's words, of which muster makes plans alone."""

import argparse

import pytest

from muster.model.pods import Pod
from muster.process.lifecycle import chosen
from muster.schedulers import SCHEDULERS, named
from tests.support.manifests.observed import (
    gang_and_intent,
    made,
    pod,
    pytorch_job,
    ray_cluster,
    read,
    template,
    workers,
)

(KAI,) = named("kai").values()


def test_the_whole_specification() -> None:
    manifest = pytorch_job(policy={"queue": "q", "priorityClass": "high"})
    found = KAI.pod_group(*gang_and_intent(manifest), read(manifest))
    assert (found["apiVersion"], found["kind"]) == ("scheduling.run.ai/v2alpha2", "PodGroup")
    assert found["spec"] == {
        "minMember": 3,
        "queue": "q",
        "priorityClassName": "high",
        "subGroups": [{"name": "master", "minMember": 1}, {"name": "worker", "minMember": 2}],
    }


def test_a_pod_is_bound_to_group_and_subgroup_and_kept_from_its_grouper() -> None:
    binding = KAI.binding(*gang_and_intent(ray_cluster()), "workers")
    assert binding.labels == {"volcano.sh/queue-name": "q", "kai.scheduler/subgroup-name": "workers"}
    own = {"pod-group-name": "ray-demo-pg", "kai.scheduler/skip-podgrouper": "true"}
    assert binding.annotations == {"scheduling.k8s.io/group-name": "ray-demo-pg", **own}
    assert KAI.bound_to(made(Pod, pod("a", annotations=dict(binding.annotations)))) == "ray-demo-pg"
    assert KAI.bound_to(made(Pod, pod("a"))) == ""


def test_pods_without_a_minimum_are_in_no_subgroup() -> None:
    group = workers(replicas=2, minReplicas=0, template=template())
    binding = KAI.binding(*gang_and_intent(ray_cluster(group, enableInTreeAutoscaling=True)), "workers")
    assert "kai.scheduler/subgroup-name" not in binding.labels


def test_a_loose_pod_group_holds_nobody_back() -> None:
    assert KAI.relaxed_pod_group("q", {"name": "g"})["spec"] == {"minMember": 1, "queue": "q"}


def test_it_is_for_plans_alone() -> None:
    """A plan must not promise what no process does: there it is chosen by name only."""
    assert KAI.name not in SCHEDULERS
    with pytest.raises(argparse.ArgumentTypeError, match="kai is for `muster plan` alone"):
        chosen("volcano,kai")
