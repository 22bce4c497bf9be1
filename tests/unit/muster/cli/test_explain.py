"""What `muster explain` says of manifests, and how it looks."""

import io
from collections.abc import Sequence
from typing import Any

import pytest

from muster.cli.explain.command import explain
from muster.cli.explain.subjects import Event, Subject, TimedPod
from muster.cli.explain.text import print_explained
from muster.cli.settings import Settings, read_settings
from muster.cli.snapshot import ClusterSnapshot
from muster.cli.when import ExpectedStarts
from muster.gangs.intent import Defaults
from muster.model.modes import GateMode
from muster.model.names import (
    ADMITTED_AT,
    GANG,
    MANAGED,
    MESSAGE,
    NAMESPACE_SELECTOR,
    PASSED_IN,
    PASSED_SINCE,
    QUEUE_ANNOTATION,
    RUNS_AT_MOST,
    SCHEDULER_LABEL,
    STATE,
)
from muster.model.objects import Namespace
from muster.model.times import text_of
from muster.workloads import kind_of
from tests.support.cases import cases
from tests.support.controller.bypass_queue import OF_A_JOB
from tests.support.controller.stores import filled
from tests.support.manifests.observed import (
    JSON,
    made,
    namespace,
    old_pod,
    pod_group,
    priority_class,
    queue,
    ray_cluster,
    ray_owner,
    ray_pod,
    workers,
)

NOW = 1_800_000_000.0
MESSAGE_WAITING = 'needs cpu 3 and memory 3Gi; queue "q" has cpu 1 free of cpu 4; position 1 of 1 waiting'
WAITING = {STATE: "WaitingForQuota", MESSAGE: MESSAGE_WAITING}


def gang(name: str, *, held: bool, **rest: Any) -> list[JSON]:  # noqa: ANN401 - whatever `ray_pod` takes
    """The three pods of a cluster of that name."""
    roles = {"head": "headgroup", "w-0": "workers", "w-1": "workers"}
    return [
        ray_pod(f"{name}-{pod}", role, held=held, cluster=name, owner_uid=f"uid-{name}", **rest)
        for pod, role in roles.items()
    ]


def group(name: str, **rest: Any) -> JSON:  # noqa: ANN401 - whatever `pod_group` takes
    owner = ray_owner(name)
    return pod_group(f"ray-{name}-pg", owner=owner, **rest)


def said(
    workload: JSON,
    pods: Sequence[JSON],
    visible: ClusterSnapshot,
    events: Sequence[Event] = (),
    *,
    helps: bool = False,
) -> dict[str, Any]:
    kind = kind_of(workload["apiVersion"], workload["kind"])
    assert kind is not None
    subject = Subject(kind, made(kind.decoded, workload), [made(TimedPod, pod) for pod in pods], events)
    snapshot = visible.ledger_snapshot(NOW)
    starts = ExpectedStarts(snapshot.ledger, NOW, seconds=5.0, whole=visible.whole)
    return explain(subject, visible, snapshot, starts, helps=helps)


def two_in_a_queue(*, helps: bool = False, **how: Any) -> dict[str, Any]:  # noqa: ANN401 - fields of the picture
    """A gang waits for another one of its queue."""
    demo, other = ray_cluster(), ray_cluster(name="other", uid="uid-other")
    pods = gang("demo", held=True)
    running = gang("other", held=False, nodeName="node-1", phase="Running")
    cluster = filled(
        workloads=[demo, other],
        pods=[*pods, *running],
        groups=[
            group("demo", annotations=WAITING, phase="Pending"),
            group("other", admitted="uid-other", annotations={STATE: "Running"}, phase="Running"),
        ],
        queues=[queue(cpu="4"), queue("root", memory="16Gi")],
    )
    of_muster = Event(
        event_time="2027-01-15T07:58:00Z",
        type="Normal",
        reason="WaitingForQuota",
        note="needs cpu 3",
        reporting_controller="muster.dev/controller",
    )
    events = [of_muster]
    return said(demo, pods, ClusterSnapshot(cluster, **how), events, helps=helps)


def test_who_waits_hears_what_it_needs_what_is_free_and_who_holds_the_rest() -> None:
    out = io.StringIO()
    print_explained([two_in_a_queue()], out, NOW)
    assert (
        out.getvalue()
        == """\
RayCluster team/demo
  WaitingForQuota: needs cpu 3 and memory 3Gi; queue "q" has cpu 1 free of cpu
    4; position 1 of 1 waiting
  gang       PodGroup ray-demo-pg, minMember 3, phase Pending
  scheduler  volcano  (default)
  queue      q  (metadata.labels[volcano.sh/queue-name])
  priority   -
  position   1 of 1 waiting
  expected   not known: nothing that is known to end makes room for it
  needs      cpu 3, memory 3Gi

  ROLE       WANTED  MIN  PODS  GATED  BOUND
  headgroup       1    1     1      1      0
  workers         2    2     2      2      0

  QUEUE  LIMIT        USED               FREE
  q      cpu 4        cpu 3, memory 3Gi  cpu 1
  root   memory 16Gi  cpu 3, memory 3Gi  memory 13Gi

  HELD BY            QUEUE  CLAIM
  team/ray-other-pg  q      cpu 3, memory 3Gi

  LAST SEEN  REASON           FROM        MESSAGE
  2m         WaitingForQuota  muster.dev  needs cpu 3
"""
    )


def test_what_would_help_stands_with_the_expected_start_and_only_where_all_gangs_are_known() -> None:
    out = io.StringIO()
    entry = two_in_a_queue(helps=True)
    print_explained([entry], out, NOW)
    assert "\n  would help it starts when ray-other-pg has ended\n" in out.getvalue()
    assert [one["by"] for one in entry["help"]] == ["ends"]
    assert two_in_a_queue(helps=True, whole=False)["help"] is None
    assert two_in_a_queue()["help"] is None


def test_who_waits_for_a_gang_with_a_limit_hears_when_it_starts() -> None:
    """The controller's message has the planned start, and `explain` says it where that message is older."""
    demo, other = ray_cluster(), ray_cluster(name="other", uid="uid-other", meta=OF_A_JOB)
    other["metadata"]["annotations"] = {RUNS_AT_MOST: "2h"}
    pods = gang("demo", held=True)
    marks = {STATE: "Running", ADMITTED_AT: text_of(NOW - 600)}
    cluster = filled(
        workloads=[demo, other],
        pods=[*pods, *gang("other", held=False, nodeName="node-1", phase="Running")],
        groups=[
            group("demo", annotations={**WAITING, PASSED_SINCE: text_of(NOW - 9000), PASSED_IN: "q"}),
            group("other", admitted="uid-other", annotations=marks, phase="Running"),
        ],
        queues=[queue(cpu="4")],
    )
    entry = said(demo, pods, ClusterSnapshot(cluster))
    out = io.StringIO()
    print_explained([entry], out, NOW)
    assert entry["when"] | {"assumes": []} == {
        "startsBy": "2027-01-15T09:50:00Z",
        "basis": "said",
        "expected": "2027-01-15T10:00:00Z",
        "knownRuns": 1.0,
        "behind": [],
        "assumes": [],
        "why": "",
    }
    assert """\
  planned    for 2027-01-15 09:50 UTC, if what runs ends as it says
  expected   about 2027-01-15 10:00 UTC, in 2 hours; run times are known for
             100% of what it waits for
""" in out.getvalue()


@pytest.mark.parametrize(
    ("gate", "position"), [("queue", {"position": 1, "waiting": 1}), ("assemble", None), ("off", None)]
)
def test_where_the_chart_has_no_gang_wait_for_room_none_has_a_position(gate: str, position: JSON | None) -> None:
    assert two_in_a_queue(settings=Settings(Defaults(gate=GateMode(gate))))["position"] == position


def test_a_workload_that_names_no_queue_is_explained_in_the_charts() -> None:
    visible = ClusterSnapshot.empty(read_settings("test", "{defaultQueue: q, bound: nodes}"))
    visible.cluster = filled(queues=[queue(cpu="4")])
    demo = ray_cluster(labels={MANAGED: "true"})
    entry = said(demo, [], visible)
    assert (entry["scheduling"]["queue"], [level["name"] for level in entry["queues"]]) == ("q", ["q"])
    assert visible.settings.by_nodes


@cases(
    "name, held, told",
    ("the scheduler of a plugin", "scheduler-plugins-scheduler", False, True),
    ("Kubernetes' own, with muster's gate", "default-scheduler", True, True),
    ("Kubernetes' own, as any pod", "default-scheduler", False, False),
    ("the one that the command knows", "volcano", True, False),
)
def test_pods_of_a_scheduler_that_the_command_was_not_told_of_are_no_riddle(name: str, held: bool, told: bool) -> None:
    pods = gang("demo", held=held, schedulerName=name)
    visible = ClusterSnapshot(filled(workloads=[ray_cluster()], pods=pods, queues=[queue(cpu="4")]))
    unknown = said(ray_cluster(), pods, visible)["unknown"]
    assert [f'the scheduler "{name}"' in one and "`schedulers`" in one for one in unknown] == [True] * told
    assert visible.missing == []


def test_of_pods_that_are_another_schedulers_business_nobody_says_that_muster_has_a_podgroup() -> None:
    """No installation would find one: it puts its label on every pod that it binds."""
    pods = gang("demo", held=False, schedulerName="yunikorn")
    for pod in pods:
        del pod["metadata"]["labels"][GANG]
    rays = ray_cluster(labels={SCHEDULER_LABEL: "yunikorn"})
    entry = said(rays, pods, ClusterSnapshot(filled(workloads=[rays], pods=pods, queues=[queue(cpu="4")])))
    assert (entry["state"], entry["unknown"]) == ("NotManaged", [])


def test_in_a_part_of_the_cluster_nothing_is_made_up() -> None:
    """What others hold elsewhere is unknown, and so is who stands before whom; the controller's word stays."""
    entry = two_in_a_queue(whole=False, missing=["cannot list pods in all namespaces"])
    assert (entry["state"], entry["message"]) == ("WaitingForQuota", MESSAGE_WAITING)
    assert (entry["position"], entry["when"]["why"]) == (None, "gangs of other namespaces cannot be read")
    assert entry["queues"][0] == {"name": "q", "limit": {"cpu": "4"}, "used": None, "free": None}
    out = io.StringIO()
    print_explained([entry], out, NOW)
    assert "  QUEUE  LIMIT\n  q      cpu 4\n" in out.getvalue()
    assert out.getvalue().endswith("\n  unknown: cannot list pods in all namespaces\n")


def test_who_runs_hears_what_it_holds() -> None:
    pods = gang("demo", held=False, nodeName="n", phase="Running")
    groups = [group("demo", admitted="uid-demo", annotations={STATE: "Running", MESSAGE: "cpu 3"}, phase="Running")]
    visible = ClusterSnapshot(filled(workloads=[ray_cluster()], pods=pods, groups=groups, queues=[queue(cpu="4")]))
    entry = said(ray_cluster(), pods, visible)
    assert (entry["state"], entry["holds"], entry["position"]) == ("Running", {"cpu": "3", "memory": "3Gi"}, None)
    assert [(role["gated"], role["bound"]) for role in entry["roles"]] == [(0, 1), (0, 2)]


def test_the_order_is_the_ledgers() -> None:
    """A more urgent gang stands before one that is older."""
    labels = {"volcano.sh/queue-name": "q", "ray.io/priority-class-name": "high"}
    urgent = ray_cluster(name="urgent", uid="uid-urgent", labels=labels)
    pods = gang("demo", held=True)
    cluster = filled(
        workloads=[ray_cluster(), urgent],
        pods=[*pods, *gang("urgent", held=True)],
        groups=[group("demo"), group("urgent")],
        queues=[queue(cpu="3", memory="1Gi")],
        classes=[priority_class("high", 1000)],
    )
    assert said(ray_cluster(), pods, ClusterSnapshot(cluster))["position"] == {"position": 2, "waiting": 2}


def bound_by_their_operator() -> list[JSON]:
    pods = gang("demo", held=False, phase="Running")
    for pod in pods:
        del pod["metadata"]["labels"][GANG]
    return pods


@cases(
    "workload, pods, groups, state, words",
    ("nothing is said", ray_cluster(labels={}), [], [], "NotManaged", "does not ask for gang scheduling"),
    (
        "taken out of muster's hands",
        ray_cluster(labels={"volcano.sh/queue-name": "q", MANAGED: "false"}),
        [],
        [],
        "NotManaged",
        'metadata.labels[muster.dev/managed] is "false"',
    ),
    (
        "another scheduler",
        ray_cluster(labels={SCHEDULER_LABEL: "yunikorn"}),
        [],
        [],
        "NotManaged",
        'metadata.labels[ray.io/scheduler-name] names the scheduler "yunikorn"',
    ),
    (
        "brownfield",
        ray_cluster(),
        [old_pod("demo-head", "headgroup"), old_pod("demo-w-0")],
        [],
        "NotManaged",
        "left alone until the pods are gone that came without muster: demo-head, demo-w-0",
    ),
    (
        "the operator's own group",
        ray_cluster(),
        bound_by_their_operator(),
        [group("demo", ours=False, phase="Running")],
        "External",
        'came bound to the PodGroup "ray-demo-pg"',
    ),
    (
        "somebody else's group in the way",
        ray_cluster(),
        gang("demo", held=True),
        [group("demo", ours=False)],
        "ForeignPodGroup",
        "is in the way",
    ),
    ("no pods yet", ray_cluster(), [], [], "Assembling", "no pods yet"),
    (
        "no controller",
        ray_cluster(),
        gang("demo", held=True),
        [],
        "Assembling",
        "tell your administrator: muster-controller may be down",
    ),
    ("suspended", ray_cluster(suspend=True), [], [], "Suspended", "is suspended"),
    ("no numbers", ray_cluster(workers(replicas=-1)), [], [], "Invalid", "spec.workerGroupSpecs[0].replicas: -1"),
)
def test_where_the_controller_says_nothing_there_is_a_reason(
    workload: JSON, pods: list[JSON], groups: list[JSON], state: str, words: str
) -> None:
    cluster = filled(workloads=[workload], pods=pods, groups=groups, queues=[queue(cpu="4")])
    entry = said(workload, pods, ClusterSnapshot(cluster))
    assert entry["state"] == state
    assert words in entry["message"]


def test_what_the_namespace_says_counts() -> None:
    """As it does for webhook and controller: it may opt in or out, and name the queue."""
    plain = ray_cluster(labels={})
    opted_in = namespace(labels={MANAGED: "true"}, annotations={QUEUE_ANNOTATION: "theirs"})
    entry = said(plain, [], ClusterSnapshot(filled(workloads=[plain], namespaces=[opted_in])))
    assert (entry["state"], entry["scheduling"]["queue"]) == ("Assembling", "theirs")
    opted_out = namespace(labels={MANAGED: "false"})
    entry = said(plain, [], ClusterSnapshot(filled(workloads=[plain], namespaces=[opted_out])))
    assert (entry["state"], entry["message"]) == (
        "NotManaged",
        'namespace team: metadata.labels[muster.dev/managed] is "false": muster does not manage it',
    )


def test_a_kind_that_is_only_planned_says_so() -> None:
    job = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": "a", "namespace": "team"}}
    entry = said(job, [], ClusterSnapshot(filled()))
    assert (entry["state"], entry["message"]) == (
        "NotManaged",
        "`muster plan` shows Jobs; muster does not hold their pods",
    )


def test_a_plain_job_is_explained_by_the_gang_that_its_pods_name() -> None:
    """The PodGroup has another name, and no owner that would lead there."""
    template = {
        "metadata": {"labels": {GANG: "pair"}, "annotations": {"muster.dev/gang-size": "2"}},
        "spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": "1"}}}]},
    }
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "a", "namespace": "team"},
        "spec": {"parallelism": 2, "completions": 2, "template": template},
    }
    group = pod_group("pair", annotations=WAITING)
    group["metadata"]["ownerReferences"] = []
    entry = said(job, [], ClusterSnapshot(filled(groups=[group], queues=[queue(cpu="4")])))
    assert (entry["state"], entry["message"]) == ("WaitingForQuota", MESSAGE_WAITING)


@cases(
    "event, time",
    ("a series", {"eventTime": "b", "series": {"lastObservedTime": "c"}}, "c"),
    ("of the old API", {"deprecatedLastTimestamp": "b", "eventTime": None}, "b"),
    ("of the new API", {"eventTime": "b"}, "b"),
    ("without any", {}, "a"),
)
def test_an_event_counts_from_its_last_time(event: JSON, time: str) -> None:
    assert made(Event, {"metadata": {"creationTimestamp": "a"}, **event}).time == time


@pytest.mark.parametrize("groups", [[], [group("demo", annotations={STATE: "QueueNotFound", MESSAGE: "said"})]])
def test_a_forbidden_queue_is_explained_as_a_missing_one(groups: list[JSON]) -> None:
    """Its limits and who holds it are nobody's business."""
    pods = gang("demo", held=True)
    entries = []
    for queues in ([queue("other")], [queue("other"), queue(annotations={NAMESPACE_SELECTOR: "team=ml"}, cpu="4")]):
        visible = ClusterSnapshot(cluster=filled(queues=queues, workloads=[ray_cluster()], pods=pods, groups=groups))
        fill = visible.cluster.namespaces
        fill.replace_all([made(Namespace, namespace(labels={"team": "web"}))])
        entries.append(said(ray_cluster(), pods, visible))
    assert entries[0] == entries[1]
    assert entries[0]["state"] == "QueueNotFound"
    assert entries[0]["message"] in ('queue "q" does not exist, or is not open to namespace "team"', "said")
