"""The metrics that the processes have, as their own code describes them."""

from types import SimpleNamespace
from typing import cast

from prometheus_client import CollectorRegistry, Metric
from prometheus_client.metrics import MetricWrapperBase

from controller.metrics import Metrics, TermMetrics
from muster.cluster.cluster import Cluster
from muster.process.event_loop import Turns
from muster.process.metrics import LoopTurns, Watches
from webhook.certificates.authority import CertificateManager
from webhook.metrics import CertificateDates, ReviewMetrics, show_load

BEFORE = "## Metrics\n"
AFTER = "## Events of the log\n"
_HEAD = """\
## Metrics

<!-- Written by MUSTER_REWRITE=1 pytest tests/docs/test_reference.py from the processes' own metrics. -->

Names and labels are stable ([stability.md](stability.md)); gauges of gangs count on the replica that leads.
"""
_TAIL = """\
`queue` is empty for gangs of queues that do not exist. `resource` of a watch is a resource with its group
(`podgroups.scheduling.volcano.sh`), of a queue's amounts in base units one of `metrics.resources`, `basis` `enforced`,
`said`, `about` or, where no start is known, `none` ([queues.md](queues.md)), `webhook` one of `pods`, `workloads`,
`queues`, `podgroups`, `queues-of-pods` and `reach`, `certificate` `serving` or `authority`, `reason` one of
[denials.md](denials.md), `state` one of [reasons.md](reasons.md), `part` a part of the leader (`delayed` and `failing`
are of its work queue), and `name` that of client-go. There are also `process_*` and `muster_build_info`, whose labels
are the version and the commit.

"""
_HEADINGS = {"both": "Both processes", "controller": "Controller", "webhook": "Webhook"}


def exported() -> dict[str, list[Metric]]:
    """By process, or `both`, in the order of their names."""
    return {
        name: sorted(registry.collect(), key=lambda metric: metric.name) for name, registry in _registries().items()
    }


def labels() -> dict[str, tuple[str, ...]]:
    """Return the labels of each metric of both processes."""
    return {name: found for registry in _registries().values() for name, found in _labels(registry).items()}


def page(text: str) -> str:
    """Return docs/observability.md with the section of metrics written anew: each with type, labels and meaning."""
    before, _, rest = text.partition(BEFORE)
    return "".join([before, _section(), AFTER, rest.partition(AFTER)[2]])


def _section() -> str:
    sections = []
    for process, registry in _registries().items():
        found = _labels(registry)
        rows = [
            f"| `{metric.name}{'_total' if metric.type == 'counter' else ''}` | {metric.type} "
            f"| {', '.join(f'`{label}`' for label in found[metric.name])} | {metric.documentation} |"
            for metric in sorted(registry.collect(), key=lambda metric: metric.name)
        ]
        head = [f"### {_HEADINGS[process]}", "", "| metric | type | labels | what |", "|---|---|---|---|"]
        sections.append("\n".join([*head, *rows, ""]))
    return "\n".join([_HEAD, *sections, _TAIL])


def _labels(registry: CollectorRegistry) -> dict[str, tuple[str, ...]]:
    """The labels of each metric: of those that are counted in the process, and of those that are made at a scrape."""
    found = {
        collector._name: tuple(collector._labelnames)
        for collector in registry._collector_to_names
        if isinstance(collector, MetricWrapperBase)
    }
    made = {metric.name: tuple(getattr(metric, "_labelnames", ())) for metric in registry.collect()}
    return {name: found.get(name, labels) for name, labels in made.items()}


def _registries() -> dict[str, CollectorRegistry]:
    cluster, registries = Cluster(), {name: CollectorRegistry() for name in ("both", "controller", "webhook")}
    Watches([], registries["both"])
    LoopTurns(Turns(), registries["both"])
    Metrics(registries["controller"])
    TermMetrics(cluster, "", lambda: True, registries["controller"])
    ReviewMetrics(registries["webhook"])
    show_load(int, int, registries["webhook"])
    CertificateDates(cast("CertificateManager", SimpleNamespace(expirations={}, trusted=True)), registries["webhook"])
    return registries
