"""What ElasticQuotas never let a namespace use is refused, where the gang's scheduler heeds them."""

import pytest

from muster.admitters import Admitter
from muster.cluster.stores import ElasticQuotas
from muster.gangs.intent import Defaults
from muster.model.findings import Reason
from muster.resources.elastic_quotas import ElasticQuota
from muster.schedulers import named
from muster.validation.context import Context
from tests.support.cases import cases
from tests.support.manifests.families import judged
from tests.support.manifests.observed import (
    JSON,
    NAMESPACE,
    elastic_quota,
    lines,
    made,
    pytorch_job,
    ray_cluster,
    template,
    workers,
)

SCHEDULERS = named("coscheduling", "volcano")


def refusals(manifest: JSON, *quotas: JSON, admitter: Admitter = Admitter.LEDGER) -> tuple[str, ...]:
    watched = ElasticQuotas()
    watched.store.replace_all([made(ElasticQuota, one) for one in quotas])
    defaults = Defaults(schedulers=SCHEDULERS, admitters=(admitter,))
    verdict = judged(manifest, Context(defaults=defaults, ceiling=watched.limits.ceiling(NAMESPACE)))
    assert {one.reason for one in verdict.refusals} <= {Reason.EXCEEDS_ELASTIC_QUOTA}
    return lines(verdict.refusals)


PLENTY = {"cpu": "99", "memory": "99Gi"}
ENOUGH = {"cpu": "3", "memory": "3Gi"}


@cases(
    "quotas, said",
    (
        "max",
        [elastic_quota({"cpu": "2", "memory": "8Gi"}, PLENTY)],
        'needs cpu 3, ElasticQuota "elastic" has max cpu 2',
    ),
    (
        "a max without memory",
        [elastic_quota({"cpu": "4"}, PLENTY)],
        'needs memory 3Gi, ElasticQuota "elastic" has max memory 0',
    ),
    (
        "the sum of all min",
        [elastic_quota(None, {"cpu": "1", "memory": "9Gi"}), elastic_quota(None, {"cpu": "1"}, namespace="other")],
        "needs cpu 3, the ElasticQuotas of all namespaces have min cpu 2 together",
    ),
)
def test_a_gang_that_a_quota_never_holds_is_refused(quotas: list[JSON], said: str) -> None:
    (line,) = refusals(ray_cluster(), *quotas)
    assert line == f'spec: gang "ray-demo-pg" {said}; lower the replicas or raise the quota'


@cases(
    "quotas",
    ("no quota", []),
    ("exactly enough", [elastic_quota(ENOUGH, ENOUGH)]),
    ("of another namespace", [elastic_quota({"cpu": "0"}, namespace="other")]),
    ("no max", [elastic_quota(None, ENOUGH)]),
    ("the scheduler counts no pods", [elastic_quota({**ENOUGH, "pods": "1"}, ENOUGH)]),
)
def test_what_fits_passes(quotas: list[JSON]) -> None:
    assert refusals(ray_cluster(), *quotas) == ()


def test_a_gang_of_another_scheduler_passes() -> None:
    of_volcano = ray_cluster(labels={"volcano.sh/queue-name": "q", "ray.io/scheduler-name": "volcano"})
    assert refusals(of_volcano, elastic_quota({"cpu": "1"})) == ()


@pytest.mark.parametrize("admitter", [Admitter.KUEUE, Admitter.NONE])
def test_it_holds_whoever_admits(admitter: Admitter) -> None:
    labels = {"volcano.sh/queue-name": "q", "kueue.x-k8s.io/queue-name": "team"}
    assert refusals(ray_cluster(labels=labels), elastic_quota({"cpu": "1"}), admitter=admitter)


def test_the_pods_of_the_minimum_count_and_their_requests() -> None:
    worker = {"Worker": {"replicas": 4, "template": template()}}
    job = pytorch_job(policy={"queue": "q", "minAvailable": 3}, replicas=worker)
    assert refusals(job, elastic_quota(ENOUGH, PLENTY)) == ()
    assert refusals(ray_cluster(workers(replicas=3)), elastic_quota(ENOUGH, PLENTY)) != ()


@pytest.mark.parametrize(("admitter", "refused"), [(Admitter.LEDGER, True), (Admitter.NONE, False)])
def test_min_resources_count_where_the_ledger_asks_for_them(admitter: Admitter, *, refused: bool) -> None:
    """They are no pod's request, and the scheduler does not count them; the ledger never lets such a gang start."""
    job = pytorch_job(policy={"queue": "q", "minResources": {"cpu": "9"}})
    assert bool(refusals(job, elastic_quota(ENOUGH, PLENTY), admitter=admitter)) is refused
