"""The PodGroup and the binding of pods in Volcano's words."""

from muster.gangs.roles import Gang, Role
from muster.model.objects import PodGroup, convert
from muster.model.pods import Pod
from muster.schedulers import SCHEDULERS
from tests.support.cases import cases
from tests.support.manifests.observed import JSON, gang_and_intent, made, pod, pytorch_job, ray_cluster, read, workers

VOLCANO = SCHEDULERS["volcano"]


def group(manifest: JSON) -> JSON:
    return VOLCANO.pod_group(*gang_and_intent(manifest), read(manifest))


def test_the_whole_pod_group() -> None:
    assert group(ray_cluster(annotations={"volcano.sh/x": "y"})) == {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {
            "name": "ray-demo-pg",
            "namespace": "team",
            "labels": {"app.kubernetes.io/managed-by": "muster"},
            "annotations": {"volcano.sh/x": "y"},
            "ownerReferences": [
                {
                    "apiVersion": "ray.io/v1",
                    "kind": "RayCluster",
                    "name": "demo",
                    "uid": "uid-demo",
                    "controller": True,
                    "blockOwnerDeletion": True,
                },
            ],
        },
        "spec": {
            "minMember": 3,
            "minTaskMember": {"headgroup": 1, "workers": 2},
            "minResources": {"cpu": "3", "memory": "3Gi"},
            "queue": "q",
        },
    }


def test_it_has_no_status() -> None:
    """The PodGroup has no status subresource: a status written here would wipe Volcano's phase."""
    assert set(group(pytorch_job(policy={"queue": "q"}))) == {"apiVersion", "kind", "metadata", "spec"}


def test_the_priority_class_stands_in_it_only_when_there_is_one() -> None:
    named = group(pytorch_job(policy={"priorityClass": "high"}))
    assert named["spec"]["priorityClassName"] == "high"
    assert "priorityClassName" not in group(pytorch_job(policy={"queue": "q"}))["spec"]


def test_annotations_are_copied_but_for_other_tools_bookkeeping_and_ours() -> None:
    """A user's `muster.dev/admitted` on the workload must not admit the gang."""
    annotations = {
        "volcano.sh/task-topology": "x",
        "kubectl.kubernetes.io/last-applied-configuration": "{}",
        "meta.helm.sh/release-name": "r",
        "muster.dev/admitted": "uid-demo",
        "muster.dev/state": "Running",
    }
    assert group(ray_cluster(annotations=annotations))["metadata"]["annotations"] == {"volcano.sh/task-topology": "x"}


def test_min_resources_are_always_said() -> None:
    """Volcano lets a group without them into any queue unseen."""
    assert group(pytorch_job(policy={"minResources": {}}))["spec"]["minResources"] == {}


def test_a_pod_is_bound_by_annotations_and_carries_its_queue() -> None:
    binding = VOLCANO.binding(*gang_and_intent(ray_cluster()), "workers")
    assert binding.annotations == {"scheduling.k8s.io/group-name": "ray-demo-pg", "volcano.sh/task-spec": "workers"}
    assert binding.labels == {"volcano.sh/queue-name": "q"}


@cases(
    "manifest, role, kept",
    ("nobody is more than needed", ray_cluster(), "headgroup", False),
    ("every one is needed of the role", pytorch_job(policy={"minAvailable": 2}), "master", True),
    ("some of the role are not needed", pytorch_job(policy={"minAvailable": 2}), "worker", False),
    (
        "an autoscaler may add some",
        ray_cluster(workers(replicas=1, minReplicas=1), enableInTreeAutoscaling=True),
        "headgroup",
        True,
    ),
)
def test_of_a_role_of_which_every_pod_is_needed_volcano_takes_none_back(
    manifest: JSON, role: str, *, kept: bool
) -> None:
    """It takes back as many pods as a gang has beyond its minimum, whichever of them."""
    expected = {"volcano.sh/preemptable": "false"} if kept else {}
    assert VOLCANO.binding(*gang_and_intent(manifest), role).defaults == expected


@cases(
    "later, kept",
    ("one by one", Role("more", 2, 0, {}, leads=False), False),
    ("together", Role("more", 2, 0, {}, leads=False, together=True), True),
    ("a launcher that waits for its workers", Role("more", 1, 0, {}, leads=False, gated=False), True),
)
def test_pods_that_come_later_as_a_whole_are_not_taken_back_in_part(later: Role, *, kept: bool) -> None:
    """They are beyond the minimum, too."""
    _, intent = gang_and_intent(ray_cluster())
    gang = Gang("team", "g", (Role("first", 1, 1, {}, leads=True), later), 1, {})
    assert VOLCANO.binding(gang, intent, "first").defaults == {"volcano.sh/preemptable": "false"}
    assert bool(VOLCANO.binding(gang, intent, "more").defaults) == kept


def test_a_queue_name_longer_than_a_label_is_cut_on_the_pod_only() -> None:
    name = "q" * 80
    manifest = pytorch_job(policy={"queue": name})
    assert len(VOLCANO.binding(*gang_and_intent(manifest), "worker").labels["volcano.sh/queue-name"]) == 63
    assert group(manifest)["spec"]["queue"] == name


def test_whose_a_pod_is() -> None:
    assert VOLCANO.bound_to(made(Pod, pod("a", annotations={"scheduling.k8s.io/group-name": "g"}))) == "g"
    assert VOLCANO.bound_to(made(Pod, pod("a"))) == ""


def test_what_is_written_reads_back_as_the_same_gang() -> None:
    read_back = convert(group(ray_cluster()), PodGroup)
    assert read_back.spec.min_member == 3
    owner = read_back.metadata.controller
    assert owner is not None
    assert owner.uid == "uid-demo"
