"""The NetworkPolicies of the chart: what they say, and what they let through as cyclonus reads them.

No network plugin enforces them here (docs/design-notes.md, NetworkPolicies); `tests/node` has cyclonus judge the
connections that muster's pods really have.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.support.cases import cases
from tests.support.chart.network_policies import Call, Peer, let_through
from tests.support.chart.rendered import Render, Rendered

Judge = Callable[[Rendered, Mapping[str, Call]], set[str]]

_ON = "networkPolicy.enabled=true"
_DNS = [{"protocol": "UDP", "port": 53}, {"protocol": "TCP", "port": 53}]
_APISERVER = [{"protocol": "TCP", "port": 443}, {"protocol": "TCP", "port": 6443}]
_PEER = {"ipBlock": {"cidr": "10.0.0.0/28"}}
_NARROW = (
    "networkPolicy.reviewsFrom[0].ipBlock.cidr=10.0.0.0/28",
    r"networkPolicy.metricsFrom[0].namespaceSelector.matchLabels.kubernetes\.io/metadata\.name=monitoring",
    "networkPolicy.apiserverTo[0].ipBlock.cidr=10.0.0.0/28",
    "networkPolicy.apiserverPorts={8443}",
)
_NOBODY = {
    "apiVersion": "networking.k8s.io/v1",
    "kind": "NetworkPolicy",
    "metadata": {"name": "nobody", "namespace": "muster-system"},
    "spec": {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]},
}
_SERVER = Peer("10.0.0.5")  # the apiserver, of that range
_WORLD = Peer("203.0.113.9")
_TENANT = Peer("10.1.0.9", "team-a", {"app": "any"})
_PROMETHEUS = Peer("10.1.0.8", "monitoring", {"app": "prometheus"})


def policy(rendered: Rendered, component: str) -> dict[str, Any]:
    spec: dict[str, Any] = rendered.one("NetworkPolicy", f"muster-{component}")["spec"]
    return spec


def opened(rendered: Rendered, component: str) -> set[str | int]:
    return {port["port"] for rule in policy(rendered, component)["ingress"] for port in rule["ports"]}


@pytest.fixture(scope="module")
def open_to_all(render: Render) -> Rendered:
    return render(_ON)


@pytest.mark.parametrize("component", ["webhook", "controller"])
def test_it_is_about_the_pods_of_its_deployment(open_to_all: Rendered, component: str) -> None:
    deployment = open_to_all.one("Deployment", f"muster-{component}")["spec"]
    assert policy(open_to_all, component)["podSelector"] == deployment["selector"]
    assert policy(open_to_all, component)["policyTypes"] == ["Ingress", "Egress"]


@pytest.mark.parametrize("component", ["webhook", "controller"])
def test_every_port_that_is_served_is_open_and_no_other(open_to_all: Rendered, component: str) -> None:
    """By name, so that a port that changes stays open."""
    pod = open_to_all.one("Deployment", f"muster-{component}")["spec"]["template"]["spec"]
    assert opened(open_to_all, component) == {port["name"] for port in pod["containers"][0]["ports"]}


@pytest.mark.parametrize("component", ["webhook", "controller"])
def test_out_go_calls_of_the_apiserver_and_dns_alone(open_to_all: Rendered, component: str) -> None:
    assert policy(open_to_all, component)["egress"] == [{"ports": _APISERVER}, {"ports": _DNS}]


@pytest.mark.parametrize(("value", "ports"), [("reviewsFrom", ["reviews"]), ("metricsFrom", ["health"])])
def test_peers_narrow_what_they_are_for(render: Render, value: str, ports: list[str]) -> None:
    rendered = render(_ON, f"networkPolicy.{value}[0].ipBlock.cidr=10.0.0.0/28")
    narrowed = [rule for rule in policy(rendered, "webhook")["ingress"] if "from" in rule]
    assert [([port["port"] for port in rule["ports"]], rule["from"]) for rule in narrowed] == [(ports, [_PEER])]


def test_the_apiserver_may_be_named(render: Render) -> None:
    own = ("networkPolicy.apiserverTo[0].ipBlock.cidr=10.0.0.0/28", "networkPolicy.apiserverPorts={8443}")
    for component in ("webhook", "controller"):
        first = policy(render(_ON, *own), component)["egress"][0]
        assert first == {"to": [_PEER], "ports": [{"protocol": "TCP", "port": 8443}]}


@pytest.fixture
def judge(tmp_path: Path) -> Judge:
    """Which of these calls the policies of a rendering let through."""

    def judged(rendered: Rendered, calls: Mapping[str, Call]) -> set[str]:
        policies = [one for one in rendered.documents if one["kind"] == "NetworkPolicy"]
        return let_through(policies, calls, tmp_path)

    return judged


def replica(rendered: Rendered, component: str) -> Peer:
    """A pod of the Deployment of a component."""
    deployment = rendered.one("Deployment", f"muster-{component}")
    template = deployment["spec"]["template"]
    return Peer.pod(template, namespace=deployment["metadata"]["namespace"], address="10.1.0.2")


def hook(rendered: Rendered, component: str) -> Peer:
    """The pod of a hook of helm's."""
    pods = [one for one in rendered.documents if one["kind"] == "Pod"]
    pods += [one["spec"]["template"] for one in rendered.documents if one["kind"] == "Job"]
    (pod,) = (one for one in pods if one["metadata"]["labels"]["app.kubernetes.io/component"] == component)
    return Peer.pod(pod, namespace="muster-system", address="10.1.0.4")


@pytest.mark.parametrize("component", ["webhook", "controller"])
def test_whoever_calls_meets_the_ports_that_are_served_alone(
    open_to_all: Rendered, judge: Judge, component: str
) -> None:
    own = replica(open_to_all, component)
    ports = {*own.ports, 22, 443, 6443, 8081, 10250}
    callers = {"server": _SERVER, "world": _WORLD, "tenant": _TENANT}
    calls = {f"{name} {port}": Call(peer, own, port) for name, peer in callers.items() for port in ports}
    calls |= {f"udp {port}": Call(_TENANT, own, port, "UDP") for port in ports}
    assert judge(open_to_all, calls) == {f"{name} {port}" for name in callers for port in own.ports}


@pytest.mark.parametrize("component", ["webhook", "controller"])
def test_a_replica_reaches_apiserver_and_dns_alone(open_to_all: Rendered, judge: Judge, component: str) -> None:
    own = replica(open_to_all, component)
    calls = {
        f"{protocol} {port}": Call(own, _SERVER, port, protocol)
        for protocol in ("TCP", "UDP")
        for port in (53, 80, 443, 2379, 5432, 6443, 8443, 10250)
    }
    assert judge(open_to_all, calls) == {"TCP 443", "TCP 6443", "TCP 53", "UDP 53"}


def test_named_peers_alone_send_reviews_and_read_metrics(render: Render, judge: Judge) -> None:
    """Each what it was named for, and no more."""
    rendered = render(_ON, *_NARROW)
    pods = {component: replica(rendered, component) for component in ("webhook", "controller")}
    callers = {"server": _SERVER, "world": _WORLD, "tenant": _TENANT, "prometheus": _PROMETHEUS, **pods}
    calls = {
        f"{name} to {component} {own.ports[port]}": Call(peer, own, port)
        for name, peer in callers.items()
        for component, own in pods.items()
        for port in own.ports
    }
    assert judge(rendered, calls) == {
        "server to webhook reviews",
        "prometheus to webhook health",
        "prometheus to controller health",
    }


@pytest.mark.parametrize("component", ["webhook", "controller"])
def test_out_go_calls_of_the_named_apiserver_and_dns_alone(render: Render, judge: Judge, component: str) -> None:
    rendered = render(_ON, *_NARROW)
    own = replica(rendered, component)
    places = {"server": _SERVER, "world": _WORLD, "tenant": _TENANT}
    calls = {f"{name} {port}": Call(own, peer, port) for name, peer in places.items() for port in (53, 443, 6443, 8443)}
    assert judge(rendered, calls) == {"server 8443", *(f"{name} 53" for name in places)}


def test_nobody_elses_pods_are_meant(open_to_all: Rendered, judge: Judge) -> None:
    """Neither another release's beside, nor such labels elsewhere."""
    webhook = replica(open_to_all, "webhook")
    others = {
        "neighbour": Peer("10.1.0.3", "muster-system", {"app": "any"}),
        "another release": Peer(
            "10.1.0.3", "muster-system", {**webhook.labels, "app.kubernetes.io/instance": "another"}
        ),
        "elsewhere": Peer("10.1.0.3", "team-a", webhook.labels),
    }
    calls = {f"to {name}": Call(_WORLD, peer, 5432) for name, peer in others.items()}
    calls |= {f"from {name}": Call(peer, _WORLD, 5432) for name, peer in others.items()}
    calls["to muster's"], calls["from muster's"] = Call(_WORLD, webhook, 5432), Call(webhook, _WORLD, 5432)
    assert calls.keys() - judge(open_to_all, calls) == {"to muster's", "from muster's"}


_HOOKS = ["uninstall", "test", "probe"]


@cases("narrow", ("ports", ()), ("peers", _NARROW))
@pytest.mark.parametrize("component", _HOOKS)
def test_pods_of_hooks_reach_what_they_need_and_serve_nothing(
    render: Render, judge: Judge, component: str, narrow: tuple[str, ...]
) -> None:
    """In a namespace that lets out nobody, too: `helm test` asks the webhook, the others the apiserver."""
    rendered = render(_ON, "schedulers={kubernetes}", *narrow)
    rendered.documents.append(_NOBODY)
    webhook, own = replica(rendered, "webhook"), hook(rendered, component)
    server = 8443 if narrow else 6443
    calls = {
        "the apiserver": Call(own, _SERVER, server),
        "DNS": Call(own, _TENANT, 53, "UDP"),
        "elsewhere": Call(own, _WORLD, 5432),
        "a tenant": Call(own, _TENANT, 9443),
        "in": Call(_SERVER, own, 9443),
    }
    if not narrow:  # else the webhook takes no call of `helm test`
        calls["the webhook"] = Call(own, webhook, 9443)
    expected = {"the webhook"} & calls.keys() if component == "test" else {"the apiserver", "DNS"}
    assert judge(rendered, calls) == expected


def test_helm_test_reaches_a_webhook_on_its_nodes_network(render: Render, judge: Judge) -> None:
    """No selector finds such a pod."""
    rendered = render(_ON, "webhook.hostNetwork=true")
    own, node = hook(rendered, "test"), Peer("203.0.113.7")
    calls = {f"{port}": Call(own, node, port) for port in (9443, 6443)}
    assert judge(rendered, calls) == {"9443"}


def test_pods_of_hooks_have_a_policy_each(open_to_all: Rendered, render: Render) -> None:
    """Where there is no probe, there is none for it."""
    webhook_and_controller = {"muster-webhook", "muster-controller"}
    own = {name.removeprefix("NetworkPolicy/") for name in open_to_all.names() if name.startswith("NetworkPolicy/")}
    assert own - webhook_and_controller == {"muster-uninstall", "muster-test"}
    assert "NetworkPolicy/muster-probe" in render(_ON, "schedulers={kubernetes}").names()


def test_helm_test_is_let_in_unless_reviews_are_narrowed(render: Render, judge: Judge) -> None:
    """As docs/operations.md says of it."""
    for values, through in (((), {"asks"}), (_NARROW, set())):
        rendered = render(_ON, *values)
        tester = Peer.pod(rendered.one("Pod"), address="10.1.0.4")
        assert judge(rendered, {"asks": Call(tester, replica(rendered, "webhook"), 9443)}) == through
