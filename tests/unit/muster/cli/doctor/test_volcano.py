"""Versions and states of what muster stands on."""

from typing import Any

import pytest

from muster.cli.doctor.diagnosis import Level, Unseen
from muster.cli.doctor.installed import AnyObject, Program
from muster.cli.doctor.reading import served_kinds
from muster.cli.doctor.schedulers import kinds, version_of, volcano
from muster.model.objects import convert
from muster.model.times import text_of
from tests.support.cases import cases
from tests.support.cli.doctor_snapshots import NOW, deployment, found, healthy, levels, messages, ours
from tests.support.manifests.observed import as_client, as_json


@pytest.mark.parametrize(
    ("image", "program"),
    [
        ("docker.io/volcanosh/vc-scheduler:v1.14.1", "vc-scheduler"),
        ("r:5000/vc-scheduler", "vc-scheduler"),
        ("r/vc-scheduler:v1@sha256:00", "vc-scheduler"),
        ("", ""),
    ],
)
def test_a_program_is_known_by_the_name_of_its_image(image: str, program: str) -> None:
    assert Program("c", image, ()).image_name == program


@pytest.mark.parametrize(
    ("text", "version"),
    [("v1.14.1", (1, 14)), ("1.9", (1, 9)), ("v1.30.2-gke.7+x", (1, 30)), ("latest", None), ("", None)],
)
def test_a_version_is_its_first_two_numbers(text: str, version: tuple[int, int] | None) -> None:
    assert version_of(text) == version


@pytest.mark.parametrize(
    ("tag", "level"),
    [
        ("v1.10.3", Level.PROBLEM),
        ("v1.11.0", Level.OK),
        ("v2.0.0", Level.OK),
        ("latest", Level.OK),
        ("latest@sha256:00", Level.OK),
    ],
)
def test_volcano_must_know_gates(tag: str, level: Level) -> None:
    programs = ("vc-scheduler", "vc-controller-manager")
    said = found(volcano, deployments=tuple(deployment(name, f"r/{name}:{tag}") for name in programs))
    assert level in levels(said)
    assert (Level.PROBLEM in levels(said)) is (level is Level.PROBLEM)


@cases(
    "tag, advisory, cure",
    ("a line without a fix", "v1.11.2", "CVE-2026-44247", "1.14.2"),
    ("the line before", "v1.13.2", "CVE-2026-44247", "1.13.3"),
    ("what the tests run", "v1.14.1", "CVE-2026-44247", "1.14.2"),
    ("with a digest", "v1.14.1@sha256:00", "CVE-2026-44247", "1.14.2"),
    ("1.15.0", "v1.15.0", "GHSA-j38h-7pfq-cxmw", "1.15.2"),
    ("1.15.1", "v1.15.1-alpine", "GHSA-j38h-7pfq-cxmw", "1.15.2"),
)
@pytest.mark.parametrize("program", ["vc-scheduler", "vc-controller-manager", "vc-webhook-manager"])
def test_a_release_of_volcano_with_a_published_vulnerability_is_named(
    tag: str, advisory: str, cure: str, program: str
) -> None:
    said = found(volcano, deployments=(deployment(program, f"r/{program}:{tag}"),))
    (only,) = [one for one in said if "published vulnerability" in one.message]
    assert (only.level, advisory in only.message) == (Level.WARNING, True)
    assert only.cure == f"upgrade Volcano to {cure} or newer"


@pytest.mark.parametrize("tag", ["v1.12.4", "v1.13.3", "v1.14.2", "v1.14.4", "v1.15.2", "v1.16.0", "v1.14", "latest"])
def test_a_release_that_has_none_or_that_is_not_known_is_not_named(tag: str) -> None:
    said = found(volcano, deployments=(deployment("vc-scheduler", f"r/vc-scheduler:{tag}"),))
    assert not any("vulnerability" in one.message for one in said)


def test_a_volcano_that_is_not_seen_may_run_elsewhere() -> None:
    said = found(volcano, deployments=())
    assert levels(said) == {Level.WARNING, Level.OK}
    assert messages(said)[0] == "no Deployment runs vc-scheduler; unless it runs elsewhere, no gang is placed"


@pytest.mark.parametrize(("age", "level"), [(10.0, Level.OK), (3600.0, Level.PROBLEM)])
def test_a_queue_without_a_state_is_new_or_nobodys(age: float, level: Level) -> None:
    queue = convert({"metadata": {"name": "default", "creationTimestamp": text_of(NOW - age)}}, AnyObject)
    assert level in levels(found(volcano, queues=(queue,)))


def test_the_queue_of_those_that_name_none_must_be_there() -> None:
    assert messages(found(volcano, queues=())) == [
        "the default queue default does not exist: workloads that name no queue are refused"
    ]


def test_kubernetes_must_be_new_enough() -> None:
    assert messages(found(kinds, kubernetes="v1.29.9")) == ["Kubernetes v1.29.9 is too old"]


def test_versions_of_workloads_that_muster_does_not_know_are_named() -> None:
    served = healthy().served
    assert not isinstance(served, Unseen)
    old = {**{key: value for key, value in served.items() if key != "ray.io/v1"}, "ray.io/v1alpha1": frozenset({"x"})}
    assert messages(found(kinds, served=old)) == [
        "ray.io/v1alpha1 is served, a version that muster does not support: its workloads are not gangs"
    ]


def test_without_any_operator_only_plain_pods_are_gangs() -> None:
    said = found(kinds, served={"scheduling.volcano.sh/v1beta1": frozenset({"queues", "podgroups"})})
    assert messages(said) == [
        "the apiserver serves no kind of a supported operator: only plain pods, Jobs and StatefulSets can be gangs"
    ]


def test_without_volcanos_kinds_its_queues_are_not_missed_a_second_time() -> None:
    said = [*found(kinds, served={}, queues=()), *found(volcano, served={}, queues=())]
    assert (
        messages(said)[0] == "scheduling.volcano.sh/v1beta1 is not served: no podgroups, queues; no gang can be created"
    )
    assert not [line for line in messages(said) if line.startswith("queue ")]


WITHOUT = ("--schedulers=coscheduling", "--queue-source=muster")
SERVED = {"scheduling.x-k8s.io/v1alpha1": frozenset({"podgroups"}), "muster.dev/v1alpha1": frozenset({"gangqueues"})}


def without_volcano(**changes: object) -> list[str]:
    """What is said of a cluster in which coscheduling places gangs of GangQueues."""
    deployments = (ours("webhook", *WITHOUT), ours("controller", *WITHOUT))
    changes = {"deployments": deployments, "served": SERVED, "queues": (convert(QUEUE, AnyObject),), **changes}
    return [f"{one.level}: {one.message}" for check in (kinds, volcano) for one in found(check, **changes)]


QUEUE = {"metadata": {"name": "default", "creationTimestamp": text_of(NOW - 3600)}}


def test_a_cluster_without_volcano_needs_none_of_it() -> None:
    """A GangQueue has no state that anybody would set."""
    said = without_volcano()
    assert "ok: scheduling.x-k8s.io/v1alpha1: podgroups" in said
    assert "ok: muster.dev/v1alpha1: gangqueues" in said
    assert not [line for line in said if "olcano" in line or line.startswith("problem")]


def test_there_the_other_schedulers_kinds_are_missed() -> None:
    said = without_volcano(served={"muster.dev/v1alpha1": frozenset({"gangqueues"})})
    assert "problem: scheduling.x-k8s.io/v1alpha1 is not served: no podgroups; no gang can be created" in said


def test_there_the_default_queue_is_missed() -> None:
    said = without_volcano(queues=())
    assert "warning: the default queue default does not exist: workloads that name no queue are refused" in said


@cases("closed", ("muster", {"spec": {"closed": True}}), ("volcano", {"status": {"state": "Closing"}}))
def test_a_default_queue_that_is_closed_takes_nothing(closed: dict[str, Any]) -> None:
    changes: dict[str, Any] = {"queues": (convert({**QUEUE, **closed}, AnyObject),)}
    said = without_volcano(**changes) if "spec" in closed else messages(found(volcano, **changes))
    state = "Closed" if "spec" in closed else "Closing"
    assert any(f"the default queue default is {state}: gangs that name no queue do not start" in one for one in said)


async def test_the_kinds_of_kueue_are_asked_for() -> None:
    class Serves:
        async def get_path(self, path: str, deadline: float) -> bytes:
            del deadline
            version = "kueue.x-k8s.io/v1beta2"
            groups = {"groups": [{"name": "kueue.x-k8s.io", "versions": [{"groupVersion": version}]}]}
            return as_json(groups if path == "/apis" else {"resources": [{"name": "localqueues"}]}).encode()

    assert await served_kinds(as_client(Serves())) == {"kueue.x-k8s.io/v1beta2": frozenset({"localqueues"})}


def test_where_kueue_admits_its_kinds_are_needed() -> None:
    told = ("--admitters=ledger,kueue",)
    said = messages(found(kinds, deployments=(ours("webhook", *told), ours("controller", *told))))
    assert said == [
        "kueue.x-k8s.io/v1beta2 is not served: no clusterqueues, localqueues, workloads; no gang can be created"
    ]
