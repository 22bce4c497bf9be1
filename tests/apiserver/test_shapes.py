"""What `muster plan` knows of shapes without a schema is what the real apiserver knows, and so are its refusals."""

from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any

import pytest

from hack.testbed import Testbed, wait_for
from hack.testbed.api import Api
from hack.testbed.muster import MusterInstall
from muster.cli.plan import shape
from muster.cli.plan.entries import plan
from muster.cli.plan.manifests import Document
from muster.cli.plan.reading import from_cluster
from muster.model.names import QUEUE_LABEL
from muster.model.resource import QUEUES
from muster.workloads import kind_of
from tests.apiserver.conftest import running
from tests.support.cases import cases
from tests.support.cli.command import cluster_options
from tests.support.cluster.desk import PATIENCE
from tests.support.cluster.recorder import RAY_CLUSTERS
from tests.support.manifests import applied

pytestmark = pytest.mark.part("commands")

JSON = dict[str, Any]


@pytest.fixture(autouse=True, scope="module")
def _queue(calls: Api, webhook_of_session: MusterInstall) -> Iterator[None]:
    """A queue that the webhook knows: the configurations of the session's call it, whichever module ran before."""
    running(webhook_of_session)
    calls.create(QUEUES.path(), applied.queue("shapes"))
    path = f"{RAY_CLUSTERS.path('default')}?dryRun=All"
    wait_for("the webhook to know the queue", lambda: calls("POST", path, _RAY).ok, PATIENCE)
    yield
    calls.delete(QUEUES.path(name="shapes"))


_TEMPLATE = {"spec": {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": 1}}}]}}
_RAY: JSON = {
    "apiVersion": "ray.io/v1",
    "kind": "RayCluster",
    "metadata": {"name": "shapes", "namespace": "default", "labels": {QUEUE_LABEL: "shapes"}},
    "spec": {"headGroupSpec": {"rayStartParams": {"num-cpus": "0"}, "template": _TEMPLATE}},
}
_JOB: JSON = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {"name": "shapes", "namespace": "default", "labels": {}},
    "spec": {"template": {"spec": {"restartPolicy": "Never", **_TEMPLATE["spec"]}}},
}


def _container(manifest: JSON) -> JSON:
    template = manifest["spec"].get("template") or manifest["spec"]["headGroupSpec"]["template"]
    found: JSON = template["spec"]["containers"][0]
    return found


def test_every_key_of_a_pod_is_known(calls: Api) -> None:
    """A newer Kubernetes has more of them: no plan may call one unknown."""
    schemas = calls.get("/openapi/v3/api/v1")["components"]["schemas"]
    core = "io.k8s.api.core.v1"
    for name, known in (
        (f"{core}.PodSpec", shape._POD_SPEC),
        (f"{core}.Container", shape._CONTAINER),
        (f"{core}.ResourceRequirements", shape._RESOURCES),
        (f"{core}.PodTemplateSpec", shape._TEMPLATE),
        ("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta", shape._METADATA),
    ):
        assert set(schemas[name]["properties"]) <= known, name


@cases(
    "base, change, field",
    ("half a cpu", _RAY, lambda one: _container(one)["resources"]["requests"].update(cpu=0.5), "requests.cpu"),
    ("half a cpu of a Job", _JOB, lambda one: _container(one)["resources"]["requests"].update(cpu=0.5), ""),
    ("a label", _RAY, lambda one: one["metadata"]["labels"].update(a="${X}"), "metadata.labels"),
    ("a number for text", _RAY, lambda one: one["spec"]["headGroupSpec"].update(rayStartParams={"a": 0}), "Params.a"),
    ("no containers", _RAY, lambda one: one["spec"]["headGroupSpec"].update(template={"spec": {}}), "containers"),
    ("as it should be", _RAY, lambda _: None, ""),
)  # fmt: skip
def test_a_plan_refuses_what_the_apiserver_refuses(
    bare: Testbed, calls: Api, base: JSON, change: Callable[[JSON], object], field: str
) -> None:
    """With the schemas of the cluster, and by the same field."""
    manifest = deepcopy(base)
    change(manifest)
    kind = kind_of(manifest["apiVersion"], manifest["kind"])
    assert kind is not None
    answer = calls("POST", f"{kind.resource.path('default')}?dryRun=All", manifest)
    assert (answer.ok, field in answer.message) == (not field, True), answer.message
    errors: list[str] = []
    kinds = {(manifest["apiVersion"], manifest["kind"])}
    options = cluster_options(bare.kubeconfig)
    found = plan([Document("test", manifest)], *from_cluster(options, kinds), errors)
    refused = [*errors, *(one.message for entry in found for one in entry.refusals if one.reason == "Invalid")]
    assert bool(refused) is bool(field), refused
    assert all(field in text for text in refused)


@pytest.mark.parametrize("key", ["nvidia.com/gpu", "request", "limit"])
def test_kubectl_apply_refuses_a_resource_at_the_wrong_place(calls: Api, key: str) -> None:
    """As it validates strictly; without that the apiserver drops it, and says nothing."""
    manifest = deepcopy(_RAY)
    _container(manifest)["resources"][key] = 1
    path = f"{RAY_CLUSTERS.path('default')}?dryRun=All&fieldValidation="
    strict, ignoring = (calls("POST", f"{path}{mode}", manifest) for mode in ("Strict", "Ignore"))
    assert (strict.ok, ignoring.ok, f"resources.{key}" in strict.message) == (False, True, True), ignoring.message
