"""A later wave that can never start is refused with the workload: nobody has its first wave run in vain."""

from dataclasses import replace

import pytest

from muster.admitters import Admitter
from muster.cluster.stores import ElasticQuotas
from muster.gangs.intent import Defaults
from muster.model.findings import Reason
from muster.model.modes import GateMode
from muster.queueing.queue_tree import QueueTree
from muster.queueing.queue_view import QueueView
from muster.resources.elastic_quotas import ElasticQuota
from muster.resources.pod_defaults import PodDefaults
from muster.resources.resource_quotas import ResourceQuota
from muster.schedulers import named
from muster.validation.context import Context
from tests.support.cases import cases
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


def test_a_wave_that_its_queue_never_holds_is_refused() -> None:
    (line,) = lines(judged(waves(), queues("3")).refusals)
    assert line == (
        f'{_QUEUE}: {_WHO} needs cpu 4, queue "q" has capability cpu 3; lower the replicas or use a larger queue'
    )


@pytest.mark.parametrize(("cpu", "refused"), [("4", True), ("5", False)])
def test_what_comes_when_others_are_ready_counts_with_them(cpu: str, refused: bool) -> None:
    line = f'{_QUEUE}: gang "set" needs cpu 5, queue "q" has capability cpu 4; lower the replicas or use a larger queue'
    assert lines(judged(waves("Ready"), queues(cpu)).refusals) == (line,) * refused


def later(*status: str) -> JSON:
    """A JobSet whose jobs, of one pod each, each wait for the one before: until it is complete, or ready."""
    one = {"template": {"spec": {"template": template()}}}
    jobs: list[JSON] = [{"name": "job-0", **one}]
    jobs += [
        {"name": f"job-{number}", "dependsOn": [{"name": f"job-{number - 1}", "status": said}], **one}
        for number, said in enumerate(status, 1)
    ]
    return {**waves(), "spec": {"replicatedJobs": jobs}}


@pytest.mark.parametrize(("cpu", "refused"), [("1", True), ("2", False)])
def test_what_comes_when_a_later_wave_is_ready_counts_with_that(cpu: str, refused: bool) -> None:
    who = 'roles "job-1" and "job-2" of gang "set", which starts as a whole,'
    line = f'{_QUEUE}: {who} needs cpu 2, queue "q" has capability cpu 1; lower the replicas or use a larger queue'
    assert lines(judged(later("Complete", "Ready"), queues(cpu)).refusals) == (line,) * refused


def test_a_quota_of_pods_counts_all_that_run_side_by_side() -> None:
    quotas = PodDefaults(quotas=[made(ResourceQuota, resource_quota({"pods": "4"}))])
    (line,) = lines(judged(waves("Ready"), Context(pod_defaults=quotas)).refusals)
    assert 'gang "set" needs pods 5, ResourceQuota "quota" has hard pods 4' in line


def test_all_pods_of_a_wave_that_come_in_two_steps_count() -> None:
    exclusive = waves(annotations={"alpha.jobset.sigs.k8s.io/exclusive-topology": "rack"})
    assert [one.reason for one in judged(exclusive, queues("3")).refusals] == [Reason.EXCEEDS_CAPABILITY]


@cases(
    "manifest, context",
    ("beside nothing else", waves(), queues("4")),
    ("a wave of no pods", waves(pods=0), queues("1")),
    ("it waits for no room", waves(), queues("3", GateMode.ASSEMBLE)),
    ("it comes pod by pod", waves(), queues("3", GateMode.OFF)),
    ("the queue admits nobody", waves(), replace(queues("3"), defaults=Defaults(admitters=(Admitter.KUEUE,)))),
)
def test_a_wave_that_may_start_is_not_refused(manifest: JSON, context: Context) -> None:
    assert lines(judged(manifest, context).refusals) == ()


@pytest.mark.parametrize(
    ("mode", "refused"), [(GateMode.QUEUE, True), (GateMode.ASSEMBLE, True), (GateMode.OFF, False)]
)
def test_a_wave_whose_last_pods_a_quota_never_lets_come_is_refused(mode: GateMode, refused: bool) -> None:
    """Where nothing holds its pods they may come one after the other."""
    quotas = PodDefaults(quotas=[made(ResourceQuota, resource_quota({"pods": "3"}))])
    found = lines(judged(waves(), Context(pod_defaults=quotas, defaults=Defaults(gate=mode))).refusals)
    line = f'spec: {_WHO} needs pods 4, ResourceQuota "quota" has hard pods 3; '
    assert found == (f"{line}lower the replicas or raise the quota",) * refused


def test_a_wave_that_an_elastic_quota_never_holds_is_refused() -> None:
    watched = ElasticQuotas()
    most, least = {"cpu": "3", "memory": "9Gi"}, {"cpu": "9", "memory": "9Gi"}
    watched.store.replace_all([made(ElasticQuota, elastic_quota(most, least))])
    defaults = Defaults(schedulers=named("coscheduling"))
    verdict = judged(waves(), Context(defaults=defaults, ceiling=watched.limits.ceiling(NAMESPACE)))
    assert lines(verdict.refusals) == (
        f'spec: {_WHO} needs cpu 4, ElasticQuota "elastic" has max cpu 3; lower the replicas or raise the quota',
    )


def test_of_a_gang_and_a_wave_that_are_both_too_large_the_gang_is_told() -> None:
    (line,) = lines(judged(waves(), queues("0500m")).refusals)
    assert line.startswith(f'{_QUEUE}: gang "set" needs cpu 1,')


def served(servers: int = 1, pods: int = 4) -> JSON:
    """A JobSet of servers, of a job that trains beside them, and then of one for each number of servers."""
    one = {"template": {"spec": {"template": template()}}}
    names = [f"server-{number}" for number in range(servers)]
    ready = [{"name": name, "status": "Ready"} for name in names]
    after = {"name": "train", "status": "Complete"}
    counted = {"template": {"spec": {"template": template(), "parallelism": pods, "completions": pods}}}
    jobs: list[JSON] = [{"name": name, **one} for name in names]
    jobs.append({"name": "train", "dependsOn": ready, **one})
    jobs += [
        {"name": f"eval-{number}", "dependsOn": [after, *ready[: number + 1]], **counted} for number in range(servers)
    ]
    return {**waves(), "spec": {"replicatedJobs": jobs}}


@cases(
    "context, warned",
    ("room for it alone", queues("4"), True),
    ("room for both", queues("5"), False),
    ("refused", queues("3"), False),
    ("it comes pod by pod", queues("4", GateMode.OFF), False),
)
def test_a_wave_that_fits_only_alone_is_warned_of(context: Context, warned: bool) -> None:
    """It takes the room of what is complete, beside what is ready and goes on."""
    path = "spec.replicatedJobs[2].template.spec.template.spec"
    line = (
        f'{path}: "eval-0" comes when server-0 is ready; together they need cpu 5, and queue "q" has capability cpu 4; '
        "its pods wait until the others have ended, however long that takes"
    )
    found = [one for one in judged(served(), context).warnings if one.reason is Reason.GROWS_BEYOND_CAPABILITY]
    assert lines(found) == (line,) * warned


def test_of_many_waves_those_beside_the_most_are_looked_at() -> None:
    """To add up all for each of hundreds would take as long as everything else."""
    (found,) = judged(served(40, pods=6), queues("41")).warnings
    assert '"eval-35" comes when server-0, server-1, server-2 and 33 more are ready; together they need cpu 42,' in (
        found.message
    )
