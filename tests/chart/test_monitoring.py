"""Alerts, dashboard and how Prometheus finds the processes: no query of a metric or a label that nobody exports."""

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import promql_parser
import pytest
import yaml
from prometheus_client import CollectorRegistry

from controller.metrics import TermMetrics
from muster.cli.commands import parser
from muster.gangs.start_errors import PlannedStart
from muster.kube.reflector import Reflector, ReflectorStatistics
from muster.model.gang_states import GangState
from muster.model.resource import PODS
from muster.model.times import seconds_of
from muster.process.metrics import Watches
from tests.support.chart.rendered import JSON, Program, Render, Rendered
from tests.support.controller.bypass_queue import LARGE, gang, harness, running
from tests.support.manifests.observed import queue
from tests.support.pages.metrics import exported, labels
from webhook.certificates.source import CertificateSource
from webhook.metrics import CertificateDates, ReviewMetrics

_FAMILIES = {metric.name: metric.type for metrics in exported().values() for metric in metrics}
SERIES = {
    name + suffix
    for name, kind in _FAMILIES.items()
    for suffix in {"counter": ["_total"], "histogram": ["_bucket", "_count", "_sum"]}.get(kind, [""])
}
# tests/apiserver/test_uncalled.py sees them at a real apiserver.
OF_THE_APISERVER = {"apiserver_admission_webhook_rejection_count", "apiserver_admission_webhook_fail_open_count"}
STATES = set(map(str, GangState))
_FAMILY = re.compile("_(total|bucket|count|sum)$")
_DASHBOARD = "gangs-muster-dashboard"
NOW = seconds_of("2026-11-22T10:00:00Z") or 0.0


@pytest.fixture(scope="module")
def rendered(render: Render) -> Rendered:
    parts = ("podMonitor", "prometheusRule", "grafanaDashboard")
    settings = [f"{part}.{setting}" for part in parts for setting in ("enabled=true", "labels.release=prometheus")]
    return render(*settings, release="gangs")


def rules(rendered: Rendered) -> list[JSON]:
    (group,) = rendered.one("PrometheusRule")["spec"]["groups"]
    found: list[JSON] = group["rules"]
    return found


def dashboard(rendered: Rendered) -> JSON:
    found: JSON = json.loads(rendered.one("ConfigMap", _DASHBOARD)["data"]["muster.json"])
    return found


def expressions(rendered: Rendered) -> Iterator[str]:
    for rule in rules(rendered):
        yield rule["expr"]
    for panel in dashboard(rendered)["panels"]:
        for target in panel["targets"]:
            # Grafana's, which Prometheus never sees.
            yield target["expr"].replace("$__rate_interval", "5m")


def selectors(expression: object) -> Iterator[promql_parser.VectorSelector]:
    """Every selector of series below an expression; a form that is not known here fails the test."""
    match expression:
        case promql_parser.VectorSelector():
            yield expression
        case promql_parser.MatrixSelector():
            yield from selectors(expression.vector_selector)
        case promql_parser.BinaryExpr():
            yield from selectors(expression.lhs)
            yield from selectors(expression.rhs)
        case promql_parser.AggregateExpr() | promql_parser.ParenExpr():
            yield from selectors(expression.expr)
        case promql_parser.Call():
            for argument in expression.args:
                yield from selectors(argument)
        case promql_parser.NumberLiteral():
            pass
        case _:
            pytest.fail(f"teach this test about {type(expression)}")


async def controller() -> CollectorRegistry:
    """The metrics of a leader under which one gang runs and a larger one waits; one has started as planned."""
    (runs, pods), group = running("runs", 3)
    world = harness((runs, pods), gang("large", 3, created="2026-11-21T10:00:00Z"), groups=[group])
    shared = queue(cpu="4")
    shared["spec"] |= {"deserved": {"cpu": "2"}}
    world.set_queue(shared)
    world.now = NOW
    world.restart()
    terms = TermMetrics(world.cluster, "gangs-muster-controller", lambda: True, world.registry)
    terms.begins(world.queue, world.announcer, world.reconciler.kept, held=world.reconciler.held)
    await world.settle()
    world.now += 60
    world.reconciler.tick()
    world.sweep()
    world.metrics.admitted("q", 60.0)
    world.metrics.opened(3, 0.1)
    world.metrics.started("q", PlannedStart(NOW, "said", NOW, NOW), NOW + 60)
    assert LARGE in world.client.groups
    return world.registry


def webhook() -> CollectorRegistry:
    """The metrics of a webhook that has answered, refused, warned and failed."""
    registry = CollectorRegistry()
    metrics = ReviewMetrics(registry)
    for answers in (metrics.reviews.labels("pods", "true"), *metrics.refusals.values(), *metrics.warnings.values()):
        answers.inc()
    metrics.of("pods").failed(429, 0.1)
    source = SimpleNamespace(expirations={"serving": NOW}, trusted=True)
    CertificateDates(cast("CertificateSource", source), registry)
    return registry


def watches() -> CollectorRegistry:
    """The metrics of a watch."""
    registry = CollectorRegistry()
    watch = SimpleNamespace(resource=PODS, store=(), absent=False, statistics=ReflectorStatistics())
    Watches([cast("Reflector", watch)], registry)
    return registry


def series(registries: Iterable[CollectorRegistry]) -> Iterator[JSON]:
    """What promtool reads: gauges stand still for an hour, and all others grow by as much each minute."""
    for family in (family for registry in registries for family in registry.collect()):
        for sample in family.samples:
            if not sample.name.endswith("_created"):
                labels = ",".join(f"{name}={json.dumps(text)}" for name, text in {"pod": "a", **sample.labels}.items())
                grows = f"0+{sample.value}x60" if family.type != "gauge" else f"{sample.value}x60"
                yield {"series": f"{sample.name}{{{labels}}}", "values": grows}


def test_every_query_is_of_metrics_that_exist(rendered: Rendered) -> None:
    named = {one.name for text in expressions(rendered) for one in selectors(promql_parser.parse(text))}
    assert named
    assert named - SERIES == OF_THE_APISERVER


def test_every_label_that_is_asked_for_exists(rendered: Rendered) -> None:
    """Those of Prometheus (pod, cluster, le) apart; what is grouped by one stands in the texts."""
    asked = {
        (one.name, matcher.name)
        for text in expressions(rendered)
        for one in selectors(promql_parser.parse(text))
        for matcher in one.matchers.matchers
        if one.name not in OF_THE_APISERVER and matcher.name != "le"
    }
    known = {(name, label) for name, found in labels().items() for label in found}
    assert asked
    assert {(_FAMILY.sub("", name or ""), label) for name, label in asked} <= known


async def test_each_query_of_the_dashboard_has_a_result(promtool: Program, rendered: Rendered, tmp_path: Path) -> None:
    """A number, for all queues and for one; promtool names the queries that have none."""
    registries = await controller(), webhook(), watches()
    one = {"labels": "{}", "value": 1}
    queries = [target["expr"] for panel in dashboard(rendered)["panels"] for target in panel["targets"]]
    asked = [
        {"expr": f"count(({query}) == ({query})) > bool 0", "eval_time": "1h", "exp_samples": [one]}
        for text in queries
        for name in ("q", ".*")
        for query in [text.replace("$__rate_interval", "5m").replace("$queue", name).replace("$resource", "cpu")]
    ]
    page = tmp_path / "test.yaml"
    told = {"interval": "1m", "input_series": [*series(registries)], "promql_expr_test": asked}
    page.write_text(yaml.safe_dump({"tests": [told]}))
    done = promtool("test", "rules", page)
    assert not done.returncode, done.stdout + done.stderr


def test_the_variables_of_the_dashboard_are_labels_that_exist(rendered: Rendered) -> None:
    asked = [one["query"]["query"] for one in dashboard(rendered)["templating"]["list"] if one["type"] == "query"]
    found = [re.fullmatch(r"label_values\((\w+), (\w+)\)", text) for text in asked]
    assert len(found) == 2
    assert all(one is not None and one[2] in labels()[one[1]] for one in found)


def test_every_state_that_is_asked_for_exists(rendered: Rendered) -> None:
    asked = {
        state
        for text in expressions(rendered)
        for one in selectors(promql_parser.parse(text))
        for matcher in one.matchers.matchers
        if matcher.name == "state"
        for state in matcher.value.split("|")
    }
    assert asked
    assert asked <= STATES


def test_every_alert_says_what_it_is_and_what_it_means(rendered: Rendered) -> None:
    for rule in rules(rendered):
        assert set(rule) == {"alert", "expr", "for", "labels", "annotations"}
        assert rule["labels"]["severity"] in {"critical", "warning", "info"}
        assert set(rule["annotations"]) == {"summary", "description", "runbook_url"}
        assert rule["annotations"]["runbook_url"] == f"docs/runbook.md#{rule['alert'].lower()}"
    names = [rule["alert"] for rule in rules(rendered)]
    assert len(names) == len(set(names))


def test_an_alert_may_be_left_out_by_a_name_that_exists(render: Render, rendered: Rendered, chart: Path) -> None:
    names = [rule["alert"] for rule in rules(rendered)]
    left = render("prometheusRule.enabled=true", "prometheusRule.disabled={MusterNoLeader}")
    assert [rule["alert"] for rule in rules(left)] == [name for name in names if name != "MusterNoLeader"]
    schema = json.loads((chart / "values.schema.json").read_text())["properties"]["prometheusRule"]
    assert schema["properties"]["disabled"]["items"]["enum"] == names


def test_every_alert_is_explained(rendered: Rendered, chart: Path) -> None:
    """In their order, below a heading of its own: its anchor is the name of the alert in lower case."""
    page = (chart.parents[1] / "docs/runbook.md").read_text()
    assert re.findall(r"^### (Muster\w+)\n\n\S", page, re.MULTILINE) == [rule["alert"] for rule in rules(rendered)]


def test_every_alert_names_the_first_command_and_a_runbook_that_is_served_elsewhere(render: Render) -> None:
    """A command of kubectl in the release's namespace, or one of muster that there is."""
    address = "https://docs.example.com/muster/runbook.html"
    found = render("prometheusRule.enabled=true", f"prometheusRule.runbook={address}", release="gangs", namespace="ml")
    for rule in rules(found):
        annotations = rule["annotations"]
        assert annotations["runbook_url"] == f"{address}#{rule['alert'].lower()}"
        (command,) = re.findall(r" First: `(.+)`$", annotations["description"])
        program, *words = command.replace("{{ $labels.queue }}", "q").split()
        if program == "muster":
            parser().parse_args(words)
        else:
            assert (program, words[:2]) == ("kubectl", ["-n", "ml"])


def test_the_lease_is_the_releases_own(rendered: Rendered) -> None:
    assert "--lease=gangs-muster-controller" in rendered.arguments("controller")
    asked = [text for text in expressions(rendered) if "leader_election" in text]
    assert len(asked) == 2
    assert all('name="gangs-muster-controller"' in text for text in asked)


def test_the_templates_of_prometheus_pass_helm_as_they_are(rendered: Rendered, chart: Path) -> None:
    written = yaml.safe_load((chart / "files" / "alerts.yaml").read_text())
    assert [rule["annotations"]["summary"] for rule in rules(rendered)] == [
        rule["annotations"]["summary"] for rule in written
    ]


@pytest.mark.parametrize(("kind", "name"), [("PodMonitor", ""), ("PrometheusRule", ""), ("ConfigMap", _DASHBOARD)])
def test_labels_by_which_it_is_chosen(rendered: Rendered, kind: str, name: str) -> None:
    assert rendered.one(kind, name)["metadata"]["labels"]["release"] == "prometheus"


def test_the_sidecar_finds_the_dashboard(rendered: Rendered) -> None:
    assert rendered.one("ConfigMap", _DASHBOARD)["metadata"]["labels"]["grafana_dashboard"] == "1"


def test_panels_do_not_lie_on_each_other(rendered: Rendered) -> None:
    places = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in dashboard(rendered)["panels"]]
    assert len(places) == len(set(places))


def test_the_monitor_finds_both_processes(rendered: Rendered) -> None:
    spec: dict[str, Any] = rendered.one("PodMonitor")["spec"]
    (endpoint,) = spec["podMetricsEndpoints"]
    for component in ("webhook", "controller"):
        pod = rendered.one("Deployment", f"gangs-muster-{component}")["spec"]["template"]
        assert spec["selector"]["matchLabels"].items() <= pod["metadata"]["labels"].items()
        (container,) = pod["spec"]["containers"]
        assert endpoint["port"] in {port["name"] for port in container["ports"]}


@pytest.mark.parametrize("monitor", ["podMonitor", "serviceMonitor"])
def test_beside_a_monitor_no_annotation_asks_for_a_second_scrape(render: Render, monitor: str) -> None:
    """Annotations of one's own stay."""
    rendered = render(f"{monitor}.enabled=true", "controller.podAnnotations.team=ml")
    pods = {one: rendered.one("Deployment", f"muster-{one}")["spec"]["template"] for one in ("webhook", "controller")}
    assert "annotations" not in pods["webhook"]["metadata"]
    assert pods["controller"]["metadata"]["annotations"] == {"team": "ml"}


def test_none_of_it_is_there_unless_asked_for(render: Render) -> None:
    names = render("history.enabled=false").names()
    kinds = {name.partition("/")[0] for name in names if name != "ConfigMap/muster"}
    assert kinds.isdisjoint({"PodMonitor", "PrometheusRule", "ConfigMap", "NetworkPolicy"})
