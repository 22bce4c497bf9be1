"""Reviews of new pods."""

import copy

import jsonpatch
import pytest

from muster.gangs.intent import Defaults
from muster.kube.errors import ApiError, Unreachable
from muster.model.findings import Reason, Severity, Validation
from muster.model.objects import InvalidObjectError
from tests.support.cases import cases
from tests.support.manifests.observed import (
    JSON,
    NAMESPACE,
    as_json,
    namespace,
    old_pod,
    pod,
    pytorch_job,
    pytorch_pod,
    queue,
    ray_cluster,
    ray_owner,
    workers,
)
from tests.support.webhook.admission_reviews import Reader, answered, knowing, patch_of, request
from webhook.reviews.cluster_reader import ClusterReader
from webhook.reviews.codec import AdmissionResponse
from webhook.reviews.pods import review_pod

RAY_OWNER = ray_owner(controller=True)
DELETING = {"deletionTimestamp": "2026-11-21T10:00:00Z"}


def new_pod(role: str | None = "workers", owner: JSON | None = None, **spec: object) -> JSON:
    """A pod as KubeRay sends it: no name yet, nothing of muster's on it."""
    labels = {"ray.io/cluster": "demo", **({"ray.io/group": role} if role else {})}
    return pod(
        "",
        owner=RAY_OWNER if owner is None else owner,
        labels=labels,
        **({"schedulerName": "default-scheduler", "priority": 0} | spec),  # type: ignore[arg-type] # a pod's spec
    )


async def reviewed(new: JSON, knowledge: ClusterReader | None = None) -> AdmissionResponse:
    return await review_pod(request(new), knowledge or knowing(workloads=[ray_cluster()]))


@pytest.mark.parametrize(("severity", "allowed"), [(Severity.WARN, True), (Severity.DENY, False)])
async def test_a_member_that_comes_with_claims_is_refused_where_those_are(severity: Severity, *, allowed: bool) -> None:
    """Whoever wrote them there: not the template, of which admission has seen everything."""
    defaults = Defaults(validation=Validation(reasons={Reason.RESOURCE_CLAIMS: severity}))
    labels = {"ray.io/cluster": "demo", "ray.io/group": "workers"}
    claiming = pod(
        "", owner=ray_owner(controller=True), labels=labels, schedulerName="", resourceClaims=[{"name": "gpu"}]
    )
    answer = await review_pod(request(claiming), knowing(workloads=[ray_cluster()], defaults=defaults))
    assert (answer.allowed, list(answer.reasons)) == (allowed, [] if allowed else [Reason.RESOURCE_CLAIMS])


async def test_a_member_is_bound_pointed_and_held() -> None:
    new = new_pod()
    result = jsonpatch.apply_patch(new, patch_of(await reviewed(new)))
    assert result["spec"]["schedulerName"] == "volcano"
    assert result["spec"]["schedulingGates"] == [{"name": "muster.dev/gang"}]
    assert result["metadata"]["labels"]["muster.dev/gang"] == "ray-demo-pg"
    assert result["metadata"]["annotations"] == {
        "scheduling.k8s.io/group-name": "ray-demo-pg",
        "volcano.sh/task-spec": "workers",
    }


async def test_a_member_of_an_old_workload_version_is_bound_too() -> None:
    answer = await reviewed(new_pod(owner={**RAY_OWNER, "apiVersion": "ray.io/v1alpha1"}))
    assert answer.patch


async def test_the_priority_of_a_job_goes_onto_its_pods() -> None:
    new = pytorch_pod("train-worker-0", held=False, priority=0, schedulerName="default-scheduler")
    new["metadata"]["labels"].pop("muster.dev/gang")
    new["metadata"]["annotations"] = {}
    knowledge = knowing(workloads=[pytorch_job(policy={"queue": "q", "priorityClass": "high"})])
    result = jsonpatch.apply_patch(new, patch_of(await reviewed(new, knowledge)))
    assert (result["spec"]["priorityClassName"], "priority" in result["spec"]) == ("high", False)


@cases(
    "new, workload",
    ("no owner", new_pod(owner={}), ray_cluster()),
    ("no controlling owner", new_pod(owner={**RAY_OWNER, "controller": False}), ray_cluster()),
    (
        "a Job's, as KubeRay's clean-up",
        new_pod(owner={"apiVersion": "batch/v1", "kind": "Job", "name": "demo", "uid": "u", "controller": True}),
        ray_cluster(),
    ),
    ("workload says nothing", new_pod(), ray_cluster(labels={})),
    ("opted out", new_pod(), ray_cluster(labels={"muster.dev/managed": "false", "volcano.sh/queue-name": "q"})),
    ("another scheduler by label", new_pod(), ray_cluster(labels={"ray.io/scheduler-name": "yunikorn"})),
    ("workload being deleted", new_pod(), ray_cluster(meta=DELETING)),
    ("a role that the workload has not", new_pod(role="gone"), ray_cluster()),
    ("no role", new_pod(role=None), ray_cluster()),
    ("has a node", new_pod(nodeName="n"), ray_cluster()),
    ("broken, but not ours", new_pod(), ray_cluster(workers(replicas=-1), labels={})),
)
async def test_what_is_not_musters_passes_untouched(new: JSON, workload: JSON) -> None:
    assert answered(await reviewed(new, knowing(workloads=[workload]))) == {"uid": "u", "allowed": True}


async def test_a_pod_that_the_operator_bound_passes_untouched() -> None:
    new = new_pod(schedulerName="volcano")
    new["metadata"]["annotations"] = {"scheduling.k8s.io/group-name": "ray-demo-pg"}
    assert not (await reviewed(new)).patch


async def test_a_second_round_changes_nothing() -> None:
    new = new_pod()
    once = jsonpatch.apply_patch(new, patch_of(await reviewed(new)))
    assert not (await reviewed(once)).patch


async def test_every_member_is_held_whatever_its_gang_may_do() -> None:
    """A stale mark must never let a new gang through: the webhook knows nothing of admission."""
    assert (await reviewed(new_pod(), knowing(workloads=[ray_cluster(suspend=True)]))).patch


async def test_a_workload_that_the_watch_has_not_seen_is_read() -> None:
    reader = Reader({"rayclusters/demo": ray_cluster()})
    assert (await reviewed(new_pod(), knowing(reader))).patch
    assert reader.reads == ["rayclusters/demo"]


async def test_a_workload_that_the_watch_knows_is_not_read() -> None:
    reader = Reader()
    await reviewed(new_pod(), knowing(reader, workloads=[ray_cluster()]))
    assert reader.reads == []


async def test_a_recreated_workload_is_read_for_its_uid() -> None:
    """The watch still shows the former one of that name."""
    reader = Reader({"rayclusters/demo": ray_cluster()})
    former = ray_cluster(uid="uid-former", labels={})
    assert (await reviewed(new_pod(), knowing(reader, workloads=[former]))).patch


@cases("reader", ("gone", Reader()), ("another by now", Reader({"rayclusters/demo": ray_cluster(uid="uid-next")})))
async def test_a_pod_of_a_workload_that_is_gone_passes_for_the_garbage_collector(reader: Reader) -> None:
    assert answered(await reviewed(new_pod(), knowing(reader))) == {"uid": "u", "allowed": True}


@pytest.mark.parametrize("error", [Unreachable("silent"), ApiError(500, "", "broken"), ApiError(403, "Forbidden", "")])
async def test_a_workload_that_cannot_be_read_decides_nothing(error: ApiError) -> None:
    """A member that slipped through ungated could never be gated afterwards."""
    with pytest.raises(ApiError):
        await reviewed(new_pod(), knowing(Reader({"rayclusters/demo": error})))


async def test_a_pod_of_a_workload_whose_numbers_make_no_gang_is_refused() -> None:
    response = answered(await reviewed(new_pod(), knowing(workloads=[ray_cluster(workers(replicas=-1))])))
    assert not response["allowed"]
    assert response["status"]["reason"] == "Invalid"
    assert response["status"]["message"] == (
        "RayCluster demo: spec.workerGroupSpecs[0].replicas: -1 is negative; a number of pods is 0 or more"
    )


async def test_what_is_no_pod_is_an_error() -> None:
    with pytest.raises(InvalidObjectError):
        await review_pod(request(None), knowing())


async def test_a_pod_that_names_another_scheduler_is_left_alone_and_said() -> None:
    answer = answered(await reviewed(new_pod(schedulerName="mine"), knowing(workloads=[ray_cluster()])))
    assert answer == {
        "uid": "u",
        "allowed": True,
        "warnings": ['spec.schedulerName: "mine" is not volcano; muster leaves the pod alone'],
    }


async def test_a_pod_that_names_another_scheduler_is_refused_where_that_is_wished() -> None:
    defaults = Defaults(validation=Validation(reasons={Reason.POD_LEFT_ALONE: Severity.DENY}))
    knowledge = knowing(workloads=[ray_cluster()], defaults=defaults)
    answer = answered(await review_pod(request(new_pod(schedulerName="mine")), knowledge))
    assert (answer["allowed"], answer["status"]["reason"]) == (False, "PodLeftAlone")


async def test_a_member_that_a_later_webhook_gave_to_another_scheduler_is_let_go() -> None:
    """The apiserver asks again then (reinvocation); held by a gate that nobody opens it would never start."""
    new = new_pod(schedulingGates=[{"name": "theirs"}])
    once = jsonpatch.apply_patch(new, patch_of(await reviewed(new)))
    once["spec"]["schedulerName"] = "mine"
    result = jsonpatch.apply_patch(once, patch_of(await reviewed(once)))
    assert result["spec"]["schedulingGates"] == [{"name": "theirs"}]
    assert "muster.dev/gang" not in result["metadata"]["labels"]
    assert result["metadata"]["annotations"] == {}


async def test_a_role_that_the_watch_has_not_shown_yet_is_read() -> None:
    """A worker group of a moment ago: its first pod is quicker than the watch."""
    reader = Reader({"rayclusters/demo": ray_cluster(workers(), workers("late"))})
    answer = await reviewed(new_pod(role="late"), knowing(reader, workloads=[ray_cluster()]))
    assert answer.patch
    assert reader.reads == ["rayclusters/demo"]


SILENT = ray_cluster(labels={})


async def test_a_namespace_that_is_opted_in_speaks_for_its_workloads() -> None:
    around = namespace(
        labels={"muster.dev/managed": "true"}, annotations={"scheduling.volcano.sh/queue-name": "theirs"}
    )
    new = new_pod()
    answer = await reviewed(new, knowing(workloads=[SILENT], namespaces=[around]))
    result = jsonpatch.apply_patch(new, patch_of(answer))
    assert result["spec"]["schedulingGates"] == [{"name": "muster.dev/gang"}]
    assert result["metadata"]["labels"]["volcano.sh/queue-name"] == "theirs"


async def test_a_namespace_that_is_opted_out_is_left_alone_unless_the_workload_says_otherwise() -> None:
    around = [namespace(labels={"muster.dev/managed": "false"})]
    assert not (await reviewed(new_pod(), knowing(workloads=[ray_cluster()], namespaces=around))).patch
    insists = ray_cluster(labels={"muster.dev/managed": "true"})
    assert (await reviewed(new_pod(), knowing(workloads=[insists], namespaces=around))).patch


async def test_a_namespace_of_a_moment_ago_is_read() -> None:
    """A member that slipped through ungated could never be gated afterwards."""
    reader = Reader({f"namespaces/{NAMESPACE}": namespace(labels={"muster.dev/managed": "true"})})
    assert (await reviewed(new_pod(), knowing(reader, workloads=[SILENT], namespaces=[]))).patch
    assert reader.reads == [f"namespaces/{NAMESPACE}"]


@cases(
    "of_queue, of_namespace, held",
    ("nobody says anything", "", "", True),
    ("the queue turns it off", "off", "", False),
    ("the namespace turns it off", "", "off", False),
    ("the queue goes before the namespace", "queue", "off", True),
    ("assemble holds too", "assemble", "off", True),
    ("misspelt", "of", "", True),
)
async def test_where_the_gate_is_off_a_member_is_bound_and_not_held(
    of_queue: str, of_namespace: str, held: bool
) -> None:
    knowledge = knowing(
        workloads=[ray_cluster()],
        queues=[queue(annotations={"muster.dev/gate": of_queue})],
        namespaces=[namespace(annotations={"muster.dev/gate": of_namespace})],
    )
    new = new_pod()
    result = jsonpatch.apply_patch(new, patch_of(await reviewed(new, knowledge)))
    assert ("schedulingGates" in result["spec"]) is held
    assert result["metadata"]["annotations"]["scheduling.k8s.io/group-name"] == "ray-demo-pg"
    assert result["spec"]["schedulerName"] == "volcano"


async def test_a_new_pod_of_an_unmanaged_workload_passes_untouched() -> None:
    """A gang of which a part runs already is none: it is left alone until its old pods are gone."""
    cluster = ray_cluster()
    assert not (await reviewed(new_pod(), knowing(workloads=[cluster], pods=[old_pod("demo-w-0")]))).patch
    assert (await reviewed(new_pod(), knowing(workloads=[cluster], pods=[old_pod("x", owner_uid="uid-former")]))).patch
    assert (await reviewed(new_pod(), knowing(workloads=[cluster], pods=[old_pod("x", phase="Failed")]))).patch


async def test_a_workload_that_makes_no_gang_refuses_no_pod_while_it_is_left_alone() -> None:
    broken = ray_cluster(workers(replicas=-1))
    assert (await reviewed(new_pod(), knowing(workloads=[broken], pods=[old_pod("demo-w-0")]))).allowed


CLAIM = ray_owner("other", controller=True)
BINDING = {"scheduling.k8s.io/group-name": "ray-other-pg", "volcano.sh/task-spec": "workers"}
MARKS = {**BINDING, "muster.dev/workload": as_json(CLAIM)}


def marked(new: JSON, **annotations: str) -> JSON:
    """The pod with all that a member of another gang carries."""
    new["metadata"]["labels"]["muster.dev/gang"] = "ray-other-pg"
    new["metadata"]["annotations"] = {**MARKS, **annotations}
    return new


@cases(
    "new, workload",
    ("workload says nothing", new_pod(), ray_cluster(labels={})),
    ("another scheduler's", new_pod(), ray_cluster(labels={"ray.io/scheduler-name": "yunikorn"})),
    ("workload being deleted", new_pod(), ray_cluster(meta=DELETING)),
    ("a role that the workload has not", new_pod(role="gone"), ray_cluster()),
    ("no role", new_pod(role=None), ray_cluster()),
    ("has a node", new_pod(nodeName="n"), ray_cluster()),
    ("another scheduler", new_pod(schedulerName="mine"), ray_cluster()),
)
async def test_what_is_no_member_is_told_from_one(new: JSON, workload: JSON) -> None:
    """It would count as a running member of the gang that it names, and not as a pod that came without muster."""
    new = marked(copy.deepcopy(new))
    knowledge = knowing(Reader({"rayclusters/demo": workload}), workloads=[workload])
    result = jsonpatch.apply_patch(new, patch_of(await reviewed(new, knowledge)))
    assert "muster.dev/gang" not in result["metadata"]["labels"]
    # A binding without the label is an operator's own.
    assert result["metadata"]["annotations"] == BINDING
    assert result["spec"] == new["spec"]


async def test_what_was_held_in_an_earlier_round_and_is_no_member_any_more_is_let_go() -> None:
    """The apiserver asks again; meanwhile the workload has got a pod that came without muster."""
    new = new_pod()
    once = jsonpatch.apply_patch(new, patch_of(await reviewed(new)))
    slipped = knowing(workloads=[ray_cluster()], pods=[old_pod("demo-w-0")])
    result = jsonpatch.apply_patch(once, patch_of(await reviewed(once, slipped)))
    assert "muster.dev/gang" not in result["metadata"]["labels"]
    assert (result["metadata"]["annotations"], result["spec"]["schedulingGates"]) == ({}, [])


async def test_a_member_is_nobody_elses_whatever_its_template_says() -> None:
    result = jsonpatch.apply_patch(marked(new := new_pod()), patch_of(await reviewed(marked(copy.deepcopy(new)))))
    assert "muster.dev/workload" not in result["metadata"]["annotations"]


async def test_a_plain_pod_with_a_node_is_in_no_gang() -> None:
    """The label is its own word; that it is bound is muster's to say."""
    new = marked(new_pod(owner={}, nodeName="n"), **{"muster.dev/gang-size": "1"})
    result = jsonpatch.apply_patch(new, patch_of(await reviewed(new)))
    assert result["metadata"]["annotations"] == {"muster.dev/gang-size": "1"}
    assert result["metadata"]["labels"]["muster.dev/gang"] == "ray-other-pg"
