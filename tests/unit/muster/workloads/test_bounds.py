"""What one workload may hold: more of it is neither kept nor gone through, and says so."""

import pytest

from muster.model.findings import Reason
from muster.workloads import kind_of
from muster.workloads.bounds import MOST
from muster.workloads.ray import RayCluster
from tests.support.cases import cases
from tests.support.manifests.families import Family, each, judged
from tests.support.manifests.observed import JSON, made, pytorch_job, ray_cluster, template, workers
from tests.support.manifests.train_jobs import judged as judged_train_job
from tests.support.manifests.train_jobs import patch, runtime, step, train_job


def _containers(many: int) -> JSON:
    return {"spec": {"containers": [{"name": f"c{n}", "resources": {"requests": {"cpu": "1m"}}} for n in range(many)]}}


@each()
def test_a_workload_that_holds_too_much_is_invalid_and_says_how_much(family: Family) -> None:
    """Each has a container and an amount; a review of a pod behind it is small, whatever it holds."""
    verdict = judged(family.manifest(_containers(MOST // 2)))
    (refusal,) = verdict.refusals
    assert refusal.reason is Reason.INVALID
    said = "muster reads 10000 at most: each template counts 30, each container 10,"
    assert said in refusal.message
    assert refusal.message.endswith("; use fewer or smaller templates")


@each()
def test_what_is_usual_and_ten_times_as_much_is_read(family: Family) -> None:
    assert not judged(family.manifest(_containers(10), _containers(10))).refusals


@each("TrainJob")
def test_of_what_holds_too_much_nothing_is_kept(family: Family) -> None:
    """A hundred of them would fill the memory of both processes."""
    manifest = family.manifest(template(), _containers(MOST))
    kind = kind_of(family.api_version, family.kind)
    assert kind is not None
    assert len(repr(made(kind.decoded, manifest))) < 10_000


@cases(
    "manifest",
    ("groups", ray_cluster(*[{"groupName": f"g{n}", "template": template()} for n in range(300)])),
    ("overhead", ray_cluster(head={"spec": {**template()["spec"], "overhead": {f"r{n}": 1 for n in range(MOST)}}})),
    ("labels", ray_cluster(head={**template(), "metadata": {"labels": {f"k{n}": "" for n in range(MOST)}}})),
    ("the autoscaler's", ray_cluster(autoscalerOptions={"resources": {"requests": {f"r{n}": 1 for n in range(MOST)}}})),
    (
        "the collector's, for each group",
        ray_cluster(
            *[workers(f"g{n}") for n in range(100)],
            historyServerOptions={
                "collectorOptions": {"resources": {"requests": {f"r{n}": 1 for n in range(MOST // 100)}}}
            },
        ),
    ),
    ("minResources", pytorch_job(policy={"minResources": {f"r{n}": 1 for n in range(MOST)}})),
)
def test_whatever_is_gone_through_counts(manifest: JSON) -> None:
    assert [one.field for one in judged(manifest).refusals] == ["spec"]


def test_overrides_count_for_each_job_that_they_name() -> None:
    """Or a hundred labels for each of a hundred jobs, a thousand times, would take a minute."""
    override = {"targetJobs": [{"name": "node"}] * 100, "metadata": {"labels": {f"k{n}": "" for n in range(100)}}}
    assert [one.field for one in judged_train_job(train_job(podTemplateOverrides=[override]), runtime()).refusals] == [
        "spec"
    ]


def test_each_override_counts_as_a_template() -> None:
    """Once and for each job that it names: they are kept, and gone through for each pod."""
    override = {"targetJobs": [{"name": "node"}]}
    few, many = (
        judged_train_job(train_job(podTemplateOverrides=[override] * count), runtime()) for count in (166, 167)
    )
    assert (few.allowed, [one.field for one in many.refusals]) == (True, ["spec"])


_MANY = {f"k{n}": "" for n in range(MOST)}


@cases(
    "patches",
    ("each patch counts as a template", [patch()] * 501),
    ("and each job of it", [patch(step("node"))] * 240),
    ("labels of the JobSet", [patch(meta={"labels": _MANY})]),
    ("of a Job", [patch({"name": "node", "template": {"metadata": {"labels": _MANY}}})]),
    ("of its pods", [patch(step("node", pod={"metadata": {"labels": _MANY}}))]),
    ("containers", [patch(step("node", pod=_containers(MOST)))]),
)
def test_patches_of_a_runtime_count(patches: list[JSON]) -> None:
    refusals = judged_train_job(train_job(runtimePatches=patches), runtime()).refusals
    assert [one.field for one in refusals] == ["spec"]


def test_of_what_the_autoscaler_asks_too_much_nothing_is_kept() -> None:
    manifest = ray_cluster(autoscalerOptions={"resources": {"requests": {f"r{n}": 1 for n in range(MOST)}}})
    assert len(repr(made(RayCluster, manifest))) < 10_000


@pytest.mark.parametrize("api_version", ["kubeflow.org/v1", "kubeflow.org/v2beta1"])
def test_of_too_many_least_resources_nothing_is_kept(api_version: str) -> None:
    """And the rest of the policy is."""
    kind = kind_of(api_version, "PyTorchJob" if api_version == "kubeflow.org/v1" else "MPIJob")
    assert kind is not None
    manifest = pytorch_job(policy={"queue": "a", "minResources": {f"r{n}": 1 for n in range(MOST + 1)}})
    kept = made(kind.decoded, manifest)
    assert len(repr(kept)) < 10_000
    assert kept.spec.run_policy.scheduling_policy.queue == "a"


def test_what_says_nothing_of_gang_scheduling_passes_whatever_it_holds() -> None:
    verdict = judged(ray_cluster({"groupName": "g", "template": _containers(MOST)}, labels={}))
    assert (verdict.refusals, verdict.warnings, verdict.gang) == ((), (), None)


def test_no_manifest_says_itself_how_much_it_holds() -> None:
    """Neither too much nor too little."""
    small, large = ray_cluster(), ray_cluster(head=_containers(MOST))
    small["spec"]["muster.dev/too-much"], large["spec"]["muster.dev/too-much"] = 5, 0
    assert (judged(small).allowed, judged(large).allowed) == (True, False)
