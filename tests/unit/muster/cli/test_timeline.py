"""What the timeline of a gang tells, and from what."""

from muster.cli.explain.subjects import Event, TimedPod, untimed
from muster.cli.page.gang import timeline
from muster.cluster.observe import observe
from muster.model.names import ADMITTED_AT, ADMITTER, PASSED_IN, PASSED_SINCE, REQUEUED_AT
from muster.model.pods import Pod
from muster.model.times import seconds_of
from muster.workloads import kind_of
from tests.support.controller.stores import filled
from tests.support.manifests.observed import DEFAULTS, JSON, KEY, made, pod_group, ray_cluster, ray_pod

DAY = "2026-11-24T"


def timed(name: str, *, node: str = "", created: str = "10:00:01", **since: str) -> TimedPod:
    """A pod whose conditions hold since these times of the day; `gone`, `ended` are conditions by their meaning."""
    meant = {
        "gone": {"type": "DisruptionTarget", "message": "why"},
        "ended": {"type": "Ready", "status": "False", "reason": "PodCompleted"},
    }
    conditions = [
        {"type": type_, "status": "True", "lastTransitionTime": f"{DAY}{time}Z"} | meant.get(type_, {})
        for type_, time in since.items()
    ]
    pod = ray_pod(name, held=False, nodeName=node, meta={"creationTimestamp": f"{DAY}{created}Z"})
    return made(TimedPod, pod | {"status": {"phase": "Running", "conditions": conditions}})


def told(
    *pods: TimedPod, events: tuple[Event, ...] = (), group: JSON | None = None, workload: JSON | None = None
) -> list[tuple[str, str, str, str]]:
    """The timeline, with the times of the day."""
    view = observe(KEY, filled(groups=[group] if group else []), DEFAULTS)
    kind = kind_of("ray.io/v1", "RayCluster")
    decoded = made(kind.decoded, workload) if kind and workload else None
    found = timeline(decoded, view, pods, events)
    midnight = seconds_of(f"{DAY}00:00:00Z") or 0.0
    clock = [divmod(int(one.at - midnight), 60) for one in found]
    return [
        (f"{minutes // 60:02}:{minutes % 60:02}:{seconds:02}", one.what, one.detail, one.source)
        for (minutes, seconds), one in zip(clock, found, strict=True)
    ]


def test_pods_are_told_by_the_first_and_the_last() -> None:
    pods = (
        timed("a", node="n1", PodScheduled="10:05:00", Ready="10:06:00"),
        timed("b", node="n2", created="10:00:09", PodScheduled="10:05:02"),
        timed("c", created="10:00:05"),
    )
    assert told(*pods) == [
        ("10:00:01", "First pod created", "a on n1", "pods"),
        ("10:00:09", "3 of 3 pods created", "the last was b on n2", "pods"),
        ("10:05:00", "First pod placed on a node", "a on n1", "pods"),
        ("10:05:02", "2 of 3 pods placed on a node", "the last was b on n2", "pods"),
        ("10:06:00", "1 of 3 pods ready", "a on n1", "pods"),
    ]


def test_an_eviction_is_told_with_its_reason_and_the_end_of_a_pod_too() -> None:
    pods = (timed("a", gone="10:07:00"), timed("b", ended="10:08:00"))
    assert told(*pods)[2:] == [
        ("10:07:00", "Pod evicted", "a: why", "pods"),
        ("10:08:00", "1 of 2 pods ended", "b", "pods"),
    ]


def test_the_podgroup_tells_when_it_was_passed_admitted_and_requeued() -> None:
    said = {
        PASSED_SINCE: f"{DAY}10:01:00Z",
        PASSED_IN: "q",
        REQUEUED_AT: f"{DAY}10:02:00Z",
        ADMITTED_AT: f"{DAY}10:03:00.5Z",
    }
    meta = {"annotations": said, "creationTimestamp": f"{DAY}10:00:00Z"}
    group = pod_group(meta=meta)
    assert told(group=group) == [
        ("10:00:00", "PodGroup created", "ray-demo-pg", "PodGroup"),
        ("10:01:00", "Passed for the first time", 'smaller gangs of queue "q" start before it', "PodGroup"),
        ("10:02:00", "Gave its place back", "and queues again", "PodGroup"),
        ("10:03:00", "Admitted", 'in queue "q"', "PodGroup"),
    ]
    said[ADMITTER] = "kueue"
    assert told(group=group)[-1][1:] == ("Admitted", "by Kueue", "PodGroup")


def test_the_workload_tells_when_it_was_made_and_when_it_is_to_go() -> None:
    meta = {"creationTimestamp": f"{DAY}09:59:00Z", "deletionTimestamp": f"{DAY}11:00:00Z"}
    assert told(workload=ray_cluster(meta=meta)) == [
        ("09:59:00", "Created", "the workload demo", "workload"),
        ("11:00:00", "Deletion asked for", "of the workload demo", "workload"),
    ]


def test_what_muster_says_of_workload_and_podgroup_is_told_once_and_repeats_are_counted() -> None:
    said = [
        made(
            Event,
            {
                "eventTime": f"{DAY}{time}Z",
                "reason": "WaitingForQuota",
                "note": "needs cpu 3",
                "reportingController": "muster.dev/controller",
            },
        )
        for time in ("10:00:02.100000", "10:00:02.900000", "10:09:00.000000")
    ]
    often = made(
        Event,
        {
            "deprecatedFirstTimestamp": f"{DAY}10:01:00Z",
            "deprecatedLastTimestamp": f"{DAY}10:04:00Z",
            "deprecatedCount": 12,
            "reason": "Unschedulable",
            "note": "no node",
            "reportingController": "volcano",
        },
    )
    assert told(events=(*said, often)) == [
        ("10:00:02", "WaitingForQuota", "needs cpu 3", "muster"),
        ("10:04:00", "Unschedulable", "no node (12 times since 2026-11-24 10:01:00)", "volcano"),
        ("10:09:00", "WaitingForQuota", "needs cpu 3", "muster"),
    ]


def test_a_time_that_is_none_and_a_pod_without_times_tell_nothing() -> None:
    events = (Event(event_time="soon", reason="Odd"),)
    assert told(untimed(made(Pod, ray_pod("a"))), events=events) == []
