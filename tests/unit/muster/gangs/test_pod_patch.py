"""The patch of a new pod, applied with the `jsonpatch` library as the apiserver would."""

import copy
from typing import Any

import jsonpatch
import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.gangs.pod_patch import Operation, inject, is_free, membership
from muster.model.modes import GateMode
from muster.model.names import COOLDOWN
from muster.model.pods import Pod
from muster.schedulers import SCHEDULERS
from tests.support.cases import cases
from tests.support.manifests.generators import pods
from tests.support.manifests.observed import JSON, gang_and_intent, made, pod, pytorch_job, template

VOLCANO = SCHEDULERS["volcano"]
GATE = {"name": "muster.dev/gang"}


def workload(priority: str = "", own: str = "") -> JSON:
    """A job in queue q; `priority` is the workload's, `own` the worker template's."""
    policy = {"queue": "q", **({"priorityClass": priority} if priority else {})}
    spec = template(priorityClassName=own) if own else template()
    return pytorch_job(policy=policy, replicas={"Worker": {"replicas": 2, "template": spec}})


def patch_for(new: JSON, job: JSON, gate: GateMode = GateMode.QUEUE, role: str = "worker") -> list[Operation]:
    gang, intent = gang_and_intent(job)
    found = gang.role(role)
    assert found is not None
    return inject(made(Pod, new), membership(found, gang, intent, VOLCANO), gate=gate)


def patched(new: JSON, job: JSON, role: str = "worker") -> JSON:
    result: JSON = jsonpatch.apply_patch(copy.deepcopy(new), patch_for(new, job, role=role))
    return result


def new_pod(**spec: object) -> JSON:
    """A pod as the webhook sees it: defaulted by the apiserver, not yet scheduled."""
    made_up = pod("", schedulerName="default-scheduler", priority=0, preemptionPolicy="PreemptLowerPriority")
    made_up["spec"] |= spec
    return made_up


def test_the_whole_patch_of_a_plain_pod() -> None:
    bare = {"metadata": {"generateName": "w-"}, "spec": {"containers": [], "schedulerName": "default-scheduler"}}
    assert patch_for(bare, workload()) == [
        {"op": "add", "path": "/metadata/labels", "value": {"volcano.sh/queue-name": "q", "muster.dev/gang": "train"}},
        {
            "op": "add",
            "path": "/metadata/annotations",
            "value": {"scheduling.k8s.io/group-name": "train", "volcano.sh/task-spec": "worker"},
        },
        {"op": "add", "path": "/spec/schedulerName", "value": "volcano"},
        {"op": "add", "path": "/spec/schedulingGates", "value": [GATE]},
    ]


@cases(
    "job, spec, expected",
    ("another class: the computed numbers go", workload("high"), {}, {"priorityClassName": "high"}),
    (
        "the cluster's default class gives way",
        workload("high"),
        {"priorityClassName": "cluster-default", "priority": 5},
        {"priorityClassName": "high"},
    ),
    (
        "the same class: nothing is touched",
        workload("high"),
        {"priorityClassName": "high", "priority": 1000},
        {"priorityClassName": "high", "priority": 1000, "preemptionPolicy": "PreemptLowerPriority"},
    ),
    (
        "the template's own class stays",
        workload("high", own="low"),
        {"priorityClassName": "low", "priority": 1},
        {"priorityClassName": "low", "priority": 1, "preemptionPolicy": "PreemptLowerPriority"},
    ),
    (
        "a template's class is not put on others",
        workload(own="low"),
        {},
        {"priority": 0, "preemptionPolicy": "PreemptLowerPriority"},
    ),
    ("nobody named a class", workload(), {}, {"priority": 0, "preemptionPolicy": "PreemptLowerPriority"}),
    (
        "nothing computed yet: nothing to remove",
        workload("high"),
        {"priority": None, "preemptionPolicy": None},
        {"priorityClassName": "high", "priority": None, "preemptionPolicy": None},
    ),
)
def test_priority(job: JSON, spec: JSON, expected: JSON) -> None:
    result = patched(new_pod(**spec), job)["spec"]
    keys = ("priorityClassName", "priority", "preemptionPolicy")
    assert {key: result[key] for key in keys if key in result} == expected


@cases(
    "changes, free",
    ("an ordinary pod", {}, True),
    ("no scheduler named", {"schedulerName": ""}, True),
    ("volcano named already", {"schedulerName": "volcano"}, True),
    ("another scheduler", {"schedulerName": "mine"}, False),
    ("has a node", {"nodeName": "n1"}, False),
    ("a kubelet's mirror pod", {"mirror": True}, False),
    ("a daemon's", {"owner": {"apiVersion": "apps/v1", "kind": "DaemonSet"}}, False),
    ("of another DaemonSet", {"owner": {"apiVersion": "example.com/v1", "kind": "DaemonSet"}}, True),
    ("bound by an operator to another group", {"group": "other"}, False),
    ("bound by an operator to a group of the same name", {"group": "train"}, False),
    ("bound by us in an earlier round", {"group": "train", "ours": True}, True),
    ("ours, but with a node", {"group": "train", "ours": True, "nodeName": "n1"}, False),
)
def test_which_pods_are_musters_to_bind(changes: dict[str, Any], free: bool) -> None:
    annotations = {"kubernetes.io/config.mirror": "x"} if changes.pop("mirror", False) else {}
    if group := changes.pop("group", ""):
        annotations["scheduling.k8s.io/group-name"] = group
    labels = {"muster.dev/gang": "train"} if changes.pop("ours", False) else {}
    owner = {"name": "d", "uid": "u", "controller": True, **owner} if (owner := changes.pop("owner", None)) else None
    spec = {"schedulerName": "default-scheduler", **changes}
    new = pod("w", owner=owner, annotations=annotations, labels=labels, **spec)
    assert is_free(made(Pod, new), VOLCANO) is free


def test_gates_of_others_stay_and_ours_comes_last() -> None:
    result = patched(new_pod(schedulingGates=[{"name": "example.com/wait"}]), workload())
    assert result["spec"]["schedulingGates"] == [{"name": "example.com/wait"}, GATE]


jobs = st.builds(workload, st.sampled_from(["", "high", "low"]), st.sampled_from(["", "high", "low"]))


@given(pods, jobs)
def test_a_patched_pod_is_bound_labelled_pointed_and_held(new: JSON, job: JSON) -> None:
    result = patched(new, job)
    assert result["spec"]["schedulerName"] == "volcano"
    assert result["spec"]["schedulingGates"].count(GATE) == 1
    assert result["metadata"]["labels"].items() >= {"muster.dev/gang": "train", "volcano.sh/queue-name": "q"}.items()
    assert (
        result["metadata"]["annotations"].items()
        >= {"scheduling.k8s.io/group-name": "train", "volcano.sh/task-spec": "worker"}.items()
    )


@pytest.mark.parametrize("place", ["labels", "annotations"])
@pytest.mark.parametrize("said", ["true", "false"])
def test_what_a_pod_says_itself_of_being_preempted_stays(place: str, said: str) -> None:
    """Where it says nothing, muster keeps Volcano from taking the one master of an elastic job."""
    job = pytorch_job(policy={"minAvailable": 2})
    silent, outspoken = new_pod(), new_pod()
    outspoken["metadata"][place] = {"volcano.sh/preemptable": said}
    assert patched(silent, job, "master")["metadata"]["annotations"]["volcano.sh/preemptable"] == "false"
    result = patched(outspoken, job, "master")["metadata"]
    found = {where: result[where].get("volcano.sh/preemptable") for where in ("labels", "annotations")}
    assert found == {"labels": None, "annotations": None, place: said}


@given(pods, jobs)
def test_a_second_round_adds_nothing(new: JSON, job: JSON) -> None:
    """The apiserver calls again when a later webhook changed the pod, and a priority removed twice is lost."""
    result = patched(new, job)
    assert patch_for(result, job) == []


@given(pods, jobs)
def test_a_patched_pod_is_still_free(new: JSON, job: JSON) -> None:
    """Else the second round would take our own binding for an operator's."""
    assert is_free(made(Pod, patched(new, job)), VOLCANO)


@given(pods, jobs)
def test_nothing_else_is_changed(new: JSON, job: JSON) -> None:
    result = patched(new, job)
    touched = {"schedulerName", "schedulingGates", "priorityClassName", "priority", "preemptionPolicy"}
    assert {key: value for key, value in result["spec"].items() if key not in touched} == {
        key: value for key, value in new["spec"].items() if key not in touched
    }
    ours = {"muster.dev/gang", "volcano.sh/queue-name", "scheduling.k8s.io/group-name", "volcano.sh/task-spec"}
    for place in ("labels", "annotations"):
        before, after = new["metadata"].get(place) or {}, result["metadata"][place]
        assert {k: v for k, v in after.items() if k not in ours} == {k: v for k, v in before.items() if k not in ours}
    before_gates = new["spec"].get("schedulingGates") or []
    assert [gate for gate in result["spec"]["schedulingGates"] if gate != GATE] == [
        gate for gate in before_gates if gate != GATE
    ]
    assert result["metadata"]["generateName"] == "w-"


@given(pods, jobs)
def test_the_patch_cannot_fail_at_the_apiserver(new: JSON, job: JSON) -> None:
    """No `test`, no child without its parent: a patch that does not apply fails the call even under Ignore."""
    document: Any = copy.deepcopy(new)
    for operation in patch_for(new, job):
        assert operation["op"] in {"add", "remove"}
        *parents, _ = operation["path"].split("/")[1:]
        place = document
        for segment in parents:
            place = place[segment.replace("~1", "/").replace("~0", "~")]
        assert place is not None
        document = jsonpatch.apply_patch(document, [operation])


@given(pods, jobs)
def test_a_class_and_computed_numbers_never_stand_together_after_a_change(new: JSON, job: JSON) -> None:
    """The Priority plugin refuses a pod whose class was changed and whose number was not taken away."""
    result = patched(new, job)["spec"]
    if result.get("priorityClassName") != new["spec"].get("priorityClassName"):
        assert result.get("priority") is None
        assert not result.get("preemptionPolicy")
    else:
        assert result.get("priority") == new["spec"].get("priority")


def test_with_the_gate_off_a_pod_is_bound_pointed_and_not_held() -> None:
    new = new_pod()
    operations = patch_for(new, workload("high"), GateMode.OFF)
    assert operations == [one for one in patch_for(new, workload("high")) if "schedulingGates" not in one["path"]]
    assert "/spec/schedulerName" in [one["path"] for one in operations]


@pytest.mark.parametrize("said", [{}, {COOLDOWN: "5m"}])
def test_a_pod_of_a_queue_with_a_min_runtime_says_so_to_volcano_unless_it_says_another_itself(
    said: dict[str, str],
) -> None:
    gang, intent = gang_and_intent(workload())
    new = new_pod()
    new["metadata"]["annotations"] = said
    member = membership(gang.roles[0], gang, intent, VOLCANO, min_runtime=1800.0)
    operations = inject(made(Pod, new), member, gate=GateMode.QUEUE)
    result = jsonpatch.apply_patch(copy.deepcopy(new), operations)
    assert result["metadata"]["annotations"][COOLDOWN] == said.get(COOLDOWN, "1800s")
