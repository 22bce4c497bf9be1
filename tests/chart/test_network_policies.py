"""The NetworkPolicies of the chart, read as Kubernetes documents them: no network plugin enforces them here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.chart.rendered import Render, Rendered

_ON = "networkPolicy.enabled=true"
_DNS = [{"protocol": "UDP", "port": 53}, {"protocol": "TCP", "port": 53}]
_APISERVER = [{"protocol": "TCP", "port": 443}, {"protocol": "TCP", "port": 6443}]
_PEER = {"ipBlock": {"cidr": "10.0.0.0/28"}}


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
