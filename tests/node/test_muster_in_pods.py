"""muster as its users have it: from the image, run by a kubelet, behind a Service. The tests are one life of it."""

import json
import os
import re
import signal
import subprocess
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from hack.testbed import Testbed, wait_for
from hack.testbed.api import Api
from hack.testbed.archive import PAUSE
from hack.testbed.node import NODE
from hack.testbed.nodes import FAKE, REAL
from muster.model.names import QUEUE_LABEL
from muster.model.resource import LEASES, PODS
from tests.support.chart.network_policies import Peer, let_through
from tests.support.cluster.admission_stream import CONNECTIONS, ENOUGH, Stream, admitted
from tests.support.cluster.helm_release import NAMESPACE, WITHIN, Release, restarts
from tests.support.cluster.kernel_connections import Connections
from tests.support.cluster.recorder import RAY_CLUSTERS, Recorder
from tests.support.cluster.rollout import Rollout
from tests.support.cluster.scene import node_of, open_scene
from tests.support.manifests.applied import pod as one_pod
from tests.support.manifests.applied import ray_cluster

_GATEWAY = "10.97.0.1"
"""The node's address on the bridge of its pods, from which the kubelet probes."""


def _api(testbed: Testbed) -> Api:
    return testbed.api()


def _on_kwok(cluster: dict[str, Any]) -> dict[str, Any]:
    """Let the pods of a RayCluster go to kwok's nodes."""
    spec = cluster["spec"]
    for group in (spec["headGroupSpec"], *spec["workerGroupSpecs"]):
        group["template"]["spec"]["tolerations"] = [{"key": FAKE, "operator": "Exists"}]
    return cluster


def test_a_pod_comes_to_the_kind_of_node_that_it_names(real: Testbed) -> None:
    """The kubelet of one node is real. Without a toleration a pod comes neither to that nor to those of kwok."""
    nodes = {node["metadata"]["name"]: node for node in _api(real).get("/api/v1/nodes")["items"]}
    runtimes = {name: node["status"]["nodeInfo"]["containerRuntimeVersion"] for name, node in nodes.items()}
    assert {name for name, runtime in runtimes.items() if runtime.startswith("containerd://")} == {NODE}
    with open_scene(real, "kinds-of-nodes", kinds=()) as scene:
        for key in (None, FAKE, REAL):
            tolerations = [{"key": key, "operator": "Exists"}] if key else []
            for scheduler in ("default-scheduler", "volcano"):
                scene.apply(_asking_for_nothing(f"{_WORDS[key]}-{scheduler}", scheduler, tolerations))
        scene.wait("those for a kind of node to have one", lambda: sum(map(bool, map(node_of, scene.pods()))) >= 4)
        scene.wait(
            "the others to be decided about", lambda: all(node_of(one) or _is_refused(one) for one in scene.pods())
        )
        came = {(pod["metadata"]["name"].partition("-")[0], node_of(pod).partition("-")[0]) for pod in scene.pods()}
    assert came == {("any", ""), ("kwok", "node"), ("real", "real")}


_WORDS = {None: "any", FAKE: "kwok", REAL: "real"}


def _asking_for_nothing(name: str, scheduler: str, tolerations: list[dict[str, str]]) -> dict[str, Any]:
    """A pod that runs wherever it comes to."""
    spec = {"schedulerName": scheduler, "tolerations": tolerations, "terminationGracePeriodSeconds": 0}
    manifest = one_pod(name, **spec)
    manifest["spec"]["containers"][0]["image"] = PAUSE
    return manifest


def _is_refused(pod: dict[str, Any]) -> bool:
    conditions = pod.get("status", {}).get("conditions", [])
    return any(seen["type"] == "PodScheduled" and seen["status"] == "False" for seen in conditions)


def test_all_replicas_are_ready_on_the_real_node(release: Release) -> None:
    """The kubelet's own probes say so, and no container had to be started twice."""
    pods = release.pods()
    assert sorted(pod["metadata"]["labels"]["app.kubernetes.io/component"] for pod in pods) == [
        *("controller", "controller", "webhook", "webhook")
    ]
    assert {pod["spec"]["nodeName"] for pod in pods} == {NODE}
    assert [restarts(pod) for pod in pods] == [0, 0, 0, 0]
    assert len(release.ready()) == 4
    for pod in pods:
        assert {"livenessProbe", "readinessProbe"} <= pod["spec"]["containers"][0].keys()


@pytest.mark.parametrize(("component", "ports"), [("webhook", (8080, 9443)), ("controller", (8080,))])
def test_a_replica_listens_on_both_families(release: Release, component: str, ports: tuple[int, ...]) -> None:
    """In a cluster of IPv6 only its pods have no other address."""
    places = [(address, port) for address in ("127.0.0.1", "::1") for port in ports]
    ask = f"import socket\nfor place in {places}:\n    socket.create_connection(place, 60).close()\nprint('all')"
    assert release.kubectl("exec", release.ready(component)[0], "--", "python3.11", "-c", ask) == "all\n"


def test_helm_test_reaches_the_webhook_behind_its_service(release: Release) -> None:
    """From a pod of muster's own image, by TLS with the authority that the Secret names."""
    assert "Phase:          Succeeded" in release.helm("test", WITHIN).stdout


def test_logs_and_metrics_are_read_where_kubectl_looks(release: Release) -> None:
    for component, metric in (
        ("webhook", "muster_webhook_reviews_total{"),
        ("controller", "leader_election_master_status{"),
    ):
        name = release.ready(component)[0]
        assert release.kubectl("logs", name).strip()
        assert metric in release.kubectl("get", "--raw", f"{release.path_of(name, 8080)}/metrics")


@pytest.mark.usefixtures("release")
def test_the_second_gang_waits_and_then_runs(real: Testbed) -> None:
    """The main job: two RayClusters, a queue with room for one, on kwok's nodes beside."""
    with open_scene(real, f"main-job-{uuid.uuid4().hex[:6]}", kinds=(RAY_CLUSTERS,)) as scene:
        queue = scene.queue(cpu="4")
        for name in ("first", "second"):
            cluster = ray_cluster(name).label(QUEUE_LABEL, queue).workers(2)
            scene.apply(_on_kwok(cluster.manifest()))
            if name == "first":
                scene.await_running("ray-first-pg", 3)
        scene.await_state("ray-second-pg", "WaitingForQuota")
        scene.await_gated("ray-second-pg", 3)
        scene.delete(RAY_CLUSTERS, "first")
        pods = scene.await_running("ray-second-pg", 3)
        assert all(node_of(pod).startswith("node-") for pod in pods)
        scene.assert_started_together("ray-second-pg", 3)


def test_its_pods_have_the_connections_that_its_network_policies_allow(
    release: Release, real: Testbed, connections: Connections, tmp_path: Path
) -> None:
    """All that the kernel saw since the pods began, the main job too. No plugin is here to refuse one: cyclonus judges.

    The apiserver is on the node, and named by its address. The pod of `helm test` is not, so it would be refused.
    """
    server = urlsplit(real.server).port
    pods = {pod["status"]["podIP"]: pod for pod in release.pods()}
    (node,) = {pod["status"]["hostIP"] for pod in pods.values()}
    named = (f"reviewsFrom[0].ipBlock.cidr={node}/32", f"apiserverTo[0].ipBlock.cidr={node}/32")
    values = ("enabled=true", *named, f"apiserverPorts={{{server}}}")
    release.helm("upgrade", "--reuse-values", *(f"--set=networkPolicy.{value}" for value in values), WITHIN)
    policies = json.loads(release.kubectl("get", "networkpolicies", "--output=json"))["items"]

    def told(peer: Peer) -> str:
        if peer.namespace:
            return peer.labels["app.kubernetes.io/component"]
        return "node" if peer.address in {node, _GATEWAY} else "another"

    calls = {
        f"{told(call.source)} to {told(call.destination)} at {call.port} ({call})": call
        for call in connections.calls({address: Peer.pod(pod) for address, pod in pods.items()})
    }
    allowed = let_through(policies, calls, tmp_path)
    assert {call.partition(" (")[0] for call in allowed} == {
        *("node to webhook at 9443", "node to webhook at 8080", "node to controller at 8080"),
        *(f"webhook to node at {server}", f"controller to node at {server}"),
    }
    assert {call.partition(" (")[0] for call in calls.keys() - allowed} == {"another to webhook at 9443"}


def test_an_upgrade_loses_no_call(release: Release, real: Testbed) -> None:
    """Every pod is replaced, one after the other: none is lost before, while old and new ones serve, and after."""
    before = set(release.ready())
    with Rollout(release) as rollout, Stream(real, rollout.is_ending) as stream:
        stream.go_on()
        began = time.monotonic()
        release.helm("upgrade", "--reuse-values", *_IMPATIENT, "--wait", WITHIN)
        phases = rollout.await_end()
        stream.go_on()
    _assert_none_lost(stream)
    assert all(stream.calls(*times) for times in ((began, phases.beside), (phases.beside, phases.new)))
    ends = rollout.ends()
    assert len(ends) == 2
    assert all(stream.busy(*times) > _MOST for times in ends)
    wait_for("all to be ready", lambda: len(release.ready()) == 4)
    assert before.isdisjoint(release.ready())


def _assert_none_lost(stream: Stream) -> None:
    """But for one that came on an idle connection just as its replica closed that (docs/design-notes.md)."""
    assert [failure for failure in stream.failures if not _CLOSED.search(failure)] == []
    assert len(stream.failures) <= 1


# What Go's client says of it, and an apiserver of its webhook.
_CLOSED = re.compile("write: broken pipe|: EOF|connection reset by peer|server closed idle connection")


# An upgrade and a drain end replicas, too, each in a test of its own.
@pytest.mark.long
def test_an_evicted_replica_loses_no_call(release: Release, real: Testbed) -> None:
    """It answers most of them, until it is told to end, and others are under way until it has ended."""
    release.kubectl("wait", "--for=jsonpath={.status.disruptionsAllowed}=1", "pdb/muster-webhook", WITHIN)
    with Stream(real, lambda: True) as stream:
        name = _answering(release, stream)["metadata"]["name"]
        eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
        began = time.monotonic()
        _api(real).create(f"/api/v1/namespaces/muster-system/pods/{name}/eviction", eviction)
        wait_for("two others to serve", lambda: len(set(release.ready("webhook")) - {name}) == 2)
        release.kubectl("wait", "--for=delete", f"pod/{name}", WITHIN)
        ended = time.monotonic()
        stream.go_on()
    _assert_none_lost(stream)
    assert stream.calls(began, ended)
    assert stream.busy(began, ended) > _MOST


# Of the time in which a replica ends: calls are under way. One that ends without answering hurts them, and no others.
_MOST = 0.5


def _answering(release: Release, stream: Stream) -> dict[str, Any]:
    """The webhook to which most of the stream's calls go, by its own count of them."""
    before = release.reviews()
    stream.go_on()
    after = release.reviews()
    most = max(after.keys() & before.keys(), key=lambda name: after[name] - before[name])
    assert after[most] - before[most] >= ENOUGH / 2
    return next(pod for pod in release.pods("webhook") if pod["metadata"]["name"] == most)


def test_a_killed_webhook_comes_back_and_then_no_call_fails(release: Release, real: Testbed) -> None:
    """Until the Service knows of it calls may fail, which their operators repeat; plain pods never notice."""
    with Stream(real) as stream:
        victim = _answering(release, stream)
        name, lives = victim["metadata"]["name"], restarts(victim)
        assert stream.failures == []
        release.signal(victim, signal.SIGKILL)
        wait_for(
            "its second life",
            lambda: [p for p in release.pods("webhook") if p["metadata"]["name"] == name and restarts(p) > lives],
        )
        wait_for("both to be ready", lambda: len(release.ready("webhook")) == 2)
    assert not [failure for failure in stream.failures if failure.startswith("plain")]
    with Stream(real) as after:
        after.go_on()
    assert after.failures == []


def test_a_killed_leader_is_followed_when_its_lease_is_over(release: Release, real: Testbed) -> None:
    """Not sooner, by the times that both leaders wrote; how much later says how busy the machine is."""
    leader = _leader(release)
    with Recorder(real, NAMESPACE, (LEASES,)) as recorder:
        release.signal(leader, signal.SIGKILL)
        killed = _lease(real)
        wait_for("another holder", lambda: _lease(real)["holderIdentity"] != killed["holderIdentity"])
        recorder.settle()
        specs = [seen.object["spec"] for seen in recorder.history(LEASES) if seen.name == "muster-controller"]
    last = [spec for spec in specs if spec["holderIdentity"] == killed["holderIdentity"]][-1]
    next_one = specs[specs.index(last) + 1]
    assert next_one["leaseTransitions"] == last["leaseTransitions"] + 1
    assert last["leaseDurationSeconds"] == 15
    # Others see a renewal when they look, every 2.4 s, and take the lease at their first look after the 15 s.
    assert _moment(next_one["acquireTime"]) - _moment(last["renewTime"]) >= timedelta(seconds=15)


def _lease(real: Testbed) -> dict[str, Any]:
    spec: dict[str, Any] = _api(real).get(LEASES.path(NAMESPACE, "muster-controller"))["spec"]
    return spec


def _moment(stamp: str) -> datetime:
    return datetime.fromisoformat(stamp)


def test_a_hung_replica_leaves_the_service_and_is_restarted(release: Release, real: Testbed) -> None:
    """Calls that come to it fail until the Service leaves it out, then one on each connection that is there already."""
    with Stream(real) as stream:
        webhook, controller = _answering(release, stream), _leader(release)
        hung = {pod["metadata"]["name"]: restarts(pod) for pod in (webhook, controller)}
        assert stream.failures == []
        for pod in (webhook, controller):
            release.signal(pod, signal.SIGSTOP)
        wait_for("a call to fail", lambda: stream.failures)
        wait_for("the Service to leave it out", lambda: len(release.ready("webhook")) == 1)
        left_out = time.monotonic()
        stream.go_on(10)
        wait_for("both to be started anew", lambda: _started_anew(release, hung))
        wait_for("all to be ready", lambda: len(release.ready()) == 4)
    assert [failure for failure in stream.failures if not failure.startswith("gang: ")] == []
    assert all("failed calling webhook" in failure for failure in stream.failures)
    assert sum(call.began > left_out for call in stream.record if call.wrong) <= CONNECTIONS
    with Stream(real) as after:
        after.go_on()
    assert after.failures == []


# A process that hangs is found out after a quarter of a minute, and one that a busy machine makes slow is left alone.
_IMPATIENT = tuple(
    f"--set={process}.probes.liveness.{name}={seconds}"
    for process in ("webhook", "controller")
    for name, seconds in (
        ("periodSeconds", 1),
        ("timeoutSeconds", 8),
        ("failureThreshold", 2),
        ("terminationGracePeriodSeconds", 1),
    )
)


def _leader(release: Release) -> dict[str, Any]:
    def holders() -> list[dict[str, Any]]:
        held_by = _lease(release.testbed)["holderIdentity"]
        return [pod for pod in release.pods("controller") if held_by.startswith(pod["metadata"]["name"])]

    return wait_for("a leader", holders)[0]


def _started_anew(release: Release, hung: dict[str, int]) -> bool:
    """Whether each of these pods has a container more than it had."""
    now = {pod["metadata"]["name"]: restarts(pod) for pod in release.pods()}
    return all(now[name] == count + 1 for name, count in hung.items())


def test_an_upgrade_that_runs_out_of_memory_hurts_nobody_and_is_rolled_back(release: Release, real: Testbed) -> None:
    """The old replicas serve as long as no new one is ready; helm says that it failed, and goes back."""
    serving = set(release.ready("webhook"))
    small = [f"--set=webhook.resources.{kind}.memory=24Mi" for kind in ("requests", "limits")]

    def killed() -> bool:
        states = [
            status.get(when, {}).get("terminated", {}).get("reason")
            for pod in release.pods("webhook")
            for status in pod["status"].get("containerStatuses", [])
            for when in ("state", "lastState")
        ]
        return "OOMKilled" in states

    with Stream(real) as stream:
        failed = release.helm("upgrade", "--reuse-values", *small, "--wait", "--timeout=5s", check=False)
        assert failed.returncode
        wait_for("a new replica to be killed for its memory", killed)
        assert serving <= set(release.ready("webhook"))
        stream.go_on()
        release.helm("rollback", "--wait", WITHIN)
        stream.go_on()
    assert stream.failures == []
    assert not killed()
    assert set(release.ready("webhook")) == serving


def test_a_drain_leaves_a_replica_that_serves_until_somebody_insists(
    release: Release, real: Testbed, tmp_path: Path
) -> None:
    """The disruption budget refuses the last eviction, for no other node could take the pods; no call is lost."""
    release.kubectl("wait", "--for=jsonpath={.status.disruptionsAllowed}=1", "pdb", "--all", WITHIN)
    before = release.ready("webhook")
    with Stream(real) as stream, _draining(real, tmp_path / "said") as said:
        refused = re.compile(r'/"muster-webhook-.*: Cannot evict pod as it would violate the pod.s disruption budget')
        wait_for("one to go", lambda: len(_on_the_node(release, before)) == 1)
        assert stream.calls()
        wait_for("the other eviction to be refused", lambda: refused.search(said.read_text()))
        stream.go_on()
    _assert_none_lost(stream)
    assert len(release.ready("webhook")) == 1


_DRAIN = ("--ignore-daemonsets", "--delete-emptydir-data")


@contextmanager
def _draining(testbed: Testbed, said: Path) -> Iterator[Path]:
    """Drain the node while the block lasts; what kubectl says is in the file."""
    with said.open("wb") as output:
        argv = [str(testbed.program("kubectl")), "drain", NODE, *_DRAIN]
        environment = os.environ | testbed.environment()
        with subprocess.Popen(argv, env=environment, stdout=output, stderr=subprocess.STDOUT) as draining:
            try:
                yield said
            finally:
                draining.kill()


def _on_the_node(release: Release, names: list[str]) -> list[str]:
    """Of these pods those that still are, being deleted or not."""
    found = {pod["metadata"]["name"] for pod in _api(release.testbed).get(PODS.path(NAMESPACE))["items"]}
    return [name for name in names if name in found]


def test_drained_and_back(release: Release, real: Testbed) -> None:
    """With its one node away muster is away: plain pods do not notice, gangs' pods are refused until it is back."""
    api = _api(real)
    real.kubectl("drain", NODE, *_DRAIN, "--disable-eviction", WITHIN)
    assert release.ready() == []
    assert admitted(api, gang=False) == ""
    assert "failed calling webhook" in admitted(api, gang=True)
    real.kubectl("uncordon", NODE)
    wait_for("all to be ready", lambda: len(release.ready()) == 4)
    wait_for("a pod to be admitted", lambda: not admitted(api, gang=True))
