"""What `plan --cluster`, `audit` and `explain` read of ElasticQuotas: the sum of all counts, so all are asked for."""

import asyncio

import pytest

from muster.cli.plan.context import PlanContext, unserved
from muster.cli.plan.manifests import Document
from muster.cli.plan.reading import learn_all, learn_fields
from muster.cli.plan.schemas import Schemas
from muster.cli.settings import read_settings
from muster.cli.snapshot import ClusterSnapshot, load
from muster.gangs.intent import Defaults
from muster.kube.errors import ApiError
from muster.model.findings import Reason
from muster.model.resource import ELASTIC_QUOTAS, Resource
from tests.support.cli.command import Command, Said
from tests.support.cli.connections import kubeconfig
from tests.support.faults.apiserver import FaultyApiserver, failure, listing, only, reply
from tests.support.manifests.observed import NAMESPACE, elastic_quota

EVERYWHERE = "/apis/scheduling.x-k8s.io/v1alpha1/elasticquotas"
HERE = f"/apis/scheduling.x-k8s.io/v1alpha1/namespaces/{NAMESPACE}/elasticquotas"
QUOTAS = [
    elastic_quota({"cpu": "9"}, {"cpu": "1"}),
    elastic_quota(None, {"cpu": "3"}, namespace="other"),
]
FORBIDDEN = failure(403, "Forbidden")


@pytest.mark.parametrize("namespace", [None, NAMESPACE])
async def test_quotas_of_all_namespaces_are_read_for_one(namespace: str | None) -> None:
    known = PlanContext()
    async with FaultyApiserver.serving() as server, server.client() as client:
        server.on("LIST", only(EVERYWHERE, reply(listing(1, *QUOTAS)), reply(listing(1))))
        await learn_all(client, known, never_unlisted, namespace, elastic_quotas=True)
    ceiling = known.context(NAMESPACE, Defaults()).ceiling
    assert ceiling is not None
    assert ceiling.whole
    assert {name: str(amount) for name, amount in ceiling.together.items()} == {"cpu": "4"}


async def test_without_the_option_nobody_asks_for_them() -> None:
    known = PlanContext()
    async with FaultyApiserver.serving() as server, server.client() as client:
        server.on("LIST", only(EVERYWHERE, FORBIDDEN, reply(listing(1))))
        await learn_all(client, known, never_unlisted)
    assert known.context(NAMESPACE, Defaults()).ceiling is None


async def test_quotas_that_may_not_be_listed_are_told_of() -> None:
    known, told = PlanContext(), []
    async with FaultyApiserver.serving() as server, server.client() as client:
        server.on("LIST", only(EVERYWHERE, FORBIDDEN, reply(listing(1))))
        await learn_all(client, known, lambda one, _: told.append(one), elastic_quotas=True)
    assert told == [ELASTIC_QUOTAS]
    assert not known.elastic_limits.whole


@pytest.mark.parametrize("everywhere", [True, False])
async def test_a_user_of_one_namespace_sees_its_own_quota(everywhere: bool) -> None:
    """The sum of all is then unknown, and bounds nothing."""
    visible = ClusterSnapshot.empty(read_settings("test", "{elasticQuotas: true, schedulers: [coscheduling]}"))
    all_of_them = reply(listing(1, *QUOTAS)) if everywhere else FORBIDDEN
    async with FaultyApiserver.serving() as server, server.client() as client:
        own = only(HERE, reply(listing(1, QUOTAS[0])), reply(listing(1)))
        server.on("LIST", only(EVERYWHERE, all_of_them, own))
        await load(client, NAMESPACE, visible)
    ceiling = visible.cluster.elastic_quotas.limits.ceiling(NAMESPACE)
    assert ceiling is not None
    assert (str(ceiling.own), ceiling.whole) == ('ElasticQuota "elastic"', everywhere)


async def plan_beside_a_malformed_queue(command: Command, *words: str, refused: str = "none") -> Said:
    """Plan in a cluster with a queue that cannot be read; a path with `refused` in it may not be listed."""
    limits = {"b": "x", "c": "1"}
    queues = [{"metadata": {"name": name}, "spec": {"capability": {"cpu": cpu}}} for name, cpu in limits.items()]
    path = "/apis/scheduling.volcano.sh/v1beta1/queues"
    async with FaultyApiserver.serving() as server:
        server.on("GET", failure(404, "NotFound"))
        others = only(refused, FORBIDDEN, reply(listing(1)))
        server.on("LIST", only(path, reply(listing(1, *queues)), others))
        config = command.file(kubeconfig(0).replace("https://127.0.0.1:0", server.url), "config")
        return await asyncio.to_thread(command.run, "plan", "--cluster", f"--kubeconfig={config}", *words)


async def test_a_malformed_queue_of_somebody_else_ends_no_plan(command: Command) -> None:
    """It counts for nothing, as for the webhook."""
    said = await plan_beside_a_malformed_queue(command, "-o", "json", "-f", "docs/examples/raycluster.yaml")
    assert (said.code, [one["verdict"]["allowed"] for one in said.entries]) == (0, [True])
    _, line = said.err.splitlines()
    assert line.startswith('muster plan: Queue b of the cluster: spec.capability.cpu: "x" is not a quantity')
    assert line.endswith("; ignoring it, as the webhook does")


async def test_notes_are_printed_when_the_rest_of_the_cluster_cannot_be_read(command: Command) -> None:
    words = ("-f", "docs/examples/raycluster.yaml")
    said = await plan_beside_a_malformed_queue(command, *words, refused="/api/v1/resourcequotas")
    *_, note, error = said.err.splitlines()
    assert said.code == 2
    assert note.endswith("; ignoring it, as the webhook does")
    assert error.startswith("muster plan: cannot list resourcequotas of the cluster: 403")


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("a: [", "is missing"),
        ("kind: 1", "no apiVersion and kind"),
        ("{apiVersion: ray.io/v1, kind: RayCluster, metadata: {name: a}, spec: 1}", "spec"),
    ],
)
async def test_what_if_of_a_manifest_that_cannot_be_read_is_no_forecast_without_it(
    command: Command, text: str, fault: str
) -> None:
    said = await plan_beside_a_malformed_queue(command, "--what-if", "-f", command.file(text, "bad.yaml"))
    *_, note, error = said.err.splitlines()
    assert (said.code, said.out) == (2, "")
    assert note.endswith("; ignoring it, as the webhook does")
    assert "bad.yaml" in error
    assert fault in error


PUBLISHED = {"x-kubernetes-group-version-kind": [{"group": "ray.io", "version": "v1", "kind": "RayCluster"}]}


async def test_kinds_that_the_apiserver_does_not_serve_are_told_from_those_that_it_hides() -> None:
    """The group may be missing, or the kind of it; who may not read the schemas knows neither."""
    ray = reply({"components": {"schemas": {"cluster": PUBLISHED}}})
    kubeflow, schemas = "kubeflow.org/v1", Schemas()
    kinds = [("ray.io/v1", "RayCluster"), ("ray.io/v1", "RayCronJob"), (kubeflow, "PyTorchJob")]
    async with FaultyApiserver.serving() as server, server.client() as client:
        server.on("GET", only("/openapi/v3/apis/ray.io/v1", ray, failure(404, "NotFound")))
        assert await learn_fields(client, schemas, kinds) == set(kinds[1:])
        server.on("GET", FORBIDDEN)
        assert await learn_fields(client, Schemas(), kinds) == set()
    (said,) = unserved(
        Document("a file", {"apiVersion": kubeflow, "kind": "PyTorchJob"}),
        PlanContext(unserved={(kubeflow, "PyTorchJob")}),
    )
    assert said.message.startswith("kind: the cluster does not serve PyTorchJob of kubeflow.org/v1")
    assert said.reason is Reason.FIELD_DROPPED


def never_unlisted(resource: Resource, error: ApiError) -> None:
    raise AssertionError(f"{resource.full_name}: {error}")
