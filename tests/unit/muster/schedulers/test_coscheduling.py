"""The PodGroup and the binding of pods for scheduler-plugins' coscheduling."""

import json

import pytest

from muster.model.objects import convert
from muster.model.pods import Pod
from muster.schedulers import gang_name, named, scheduler_of_group
from muster.schedulers.model import owner_reference
from tests.support.manifests.observed import JSON, gang_and_intent, made, pod, pytorch_job, ray_cluster, read

(COSCHEDULING,) = named("coscheduling").values()
REST = "muster.dev/gang-spec"


def group(manifest: JSON) -> JSON:
    return COSCHEDULING.pod_group(*gang_and_intent(manifest), read(manifest))


def test_the_whole_pod_group() -> None:
    """Queue and the minimums of the roles stand in an annotation: it has no fields for them."""
    manifest = ray_cluster(annotations={"volcano.sh/x": "y"})
    found = group(manifest)
    rest = json.loads(found["metadata"]["annotations"].pop(REST))
    assert rest == {"minTaskMember": {"headgroup": 1, "workers": 2}, "queue": "q"}
    workload = read(manifest)
    assert found == {
        "apiVersion": "scheduling.x-k8s.io/v1alpha1",
        "kind": "PodGroup",
        "metadata": {
            "name": "ray-demo-pg",
            "namespace": "team",
            "labels": {"app.kubernetes.io/managed-by": "muster"},
            "annotations": {"volcano.sh/x": "y", "scheduling.k8s.io/group-name": "ray-demo-pg"},
            "ownerReferences": [owner_reference("ray.io/v1", workload.kind, workload.metadata)],
        },
        "spec": {"minMember": 3, "minResources": {"cpu": "3", "memory": "3Gi"}},
    }


def test_what_is_written_reads_back_as_the_same_gang() -> None:
    found = convert(group(pytorch_job(policy={"queue": "q", "priorityClass": "high"})), COSCHEDULING.pod_groups)
    assert (found.spec.queue, found.spec.priority_class_name) == ("q", "high")
    assert found.spec.min_task_member == {"master": 1, "worker": 2}
    assert found.spec.min_member == 3
    assert scheduler_of_group(found).product == "coscheduling"


@pytest.mark.parametrize("text", ["", "{", '{"queue": 3}', "[]"])
def test_one_that_is_not_musters_is_read_as_it_is(text: str) -> None:
    other = {"metadata": {"name": "g", "annotations": {REST: text}}, "spec": {"minMember": 2}}
    found = convert(other, COSCHEDULING.pod_groups)
    assert (found.spec.min_member, found.spec.queue) == (2, "")


def test_its_phase_is_not_believed() -> None:
    """Its controller counts pods over all namespaces, and some of its phases are final."""
    found = convert({"metadata": {"name": "g"}, "status": {"phase": "Running"}}, COSCHEDULING.pod_groups)
    assert found.status.phase == ""


def test_a_timeout_is_handed_on() -> None:
    assert group(pytorch_job(policy={"scheduleTimeoutSeconds": 30}))["spec"]["scheduleTimeoutSeconds"] == 30


def test_a_name_that_fits_into_no_label_is_cut_and_the_gang_found_by_its_own() -> None:
    name = "x" * 80
    found = convert(group(pytorch_job(policy={"queue": "q"}, name=name)), COSCHEDULING.pod_groups)
    assert len(found.metadata.name) == 63
    assert gang_name(found) == name


def test_a_pod_is_bound_by_a_label() -> None:
    binding = COSCHEDULING.binding(*gang_and_intent(ray_cluster()), "workers")
    labels = {"scheduling.x-k8s.io/pod-group": "ray-demo-pg", "volcano.sh/queue-name": "q"}
    assert binding.labels == labels
    assert COSCHEDULING.bound_to(made(Pod, pod("a", labels=labels))) == "ray-demo-pg"
    assert COSCHEDULING.bound_to(made(Pod, pod("a"))) == ""


def test_a_loose_pod_group_holds_nobody_back() -> None:
    found = convert(COSCHEDULING.relaxed_pod_group("q", {"name": "g", "namespace": "team"}), COSCHEDULING.pod_groups)
    assert (found.spec.min_member, found.spec.min_task_member, found.spec.queue) == (1, {}, "q")


def test_schedulers_are_chosen_by_product_and_name() -> None:
    chosen = named("volcano", "coscheduling=default-scheduler")
    assert {name: one.product for name, one in chosen.items()} == {
        "volcano": "volcano",
        "default-scheduler": "coscheduling",
    }


@pytest.mark.parametrize(
    ("texts", "problem"),
    [
        (["yunikorn"], '"yunikorn" is no gang scheduler that muster knows; use one of volcano, coscheduling'),
        (["volcano", "coscheduling=volcano"], 'two gang schedulers have the name "volcano"'),
    ],
)
def test_a_choice_that_means_nothing_is_refused(texts: list[str], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        named(*texts)
