"""The PodGroup and the binding of pods for kube-scheduler's own gangs."""

import json
from dataclasses import replace
from typing import Any

from muster.cluster.observe import observe
from muster.gangs.gang import gang_of
from muster.gangs.intent import Defaults, find_intent
from muster.model.objects import convert
from muster.model.pods import Pod
from muster.planning.pod_group import desired
from muster.planning.snapshot import GangSnapshot
from muster.queueing.ledger import GangKey
from muster.schedulers import gang_name, named
from muster.validation.context import Context
from tests.support.cases import cases
from tests.support.controller.stores import filled
from tests.support.manifests.families import judged
from tests.support.manifests.observed import (
    JSON,
    made,
    pod,
    pytorch_job,
    pytorch_pod,
    ray_cluster,
    read,
    template,
    workers,
)

SCHEDULERS = named("kubernetes")
KUBERNETES = SCHEDULERS["default-scheduler"]
UID = "1a2b3c4d-5e6f-7081-92a3-b4c5d6e7f809"


def read_with_uid(manifest: JSON, uid: str = UID):  # type: ignore[no-untyped-def]  # noqa: ANN201
    workload = read({**manifest, "metadata": {**manifest["metadata"], "uid": uid}})
    intent = find_intent(workload, Defaults(schedulers=SCHEDULERS))
    assert intent is not None
    return workload, gang_of(workload, intent, {}), intent


def group(manifest: JSON, uid: str = UID) -> JSON:
    workload, gang, intent = read_with_uid(manifest, uid)
    return KUBERNETES.pod_group(gang, intent, workload)


def test_the_whole_pod_group() -> None:
    found = group(pytorch_job(policy={"queue": "q", "priorityClass": "high"}))
    assert (found["apiVersion"], found["metadata"]["name"]) == ("scheduling.k8s.io/v1beta1", "train-1a2b3c4d")
    assert found["spec"] == {
        "schedulingPolicy": {"gang": {"minCount": 3}},
        "disruptionMode": {"all": {}},
        "priorityClassName": "high",
    }
    assert json.loads(found["metadata"]["annotations"]["muster.dev/gang-spec"])["queue"] == "q"


def test_what_is_written_reads_back_as_the_same_gang() -> None:
    found = convert(group(ray_cluster()), KUBERNETES.pod_groups)
    assert (found.spec.min_member, found.spec.queue) == (3, "q")
    assert found.spec.min_task_member == {"headgroup": 1, "workers": 2}
    assert found.spec.min_resources == {"cpu": "3", "memory": "3Gi"}
    assert gang_name(found) == "ray-demo-pg"


def test_a_workload_that_comes_again_has_another_group() -> None:
    """The old one is protected by its name for as long as pods of its name live."""
    assert group(ray_cluster())["metadata"]["name"] != group(ray_cluster(), "other-uid")["metadata"]["name"]


def test_a_pod_is_bound_by_a_field_of_its_spec() -> None:
    workload, gang, intent = read_with_uid(ray_cluster())
    binding = KUBERNETES.binding(gang, intent, "workers")
    assert binding.spec == {"schedulingGroup": {"podGroupName": group(ray_cluster())["metadata"]["name"]}}
    assert workload.metadata.uid == gang.uid
    assert KUBERNETES.bound_to(made(Pod, pod("a", **binding.spec))) == "ray-demo-pg-1a2b3c4d"
    assert KUBERNETES.bound_to(made(Pod, pod("a"))) == ""


def test_a_pod_that_comes_when_the_others_run_is_in_no_group() -> None:
    """The group would wait for it."""
    _, gang, intent = read_with_uid(ray_cluster())
    later = replace(gang.roles[1], gated=False, minimum=0)
    gang = replace(gang, roles=(gang.roles[0], later))
    assert KUBERNETES.binding(gang, intent, later.name).spec == {}


@cases(
    "manifest, field",
    ("all of it starts together", pytorch_job(policy={"queue": "q"}), ""),
    ("more pods than it needs", pytorch_job(policy={"minAvailable": 2}), "spec"),
    ("an autoscaler", ray_cluster(workers(replicas=1, minReplicas=1), enableInTreeAutoscaling=True), "spec"),
    (
        "two priorities",
        ray_cluster(head=template(priorityClassName="high")),
        "spec.headGroupSpec.template.spec.priorityClassName",
    ),
    (
        "one priority in all templates",
        ray_cluster(workers(template=template(priorityClassName="high")), head=template(priorityClassName="high")),
        "",
    ),
)
def test_what_it_cannot_do(manifest: JSON, field: str) -> None:
    workload, gang, intent = read_with_uid(manifest)
    found = [path for path, rest in KUBERNETES.cannot(gang, intent, workload) if rest]
    assert found == ([field] if field else [])


def test_a_loose_pod_group_holds_nobody_back() -> None:
    found = convert(KUBERNETES.relaxed_pod_group("q", {"name": "g", "namespace": "team"}), KUBERNETES.pod_groups)
    assert (found.spec.min_member, found.spec.min_task_member, found.spec.queue) == (1, {}, "q")


@cases(
    "manifest",
    ("none", ray_cluster(workers(), workers("idle", 0, template=template(priorityClassName="high")))),
    (
        "a launcher that comes when the gang runs",
        {
            **pytorch_job(policy={"queue": "q"}),
            "apiVersion": "kubeflow.org/v2beta1",
            "kind": "MPIJob",
            "spec": {
                "launcherCreationPolicy": "WaitForWorkersReady",
                "mpiReplicaSpecs": {
                    "Launcher": {"template": template(priorityClassName="high")},
                    "Worker": {"replicas": 2, "template": template()},
                },
            },
        },
    ),
)
def test_the_priority_of_pods_that_are_in_no_group_is_their_own(manifest: JSON) -> None:
    manifest["metadata"]["labels"] = {"volcano.sh/queue-name": "q"}
    workload, gang, intent = read_with_uid(manifest)
    assert list(KUBERNETES.cannot(gang, intent, workload)) == []


def test_a_topology_that_a_scheduler_does_not_know_is_told() -> None:
    labels = {"volcano.sh/queue-name": "q", "volcano.sh/network-topology-mode": "hard"}
    manifest = ray_cluster(labels=labels)

    def told(product: str) -> list[str]:
        known = Context(defaults=Defaults(schedulers=named(product)))
        return [one.message for one in judged(manifest, known).warnings if "topology" in one.message]

    assert not told("volcano")
    for product, name in (("kubernetes", "default-scheduler"), ("coscheduling", "scheduler-plugins-scheduler")):
        rest = "knows no network topology; it is ignored, and pods may be far from each other"
        assert told(product) == [f"metadata.labels[volcano.sh/network-topology-mode]: {name} {rest}"]


def seen(*pods: JSON, **job: Any) -> GangSnapshot:  # noqa: ANN401 - whatever `pytorch_job` takes
    """A job whose pods are kube-scheduler's."""
    job_ = pytorch_job(policy={"queue": "q"}, **job)
    cluster = filled(KUBERNETES, workloads=[job_], pods=pods)
    return observe(GangKey("team", "train"), cluster, Defaults(schedulers=SCHEDULERS))


def member(name: str, role: str = "worker", group: str = "train", **rest: Any) -> JSON:  # noqa: ANN401 - as above
    inside: JSON = {"schedulingGroup": {"podGroupName": group}} if group else {}
    return pytorch_pod(name, role, schedulerName="default-scheduler", **inside, **rest)


def test_who_has_ended_is_not_waited_for() -> None:
    """kube-scheduler counts living pods alone: with the others in the number, no pod that comes again would start."""
    pods = [member("m", "master"), member("w-0", phase="Succeeded", held=False), member("w-1")]
    manifest = desired(seen(*pods), admitted=False).manifest
    assert manifest["spec"]["schedulingPolicy"]["gang"]["minCount"] == 2


def test_who_has_failed_and_was_made_again_is_waited_for() -> None:
    """Pods that have failed stay there; with each of them the gang would be placed with one pod fewer."""
    pods = [member("m", "master"), member("w-0", phase="Failed", held=False), member("w-1"), member("w-2")]
    manifest = desired(seen(*pods), admitted=True).manifest
    assert manifest["spec"]["schedulingPolicy"]["gang"]["minCount"] == 3


def plain(name: str, phase: str = "Pending", job: str = "job") -> JSON:
    """A pod of a plain gang of four."""
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": job, "uid": f"uid-{job}", "controller": True}
    rest = {"schedulerName": "default-scheduler", "schedulingGroup": {"podGroupName": "pair"}}
    labels = {"muster.dev/gang": "pair", "volcano.sh/queue-name": "q"}
    said = {"muster.dev/gang-size": "4", "scheduling.k8s.io/group-name": "pair"}
    return pod(name, owner=owner, labels=labels, annotations=said, phase=phase, **{**template()["spec"], **rest})


@cases(
    "others, count",
    ("two have succeeded", [plain("c", "Succeeded"), plain("d", "Succeeded")], 2),
    ("one has failed and was made again", [plain("c", "Failed"), plain("d"), plain("e")], 4),
    ("both", [plain("c", "Succeeded"), plain("d", "Failed"), plain("e")], 3),
    ("of a former run", [plain("c", "Succeeded", job="former"), plain("d")], 4),
)
def test_of_a_plain_gang_is_not_waited_for_who_has_ended_either(others: list[JSON], count: int) -> None:
    cluster = filled(KUBERNETES, pods=[plain("a"), plain("b"), *others])
    view = observe(GangKey("team", "pair"), cluster, Defaults(schedulers=SCHEDULERS))
    manifest = desired(view, admitted=True).manifest
    assert manifest["spec"]["schedulingPolicy"]["gang"]["minCount"] == count


@cases(
    "group, words",
    ("as the webhook wrote it", "train", ""),
    (
        "without the feature gate",
        "",
        (
            "spec.schedulingGroup: the apiserver dropped it: it needs the feature gate GenericWorkload and "
            "scheduling.k8s.io/v1beta1"
        ),
    ),
)
def test_held_pods_that_are_in_no_group_are_told_of_with_what_to_do(group: str, words: str) -> None:
    """Opened like that they would be placed one by one."""
    assert seen(member("m", "master", group), member("w-0", group=group), member("w-1", group=group)).error == words
