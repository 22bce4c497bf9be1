"""Common metrics of both processes: version, resource usage, event loop and watches.

Every number has its registry passed in; nothing is registered globally. Names and units are those of the field:
base units, `_total` for counters, and client-go's own names where it has them (`workqueue_…`). No label names a
workload or a pod, so that the number of series is bounded by kinds, queues and states.
"""

from collections.abc import Iterator, Sequence
from itertools import accumulate

from prometheus_client import CollectorRegistry, Gauge, Metric, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector

import muster
from muster.kube.reflector import Reflector
from muster.process.event_loop import BUCKETS, Turns
from muster.process.revision import built_in_commit

_LABELS = ("resource",)
# By the field of a watch's statistics.
_COUNTED = (
    ("lists", "muster_watch_lists", "Lists, at the start and after faults."),
    ("watches", "muster_watch_starts", "Watches opened; each lasts some minutes."),
    ("events", "muster_watch_events", "Events received from watches."),
    ("malformed", "muster_watch_malformed_objects", "Objects skipped because they could not be read."),
    ("failures", "muster_watch_failures", "Lists and watches that failed."),
)


def new_registry(component: str) -> CollectorRegistry:
    """Return a registry with the version and the process's own numbers (`process_…`) in it."""
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    labels = ["component", "version", "revision"]
    built = Gauge("muster_build_info", "Always 1; the labels name the running version.", labels, registry=registry)
    built.labels(component, muster.__version__, built_in_commit()).set(1)
    return registry


def unread(reflectors: Sequence[Reflector]) -> str:
    """Return the kinds that are not listed yet, for /readyz; "" for none."""
    names = sorted({one.resource.full_name for one in reflectors if not one.store.synced})
    return f"not yet: {', '.join(names)}" if names else ""


class LoopTurns(Collector):
    """The durations of the event loop's turns, and the number of its tasks, read when Prometheus asks."""

    def __init__(self, turns: Turns, registry: CollectorRegistry) -> None:
        self._turns = turns
        registry.register(self)

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics as they are now."""
        family = HistogramMetricFamily(
            "muster_event_loop_turn_seconds",
            "Duration of a turn of the event loop, in which no lease is renewed, no watch read, no review answered.",
        )
        buckets = list(zip((*map(str, BUCKETS), "+Inf"), accumulate(self._turns.counts), strict=True))
        family.add_metric([], buckets=buckets, sum_value=self._turns.seconds)
        yield family
        tasks = "Unfinished tasks of the event loop; their number does not grow with past gangs."
        yield GaugeMetricFamily("muster_event_loop_tasks", tasks, value=self._turns.tasks())


class Watches(Collector):
    """The state of the watches, read from their own statistics when Prometheus asks."""

    def __init__(self, reflectors: Sequence[Reflector], registry: CollectorRegistry) -> None:
        self._reflectors = reflectors
        registry.register(self)

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics as they are now."""
        objects = GaugeMetricFamily("muster_watch_objects", "Objects that the watch holds.", labels=_LABELS)
        absent = GaugeMetricFamily(
            "muster_watch_absent",
            "1 while the apiserver does not serve the resource (its CRD is missing).",
            labels=_LABELS,
        )
        counted = {field: CounterMetricFamily(name, words, labels=_LABELS) for field, name, words in _COUNTED}
        by_name: dict[str, list[Reflector]] = {}
        for reflector in self._reflectors:
            by_name.setdefault(reflector.resource.full_name, []).append(reflector)
        for name, versions in by_name.items():
            # MPIJob has two versions, and a cluster serves one of them.
            objects.add_metric([name], sum(len(one.store) for one in versions))
            absent.add_metric([name], int(all(one.absent for one in versions)))
            for field, family in counted.items():
                family.add_metric([name], sum(getattr(one.statistics, field) for one in versions))
        yield from (objects, absent, *counted.values())
