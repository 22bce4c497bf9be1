"""An example of every refusal and warning, judged by the real rules, and the page that shows them: docs/denials.md.

Whoever adds a reason adds a line to `EXAMPLES`: anything that finds it. The page takes the first finding of the reason.
"""

import textwrap
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from muster.admitters import Admitter
from muster.admitters.kueue_quota import ClusterQueue
from muster.gangs.intent import Defaults
from muster.model.findings import Finding, Reason, Severity, usual_severity
from muster.model.objects import Queue
from muster.queueing.queue_tree import QueueTree
from muster.queueing.queue_view import QueueView, read_queue
from muster.resources.elastic_quotas import Ceiling, NamespaceLimit
from muster.resources.pod_defaults import LimitRange, PodDefaults, RuntimeClass
from muster.resources.resource_quotas import ResourceQuota
from muster.schedulers import named
from muster.validation.context import Context
from muster.validation.queue import faults, left_outside
from muster.validation.workload import judge, name_taken
from muster.workloads import kind_of
from tests.support.manifests.families import judged
from tests.support.manifests.kueue import flavored_queue
from tests.support.manifests.observed import (
    JSON,
    QUEUE_LABELS,
    amounts,
    made,
    pytorch_job,
    ray_cluster,
    resource_quota,
    template,
    workers,
)
from tests.support.pages.causes import ABOUT
from webhook.reviews.pods import names_another_scheduler

_HEAD = """\
<!-- Written by MUSTER_REWRITE=1 pytest tests/docs/test_denials.py (support/pages/causes.py, denials.py). -->

# Refusals and warnings

muster's answers to `kubectl apply`. A message names the field, the fault, the rule, and what to do; sections below add
what it does not say. A refusal has a message for each rule that refuses. Reasons are stable for programs, and are
counted by `muster_webhook_refusals_total` and `muster_webhook_warnings_total`.

A client gets status 422 with the first `reason`, and in `details.causes` the `reason`, `field` and `message` of each
([python.md](python.md#a-refusal-in-another-client) reads them).

When an object changes, muster refuses only new faults, and warns of old ones that have not got worse, so that you can
correct it in steps. Changes of status, finalizers and annotations (except muster's own on Queues), and objects that are
being deleted, are not checked. The chart values `validation` and `validationReasons` decide whether a reason refuses or
warns ([operations.md](operations.md#how-strict-admission-is)); this page shows the defaults.

Warnings come in the order of this page ([kubectl.md](kubectl.md#refusals) shows how kubectl prints them). The apiserver
passes on 4096<!--=longest-warnings--> characters of warnings; where there are more, each is cut at
256<!--=longest-warning-->.
"""

_WIDTH = 120
_KUEUES = Defaults(admitters=(Admitter.KUEUE,))
_SMALL = QueueView("q", "Open", amounts(cpu="4", memory="6Gi"))
_BELOW = QueueView("below", "Open", {}, parent="q")
_NONE = {"replicas": 0, "template": template()}
_KATA = {"kata": made(RuntimeClass, {"metadata": {"name": "kata"}, "overhead": {"podFixed": {"cpu": "250m"}}})}

_TWO = made(ResourceQuota, resource_quota({"requests.cpu": "2", "pods": "2"}, name="team"))
_LIMITED = made(ResourceQuota, resource_quota({"limits.cpu": "64"}, name="team"))
_RANGE = made(LimitRange, {"metadata": {"name": "team"}, "spec": {"limits": [{"type": "Pod", "min": {"cpu": "2"}}]}})


def _found(manifest: JSON, *queues: QueueView, **known: object) -> Iterable[Finding]:
    """What is found in a workload where there are these queues; `_SMALL` where none is named."""
    tree = QueueTree(queues or [_SMALL])
    context = replace(Context(queue=tree.place, priorities={"": 0}), **known)  # type: ignore[arg-type]
    verdict = judged(manifest, context)
    return (*verdict.refusals, *verdict.warnings)


def _without_runtime() -> Iterable[Finding]:
    manifest = {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": "train", "namespace": "team", "labels": QUEUE_LABELS},
        "spec": {"runtimeRef": {"name": "torch"}},
    }
    kind = kind_of("trainer.kubeflow.org/v1alpha1", "TrainJob")
    assert kind is not None
    return judge(kind, made(kind.decoded, manifest), Context()).refusals


def _above_elastic_quota() -> Iterable[Finding]:
    quota = NamespaceLimit(("team",), most=amounts(cpu="2", memory="8Gi"), least={})
    coscheduling = Defaults(schedulers=named("coscheduling"))
    ceiling = Ceiling(quota, together=amounts(cpu="64", memory="1Ti"))
    return _found(ray_cluster(), QueueView("q", "Open", {}), defaults=coscheduling, ceiling=ceiling)


def _elastic_on_kubernetes() -> Iterable[Finding]:
    manifest = pytorch_job(policy={"queue": "q", "minAvailable": 2})
    return _found(manifest, QueueView("q", "Open", {}), defaults=Defaults(schedulers=named("kubernetes")))


def _taken() -> Iterable[Finding]:
    gang = judged(pytorch_job(policy={"queue": "q"}), Context()).gang
    assert gang is not None
    return [name_taken(gang, "another workload (MPIJob)")]


def _ray(**metadata: object) -> JSON:
    cluster = ray_cluster()
    return {**cluster, "metadata": {**cluster["metadata"], **metadata}}


def _service() -> JSON:
    return {**_ray(), "kind": "RayService", "spec": {"rayClusterConfig": ray_cluster()["spec"]}}


def _elastic(least: int, available: int | None = None) -> JSON:
    job = pytorch_job(policy={"queue": "q"} | ({} if available is None else {"minAvailable": available}))
    return {**job, "spec": {**job["spec"], "elasticPolicy": {"minReplicas": least}}}


def _class(name: str) -> JSON:
    return ray_cluster(labels={**QUEUE_LABELS, "ray.io/priority-class-name": name})


def _template(**spec: Any) -> JSON:  # noqa: ANN401 - whatever a pod may say
    return ray_cluster(workers(template=template(**spec)))


def _exclusive() -> JSON:
    meta = {
        "name": "set",
        "labels": QUEUE_LABELS,
        "annotations": {"alpha.jobset.sigs.k8s.io/exclusive-topology": "rack"},
    }
    spec = {"parallelism": 2, "completions": 2, "template": template()}
    jobs = [{"name": "workers", "replicas": 2, "template": {"spec": spec}}]
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": meta,
        "spec": {"replicatedJobs": jobs},
    }


def _bound() -> JSON:
    bound = {**template(), "metadata": {"annotations": {"scheduling.k8s.io/group-name": "mine"}}}
    return ray_cluster(workers(template=bound), head=bound)


def _zero_memory() -> Iterable[Finding]:
    queue = made(Queue, {"metadata": {"name": "q"}, "spec": {"capability": {"memory": 0}}, "status": {"state": "Open"}})
    return _found(ray_cluster(), read_queue(queue))


def _idle_keys() -> Queue:
    return made(Queue, {"metadata": {"name": "small"}, "spec": {"capability": {"cpus": 4, "gpu": 8, "pods": 20}}})


def _queue(cpu: str, parent: str = "", allocated: str = "0") -> Queue:
    spec, status = {"capability": {"cpu": cpu}, "parent": parent}, {"allocated": {"cpu": allocated}}
    return made(Queue, {"metadata": {"name": "small"}, "spec": spec, "status": status})


EXAMPLES: dict[Reason, Callable[[], Iterable[Finding]]] = {
    Reason.INVALID: lambda: _found(pytorch_job(policy={"queue": "q", "minAvailable": 7})),
    Reason.QUEUE_NOT_FOUND: lambda: _found(ray_cluster(), QueueView("other", "Open", {})),
    Reason.QUEUE_CLOSED: lambda: _found(ray_cluster(), QueueView("q", "Closed", {})),
    Reason.QUEUE_NOT_LEAF: lambda: _found(ray_cluster(), _SMALL, _BELOW),
    Reason.EXCEEDS_CAPABILITY: lambda: _found(ray_cluster(head=template("4"))),
    Reason.EXCEEDS_RESOURCE_QUOTA: lambda: _found(ray_cluster(), pod_defaults=PodDefaults(quotas=[_TWO])),
    Reason.EXCEEDS_ELASTIC_QUOTA: _above_elastic_quota,
    Reason.REQUIRED_BY_RESOURCE_QUOTA: lambda: _found(ray_cluster(), pod_defaults=PodDefaults(quotas=[_LIMITED])),
    Reason.OUTSIDE_LIMIT_RANGE: lambda: _found(ray_cluster(), pod_defaults=PodDefaults([_RANGE])),
    Reason.SCHEDULER_CANNOT: _elastic_on_kubernetes,
    Reason.POD_GROUP_TAKEN: _taken,
    Reason.UNKNOWN_PRIORITY_CLASS: lambda: _found(_class("hihg")),
    Reason.TRAINING_RUNTIME_NOT_FOUND: _without_runtime,
    Reason.QUEUE_HIERARCHY: lambda: faults(_queue(cpu="8", parent="q"), QueueTree([_SMALL])),
    Reason.CAPABILITY_LOWERED: lambda: left_outside(_queue(cpu="4", allocated="6"), []),
    Reason.UNKNOWN_RUNTIME_CLASS: lambda: _found(
        _template(runtimeClassName="gvisor"), pod_defaults=PodDefaults((), _KATA)
    ),
    Reason.OVERHEAD_MISMATCH: lambda: _found(
        _template(runtimeClassName="kata", overhead={"cpu": "1"}), pod_defaults=PodDefaults((), _KATA)
    ),
    Reason.IN_NO_KUEUE_QUEUE: lambda: _found(ray_cluster(), defaults=_KUEUES),
    Reason.EXCEEDS_KUEUE_QUOTA: lambda: _found(
        _ray(labels={**QUEUE_LABELS, "kueue.x-k8s.io/queue-name": "research"}),
        defaults=_KUEUES,
        cluster_queue=made(ClusterQueue, flavored_queue({"cpu": "2", "memory": "64Gi"})),
    ),
    Reason.TIME_LIMIT_WHILE_WAITING: lambda: _found(pytorch_job(policy={"queue": "q"}, activeDeadlineSeconds=600)),
    Reason.BOUND_NOT_ENFORCED: lambda: _found(
        pytorch_job(policy={"queue": "q"}, annotations={"muster.dev/runs-at-most": "2h"})
    ),
    Reason.QUEUE_ON_HOLD: lambda: _found(ray_cluster(), replace(_SMALL, on_hold=True), held=lambda _: {}),
    Reason.QUEUE_NEARLY_FULL: lambda: _found(ray_cluster(), held=lambda _: amounts(cpu="3500m", memory="1Gi")),
    Reason.NO_ROOM_TO_UPGRADE: lambda: _found(_service()),
    Reason.MIN_AVAILABLE_TOO_LOW: lambda: _found(pytorch_job(policy={"queue": "q", "minAvailable": 2})),
    Reason.UNKNOWN_SCHEDULER: lambda: _found(ray_cluster(labels={"ray.io/scheduler-name": "volcanoo"})),
    Reason.MISSPELLED: lambda: _found(_ray(labels={"ray.io/scheduler-name": "volcano", "volcano.sh/queuename": "q"})),
    Reason.VALUE_IGNORED: lambda: _found(_ray(annotations={"muster.dev/requeue-after": "soon"})),
    Reason.SCHEDULE_TIMEOUT_IGNORED: lambda: _found(pytorch_job(policy={"queue": "q", "scheduleTimeoutSeconds": 60})),
    Reason.BOUND_TO_POD_GROUP: lambda: _found(_bound()),
    Reason.FIELD_DROPPED: lambda: _found({**ray_cluster(workers(numOfHosts=2)), "apiVersion": "ray.io/v1alpha1"}),
    Reason.RESOURCE_CLAIMS: lambda: _found(
        _template(resourceClaims=[{"name": "gpu", "resourceClaimTemplateName": "one-gpu"}])
    ),
    Reason.POD_LEVEL_RESOURCES: lambda: _found(_template(resources={"requests": {"cpu": "1"}})),
    Reason.REQUESTS_MISSING: lambda: _found(ray_cluster(head=template(""))),
    Reason.CAPABILITY_OF_ZERO: _zero_memory,
    Reason.LIMITS_NOTHING: lambda: faults(_idle_keys(), QueueTree([_SMALL])),
    Reason.GROWS_BEYOND_CAPABILITY: lambda: _found(
        ray_cluster(workers(minReplicas=1, maxReplicas=10), enableInTreeAutoscaling=True)
    ),
    Reason.ELASTIC_WAITS_FOR_ALL: lambda: _found(_elastic(1)),
    Reason.FOLLOWERS_COME_LATER: lambda: _found(_exclusive()),
    Reason.NO_PODS: lambda: _found(pytorch_job(policy={"queue": "q"}, replicas={"Worker": _NONE})),
    Reason.POD_LEFT_ALONE: lambda: [names_another_scheduler("mine", "volcano")],
}


def page() -> str:
    """The text of docs/denials.md."""
    parts = [_HEAD]
    for severity, title in ((Severity.DENY, "Refusals"), (Severity.WARN, "Warnings")):
        parts.append(f"## {title}\n")
        parts += [_section(reason) for reason in Reason if usual_severity(reason) is severity]
    return "\n".join(parts)


def _section(reason: Reason) -> str:
    about = ABOUT[reason]
    example = next(one for one in EXAMPLES[reason]() if one.reason is reason)
    fix = f" **Fix:** {about.cure}" if about.cure else ""
    text = textwrap.fill(about.cause + fix, _WIDTH, break_long_words=False, break_on_hyphens=False)
    return f"### {reason}\n\n```text\n{example.message}\n```\n\n{text}\n"
