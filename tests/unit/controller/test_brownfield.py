"""Workloads of which pods came without muster: left alone until all pods are new, and then managed."""

from muster.model.names import ADMITTED, GROUP_NAME, STATE
from tests.support.cases import cases
from tests.support.controller.harness import Harness
from tests.support.manifests.observed import GROUP, JSON, old_pod, pod_group, queue, ray_cluster, ray_pod, workers

OLD = [old_pod("demo-head", "headgroup"), old_pod("demo-w-0"), old_pod("demo-w-1")]


def harness_of(*pods: JSON, **changes: list[JSON]) -> Harness:
    """A cluster of three that asks for a gang, in a queue of 4."""
    return Harness(**{"workloads": [ray_cluster()], "pods": list(pods), "queues": [queue(cpu="4")], **changes})


def said(harness: Harness) -> list[tuple[str, str]]:
    """Reason and note of every event on the workload."""
    return [
        (write.body["reason"], write.body["note"])
        for write in harness.client.writes
        if write.verb == "create" and write.body["regarding"]["kind"] == "RayCluster"
    ]


async def test_a_workload_older_than_muster_is_unmanaged_and_told_why() -> None:
    harness = harness_of(*OLD)
    assert await harness.settle() == ["create Event"]
    reason = "left alone until the pods are gone that came without muster: demo-head, demo-w-0, demo-w-1"
    assert said(harness) == [("NotManaged", reason)]


async def test_many_pods_are_counted_and_not_all_named() -> None:
    harness = await harness_of(*(old_pod(f"w-{n}") for n in range(9))).settled()
    assert said(harness)[0][1].endswith(": w-0, w-1, w-2 and 6 more")


async def test_a_workload_that_asks_for_nothing_is_nobodys_business() -> None:
    assert await harness_of(*OLD, workloads=[ray_cluster(labels={})]).settle() == []


async def test_nor_is_one_whose_numbers_would_make_no_gang() -> None:
    broken = ray_cluster(workers(replicas=-1), labels={})
    assert await harness_of(*OLD, workloads=[broken]).settle() == []


@cases("groups", ("no group", []), ("the operator's group", [pod_group(ours=False)]))
async def test_pods_that_an_operator_bound_are_its_own(groups: list[JSON]) -> None:
    """The operator's own gang flag is on, or was when they were made."""
    bound = [{**pod, "metadata": {**pod["metadata"], "annotations": {GROUP_NAME: GROUP}}} for pod in OLD]
    harness = harness_of(*bound, groups=groups)
    assert await harness.settle() == ["create Event"]
    note = 'its pods came bound to the PodGroup "ray-demo-pg"; muster leaves them to who made it'
    assert said(harness) == [("External", note)]


async def test_pods_that_volcano_bound_to_a_group_of_its_own_making_are_nobodys_gang() -> None:
    """They name the scheduler and no PodGroup; Volcano makes one by the UID of their owner."""
    theirs = {"schedulerName": "volcano"}
    old = old_pod("demo-head", "headgroup", **theirs)
    old["metadata"]["annotations"] = {GROUP_NAME: "podgroup-uid-demo"}
    harness = await harness_of(old).settled()
    assert [reason for reason, _ in said(harness)] == ["NotManaged"]


@cases(
    "gone",
    ("finished", {"phase": "Succeeded"}),
    ("being deleted", {"meta": {"deletionTimestamp": "2026-11-21T10:00:00Z"}}),
    ("of a former workload of this name", {"owner_uid": "uid-former"}),
)
async def test_pods_that_are_on_their_way_out_do_not_count(gone: JSON) -> None:
    new = [ray_pod("new-head", "headgroup"), ray_pod("new-0"), ray_pod("new-1")]
    harness = await harness_of(*new, old_pod("old", **gone)).settled()
    assert harness.open_pods() == ["new-0", "new-1", "new-head", "old"]
    assert harness.annotations(GROUP)[STATE] == "Admitted"


async def test_it_is_managed_when_all_of_its_pods_are_new() -> None:
    harness = await harness_of(*OLD).settled()
    harness.client.pods.clear()
    await harness.catch_up()
    harness.client.pods.update({pod["metadata"]["name"]: pod for pod in members()})
    await harness.catch_up()
    assert harness.open_pods() == ["demo-head", "demo-w-0", "demo-w-1"]
    assert harness.annotations(GROUP)[ADMITTED] == "uid-demo"
    assert [reason for reason, _ in said(harness)] == ["NotManaged", "Admitted"]


def members() -> list[JSON]:
    return [ray_pod("demo-head", "headgroup"), ray_pod("demo-w-0"), ray_pod("demo-w-1")]


async def test_held_pods_beside_old_ones_go_one_by_one_as_there_is_room() -> None:
    """The webhook had not seen the first pod yet: they are no gang that could wait for it."""
    harness = await harness_of(OLD[0], *members()[1:], queues=[queue(cpu="1")]).settled()
    assert harness.open_pods() == ["demo-head", "demo-w-0"]
    harness.set_queue(queue(cpu="2"))
    await harness.settle()
    assert harness.open_pods() == ["demo-head", "demo-w-0", "demo-w-1"]
    assert harness.client.groups[GROUP]["spec"] == {"minMember": 1, "queue": "q"}
    assert harness.annotations(GROUP)[STATE] == "NotManaged"


async def test_a_group_that_asks_for_the_whole_gang_does_not_keep_a_part_of_it() -> None:
    """Volcano starts no pod of a PodGroup whose minMember cannot come together."""
    harness = await harness_of(*members(), groups=[pod_group(admitted="uid-demo")], queues=[queue(cpu="9")]).settled()
    harness.client.pods["demo-w-1"] = old_pod("demo-w-1")
    await harness.catch_up()
    assert harness.client.groups[GROUP]["spec"] == {"minMember": 1, "queue": "q"}


async def test_its_numbers_and_its_mark_come_back_with_the_last_old_pod_gone() -> None:
    """One worker slipped past the webhook; the others run on, and count when it is replaced."""
    harness = await harness_of(*members(), queues=[queue(cpu="3")]).settled()
    whole = harness.client.groups[GROUP]["spec"]
    harness.client.pods["demo-w-1"] = old_pod("demo-w-1")
    await harness.catch_up()
    harness.client.pods["demo-w-1"] = ray_pod("demo-w-1", meta={"uid": "uid-next"})
    await harness.catch_up()
    assert harness.client.groups[GROUP]["spec"] == whole
    assert harness.annotations(GROUP)[ADMITTED] == "uid-demo"
    assert harness.open_pods() == ["demo-head", "demo-w-0", "demo-w-1"]


async def test_what_was_admitted_before_does_not_count_for_pods_that_are_all_new() -> None:
    """The place is another's by then."""
    other = ray_cluster(workers(replicas=1), name="other", uid="uid-other")
    rivals = [
        ray_pod("other-head", "headgroup", cluster="other", owner_uid="uid-other"),
        ray_pod("other-w", cluster="other", owner_uid="uid-other"),
    ]
    harness = await harness_of(*members(), workloads=[ray_cluster(), other], queues=[queue(cpu="4")]).settled()
    harness.client.pods.clear()
    harness.client.pods["demo-w-1"] = old_pod("demo-w-1")
    harness.client.pods.update({pod["metadata"]["name"]: pod for pod in rivals})
    await harness.catch_up()
    assert harness.open_pods() == ["demo-w-1", "other-head", "other-w"]
    del harness.client.pods["demo-w-1"]
    harness.client.pods.update({pod["metadata"]["name"]: pod for pod in members()})
    await harness.catch_up()
    assert harness.open_pods() == ["other-head", "other-w"]
    assert harness.annotations(GROUP)[STATE] == "WaitingForQuota"


async def test_unlabelled_and_labelled_again_while_it_runs_it_is_as_before() -> None:
    harness = await harness_of(*members()).settled()
    whole = harness.client.groups[GROUP]["spec"]
    harness.set_workload(ray_cluster(labels={}))
    await harness.settle()
    assert (harness.annotations(GROUP)[STATE], harness.client.groups[GROUP]["spec"]["minMember"]) == ("NotManaged", 1)
    harness.set_workload(ray_cluster())
    await harness.settle()
    assert (harness.annotations(GROUP)[STATE], harness.client.groups[GROUP]["spec"]) == ("Admitted", whole)


async def test_what_held_pods_of_a_workload_left_alone_take_is_not_given_away() -> None:
    """Their gates are open, so that Volcano may place them in their queue."""
    other = ray_cluster(name="other", uid="uid-other")
    rivals = [
        ray_pod("other-head", "headgroup", cluster="other", owner_uid="uid-other"),
        *(ray_pod(f"other-{n}", cluster="other", owner_uid="uid-other") for n in range(2)),
    ]
    harness = await harness_of(OLD[0], *members()[1:], workloads=[ray_cluster(), other]).settled()
    harness.client.pods.update({pod["metadata"]["name"]: pod for pod in rivals})
    await harness.catch_up()
    assert harness.annotations("ray-other-pg")[STATE] == "WaitingForQuota"


async def test_a_suspended_workload_gives_its_old_pods_no_say() -> None:
    harness = harness_of(*OLD, workloads=[ray_cluster(suspend=True)])
    assert await harness.settle() == []
