"""A gang as the stores show it."""

from __future__ import annotations

import pytest

from controller.view import View, observe
from muster.ledger import GangKey
from tests.unit.builders import (
    DEFAULTS,
    JSON,
    KEY,
    amounts,
    filled,
    pod_group,
    pytorch_job,
    pytorch_pod,
    ray_cluster,
    ray_pod,
    template,
    workers,
)

HEAD = ray_pod("head", "headgroup")


def seen(*pods: JSON, opened: tuple[str, ...] = (), **stores: list[JSON]) -> View:
    return observe(KEY, filled(**{"workloads": [ray_cluster()], "pods": list(pods), **stores}), DEFAULTS, opened)


def names(view: View) -> list[str]:
    return [member.pod.metadata.name for member in view.members]


def test_members_are_the_living_pods_of_the_workload_by_name() -> None:
    view = seen(
        ray_pod("w-1"),
        HEAD,
        ray_pod("w-0"),
        ray_pod("ended", phase="Succeeded"),
        ray_pod("dying", meta={"deletionTimestamp": "2026-11-21T10:00:00Z"}),
        ray_pod("of-a-former-life", owner_uid="uid-of-old"),
    )
    assert names(view) == ["head", "w-0", "w-1"]
    assert [member.role for member in view.members] == ["headgroup", "workers", "workers"]


def test_a_member_is_held_until_its_gate_is_open_or_was_opened_by_us() -> None:
    view = seen(ray_pod("w-0"), ray_pod("w-1", held=False), ray_pod("w-2"), opened=("uid-w-2",))
    assert [member.held for member in view.members] == [True, False, False]


def test_requests_are_those_of_the_pod_not_of_the_template() -> None:
    """Operators add containers, admission adds defaults."""
    view = seen(ray_pod("w-0", **template("7")["spec"]))
    assert view.members[0].requests == amounts(cpu="7", memory="1Gi")


@pytest.mark.parametrize(
    ("pods", "assembled"),
    [
        pytest.param([], False, id="none"),
        pytest.param([HEAD, ray_pod("w-0")], False, id="a worker lacks"),
        pytest.param([ray_pod("w-0"), ray_pod("w-1"), ray_pod("w-2")], False, id="enough pods, but no head"),
        pytest.param([HEAD, ray_pod("w-0"), ray_pod("w-1")], True, id="all"),
        pytest.param([HEAD, ray_pod("w-0"), ray_pod("w-1"), ray_pod("w-2")], True, id="more than all"),
        pytest.param([HEAD, ray_pod("w-0"), ray_pod("w-1", phase="Failed")], False, id="one has ended"),
    ],
)
def test_assembled_means_that_every_role_has_its_minimum(pods: list[JSON], assembled: bool) -> None:  # noqa: FBT001
    assert seen(*pods).assembled is assembled


def test_without_a_workload_only_the_group_and_the_pods_it_left_behind_are_known() -> None:
    """Until the garbage collector has taken them they use what they use."""
    view = seen(HEAD, ray_pod("w-0", held=False), workloads=[], groups=[pod_group()])
    assert (view.decoded, view.gang) == (None, None)
    assert view.pod_group is not None
    assert [(member.role, member.held) for member in view.members] == [("", True), ("", False)]


def test_a_workload_of_the_same_name_and_another_uid_is_another() -> None:
    assert seen(HEAD, workloads=[ray_cluster(uid="uid-new")]).decoded is None


def test_the_group_alone_leads_to_its_workload() -> None:
    view = seen(groups=[pod_group()])
    assert view.decoded is not None
    assert view.gang is not None


def test_pods_of_a_new_life_lead_to_the_new_workload_when_the_old_one_is_gone() -> None:
    view = seen(
        ray_pod("head", "headgroup", owner_uid="uid-new"),
        workloads=[ray_cluster(uid="uid-new")],
        groups=[pod_group(owner_uid="uid-old")],
    )
    assert view.decoded is not None
    assert view.decoded.metadata.uid == "uid-new"
    assert names(view) == ["head"]


def test_a_workload_that_is_not_musters_has_no_gang() -> None:
    view = seen(HEAD, workloads=[ray_cluster(labels={})])
    assert (view.gang, view.intent, view.error) == (None, None, "")
    assert view.workload is not None


def test_numbers_that_make_no_gang_are_told() -> None:
    view = seen(HEAD, workloads=[ray_cluster(workers(replicas=-1))])
    assert view.gang is None
    assert view.error.startswith("spec.workerGroupSpecs[0].replicas: -1 is negative")
    assert names(view) == ["head"]


def test_a_pod_whose_amounts_cannot_be_read_is_told() -> None:
    view = seen(HEAD, ray_pod("w-0", overhead={"cpu": "x"}))
    assert view.error.startswith("pod w-0: spec.overhead.cpu: ")


def test_a_pytorch_job_is_seen_alike() -> None:
    cluster = filled(
        workloads=[pytorch_job(policy={"queue": "q"})],
        pods=[pytorch_pod("m", "master"), pytorch_pod("w-0"), pytorch_pod("w-1")],
    )
    view = observe(GangKey("team", "train"), cluster, DEFAULTS)
    assert view.assembled


@pytest.mark.parametrize(
    ("group", "ours", "marked"),
    [
        pytest.param(pod_group(), True, "", id="ours"),
        pytest.param(pod_group(admitted="uid-demo"), True, "uid-demo", id="ours and marked"),
        pytest.param(pod_group(ours=False), False, "", id="somebody else's"),
    ],
)
def test_whose_the_group_is(group: JSON, ours: bool, marked: str) -> None:  # noqa: FBT001
    view = seen(groups=[group])
    assert (view.ours, view.marked_for) == (ours, marked)
