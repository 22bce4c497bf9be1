"""What a fresh testbed promises, on the session's own."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from hack.testbed import CommandError, Testbed, wait_for
from hack.testbed.crds import crd_files, read_crd
from hack.testbed.parts import select
from muster.model.resource import PODS
from tests.support.cluster.recorder import Recorder
from tests.support.cluster.scene import PATIENCE, phase

pytestmark = pytest.mark.long


@pytest.fixture
def namespace(testbed: Testbed, request: pytest.FixtureRequest) -> Iterator[str]:
    name = "t-" + request.node.name.replace("_", "-")[5:50].strip("-")
    testbed.kubectl("create", "namespace", name)
    wait_for("its ServiceAccount", lambda: testbed.kubectl("get", "sa", "default", "-n", name), PATIENCE)
    yield name
    testbed.kubectl("delete", "namespace", name, "--wait=false")


def _get(testbed: Testbed, *args: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(testbed.kubectl("get", *args, "-ojson").stdout)
    return found


def _pod(name: str, annotations: dict[str, str]) -> str:
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "annotations": annotations},
            "spec": {"containers": [{"name": "main", "image": "none"}], "restartPolicy": "Never"},
        }
    )


def _phase(testbed: Testbed, namespace: str, pod: str) -> str:
    return str(_get(testbed, "pod", pod, "-n", namespace)["status"]["phase"])


def test_nodes_are_ready_and_offer_what_was_asked_for(testbed: Testbed) -> None:
    nodes = _get(testbed, "nodes")["items"]
    assert [node["metadata"]["name"] for node in nodes] == ["node-0", "node-1", "node-2", "node-3"]
    offered = {"cpu": "16", "memory": "64Gi", "ephemeral-storage": "100Gi", "pods": "110", "nvidia.com/gpu": "8"}
    for node in nodes:
        assert node["status"]["allocatable"] == offered
        assert "taints" not in node["spec"]


def test_crds_are_what_their_files_say_kept_from_an_earlier_start_or_not(testbed: Testbed) -> None:
    files = crd_files(select(testbed.parts))
    assert len(files) > 10
    for path in files:
        name, content = read_crd(path)
        applied = testbed.kubectl(
            *("apply", "--server-side", "--force-conflicts", "--dry-run=server", "--filename=-", "--output=json"),
            input=content.decode(),
        )
        stands = _get(testbed, "crd", name)
        assert json.loads(applied.stdout)["spec"] == stands["spec"], f"{name}, {path}"
        assert {"Established": "True", "NamesAccepted": "True"}.items() <= {
            condition["type"]: condition["status"] for condition in stands["status"]["conditions"]
        }.items()


def test_services_live_on_loopback(testbed: Testbed) -> None:
    address = _get(testbed, "service", "kubernetes")["spec"]["clusterIP"]
    assert address == testbed.service_range.replace(".0/24", ".1")
    assert address.startswith("127.")


def test_pod_with_run_seconds_succeeds(testbed: Testbed, namespace: str) -> None:
    pod = _pod("short", {"testbed.muster.dev/run-seconds": "2"})
    with Recorder(testbed, namespace, ()) as recorder:
        testbed.kubectl("apply", "-n", namespace, "-f", "-", input=pod)
        wait_for("the pod to end", lambda: [phase(pod) for pod in recorder.now(PODS)] == ["Succeeded"], PATIENCE)
        seen = dict.fromkeys(phase(state.object) for state in recorder.history(PODS))
    assert list(seen) == ["Pending", "Running", "Succeeded"]
    ended = _get(testbed, "pod", "short", "-n", namespace)["status"]["containerStatuses"][0]["state"]["terminated"]
    assert (ended["exitCode"], ended["reason"]) == (0, "Completed")


def test_pod_with_fail_after_seconds_fails(testbed: Testbed, namespace: str) -> None:
    pod = _pod("bad", {"testbed.muster.dev/fail-after-seconds": "1"})
    testbed.kubectl("apply", "-n", namespace, "-f", "-", input=pod)
    wait_for("the pod to fail", lambda: _phase(testbed, namespace, "bad") == "Failed", PATIENCE)
    ended = _get(testbed, "pod", "bad", "-n", namespace)["status"]["containerStatuses"][0]["state"]["terminated"]
    assert ended["exitCode"] == 1


def test_pod_without_annotation_runs_on(testbed: Testbed, namespace: str) -> None:
    """An annotated pod that is made later ends first: the plain one still runs then."""
    testbed.kubectl("apply", "-n", namespace, "-f", "-", input=_pod("plain", {}))
    wait_for("the pod to run", lambda: _phase(testbed, namespace, "plain") == "Running", PATIENCE)
    later = _pod("later", {"testbed.muster.dev/run-seconds": "1"})
    testbed.kubectl("apply", "-n", namespace, "-f", "-", input=later)
    wait_for("the later pod to end", lambda: _phase(testbed, namespace, "later") == "Succeeded", PATIENCE)
    assert _phase(testbed, namespace, "plain") == "Running"


def test_service_account_kubeconfig_carries_that_account_alone(testbed: Testbed, namespace: str) -> None:
    kubeconfig = testbed.service_account_kubeconfig(namespace, "default")
    who = testbed.kubectl("auth", "whoami", "-ojson", f"--kubeconfig={kubeconfig}").stdout
    assert json.loads(who)["status"]["userInfo"]["username"] == f"system:serviceaccount:{namespace}:default"
    with pytest.raises(CommandError, match="forbidden"):
        testbed.kubectl("get", "nodes", f"--kubeconfig={kubeconfig}")


def test_failing_command_raises_its_own_words(testbed: Testbed) -> None:
    with pytest.raises(CommandError, match='namespaces "nowhere" not found'):
        testbed.kubectl("get", "namespace", "nowhere")
