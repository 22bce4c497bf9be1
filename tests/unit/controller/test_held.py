"""Held pods stay held, whatever their owner does: nothing but room in its queue opens the gates of a gang."""

from collections.abc import Callable
from typing import Any

import pytest

from muster.model.names import ADMITTED, GANG, GATE, MANAGED, MESSAGE, STATE
from muster.queueing.ledger import GangKey
from tests.support.cases import cases
from tests.support.controller.bypass_queue import gang, harness, running
from tests.support.controller.harness import Harness
from tests.support.manifests.observed import (
    JSON,
    old_pod,
    pod,
    priority_class,
    pytorch_job,
    pytorch_pod,
    queue,
    ray_pod,
    template,
)

LATE = "ray-late-pg"
FIRST, LATER = "2026-11-21T10:00:00Z", "2026-11-21T10:00:07Z"


def full(**more: Any) -> Harness:  # noqa: ANN401 - Harness's own
    """A gang holds the whole queue of 4 cpu, and `late`, of 4 cpu too, waits for it."""
    runs, group = running("runs", 4)
    workload, pods = gang("late", 4)
    for one in pods:
        one["metadata"]["creationTimestamp"] = FIRST
    return harness(runs, (workload, pods), groups=[group], **more)


def late(**labels: str) -> JSON:
    """The gang's workload with these labels, and no others."""
    workload, _ = gang("late", 4)
    return {**workload, "metadata": {**workload["metadata"], "labels": labels}}


def beside(name: str, role: str = "workers", created: str = LATER, **spec: Any) -> JSON:  # noqa: ANN401 - of the pod
    """A pod of the gang's workload that carries nothing of muster."""
    made = old_pod(name, role, cluster="late", owner_uid="uid-late", meta={"creationTimestamp": created}, **spec)
    return {**made, "spec": {**made["spec"], "schedulingGates": []}}


def opened(harness: Harness, name: str = "late") -> list[str]:
    """The gang's own pods that no gate holds."""
    return [one for one in harness.open_pods() if one.startswith(f"{name}-")]


@cases(
    "changed",
    ("its labels are gone", late()),
    ("it opts out without a queue", late(**{MANAGED: "false"})),
    ("it opts out", late(**{MANAGED: "false", "volcano.sh/queue-name": "q"})),
    ("it names somebody else's scheduler", late(**{"ray.io/scheduler-name": "yunikorn"})),
)
async def test_a_gang_that_waits_is_not_let_go_by_what_its_owner_takes_back(changed: JSON) -> None:
    waits = await full().settled()
    assert waits.annotations(LATE)[STATE] == "WaitingForQuota"
    before = waits.client.groups[LATE]["spec"]
    waits.set_workload(changed)
    await waits.settle()
    assert opened(waits) == []
    assert (waits.client.groups[LATE]["spec"], waits.annotations(LATE)[STATE]) == (before, "WaitingForQuota")
    assert str(waits.term.ledger.used("q")["cpu"]) == "4"
    # So it is for the next leader, who knows no more than what is in the cluster.
    waits.restart()
    await waits.settle()
    assert (opened(waits), waits.client.groups[LATE]["spec"]) == ([], before)


async def test_nor_is_one_of_a_namespace_that_opts_out() -> None:
    waits = await full(namespaces=[{"metadata": {"name": "team"}}]).settled()
    waits.set_namespace({"metadata": {"name": "team", "labels": {MANAGED: "false"}}})
    waits.set_workload(late())
    await waits.settle()
    assert opened(waits) == []


async def test_its_owner_is_told_once_and_what_to_do() -> None:
    waits = await full().settled()
    waits.set_workload(late())
    await waits.settle()
    for key in waits.cluster.gangs():
        waits.queue.add(key)
    await waits.settle()
    said = [note for type_, reason, note in waits.events() if (type_, reason) == ("Warning", "StillHeld")]
    assert len(said) == 1
    assert 'stays in queue "q"' in said[0]
    assert "delete the workload and apply it again, or name another queue" in said[0]


async def test_it_starts_when_its_turn_comes() -> None:
    """What was last asked for stands: neither is it lost."""
    waits = await full().settled()
    waits.set_workload(late())
    await waits.settle()
    waits.set_queue(queue(cpu="8"))
    await waits.settle()
    assert len(opened(waits)) == 4
    assert waits.annotations(LATE)[ADMITTED] == "uid-late"


async def test_it_may_name_another_queue_and_stands_in_that_line() -> None:
    waits = await full().settled()
    waits.set_workload(late(**{MANAGED: "false", "volcano.sh/queue-name": "other"}))
    waits.set_queue(queue("other", cpu="3"))
    await waits.settle()
    assert (opened(waits), waits.annotations(LATE)[STATE]) == ([], "ExceedsCapability")
    waits.set_queue(queue("other", cpu="4"))
    await waits.settle()
    assert (len(opened(waits)), waits.client.groups[LATE]["spec"]["queue"]) == (4, "other")


async def test_when_its_held_pods_are_gone_it_is_as_it_says() -> None:
    waits = await full().settled()
    waits.set_workload(late())
    await waits.settle()
    waits.client.pods = {name: one for name, one in waits.client.pods.items() if not name.startswith("late-")}
    waits.client.pods["late-new"] = beside("late-new")
    await waits.catch_up()
    assert waits.annotations(LATE)[STATE] == "NotManaged"
    assert waits.term.ledger.waiting("q") == []


@cases(
    "stranger",
    ("of an unknown role", beside("stranger", "no-such-role")),
    ("with a node", beside("stranger", nodeName="node-1")),
    ("of another scheduler", beside("stranger", schedulerName="my-own")),
    ("of an unknown role, in the same second", beside("stranger", "no-such-role", FIRST)),
    ("with a node, in the same second", beside("stranger", created=FIRST, nodeName="node-1")),
    ("another's, in the same second", beside("stranger", created=FIRST, schedulerName="my-own")),
)
async def test_a_pod_that_comes_past_muster_opens_nothing(stranger: JSON) -> None:
    """The gang waits as before, and starts as a whole when its turn comes."""
    waits = await full().settled()
    before = waits.client.groups[LATE]["spec"]
    waits.client.pods["stranger"] = stranger
    await waits.catch_up()
    assert (opened(waits), waits.client.groups[LATE]["spec"]) == ([], before)
    assert "pods that came without muster open nothing (stranger)" in waits.annotations(LATE)[MESSAGE]
    waits.set_queue(queue(cpu="8"))
    await waits.settle()
    assert len(opened(waits)) == 4


async def test_pods_older_than_the_gang_open_no_more_than_there_is_room_for() -> None:
    """Any pod that is old enough can be given the labels and the owner of a member later."""
    waits = await full().settled()
    waits.client.pods["old"] = beside("old", created="2026-11-21T09:00:00Z")
    await waits.catch_up()
    assert (opened(waits), waits.annotations(LATE)[STATE]) == ([], "NotManaged")
    waits.set_queue(queue(cpu="6"))
    await waits.settle()
    assert len(opened(waits)) == 2
    assert "no room yet for cpu 2" in waits.annotations(LATE)[MESSAGE]
    assert str(waits.term.ledger.used("q")["cpu"]) == "6"


def runs_in_a_full_queue() -> Harness:
    """`runs`, of 4 cpu, fills its queue; it has a fifth pod, which waits for room."""
    (workload, pods), group = running("runs", 4)
    more = ray_pod("runs-more", cluster="runs", owner_uid="uid-runs", meta={"creationTimestamp": LATER})
    return harness((workload, [*pods, more]), groups=[group])


def of_runs(labels: dict[str, str], cpus: int = 4) -> JSON:
    (workload, _), _ = running("runs", cpus)
    return {**workload, "metadata": {**workload["metadata"], "labels": labels}}


async def test_surplus_of_a_running_gang_is_not_let_go_either() -> None:
    runs = await runs_in_a_full_queue().settled()
    assert "runs-more" not in runs.open_pods()
    runs.set_workload(of_runs({}))
    await runs.settle()
    assert "runs-more" not in runs.open_pods()


@cases(
    "away",
    ("its labels are gone for a while", lambda runs: runs.set_workload(of_runs({}))),
    (
        "a pod comes past muster for a while",
        lambda runs: runs.client.pods.update(
            past=old_pod("past", cluster="runs", owner_uid="uid-runs", meta={"creationTimestamp": LATER})
        ),
    ),
)
async def test_to_leave_and_come_back_larger_is_growth(away: Callable[[Harness], None]) -> None:
    """What a running gang was admitted for is not forgotten while it is left alone."""
    (workload, pods), group = running("runs", 2)
    runs = await harness((workload, pods), groups=[group], cpu="2").settled()
    away(runs)
    await runs.catch_up()
    assert runs.annotations("ray-runs-pg")[STATE] == "NotManaged"
    runs.client.pods.pop("past", None)
    runs.set_workload(of_runs({"volcano.sh/queue-name": "q"}, 4))
    for number in (2, 3):
        runs.client.pods[f"runs-{number}"] = ray_pod(f"runs-{number}", cluster="runs", owner_uid="uid-runs")
    await runs.catch_up()
    assert runs.open_pods() == ["runs-0", "runs-1"]
    assert str(runs.term.ledger.used("q")["cpu"]) == "2"


def mpi_job(policy: str) -> JSON:
    """An MPIJob of a launcher and two workers, a cpu each."""
    return {
        "apiVersion": "kubeflow.org/v2beta1",
        "kind": "MPIJob",
        "metadata": {
            "name": "train",
            "namespace": "team",
            "uid": "uid-train",
            "labels": {"volcano.sh/queue-name": "q"},
        },
        "spec": {
            "launcherCreationPolicy": policy,
            "mpiReplicaSpecs": {
                "Launcher": {"replicas": 1, "template": template()},
                "Worker": {"replicas": 2, "template": template()},
            },
        },
    }


def of_mpi(name: str, role: str, *, held: bool) -> JSON:
    made = pytorch_pod(name, held=held)
    made["metadata"]["ownerReferences"][0] |= {"apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob"}
    made["metadata"]["labels"]["training.kubeflow.org/job-role"] = role
    return made


@pytest.mark.parametrize("policy", ["WaitForWorkersReady", "AtStartup"])
async def test_a_member_that_is_never_held_is_no_sign_that_the_others_may_start(policy: str) -> None:
    """A launcher that waits for its workers has no gate: who makes one by hand would open those of the workers."""
    pods = [of_mpi("launcher", "launcher", held=False), *(of_mpi(f"w-{n}", "worker", held=True) for n in range(2))]
    runs, group = running("runs", 4)
    held = await Harness(
        workloads=[runs[0], mpi_job(policy)], pods=[*runs[1], *pods], groups=[group], queues=[queue(cpu="4")]
    ).settled()
    assert [name for name in held.open_pods() if name.startswith("w-")] == []


async def test_a_gang_that_somebody_else_opens_pod_by_pod_is_admitted_as_what_he_has_opened_in_the_end() -> None:
    """`muster release` opens all; by the first pod the gang would become one of one pod, and start in part."""
    waits = await full().settled()
    spec = waits.client.groups[LATE]["spec"]
    for number in range(4):
        waits.client.pods[f"late-{number}"]["spec"]["schedulingGates"] = []
        await waits.catch_up()
        assert waits.client.groups[LATE]["spec"] == spec
        assert str(waits.term.ledger.used("q")["cpu"]) == str(5 + number)
        waits.now += 4
    assert waits.annotations(LATE)[ADMITTED] == "uid-late"
    assert waits.client.groups[LATE]["spec"] == spec


async def test_of_a_gang_of_which_somebody_else_opens_a_part_that_part_is_admitted_after_a_while() -> None:
    waits = await full().settled()
    waits.client.pods["late-0"]["spec"]["schedulingGates"] = []
    await waits.catch_up()
    assert waits.client.groups[LATE]["spec"]["minMember"] == 4
    assert ADMITTED not in waits.annotations(LATE)
    assert waits.queue.statistics().delayed
    waits.now += 5
    waits.queue.add(GangKey("team", LATE))
    await waits.settle()
    assert opened(waits) == ["late-0"]
    assert waits.client.groups[LATE]["spec"]["minMember"] == 1
    assert waits.annotations(LATE)[ADMITTED] == "uid-late"


async def test_a_gang_that_is_opened_once_more_is_waited_for_once_more() -> None:
    """Its first open pod was replaced by a held one, and nobody went on."""
    waits = await full().settled()
    for uid in ("uid-first", "uid-second"):
        waits.client.pods["late-0"]["metadata"]["uid"] = uid
        waits.client.pods["late-0"]["spec"]["schedulingGates"] = []
        await waits.catch_up()
        assert waits.client.groups[LATE]["spec"]["minMember"] == 4
        waits.client.pods["late-0"]["metadata"]["uid"] += "-replaced"
        waits.client.pods["late-0"]["spec"]["schedulingGates"] = [{"name": GATE}]
        await waits.catch_up()
        waits.now += 60


async def test_an_open_member_without_a_mark_is_owed_what_is_open() -> None:
    """Whoever took the mark away, and the PodGroup with it: the rest has to find room."""
    others, group = running("runs", 3)
    workload, pods = gang("late", 4)
    pods[0]["spec"]["schedulingGates"] = []
    harness_ = await harness(others, (workload, pods), groups=[group]).settled()
    assert opened(harness_) == ["late-0"]
    assert str(harness_.term.ledger.used("q")["cpu"]) == "4"
    harness_.restart()
    await harness_.settle()
    assert opened(harness_) == ["late-0"]
    harness_.set_queue(queue(cpu="7"))
    await harness_.settle()
    assert len(opened(harness_)) == 4


async def test_a_plain_gang_is_held_when_its_pods_opt_out() -> None:
    """They speak for themselves, and whoever may change pods may write that label on them."""
    runs, group = running("runs", 4)
    labels = {GANG: "late", "volcano.sh/queue-name": "q"}
    notes = {"muster.dev/gang-size": "2", "scheduling.k8s.io/group-name": "late"}
    pods = [pod(f"late-{n}", labels=labels, annotations=notes, schedulingGates=[{"name": GATE}]) for n in range(2)]
    held = await Harness(workloads=[runs[0]], pods=[*runs[1], *pods], groups=[group], queues=[queue(cpu="4")]).settled()
    for n in range(2):
        held.client.pods[f"late-{n}"]["metadata"]["labels"][MANAGED] = "false"
    await held.catch_up()
    assert opened(held) == []


async def test_a_job_without_its_policy_keeps_its_pods_held() -> None:
    """`schedulingPolicy` is what made it muster's; without it nothing is asked."""
    runs, group = running("runs", 4)
    pods = [pytorch_pod("train-m", "master"), pytorch_pod("train-w-0"), pytorch_pod("train-w-1")]
    asks = pytorch_job(policy={"queue": "q"})
    held = await Harness(
        workloads=[runs[0], asks], pods=[*runs[1], *pods], groups=[group], queues=[queue(cpu="4")]
    ).settled()
    held.set_workload(pytorch_job())
    await held.settle()
    assert opened(held, "train") == []


@cases("pods_have", ("of their templates", "low"), ("none", ""))
async def test_a_gang_comes_no_earlier_than_by_the_class_that_its_pods_got(pods_have: str) -> None:
    """A pod keeps the class that it was made with, whatever a label says of the workload, then or later."""
    classes = [priority_class("low", -100), priority_class("high", 1000)]
    labels = {"ray.io/priority-class-name": "high"}
    runs, group = running("runs", 4)
    boast = gang("boast", 4, created="2026-11-21T10:00:00Z", labels=labels)
    true = gang("true", 4, created="2026-11-21T11:00:00Z", labels=labels)
    for (_, pods), name, value in ((boast, pods_have, -100 if pods_have else 0), (true, "high", 1000)):
        for one in pods:
            one["spec"] |= {"priority": value} | ({"priorityClassName": name} if name else {})
    line = await harness(runs, boast, true, groups=[group], classes=classes).settled()
    assert line.client.groups["ray-boast-pg"]["spec"].get("priorityClassName", "") == pods_have
    assert line.client.groups["ray-true-pg"]["spec"]["priorityClassName"] == "high"
    assert [key.name for key in line.term.ledger.waiting("q")] == ["ray-true-pg", "ray-boast-pg"]


async def test_where_muster_is_required_what_opts_out_waits_like_all_others() -> None:
    """So it does beside pods that look older: the workload is newer than the rule, and they cannot be its own."""
    space = {
        "metadata": {
            "name": "team",
            "labels": {MANAGED: "required"},
            "managedFields": [
                {"time": "2020-01-01T00:00:00Z", "fieldsV1": {"f:metadata": {"f:labels": {f"f:{MANAGED}": {}}}}}
            ],
        }
    }
    waits = full(namespaces=[space])
    waits.set_workload(late(**{MANAGED: "false", "volcano.sh/queue-name": "q"}))
    waits.client.pods["old"] = beside("old", created="2026-11-21T09:00:00Z")
    await waits.catch_up()
    assert (opened(waits), waits.annotations(LATE)[STATE]) == ([], "WaitingForQuota")
    assert not any(reason == "StillHeld" for _, reason, _ in waits.events())
    waits.set_queue(queue(cpu="8"))
    await waits.settle()
    assert len(opened(waits)) == 4
    assert waits.annotations(LATE)[ADMITTED] == "uid-late"
