"""Numbers of docs/operations.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support.pages.numbers import Row

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["ROWS"]


def _row(quote: str, *places: str, rule: Callable[..., float] | None = None, about: float = 0.0) -> Row:
    return Row("docs/operations.md", quote, places, rule, about)


_LEASE = (
    "values:controller.lease.durationSeconds",
    "values:controller.lease.retryPeriodSeconds",
    r"text:muster/kube/lease.py /1 \+ (0\.\d+) \* random/",
)


def _taken_over(lease: float, retry: float, jitter: float) -> float:
    # Renewed just before the crash, seen one period later, and found over one period late.
    return lease + 2 * retry * (1 + jitter)


def _probe(name: str, *fields: str) -> tuple[str, ...]:
    return tuple(f"values:webhook.probes.{name}.{field}" for field in fields)


def _fails(period: float, times: float) -> float:
    return period * times


_PODS = (
    _row("`muster-webhook`, «2» replicas, both serve", "values:webhook.replicas"),
    _row("`muster-controller`, «2» replicas, one leads", "values:controller.replicas"),
    _row("within about «20 seconds» after a crash", *_LEASE, rule=_taken_over, about=0.02),
    _row(
        "Both answer on port «8080»",
        "flag:muster/process/lifecycle.py --health-port",
        "values:webhook.ports.health",
        "values:controller.ports.health",
    ),
    _row("within the last «10 seconds». A separate", "muster.process.health:_DEAD"),
    _row("within the last «5 seconds», else 503;", "muster.process.health:_STUCK"),
    _row("a process has «a minute» to start", *_probe("startup", "periodSeconds", "failureThreshold"), rule=_fails),
    _row(
        "has failed for «a minute» (80 seconds",
        *_probe("liveness", "periodSeconds", "failureThreshold"),
        rule=_fails,
    ),
    _row(
        "for a minute («80 seconds» at most",
        *_probe("liveness", "periodSeconds", "failureThreshold"),
        "muster.process.health:_DEAD",
        # A question comes just before the loop has been silent for too long.
        rule=lambda period, times, silent: silent + period * (times + 1),
    ),
    _row("After «three» failures of `/readyz`", "values:webhook.probes.readiness.failureThreshold"),
    _row(
        "failures of `/readyz` («12 seconds» at most) it gets",
        *_probe("readiness", "periodSeconds", "failureThreshold", "timeoutSeconds"),
        "muster.process.health:_STUCK",
        rule=lambda period, times, timeout, silent: period * times + timeout + silent,
    ),
    _row(
        "`webhook.timeoutSeconds` and «10 seconds»",
        r"text:charts/muster/templates/deployment-webhook.yaml /timeoutSeconds (\d+)/",
    ),
    _row(
        "(controller: «20»)",
        r"text:charts/muster/templates/deployment-controller.yaml /terminationGracePeriodSeconds: (\d+)/",
    ),
    _row(
        "for a process that hangs it is «5».",
        "values:webhook.probes.liveness.terminationGracePeriodSeconds",
        "values:controller.probes.liveness.terminationGracePeriodSeconds",
    ),
    _row("of the limit, «1Gi» by default", "values:controller.resources.limits.memory"),
    _row("default limit is «512Mi». A replica", "values:webhook.resources.limits.memory"),
    _row("by default about «20 seconds» later. A", *_LEASE, rule=_taken_over, about=0.02),
    _row("Kubernetes**: «1.30» is the first", "muster.cli.doctor.volcano:_OLDEST_KUBERNETES"),
    _row("Volcano respects gates since «1.11»;", "muster.cli.doctor.volcano:_OLDEST_VOLCANO"),
    _row("missing CRDs every «half minute», so you", "muster.kube.reflector:Reflector.__init__.absent_retry"),
)

_BREAKS = (
    _row(
        "After some «7 seconds» it gets no new connections",
        *_probe("readiness", "periodSeconds", "failureThreshold", "timeoutSeconds"),
        rule=lambda period, times, timeout: period * times + timeout,
    ),
    _row(
        "connections, after about «a minute» the kubelet",
        *_probe("liveness", "periodSeconds", "failureThreshold"),
        rule=_fails,
    ),
    _row("starts for about «20 seconds»; then the", *_LEASE, rule=_taken_over, about=0.02),
    _row(
        "write; after about «a minute» the kubelet",
        "values:controller.probes.liveness.periodSeconds",
        "values:controller.probes.liveness.failureThreshold",
        rule=_fails,
    ),
    _row("muster sees it within about «half a minute»", "muster.kube.reflector:Reflector.__init__.absent_retry"),
    _row("`Admitted`, after «five minutes» `Unschedulable`", "muster.queueing.queue_view:UNPLACED"),
)

_LIMITS = (
    _row("apiserver obeys `Retry-After: «1»`: it retries", r'text:webhook/server/app.py /"Retry-After"\] = "(\d+)"/'),
    _row(
        "| «four fifths» of `webhook.timeoutSeconds`",
        "webhook.__main__:_DECISION_SHARE",
        "webhook.server.intake:Limits.share",
    ),
    _row(
        "| «four fifths» of `webhook.timeoutSeconds`",
        "webhook.server.intake:Limits.decision_seconds",
        "values:webhook.timeoutSeconds",
        rule=lambda decision, timeout: decision / timeout,
    ),
    _row(
        "| «four fifths» of `webhook.timeoutSeconds`",
        "webhook.server.intake:Limits.decision_seconds",
        "flag:webhook/__main__.py --timeout",
        rule=lambda decision, timeout: decision / timeout,
    ),
    _row("| body | «7 MiB»:", "webhook.server.intake:Limits.largest_body"),
    _row("queues, PodGroups) | «128»,", "webhook.server.intake:Limits.reviews"),
    _row("of which «3» with", "webhook.server.intake:Limits.large_reviews"),
    _row("with «256 KiB» or more", "webhook.server.intake:Limits.large_body", "webhook.reviews.reads:_LARGE"),
    _row("an object of «256 KiB» or more that", "webhook.reviews.reads:_LARGE"),
    _row("count more than «10,000»: each", "muster.workloads.bounds:MOST"),
    _row("each template «30», and so", "muster.workloads.bounds:TEMPLATE"),
    _row("label and annotation «3» or more", "muster.workloads.bounds:_TEXT"),
    _row("more than «64» containers, or", "muster.model.large_objects:MOST_CONTAINERS"),
    _row("together name more than «64» resources", "muster.resources.amounts:MOST_RESOURCES"),
    _row("| connections | «256», at", "webhook.server.listener:Listener.__init__.connections"),
    _row(
        "head of a request once it has begun | «5 seconds» each",
        "webhook.server.listener:Patience.handshake",
        "webhook.server.listener:Patience.head",
    ),
    _row("| idle connections, asked on before or not | «120 seconds»", "webhook.server.listener:Patience.idle"),
    _row("| any connection | 4 to «5 minutes»", "webhook.server.listener:Patience.whole"),
    _row(
        "| any connection | «4» to 5 minutes",
        "webhook.server.listener:Patience.whole",
        "webhook.server.listener:_EARLIEST",
        rule=lambda whole, earliest: whole * earliest / 60,
    ),
    _row("«3 seconds» more, for so long", "webhook.__main__:_DRAIN_SECONDS"),
    _row(
        "duration_seconds` above «half a second»",
        r"text:charts/muster/files/alerts.yaml /duration_seconds_bucket.*> (\S+)/",
    ),
    _row(
        "in less than «20 days» (see [Certificates](#certificates)).",
        r"text:charts/muster/files/alerts.yaml /time\(\) < (\d+) \* 86400/",
        rule=lambda days: days * 86400,
    ),
    _row(
        "for less than «20 days», or where",
        r"text:charts/muster/files/alerts.yaml /time\(\) < (\d+) \* 86400/",
        rule=lambda days: days * 86400,
    ),
    _row(
        "More than one for «5 minutes»:",
        r"text:charts/muster/files/alerts.yaml /leader_election.*\n  for: (\d+)m/",
        rule=lambda minutes: minutes * 60,
    ),
    _row("Out: ports «443» and 6443", "values:networkPolicy.apiserverPorts.0"),
    _row("Out: ports 443 and «6443»", "values:networkPolicy.apiserverPorts.1"),
    _row(
        "`networkPolicy.apiserverPorts`) and «53».",
        r"text:charts/muster/templates/networkpolicies.yaml /port: (53\d*)/",
    ),
)

_STORED = (
    _row(
        "are written for «five» gangs a second of all queues together",
        "controller.status_updates:_PER_SECOND",
        "controller.__main__:_TICK",
        rule=lambda most, tick: most / tick,
    ),
    _row("the first «ten» of each queue have most", "controller.status_updates:_HEAD"),
    _row(
        "| «90 days» | when 30 are left |",
        "muster.process.certificates:Lives.certificate",
        "flag:webhook/certificates/options.py --certificate-days",
        rule=lambda life, flag: life if life == flag * 86400 else -1,
    ),
    _row(
        "| 90 days | when «30» are left |",
        "muster.process.certificates:Lives.certificate",
        r"text:muster/process/certificates.py /\(end - start\) \/ (\d+)/",
        rule=lambda life, part: life / part / 86400,
    ),
    _row(
        "| «365 days» | when 122 are left |",
        "muster.process.certificates:Lives.authority",
        "flag:webhook/certificates/options.py --authority-days",
        rule=lambda life, flag: life if life == flag * 86400 else -1,
    ),
    _row(
        "| 365 days | when «122» are left |",
        "muster.process.certificates:Lives.authority",
        r"text:muster/process/certificates.py /\(end - start\) \/ (\d+)/",
        rule=lambda life, part: life / part / 86400,
        about=0.01,
    ),
    _row(
        "old one. After «30 seconds» (`--trust-delay`) the",
        "webhook.certificates.trust:RotationTiming.trust_delay",
        "flag:webhook/certificates/options.py --trust-delay",
    ),
    _row(
        "needed it for «an hour» (`--authority-overlap`). After",
        "webhook.certificates.trust:RotationTiming.overlap",
        "flag:webhook/certificates/options.py --authority-overlap",
    ),
    _row("the old one «an hour» and a", "webhook.certificates.trust:RotationTiming.overlap"),
    _row(
        "an hour and «a minute» later. When",
        "webhook.certificates.trust:RotationTiming.trust_delay",
        # The delay, and what two looks and the write of every configuration take.
        rule=lambda delay: 2 * delay,
    ),
    _row("it serves new files within «two seconds»", "webhook.certificates.mounted:_READ_SECONDS"),
    _row("stay beside its own authority for «an hour»", "webhook.certificates.trust:RotationTiming.overlap"),
    _row("each at most once «an hour»", "webhook.certificates.notices:_HOUR"),
    _row(
        "| `CertificateExpiring` | «a quarter» of its",
        r"text:webhook/certificates/serving.py /total_seconds\(\) \/ (\d+)/",
        rule=lambda n: 1 / n,
    ),
    _row(
        "(at most «30 days»), and nobody has renewed it",
        r"text:webhook/certificates/serving.py /(\d+) \* 86400/",
        rule=lambda days: days * 86400,
    ),
)

_KNOWING = (
    _row(
        "reads it once, «2» of the",
        "webhook.__main__:_READ_SHARE",
        "values:webhook.timeoutSeconds",
        rule=lambda share, timeout: share * timeout,
    ),
    _row(
        "reads it once, «2» of the",
        "webhook.reviews.knowledge:Knowledge.__init__.read_seconds",
    ),
    _row(
        "2 of the apiserver's «5 seconds» at most",
        "values:webhook.timeoutSeconds",
        "flag:webhook/__main__.py --timeout",
    ),
    _row(
        "no decision within «4 seconds»",
        "webhook.__main__:_DECISION_SHARE",
        "values:webhook.timeoutSeconds",
        rule=lambda share, timeout: share * timeout,
    ),
    _row("through its Service «three» times in", "webhook.certificates.activation:_TIMES"),
    _row(
        "three times in «a second», with the",
        "webhook.certificates.activation:_TIMES",
        "webhook.certificates.activation:_PAUSE_SECONDS",
        rule=lambda times, pause: times * pause,
        about=0.15,
    ),
    _row("no more of them are opened for «5 seconds» it admits", "controller.memory:_OPENING"),
    _row("lacked pods for «5 seconds» (annotation `muster.dev/nudge`,", "controller.nudges:_SILENCE"),
    _row("whenever «a sixteenth» of the time", "controller.nudges:_SHARE"),
    _row("every «2 seconds» at most", "controller.nudges:_SHORTEST"),
    _row("and every «5 minutes» at least", "controller.nudges:_LONGEST"),
    _row(
        "are there within «5 seconds». For JobSets",
        "controller.nudges:_SHARE",
        # The touch comes within that; the operator has the rest of the time for the pods.
        rule=lambda share: 60 * share,
        about=0.25,
    ),
    _row("«100» at most of one workload at a time", "controller.nudges:_MOST_JOBS"),
    _row("It nudges «20» workloads a second in all", "controller.nudges:_PER_SECOND"),
    _row(
        "(`webhook.timeoutSeconds` and «a second» more)",
        r"text:charts/muster/templates/uninstall.yaml /--settle=\{\{ add .Values.webhook.timeoutSeconds (\d+)/",
    ),
    _row(
        "(`webhook.timeoutSeconds` and «a second» more)",
        "flag:muster/cli/commands.py --settle",
        "values:webhook.timeoutSeconds",
        rule=lambda settle, timeout: settle - timeout,
    ),
    _row(
        "most `webhook.timeoutSeconds` and «150 seconds». Where steps",
        r"text:charts/muster/templates/uninstall.yaml /activeDeadlineSeconds: \{\{ add \S+ (\d+)/",
    ),
)

_ASKS = (
    _row("keeps «64» connections at most", "muster.kube.transport:_CONNECTIONS"),
    *(
        _row("«10 seconds» for one object", f"muster.kube.client:{what}")
        for what in ("_WRITE_SECONDS", "Client.get.deadline", "Client.get_path.deadline", "Client.delete.deadline")
    ),
    _row("«10 seconds» for one object", "controller.fenced_writes:_LONGEST_WRITE"),
    _row("for one object, «60» for a page", "muster.kube.client:Client.list_page.deadline"),
    _row("for one object, «60» for a page", "muster.kube.listing:list_all.deadline"),
    _row("for one object, «60» for a page", "muster.kube.listing:list_into.deadline"),
    _row("in pages of «500», and", "muster.kube.reflector:Reflector.__init__.page"),
    _row("in pages of «500», and", "muster.kube.listing:list_all.page", "muster.kube.listing:list_into.page"),
    _row("in pages of «500», and", "muster.kube.client:Client.list_page.limit"),
    _row("is gentle: pages of «25»", "muster.kube.listing:_GENTLE"),
    _row("the page took, «0.1 seconds» at most", "muster.kube.listing:_LONGEST_REST"),
    _row("after «5» to 10 minutes", "muster.kube.reflector:Reflector.__init__.watch_seconds.0", rule=lambda s: s / 60),
    _row("after 5 to «10 minutes»", "muster.kube.reflector:Reflector.__init__.watch_seconds.1"),
    _row(
        "nothing came for «90 seconds»",
        "muster.kube.reflector:Reflector.__init__.silence",
        "muster.kube.client:Client.watch.silence",
    ),
    _row("failed | after «0.8 seconds»", r"text:muster/kube/reflector.py /Backoff\((\S+), /"),
    _row("time, up to «30 seconds», with a", r"text:muster/kube/reflector.py /Backoff\(\S+, (\S+)\)/"),
    _row("failed | after 0.8 seconds, «twice» as long each time, up", "muster.kube.backoff:Backoff.__init__.factor"),
    _row("up to one «half» | |", "muster.kube.backoff:Backoff.__init__.jitter"),
    _row("not installed | every «half minute»", "muster.kube.reflector:Reflector.__init__.absent_retry"),
    _row("renews it every «2 seconds»", "values:controller.lease.retryPeriodSeconds"),
    _row("failed | after «5 ms», twice as", "muster.kube.workqueue:QueueCore.__init__.base"),
    _row("failed | after «5 ms», twice as", "muster.kube.workqueue:WorkQueue.__init__.base"),
    _row("time, up to «30 seconds»; 100 failed", "controller.__main__:_LONGEST_RETRY"),
    _row("to 30 seconds; «100» failed gangs", "muster.kube.workqueue:_RETRIES_PER_SECOND"),
    _row("to 30 seconds; «100» failed gangs", "muster.kube.workqueue:_RETRIES_AT_ONCE"),
    _row("at once | «16»; of one", "controller.__main__:_WORKERS"),
    _row("of one gang «32» gates at once", "muster.kube.burst:CONCURRENT"),
    _row("controller | «50» a second,", "controller.events:_PER_SECOND"),
    _row("50 a second, «200» at once;", "controller.events:_AT_ONCE"),
    _row("a page is «12 MiB» at most", "muster.kube.client:MAX_PAGE_BYTES"),
    _row("all the time | «100» in a row", "controller.pace:_IN_A_ROW"),
    _row("then one every «0.2 seconds» |", "controller.pace:_BETWEEN"),
    _row("200 at once; «2,000» can wait,", "controller.events:_PENDING"),
    _row("For one gang «10» in a", "controller.events:GANG_AT_ONCE"),
    _row("in a row, and then «one» a minute", "controller.events:GANG_PER_SECOND", rule=lambda rate: rate * 60),
    _row("each once «an hour» at most", "webhook.certificates.notices:_HOUR"),
)

_BOUNDS = (
    _row("its token every «minute», keeps 64", "muster.kube.config:_REFRESH_SECONDS"),
    _row("| starts within «30 seconds», takes lines", "muster.kube.client:Client.watch.open_deadline"),
    _row("takes lines of «10 MiB»,", "muster.kube.client:MAX_LINE_BYTES"),
    _row(
        "configurations every «10 seconds», at once",
        "webhook.certificates.trust:_CHECK_SECONDS",
        "webhook.certificates.mounted:_CHECK_SECONDS",
    ),
    _row("never sooner than «0.2 seconds» after", "webhook.certificates.trust:_BREATH_SECONDS"),
    _row("are valid from «an hour» before they", "muster.process.certificates:_SKEW"),
    _row("for at least «3» times as", "webhook.certificates.options:_SHARE"),
    _row(
        "for at least «a day». No call", "webhook.certificates.options:_SHORTEST_DAYS", rule=lambda days: days * 86400
    ),
    _row("the Secret holds «4» authorities", "webhook.certificates.rotation:_MOST_AUTHORITIES"),
    _row("and a caBundle «8» at most", "webhook.certificates.trust:_MOST_IN_BUNDLE"),
    _row("matched them for «a minute». Where your", "webhook.certificates.mounted:_PATIENCE_SECONDS"),
    _row("sent nothing for «0.1 seconds» are closed", "webhook.server.listener:_SILENT_SECONDS"),
    _row("at most «0.75» of them", "webhook.server.listener:_UNPROVEN"),
    _row("answered review for «a second», then the", "webhook.server.listener:_UNPROVEN_SECONDS"),
    _row("the longest idle, «0.1 seconds» at least;", "webhook.server.listener:_IDLE_SECONDS"),
    _row("more request for «a second». A second", "webhook.server.listener:_TELLING_SECONDS"),
    _row("has its PodGroup, «1» when", "muster.cli.release:_NOT_ALL", "muster.cli.withdraw:_NOT_ALL"),
    _row("something is not, «2» when it", "muster.cli.release:_CANNOT_ASK", "muster.cli.withdraw:_CANNOT"),
)

_IDLE = (
    _row(
        "both configurations «6» times a minute",
        "webhook.certificates.trust:_CHECK_SECONDS",
        rule=lambda pause: 60 / pause,
    ),
    _row("«18» a minute of a webhook", "webhook.certificates.trust:_CHECK_SECONDS", rule=lambda pause: 3 * 60 / pause),
    _row("a webhook and «30» of the", "values:controller.lease.retryPeriodSeconds", rule=lambda pause: 60 / pause),
    _row("watch 2 every «90 seconds», which reopen", "muster.kube.reflector:Reflector.__init__.silence"),
)

_HISTORY = "muster.gangs.history"
_RUN_TIMES = (
    _row(
        "annotation `muster.dev/drain-after` of its PodGroup, written with the two above: «five» times",
        f"{_HISTORY}:_DRAIN_TIMES",
    ),
    _row("last runs, between «12» and", f"{_HISTORY}:_DRAIN_SOONEST", rule=lambda seconds: seconds / 3600),
    _row("between 12 and «72 hours»; none", f"{_HISTORY}:_DRAIN_LATEST"),
    _row("none of fewer than «20» runs", f"{_HISTORY}:_DRAIN_RUNS"),
    _row("comes from the last «20» runs", f"{_HISTORY}:_LAST"),
    _row("With fewer than «three» of them", f"{_HISTORY}:_LEAST"),
    _row("a namespace has «20» of", f"{_HISTORY}:_LAST"),
    _row("20 of «200» at most", f"{_HISTORY}:_OF_QUEUE"),
    _row("or failed after «a minute» at least", f"{_HISTORY}:SHORTEST"),
    _row("writes once «a minute» what has", "controller.history:_EVERY"),
    _row("«4,000» lineages of 20", f"{_HISTORY}:_LINEAGES"),
    _row("4,000 lineages of «20» numbers", f"{_HISTORY}:_LAST"),
)

ROWS = (*_RUN_TIMES, *_PODS, *_ASKS, *_IDLE, *_BOUNDS, *_BREAKS, *_LIMITS, *_STORED, *_KNOWING)
