"""The metrics that the processes have, as their own code describes them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

from prometheus_client import CollectorRegistry

from controller.metrics import Metrics, Term
from muster.observe.cluster import Cluster
from muster.process.event_loop import Turns
from muster.process.metrics import LoopTurns, Watches
from webhook.metrics import CertificateDates, show_load
from webhook.metrics import Metrics as WebhookMetrics

if TYPE_CHECKING:
    from prometheus_client import Metric

    from webhook.certificates.trust import Trust

__all__ = ["exported"]


def exported() -> dict[str, list[Metric]]:
    """By process, or `both`, in the order of their names."""
    cluster, registries = Cluster(), {name: CollectorRegistry() for name in ("both", "controller", "webhook")}
    Watches([], registries["both"])
    LoopTurns(Turns(), registries["both"])
    Metrics(registries["controller"])
    Term(cluster, "", lambda: True, registries["controller"])
    WebhookMetrics(registries["webhook"])
    show_load(int, int, registries["webhook"])
    CertificateDates(cast("Trust", SimpleNamespace(expirations={}, trusted=True)), registries["webhook"])
    return {name: sorted(registry.collect(), key=lambda metric: metric.name) for name, registry in registries.items()}
