"""Flags as they may stand on a command line, and whose they are."""

import pytest

from muster.cli.doctor.diagnosis import Severity, Unseen
from muster.cli.doctor.objects import flag
from muster.cli.doctor.operators import operators
from tests.support.cases import cases
from tests.support.cli.doctor_snapshots import deployment, found, levels, messages, ours

KUBERAY = "quay.io/kuberay/operator:v1.6.1"


@pytest.mark.parametrize(
    ("words", "value"),
    [
        ((), None),
        (("--other=x",), None),
        (("--gang-scheduling=volcano",), "volcano"),
        (("-gang-scheduling=volcano",), "volcano"),
        (("--gang-scheduling", "volcano"), "volcano"),
        (("--gang-scheduling",), ""),
        (("--gang-scheduling", "--other"), ""),
        (("--gang-scheduling=a", "--gang-scheduling=b"), "b"),
        (("--gang-scheduling-name=volcano",), None),
    ],
)
def test_the_value_of_a_flag(words: tuple[str, ...], value: str | None) -> None:
    assert flag(words, "gang-scheduling") == value


@cases(
    "image, argument, level",
    ("KubeRay", KUBERAY, "--batch-scheduler=volcano", Severity.WARNING),
    ("another scheduler", KUBERAY, "--batch-scheduler=yunikorn", Severity.WARNING),
    ("empty", KUBERAY, "--batch-scheduler=", Severity.OK),
    ("the old flag", KUBERAY, "--enable-batch-scheduler", Severity.WARNING),
    ("the old flag, off", KUBERAY, "--enable-batch-scheduler=false", Severity.OK),
    ("a file", KUBERAY, "--config=/config.yaml", Severity.WARNING),
    ("Spark's own flag", "spark-operator:v2", "--enable-batch-scheduler", Severity.OK),
    ("Training operator", "r/training-operator", "--gang-scheduler-name=volcano", Severity.WARNING),
    ("MPI operator", "r/mpi-operator@sha256:00", "--gang-scheduling=volcano", Severity.WARNING),
)
def test_gang_flags_are_those_of_the_operators_that_muster_knows(image: str, argument: str, level: Severity) -> None:
    assert levels(found(operators, deployments=(deployment("operator", image, argument),))) == {level}


def test_an_operator_is_known_by_its_labels_as_well() -> None:
    mirrored = deployment("x", "r/mirror:1", "--batch-scheduler=volcano", labels={"app.kubernetes.io/name": "kuberay"})
    assert levels(found(operators, deployments=(mirrored,))) == {Severity.WARNING}


@pytest.mark.parametrize(
    ("text", "level"),
    [
        ("manageJobsWithoutQueueName: true", Severity.WARNING),
        ("manageJobsWithoutQueueName: false", Severity.OK),
        ("[no, mapping]", Severity.OK),
        (": : :", Severity.OK),
    ],
)
def test_kueue_is_in_the_way_where_it_takes_what_does_not_ask_for_it(text: str, level: Severity) -> None:
    kueue = deployment("kueue-controller-manager", "registry.k8s.io/kueue/kueue:v0.15.2")
    assert levels(found(operators, deployments=(kueue,), kueue={"ConfigMap k/c": text})) == {level}


def test_kueues_settings_that_may_not_be_read_are_said() -> None:
    kueue = deployment("kueue-controller-manager", "registry.k8s.io/kueue/kueue:v0.15.2")
    unseen = Unseen("you may not get configmaps c in namespace k")
    said = found(operators, deployments=(kueue,), kueue=unseen)
    assert "could not check which workloads Kueue manages: you may not get configmaps c in namespace k" in messages(
        said
    )


@cases(
    "told, level",
    ("another time", ("--admitters=ledger,kueue", "--kueue-timeout=30m"), Severity.WARNING),
    ("the same time", ("--admitters=ledger,kueue", "--kueue-timeout=10m"), Severity.OK),
    ("where Kueue admits nothing", ("--kueue-timeout=30m",), Severity.OK),
)
def test_muster_knows_the_time_after_which_kueue_takes_back(told: tuple[str, ...], level: Severity) -> None:
    kueue = deployment("kueue-controller-manager", "registry.k8s.io/kueue/kueue:v0.19.2")
    said = found(
        operators,
        deployments=(kueue, ours("webhook", *told), ours("controller", *told)),
        kueue={"ConfigMap k/c": "waitForPodsReady: {timeout: 10m0s}"},
    )
    assert levels(said) == {level}
