"""What a PodGroup should say, and when it is written again."""

from typing import Any

from muster.cluster.observe import observe
from muster.model.names import MANAGED_BY, MUSTER
from muster.model.objects import PodGroup
from muster.planning.pod_group import applicable, claim_of, deferred, desired, unreserved, up_to_date
from muster.planning.snapshot import GangSnapshot
from muster.planning.writes import Repairs
from tests.support.cases import cases
from tests.support.controller.stores import filled
from tests.support.manifests.observed import (
    DEFAULTS,
    GROUP,
    JSON,
    KEY,
    QUEUE_LABELS,
    amounts,
    made,
    pod_group,
    ray_cluster,
    ray_owner,
    template,
    workers,
)


def view(cluster: JSON, group: JSON | None = None) -> GangSnapshot:
    return observe(KEY, filled(workloads=[cluster], groups=[group or pod_group()]), DEFAULTS)


def numbers(cluster: JSON, group: JSON | None = None, *, admitted: bool = True) -> dict[str, Any]:
    spec: dict[str, Any] = desired(view(cluster, group), admitted=admitted).manifest["spec"]
    return spec


def test_what_is_there_is_what_is_wanted() -> None:
    """The builder's PodGroup is the one of the builder's workload: nothing to write."""
    seen = view(ray_cluster())
    assert seen.pod_group is not None
    assert up_to_date(seen.pod_group, desired(seen, admitted=False))


@cases(
    "drift",
    ("minMember", {"minMember": 2}),
    ("minTaskMember", {"minTaskMember": {"headgroup": 1}}),
    ("minResources lack one", {"minResources": {"cpu": "3"}}),
    ("minResources that nobody can read", {"minResources": {"cpu": "three"}}),
    ("queue", {"queue": "other"}),
    ("owner", {"owner": ray_owner(uid="x")}),
    ("label", {"ours": False}),
)
def test_a_drift_is_seen(drift: dict[str, Any]) -> None:
    seen = view(ray_cluster())
    assert not up_to_date(made(PodGroup, pod_group(**drift)), desired(seen, admitted=False))


def test_a_missing_annotation_of_the_workload_is_seen() -> None:
    seen = view(ray_cluster(annotations={"volcano.sh/x": "y"}))
    assert seen.pod_group is not None
    assert not up_to_date(seen.pod_group, desired(seen, admitted=False))


@cases(
    "other",
    ("the same amounts in other words", {"minResources": {"cpu": "3000m", "memory": "3072Mi"}}),
    ("annotations", {"annotations": {"example.com/x": "y", "muster.dev/state": "Running"}}),
    ("status", {"phase": "Running"}),
    ("a field that muster does not write", {"networkTopology": {"mode": "hard"}}),
    ("a priority where none is asked for", {"priorityClassName": "high"}),
    ("a resource more", {"minResources": {"cpu": "3", "memory": "3Gi", "nvidia.com/gpu": "1"}}),
    ("a role more", {"minTaskMember": {"headgroup": 1, "workers": 2, "x": 1}}),
    ("a label more", {"meta": {"labels": {MANAGED_BY: MUSTER, "team": "blue"}}}),
    (
        "an owner more",
        {
            "meta": {
                "ownerReferences": [
                    {"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "x"},
                    *pod_group()["metadata"]["ownerReferences"],
                ]
            }
        },
    ),
)
def test_what_others_wrote_is_no_drift(other: dict[str, Any]) -> None:
    seen = view(ray_cluster())
    assert up_to_date(made(PodGroup, pod_group(**other)), desired(seen, admitted=False))


def managed(*entries: tuple[str, str, JSON]) -> JSON:
    """Metadata that say who wrote what: field manager, operation, FieldsV1."""
    return {"managedFields": [{"manager": by, "operation": how, "fieldsV1": what} for by, how, what in entries]}


@cases(
    "fields",
    ("an annotation", {"f:metadata": {"f:annotations": {"f:volcano.sh/old": {}}}}),
    ("a label", {"f:metadata": {"f:labels": {"f:old": {}}}}),
    ("the topology", {"f:spec": {"f:networkTopology": {"f:mode": {}}}}),
    ("a resource", {"f:spec": {"f:minResources": {"f:nvidia.com/gpu": {}}}}),
    ("a role", {"f:spec": {"f:minTaskMember": {"f:gone": {}}}}),
    ("the priority", {"f:spec": {"f:priorityClassName": {}}}),
)
def test_what_muster_wrote_and_does_not_say_any_more_is_a_drift_and_what_others_wrote_is_none(fields: JSON) -> None:
    seen = view(ray_cluster())
    ours = made(PodGroup, pod_group(meta=managed(("muster", "Apply", fields))))
    assert not up_to_date(ours, desired(seen, admitted=False))
    theirs = made(
        PodGroup,
        pod_group(meta=managed(("muster-ledger", "Apply", fields), ("kubectl", "Update", fields))),
    )
    assert up_to_date(theirs, desired(seen, admitted=False))


def test_what_muster_owns_and_says_is_no_drift() -> None:
    """With everything that FieldsV1 has in it: the thing itself, and items of a list."""
    fields = {
        "f:metadata": {
            "f:annotations": {},
            "f:labels": {".": {}, f"f:{MANAGED_BY}": {}},
            "f:ownerReferences": {'k:{"uid":"uid-demo"}': {".": {}, "f:name": {}}},
        },
        "f:spec": {"f:minMember": {}, "f:minResources": {".": {}, "f:cpu": {}, "f:memory": {}}, "f:queue": {}},
    }
    group = made(PodGroup, pod_group(meta=managed(("muster", "Apply", fields))))
    assert up_to_date(group, desired(view(ray_cluster()), admitted=False))


@cases(
    "labels, there",
    ("mode", {"volcano.sh/network-topology-mode": "hard"}, {"mode": "soft"}),
    (
        "tier",
        {
            "volcano.sh/network-topology-mode": "hard",
            "volcano.sh/network-topology-highest-tier-allowed": "2",
        },
        {"mode": "hard", "highestTierAllowed": 1},
    ),
)
def test_another_topology_is_a_drift(labels: dict[str, str], there: JSON) -> None:
    seen = view(ray_cluster(labels={**QUEUE_LABELS, **labels}))
    wanted = desired(seen, admitted=False)
    assert not up_to_date(made(PodGroup, pod_group(networkTopology=there)), wanted)
    assert up_to_date(made(PodGroup, pod_group(networkTopology=wanted.manifest["spec"]["networkTopology"])), wanted)


def test_before_admission_everything_follows_the_workload() -> None:
    changed = ray_cluster(workers(replicas=4), labels={"volcano.sh/queue-name": "r"})
    assert numbers(changed, admitted=False) == {
        "minMember": 5,
        "minTaskMember": {"headgroup": 1, "workers": 4},
        "minResources": {"cpu": "5", "memory": "5Gi"},
        "queue": "r",
    }


FROZEN = {
    "minMember": 3,
    "minTaskMember": {"headgroup": 1, "workers": 2},
    "minResources": {"cpu": "3", "memory": "3Gi"},
    "queue": "q",
}


@cases(
    "cluster, expected",
    ("scaled up", ray_cluster(workers(replicas=4)), FROZEN),
    (
        "scaled down",
        ray_cluster(workers(replicas=1)),
        {
            **FROZEN,
            "minMember": 2,
            "minTaskMember": {"headgroup": 1, "workers": 1},
            "minResources": {"cpu": "2", "memory": "2Gi"},
        },
    ),
    ("another queue", ray_cluster(labels={"volcano.sh/queue-name": "r"}), FROZEN),
    (
        "another priority",
        ray_cluster(labels={"volcano.sh/queue-name": "q", "ray.io/priority-class-name": "high"}),
        FROZEN,
    ),
    ("larger pods", ray_cluster(head=template("9")), FROZEN),
    ("smaller pods", ray_cluster(head=template("500m")), {**FROZEN, "minResources": {"cpu": "2500m", "memory": "3Gi"}}),
    (
        "a new role, as many pods",
        ray_cluster(workers(replicas=1), workers("more", 1)),
        {**FROZEN, "minMember": 2, "minTaskMember": {"headgroup": 1, "workers": 1}},
    ),
    (
        "a role renamed",
        ray_cluster(workers("others", 2)),
        {**FROZEN, "minMember": 1, "minTaskMember": {"headgroup": 1}},
    ),
)
def test_while_admitted_numbers_only_fall_and_queue_and_priority_stay(cluster: JSON, expected: JSON) -> None:
    """Volcano blocks the replacement of a crashed member when they rise, and its usage would move unchecked."""
    assert numbers(cluster) == expected


@cases(
    "owned, expected",
    ("only another field", {"f:minMember": {}}, {"queue": "r", "workers": 4, "cpu": "5"}),
    ("the queue", {"f:minMember": {}, "f:queue": {}}, {"queue": "q", "workers": 4, "cpu": "5"}),
    ("another role", {"f:minTaskMember": {"f:headgroup": {}}}, {"queue": "r", "workers": 4, "cpu": "5"}),
    ("the role", {"f:minTaskMember": {"f:workers": {}}}, {"queue": "r", "workers": 2, "cpu": "5"}),
    ("another resource", {"f:minResources": {"f:memory": {}}}, {"queue": "r", "workers": 4, "cpu": "5"}),
    ("the resource", {"f:minResources": {"f:cpu": {}}}, {"queue": "r", "workers": 4, "cpu": "3"}),
)
def test_without_a_mark_only_what_muster_owns_stays_while_admitted(owned: JSON, expected: dict[str, Any]) -> None:
    """Somebody else wrote the rest: that follows the workload."""
    group = pod_group(meta=managed(("muster", "Apply", {"f:spec": owned})))
    spec = numbers(ray_cluster(workers(replicas=4), labels={"volcano.sh/queue-name": "r"}), group)
    assert {
        "queue": spec["queue"],
        "workers": spec["minTaskMember"]["workers"],
        "cpu": spec["minResources"]["cpu"],
    } == expected


def test_a_gang_whose_claim_is_soft_reserves_nothing_with_volcano() -> None:
    seen = view(ray_cluster())
    spec = unreserved(seen, desired(seen, admitted=True)).manifest["spec"]
    assert spec == {**FROZEN, "minResources": {"cpu": "0", "memory": "0"}}


@cases(
    "cluster, reserved",
    ("as it was", ray_cluster(), {"cpu": "3", "memory": "3Gi"}),
    ("scaled up meanwhile", ray_cluster(workers(replicas=4)), {"cpu": "3", "memory": "3Gi"}),
    ("scaled down meanwhile", ray_cluster(workers(replicas=1)), {"cpu": "2", "memory": "2Gi"}),
)
def test_a_claim_that_is_hard_again_is_that_of_the_minimums_it_was_admitted_for(cluster: JSON, reserved: JSON) -> None:
    """What its workload has come to want since is growth, and growth needs room."""
    owned: JSON = {
        "f:spec": {
            "f:minResources": {"f:cpu": {}, "f:memory": {}},
            "f:minTaskMember": {"f:headgroup": {}, "f:workers": {}},
        }
    }
    soft = pod_group(minResources={"cpu": "0", "memory": "0"}, meta=managed(("muster", "Apply", owned)))
    assert numbers(cluster, soft)["minResources"] == reserved


def test_while_admitted_the_priority_that_is_there_stays() -> None:
    assert numbers(ray_cluster(), pod_group(priorityClassName="high"))["priorityClassName"] == "high"


def test_what_somebody_wrote_over_an_admitted_group_is_put_right() -> None:
    """Queue and numbers stay as muster wrote them, not as somebody else did: the fields that muster owns tell."""
    left: JSON = {"f:spec": {"f:minTaskMember": {"f:headgroup": {}}, "f:minResources": {"f:memory": {}}}}
    edited = pod_group(
        queue="theirs",
        priorityClassName="theirs",
        minMember=1,
        minTaskMember={"headgroup": 1, "workers": 1},
        minResources={"cpu": "1", "memory": "3Gi"},
        meta=managed(("muster", "Apply", left), ("kubectl-edit", "Update", {})),
    )
    asked = ray_cluster(labels={**QUEUE_LABELS, "ray.io/priority-class-name": "high"})
    assert numbers(asked, edited) == {**FROZEN, "priorityClassName": "high"}


@cases("taken", ("minResources", {"minResources": {}}), ("minTaskMember", {"minTaskMember": {}}))
def test_numbers_that_somebody_took_out_of_an_admitted_group_come_back(taken: JSON) -> None:
    """Nothing of them is owned any more."""
    left: JSON = {"f:spec": {f"f:{field}": {} for field in ("minMember", "queue")}}
    assert numbers(ray_cluster(), pod_group(**taken, meta=managed(("muster", "Apply", left)))) == FROZEN


def test_after_a_time_of_being_left_alone_the_numbers_come_back() -> None:
    """Pods that run make the gang admitted, and the PodGroup is the one that held nobody back."""
    alone = pod_group(minMember=1, minTaskMember={}, minResources={})
    assert numbers(ray_cluster(), alone) == FROZEN


def test_what_is_left_of_a_gang_that_asks_for_nothing_any_more_is_zeros() -> None:
    """As when all pods of plain pods have ended. An apply without them would leave null, which the CRD refuses."""
    nothing = ray_cluster(workers(replicas=0), head=template(""))
    assert numbers(nothing, pod_group(), admitted=False)["minResources"] == {"cpu": "0", "memory": "0"}


def test_numbers_of_a_gang_that_asks_for_nothing_do_not_rise_either() -> None:
    """It has no minResources, as a PodGroup has that holds nobody back."""
    idle = template("")
    larger = ray_cluster(workers(replicas=4, template=idle), head=idle)
    assert numbers(larger, pod_group(minResources={}))["minMember"] == 3


@cases(
    "cluster, said",
    ("nothing", ray_cluster(), ""),
    ("scaled down", ray_cluster(workers(replicas=1)), ""),
    ("queue", ray_cluster(labels={"volcano.sh/queue-name": "r"}), 'from its next admission on: queue "r"'),
    (
        "priority and size",
        ray_cluster(workers(replicas=4), labels={**QUEUE_LABELS, "ray.io/priority-class-name": "high"}),
        'from its next admission on: priority "high", minMember 5',
    ),
)
def test_what_an_admitted_group_cannot_follow_is_said(cluster: JSON, said: str) -> None:
    assert deferred(view(cluster)) == said


def test_a_priority_that_is_taken_away_is_said() -> None:
    assert (
        deferred(view(ray_cluster(), pod_group(priorityClassName="high"))) == "from its next admission on: no priority"
    )


def test_a_new_group_meets_none_of_that_name_and_a_change_this_one_alone() -> None:
    """The apiserver refuses a resource version that is not the object's, and a UID that is not."""
    manifest = desired(view(ray_cluster()), admitted=False).manifest
    group = made(PodGroup, pod_group())
    new, changed = applicable(manifest, None)["metadata"], applicable(manifest, group)["metadata"]
    assert (new["resourceVersion"], "uid" in new) == ("1", False)
    assert (changed["uid"], "resourceVersion" in changed) == (f"uid-{GROUP}", False)


def test_repairs_of_the_same_are_at_once_and_then_further_and_further_apart() -> None:
    repairs, now = Repairs(), 100.0
    delays = []
    for _ in range(12):
        wait = repairs.wait({"a": 1}, now)
        delays.append(wait)
        now += wait
        repairs.note({"a": 1}, now)
    assert delays == [0, 0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 300]


def test_a_dispute_that_never_ends_is_a_write_each_five_minutes() -> None:
    """Somebody else's controller writes something else each time; after days of it nothing has become too large."""
    repairs, now = Repairs(), 100.0
    for _ in range(1100):
        repairs.note({"a": 1}, now)
        now += repairs.wait({"a": 1}, now)
    repairs.note({"a": 1}, now)
    assert repairs.wait({"a": 1}, now) == 300


def test_something_new_is_written_at_once_and_after_a_calm_the_same_too() -> None:
    repairs = Repairs()
    for _ in range(5):
        repairs.note({"a": 1}, 100.0)
    assert repairs.wait({"a": 1}, 100.0) > 0
    assert repairs.wait({"a": 2}, 100.0) == 0
    repairs.note({"a": 1}, 1000.0)
    repairs.note({"a": 1}, 1000.0)
    assert repairs.wait({"a": 1}, 1000.0) == 1


def test_admitted_without_a_group_is_made_as_the_workload_says() -> None:
    """Somebody deleted the PodGroup of a running gang."""
    seen = observe(KEY, filled(workloads=[ray_cluster()]), DEFAULTS)
    assert seen.pod_group is None
    assert desired(seen, admitted=True).manifest["spec"] == FROZEN


def test_a_claim_is_what_the_group_reserves() -> None:
    assert claim_of(made(PodGroup, pod_group()).spec) == amounts(cpu="3", memory="3Gi")


def test_a_claim_that_nobody_can_read_is_none() -> None:
    assert claim_of(made(PodGroup, pod_group(minResources={"cpu": "three"})).spec) == {}
