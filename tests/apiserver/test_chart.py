"""The apiserver's word on what the chart renders."""

import json
import subprocess
import sys
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
import yaml

from hack.testbed import PATIENCE, Testbed
from hack.testbed.api import Answer, Api
from hack.testbed.muster import MusterInstall
from tests.apiserver.test_replicas import CHART
from tests.support.cases import cases
from tests.support.cluster.desk import Manifest

_NAMESPACE = "restricted"
_LEVEL = "pod-security.kubernetes.io/enforce"
_PODS = f"/api/v1/namespaces/{_NAMESPACE}/pods"


@pytest.fixture(scope="module")
def restricted(calls: Api) -> Iterator[Api]:
    """A namespace with Pod Security `restricted`, and the ServiceAccounts that the chart's pods run as."""
    metadata = {"name": _NAMESPACE, "labels": {_LEVEL: _NAMESPACE}}
    calls.done("POST", "/api/v1/namespaces", {"metadata": metadata})
    for name in ("muster-webhook", "muster-controller", "muster-uninstall", "strict-muster-webhook"):
        account = {"metadata": {"name": name}}
        calls.done("POST", f"/api/v1/namespaces/{_NAMESPACE}/serviceaccounts", account)
    yield calls
    calls.done("DELETE", f"/api/v1/namespaces/{_NAMESPACE}")


def _rendered(testbed: Testbed, *flags: str) -> list[Manifest]:
    command = ("template", "muster", str(CHART), f"--namespace={_NAMESPACE}", "--set=image.repository=own/muster")
    return [item for item in yaml.load_all(testbed.helm(*command, *flags).stdout, yaml.CSafeLoader) if item]


def _try(calls: Api, pod: Manifest) -> Answer:
    metadata = {**pod["metadata"], "name": "one"}
    return calls("POST", f"{_PODS}?dryRun=All", {**pod, "metadata": metadata})


@cases("flags", ("as installed", []), ("certificates from a Secret", ["--set=webhook.existingSecret=mine"]))
def test_pod_security_restricted_takes_the_pods(bare: Testbed, restricted: Api, flags: list[str]) -> None:
    """Those of both Deployments, that of `helm test`, and that of an uninstall."""
    rendered = _rendered(bare, *flags)
    pods = [item["spec"]["template"] for item in rendered if item["kind"] in {"Deployment", "Job"}]
    pods += [item for item in rendered if item["kind"] == "Pod"]
    assert len(pods) == 4
    for pod in pods:
        answer = _try(restricted, pod)
        assert answer.ok, answer.message


def test_pod_security_is_there_to_refuse(bare: Testbed, restricted: Api) -> None:
    """Each line of the securityContext counts: without any of them the same pod is refused."""
    pod = next(item["spec"]["template"] for item in _rendered(bare) if item["kind"] == "Deployment")
    without = json.loads(json.dumps(pod))
    del without["spec"]["containers"][0]["securityContext"]["capabilities"]
    answer = _try(restricted, without)
    assert not answer.ok
    assert "unrestricted capabilities" in answer.message


_MORE = (
    "networkPolicy.enabled=true,grafanaDashboard.enabled=true,commonLabels.team=ml",
    "networkPolicy.reviewsFrom[0].ipBlock.cidr=10.0.0.0/28",
    "webhook.podDisruptionBudget.maxUnavailable=40%",
    "controller.tolerations[0].key=infra,controller.tolerations[0].operator=Exists",
)


@pytest.mark.usefixtures("restricted")
def test_the_apiserver_knows_every_field(bare: Testbed) -> None:
    """Validated strictly: a misspelt field would be an error."""
    flags = [f"--set={value}" for value in _MORE]
    command = ("template", "strict", str(CHART), f"--namespace={_NAMESPACE}", "--set=image.repository=own/muster")
    text = bare.helm(*command, *flags).stdout
    done = bare.kubectl("apply", "--dry-run=server", "--validate=strict", "--filename=-", input=text)
    assert len(done.stdout.splitlines()) == len([item for item in yaml.load_all(text, yaml.CSafeLoader) if item])
    for kind in ("networkpolicy", "poddisruptionbudget", "configmap", "deployment"):
        assert f"{kind}." in done.stdout or f"{kind}/" in done.stdout


@cases(
    "release, namespace", ("another name", "other", "muster-system"), ("the same name elsewhere", "muster", "elsewhere")
)
def test_a_second_muster_is_refused(webhook: MusterInstall, release: str, namespace: str) -> None:
    done = webhook.testbed.helm(
        *("install", release, str(CHART), f"--namespace={namespace}", "--set=image.repository=r", "--dry-run=server"),
        check=False,
    )
    assert done.returncode
    assert "muster is in this cluster already, as release muster in namespace muster-system" in done.stderr
    assert "helm uninstall muster --namespace muster-system" in done.stderr


def _asked(host: str, port: int) -> subprocess.CompletedProcess[str]:
    program = [sys.executable, str(CHART / "files" / "reachable.py"), "muster.svc", host, str(port)]
    return subprocess.run(program, capture_output=True, text=True, check=False, timeout=PATIENCE)


def test_what_helm_test_runs_finds_the_webhook(calls: Api, webhook: MusterInstall) -> None:
    service = calls.done("GET", f"/api/v1/namespaces/{webhook.namespace}/services/{webhook.release}-webhook")["spec"]
    done = _asked(service["clusterIP"], service["ports"][0]["port"])
    assert not done.returncode, done.stderr
    assert done.stdout.endswith("is muster's webhook\n")


def test_what_helm_test_runs_takes_nobody_else_for_it(bare: Testbed) -> None:
    address = urlsplit(bare.server)
    done = _asked(str(address.hostname), address.port or 443)
    assert done.returncode == 1
    assert "which is not muster's webhook" in done.stderr
