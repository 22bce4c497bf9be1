"""What administrators set of the pods of both Deployments; tests/apiserver/test_chart.py asks the apiserver."""

from typing import Any

import pytest

from tests.support.cases import cases
from tests.support.chart.rendered import JSON, Render, Rendered

AFFINITY = "nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0]"
PROCESSES = ("webhook", "controller")


def pod(rendered: Rendered, component: str) -> JSON:
    template: JSON = rendered.one("Deployment", f"muster-{component}")["spec"]["template"]
    return template


@pytest.fixture(scope="module")
def filled(render: Render) -> Rendered:
    """Every value of the pods set, for both."""
    settings = (
        "podLabels.team=ml",
        "podAnnotations.prometheus\\.io/scrape=no",
        "priorityClassName=system-cluster-critical",
        "nodeSelector.role=infra",
        "tolerations[0].key=infra,{}.tolerations[0].operator=Exists",
        f"affinity.{AFFINITY}.matchFields[0].key=metadata.name,{{}}.affinity.{AFFINITY}.matchFields[0].operator=Exists",
        "extraEnv[0].name=A,{}.extraEnv[0].value=b",
        "extraVolumes[0].name=ca,{}.extraVolumes[0].configMap.name=ca",
        "extraVolumeMounts[0].name=ca,{}.extraVolumeMounts[0].mountPath=/ca",
        "extraArgs={--verbose}",
    )
    return render(*(f"{name}.{setting}".replace("{}", name) for name in PROCESSES for setting in settings))


@pytest.mark.parametrize("component", PROCESSES)
def test_what_is_set_is_in_the_pods(filled: Rendered, component: str) -> None:
    found = pod(filled, component)
    spec: dict[str, Any] = found["spec"]
    (container,) = spec["containers"]
    assert found["metadata"]["labels"]["team"] == "ml"
    assert found["metadata"]["annotations"] == {"prometheus.io/scrape": "no", "prometheus.io/port": "8080"}
    assert spec["priorityClassName"] == "system-cluster-critical"
    assert spec["nodeSelector"] == {"kubernetes.io/os": "linux", "role": "infra"}
    assert spec["tolerations"] == [{"key": "infra", "operator": "Exists"}]
    (term,) = spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert term == {"matchFields": [{"key": "metadata.name", "operator": "Exists"}]}
    assert container["env"][-1] == {"name": "A", "value": "b"}
    assert spec["volumes"][-1] == {"name": "ca", "configMap": {"name": "ca"}}
    assert container["volumeMounts"][-1] == {"name": "ca", "mountPath": "/ca"}
    assert container["args"][-1] == "--verbose"


def test_hooks_and_tests_go_to_the_same_nodes_and_keep_away_from_no_pod(render: Render) -> None:
    """The image may run on some nodes alone; a pod that keeps away from all replicas would find no node."""
    affinities: dict[str, JSON] = {}
    for name in PROCESSES:
        term = f"{{}}.affinity.{AFFINITY}.matchExpressions[0]"
        apart = "{}.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0]"
        settings = (f"{term}.key={name},{term}.operator=Exists", f"{apart}.topologyKey=kubernetes.io/hostname")
        rendered = render("schedulers={kubernetes}", *(one.replace("{}", name) for one in settings))
        assert set(pod(rendered, name)["spec"]["affinity"]) == {"nodeAffinity", "podAntiAffinity"}
        ends = [item for item in rendered.documents if item["kind"] in ("Pod", "Job")]
        affinities |= {
            item["metadata"]["name"]: affinity
            for item in ends
            if (
                affinity := (item["spec"] if item["kind"] == "Pod" else item["spec"]["template"]["spec"]).get(
                    "affinity"
                )
            )
        }
    terms = {
        name: affinity.pop("nodeAffinity")["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
        for name, affinity in affinities.items()
    }
    of = {"muster-uninstall": "controller", "muster-test": "webhook", "muster-probe": "webhook"}
    assert terms == {name: [{"matchExpressions": [{"key": key, "operator": "Exists"}]}] for name, key in of.items()}
    assert not any(affinities.values())


@pytest.mark.parametrize("component", PROCESSES)
def test_what_is_not_set_is_not_there(default: Rendered, component: str) -> None:
    spec = pod(default, component)["spec"]
    assert {"priorityClassName", "tolerations", "affinity", "imagePullSecrets", "hostNetwork"}.isdisjoint(spec)
    assert spec["nodeSelector"] == {"kubernetes.io/os": "linux"}


@pytest.mark.parametrize("component", PROCESSES)
def test_replicas_are_spread_over_hosts_and_zones(default: Rendered, component: str) -> None:
    """Those of the same version, and never so strictly that one could not start."""
    constraints = pod(default, component)["spec"]["topologySpreadConstraints"]
    assert [one["topologyKey"] for one in constraints] == ["kubernetes.io/hostname", "topology.kubernetes.io/zone"]
    for one in constraints:
        assert one["whenUnsatisfiable"] == "ScheduleAnyway"
        assert one["matchLabelKeys"] == ["pod-template-hash"]
        labels = pod(default, component)["metadata"]["labels"]
        assert one["labelSelector"]["matchLabels"].items() <= labels.items()


def test_a_constraint_with_a_selector_is_taken_as_it_is(render: Render) -> None:
    own = "webhook.topologySpreadConstraints[0]"
    strictly = (f"{own}.maxSkew=2", f"{own}.whenUnsatisfiable=DoNotSchedule")
    rendered = render(f"{own}.topologyKey=rack", f"{own}.labelSelector.matchLabels.a=b", *strictly)
    assert pod(rendered, "webhook")["spec"]["topologySpreadConstraints"] == [
        {
            "maxSkew": 2,
            "topologyKey": "rack",
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"a": "b"}},
        }
    ]


@pytest.mark.parametrize("component", PROCESSES)
def test_a_drain_takes_one_replica_at_a_time(default: Rendered, component: str) -> None:
    budget = default.one("PodDisruptionBudget", f"muster-{component}")["spec"]
    assert budget["maxUnavailable"] == 1
    assert budget["unhealthyPodEvictionPolicy"] == "AlwaysAllow"
    assert budget["selector"] == default.one("Deployment", f"muster-{component}")["spec"]["selector"]


@cases(
    "values, left",
    ("one replica", ["webhook.replicas=1"], ["controller"]),
    ("switched off", ["controller.podDisruptionBudget.enabled=false"], ["webhook"]),
    ("none to keep", ["webhook.replicas=0,webhook.failurePolicy=Ignore", "controller.replicas=1"], []),
)
def test_what_a_budget_would_only_block_has_none(render: Render, values: list[str], left: list[str]) -> None:
    budgets = [name for name in render(*values).names() if name.startswith("PodDisruptionBudget/")]
    assert budgets == [f"PodDisruptionBudget/muster-{name}" for name in left]


def test_a_budget_may_be_a_share(render: Render) -> None:
    rendered = render("webhook.replicas=5", "webhook.podDisruptionBudget.maxUnavailable=40%")
    assert rendered.one("PodDisruptionBudget", "muster-webhook")["spec"]["maxUnavailable"] == "40%"


def test_labels_of_ones_own_are_on_everything_and_change_none_of_musters(render: Render) -> None:
    rendered = render(
        "commonLabels.team=ml", "commonLabels.app\\.kubernetes\\.io/name=other", "webhook.podLabels.team=own"
    )
    for item in rendered.documents:
        assert item["metadata"]["labels"]["team"] == "ml"
        assert item["metadata"]["labels"]["app.kubernetes.io/name"] == "muster"


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ("podMonitor", "PodMonitor"),
        ("serviceMonitor", "ServiceMonitor"),
        ("prometheusRule", "PrometheusRule"),
        ("history.enabled=false,grafanaDashboard", "ConfigMap"),
    ],
)
def test_labels_of_one_object_go_before_those_of_all(render: Render, value: str, kind: str) -> None:
    """By these Prometheus and Grafana choose it."""
    said = f"{value.rpartition(',')[2]}.labels.release=prometheus"
    rendered = render(f"commonLabels.release=all,{value}.enabled=true,{said}")
    settings = rendered.one("ConfigMap", "muster")
    (labels,) = (item["metadata"]["labels"] for item in rendered.documents if item["kind"] == kind and item != settings)
    assert labels["release"] == "prometheus"


def test_labels_of_pods_go_before_those_of_all(render: Render) -> None:
    rendered = render(
        "commonLabels.team=all,webhook.podLabels.team=ml,webhook.podLabels.app\\.kubernetes\\.io/name=other"
    )
    labels = {component: pod(rendered, component)["metadata"]["labels"] for component in PROCESSES}
    assert {component: found["team"] for component, found in labels.items()} == {"webhook": "ml", "controller": "all"}
    assert labels["webhook"]["app.kubernetes.io/name"] == "muster"


CONVENTIONAL = {"name", "instance", "component", "version", "managed-by"}


def test_everything_has_the_conventional_labels(default: Rendered) -> None:
    for item in default.documents:
        assert {f"app.kubernetes.io/{label}" for label in CONVENTIONAL} <= set(item["metadata"]["labels"])


@pytest.mark.parametrize("component", PROCESSES)
def test_probes_are_as_their_administrator_says(render: Render, component: str) -> None:
    """And what he does not say is as it was."""
    settings = ("startup.failureThreshold=600", "liveness.timeoutSeconds=9", "readiness.periodSeconds=7")
    (container,) = pod(render(*(f"{component}.probes.{one}" for one in settings)), component)["spec"]["containers"]
    health = {"path": "/healthz", "port": "health"}
    assert container["startupProbe"] == {"httpGet": health, "periodSeconds": 1, "failureThreshold": 600}
    assert container["livenessProbe"] == {
        "httpGet": health,
        "periodSeconds": 10,
        "timeoutSeconds": 9,
        "failureThreshold": 6,
        "terminationGracePeriodSeconds": 5,
    }
    assert container["readinessProbe"] == {
        "httpGet": {"path": "/readyz", "port": "health"},
        "periodSeconds": 7,
        "timeoutSeconds": 1,
        "failureThreshold": 3,
    }
