"""ElasticQuotas as webhook and controller watch them."""

import pytest

from muster.cluster.cluster import Cluster
from muster.cluster.stores import ElasticQuotas
from muster.kube.store import ChangeKind
from muster.model.resource import ELASTIC_QUOTAS
from muster.resources.elastic_quotas import ElasticQuota
from tests.support.manifests.observed import JSON, NAMESPACE, elastic_quota, made

BROKEN = elastic_quota({"cpu": "four"}, name="broken")


def shown(*quotas: JSON) -> tuple[ElasticQuotas, list[str]]:
    """What the watch showed, and the namespaces that were told of it."""
    found = ElasticQuotas()
    told: list[str] = []
    found.subscribe(told.append)
    found.store.replace_all([made(ElasticQuota, one) for one in quotas])
    return found, told


def show(found: ElasticQuotas, kind: ChangeKind, quota: JSON) -> None:
    found.store.apply(kind, made(ElasticQuota, quota))


def most(found: ElasticQuotas, namespace: str = NAMESPACE) -> str:
    ceiling = found.limits.ceiling(namespace)
    return "" if ceiling is None else f"{ceiling.own}: cpu {ceiling.own.most.get('cpu', 'unlimited')}"


def test_a_namespace_is_told_when_its_limit_is_another() -> None:
    found, told = shown(elastic_quota({"cpu": "4"}), elastic_quota(namespace="other"))
    assert sorted(told) == ["other", NAMESPACE]
    show(found, "modified", elastic_quota({"cpu": "6"}))
    assert told[2:] == [NAMESPACE]
    assert most(found) == 'ElasticQuota "elastic": cpu 6'
    assert most(found, "other") == 'ElasticQuota "elastic": cpu unlimited'


def test_what_is_used_tells_nobody() -> None:
    found, told = shown(elastic_quota({"cpu": "4"}))
    later = elastic_quota({"cpu": "4"}) | {"status": {"used": {"cpu": "3"}}}
    later["metadata"]["resourceVersion"] = "2"
    show(found, "modified", later)
    assert [one.status.used for one in found.store] == [{"cpu": "3"}]
    assert told == [NAMESPACE]


def test_a_quota_that_is_gone_limits_nothing() -> None:
    found, told = shown(elastic_quota({"cpu": "4"}), elastic_quota({"cpu": "2"}, name="second"))
    assert most(found) == 'ElasticQuotas "elastic" and "second": cpu 2'
    told.clear()
    show(found, "deleted", elastic_quota(name="second"))
    assert most(found) == 'ElasticQuota "elastic": cpu 4'
    show(found, "deleted", elastic_quota())
    assert not found.limits
    assert told == [NAMESPACE, NAMESPACE]


def test_one_that_cannot_be_read_is_logged_and_leaves_the_others_in_force(caplog: pytest.LogCaptureFixture) -> None:
    found, _ = shown(elastic_quota({"cpu": "4"}), BROKEN)
    assert most(found) == 'ElasticQuota "elastic": cpu 4'
    said = f"cannot read ElasticQuota {NAMESPACE}/broken; it limits nothing here: spec.max.cpu: "
    assert said in caplog.text
    caplog.clear()
    show(found, "modified", elastic_quota({"cpu": "5"}))
    assert not caplog.text


@pytest.mark.parametrize("wanted", [False, True])
def test_the_controller_watches_them_only_where_it_is_told_to(wanted: bool) -> None:
    cluster = Cluster(elastic_quotas=wanted)
    assert (ELASTIC_QUOTAS in [one.resource for one in cluster.watched()]) is wanted
