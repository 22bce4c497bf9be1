"""Numbers of the pages that users read, but for docs/operations.md."""

from __future__ import annotations

from tests.support.pages.numbers import Row

__all__ = ["ROWS"]

_REASONS, _QUEUES, _CLI, _GANGS = "docs/reasons.md", "docs/queues.md", "docs/cli.md", "docs/gangs.md"
_PERFORMANCE, _COMPARISON = "docs/performance.md", "docs/comparison.md"
_SECURITY, _CHART, _README = "docs/security.md", "charts/muster/README.md", "README.md"
_HISTORY = "muster.gangs.history"
_PROJECTION = "tests.unit.muster.model.test_projection"
_CHANGELOG, _KEPT = "CHANGELOG.md", "tests.unit.webhook.reviews.test_kept"

_BENCHMARKS = (
    Row(_PERFORMANCE, "with equal shares of «2,000» cpu", ("hack.bench.siblings:_CPU",)),
    Row(_PERFORMANCE, "has 1 to «20» pods of", ("hack.bench.siblings:_MOST_PODS",)),
    Row(_PERFORMANCE, "pods of «4» cpu", ("hack.bench.siblings:_POD",)),
    Row(_PERFORMANCE, "runs for «5» to", ("hack.bench.siblings:_SHORTEST",)),
    Row(_PERFORMANCE, "to «60 minutes».", ("hack.bench.siblings:_LONGEST",), lambda minutes: minutes * 60),
    Row(_PERFORMANCE, "a flood of «105» gangs", ("hack.bench.siblings:_FLOOD",)),
    Row(_PERFORMANCE, "the loop made that takes «5 ms» or", ("muster.process.event_loop:_LONG",)),
    Row(_PERFORMANCE, "the patience of «ten minutes» that", ("muster.queueing.queue_view:_PATIENCE",)),
    Row(_PERFORMANCE, "the patience is «ten minutes» (2026", ("muster.queueing.queue_view:_PATIENCE",)),
    Row(
        _PERFORMANCE,
        "whose calls take «4» to",
        ("hack.bench.drain.model:_TAKES.event",),
        lambda seconds: seconds * 1000,
    ),
    Row(_PERFORMANCE, "calls take 4 to «8 ms» of", ("hack.bench.drain.model:_TAKES.apply",)),
    Row(_COMPARISON, "the same with qps «2,000»,", ("hack.bench.peers.place:_TUNED.qps",)),
    Row(_COMPARISON, "burst «4,000» |", ("hack.bench.peers.place:_TUNED.burst",)),
    Row(_COMPARISON, "«200» gangs of five pods wait", ("flag:hack/bench/peers/__main__.py --gangs",)),
    Row(_COMPARISON, "gangs of «five» pods wait", ("hack.bench.peers.measures:_SMALL",)),
    Row(_COMPARISON, "a queue that holds «twenty» of them", ("hack.bench.peers.measures:_AT_ONCE",)),
    Row(_COMPARISON, "«Eight» RayClusters of three", ("hack.bench.peers.measures:_ASKED",)),
    Row(_COMPARISON, "a node for longer than «ten seconds»;", ("hack.bench.peers.halves:LIMIT",)),
)
_STATES = (
    Row(_REASONS, "becomes an event after «30 seconds», then", ("controller.reports:_SHORTEST_INTERVAL",)),
    Row(
        _REASONS,
        "then after «one minute», two, and so on up to ten",
        ("controller.reports:_SHORTEST_INTERVAL", r"text:controller/reports.py /min\((\d) \* self.interval/"),
        lambda first, times: first * times,
    ),
    Row(
        _REASONS,
        "then after one minute, two, and so on up to «ten»;",
        ("controller.reports:_LONGEST_INTERVAL",),
        lambda longest: longest / 60,
    ),
    Row(_QUEUES, "fails (5xx, a conflict, no answer), after «three» attempts", ("controller.refused:_ATTEMPTS",)),
    Row(_QUEUES, "three attempts of up to «10 seconds».", ("controller.fenced_writes:_LONGEST_WRITE",)),
    Row(_QUEUES, "muster tries again after «30 seconds», then", ("controller.refused:_FIRST",)),
    Row(_QUEUES, "then after twice as long, and so on up to «2 minutes»", ("controller.refused:_LONGEST",)),
    Row("docs/autoscalers.md", "`muster.dev/unplaced-after`, «5 minutes» by", ("muster.queueing.queue_view:UNPLACED",)),
    Row(_REASONS, "it writes for «five» gangs a second of all queues", ("controller.status_updates:_PER_SECOND",)),
    Row(_REASONS, "of «five» turns of a queue", ("controller.status_updates:_TURNS",)),
    Row(_REASONS, "four are for the first «ten» that wait there", ("controller.status_updates:_HEAD",)),
    Row(_REASONS, "`muster.dev/gang`, up to «63» characters)", ("muster.model.names:_LONGEST_LABEL",)),
    Row(_REASONS, "as well, up to «63» characters", ("muster.model.names:_LONGEST_LABEL",)),
    Row(_REASONS, "Reported only after «5 seconds» | look", ("controller.assembling:SILENCE",)),
    Row(
        _REASONS,
        "the «last tenth» of the workload's own time limit",
        (r"text:muster/workloads/model.py /self.seconds \/ (\d+)/",),
        lambda part: 1 / part,
    ),
    Row(
        _REASONS,
        "(`activeDeadlineSeconds`; «a minute» at least)",
        (r"text:muster/workloads/model.py /self.seconds \/ \d+, (\S+)\)/",),
    ),
    Row(_REASONS, "when no pod has a node after «five minutes» (its queue", ("muster.queueing.queue_view:UNPLACED",)),
    Row(_REASONS, "have had nodes for «five minutes» (its queue", ("muster.queueing.queue_view:UNPLACED",)),
    Row(_REASONS, "admitted «five minutes» ago or more", ("muster.queueing.queue_view:UNPLACED",)),
)

_WAITING = (
    Row("docs/backends.md", "without a node for «5 seconds», and then", ("controller.nudges:_SILENCE",)),
    Row(_QUEUES, "they have passed it for «ten minutes»", ("muster.queueing.queue_view:_PATIENCE",)),
    Row(_QUEUES, "where fewer than «20» runs are known", ("muster.gangs.history:_DRAIN_RUNS",)),
    Row(_QUEUES, "the median of the last «20» runs", ("muster.gangs.history:_LAST",)),
    Row(
        _QUEUES,
        "run time that «95» % of the queue's runs",
        ("muster.gangs.history:_DRAIN_SHARE",),
        lambda part: 100 * part,
    ),
    Row(
        _QUEUES,
        "passed once at most. Default `«10»m`",
        ("muster.queueing.queue_view:_PATIENCE",),
        lambda seconds: seconds / 60,
    ),
    Row(_QUEUES, "no pod has a node after «five minutes» (`muster.dev", ("muster.queueing.queue_view:UNPLACED",)),
    Row(_QUEUES, "end later than in «ten minutes»,", ("muster.observe.terminating:_SOON",)),
    Row(_QUEUES, "stay held for «five seconds» after the old ones", ("controller.evictions:_FIRST_WAIT",)),
    Row(
        _QUEUES,
        "gone, «twice» as long each time",
        (r"text:controller/evictions.py /min\((\d) \* known.wait/",),
    ),
    Row(_QUEUES, "evicted again soon (up to «320 seconds», until", ("controller.evictions:_LONGEST_WAIT",)),
    Row(_QUEUES, "until it lost nothing for «ten minutes»)", ("controller.evictions:_CALM",)),
    Row(_QUEUES, "for «a minute» more while an admitted gang waits", ("controller.evictions:_LONGEST_FOR_OTHERS",)),
)

_COMMANDS = (
    Row(_CLI, "more than «an hour» (`--held-for`)", ("muster.cli.doctor.gangs:LONG",)),
    Row(_CLI, "more than «an hour» (`--held-for`)", ("flag:muster/cli/commands.py --held-for",)),
    Row(_CLI, "the «20» that are held longest", ("muster.cli.doctor.gangs:MOST",)),
    Row(_CLI, "and pods older than «a minute» whose PodGroup", ("muster.cli.doctor.gangs:GROUP_DELAY",)),
    Row(_CLI, "Ready, from «1.11» on;", ("muster.cli.doctor.volcano:_OLDEST_VOLCANO",)),
    Row(_CLI, "a scheduler before «0.34», which counts", ("muster.cli.doctor.coscheduling:_GATED_APART",)),
    Row(_CLI, "queues older than «a minute» that have no state", ("muster.cli.doctor.volcano:_QUEUE_AGE",)),
    Row(_CLI, "the last renewal of its lease («30 seconds» are", ("muster.cli.doctor.installation:_SKEW",)),
    Row(_CLI, "Every request has a deadline, of «15 seconds» at most", ("muster.cli.reading:PATIENCE",)),
    Row(_CLI, "gets none for «three seconds» more", ("muster.cli.doctor.probing:_SETTLED",)),
    Row(_CLI, "gets no node within «30 seconds», as without room", ("muster.cli.doctor.probing:LONGEST",)),
    Row(_CLI, "ends within «two minutes» of its start", ("muster.cli.doctor.probing:_OVER",)),
    Row(_CLI, "request «1m» cpu and", (r'text:muster/cli/doctor/probing.py /"requests": \{"cpu": "(\w+)"/',)),
    Row(_CLI, "cpu and «1Mi» memory each", (r'text:muster/cli/doctor/probing.py /"requests": .* "memory": "(\w+)"/',)),
    Row(_CLI, "events of the workload the last «8», with", ("muster.cli.explain:_EVENTS",)),
    Row(_CLI, "that hold the queue, `explain` shows «10»,", ("muster.cli.explained:_HOLDERS",)),
    Row(_CLI, "every «two seconds» at most", ("muster.cli.page.state:_PAUSE",)),
    Row(
        _CLI,
        "A file of more than «64 MiB»",
        ("muster.cli.manifests:_LARGEST_FILE",),
    ),
    Row(
        _CLI,
        "or «2» when the workload does not exist",
        ("muster.cli.explain:_CANNOT_ASK", "muster.cli.queues:_CANNOT_ASK"),
    ),
    Row(
        _CLI,
        "`audit` exit with «1» when something is refused",
        ("muster.cli.plan:_REFUSED", "muster.cli.audit:_REFUSED"),
    ),
    Row(_CLI, "| «3» | with `--strict`: a workload", ("muster.cli.plan:_NOT_MANAGED",)),
    Row(_CLI, "| «2» | the input, or the cluster,", ("muster.cli.plan:_UNREADABLE",)),
    Row(_CLI, "| «1» | something is refused, or the input", ("muster.cli.plan:_REFUSED",)),
    Row(_CLI, "| «2» | something could not be checked;", ("muster.cli.audit:_CANNOT_LOOK",)),
    Row(_CLI, "| «1» | there is a problem,", ("muster.cli.doctor.command:_PROBLEM",)),
    Row(_CLI, "| «2» | no problem was found, but", ("muster.cli.doctor.command:_CANNOT_LOOK",)),
    Row(_CLI, "no answer comes within «a second», the command", ("muster.cli.options:_CONNECT_SECONDS",)),
    Row(_CLI, "`withdraw` wait for «10 seconds».", ("muster.cli.options:_CONNECT_SECONDS_IN_NEED",)),
    Row(_CLI, "nested deeper than «100» levels", ("muster.cli.parsing:_DEEPEST",)),
    Row(_CLI, "or of more than «2,000,000» values, is refused", ("muster.cli.parsing:_MOST_VALUES",)),
)

_COUNTED = (
    Row(
        _GANGS,
        "to 1440h («60 days»)",
        ("muster.gangs.said_run:LONGEST_RUN",),
    ),
    Row(_GANGS, "of the pods is added, and «1 minute».", ("muster.observe.terminating:GONE_IN",)),
    Row(_GANGS, "no quantities, or have more than «128» characters", ("muster.resources.quantity:_MAX_LENGTH",)),
    Row(_GANGS, "or an exponent above «64»,", ("muster.resources.quantity:_MAX_EXPONENT",)),
    Row(_GANGS, "with a hash of «10» characters", ("muster.model.names:_HASH_LENGTH",)),
    Row(_GANGS, "would have more than «253» characters", ("muster.model.names:LONGEST_NAME",)),
    Row(_GANGS, "more than the «63» characters of a label", ("muster.model.names:_LONGEST_LABEL",)),
    Row(_GANGS, "KubeRay's autoscaler («500m», 512Mi)", ("muster.workloads.ray:_AUTOSCALER.requests.cpu",)),
    Row(_GANGS, "KubeRay's autoscaler (500m, «512Mi»)", ("muster.workloads.ray:_AUTOSCALER.requests.memory",)),
    Row(
        _GANGS,
        "that waits for the head («200m», 256Mi;",
        ("muster.workloads.ray:_WAIT_FOR_HEAD.resources.requests.cpu",),
    ),
    Row(
        _GANGS,
        "that waits for the head (200m, «256Mi»;",
        ("muster.workloads.ray:_WAIT_FOR_HEAD.resources.requests.memory",),
    ),
    Row(
        _GANGS,
        "installed after muster is noticed within about «half a minute»",
        ("muster.kube.reflector:Reflector.__init__.absent_retry",),
    ),
    Row(
        "docs/denials.md",
        "The apiserver passes on «4096» characters",
        ("webhook.reviews.admission_review:_LONGEST_WARNINGS",),
    ),
    Row("docs/denials.md", "each is cut at «256».", ("webhook.reviews.admission_review:_LONGEST_WARNING",)),
)

_HELD = (
    Row(_SECURITY, "whose templates hold more than «10,000» things", ("muster.workloads.bounds:MOST",)),
    Row(_SECURITY, "less than «300 kB» of any", (f"{_PROJECTION}:MOST_BYTES",)),
    Row(_SECURITY, "in less than «10 ms»; a page", (f"{_PROJECTION}:MOST_SECONDS",)),
    Row(_SECURITY, "page of a list is «12 MiB» at", ("muster.kube.client:MAX_PAGE_BYTES",)),
    Row(_SECURITY, "more than «64» containers or", ("muster.model.large_objects:MOST_CONTAINERS",)),
    Row(_SECURITY, "containers or «64» resources", ("muster.resources.amounts:MOST_RESOURCES",)),
    Row(_SECURITY, "less than «150 kB» of answers", (f"{_KEPT}:MOST_OF_ANSWERS",)),
    Row(_SECURITY, "more than «64» connections the oldest", ("muster.process.health:_CONNECTIONS",)),
    Row(_SECURITY, "queue drains (12 to «72 hours»)", (f"{_HISTORY}:_DRAIN_LATEST",)),
    Row(_SECURITY, "namespace counts with «20» of", (f"{_HISTORY}:_LAST",)),
    Row(_SECURITY, "counts with 20 of «200» runs", (f"{_HISTORY}:_OF_QUEUE",)),
    Row(_SECURITY, "log line in «10 seconds» names the", ("webhook.server.app:_QUIET_SECONDS",)),
    Row(
        _SECURITY,
        "ends its connection; «a quarter» of the",
        ("webhook.server.listener:_UNPROVEN",),
        lambda most: 1 - most,
    ),
    Row(_SECURITY, "endless bodies | «7 MiB» at most,", ("webhook.server.intake:Limits.largest_body",)),
    Row(
        _SECURITY,
        "| «1.2» at least, 1.3 where",
        (r"text:muster/process/certificates.py /TLSVersion.TLSv1_(\d)/",),
        lambda n: 1 + n / 10,
    ),
    Row(
        _SECURITY, "the old one is trusted for «an hour» longer", ("webhook.certificates.trust:RotationTiming.overlap",)
    ),
    Row(_SECURITY, "the caller alone; «ten minutes» of random", (r"text:Makefile /\(or \$\(SECONDS\),(\d+)/",)),
    Row(
        _SECURITY,
        "than they must, no text above «4096» characters",
        ("webhook.reviews.admission_review:_LONGEST_TEXT",),
    ),
    Row(_SECURITY, "its rules for «ten minutes»: manifests of", (r"text:Makefile /\(or \$\(SECONDS\),(\d+)/",)),
    Row(_SECURITY, "an answer within «a second» of CPU,", ("tests.fuzz.promises:LONGEST",)),
    Row(
        _SECURITY,
        "and fails below «95 %» of the",
        ("flag:tests/fuzz/__main__.py --reach",),
        lambda reach: reach / 100,
    ),
    Row(
        _SECURITY,
        "ask the first «20,000» questions",
        ("tests.fuzz.test_fuzz:_QUESTIONS",),
        lambda questions: 2 * questions,
    ),
    Row(_SECURITY, "`make test` «a quarter» of them", ("tests.support.examples:_PART",), lambda part: 1 / part),
)

_VALUES = (
    Row(
        _CHART,
        "muster decides within «four fifths» of it",
        ("webhook.__main__:_DECISION_SHARE", "webhook.server.intake:Limits.share"),
    ),
    Row(_CHART, "| `«5»` | Seconds that the apiserver waits", ("flag:webhook/__main__.py --timeout",)),
    Row(_CHART, "| `webhook.shutdownDelaySeconds` | `«5»` | Seconds", ("flag:webhook/__main__.py --shutdown-delay",)),
    Row(_CHART, "within `timeoutSeconds` and «3» more, and", ("webhook.__main__:_DRAIN_SECONDS",)),
    Row(
        _CHART,
        "| `«9443»` | Reviews, by TLS.",
        ("flag:webhook/__main__.py --port", "values:webhook.ports.reviews"),
    ),
    Row(
        _CHART,
        "| «A minute» to start, however busy",
        ("values:webhook.probes.startup.periodSeconds", "values:webhook.probes.startup.failureThreshold"),
        lambda period, times: period * times,
    ),
    Row(
        _CHART,
        "restarts a process that hangs for «a minute»",
        ("values:webhook.probes.liveness.periodSeconds", "values:webhook.probes.liveness.failureThreshold"),
        lambda period, times: period * times,
    ),
    Row(
        _CHART,
        "| «Five minutes» to read the cluster once",
        ("values:page.probes.startup.periodSeconds", "values:page.probes.startup.failureThreshold"),
        lambda period, times: period * times,
    ),
    Row(_CHART, "3}` | After «three» failures the", ("values:webhook.probes.readiness.failureThreshold",)),
    Row(
        _CHART,
        "| `controller.lease.durationSeconds` | `«15»` | How",
        ("flag:controller/__main__.py --lease-duration", "muster.kube.lease:LeaseTiming.lease"),
    ),
    Row(
        _CHART,
        "| `«10»` | When a leader that cannot renew",
        ("flag:controller/__main__.py --renew-deadline", "muster.kube.lease:LeaseTiming.renew"),
    ),
    Row(
        _CHART,
        "| `controller.lease.retryPeriodSeconds` | `«2»` | How",
        ("flag:controller/__main__.py --retry-period", "muster.kube.lease:LeaseTiming.retry"),
    ),
    Row(
        _CHART,
        "Kubernetes «1.30» or later",
        ("muster.cli.doctor.volcano:_OLDEST_KUBERNETES", r"text:charts/muster/Chart.yaml />=(\d\.\d+)\.0-0/"),
    ),
    Row(_README, "You need Kubernetes «1.30» or newer", ("muster.cli.doctor.volcano:_OLDEST_KUBERNETES",)),
    Row("docs/image.md", "less than «92 MB» unpacked", ("tests.image.test_contents:_UNPACKED",)),
    Row("docs/image.md", "less than «30 MB» packed", ("tests.image.test_contents:_PACKED",)),
    Row("docs/image.md", "only the last, of less than «2 MB»", ("tests.image.test_registries:_LAST_LAYER",)),
    Row("docs/releasing.md", "less than «1 MB».", ("tests.image.test_kept_releases:_KEPT",)),
    Row(
        "docs/image.md",
        "It runs as user «65532»",
        ("values:podSecurityContext.runAsUser", r"text:hack/image/Dockerfile /USER (\d+)/"),
    ),
)

_REQUEUES = (Row(_REASONS, "A gang has «5 seconds» at least;", ("muster.model.requeueing:LEAST_REQUEUE",)),)

_KUEUE = (
    Row(
        "docs/kueue.md",
        "(`waitForPodsReady.timeout`, «30 minutes» as shipped)",
        ("muster.gangs.intent:Defaults.kueues_timeout",),
    ),
)

_CHANGES = (
    Row(_CHANGELOG, "less than «300 kB» of any", ("tests.unit.muster.model.test_projection:MOST_BYTES",)),
    Row(_CHANGELOG, "read in less than «10 ms»", ("tests.unit.muster.model.test_projection:MOST_SECONDS",)),
    Row(_CHANGELOG, "of a workload of «1.5 MB» most", (f"{_KEPT}:MANIFEST_BYTES",)),
    Row(_CHANGELOG, "`,not-ready`. It is «5 s» at least", ("muster.model.requeueing:LEAST_REQUEUE",)),
    Row(_CHANGELOG, "most often «3 kB»", (r"text:docs/operations.md /in each webhook \| (\d+ kB) with few/",)),
    Row(_CHANGELOG, "takes «5 ms», and after", (r"text:docs/operations.md /comes or changes \| (\d+ ms) \|/",)),
    Row(_CHANGELOG, "a gang of «50» pods or more", ("controller.pace:_SMALL",)),
    Row(_CHANGELOG, "(«0.2 ms» for each pod,", ("controller.pace:_EACH",)),
    Row(_CHANGELOG, "each pod, «half a second» at", ("controller.pace:_LONGEST",)),
    Row(
        _CHANGELOG,
        "stands still for more than «a second», again",
        (r'text:charts/muster/files/alerts.yaml /event_loop_turn_seconds_bucket\{le="(\S+)"/',),
    ),
)

ROWS = (*_CHANGES, *_BENCHMARKS, *_REQUEUES, *_KUEUE, *_STATES, *_WAITING, *_COMMANDS, *_COUNTED, *_HELD, *_VALUES)
