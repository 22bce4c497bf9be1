"""What admission says of the run time that a user gives a workload."""

from typing import Any

import pytest

from muster.model.findings import Reason
from muster.validation.context import Context
from muster.validation.workload import judge
from muster.workloads import kind_of
from tests.support.cases import cases
from tests.support.manifests.observed import JSON, made, pytorch_job, ray_cluster, template

FIELD = "metadata.annotations[muster.dev/runs-at-most]"


def judged(manifest: JSON) -> list[tuple[Reason, str]]:
    """What is found of its run time, refusals first."""
    kind = kind_of(manifest["apiVersion"], manifest["kind"])
    assert kind is not None
    verdict = judge(kind, made(kind.decoded, manifest), Context())
    found = [*verdict.refusals, *verdict.warnings]
    return [(one.reason, one.message) for one in found if "runs-at-most" in one.field]


def pytorch(text: str, **run_policy: Any) -> JSON:  # noqa: ANN401 - whatever stands there
    return pytorch_job(policy={"queue": "q"}, annotations={"muster.dev/runs-at-most": text}, **run_policy)


def ray_job(**spec: Any) -> JSON:  # noqa: ANN401 - whatever stands in its spec
    cluster = ray_cluster(annotations={"muster.dev/runs-at-most": "2h"})
    return {**cluster, "kind": "RayJob", "spec": {"rayClusterSpec": cluster["spec"], **spec}}


@pytest.mark.parametrize("text", ["soon", "59s", "1441h", "2d"])
def test_a_run_time_that_cannot_be_read_is_refused(text: str) -> None:
    line = f'{FIELD}: "{text}" is not a duration from 1m to 1440h (60 days); write one such as 90m or 36h'
    assert judged(pytorch(text)) == [(Reason.INVALID, line)]


def test_what_an_operator_makes_is_never_refused_for_it() -> None:
    """The RayJob above slipped in: its cluster has no bound, and starts."""
    cluster = ray_cluster(annotations={"muster.dev/runs-at-most": "soon"})
    cluster["metadata"]["ownerReferences"] = [
        {"apiVersion": "ray.io/v1", "kind": "RayJob", "name": "job", "uid": "u", "controller": True}
    ]
    assert [reason for reason, _ in judged(cluster)] == [Reason.VALUE_IGNORED]


@cases(
    "limit, rest",
    ("no limit", None, "nothing ends the workload then"),
    (
        "a longer one",
        7201,
        "nothing ends the workload then; spec.runPolicy.activeDeadlineSeconds ends it after 7201 s only",
    ),
    ("as long", 7200, None),
)
def test_a_run_time_that_nothing_enforces_is_told(limit: int | None, rest: str | None) -> None:
    found = judged(pytorch("2h", activeDeadlineSeconds=limit))
    words = f"{FIELD}: gangs behind count on 2h, and {rest}"
    assert found == ([] if rest is None else [(Reason.BOUND_NOT_ENFORCED, words)])


@cases(
    "manifest, reasons",
    ("a cluster", ray_cluster(annotations={"muster.dev/runs-at-most": "2h"}), [Reason.VALUE_IGNORED]),
    ("a RayJob that leaves its cluster", ray_job(), [Reason.VALUE_IGNORED]),
    ("a RayJob that leaves it at its deadline", ray_job(activeDeadlineSeconds=60), [Reason.VALUE_IGNORED]),
    ("a RayJob that does not", ray_job(shutdownAfterJobFinishes=True), [Reason.BOUND_NOT_ENFORCED]),
    ("a RayJob with a deadline", ray_job(shutdownAfterJobFinishes=True, activeDeadlineSeconds=60), []),
)
def test_it_says_nothing_of_what_stays_until_it_is_deleted(manifest: JSON, reasons: list[Reason]) -> None:
    assert [reason for reason, _ in judged(manifest)] == reasons


def test_on_a_job_it_is_read_on_the_template() -> None:
    pods = {"metadata": {"labels": {"muster.dev/gang": "g"}, "annotations": {"muster.dev/gang-size": "1"}}}
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "j", "namespace": "team", "annotations": {"muster.dev/runs-at-most": "2h"}},
        "spec": {"template": {**template(), **pods}},
    }
    ((reason, line),) = judged(job)
    assert reason is Reason.MISSPELLED
    assert line.endswith("write it into spec.template.metadata")
