"""Reviews of new pods."""

from __future__ import annotations

from typing import TYPE_CHECKING

import jsonpatch
import pytest

from muster.kube.errors import ApiError, Unreachable
from muster.objects import InvalidObjectError
from tests.unit.builders import DEFAULTS, JSON, pod, pytorch_job, pytorch_pod, ray_cluster, workers
from tests.unit.webhook.reviews import Reader, answered, knowing, patch_of, request
from webhook.pods import review_pod

if TYPE_CHECKING:
    from webhook.knowledge import Knowledge
    from webhook.review import Answer

RAY_OWNER = {"apiVersion": "ray.io/v1", "kind": "RayCluster", "name": "demo", "uid": "uid-demo", "controller": True}
DELETING = {"deletionTimestamp": "2026-11-21T10:00:00Z"}


def new_pod(role: str | None = "workers", owner: JSON | None = None, **spec: object) -> JSON:
    """A pod as KubeRay sends it: no name yet, nothing of muster's on it."""
    labels = {"ray.io/cluster": "demo", **({"ray.io/group": role} if role else {})}
    return pod(
        "",
        owner=RAY_OWNER if owner is None else owner,
        labels=labels,
        **({"schedulerName": "default-scheduler", "priority": 0} | spec),  # type: ignore[arg-type] # a pod's spec
    )


async def reviewed(new: JSON, knowledge: Knowledge | None = None) -> Answer:
    return await review_pod(request(new), knowledge or knowing(workloads=[ray_cluster()]), DEFAULTS)


async def test_a_member_is_bound_pointed_and_held() -> None:
    new = new_pod()
    result = jsonpatch.apply_patch(new, patch_of(await reviewed(new)))
    assert result["spec"]["schedulerName"] == "volcano"
    assert result["spec"]["schedulingGates"] == [{"name": "muster.dev/gang"}]
    assert result["metadata"]["labels"]["muster.dev/gang"] == "ray-demo-pg"
    assert result["metadata"]["annotations"] == {
        "scheduling.k8s.io/group-name": "ray-demo-pg",
        "volcano.sh/task-spec": "workers",
    }


async def test_a_member_of_an_old_workload_version_is_bound_too() -> None:
    answer = await reviewed(new_pod(owner={**RAY_OWNER, "apiVersion": "ray.io/v1alpha1"}))
    assert answer.patch


async def test_the_priority_of_a_job_goes_onto_its_pods() -> None:
    new = pytorch_pod("train-worker-0", held=False, priority=0, schedulerName="default-scheduler")
    new["metadata"]["labels"].pop("muster.dev/gang")
    new["metadata"]["annotations"] = {}
    knowledge = knowing(workloads=[pytorch_job(policy={"queue": "q", "priorityClass": "high"})])
    result = jsonpatch.apply_patch(new, patch_of(await reviewed(new, knowledge)))
    assert (result["spec"]["priorityClassName"], "priority" in result["spec"]) == ("high", False)


@pytest.mark.parametrize(
    ("new", "workload"),
    [
        pytest.param(new_pod(owner={}), ray_cluster(), id="no owner"),
        pytest.param(new_pod(owner={**RAY_OWNER, "controller": False}), ray_cluster(), id="no controlling owner"),
        pytest.param(
            new_pod(owner={"apiVersion": "batch/v1", "kind": "Job", "name": "demo", "uid": "u", "controller": True}),
            ray_cluster(),
            id="a Job's, as KubeRay's clean-up",
        ),
        pytest.param(new_pod(), ray_cluster(labels={}), id="workload says nothing"),
        pytest.param(
            new_pod(), ray_cluster(labels={"muster.dev/managed": "false", "volcano.sh/queue-name": "q"}), id="opted out"
        ),
        pytest.param(
            new_pod(), ray_cluster(labels={"ray.io/scheduler-name": "yunikorn"}), id="another scheduler by label"
        ),
        pytest.param(new_pod(), ray_cluster(meta=DELETING), id="workload being deleted"),
        pytest.param(new_pod(role="gone"), ray_cluster(), id="a role that the workload has not"),
        pytest.param(new_pod(role=None), ray_cluster(), id="no role"),
        pytest.param(new_pod(nodeName="n"), ray_cluster(), id="has a node"),
        pytest.param(new_pod(), ray_cluster(workers(replicas=-1), labels={}), id="broken, but not ours"),
    ],
)
async def test_what_is_not_musters_passes_untouched(new: JSON, workload: JSON) -> None:
    assert answered(await reviewed(new, knowing(workloads=[workload]))) == {"uid": "u", "allowed": True}


async def test_a_pod_that_the_operator_bound_passes_untouched() -> None:
    new = new_pod(schedulerName="volcano")
    new["metadata"]["annotations"] = {"scheduling.k8s.io/group-name": "ray-demo-pg"}
    assert not (await reviewed(new)).patch


async def test_a_second_round_changes_nothing() -> None:
    new = new_pod()
    once = jsonpatch.apply_patch(new, patch_of(await reviewed(new)))
    assert not (await reviewed(once)).patch


async def test_every_member_is_held_whatever_its_gang_may_do() -> None:
    """A stale mark must never let a new gang through: the webhook knows nothing of admission."""
    assert (await reviewed(new_pod(), knowing(workloads=[ray_cluster(suspend=True)]))).patch


async def test_a_workload_that_the_watch_has_not_seen_is_read() -> None:
    reader = Reader({"rayclusters/demo": ray_cluster()})
    assert (await reviewed(new_pod(), knowing(reader))).patch
    assert reader.reads == ["rayclusters/demo"]


async def test_a_workload_that_the_watch_knows_is_not_read() -> None:
    reader = Reader()
    await reviewed(new_pod(), knowing(reader, workloads=[ray_cluster()]))
    assert reader.reads == []


async def test_a_workload_made_anew_is_read_for_its_uid() -> None:
    """The watch still shows the former one of that name."""
    reader = Reader({"rayclusters/demo": ray_cluster()})
    former = ray_cluster(uid="uid-former", labels={})
    assert (await reviewed(new_pod(), knowing(reader, workloads=[former]))).patch


@pytest.mark.parametrize(
    "reader",
    [
        pytest.param(Reader(), id="gone"),
        pytest.param(Reader({"rayclusters/demo": ray_cluster(uid="uid-next")}), id="another by now"),
    ],
)
async def test_a_pod_of_a_workload_that_is_gone_passes_for_the_garbage_collector(reader: Reader) -> None:
    assert answered(await reviewed(new_pod(), knowing(reader))) == {"uid": "u", "allowed": True}


@pytest.mark.parametrize("error", [Unreachable("silent"), ApiError(500, "", "broken"), ApiError(403, "Forbidden", "")])
async def test_a_workload_that_cannot_be_read_decides_nothing(error: ApiError) -> None:
    """A member that slipped through ungated could never be gated afterwards."""
    with pytest.raises(ApiError):
        await reviewed(new_pod(), knowing(Reader({"rayclusters/demo": error})))


async def test_a_pod_of_a_workload_whose_numbers_make_no_gang_is_refused() -> None:
    response = answered(await reviewed(new_pod(), knowing(workloads=[ray_cluster(workers(replicas=-1))])))
    assert not response["allowed"]
    assert response["status"]["reason"] == "Invalid"
    assert response["status"]["message"] == (
        "RayCluster demo: spec.workerGroupSpecs[0].replicas: -1 is negative; a number of pods is 0 or more"
    )


async def test_what_is_no_pod_is_an_error() -> None:
    with pytest.raises(InvalidObjectError):
        await review_pod(request(None), knowing(), DEFAULTS)


async def test_a_pod_that_names_another_scheduler_is_left_alone_and_said() -> None:
    answer = answered(await reviewed(new_pod(schedulerName="mine"), knowing(workloads=[ray_cluster()])))
    assert answer == {
        "uid": "u",
        "allowed": True,
        "warnings": ['spec.schedulerName: "mine" is not volcano; muster leaves the pod alone'],
    }


async def test_a_role_that_the_watch_has_not_shown_yet_is_read() -> None:
    """A worker group of a moment ago: its first pod is quicker than the watch."""
    reader = Reader({"rayclusters/demo": ray_cluster(workers(), workers("late"))})
    answer = await reviewed(new_pod(role="late"), knowing(reader, workloads=[ray_cluster()]))
    assert answer.patch
    assert reader.reads == ["rayclusters/demo"]
