"""Which calls the apiserver makes, and where they end: narrow, so that an outage cannot hurt a cluster."""

import json
import re

import pytest

from muster.model.names import (
    GANG,
    GANG_ENABLED,
    MANAGED,
    PRIORITY_CLASS_LABEL,
    QUEUE_ANNOTATION,
    QUEUE_LABEL,
    SCHEDULER_LABEL,
)
from muster.model.selectors import Selector, parse_selector
from muster.workloads import GANG_KINDS, KINDS, MAKERS, WATCHED_KINDS, Kind
from tests.support.cases import cases
from tests.support.chart.rendered import JSON, Render, Rendered
from webhook.certificates.bundles import CLOSED

# It sees one event of muster's own, which is never kept.
REACH = "reach.muster.dev"
# The webhooks that see pods.
PODS = tuple(f"{maker}.pods.muster.dev" for maker in (*map(str.lower, MAKERS.values()), "cleanup", "plain"))


def test_which_webhooks_there_are(default: Rendered) -> None:
    assert set(default.webhooks()) == {
        *PODS,
        "workloads.muster.dev",
        "namespaces.workloads.muster.dev",
        "jobs.workloads.muster.dev",
        "scale.workloads.muster.dev",
        "queues.muster.dev",
        "podgroups.muster.dev",
        "queues.pods.muster.dev",
        REACH,
    }


def test_the_apiserver_takes_their_names(default: Rendered) -> None:
    """A domain of three parts at least, each of it a label of DNS-1123."""
    label = "[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"
    assert [name for name in default.webhooks() if not re.fullmatch(rf"{label}(\.{label}){{2,}}", name)] == []


@pytest.mark.parametrize("kind", GANG_KINDS, ids=lambda kind: str(kind.kind))
def test_the_pods_of_every_kind_are_seen_by_their_label(default: Rendered, kind: Kind) -> None:
    selected = [
        expression
        for webhook in default.webhooks().values()
        for expression in webhook.get("objectSelector", {}).get("matchExpressions", [])
    ]
    assert {"key": kind.pod_label, "operator": "Exists"} in selected


@pytest.mark.parametrize("name", PODS)
def test_of_pods_only_their_creation_is_seen(default: Rendered, name: str) -> None:
    """Opening a gate is an update: it must not call us."""
    webhook = default.webhooks()[name]
    assert webhook["rules"] == [
        {
            "apiGroups": [""],
            "apiVersions": ["v1"],
            "resources": ["pods"],
            "operations": ["CREATE"],
            "scope": "Namespaced",
        },
    ]
    assert webhook["reinvocationPolicy"] == "IfNeeded"


@pytest.mark.parametrize("name", PODS)
def test_for_a_member_the_apiserver_evaluates_no_condition(default: Rendered, name: str) -> None:
    """It would turn the pod into a map for it, in each round: half of what the call itself costs it."""
    webhooks = default.webhooks()
    assert "matchConditions" not in webhooks[name]
    queues = webhooks["queues.pods.muster.dev"]["objectSelector"]["matchExpressions"]
    assert queues == [{"key": GANG, "operator": "DoesNotExist"}]


_MAKERS: tuple[dict[str, str], ...] = (
    {},
    *({label: maker} for label, maker in MAKERS.items()),
    {"ray.io/cluster": "c", "ray.io/node-type": "worker"},
    {"ray.io/cluster": "c", "ray.io/node-type": "redis-cleanup"},
    {"ray.io/node-type": "redis-cleanup"},
)


@pytest.mark.parametrize("labels", _MAKERS, ids=lambda labels: " ".join(labels.values()) or "nobody's")
@pytest.mark.parametrize("claims", [False, True])
def test_a_pod_is_seen_once(default: Rendered, labels: dict[str, str], claims: bool) -> None:
    """And not at all what is no member: of KubeRay's the clean-up pods. But all that say they are members are seen."""
    labels = {**labels, GANG: "g"} if claims else labels
    expressions = [default.webhooks()[name]["objectSelector"]["matchExpressions"] for name in PODS]
    seen = sum(all(_holds(one, labels) for one in entry) for entry in expressions)
    made = any(key != "ray.io/node-type" for key in labels) and labels.get("ray.io/node-type") != "redis-cleanup"
    assert seen == (claims or made)


def _holds(expression: JSON, labels: dict[str, str]) -> bool:
    """As Kubernetes does: what is not in a set may also be missing."""
    operator, key = expression["operator"], expression["key"]
    if operator in ("Exists", "DoesNotExist"):
        return (key in labels) is (operator == "Exists")
    return (labels.get(key) in expression["values"]) is (operator == "In")


@pytest.mark.parametrize("name", ["workloads.muster.dev", "namespaces.workloads.muster.dev"])
def test_of_workloads_the_resource_is_seen_and_never_its_status(default: Rendered, name: str) -> None:
    seen = default.webhooks()[name]["rules"]
    watched = {(kind.group, kind.plural) for kind in WATCHED_KINDS}
    assert {(rule["apiGroups"][0], plural) for rule in seen for plural in rule["resources"]} == watched | {
        ("batch.volcano.sh", "jobs")
    }
    versions = {rule["apiGroups"][0]: rule["apiVersions"] for rule in seen}
    assert all(kind.versions[0] in versions[kind.group] for kind in WATCHED_KINDS)
    assert all(rule["operations"] == ["CREATE", "UPDATE"] for rule in seen)
    assert not [resource for rule in seen for resource in rule["resources"] if "/" in resource]


def test_the_scale_of_every_kind_that_has_one_is_seen_when_it_grows(default: Rendered) -> None:
    webhook = default.webhooks()["scale.workloads.muster.dev"]
    scaled = {(kind.group, f"{kind.plural}/scale") for kind in KINDS if kind.scaled}
    seen = [(group, one) for rule in webhook["rules"] for group in rule["apiGroups"] for one in rule["resources"]]
    assert (set(seen), len(seen)) == (scaled, len(scaled))
    assert all(rule["operations"] == ["UPDATE"] for rule in webhook["rules"])
    assert webhook["matchPolicy"] == "Equivalent"


def test_of_jobs_and_stateful_sets_only_those_are_seen_whose_pods_join_a_gang(default: Rendered) -> None:
    """A cluster has many others."""
    webhook = default.webhooks()["jobs.workloads.muster.dev"]
    seen = [(rule["apiGroups"], rule["resources"]) for rule in webhook["rules"]]
    assert seen == [(["batch"], ["jobs"]), (["apps"], ["statefulsets"])]
    joins = webhook["matchConditions"][0]["expression"]
    assert joins == f"object.?spec.?template.?metadata.?labels[?'{GANG}'].hasValue()"


def test_pods_that_another_entry_has_seen_are_not_seen_again(default: Rendered) -> None:
    """That one has written the label on them by which plain pods are known."""
    webhooks = default.webhooks()
    others = {webhooks[name]["objectSelector"]["matchExpressions"][0]["key"] for name in PODS} - {GANG}
    expressions = webhooks["plain.pods.muster.dev"]["objectSelector"]["matchExpressions"]
    assert {one["key"] for one in expressions if one["operator"] == "DoesNotExist"} == others


def test_the_condition_on_workloads_names_what_says_intent(default: Rendered) -> None:
    """It must let through exactly what `muster.gangs.intent.is_managed` would look into."""
    conditions = {
        item["name"]: item["expression"] for item in default.webhooks()["workloads.muster.dev"]["matchConditions"]
    }
    labels = re.findall(r"'([^']+)'", re.search(r"key in\s*\[([^]]*)\]", conditions["asks-for-gang-scheduling"])[1])  # type: ignore[index]
    assert set(labels) == {SCHEDULER_LABEL, QUEUE_LABEL, PRIORITY_CLASS_LABEL, MANAGED, GANG_ENABLED}
    assert f"'{QUEUE_ANNOTATION}' in annotations" in conditions["asks-for-gang-scheduling"]
    assert "schedulingPolicy" in conditions["asks-for-gang-scheduling"]
    assert set(conditions) == {"asks-for-gang-scheduling", "says-something-new", "is-not-being-deleted"}


def test_in_opted_in_namespaces_exactly_those_are_seen_beside_that_do_not_ask_themselves(default: Rendered) -> None:
    """No workload makes two calls."""
    asking, opted = (default.webhooks()[name] for name in ("workloads.muster.dev", "namespaces.workloads.muster.dev"))
    first, *others = opted["matchConditions"]
    asks, *same = asking["matchConditions"]
    assert first["expression"] == f"!({asks['expression']})"
    assert others == same
    labels = opted["namespaceSelector"]["matchExpressions"]
    assert {"key": MANAGED, "operator": "In", "values": ["true", "required"]} in labels


def in_namespaces(rendered: Rendered) -> list[JSON]:
    """The webhooks that a namespace can be kept from: Queues are in none."""
    return [webhook for name, webhook in rendered.webhooks().items() if name not in {"queues.muster.dev", REACH}]


def test_neither_kube_system_nor_its_own_namespace_is_ever_seen(default: Rendered) -> None:
    for webhook in in_namespaces(default):
        assert {
            "key": "kubernetes.io/metadata.name",
            "operator": "NotIn",
            "values": ["kube-system", "muster-system"],
        } in webhook["namespaceSelector"]["matchExpressions"]


def test_namespaces_may_be_excluded_whatever_they_are_called(render: Render) -> None:
    for webhook in in_namespaces(render("excludedNamespaces={infra,123}")):
        expression, *_ = webhook["namespaceSelector"]["matchExpressions"]
        assert expression["values"] == ["kube-system", "muster-system", "infra", "123"]


PILOT = (
    "namespaceSelector.matchLabels.muster-pilot=on",
    "namespaceSelector.matchExpressions[0].key=team",
    "namespaceSelector.matchExpressions[0].operator=In",
    "namespaceSelector.matchExpressions[0].values={ml,vision}",
    "namespaceSelector.matchExpressions[1].key=legacy",
    "namespaceSelector.matchExpressions[1].operator=DoesNotExist",
)


def test_no_webhook_sees_a_namespace_that_is_not_selected(render: Render) -> None:
    for webhook in in_namespaces(render(*PILOT)):
        selector = webhook["namespaceSelector"]
        assert selector["matchLabels"] == {"muster-pilot": "on"}
        assert [one["operator"] for one in selector["matchExpressions"]][:3] == ["NotIn", "In", "DoesNotExist"]


@pytest.mark.parametrize(
    ("labels", "selected"),
    [
        ({"muster-pilot": "on", "team": "ml"}, True),
        ({"muster-pilot": "on", "team": "vision", "other": "x"}, True),
        ({"muster-pilot": "on", "team": "ml", "legacy": ""}, False),
        ({"muster-pilot": "on", "team": "web"}, False),
        ({"team": "ml"}, False),
        ({}, False),
    ],
)
def test_the_controller_leaves_alone_what_no_webhook_sees(
    render: Render, labels: dict[str, str], *, selected: bool
) -> None:
    assert of_controller(render(*PILOT)).matches(labels) is selected


def of_controller(rendered: Rendered) -> Selector:
    """The namespaces that the controller is told."""
    (container,) = rendered.one("Deployment", "muster-controller")["spec"]["template"]["spec"]["containers"]
    (selector,) = (one.partition("=")[2] for one in container["args"] if one.startswith("--namespace-selector="))
    return parse_selector(selector)


@pytest.mark.parametrize(
    ("name", "selected"),
    [("team", True), ("default", True), ("kube-system", False), ("muster-system", False), ("infra", False)],
)
def test_the_controller_leaves_alone_the_namespaces_that_are_excluded(
    render: Render, name: str, *, selected: bool
) -> None:
    labels = {"kubernetes.io/metadata.name": name}
    for values in (("excludedNamespaces={infra,123}",), ("excludedNamespaces={infra,123}", *PILOT)):
        labels |= {"muster-pilot": "on", "team": "ml"}
        assert of_controller(render(*values)).matches(labels) is selected


@cases(
    "values, policy, timeout",
    ("default", [], "Fail", 5),
    ("chosen", ["webhook.failurePolicy=Ignore", "webhook.timeoutSeconds=3"], "Ignore", 3),
)
def test_what_an_outage_means_is_a_value(render: Render, values: list[str], policy: str, timeout: int) -> None:
    for name, webhook in render(*values).webhooks().items():
        # What these tell is also told, or kept out, elsewhere.
        chosen = "Ignore" if "workloads" not in name and name not in PODS else policy
        if name == REACH:
            chosen = "Fail"
        assert (webhook["failurePolicy"], webhook["timeoutSeconds"]) == (chosen, timeout)
        assert (webhook["sideEffects"], webhook["admissionReviewVersions"]) == ("None", ["v1"])


def test_nobody_elses_event_is_seen_nor_any_that_is_kept(default: Rendered) -> None:
    webhook = default.webhooks()[REACH]
    assert webhook["namespaceSelector"] == {"matchLabels": {"kubernetes.io/metadata.name": "muster-system"}}
    assert [condition["expression"] for condition in webhook["matchConditions"]] == [
        "request.dryRun",
        "request.userInfo.username == 'system:serviceaccount:muster-system:muster-webhook'",
    ]


def test_without_a_cluster_to_ask_nothing_is_kept_from_being_called(default: Rendered) -> None:
    """Who applies the output of `helm template` again and again must not close what was opened."""
    assert CLOSED not in json.dumps(list(default.webhooks().values()))


def test_helm_writes_no_authority(default: Rendered) -> None:
    """The webhook fills it in; a value here would be put back by every upgrade."""
    assert all("caBundle" not in webhook["clientConfig"] for webhook in default.webhooks().values())


@cases("values", ("default", []), ("another port", ["webhook.service.port=8443"]))
def test_the_calls_end_where_the_webhook_listens(render: Render, values: list[str]) -> None:
    """Configuration, Service, container port and flag agree."""
    rendered = render(*values)
    service = rendered.one("Service")
    (port,) = service["spec"]["ports"]
    for webhook in rendered.webhooks().values():
        called = webhook["clientConfig"]["service"]
        assert (called["name"], called["namespace"]) == (service["metadata"]["name"], "muster-system")
        assert called["port"] == port["port"]
    (container,) = rendered.one("Deployment", "muster-webhook")["spec"]["template"]["spec"]["containers"]
    ports = {item["name"]: item["containerPort"] for item in container["ports"]}
    assert f"--port={ports[port['targetPort']]}" in container["args"]
    assert f"--service={service['metadata']['name']}" in container["args"]


def test_the_calls_go_to_the_paths_that_are_served(default: Rendered) -> None:
    paths = {name: webhook["clientConfig"]["service"]["path"] for name, webhook in default.webhooks().items()}
    assert paths == {
        **dict.fromkeys(PODS, "/mutate/pods"),
        "workloads.muster.dev": "/validate/workloads",
        "namespaces.workloads.muster.dev": "/validate/workloads",
        "jobs.workloads.muster.dev": "/validate/workloads",
        "scale.workloads.muster.dev": "/validate/scale",
        "queues.muster.dev": "/validate/queues",
        "podgroups.muster.dev": "/validate/podgroups",
        "queues.pods.muster.dev": "/validate/pods",
        REACH: "/validate/reach",
    }


def test_without_validation_no_workload_makes_a_call(render: Render) -> None:
    assert not [name for name in render("validation=off").webhooks() if name.endswith("workloads.muster.dev")]
