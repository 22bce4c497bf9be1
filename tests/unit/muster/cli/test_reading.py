"""What `plan --cluster`, `audit` and `explain` read of ElasticQuotas: the sum of all counts, so all are asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from muster.cli import parser
from muster.cli.known import PlanContext
from muster.cli.picture import Picture, look
from muster.cli.reading import learn_all
from muster.gangs.intent import Defaults
from muster.kube.resource import ELASTIC_QUOTAS
from tests.support.faults.apiserver import FaultyApiserver, failure, listing, only, reply
from tests.support.manifests.observed import NAMESPACE, elastic_quota

if TYPE_CHECKING:
    import argparse

    from muster.kube.errors import ApiError
    from muster.kube.resource import Resource

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
        await learn_all(client, known, never_unlisted, never_unread, namespace, elastic_quotas=True)
    ceiling = known.context(NAMESPACE, Defaults()).ceiling
    assert ceiling is not None
    assert ceiling.whole
    assert {name: str(amount) for name, amount in ceiling.together.items()} == {"cpu": "4"}


async def test_without_the_option_nobody_asks_for_them() -> None:
    known = PlanContext()
    async with FaultyApiserver.serving() as server, server.client() as client:
        server.on("LIST", only(EVERYWHERE, FORBIDDEN, reply(listing(1))))
        await learn_all(client, known, never_unlisted, never_unread)
    assert known.context(NAMESPACE, Defaults()).ceiling is None


async def test_quotas_that_may_not_be_listed_are_told_of() -> None:
    known, told = PlanContext(), []
    async with FaultyApiserver.serving() as server, server.client() as client:
        server.on("LIST", only(EVERYWHERE, FORBIDDEN, reply(listing(1))))
        await learn_all(client, known, lambda one, _: told.append(one), never_unread, elastic_quotas=True)
    assert told == [ELASTIC_QUOTAS]
    assert not known.elastic_limits.whole


@pytest.mark.parametrize("everywhere", [True, False])
async def test_a_user_of_one_namespace_sees_its_own_quota(everywhere: bool) -> None:  # noqa: FBT001
    """The sum of all is then unknown, and bounds nothing."""
    picture = Picture.begun(options("--elastic-quotas", "--schedulers=coscheduling"))
    all_of_them = reply(listing(1, *QUOTAS)) if everywhere else FORBIDDEN
    async with FaultyApiserver.serving() as server, server.client() as client:
        own = only(HERE, reply(listing(1, QUOTAS[0])), reply(listing(1)))
        server.on("LIST", only(EVERYWHERE, all_of_them, own))
        await look(client, NAMESPACE, picture)
    ceiling = picture.cluster.elastic_quotas.limits.ceiling(NAMESPACE)
    assert ceiling is not None
    assert (str(ceiling.own), ceiling.whole) == ('ElasticQuota "elastic"', everywhere)


def options(*more: str) -> argparse.Namespace:
    return parser().parse_args(["explain", "raycluster/demo", *more])


def never_unlisted(resource: Resource, error: ApiError) -> None:
    raise AssertionError(f"{resource.full_name}: {error}")


def never_unread(error: Exception) -> None:
    raise error
