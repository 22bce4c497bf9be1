"""The Deployments: their image, their arguments, and that both processes run restricted."""

import argparse
from pathlib import Path

import pytest
import yaml

import muster
from tests.support.cases import cases
from tests.support.chart.rendered import Program, Render, Rendered, assert_restricted
from webhook.__main__ import _DRAIN_SECONDS

DIGEST = f"sha256:{'0123456789abcdef' * 4}"


@cases(
    "values, image",
    ("the chart's own version", [], f"own/muster:{muster.__version__}"),
    ("a tag", ["image.tag=v2"], "own/muster:v2"),
    ("a tag that looks like a number", ["image.tag=12"], "own/muster:12"),
    ("a registry with a port", ["image.repository=r:5000/m"], f"r:5000/m:{muster.__version__}"),
    ("a digest", [f"image.digest={DIGEST}"], f"own/muster@{DIGEST}"),
    ("a digest before a tag", [f"image.digest={DIGEST}", "image.tag=v2"], f"own/muster@{DIGEST}"),
)
def test_all_pods_run_the_same_image(render: Render, values: list[str], image: str) -> None:
    """Those of both processes, and that of `helm test`."""
    rendered = render(*values)
    pods = [item["spec"]["template"] for item in rendered.documents if item["kind"] == "Deployment"]
    pods.append(rendered.one("Pod"))
    assert [pod["spec"]["containers"][0]["image"] for pod in pods] == [image] * 3


def test_the_service_finds_the_webhooks_pods_and_no_others(default: Rendered) -> None:
    selector = default.one("Service")["spec"]["selector"].items()
    labels = {
        name: default.one("Deployment", name)["spec"]["template"]["metadata"]["labels"].items()
        for name in ("muster-webhook", "muster-controller")
    }
    assert selector <= labels["muster-webhook"]
    assert not selector <= labels["muster-controller"]


@pytest.mark.parametrize("process", ["muster-webhook", "muster-controller"])
def test_a_deployment_selects_its_own_pods(default: Rendered, process: str) -> None:
    spec = default.one("Deployment", process)["spec"]
    assert spec["selector"]["matchLabels"].items() <= spec["template"]["metadata"]["labels"].items()
    assert spec["replicas"] == 2


@pytest.mark.parametrize("process", ["muster-webhook", "muster-controller"])
def test_pods_meet_the_restricted_standard(default: Rendered, process: str) -> None:
    """PodSecurity `restricted`, and a root file system that nobody writes."""
    assert_restricted(default.one("Deployment", process)["spec"]["template"]["spec"])


@pytest.mark.parametrize("process", ["muster-webhook", "muster-controller"])
def test_probes_ask_the_port_that_is_served(default: Rendered, process: str) -> None:
    (container,) = default.one("Deployment", process)["spec"]["template"]["spec"]["containers"]
    ports = {item["name"]: item["containerPort"] for item in container["ports"]}
    assert f"--health-port={ports['health']}" in container["args"]
    for probe, path in (("livenessProbe", "/healthz"), ("readinessProbe", "/readyz")):
        assert container[probe]["httpGet"] == {"path": path, "port": "health"}


@pytest.mark.parametrize("process", ["muster-webhook", "muster-controller"])
def test_the_process_learns_who_it_is(default: Rendered, process: str) -> None:
    (container,) = default.one("Deployment", process)["spec"]["template"]["spec"]["containers"]
    assert {item["name"]: item["valueFrom"]["fieldRef"]["fieldPath"] for item in container["env"]} == {
        "POD_NAME": "metadata.name",
        "POD_NAMESPACE": "metadata.namespace",
    }


@pytest.mark.parametrize(
    ("value", "component", "argument"),
    [
        ("defaultQueue=shared", "webhook", "--default-queue=shared"),
        ("defaultQueue=shared", "controller", "--default-queue=shared"),
        ("schedulers={volcano,coscheduling=a}", "webhook", "--schedulers=volcano,coscheduling=a"),
        ("schedulers={coscheduling}", "controller", "--schedulers=coscheduling"),
        ("schedulers={coscheduling},queues.source=muster", "webhook", "--queue-source=muster"),
        ("schedulers={coscheduling},queues.source=muster", "controller", "--queue-source=muster"),
        ("schedulers={volcano,coscheduling=a},elasticQuotas=true", "webhook", "--elastic-quotas"),
        ("schedulers={volcano,coscheduling=a},elasticQuotas=true", "controller", "--elastic-quotas"),
        ("gate=assemble", "webhook", "--gate=assemble"),
        ("gate=assemble", "controller", "--gate=assemble"),
        ("gate=off", "webhook", "--gate=off"),
        ("gate=false", "webhook", "--gate=off"),
        ("validation=warn", "webhook", "--validation=warn"),
        ("validation=off", "webhook", "--validation=off"),
        ("validation=false", "webhook", "--validation=off"),
        ("validationReasons.QueueNotFound=warn", "webhook", "--validation-reason=QueueNotFound=warn"),
        ("validationReasons.NoPods=off", "webhook", "--validation-reason=NoPods=off"),
        ("validationReasons.NoPods=false", "webhook", "--validation-reason=NoPods=off"),
        ("dra=deny", "webhook", "--validation-reason=ResourceClaims=deny"),
        ("webhook.logLevel=debug", "webhook", "--log-level=debug"),
        ("controller.logLevel=debug", "controller", "--log-level=debug"),
        ("logFormat=json", "webhook", "--log-format=json"),
        ("logFormat=json", "controller", "--log-format=json"),
        ("webhook.shutdownDelaySeconds=9", "webhook", "--shutdown-delay=9"),
        ("controller.lease.durationSeconds=30", "controller", "--lease-duration=30"),
        ("controller.lease.renewDeadlineSeconds=12", "controller", "--renew-deadline=12"),
        ("controller.lease.retryPeriodSeconds=4", "controller", "--retry-period=4"),
        ("controller.lease.retryPeriodSeconds=0.5", "controller", "--retry-period=0.5"),
    ],
)
def test_values_reach_the_processes(render: Render, value: str, component: str, argument: str) -> None:
    assert argument in render(value).arguments(component)


@pytest.mark.parametrize(("delay", "review"), [(0, 5), (5, 1), (5, 30), (60, 5)])
def test_the_kubelet_waits_longer_than_the_webhook_goes_on(render: Render, delay: int, review: int) -> None:
    """The delay, then what is under way: as long as the apiserver waits for it."""
    values = f"webhook.shutdownDelaySeconds={delay}", f"webhook.timeoutSeconds={review}"
    spec = render(*values).one("Deployment", "muster-webhook")
    assert spec["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] > delay + review + _DRAIN_SECONDS


@pytest.mark.parametrize(
    ("component", "module"), [("webhook", "webhook.__main__"), ("controller", "controller.__main__")]
)
def test_every_argument_is_one_that_the_process_takes(
    default: Rendered, component: str, module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Parsed by the process's own parser, which stops at anything that it does not know."""
    assert taken(default.arguments(component), module, monkeypatch).health_port == 8080


@pytest.mark.parametrize(
    ("component", "module"), [("controller", "controller.__main__"), ("page", "muster.cli.page.__main__")]
)
def test_many_namespaces_may_be_excluded(
    helm: Program, chart: Path, component: str, module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More than an annotation of a Queue may name: the webhook configurations have no such bound."""
    names = [f"customer-{number}-production" for number in range(500)]
    values = "image.repository=r,page.enabled=true,page.existingSecret=s,excludedNamespaces={" + ",".join(names) + "}"
    done = helm("template", "muster", str(chart), "--set", values)
    arguments = Rendered([one for one in yaml.safe_load_all(done.stdout) if one]).arguments(component)
    selector = taken(arguments, module, monkeypatch).namespace_selector
    assert [selector.matches({"kubernetes.io/metadata.name": name}) for name in (names[-1], "other")] == [False, True]


def taken(arguments: list[str], module: str, monkeypatch: pytest.MonkeyPatch) -> argparse.Namespace:
    """What the process's own parser makes of its arguments."""
    program = __import__(module, fromlist=["main"])
    parsed: list[argparse.Namespace] = []

    def keep(self: argparse.ArgumentParser, *_: object) -> argparse.Namespace:
        found, unknown = self.parse_known_args(arguments)
        assert unknown == []
        parsed.append(found)
        raise KeyboardInterrupt

    monkeypatch.setattr(argparse.ArgumentParser, "parse_args", keep)
    with pytest.raises(KeyboardInterrupt):
        program.main()
    return parsed[0]


def test_secrets_for_pulling_the_image(render: Render) -> None:
    rendered = render("imagePullSecrets[0].name=registry")
    for process in ("muster-webhook", "muster-controller"):
        spec = rendered.one("Deployment", process)["spec"]["template"]["spec"]
        assert spec["imagePullSecrets"] == [{"name": "registry"}]
