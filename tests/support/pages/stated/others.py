"""Numbers that documents state and no default of muster's is behind: each with who has it, or what holds it."""

from __future__ import annotations

from tests.support.pages.numbers import Elsewhere

__all__ = ["ELSEWHERE"]

_OPERATIONS, _CHART, _IMAGE = "docs/operations.md", "charts/muster/README.md", "docs/image.md"
_TABLE = "written from values.yaml by tests/chart/test_readme.py::test_the_table_is_what_values_yaml_says"
_OPERATORS = "the operator's, or Kubernetes' own delay"
_DEMO = "printed by `make demo` as it ends; a test holds the ten minutes, which are a row"
_BUILD = "how long a build takes on such a machine"
_TUTORIAL = "how long a reader takes; its commands take two minutes"


def _by(bench: str) -> str:
    return f"measured by hack.bench.{bench}"


def _sized(test: str, bench: str = "") -> str:
    held = f"held by tests/docs/test_sizing.py::{test}"
    return f"{_by(bench)}, and {held}" if bench else held


_PLAN, _GIVEN = "test_what_to_plan_for_covers_what_was_measured", "test_the_chart_gives_what_is_planned_for"
_STEPS = "held by tests/docs/test_performance.py::test_the_longest_steps_are_below_what_the_changelog_says"
_LARGE = "test_what_is_kept_of_a_large_workload_is_what_the_table_says"
_STORED = "test_what_is_stored_takes_what_the_table_says"

ELSEWHERE = (
    Elsewhere("CHANGELOG.md", "event loop took «30 ms», with 50,000 none took «40 ms»", _STEPS),
    Elsewhere("CHANGELOG.md", "New are a tutorial of «ten minutes»", _TUTORIAL),
    Elsewhere(
        "docs/architecture.md",
        "from «3.6 ms» to «732 ms» while",
        "measured with a prototype, before the first program was written",
    ),
    Elsewhere("docs/performance.md", "The goal is «50 ms» with", "the goal of hack.bench.steps"),
    Elsewhere("docs/performance.md", "a Queue that came took «141 ms»,", _by("steps")),
    Elsewhere("docs/performance.md", "a PriorityClass «113 ms»,", _by("steps")),
    Elsewhere("docs/performance.md", "first limit «143 ms»,", _by("steps")),
    Elsewhere("docs/performance.md", "list of pods «111 ms»,", _by("steps")),
    Elsewhere("docs/performance.md", "could start «201 ms»,", _by("steps")),
    Elsewhere("docs/performance.md", "count of nodes «1,590 ms».", _by("steps")),
    Elsewhere("docs/performance.md", "50,000 gangs took «1,416 ms».", _by("steps")),
    Elsewhere("docs/performance.md", "full («62 ms», when", _by("steps")),
    Elsewhere("docs/performance.md", "priority («66 ms»)", _by("steps")),
    Elsewhere("docs/performance.md", "that takes 35 to «45 ms» after", _by("waiting")),
    Elsewhere("docs/performance.md", "20,000 pods takes «42 ms» (`python", _by("reconcile")),
    Elsewhere("docs/performance.md", "had «42» gangs a second", _by("drain")),
    Elsewhere("docs/performance.md", "beside «56» of the raw", _by("drain")),
    Elsewhere("docs/performance.md", "with 500 waiting, which is «75 %», «43» beside", _by("drain")),
    Elsewhere("docs/performance.md", "43 beside «49» with 2,000, which is «88 %», and", _by("drain")),
    Elsewhere("docs/performance.md", "and «41» beside «50» with", _by("drain")),
    Elsewhere("docs/performance.md", "8,000, which is «83 %». A turn", _by("drain")),
    Elsewhere("docs/performance.md", "had 75, 82, 83 and «96 %». So", _by("drain")),
    Elsewhere("docs/performance.md", "of the «47 ms» of CPU", _by("drain")),
    Elsewhere("docs/performance.md", "took «27 ms», the", _by("drain")),
    Elsewhere("docs/performance.md", "the controller «8 ms» and all", _by("drain")),
    Elsewhere("docs/performance.md", "all else «12 ms». The", _by("drain")),
    Elsewhere("docs/performance.md", "gangs took «38 ms», of which", _by("drain")),
    Elsewhere("docs/performance.md", "apiserver had «26 ms». [comparison", _by("drain")),
    Elsewhere("docs/performance.md", "raw client, and «61 %»: that", "a table of docs/comparison.md"),
    Elsewhere("docs/performance.md", "A day before it was 75, 64 and «67 %». Since", _by("drain")),
    Elsewhere("docs/performance.md", "«A day» before it was 75", "when that was"),
    Elsewhere("docs/performance.md", "A turn with 500 takes «two seconds»: four", _by("drain")),
    Elsewhere("docs/performance.md", "and «3.7 s» from room", _by("drain")),
    Elsewhere("docs/performance.md", "percentile was «0.8 s».", _by("drain")),
    Elsewhere("docs/performance.md", "each took «830 ms» of CPU", _by("fleet")),
    Elsewhere("docs/performance.md", "the apiserver had «295 ms»,", _by("fleet")),
    Elsewhere("docs/performance.md", "scheduler «242 ms», muster's", _by("fleet")),
    Elsewhere("docs/performance.md", "controller «85 ms» and its", _by("fleet")),
    Elsewhere("docs/performance.md", "its webhook «9 ms».", _by("fleet")),
    Elsewhere("docs/performance.md", "percentile is «3 s», where", _by("fleet")),
    Elsewhere("docs/performance.md", "its last it is «0.16 s».", _by("fleet")),
    Elsewhere("docs/performance.md", "and «23 GB» for all of it", _by("fleet")),
    Elsewhere("docs/performance.md", "controller had «453 MB» with", _by("fleet")),
    Elsewhere("docs/performance.md", "were made in «841 s», at", _by("fleet")),
    Elsewhere("docs/performance.md", "and took «19 GB» of", _by("fleet")),
    Elsewhere("docs/performance.md", "apiserver had «8 GB»,", _by("fleet")),
    Elsewhere("docs/performance.md", "scheduler up to «5 GB», muster's", _by("fleet")),
    Elsewhere("docs/performance.md", "controller «0.8 GB». Since", _by("fleet")),
    Elsewhere("docs/performance.md", "controller had «3 MB» more", _by("churn")),
    Elsewhere("docs/performance.md", "grown by «5.6 MB», more", _by("churn")),
    Elsewhere("docs/performance.md", "of old ones: «89 ms» when", _by("steps")),
    Elsewhere("docs/performance.md", "gangs, «220 ms» with 50,000", _by("steps")),
    Elsewhere("docs/performance.md", "with «500» Queues below one parent", _by("steps")),
    Elsewhere("docs/performance.md", "the pass after a change took «28» to", _by("steps")),
    Elsewhere("docs/performance.md", "to «31 ms» and takes", _by("steps")),
    Elsewhere("docs/performance.md", "takes «5» to", _by("steps")),
    Elsewhere("docs/performance.md", "to «8 ms», and the change itself", _by("steps")),
    Elsewhere("docs/performance.md", "the change itself took «2.2 ms»", _by("steps")),
    Elsewhere("docs/performance.md", "and takes «0.1 ms».", _by("steps")),
    Elsewhere("docs/performance.md", "use «99.9 %» and", _by("siblings")),
    Elsewhere("docs/performance.md", "and «99.8 %» of the room", _by("siblings")),
    Elsewhere("docs/performance.md", "smaller gangs in «37 %» of", _by("siblings")),
    Elsewhere("docs/performance.md", "in a lull for up to «217 minutes».", _by("siblings")),
    Elsewhere("docs/performance.md", "missed by a fifth of a point**: «99.3 %» beside «99.5 %».", "the block above it"),
    Elsewhere("docs/performance.md", "large one waits for «20 days».", "printed by muster replay"),
    Elsewhere("docs/performance.md", "By estimates «52 %» of 225", "printed by muster replay"),
    Elsewhere("docs/performance.md", "(median error «66 minutes», of", "printed by muster replay"),
    Elsewhere("docs/performance.md", "the median start is «23 minutes» earlier", "printed by muster replay"),
    Elsewhere("docs/performance.md", "by time limits «51 %», and", "printed by muster replay"),
    Elsewhere("docs/performance.md", "51 %, and «4 %» start later", "printed by muster replay"),
    Elsewhere("docs/performance.md", "drains as before. «39 %» of 178", "printed by muster replay"),
    Elsewhere("docs/performance.md", "The goal is «four fifths» of", "a goal"),
    Elsewhere("docs/performance.md", "90, 91, 90, 84 and «73 %»: of", _by("drain.model")),
    Elsewhere("docs/comparison.md", "is looked at «2 ms» after", "times written by a copy of the controller"),
    Elsewhere("docs/comparison.md", "has begun, 4 to «5 ms». The rest", "times written by a copy of the controller"),
    Elsewhere("docs/comparison.md", "its release (qps «300», burst «500»)", "Kueue's own configuration"),
    Elsewhere("docs/backends.md", "looks at everything again, after «five minutes»", "kube-scheduler's own flush"),
    Elsewhere("docs/kueue.md", "has all its pods for some «100 ms», and", _OPERATORS),
    Elsewhere("docs/kueue.md", "outlive their quota by «two seconds»", _OPERATORS),
    Elsewhere("README.md", "takes about «a quarter of an hour» on two cores", _BUILD),
    Elsewhere("README.md", "`make demo` takes about «a minute»", _DEMO),
    Elsewhere("README.md", "A tour of «60 seconds»", "a heading"),
    Elsewhere("README.md", "| «ten minutes» on `make demo KEEP=1`", _TUTORIAL),
    Elsewhere("docs/tutorial.md", "# «Ten minutes» with muster", _TUTORIAL),
    Elsewhere("docs/tutorial.md", "takes about «a quarter of an hour»;", _BUILD),
    Elsewhere("docs/tutorial.md", "later it takes about «a minute»,", _DEMO),
    Elsewhere(
        "docs/tutorial.md", "holds 4 cpu and «6Gi»; the gang that runs in it uses 3 cpu and «4Gi» of", "the sample"
    ),
    Elsewhere("docs/index.md", "takes «ten minutes» on your own machine", _TUTORIAL),
    Elsewhere("docs/index.md", "[«Ten minutes» with muster]", _TUTORIAL),
    Elsewhere("docs/queues.md", "2 GPUs that runs for «two hours» waits", "the picture above it"),
    Elsewhere("docs/teams.md", "ones have bypassed for «half an hour» has", "the 30m of docs/examples/teams.yaml"),
    Elsewhere("CONTRIBUTING.md", "(about «a quarter of an hour» on two cores", _BUILD),
    Elsewhere(_CHART, "memory: «128Mi»}, limits: {memory: «512Mi»}}", _TABLE),
    Elsewhere(_CHART, "memory: «128Mi»}, limits: {memory: «1Gi»}}", _TABLE),
    Elsewhere(
        _CHART,
        "thousands of reviews of usual pods «a second».",
        _sized("test_a_core_answers_thousands_of_usual_pods_a_second"),
    ),
    Elsewhere(_CHART, "Reviews of «3 MiB», a hundred at once, stay below «250Mi»", _sized(_GIVEN)),
    Elsewhere(
        _OPERATIONS,
        "| «63 MB», «53 MB» of memory |",
        "held by tests/apiserver/test_idle.py::test_processes_that_were_just_started_take_the_memory_of_the_sizing",
    ),
    Elsewhere(_OPERATIONS, "ready | «0.4 seconds» of a core each", _by("start")),
    Elsewhere(_OPERATIONS, "a hundred reviews of «3 MiB» at once | «100 MB» more", _sized(_PLAN, "admission")),
    Elsewhere(_OPERATIONS, "pods of «12.7 kB» | «23 MB», «46 MB» while", _sized(_STORED, "watch")),
    Elsewhere(_OPERATIONS, "known «2.3 seconds» after the start", _by("watch")),
    Elsewhere(
        _OPERATIONS,
        "a workload of «1.5 MB», in each webhook | «3 kB» with few templates, «56 kB» with",
        _sized(_LARGE, "memory"),
    ),
    Elsewhere(_OPERATIONS, "| «40 MB», and «0.7 ms» for a decision; «0.4 ms» where", _sized(_STORED, "ledger")),
    Elsewhere(
        _OPERATIONS,
        "may start does | «0.6 ms» in one queue, «1.6 ms» in 100 queues below one limit; «0.3 ms»",
        _by("waiting"),
    ),
    Elsewhere(_OPERATIONS, "for 1,000 pods, «109 MB» |", _sized(_PLAN, "gang")),
    Elsewhere(_OPERATIONS, "comes or changes | «5 ms» |", _by("reconcile")),
    Elsewhere(
        _OPERATIONS,
        "takes over | «19 seconds» of a core before it admits again, at most «35 ms» of it",
        _by("takeover"),
    ),
    Elsewhere(_OPERATIONS, "that wait | «0.35 %» of a core, «118 MB» |", _by("gang")),
    Elsewhere(
        _OPERATIONS,
        "**Controller**: plan for «100 MB», «10 kB» for each pod of a gang and «1 kB» for each",
        _sized(_PLAN),
    ),
    Elsewhere(
        _OPERATIONS, "**Webhook**: plan for «90 MB», «100 MB» for giant objects, and «20 kB» for each", _sized(_PLAN)
    ),
    Elsewhere(_OPERATIONS, "both configurations «6 times» «a minute»", "a row of the table, as a rate"),
    Elsewhere(_OPERATIONS, "it retries after «a second», until its", "what Retry-After: 1 means"),
    Elsewhere(_OPERATIONS, "two objects of the «3 MiB» that the apiserver takes", "the apiserver's own limit"),
    Elsewhere(_OPERATIONS, "A review of a usual pod of «8 kB» takes", _by("admission")),
    Elsewhere(_OPERATIONS, "expensive object of «3 MiB» that we", "the apiserver's own limit"),
    Elsewhere(_OPERATIONS, "takes one to «two seconds»", _by("admission")),
    Elsewhere(_OPERATIONS, "some «8 ms» on average, and «0.3 s» at most", _by("admission")),
    Elsewhere(_OPERATIONS, "a hundred bodies of «3 MiB» at once the memory grows by about «100 MB»", _by("admission")),
    Elsewhere(_OPERATIONS, "the watches take about «20 kB» for each", _sized(_PLAN, "watch")),
    Elsewhere(
        _OPERATIONS,
        "fault, and in «an hour» without a",
        "tests/chart/test_alerts.py::test_each_alert_fires_for_its_reason_and_for_no_other",
    ),
    Elsewhere(_OPERATIONS, "the apiserver keeps them for «an hour»", "kube-apiserver --event-ttl"),
    Elsewhere(
        _OPERATIONS,
        "rewrites within «a second» what",
        "tests/apiserver/test_replicas.py::test_overwritten_ca_bundle_is_written_again_within_a_second",
    ),
    Elsewhere(
        _OPERATIONS, "change the Secret, wait «two minutes»", "the kubelet's: a mounted Secret follows in that time"
    ),
    Elsewhere(_OPERATIONS, "that double, up to «a quarter of an hour»", _OPERATORS),
    Elsewhere(_OPERATIONS, "an outage of «a minute» the pods", "an example"),
    Elsewhere(_OPERATIONS, "waits, up to «a minute», so the", _OPERATORS),
    Elsewhere(_OPERATIONS, "never more than «1000 seconds»", _OPERATORS),
    Elsewhere("docs/queues.md", "that went on, once «a second»,", "Volcano's period"),
    Elsewhere(_IMAGE, "build takes about «a minute», later builds", _BUILD),
    Elsewhere(_IMAGE, "were ready «0.6 seconds» after", _by("start")),
)
