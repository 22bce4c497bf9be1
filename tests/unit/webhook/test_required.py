"""Namespaces that require muster: nothing below opts out, and what is new is muster's or refused."""

from typing import Any

from muster.model.names import GROUP_NAME, MANAGED, REQUIRED
from tests.support.cases import cases
from tests.support.manifests.observed import (
    JSON,
    namespace,
    old_pod,
    pod,
    queue,
    ray_cluster,
    ray_owner,
    template,
    workers,
)
from tests.support.webhook.admission_reviews import Reader, answered, knowing, patch_of, request
from webhook.reviews.pods import review_pod
from webhook.reviews.workloads import review_workload

OWNER = ray_owner(controller=True)
BEFORE, RULE, AFTER = "2026-11-21T09:00:00Z", "2026-11-21T10:00:00Z", "2026-11-21T11:00:00Z"


def requiring(*, written: bool = True) -> JSON:
    """The namespace; its managedFields say when the label was `written`, unless somebody took them out."""
    made = namespace(labels={MANAGED: REQUIRED})
    entry = {"manager": "kubectl-label", "operation": "Update", "time": RULE}
    fields: JSON = {"f:metadata": {"f:labels": {f"f:{MANAGED}": {}}}}
    made["metadata"]["managedFields"] = [{**entry, "fieldsV1": fields}] if written else []
    return made


def new_pod(role: str = "workers", *, notes: dict[str, str] | None = None, **spec: Any) -> JSON:  # noqa: ANN401 - the pod's
    labels = {"ray.io/cluster": "demo", "ray.io/group": role}
    return pod("", owner=OWNER, labels=labels, annotations=notes, **{"schedulerName": "default-scheduler", **spec})


def cluster(created: str = AFTER, **rest: Any) -> JSON:  # noqa: ANN401 - whatever `ray_cluster` takes
    return ray_cluster(meta={"creationTimestamp": created}, **rest)


async def reviewed(new: JSON, workload: JSON, *pods: JSON, written: bool = True) -> JSON:
    reader = Reader({"rayclusters/demo": workload})
    spaces = [requiring(written=written)]
    world = knowing(reader, workloads=[workload], queues=[queue(cpu="9")], namespaces=spaces, pods=pods)
    return answered(await review_pod(request(new), world))


@cases(
    "workload",
    ("says nothing", cluster(labels={})),
    ("opts out", cluster(labels={MANAGED: "false"})),
    ("opts out of its queue", cluster(labels={MANAGED: "false", "volcano.sh/queue-name": "q"})),
)
async def test_every_workload_is_musters(workload: JSON) -> None:
    world = knowing(workloads=[workload], queues=[queue(cpu="9")], namespaces=[requiring()])
    paths = [one["path"] for one in patch_of(await review_pod(request(new_pod()), world))]
    assert "/spec/schedulingGates" in paths


@cases(
    "new, field",
    ("a role that the workload has not", new_pod("no-such-role"), "metadata.labels"),
    ("another scheduler", new_pod(schedulerName="my-own"), "spec.schedulerName"),
    ("a node", new_pod(nodeName="node-1"), "spec.nodeName"),
    ("another group", new_pod(notes={GROUP_NAME: "mine"}), "metadata.annotations"),
    (
        "a mirror that no kubelet made",
        new_pod(notes={"kubernetes.io/config.mirror": "x"}, schedulerName="my-own"),
        "spec.schedulerName",
    ),
)
async def test_a_pod_that_would_go_past_muster_is_refused(new: JSON, field: str) -> None:
    answer = await reviewed(new, cluster())
    assert not answer["allowed"]
    assert answer["status"]["message"].startswith(f"{field}: ")
    assert "this namespace requires muster" in answer["status"]["message"]


@cases(
    "workload",
    ("in its label", cluster(labels={"ray.io/scheduler-name": "yunikorn"})),
    ("in a template", cluster(workerGroupSpecs=[workers(template=template(schedulerName="my-own"))])),
)
async def test_a_workload_of_another_scheduler_is_refused_and_so_are_its_pods(workload: JSON) -> None:
    world = knowing(workloads=[workload], queues=[queue("default", cpu="9"), queue(cpu="9")], namespaces=[requiring()])
    answer = answered(await review_workload(request(workload), world))
    assert "is none of muster's schedulers, which this namespace requires; name volcano" in answer["status"]["message"]
    assert not (await reviewed(new_pod(), workload))["allowed"]


async def test_who_opts_out_in_vain_is_told_so() -> None:
    """A workload that is older than the rule is left alone as long as its pods run, and is not told."""
    label = {MANAGED: "false", "volcano.sh/queue-name": "q"}
    told = '"false" is ignored, for this namespace requires muster; remove the label'
    world = knowing(queues=[queue(cpu="9")], namespaces=[requiring()])
    for workload, warned in ((cluster(AFTER, labels=label), True), (cluster(BEFORE, labels=label), False)):
        answer = answered(await review_workload(request(workload), world))
        assert answer["allowed"]
        assert any(one.endswith(told) for one in answer.get("warnings", [])) is warned


async def test_replacements_of_work_that_is_older_than_the_rule_pass_as_before() -> None:
    """Until all pods are new it is left alone, however its pods look."""
    for new in (new_pod(), new_pod(schedulerName="my-own"), new_pod("no-such-role")):
        assert await reviewed(new, cluster(BEFORE), old_pod("demo-w-0")) == {"uid": "u", "allowed": True}


async def test_who_took_out_when_the_rule_was_made_stops_no_running_work() -> None:
    assert await reviewed(new_pod(), cluster(), old_pod("demo-w-0"), written=False) == {"uid": "u", "allowed": True}


async def test_an_old_pod_that_is_given_the_labels_of_a_member_frees_no_workload_that_is_newer() -> None:
    answer = await reviewed(new_pod(), cluster(AFTER), old_pod("demo-w-0", meta={"creationTimestamp": BEFORE}))
    assert "patch" in answer
