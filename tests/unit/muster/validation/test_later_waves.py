"""A later wave that can never start is refused with the workload: nobody has its first wave run in vain."""

from __future__ import annotations

from dataclasses import replace

import pytest

from muster.admitters import Admitter
from muster.gangs.intent import Defaults
from muster.model.findings import Reason
from muster.model.modes import GateMode
from muster.observe.elastic_quotas import ElasticQuotas
from muster.queueing.queue_tree import QueueTree
from muster.queueing.queue_view import QueueView
from muster.resources.elastic_quotas import ElasticQuota
from muster.resources.pod_defaults import PodDefaults
from muster.resources.resource_quotas import ResourceQuota
from muster.schedulers import named
from muster.validation.workload import Context
from tests.support.manifests.families import judged
from tests.support.manifests.observed import (
    JSON,
    NAMESPACE,
    QUEUE_LABELS,
    amounts,
    elastic_quota,
    lines,
    made,
    resource_quota,
    template,
)

_QUEUE = "metadata.labels[volcano.sh/queue-name]"
_WHO = 'role "then" of gang "set", which starts as a whole,'


def waves(status: str = "Complete", pods: int = 4, annotations: JSON | None = None) -> JSON:
    """A JobSet of one pod, and of as many as said when that is ready or complete."""
    counted = {"template": template(), "parallelism": pods, "completions": pods}
    after = {"dependsOn": [{"name": "first", "status": status}]}
    jobs = [
        {"name": "first", "template": {"spec": {"template": template()}}},
        {"name": "then", "template": {"metadata": {"annotations": annotations or {}}, "spec": counted}, **after},
    ]
    metadata = {"name": "set", "namespace": NAMESPACE, "labels": QUEUE_LABELS}
    made_of = {"replicatedJobs": jobs}
    return {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": metadata, "spec": made_of}


def queues(cpu: str, mode: GateMode = GateMode.QUEUE) -> Context:
    tree = QueueTree([QueueView("q", "Open", amounts(cpu=cpu))])
    return Context(queue=tree.place, defaults=Defaults(gate=mode))


@pytest.mark.parametrize("status", ["Complete", "Ready"])
def test_a_wave_that_its_queue_never_holds_is_refused(status: str) -> None:
    (line,) = lines(judged(waves(status), queues("3")).refusals)
    assert line == (
        f'{_QUEUE}: {_WHO} needs cpu 4, queue "q" has capability cpu 3; lower the replicas or use a larger queue'
    )


def test_all_pods_of_a_wave_that_come_in_two_steps_count() -> None:
    exclusive = waves(annotations={"alpha.jobset.sigs.k8s.io/exclusive-topology": "rack"})
    assert [one.reason for one in judged(exclusive, queues("3")).refusals] == [Reason.EXCEEDS_CAPABILITY]


@pytest.mark.parametrize(
    ("manifest", "context"),
    [
        pytest.param(waves(), queues("4"), id="beside nothing else"),
        pytest.param(waves(pods=0), queues("1"), id="a wave of no pods"),
        pytest.param(waves(), queues("3", GateMode.ASSEMBLE), id="it waits for no room"),
        pytest.param(waves(), queues("3", GateMode.OFF), id="it comes pod by pod"),
        pytest.param(
            waves(), replace(queues("3"), defaults=Defaults(admitters=(Admitter.KUEUE,))), id="the queue admits nobody"
        ),
    ],
)
def test_a_wave_that_may_start_is_not_refused(manifest: JSON, context: Context) -> None:
    assert lines(judged(manifest, context).refusals) == ()


@pytest.mark.parametrize(
    ("mode", "refused"), [(GateMode.QUEUE, True), (GateMode.ASSEMBLE, True), (GateMode.OFF, False)]
)
def test_a_wave_whose_last_pods_a_quota_never_lets_come_is_refused(mode: GateMode, refused: bool) -> None:  # noqa: FBT001
    """Where nothing holds its pods they may come one after the other."""
    quotas = PodDefaults(quotas=[made(ResourceQuota, resource_quota({"pods": "3"}))])
    found = lines(judged(waves(), Context(pod_defaults=quotas, defaults=Defaults(gate=mode))).refusals)
    line = f'spec: {_WHO} needs pods 4, ResourceQuota "quota" has hard pods 3; '
    assert found == (f"{line}lower the replicas or have the quota raised",) * refused


def test_a_wave_that_an_elastic_quota_never_holds_is_refused() -> None:
    watched = ElasticQuotas()
    most, least = {"cpu": "3", "memory": "9Gi"}, {"cpu": "9", "memory": "9Gi"}
    watched.store.replace_all([made(ElasticQuota, elastic_quota(most, least))])
    defaults = Defaults(schedulers=named("coscheduling"))
    verdict = judged(waves(), Context(defaults=defaults, ceiling=watched.limits.ceiling(NAMESPACE)))
    assert lines(verdict.refusals) == (
        f'spec: {_WHO} needs cpu 4, ElasticQuota "elastic" has max cpu 3; lower the replicas or have the quota raised',
    )


def test_of_a_gang_and_a_wave_that_are_both_too_large_the_gang_is_told() -> None:
    (line,) = lines(judged(waves(), queues("0500m")).refusals)
    assert line.startswith(f'{_QUEUE}: gang "set" needs cpu 1,')


@pytest.mark.parametrize(
    ("manifest", "context", "warned"),
    [
        pytest.param(waves("Ready"), queues("4"), True, id="room for it alone"),
        pytest.param(waves("Ready"), queues("5"), False, id="room for both"),
        pytest.param(waves("Complete"), queues("4"), False, id="the first one has ended by then"),
        pytest.param(waves("Ready"), queues("3"), False, id="refused"),
        pytest.param(waves("Ready"), queues("4", GateMode.OFF), False, id="it comes pod by pod"),
    ],
)
def test_a_wave_that_fits_only_alone_is_warned_of(manifest: JSON, context: Context, warned: bool) -> None:  # noqa: FBT001
    """What must be ready before it goes on, as a driver does, and may do so until the wave has done its work."""
    path = "spec.replicatedJobs[1].template.spec.template.spec"
    line = (
        f'{path}: "then" comes when first is ready; together they need cpu 5, and queue "q" has capability cpu 4; '
        "its pods wait until the others have ended, however long that takes"
    )
    found = [one for one in judged(manifest, context).warnings if one.reason is Reason.GROWS_BEYOND_CAPABILITY]
    assert lines(found) == (line,) * warned


def test_of_many_waves_those_beside_the_most_are_looked_at() -> None:
    """To add up all for each of hundreds would take as long as everything else."""
    manifest = waves("Ready")
    jobs = [{**manifest["spec"]["replicatedJobs"][0], "name": f"job-{number}"} for number in range(40)]
    manifest["spec"] = {"replicatedJobs": jobs, "startupPolicy": {"startupPolicyOrder": "InOrder"}}
    (found,) = judged(manifest, queues("30")).warnings
    assert '"job-30" comes when job-0, job-1, job-2 and 27 more are ready; together they need cpu 31,' in found.message
