"""The programs of scheduler-plugins, where coscheduling places gangs."""

import pytest

from muster.cli.doctor.diagnosis import Unseen
from muster.cli.doctor.installed import Deployment
from muster.cli.doctor.schedulers import coscheduling
from muster.resources.elastic_quotas import ElasticQuota
from tests.support.cli.doctor_snapshots import deployment, found, ours
from tests.support.manifests.observed import elastic_quota, made

_ROOM = "scheduler-plugins"


def scheduler(tag: str = "v0.34.7", **more: int) -> Deployment:
    """As its chart has it."""
    return deployment(
        "scheduler-plugins-scheduler", f"r/scheduler-plugins/kube-scheduler:{tag}", namespace=_ROOM, **more
    )


def controller(**more: int) -> Deployment:
    """As its chart has it."""
    return deployment("scheduler-plugins-controller", "r/scheduler-plugins/controller:v0.34.7", namespace=_ROOM, **more)


def said(*deployments: Deployment, schedulers: str = "coscheduling", more: str = "", **sight: object) -> list[str]:
    """What is said of these, beside muster."""
    told = (f"--schedulers={schedulers}", "--queue-source=muster", *more.split())
    all_of_them = (ours("webhook", *told), ours("controller", *told), *deployments)
    return [f"{one.level}: {one.message}" for one in found(coscheduling, deployments=all_of_them, **sight)]


def test_its_scheduler_runs() -> None:
    assert said(scheduler(), controller()) == [
        (
            "ok: Deployment scheduler-plugins/scheduler-plugins-scheduler (scheduler of scheduler-plugins v0.34.7): "
            "1 of 1 pods Ready"
        ),
    ]


def test_without_its_scheduler_no_gang_is_placed() -> None:
    (line,) = said(scheduler(ready=0), controller())
    assert line.startswith("problem: ")
    assert line.endswith("0 of 1 pods Ready: no gang is placed")


def test_a_replica_that_is_not_ready_is_a_warning() -> None:
    (line,) = said(scheduler(replicas=2), controller())
    assert line.startswith("warning: ")
    assert line.endswith("1 of 2 pods Ready")


def test_what_is_not_seen_may_run_elsewhere() -> None:
    assert said() == [
        (
            "warning: no Deployment runs the scheduler of scheduler-plugins for scheduler-plugins-scheduler; unless it "
            "runs elsewhere, no gang is placed"
        ),
    ]


def test_in_the_place_of_kube_scheduler_it_is_no_deployment() -> None:
    (first,) = said(controller(), schedulers="coscheduling=default-scheduler")
    assert first.startswith("ok: no Deployment runs the scheduler of scheduler-plugins: default-scheduler is a static")


@pytest.mark.parametrize(("tag", "old"), [("v0.33.5", True), ("v0.34.7", False), ("v1.0.0", False), ("latest", False)])
def test_a_scheduler_that_counts_gated_pods_is_named(tag: str, old: bool) -> None:
    lines = said(scheduler(tag), controller())
    assert any("counts gated pods as members" in line for line in lines) is old
    assert len(lines) == 1 + old


def test_they_are_known_under_other_peoples_names() -> None:
    """An image from a mirror, by its Deployment; a Deployment of another name, by its image."""
    lines = said(
        deployment("scheduler-plugins-scheduler", "mirror/scheduler:v0.34.7"),
        deployment("batch-scheduler", "mirror/scheduler-plugins/kube-scheduler@sha256:00"),
    )
    assert [line.partition(" (")[2].partition(")")[0] for line in lines] == [
        "scheduler of scheduler-plugins v0.34.7",
        "scheduler of scheduler-plugins of unknown version",
    ]


def test_others_are_none_of_them() -> None:
    """kube-scheduler itself, and any controller."""
    lines = said(deployment("kube-scheduler", "r/kube-scheduler:v1.36.3"), deployment("c", "r/controller:v1"))
    assert [line.partition(" of ")[0] for line in lines] == [
        "warning: no Deployment runs the scheduler",
    ]


def quotas(*namespaces: str) -> tuple[ElasticQuota, ...]:
    names = enumerate(namespaces)
    return tuple(made(ElasticQuota, elastic_quota(name=f"q-{at}", namespace=one)) for at, one in names)


def of_quotas(*namespaces: str, more: str = "") -> list[str]:
    lines = said(scheduler(), controller(), more=more, elastic_quotas=quotas(*namespaces))
    return [line for line in lines if "ElasticQuota" in line]


def test_quotas_that_muster_does_not_count_are_named() -> None:
    (line,) = of_quotas("team-b", "team-a")
    assert line == (
        "warning: muster does not count the ElasticQuotas of team-a, team-b: it admits gangs that they have no room "
        "for, whose pods find no node where the scheduler runs its plugin CapacityScheduling"
    )
    assert of_quotas() == []


def test_quotas_that_muster_heeds_are_in_order() -> None:
    assert of_quotas("team-b", "team-a", more="--elastic-quotas") == ["ok: 2 ElasticQuotas in team-a, team-b"]
    assert of_quotas(more="--elastic-quotas") == []


def test_of_two_quotas_in_a_namespace_the_scheduler_counts_one() -> None:
    (_, line) = of_quotas("team-a", "team-b", "team-a", more="--elastic-quotas")
    assert line.startswith("warning: team-a: more than one ElasticQuota in a namespace; the scheduler counts the last")


def test_quotas_that_cannot_be_listed_are_said() -> None:
    lines = said(scheduler(), controller(), elastic_quotas=Unseen("you cannot list elasticquotas"))
    assert lines[-1] == "unknown: could not check whether there are ElasticQuotas: you cannot list elasticquotas"


def test_where_another_scheduler_places_gangs_nobody_looks() -> None:
    assert said(scheduler(ready=0), schedulers="volcano") == []
    assert list(found(coscheduling, installations=())) == []


def test_what_cannot_be_listed_is_said() -> None:
    """The installation is known by its webhooks then, and its schedulers are not."""
    assert list(found(coscheduling, deployments=Unseen("you cannot list deployments.apps"))) == []
