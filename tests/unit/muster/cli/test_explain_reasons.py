"""What `muster explain` says where nothing is recorded, where the user may not read all, and of what is on hold."""

import argparse
import io
from collections.abc import Sequence
from typing import Any

import pytest

from muster.cli.explain.command import explain, run
from muster.cli.explain.subjects import Event, Subject, TimedPod
from muster.cli.explain.text import print_explained
from muster.cli.page.board import Board
from muster.cli.settings import Settings
from muster.cli.snapshot import ClusterSnapshot
from muster.cli.when import ExpectedStarts
from muster.gangs.intent import Defaults
from muster.model.names import GANG, GROUP_NAME, HOLD, MESSAGE, NAMESPACE_SELECTOR, QUEUE_ANNOTATION, STATE
from muster.schedulers import SCHEDULERS
from muster.workloads import kind_of
from tests.support.cases import cases
from tests.support.controller.stores import filled
from tests.support.manifests.observed import (
    JSON,
    made,
    namespace,
    pod_group,
    queue,
    ray_cluster,
    ray_owner,
    ray_pod,
    template,
    workers,
)

NOW = 1_800_000_000.0
GROUPS = "podgroups.scheduling.volcano.sh"
RUNNING = {STATE: "Running", MESSAGE: "cpu 3"}
ON_HOLD = "on hold (its annotation muster.dev/hold)"


def said(
    workload: JSON, visible: ClusterSnapshot, *events: Event, pods: Sequence[JSON] = (), none: str = ""
) -> dict[str, Any]:
    kind = kind_of(workload["apiVersion"], workload["kind"])
    assert kind is not None
    subject = Subject(kind, made(kind.decoded, workload), [made(TimedPod, pod) for pod in pods], events, none)
    snapshot = visible.ledger_snapshot(NOW)
    starts = ExpectedStarts(snapshot.ledger, NOW, seconds=5.0, whole=visible.whole)
    return explain(subject, visible, snapshot, starts)


def told(entry: dict[str, Any]) -> str:
    out = io.StringIO()
    print_explained([entry], out, NOW)
    return out.getvalue()


def of_muster(reason: str, note: str = "needs cpu 3", time: str = "2027-01-15T07:58:00Z") -> Event:
    return Event(event_time=time, reason=reason, note=note, reporting_controller="muster.dev/controller")


def of_operator(note: str, type_: str = "Normal") -> Event:
    return Event(event_time="2027-01-15T07:59:00Z", type=type_, reason="CreatedWorkerPod", note=note)


def members(*, held: bool) -> list[JSON]:
    return [ray_pod(f"demo-{role}", role, held=held) for role in ("headgroup", "workers")]


def test_who_may_not_read_podgroups_hears_the_newest_event_and_not_that_there_is_none() -> None:
    pods = members(held=True)
    visible = ClusterSnapshot(
        filled(workloads=[ray_cluster()], pods=pods, queues=[queue(cpu="4")]), unreadable={GROUPS}
    )
    events = (of_muster("Assembling", "lacks pods"), of_muster("WaitingForQuota"), of_operator("a pod"))
    entry = said(ray_cluster(), visible, *events, pods=pods)
    assert (entry["state"], entry["message"]) == (
        "WaitingForQuota",
        "needs cpu 3 (its newest event; you may not read PodGroups)",
    )
    assert entry["gang"]["exists"] is None
    assert "  gang       PodGroup ray-demo-pg: not readable\n" in told(entry)


@cases(
    "queues, state, message",
    ("missing", [queue("other")], "QueueNotFound", 'queue "q" does not exist, or is not open to namespace "team"'),
    (
        "not a leaf",
        [queue(), {"metadata": {"name": "below"}, "spec": {"parent": "q"}, "status": {"state": "Open"}}],
        "QueueNotLeaf",
        'queue "q" has queues below it and takes no gangs itself',
    ),
    ("closed", [queue(state="Closed")], "QueueClosed", 'queue "q" is Closed and takes no new work'),
)
def test_who_gets_no_podgroup_for_its_queue_hears_why(queues: list[JSON], state: str, message: str) -> None:
    """Such a gang's state stands on no PodGroup: only events say it, for as long as the apiserver keeps them."""
    pods = members(held=True)
    cluster = filled(workloads=[ray_cluster()], pods=pods, queues=queues, namespaces=[namespace()])
    visible = ClusterSnapshot(cluster)
    entry = said(ray_cluster(), visible, pods=pods)
    assert (entry["state"], entry["message"]) == (state, message)
    snapshot = visible.ledger_snapshot(NOW)
    board = Board(snapshot, whole=True)
    rows = [(row.gang.state, row.message) for part in (board.waiting(), board.others()) for row in part.rows]
    assert rows == [(state, message)]


def test_who_gets_no_podgroup_for_the_apiserver_refuses_it_hears_that() -> None:
    """The controller has said so, and is not to be suspected; what it has said of another state is over."""
    pods = members(held=True)
    visible = ClusterSnapshot(filled(workloads=[ray_cluster()], pods=pods, queues=[queue(cpu="4")]))
    refusal = of_muster("Invalid", "the PodGroup was refused: exceeded quota")
    entry = said(ray_cluster(), visible, of_muster("WaitingForQuota"), refusal, of_operator("a pod"), pods=pods)
    assert (entry["state"], entry["message"]) == ("Invalid", f"{refusal.note} (its newest event)")
    entry = said(ray_cluster(), visible, refusal, of_muster("WaitingForQuota"), pods=pods)
    assert (entry["state"], entry["message"].partition(";")[0]) == (
        "Assembling",
        "the controller has not reported a state yet",
    )


@pytest.mark.parametrize("ours", [True, False])
def test_a_podgroup_is_named_as_the_cluster_has_it(*, ours: bool) -> None:
    """With Kubernetes' own scheduler the name has a part of the owner's UID."""
    kubernetes = SCHEDULERS["default-scheduler"]
    named = {"name": "ray-demo-pg-uid-demo", "annotations": {GROUP_NAME: "ray-demo-pg"}}
    group = pod_group(ours=ours)
    group["metadata"] = {**group["metadata"], **named}
    pods = [ray_pod("demo-head", "headgroup", schedulerName=kubernetes.name)]
    cluster = filled(kubernetes, workloads=[ray_cluster()], pods=pods, groups=[group], queues=[queue(cpu="4")])
    defaults = Defaults(schedulers={kubernetes.name: kubernetes})
    entry = said(ray_cluster(), ClusterSnapshot(cluster, settings=Settings(defaults)), pods=pods)
    assert entry["gang"]["podGroup"] == "ray-demo-pg-uid-demo"
    assert ours or entry["message"].startswith('a PodGroup "ray-demo-pg-uid-demo" that muster did not make')


def test_who_has_the_podgroup_of_others_in_its_way_is_shown_so() -> None:
    other = pod_group(owner={"apiVersion": "x/v1", "kind": "X", "name": "x", "uid": "uid-x"}, ours=False)
    pods = members(held=True)
    visible = ClusterSnapshot(filled(workloads=[ray_cluster()], pods=pods, groups=[other], queues=[queue(cpu="4")]))
    board = Board(visible.ledger_snapshot(NOW), whole=True)
    rows = [row.gang.state for part in (board.waiting(), board.holding(), board.others()) for row in part.rows]
    assert rows == ["ForeignPodGroup"]


def test_without_an_event_the_state_is_unknown_to_who_may_not_read_podgroups() -> None:
    pods = members(held=True)
    visible = ClusterSnapshot(
        filled(workloads=[ray_cluster()], pods=pods, queues=[queue(cpu="4")]), unreadable={GROUPS, "pods"}
    )
    out = " ".join(told(said(ray_cluster(), visible, of_operator("a pod"), pods=pods)).split())
    assert " unknown: you may not read PodGroups and pods, and it has no event of muster; the chart value" in out
    assert "muster-controller" not in out


def test_who_may_read_them_hears_that_there_is_no_podgroup() -> None:
    visible = ClusterSnapshot(filled(workloads=[ray_cluster()], queues=[queue(cpu="4")]))
    assert "PodGroup ray-demo-pg does not exist" in told(said(ray_cluster(), visible))


def test_a_job_that_names_a_queue_and_joins_no_gang_is_not_managed() -> None:
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "sim2", "namespace": "team", "labels": {"volcano.sh/queue-name": "q"}},
        "spec": {"template": template("1")},
    }
    entry = said(job, ClusterSnapshot(filled(queues=[queue(cpu="4")])))
    assert (entry["state"], entry["gang"], entry["needs"], entry["scheduling"]) == ("NotManaged", None, None, None)
    why = "metadata.labels[volcano.sh/queue-name]: it makes no gang of a Job"
    assert entry["message"].startswith(f"{why}; to start its pods together, give its pod template the label {GANG}")


def test_where_nothing_is_managed_a_missing_podgroup_is_no_second_fault() -> None:
    out = told(said(ray_cluster(labels={}), ClusterSnapshot(filled())))
    assert "NotManaged" in out
    assert "PodGroup" not in out


def test_a_queue_of_the_namespace_is_said_to_count_for_gangs_alone() -> None:
    plain, annotated = ray_cluster(labels={}), namespace(annotations={QUEUE_ANNOTATION: "team-a"})
    entry = said(plain, ClusterSnapshot(filled(workloads=[plain], namespaces=[annotated])))
    assert entry["message"].endswith('; namespace "team" names queue "team-a", which counts only for gangs')


def test_a_label_in_a_pod_template_is_said_to_belong_on_the_workload() -> None:
    labelled = {**template("1"), "metadata": {"labels": {"volcano.sh/queue-name": "q"}}}
    plain = ray_cluster(workers(template=labelled), labels={})
    entry = said(plain, ClusterSnapshot(filled(workloads=[plain])))
    path = "spec.workerGroupSpecs[0].template.metadata.labels[volcano.sh/queue-name]"
    assert (entry["state"], entry["message"]) == (
        "NotManaged",
        f"{path}: it is not read there; move it to metadata.labels of the RayCluster",
    )


def ray_job(*, status: JSON | None = None, annotations: JSON | None = None, **spec: object) -> JSON:
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayJob",
        "metadata": {"name": "nightly", "namespace": "team", "annotations": annotations or {}},
        "spec": {"rayClusterSpec": ray_cluster()["spec"], **spec},
        "status": status or {},
    }


def cron_job(*, suspend: bool) -> JSON:
    return {**ray_job(), "kind": "RayCronJob", "spec": {"jobTemplate": ray_job()["spec"], "suspend": suspend}}


@cases(
    "workload, state, message",
    ("nothing said", ray_job(), "", "there is none"),
    ("suspended", ray_job(suspend=True), "Suspended", "the workload is suspended"),
    ("ended", ray_job(status={"jobDeploymentStatus": "Complete"}), "Finished", "the workload has ended"),
    ("schedule", cron_job(suspend=True), "Suspended", "the schedule is suspended"),
    ("a schedule that goes on", cron_job(suspend=False), "", "there is none"),
    (
        "without a cluster",
        ray_job(rayClusterSpec=None),
        "Invalid",
        "spec.rayClusterSpec: missing; a RayJob makes a cluster or selects one",
    ),
)
def test_a_parent_without_a_cluster_says_where_it_stands(workload: JSON, state: str, message: str) -> None:
    entry = said(workload, ClusterSnapshot(filled()), of_operator("fine"), none="there is none")
    assert (entry["state"], entry["message"], entry["gang"]) == (state, message, None)


def test_a_parent_that_its_operator_refuses_says_what_the_operator_said() -> None:
    entry = said(ray_job(), ClusterSnapshot(filled()), of_operator("no such field", "Warning"), none="there is none")
    assert entry["message"] == "there is none; its newest event is CreatedWorkerPod: no such field"


def test_a_parent_on_hold_says_so() -> None:
    entry = said(ray_job(suspend=True, annotations={HOLD: "true"}), ClusterSnapshot(filled()), none="there is none")
    out = " ".join(told(entry).split())
    assert f'Suspended: the workload is suspended on hold RayJob "nightly" is {ON_HOLD}' in out


@pytest.mark.parametrize("by", ["workload", "queue"])
def test_what_runs_and_is_on_hold_says_so(by: str) -> None:
    marked = {HOLD: "true"}
    demo = ray_cluster(annotations=marked if by == "workload" else None)
    pods = [{**pod, "status": {"phase": "Running"}} for pod in members(held=False)]
    groups = [pod_group(owner=ray_owner(), admitted="uid-demo", annotations=RUNNING, phase="Running")]
    queues = [queue(cpu="4", annotations=marked if by == "queue" else None)]
    entry = said(demo, ClusterSnapshot(filled(workloads=[demo], pods=pods, groups=groups, queues=queues)), pods=pods)
    assert entry["state"] == "Running"
    name = 'RayCluster "demo"' if by == "workload" else 'queue "q"'
    assert f"on hold {name} is {ON_HOLD}" in " ".join(told(entry).split())


def test_a_hold_that_the_message_tells_is_not_told_twice() -> None:
    pods, marked = members(held=True), {HOLD: "true"}
    words = 'queue "q" is on hold (its annotation muster.dev/hold); to resume it: muster resume queue/q'
    groups = [pod_group(owner=ray_owner(), annotations={STATE: "OnHold", MESSAGE: words})]
    queues = [queue(cpu="4", annotations=marked)]
    entry = said(
        ray_cluster(),
        ClusterSnapshot(filled(workloads=[ray_cluster()], pods=pods, groups=groups, queues=queues)),
        pods=pods,
    )
    assert entry["onHold"] == words
    assert told(entry).count("muster resume") == 1


@pytest.mark.parametrize("runs", [False, True])
def test_a_queue_that_is_not_there_for_a_namespace_is_not_said_to_be_on_hold(*, runs: bool) -> None:
    """In the words for a queue that nobody made, which is on hold for nobody."""
    demo, pods = ray_cluster(), members(held=not runs)
    groups = [pod_group(owner=ray_owner(), admitted="uid-demo", annotations=RUNNING, phase="Running")]
    closed = queue(cpu="4", annotations={HOLD: "true", NAMESPACE_SELECTOR: "team=ml"})
    cluster = filled(
        workloads=[demo], pods=pods, groups=groups if runs else [], queues=[closed], namespaces=[namespace()]
    )
    entry = said(demo, ClusterSnapshot(cluster), pods=pods)
    assert (entry["state"], entry["onHold"]) == ("Running" if runs else "QueueNotFound", None)


def test_a_state_that_somebody_else_wrote_moves_no_cursor() -> None:
    """The annotation of a PodGroup, which its namespace's tenants may patch."""
    groups = [pod_group(owner=ray_owner(), annotations={STATE: "Running\x1b]0;me\x07\nroot", MESSAGE: "cpu\x1b[2J 3"})]
    text = told(said(ray_cluster(), ClusterSnapshot(filled(workloads=[ray_cluster()], groups=groups))))
    assert text.splitlines()[1] == r"  Running\x1b]0;me\x07\nroot: cpu\x1b[2J 3"


def test_events_of_pods_push_none_of_musters_out() -> None:
    events = (of_muster("WaitingForQuota"), of_muster("Admitted"), *(of_operator(f"pod {n}") for n in range(9)))
    entry = said(ray_cluster(), ClusterSnapshot(filled(workloads=[ray_cluster()])), *events)
    shown = [event["reason"] for event in entry["events"]]
    assert shown == ["WaitingForQuota", "Admitted", *["CreatedWorkerPod"] * 8]
    assert entry["events"][2]["note"] == "pod 1"


def test_who_asks_explain_for_a_queue_is_sent_to_queues(capsys: pytest.CaptureFixture[str]) -> None:
    for word in ("queue", "gq", "queues.scheduling.volcano.sh"):
        assert run(argparse.Namespace(workload=[f"{word}/team-a"], output="table")) == 2
        assert capsys.readouterr().err == "muster explain: explain is for workloads; for queue team-a: muster queues\n"
