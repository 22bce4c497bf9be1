"""A PodGroup that others touch: what muster owns is put right, what it does not own stays, and nobody fights."""

import json

import pytest

from muster.kube.errors import ApiError
from muster.model.names import ADMITTED, ADMITTED_AT, ADMITTED_FOR, MANAGED_BY, MESSAGE, STATE
from muster.model.objects import PodGroup
from muster.workloads.kubeflow import PYTORCH_JOB
from tests.support.cases import cases
from tests.support.controller.harness import Harness
from tests.support.controller.stores import workload_store
from tests.support.controller.two_gangs import members
from tests.support.manifests.observed import (
    GROUP,
    JSON,
    KEY,
    QUEUE_LABELS,
    made,
    pod_group,
    pytorch_job,
    pytorch_pod,
    queue,
    ray_cluster,
    ray_pod,
    workers,
)


async def running(**cluster: JSON) -> Harness:
    """A gang of 3 cpu that is admitted, in a queue of 4."""
    workload = ray_cluster(**cluster)  # type: ignore[arg-type]
    return await Harness(workloads=[workload], pods=members(), queues=[queue(cpu="4", memory="6Gi")]).settled()


async def settled(harness: Harness) -> list[str]:
    """What was written of the PodGroup by what the workload says, until there was nothing to do."""
    harness.watch()
    harness.queue.add(KEY)
    return [write for write in await harness.settle() if write == f"muster {GROUP}"]


async def test_an_annotation_and_a_topology_that_the_workload_loses_go_from_its_group() -> None:
    topology = {"volcano.sh/network-topology-mode": "hard"}
    harness = await running(annotations={"volcano.sh/x": "y"}, labels={**QUEUE_LABELS, **topology})
    assert harness.annotations(GROUP)["volcano.sh/x"] == "y"
    assert harness.client.groups[GROUP]["spec"]["networkTopology"] == {"mode": "hard"}
    harness.client.groups[GROUP]["metadata"]["annotations"]["example.com/theirs"] = "z"
    harness.set_workload(ray_cluster())
    assert await settled(harness) == [f"muster {GROUP}"]
    assert "volcano.sh/x" not in harness.annotations(GROUP)
    assert harness.annotations(GROUP)["example.com/theirs"] == "z"
    assert "networkTopology" not in harness.client.groups[GROUP]["spec"]


async def test_somebody_who_writes_back_is_answered_less_and_less_often() -> None:
    """An hour of a tool that puts its own number back every five seconds."""
    harness = await running()
    harness.client.pods["demo-head"]["spec"]["nodeName"] = "n"
    repairs = 0
    for _ in range(720):
        harness.client.groups[GROUP]["spec"]["minMember"] = 9
        repairs += len(await settled(harness))
        harness.now += 5
    assert 12 <= repairs <= 25


@cases(
    "theirs",
    ("state and words", {STATE: "Bogus", MESSAGE: "bogus"}),
    ("the mark", {ADMITTED: "bogus"}),
    ("its time", {ADMITTED_AT: ""}),
)
async def test_somebody_who_writes_over_musters_annotations_is_answered_less_and_less_often(theirs: JSON) -> None:
    """A quarter of an hour of a tool that does so every three seconds."""
    harness = await running()
    for pod in harness.client.pods.values():
        pod["spec"]["nodeName"] = "node-1"
    harness.client.groups[GROUP]["status"]["phase"] = "Running"
    await harness.catch_up()
    right, repairs = dict(harness.annotations(GROUP)), 0
    for _ in range(300):
        harness.client.groups[GROUP]["metadata"]["annotations"] |= theirs
        harness.watch()
        harness.queue.add(KEY)
        repairs += len([write for write in await harness.settle() if write != "create Event"])
        harness.now += 3
    assert 10 <= repairs <= 15
    assert harness.open_pods() == ["demo-head", "demo-w-0", "demo-w-1"]
    harness.now += 300
    harness.queue.add(KEY)
    await harness.settle()
    assert harness.annotations(GROUP) == right


async def test_no_gate_of_a_gang_that_comes_again_opens_before_its_mark_is_back() -> None:
    """Somebody takes the mark away whenever all its pods have crashed, and it is written less and less often."""
    harness = await running()
    marked = []
    for life in range(6):
        annotations = harness.client.groups[GROUP]["metadata"]["annotations"]
        annotations.pop(ADMITTED, None)
        crashed = [
            {**one, "metadata": {**one["metadata"], "uid": f"{one['metadata']['uid']}-{life}"}} for one in members()
        ]
        harness.client.pods |= {one["metadata"]["name"]: one for one in crashed}
        harness.watch()
        harness.queue.add(KEY)
        await harness.work()
        marked.append(ADMITTED in harness.annotations(GROUP))
        assert (harness.open_pods() != []) == marked[-1]
    assert marked == [True, True, False, False, False, False]
    harness.now += 1
    harness.queue.add(KEY)
    await harness.settle()
    assert ADMITTED in harness.annotations(GROUP)
    assert harness.open_pods() == ["demo-head", "demo-w-0", "demo-w-1"]


@pytest.mark.parametrize("theirs", ["Bogus", None])
async def test_the_state_is_a_label_too_and_stays_the_one_of_the_annotation(theirs: str | None) -> None:
    """By which `kubectl get podgroups` shows and selects it; it is written with the annotation, in one write."""
    harness = await running()
    labels = harness.client.groups[GROUP]["metadata"]["labels"]
    assert labels == {MANAGED_BY: "muster", STATE: harness.annotations(GROUP)[STATE]}
    marks = [write for write in harness.client.writes if write.manager == "muster-ledger"]
    assert [write.body["metadata"]["labels"][STATE] for write in marks] == [
        write.body["metadata"]["annotations"][STATE] for write in marks
    ]
    labels.pop(STATE)
    harness.client.groups[GROUP]["metadata"]["labels"] = labels | ({STATE: theirs} if theirs else {})
    harness.watch()
    harness.queue.add(KEY)
    await harness.settle()
    now = harness.client.groups[GROUP]["metadata"]
    assert now["labels"] == {MANAGED_BY: "muster", STATE: now["annotations"][STATE]}


async def test_a_gang_whose_group_is_fought_over_is_served_all_the_same() -> None:
    harness = await running()
    for _ in range(4):
        harness.client.groups[GROUP]["spec"]["minMember"] = 2
        await settled(harness)
    assert harness.client.groups[GROUP]["spec"]["minMember"] == 2
    harness.client.pods["demo-w-9"] = ray_pod("demo-w-9")
    del harness.client.pods["demo-w-1"]
    await harness.catch_up()
    assert harness.open_pods() == ["demo-head", "demo-w-0", "demo-w-9"]


async def test_a_leader_that_comes_in_the_middle_of_it_believes_no_claim_that_is_not_the_gangs() -> None:
    """A tenant writes a claim of 100 cpu again and again; the queue has 4, and a member more fits beside three."""
    harness = await running()
    theirs = {"cpu": "100", "memory": "100Gi"}
    for _ in range(5):
        harness.client.groups[GROUP]["spec"]["minResources"] = dict(theirs)
        await settled(harness)
    harness.client.pods |= {name: ray_pod(name) for name in (f"demo-x-{number}" for number in range(6))}
    harness.watch()
    assert harness.client.groups[GROUP]["spec"]["minResources"] == theirs
    harness.restart()
    await harness.settle()
    assert harness.open_pods() == ["demo-head", "demo-w-0", "demo-w-1", "demo-x-0"]
    assert str(harness.term.ledger.used("q")["cpu"]) == "4"


@cases("broken", ("raised", False), ("broken by an edit", True))
async def test_a_new_leader_believes_what_was_written_with_the_mark(broken: bool) -> None:
    """A tenant raises his workload, writes the group's numbers after it, and strips who owns them."""
    harness = await scaled_up()
    assert json.loads(harness.annotations(GROUP)[ADMITTED_FOR]) == {**GIVEN, "queue": "q"}
    group = harness.client.groups[GROUP]
    group["spec"] |= {
        "minMember": 5,
        "minTaskMember": {"headgroup": 1, "workers": 4},
        "minResources": {"cpu": "100" if broken else "5", "memory": "5Gi"},
    }
    group["metadata"]["managedFields"] = []
    if broken:
        harness.set_workload(ray_cluster(workers(replicas=-1)))
    harness.watch()
    harness.restart()
    assert str((harness.term.ledger.holds(KEY) or {})["cpu"]) == "4"
    if not broken:
        await harness.settle()
        assert {field: harness.client.groups[GROUP]["spec"][field] for field in GIVEN} == GIVEN
        assert len(harness.open_pods()) == 4


async def test_what_a_gang_was_admitted_for_is_written_again_when_it_becomes_less() -> None:
    harness = await scaled_up()
    harness.set_workload(ray_cluster(workers(replicas=1)))
    await harness.settle()
    assert json.loads(harness.annotations(GROUP)[ADMITTED_FOR])["minTaskMember"] == {"headgroup": 1, "workers": 1}


GIVEN = {
    "minMember": 3,
    "minTaskMember": {"headgroup": 1, "workers": 2},
    "minResources": {"cpu": "3", "memory": "3Gi"},
}


async def scaled_up() -> Harness:
    """A gang that was admitted for 3 cpu, and that wants 5 by now; its queue has 4."""
    harness = await running()
    harness.set_workload(ray_cluster(workers(replicas=4)))
    harness.client.pods |= {name: ray_pod(name) for name in ("demo-w-2", "demo-w-3")}
    await harness.settle()
    return harness


async def test_a_group_that_somebody_deletes_comes_back_with_what_its_gang_was_admitted_for() -> None:
    harness = await scaled_up()
    opened = harness.open_pods()
    assert len(opened) == 4
    harness.client.groups.clear()
    harness.client.applied.clear()
    await settled(harness)
    spec = harness.client.groups[GROUP]["spec"]
    assert {field: spec[field] for field in GIVEN} == GIVEN
    assert harness.open_pods() == opened


@cases("field, taken", ("a role", "minTaskMember", "workers"), ("a resource", "minResources", "memory"))
async def test_a_number_that_somebody_takes_out_of_an_admitted_group_comes_back(field: str, taken: str) -> None:
    """It is nobody's field any more; and what the workload has come to want since does not come with it."""
    harness = await scaled_up()
    group = harness.client.groups[GROUP]
    del group["spec"][field][taken]
    for entry in group["metadata"]["managedFields"]:
        entry["fieldsV1"].get("f:spec", {}).get(f"f:{field}", {}).pop(f"f:{taken}", None)
    await settled(harness)
    assert {name: harness.client.groups[GROUP]["spec"][name] for name in GIVEN} == GIVEN


async def test_what_a_former_workload_of_the_name_was_admitted_for_means_nothing_to_the_next() -> None:
    harness = await running()
    for pod in harness.client.pods.values():
        pod["metadata"]["ownerReferences"][0]["uid"] = "uid-new"
        pod["spec"]["schedulingGates"] = [{"name": "muster.dev/gang"}]
    harness.client.pods["demo-w-2"] = ray_pod("demo-w-2", owner_uid="uid-new")
    for number, pod in enumerate(harness.client.pods.values()):
        pod["metadata"]["uid"] = f"uid-new-{number}"
    harness.set_workload(ray_cluster(workers(replicas=3), uid="uid-new"))
    await settled(harness)
    assert harness.client.groups[GROUP]["spec"]["minMember"] == 4
    assert len(harness.open_pods()) == 4


async def test_what_an_admitted_gang_cannot_follow_stands_in_its_message() -> None:
    harness = await running()
    harness.set_workload(ray_cluster(workers(replicas=4), labels={"volcano.sh/queue-name": "other"}))
    await harness.settle()
    assert harness.annotations(GROUP)[MESSAGE].endswith('; from its next admission on: queue "other", minMember 5')
    harness.set_workload(ray_cluster())
    await harness.settle()
    assert "admission on" not in harness.annotations(GROUP)[MESSAGE]


async def test_a_group_that_an_operator_makes_in_the_same_moment_is_not_touched() -> None:
    """It is in the cluster, and the watch has not shown it."""
    harness = Harness(workloads=[ray_cluster()], pods=members(), queues=[queue(cpu="4")])
    theirs = pod_group(ours=False, minMember=7)
    harness.client.groups[GROUP] = theirs
    before = made(PodGroup, theirs)
    with pytest.raises(ApiError, match="Conflict"):
        await harness.work()
    assert made(PodGroup, harness.client.groups[GROUP]) == before
    await harness.catch_up()
    assert [reason for _, reason, _ in harness.events()] == ["ForeignPodGroup"]
    assert harness.open_pods() == []


async def test_a_group_that_was_replaced_in_the_same_moment_is_not_touched() -> None:
    """Somebody deleted ours and made one of the same name; the watch shows ours still."""
    harness = await running()
    harness.client.groups[GROUP] = pod_group(ours=False, meta={"uid": "theirs", "labels": {}})
    harness.set_workload(ray_cluster(workers(replicas=1)))
    with pytest.raises(ApiError, match="Conflict"):
        await harness.work()
    assert MANAGED_BY not in harness.client.groups[GROUP]["metadata"]["labels"]
    assert harness.client.groups[GROUP]["spec"]["minMember"] == 3


async def test_a_new_group_that_the_watch_never_shows_is_made_again() -> None:
    """Deleted before the watch had shown it: for a moment that looks like a watch that is late."""
    harness = Harness(workloads=[ray_cluster()], pods=members()[:1], queues=[queue(cpu="4")])
    assert await harness.work() == [f"muster {GROUP}"]
    harness.client.groups.clear()
    harness.queue.add(KEY)
    assert await harness.work() == []
    harness.now += 6
    harness.queue.add(KEY)
    assert (await harness.work())[:2] == ["annotate demo", f"muster {GROUP}"]


def namesakes() -> Harness:
    """A RayCluster `demo`, and a PyTorchJob with the name of its PodGroup."""
    job = pytorch_job(name=GROUP, uid="uid-job", policy={"queue": "q"})
    pods = []
    for number, role in enumerate(("master", "worker", "worker")):
        of_job = pytorch_pod(f"job-{number}", role)
        of_job["metadata"]["ownerReferences"][0].update(name=GROUP, uid="uid-job")
        of_job["metadata"]["labels"]["muster.dev/gang"] = GROUP
        of_job["metadata"]["annotations"]["scheduling.k8s.io/group-name"] = GROUP
        pods.append(of_job)
    return Harness(workloads=[ray_cluster(), job], pods=[*members(), *pods], queues=[queue(cpu="9")])


async def test_a_workload_whose_group_is_anothers_is_told_so_and_waits() -> None:
    harness = await namesakes().settled()
    assert harness.open_pods() == ["demo-head", "demo-w-0", "demo-w-1"]
    told = [write.body for write in harness.client.writes if write.verb == "create"]
    said = [(event["regarding"]["kind"], event["note"]) for event in told if event["reason"] == "ForeignPodGroup"]
    assert said == [
        (
            "PyTorchJob",
            (
                'the PodGroup "ray-demo-pg" belongs to RayCluster "demo"; this workload waits until the other is gone; '
                "rename one of them"
            ),
        )
    ]


async def test_the_second_of_two_namesakes_runs_when_the_first_is_gone() -> None:
    harness = await namesakes().settled()
    harness.drop_workload(ray_cluster())
    for name in [name for name in harness.client.pods if name.startswith("demo")]:
        del harness.client.pods[name]
    await harness.catch_up()
    assert harness.open_pods() == ["job-0", "job-1", "job-2"]
    assert harness.client.groups[GROUP]["metadata"]["ownerReferences"][0]["uid"] == "uid-job"
    assert harness.annotations(GROUP)[STATE] == "Admitted"
    assert workload_store(harness.cluster, PYTORCH_JOB).get("team", GROUP) is not None
