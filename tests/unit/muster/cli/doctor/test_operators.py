"""Flags as they may stand on a command line, and whose they are."""

import pytest

from muster.cli.doctor.diagnosis import Diagnosis, Level, Unseen
from muster.cli.doctor.installed import flag
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
    ("KubeRay", KUBERAY, "--batch-scheduler=volcano", Level.WARNING),
    ("another scheduler", KUBERAY, "--batch-scheduler=yunikorn", Level.WARNING),
    ("empty", KUBERAY, "--batch-scheduler=", Level.OK),
    ("the old flag", KUBERAY, "--enable-batch-scheduler", Level.WARNING),
    ("the old flag, off", KUBERAY, "--enable-batch-scheduler=false", Level.OK),
    ("a file", KUBERAY, "--config=/config.yaml", Level.WARNING),
    ("Spark's own flag", "spark-operator:v2", "--enable-batch-scheduler", Level.OK),
    ("Training operator", "r/training-operator", "--gang-scheduler-name=volcano", Level.WARNING),
    ("MPI operator", "r/mpi-operator@sha256:00", "--gang-scheduling=volcano", Level.WARNING),
)
def test_gang_flags_are_those_of_the_operators_that_muster_knows(image: str, argument: str, level: Level) -> None:
    assert levels(found(operators, deployments=(deployment("operator", image, argument),))) == {level}


def test_an_operator_is_known_by_its_labels_as_well() -> None:
    mirrored = deployment("x", "r/mirror:1", "--batch-scheduler=volcano", labels={"app.kubernetes.io/name": "kuberay"})
    assert levels(found(operators, deployments=(mirrored,))) == {Level.WARNING}


@pytest.mark.parametrize(
    ("text", "level"),
    [
        ("manageJobsWithoutQueueName: true", Level.WARNING),
        ("manageJobsWithoutQueueName: false", Level.OK),
        ("[no, mapping]", Level.OK),
        (": : :", Level.OK),
    ],
)
def test_kueue_is_in_the_way_where_it_takes_what_does_not_ask_for_it(text: str, level: Level) -> None:
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
    ("another time", ("--admitters=ledger,kueue", "--kueue-timeout=30m"), Level.WARNING),
    ("the same time", ("--admitters=ledger,kueue", "--kueue-timeout=10m"), Level.OK),
    ("where Kueue admits nothing", ("--kueue-timeout=30m",), Level.OK),
)
def test_muster_knows_the_time_after_which_kueue_takes_back(told: tuple[str, ...], level: Level) -> None:
    assert levels(_timeouts("waitForPodsReady: {timeout: 10m0s}", *told)) == {level}


@cases(
    "given, flags, words",
    ("not known to muster", "unscheduledTimeout: 5m", ("--kueue-unscheduled-timeout=0s",), "have no nodes after 5m"),
    ("another time", "unscheduledTimeout: 5m", ("--kueue-unscheduled-timeout=10m",), "kueue.unscheduledTimeout=5m"),
    ("none any more", "timeout: 30m", ("--kueue-unscheduled-timeout=10m",), "have no nodes at no time"),
    ("the same time", "unscheduledTimeout: 300s", ("--kueue-unscheduled-timeout=5m",), None),
    ("none", "timeout: 30m", ("--kueue-unscheduled-timeout=0s",), None),
    ("a controller of an older muster", "unscheduledTimeout: 5m", (), None),
)
def test_muster_knows_the_time_after_which_kueue_takes_back_without_nodes(
    given: str, flags: tuple[str, ...], words: str | None
) -> None:
    said = _timeouts(f"waitForPodsReady: {{{given}}}", "--admitters=kueue", *flags)
    assert levels(said) == {Level.OK if words is None else Level.WARNING}
    assert words is None or words in f"{said}"


def _timeouts(configuration: str, *flags: str) -> list[Diagnosis]:
    kueue = deployment("kueue-controller-manager", "registry.k8s.io/kueue/kueue:v0.19.2")
    ours_ = (ours("webhook", *flags), ours("controller", *flags))
    return found(operators, deployments=(kueue, *ours_), kueue={"ConfigMap k/c": configuration})
