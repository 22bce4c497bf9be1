"""The webhook's Prometheus metrics: its answers, their durations, and the expirations of its certificates."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Metric
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from muster.model.findings import Reason
from webhook.certificates.source import CertificateSource
from webhook.reviews.codec import AdmissionResponse

# From a fraction of a millisecond, as decisions take, to the longest timeout of an apiserver.
_SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)


class ReviewMetrics:
    """The metrics of all webhooks."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.reviews = Counter("muster_webhook_reviews", "Reviews answered.", ["webhook", "allowed"], registry=registry)
        self.errors = Counter(
            "muster_webhook_errors",
            "Reviews answered with an HTTP error, for which the failure policy decides.",
            ["webhook", "code"],
            registry=registry,
        )
        self.durations = Histogram(
            "muster_webhook_review_duration_seconds",
            "From the request to the answer.",
            ["webhook"],
            buckets=_SECONDS,
            registry=registry,
        )
        refusals = Counter("muster_webhook_refusals", "Reasons of refusals.", ["reason"], registry=registry)
        warnings = Counter("muster_webhook_warnings", "Reasons of warnings.", ["reason"], registry=registry)
        # Created now, so that each is exported as 0 and needs no look-up by name later.
        self.refusals = {str(reason): refusals.labels(str(reason)) for reason in Reason}
        self.warnings = {str(reason): warnings.labels(str(reason)) for reason in Reason}

    def of(self, webhook: str) -> Reviews:
        """The metrics of one webhook."""
        return Reviews(self, webhook)


class Reviews:
    """The metrics of one webhook, looked up by their labels once."""

    def __init__(self, metrics: ReviewMetrics, webhook: str) -> None:
        self._metrics = metrics
        self._webhook = webhook
        self._answered = {allowed: metrics.reviews.labels(webhook, str(allowed).lower()) for allowed in (True, False)}
        self._durations = metrics.durations.labels(webhook)

    def answered(self, answer: AdmissionResponse, seconds: float) -> None:
        """Count an answer that took that many seconds."""
        self._answered[answer.allowed].inc()
        self._durations.observe(seconds)
        for reason in answer.reasons:
            self._metrics.refusals[reason].inc()
        for warning in answer.warnings:
            self._metrics.warnings[warning.reason].inc()

    def failed(self, code: int, seconds: float) -> None:
        """Count an HTTP error that took that many seconds."""
        self._metrics.errors.labels(self._webhook, str(code)).inc()
        self._durations.observe(seconds)


def show_load(reviews: Callable[[], int], connections: Callable[[], int], registry: CollectorRegistry) -> None:
    """Export the reviews in progress and the connections, read at each scrape."""
    Gauge("muster_webhook_reviews_under_way", "Reviews that are not answered yet.", registry=registry).set_function(
        reviews
    )
    Gauge("muster_webhook_connections", "Connections, idle ones included.", registry=registry).set_function(connections)


class CertificateDates(Collector):
    """The expirations of the certificates, and whether the apiserver trusts them, read at each scrape."""

    def __init__(self, source: CertificateSource, registry: CollectorRegistry) -> None:
        self._source = source
        registry.register(self)

    def collect(self) -> Iterator[Metric]:
        """The metrics as they are now."""
        dates = GaugeMetricFamily(
            "muster_webhook_certificate_expiration_timestamp_seconds",
            "When the serving certificate, or its authority, ends (seconds since 1970).",
            labels=["certificate"],
        )
        for certificate, moment in self._source.expirations.items():
            dates.add_metric([certificate], moment)
        yield dates
        yield GaugeMetricFamily(
            "muster_webhook_certificate_trusted",
            "1 if the caBundle of every webhook configuration has the authority of the served certificate, else 0.",
            value=float(self._source.trusted),
        )
