"""How gates are opened, and what happens when the apiserver does not take it."""

import pytest

from controller.admission import patch_gates
from controller.apiserver import NotLeaderError, Writer
from muster.kube.errors import ApiError
from muster.model.pods import Pod
from muster.planning.snapshot import Member
from tests.support.controller.recording_client import RecordingClient
from tests.support.manifests.observed import amounts, as_client, made, ray_pod


def member(name: str, role: str = "workers", *, held: bool = True, cpu: str = "1") -> Member:
    return Member(made(Pod, ray_pod(name, role, held=held)), role, amounts(cpu=cpu), held)


def pods_of(client: RecordingClient, *held: str) -> list[Member]:
    for name in held:
        client.pods[name] = ray_pod(name)
    return [member(name) for name in held]


def writer(client: RecordingClient, budget: float = 60.0) -> Writer:
    return Writer(as_client(client), lambda: budget)


async def test_a_gate_is_taken_off_by_name_and_uid() -> None:
    """No index that may be stale by now, and never another pod of the same name."""
    client = RecordingClient()
    assert await patch_gates(writer(client), pods_of(client, "a")) == (["uid-a"], [])
    assert client.writes[0].body == {
        "metadata": {"uid": "uid-a"},
        "spec": {"schedulingGates": [{"$patch": "delete", "name": "muster.dev/gang"}]},
    }


async def test_gates_are_opened_in_the_order_of_the_plan() -> None:
    client = RecordingClient()
    await patch_gates(writer(client), pods_of(client, "c", "a", "b"))
    assert [write.name for write in client.writes] == ["c", "a", "b"]


@pytest.mark.parametrize("status", [404, 409])
async def test_a_pod_that_is_gone_or_another_is_skipped_and_not_counted_as_open(status: int) -> None:
    """A conflict may also come of many writers at once: then the gate is still there and must be tried again."""
    client = RecordingClient(fails={"patch a": [ApiError(status, "", "")]})
    assert await patch_gates(writer(client), pods_of(client, "a", "b")) == (["uid-b"], [])


async def test_one_failure_does_not_keep_the_others_from_being_tried() -> None:
    client = RecordingClient(fails={"patch a": [broken := ApiError(500, "", "broken")]})
    members = pods_of(client, "a", "b", "c")
    assert await patch_gates(writer(client), members) == (["uid-b", "uid-c"], [(members[0], broken)])
    assert [write.name for write in client.writes] == ["a", "b", "c"]


async def test_nothing_is_opened_without_the_lease() -> None:
    client = RecordingClient()
    with pytest.raises(NotLeaderError, match=r"^the lease is no longer ours$"):
        await patch_gates(writer(client, 0.0), pods_of(client, "a", "b"))
    assert client.writes == []
