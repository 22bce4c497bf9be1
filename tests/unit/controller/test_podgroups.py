"""What a PodGroup should say, and when it is written again."""

from __future__ import annotations

from typing import Any

import pytest

from controller.podgroups import claim_of, desired, up_to_date
from controller.view import View, observe
from muster.objects import PodGroup
from tests.unit.builders import (
    DEFAULTS,
    JSON,
    KEY,
    amounts,
    filled,
    made,
    pod_group,
    ray_cluster,
    template,
    workers,
)


def view(cluster: JSON, group: JSON | None = None) -> View:
    return observe(KEY, filled(workloads=[cluster], groups=[group or pod_group()]), DEFAULTS)


def numbers(cluster: JSON, group: JSON | None = None, *, admitted: bool = True) -> dict[str, Any]:
    spec: dict[str, Any] = desired(view(cluster, group), admitted=admitted)["spec"]
    return spec


def test_what_is_there_is_what_is_wanted() -> None:
    """The builder's PodGroup is the one of the builder's workload: nothing to write."""
    seen = view(ray_cluster())
    assert seen.pod_group is not None
    assert up_to_date(seen.pod_group, desired(seen, admitted=False))


@pytest.mark.parametrize(
    "drift",
    [
        pytest.param({"minMember": 2}, id="minMember"),
        pytest.param({"minTaskMember": {"headgroup": 1}}, id="minTaskMember"),
        pytest.param({"minResources": {"cpu": "3"}}, id="minResources lack one"),
        pytest.param({"minResources": {"cpu": "3", "memory": "3Gi", "nvidia.com/gpu": "1"}}, id="minResources more"),
        pytest.param({"minResources": {"cpu": "three"}}, id="minResources that nobody can read"),
        pytest.param({"queue": "other"}, id="queue"),
        pytest.param({"priorityClassName": "high"}, id="priority"),
        pytest.param(
            {"owner": {"apiVersion": "ray.io/v1", "kind": "RayCluster", "name": "demo", "uid": "x"}}, id="owner"
        ),
        pytest.param({"ours": False}, id="label"),
    ],
)
def test_a_drift_is_seen(drift: dict[str, Any]) -> None:
    seen = view(ray_cluster())
    assert not up_to_date(made(PodGroup, pod_group(**drift)), desired(seen, admitted=False))


def test_a_missing_annotation_of_the_workload_is_seen() -> None:
    seen = view(ray_cluster(annotations={"volcano.sh/x": "y"}))
    assert seen.pod_group is not None
    assert not up_to_date(seen.pod_group, desired(seen, admitted=False))


@pytest.mark.parametrize(
    "other",
    [
        pytest.param({"minResources": {"cpu": "3000m", "memory": "3072Mi"}}, id="the same amounts in other words"),
        pytest.param({"annotations": {"example.com/x": "y", "muster.dev/state": "Running"}}, id="annotations"),
        pytest.param({"phase": "Running"}, id="status"),
        pytest.param({"networkTopology": {"mode": "hard"}}, id="a field that muster does not write"),
    ],
)
def test_what_others_wrote_is_no_drift(other: dict[str, Any]) -> None:
    seen = view(ray_cluster())
    assert up_to_date(made(PodGroup, pod_group(**other)), desired(seen, admitted=False))


def test_before_admission_everything_follows_the_workload() -> None:
    changed = ray_cluster(workers(replicas=4), labels={"volcano.sh/queue-name": "r"})
    assert numbers(changed, admitted=False) == {
        "minMember": 5,
        "minTaskMember": {"headgroup": 1, "workers": 4},
        "minResources": {"cpu": "5", "memory": "5Gi"},
        "queue": "r",
    }


FROZEN = {
    "minMember": 3,
    "minTaskMember": {"headgroup": 1, "workers": 2},
    "minResources": {"cpu": "3", "memory": "3Gi"},
    "queue": "q",
}


@pytest.mark.parametrize(
    ("cluster", "expected"),
    [
        pytest.param(ray_cluster(workers(replicas=4)), FROZEN, id="scaled up"),
        pytest.param(
            ray_cluster(workers(replicas=1)),
            {
                **FROZEN,
                "minMember": 2,
                "minTaskMember": {"headgroup": 1, "workers": 1},
                "minResources": {"cpu": "2", "memory": "2Gi"},
            },
            id="scaled down",
        ),
        pytest.param(ray_cluster(labels={"volcano.sh/queue-name": "r"}), FROZEN, id="another queue"),
        pytest.param(
            ray_cluster(labels={"volcano.sh/queue-name": "q", "ray.io/priority-class-name": "high"}),
            FROZEN,
            id="another priority",
        ),
        pytest.param(ray_cluster(head=template("9")), FROZEN, id="larger pods"),
        pytest.param(
            ray_cluster(head=template("500m")),
            {**FROZEN, "minResources": {"cpu": "2500m", "memory": "3Gi"}},
            id="smaller pods",
        ),
        pytest.param(
            ray_cluster(workers(replicas=1), workers("more", 1)),
            {**FROZEN, "minTaskMember": {"headgroup": 1, "workers": 1}},
            id="a new role, as many pods",
        ),
        pytest.param(
            ray_cluster(workers("others", 2)), {**FROZEN, "minTaskMember": {"headgroup": 1}}, id="a role renamed"
        ),
    ],
)
def test_while_admitted_numbers_only_fall_and_queue_and_priority_stay(cluster: JSON, expected: JSON) -> None:
    """Volcano blocks the replacement of a crashed member when they rise, and its usage would move unchecked."""
    assert numbers(cluster) == expected


def test_while_admitted_the_priority_that_is_there_stays() -> None:
    assert numbers(ray_cluster(), pod_group(priorityClassName="high"))["priorityClassName"] == "high"


def test_admitted_without_a_group_is_made_as_the_workload_says() -> None:
    """Somebody deleted the PodGroup of a running gang."""
    seen = observe(KEY, filled(workloads=[ray_cluster()]), DEFAULTS)
    assert seen.pod_group is None
    with pytest.raises(ValueError, match="has no gang"):
        desired(seen, admitted=True)


def test_a_claim_is_what_the_group_reserves() -> None:
    assert claim_of(made(PodGroup, pod_group())) == amounts(cpu="3", memory="3Gi")


def test_a_claim_that_nobody_can_read_is_none() -> None:
    assert claim_of(made(PodGroup, pod_group(minResources={"cpu": "three"}))) == {}
