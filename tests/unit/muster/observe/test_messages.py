"""The sentences of a gang's state."""

from __future__ import annotations

import pytest

from muster.observe.messages import of_the_scheduler
from muster.observe.observing import observe
from tests.support.controller.stores import filled
from tests.support.manifests.observed import DEFAULTS, JSON, KEY, pod_group, ray_cluster, ray_pod

_GROUP: JSON = {"status": {"conditions": [{"type": "Unschedulable", "status": "True", "message": "of the group"}]}}
_POD: JSON = {"conditions": [{"type": "PodScheduled", "status": "False", "message": "of the pod"}]}


@pytest.mark.parametrize(
    ("groups", "status", "words"),
    [
        pytest.param([pod_group() | _GROUP], _POD, "of the group", id="the PodGroup's first"),
        pytest.param([pod_group()], _POD, "of the pod", id="else a pod's"),
        pytest.param([], _POD, "of the pod", id="without a PodGroup"),
        pytest.param([], {}, "it has said nothing yet", id="none"),
    ],
)
def test_why_the_scheduler_finds_no_place_is_said_in_its_own_words(
    groups: list[JSON], status: JSON, words: str
) -> None:
    one = ray_pod("demo-head", "headgroup", held=False)
    one["status"] = {**one.get("status", {}), **status}
    view = observe(KEY, filled(workloads=[ray_cluster()], pods=[one], groups=groups), DEFAULTS)
    assert of_the_scheduler(view) == f"the scheduler finds no place: {words}"
