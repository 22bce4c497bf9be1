"""JobSets that come in waves: the first is the gang, the others join it role by role."""

import json
from typing import Any

import pytest

from muster.model.names import (
    ADMITTED,
    GANG,
    GATE,
    GROUP_NAME,
    HOLD,
    MESSAGE,
    PASSED_IN,
    PASSED_SINCE,
    POD_GROUP_LABEL,
    REQUEUE_AFTER,
    STATE,
    WORKLOAD,
)
from muster.model.times import text_of
from muster.queueing.ledger import GangKey
from muster.schedulers import SCHEDULERS
from muster.workloads.jobset import JOB_SET, JobSet
from muster.workloads.ray import RAY_CLUSTER, RayCluster
from tests.support.cases import cases
from tests.support.controller.bypass_queue import OF_A_JOB
from tests.support.controller.harness import Harness
from tests.support.controller.stores import workload_store
from tests.support.manifests.observed import (
    JSON,
    NAMESPACE,
    QUEUE_LABELS,
    made,
    pod,
    queue,
    ray_cluster,
    ray_pod,
    template,
    workers,
)


def waves(name: str = "set", **succeeded: int) -> JSON:
    """A JobSet of one pod, and then of two, of which so many Jobs have succeeded."""
    after = {"dependsOn": [{"name": "first", "status": "Complete"}]}
    spec = {"template": template(), "parallelism": 2, "completions": 2}
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": name, "namespace": NAMESPACE, "uid": f"uid-{name}", "labels": QUEUE_LABELS},
        "spec": {
            "replicatedJobs": [
                {"name": "first", "template": {"spec": {"template": template()}}},
                {"name": "then", "template": {"spec": spec}, **after},
            ]
        },
        "status": {"replicatedJobsStatus": [{"name": job, "succeeded": count} for job, count in succeeded.items()]},
    }


def of_wave(name: str, role: str, of: str = "set", **rest: Any) -> JSON:  # noqa: ANN401 - whatever `pod` takes
    """A held pod of the JobSet, as the webhook makes it."""
    owner = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "name": of, "uid": f"uid-{of}"}
    labels = {"jobset.sigs.k8s.io/jobset-name": of, "jobset.sigs.k8s.io/replicatedjob-name": role, GANG: of}
    annotations = {GROUP_NAME: of, WORKLOAD: json.dumps({**owner, "controller": True})}
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "name": f"{of}-{role}",
        "uid": f"uid-{of}-{role}",
        "controller": True,
    }
    gates = {"schedulingGates": [{"name": GATE}], **rest}
    return pod(name, owner=job, labels=labels, annotations=annotations, **gates)


async def test_a_jobset_whose_first_wave_is_over_starts_as_a_gang_of_what_is_left() -> None:
    """Its first wave ran without muster, or before it was suspended, and does not come again."""
    harness = await Harness(
        pods=[of_wave("then-0", "then")], workloads=[waves(first=1)], queues=[queue(cpu="2")]
    ).settled()
    assert harness.client.groups["set"]["spec"]["minTaskMember"] == {"then": 2}
    assert harness.open_pods() == [], "a part of it was started"
    harness.client.pods["then-1"] = of_wave("then-1", "then")
    await harness.catch_up()
    assert harness.open_pods() == ["then-0", "then-1"]


async def test_an_admitted_jobset_stays_what_it_was_admitted_as_when_its_first_wave_is_over() -> None:
    """It may start again from there, after a failure, and its place is kept."""
    harness = await Harness(pods=[of_wave("first", "first")], workloads=[waves()], queues=[queue(cpu="4")]).settled()
    before = harness.client.groups["set"]["spec"]
    harness.client.pods = {name: of_wave(name, "then") for name in ("then-0", "then-1")}
    workload_store(harness.cluster, JOB_SET).apply("modified", made(JobSet, waves(first=1)))
    await harness.catch_up()
    assert harness.open_pods() == ["then-0", "then-1"]
    assert harness.client.groups["set"]["spec"] == before


@cases("at_once", ("in one moment", True), ("while a pod of before runs", False))
@cases("dies", ("one leader", False), ("another leader", True))
async def test_a_jobset_resumed_in_the_middle_that_restarts_queues_again_as_a_whole(
    *, at_once: bool, dies: bool
) -> None:
    """It was admitted for its second wave, and its failurePolicy begins with the first one: a gang never admitted."""
    jobset, resumed = waves(), waves(then=1)
    for one in (jobset, resumed):
        last, start = one["spec"]["replicatedJobs"]
        last["dependsOn"] = [{**start.pop("dependsOn")[0], "name": "then"}]
        one["spec"]["replicatedJobs"] = [start, last]
    harness = await Harness(pods=[of_wave("f", "first")], workloads=[resumed], queues=[queue(cpu="2")]).settled()
    assert harness.open_pods() == ["f"]
    harness.set_workload(jobset)
    await comes(harness, "other", "1")
    assert harness.open_pods() == ["f", "other"]
    for name in ("then-0", "then-1"):
        harness.client.pods[name] = of_wave(name, "then")
    if not at_once:
        await harness.catch_up()
        assert harness.open_pods() == ["f", "other"], "a part of it was started"
    if dies:
        harness.restart()
    del harness.client.pods["f"]
    await harness.catch_up()
    assert harness.open_pods() == ["other"], "a part of it was started"
    assert harness.annotations("set")[STATE] == "WaitingForQuota"
    await goes(harness, "other")
    assert harness.open_pods() == ["then-0", "then-1"]


async def test_a_jobset_that_restarts_as_it_was_admitted_has_kept_its_place() -> None:
    harness = await second_wave("2500m", "set", beside="runs")
    for name in ("set-0", "set-1"):
        del harness.client.pods[name]
    harness.set_workload(waves())
    harness.client.pods["again"] = of_wave("again", "first")
    await harness.catch_up()
    assert harness.open_pods() == ["again", "runs"]


def cluster(name: str, cpu: str) -> tuple[JSON, JSON]:
    """A RayCluster of one pod, younger than any JobSet here, and its pod."""
    meta = {**OF_A_JOB, "creationTimestamp": "2026-11-21T11:00:00Z"}
    uid, head = f"uid-{name}", template(cpu)
    pod_ = ray_pod(name, "headgroup", cluster=name, owner_uid=uid, **head["spec"])
    return ray_cluster(workers(replicas=0), name=name, uid=uid, head=head, meta=meta), pod_


async def second_wave(cpu: str, *names: str, beside: str = "", **annotations: str) -> Harness:
    """JobSets whose first wave is over, and whose second one has come, in a queue of so many cpu; `beside` runs one."""
    others = [cluster(beside, "1")] if beside else []
    harness = await Harness(
        pods=[*(of_wave(f"{name}-first", "first", name) for name in names), *(pod for _, pod in others)],
        workloads=[*(waves(name) for name in names), *(workload for workload, _ in others)],
        queues=[queue(cpu=cpu, annotations={f"muster.dev/{key}": text for key, text in annotations.items()})],
    ).settled()
    for name in (*(f"{name}-first" for name in names), *([beside] if beside else [])):
        assert name in harness.open_pods()
        harness.client.pods[name]["spec"]["nodeName"] = "n"
    await harness.catch_up()
    for name in names:
        del harness.client.pods[f"{name}-first"]
        harness.client.pods |= {f"{name}-{n}": of_wave(f"{name}-{n}", "then", name) for n in range(2)}
    for name in names:
        workload_store(harness.cluster, JOB_SET).apply("modified", made(JobSet, waves(name, first=1)))
    await harness.catch_up()
    return harness


async def test_with_coscheduling_too_a_wave_comes_after_one_of_which_no_pod_is_left() -> None:
    """What is beyond the minimum waits until that has nodes; the first wave went with its node, which was removed."""

    class OfCoscheduling(Harness):
        scheduler = SCHEDULERS["scheduler-plugins-scheduler"]

    def of(name: str, role: str) -> JSON:
        one = of_wave(name, role, schedulerName=OfCoscheduling.scheduler.name)
        one["metadata"]["labels"][POD_GROUP_LABEL] = "set"
        return one

    harness = await OfCoscheduling(pods=[of("first", "first")], workloads=[waves()], queues=[queue(cpu="4")]).settled()
    assert harness.open_pods() == ["first"]
    harness.client.pods = {name: of(name, "then") for name in ("then-0", "then-1")}
    await harness.catch_up()
    assert harness.open_pods() == [], "the first wave may come again"
    harness.set_workload(waves(first=1))
    await harness.settle()
    assert harness.open_pods() == ["then-0", "then-1"]


async def test_others_are_evicted_for_a_later_wave_as_for_the_first() -> None:
    harness = await second_wave("1", "set")
    wave = harness.term.ledger.candidate(GangKey(NAMESPACE, "set").part("wave"))
    assert wave is not None
    assert wave.preempts


async def test_a_later_wave_says_what_it_waits_for() -> None:
    harness = await second_wave("1", "set")
    assert harness.open_pods() == []
    assert harness.annotations("set")[MESSAGE].endswith("; no room yet for cpu 2 and memory 2Gi more (set-0, set-1)")
    harness.set_queue(queue(cpu="2"))
    await harness.settle()
    assert harness.open_pods() == ["set-0", "set-1"]


async def test_others_start_beside_a_later_wave_that_has_the_room_of_the_one_before() -> None:
    """Pods that have succeeded are not made again: the room of the wave is all that the gang keeps."""
    harness = await second_wave("3", "set")
    assert harness.open_pods() == ["set-0", "set-1"]
    await comes(harness, "small", "1")
    assert harness.open_pods() == ["set-0", "set-1", "small"]


@pytest.mark.parametrize("by", ["workload", "queue"])
async def test_a_later_wave_of_a_gang_on_hold_waits_however_much_is_free(by: str) -> None:
    harness = await second_wave("1", "set")
    on_hold = {HOLD: "true"}
    if by == "workload":
        jobset = waves(first=1)
        harness.set_workload({**jobset, "metadata": {**jobset["metadata"], "annotations": on_hold}})
    harness.set_queue(queue(cpu="2", annotations=on_hold if by == "queue" else None))
    await harness.settle()
    assert harness.open_pods() == []
    said = f'(set-0, set-1) do not start: {"JobSet" if by == "workload" else "queue"} "'
    assert said in harness.annotations("set")[MESSAGE]
    harness.set_workload(waves(first=1))
    harness.set_queue(queue(cpu="2"))
    await harness.settle()
    assert harness.open_pods() == ["set-0", "set-1"]


async def test_a_later_wave_leaves_the_room_of_a_lost_pod_of_the_wave_before() -> None:
    """Beside it runs one that it does not wait for; a Job takes its time to replace a pod that has failed."""
    jobset = waves()
    then = jobset["spec"]["replicatedJobs"][1]
    jobset["spec"]["replicatedJobs"].append({"name": "serve", "template": then["template"]})
    names = ["first-0", "serve-0", "serve-1", "then-0", "then-1"]
    pods = [of_wave(name, name[:-2]) for name in names]
    harness = await Harness(pods=pods, workloads=[jobset], queues=[queue(cpu="3")]).settled()
    assert harness.open_pods() == names[:3]
    harness.client.pods["first-0"]["status"]["phase"] = "Succeeded"
    harness.client.pods["serve-0"]["status"]["phase"] = "Failed"
    await harness.catch_up()
    assert harness.open_pods() == names[:3]
    harness.client.pods["serve-1"]["status"]["phase"] = "Succeeded"
    await harness.catch_up()
    assert harness.open_pods() == names


async def test_a_later_wave_of_which_a_pod_is_lacking_says_so() -> None:
    harness = await second_wave("1", "set")
    del harness.client.pods["set-1"]
    await harness.catch_up()
    assert harness.annotations("set")[MESSAGE].endswith("; what starts together lacks pods: 1 of then")


@pytest.mark.parametrize(("gate", "opened"), [("off", ["set-0"]), ("assemble", []), ("queue", [])])
async def test_where_the_gate_is_turned_off_no_wave_waits_for_the_rest_of_it(gate: str, opened: list[str]) -> None:
    harness = await second_wave("1", "set")
    del harness.client.pods["set-1"]
    harness.watch()
    harness.set_queue(queue(cpu="9", annotations={"muster.dev/gate": gate}))
    await harness.settle()
    assert harness.open_pods() == opened


@cases("above", ("of one queue", False), ("of the queue above", True))
async def test_two_later_waves_do_not_wait_for_each_others_places_for_ever(*, above: bool) -> None:
    """Each keeps the place of its first wave, and neither fits beside the other; after five minutes one goes on."""
    harness = await second_wave("2", "one", "two")
    if above:
        unlimited = queue()
        unlimited["spec"]["parent"] = "org"
        harness.set_queue(queue("org", cpu="2"))
        harness.set_queue(unlimited)
        await harness.settle()
    assert harness.open_pods() == []
    harness.now += 301
    for key in harness.cluster.gangs():
        harness.queue.add(key)
    await harness.settle()
    assert harness.open_pods() in (["one-0", "one-1"], ["two-0", "two-1"])
    waiting = "two" if "one-0" in harness.open_pods() else "one"
    assert harness.annotations(waiting)[STATE] == "Admitted", "nothing of it was given to the scheduler"


async def comes(harness: Harness, name: str, cpu: str) -> None:
    """A RayCluster of one pod is applied, after everything else."""
    workload, pod_ = cluster(name, cpu)
    workload_store(harness.cluster, RAY_CLUSTER).apply("added", made(RayCluster, workload))
    harness.client.pods[name] = pod_
    await harness.catch_up()


async def goes(harness: Harness, name: str) -> None:
    """It is deleted, with its pod."""
    del harness.client.pods[name]
    harness.drop_workload(cluster(name, "1")[0])
    await harness.catch_up()


async def test_a_later_wave_is_bypassed_for_as_long_as_its_queues_patience_and_not_for_ever() -> None:
    harness = await second_wave("2500m", "set", beside="runs", patience="10m", reserves="bounds")
    began = harness.now
    await comes(harness, "small", "500m")
    assert harness.open_pods() == ["runs", "small"]
    said = harness.annotations("set")
    assert (said[ADMITTED], said[PASSED_SINCE], said[PASSED_IN]) == ("uid-set", text_of(began), "q")
    await goes(harness, "small")
    harness.now = began + 599
    await comes(harness, "next", "500m")
    assert harness.open_pods() == ["next", "runs"]
    await goes(harness, "next")
    harness.restart()
    harness.now = began + 600
    await comes(harness, "last", "500m")
    assert harness.open_pods() == ["runs"]
    assert 'there is room, but queue "q" reserves cpu for gang "set"' in harness.annotations("ray-last-pg")[MESSAGE]
    await goes(harness, "runs")
    assert harness.open_pods() == ["last", "set-0", "set-1"]
    assert PASSED_SINCE not in harness.annotations("set")


async def test_in_a_strict_queue_there_is_no_bypass_of_a_later_wave() -> None:
    harness = await second_wave("2500m", "set", beside="runs", queueing="strict")
    await comes(harness, "small", "500m")
    assert harness.open_pods() == ["runs"]
    await goes(harness, "runs")
    assert harness.open_pods() == ["set-0", "set-1", "small"]


async def test_room_that_becomes_free_is_the_later_waves_before_it_is_a_younger_gangs() -> None:
    harness = await second_wave("2500m", "set", beside="runs")
    await comes(harness, "young", "1")
    assert harness.open_pods() == ["runs"]
    await goes(harness, "runs")
    assert harness.open_pods() == ["set-0", "set-1"]
    assert harness.annotations("ray-young-pg")[STATE] == "WaitingForQuota"


async def test_the_wave_of_a_jobset_that_is_gone_stands_in_nobodys_way() -> None:
    harness = await second_wave("2500m", "set", beside="runs", queueing="strict")
    await comes(harness, "small", "500m")
    for name in ("set-0", "set-1"):
        del harness.client.pods[name]
    workload_store(harness.cluster, JOB_SET).apply("deleted", made(JobSet, waves()))
    await harness.catch_up()
    assert harness.open_pods() == ["runs", "small"]


@cases("said", ("strict", {"queueing": "strict"}), ("no patience", {"patience": "0s", "reserves": "bounds"}))
async def test_a_later_wave_is_kept_back_by_nobody_who_waits_for_what_its_gang_holds(said: dict[str, str]) -> None:
    """An older gang waits for the room of the first wave, which is given back when the later ones have run."""
    harness = await second_wave("2500m", "set", beside="runs", **said)
    older, pod_ = cluster("older", "2")
    older["metadata"]["creationTimestamp"] = ""
    workload_store(harness.cluster, RAY_CLUSTER).apply("added", made(RayCluster, older))
    harness.client.pods["older"] = pod_
    await harness.catch_up()
    await comes(harness, "small", "500m")
    await goes(harness, "small")
    await comes(harness, "next", "500m")
    assert harness.open_pods() == ["runs"], "nobody else passes the older one"
    await goes(harness, "runs")
    assert harness.open_pods() == ["set-0", "set-1"]
    assert harness.annotations("ray-older-pg")[STATE] == "WaitingForQuota"


async def test_a_place_is_not_given_back_where_jobs_make_the_pods() -> None:
    """A Job counts a pod that is deleted as failed: a queue that is full for long would end it by its backoffLimit."""
    job_set = waves()
    job_set["metadata"]["annotations"] = {REQUEUE_AFTER: "2m"}
    harness = await Harness(pods=[of_wave("first", "first")], workloads=[job_set], queues=[queue(cpu="4")]).settled()
    assert harness.open_pods() == ["first"]
    harness.now += 121
    harness.queue.add(GangKey(NAMESPACE, "set"))
    await harness.settle()
    assert harness.open_pods() == ["first"]
    assert harness.annotations("set")[STATE] == "Admitted"
