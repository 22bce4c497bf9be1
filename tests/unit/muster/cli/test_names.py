"""Names are written as kubectl prints them and takes them."""

import pytest

from muster.cli.names import UnknownSubjectError, is_pod_group, kinds_of, parse_names, pod_groups_meant
from tests.support.cases import cases


@cases(
    "words, found",
    ("with a slash", ["RayCluster/demo"], [("raycluster", "demo")]),
    ("two", ["raycluster.ray.io/a", "job.batch/b"], [("raycluster.ray.io", "a"), ("job.batch", "b")]),
    ("a kind, two names", ["rayclusters", "a", "b"], [("rayclusters", "a"), ("rayclusters", "b")]),
    ("the same twice", ["pod/a", "pod/a"], [("pod", "a")]),
)
def test_names_are_written_as_for_kubectl(words: list[str], found: list[tuple[str, str]]) -> None:
    assert parse_names(words) == found


@pytest.mark.parametrize("words", [["demo"], ["raycluster/"], ["/demo"], ["a/b", "c"], ["a/b/c"]], ids=" ".join)
def test_what_is_no_name_is_refused(words: list[str]) -> None:
    with pytest.raises(UnknownSubjectError, match="is not KIND/NAME or KIND NAME, for example raycluster/demo"):
        parse_names(words)


@pytest.mark.parametrize(
    ("word", "kinds"),
    [
        ("raycluster", ["RayCluster"]),
        ("rayclusters", ["RayCluster"]),
        ("raycluster.ray.io", ["RayCluster"]),
        ("rayclusters.v1.ray.io", ["RayCluster"]),
        ("mpijob.kubeflow.org", ["MPIJob", "MPIJob"]),
        ("mpijobs.v2beta1.kubeflow.org", ["MPIJob"]),
        ("job.batch", ["Job"]),
        ("po", ["Pod"]),
        ("sts", ["StatefulSet"]),
    ],
)
def test_kinds_have_the_words_of_kubectl(word: str, kinds: list[str]) -> None:
    assert [kind.kind for kind in kinds_of(word)] == kinds


@pytest.mark.parametrize(
    ("word", "groups"),
    [
        ("podgroup", ["scheduling.volcano.sh", "scheduling.x-k8s.io", "scheduling.k8s.io"]),
        ("pg", ["scheduling.volcano.sh", "scheduling.x-k8s.io", "scheduling.k8s.io"]),
        ("podgroups.scheduling.volcano.sh", ["scheduling.volcano.sh"]),
        ("podgroup.v1alpha1.scheduling.x-k8s.io", ["scheduling.x-k8s.io"]),
        ("podgroup.scheduling.k8s.io", ["scheduling.k8s.io"]),
    ],
)
def test_pod_groups_have_them_too_whoevers_they_are(word: str, groups: list[str]) -> None:
    assert is_pod_group(word)
    assert [kind.group for kind in pod_groups_meant(word)] == groups
