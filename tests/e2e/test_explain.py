"""`muster explain`, `queues`, `watch` and `page` on the real cluster, as an administrator and as a tenant."""

import html
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

from controller.events import REPORTING_CONTROLLER
from hack.testbed import wait_for
from muster.model.names import GATE, QUEUE_LABEL, SCHEDULER_LABEL
from muster.model.resource import EVENTS, POD_GROUPS, PODS, QUEUES
from muster.workloads.ray_parents import RAY_JOB
from tests.support.cluster.grants import account, grant, on
from tests.support.cluster.propagation import await_right
from tests.support.cluster.recorder import RAY_CLUSTERS
from tests.support.cluster.scene import PATIENCE, Scene, gates, phase
from tests.support.manifests import applied
from tests.support.manifests.applied import pytorch_job, ray_cluster
from tests.support.pages.blocks import block
from tests.support.pages.transcripts import alike
from tests.support.pages.walkthrough import Shell

Muster = Callable[..., subprocess.CompletedProcess[str]]

MUSTER = [sys.executable, "-m", "muster.cli"]


@pytest.fixture
def muster_command(scene: Scene) -> Muster:
    """Run `muster` in the scene's namespace, as the administrator or with another kubeconfig."""

    def run(*args: str, kubeconfig: Path = scene.testbed.kubeconfig) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*MUSTER, *args, f"--namespace={scene.namespace}", f"--kubeconfig={kubeconfig}"],
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )

    return run


def explained(muster_command: Muster, *words: str, **how: Path) -> dict[str, Any]:
    """The one entry of `muster explain … -o json`."""
    done = muster_command("explain", *words, "--output=json", **how)
    assert done.returncode == 0, done.stderr
    (entry,) = json.loads(done.stdout)
    return dict(entry)


@pytest.fixture
def two(scene: Scene) -> str:
    """A gang that runs and one that waits for it, in a queue of the test's own; the name of the queue."""
    queue = scene.queue(cpu="4")
    for name in ("first", "second"):
        scene.apply(ray_cluster(name).label(QUEUE_LABEL, queue).workers(2))
        if name == "first":
            scene.await_running("ray-first-pg", 3)
    scene.await_state("ray-second-pg", "WaitingForQuota")
    scene.await_event("second", "WaitingForQuota")
    # Commands that are compared look one after the other.
    scene.wait("Volcano to see the second PodGroup", lambda: phase(scene.pod_group("ray-second-pg")) == "Pending")
    return queue


def test_a_waiting_and_a_running_gang_are_explained(two: str, muster_command: Muster) -> None:
    """Who waits hears what it needs, what is free and who holds it; who runs, what it holds."""
    waiting = explained(muster_command, "--ledger", "raycluster/second")
    message = f'needs cpu 3 and memory 3Gi; queue "{two}" has cpu 1 free of cpu 4; position 1 of 1 waiting'
    assert (waiting["state"], waiting["message"]) == ("WaitingForQuota", message)
    assert waiting["position"] == {"position": 1, "waiting": 1}
    assert waiting["needs"] == {"cpu": "3", "memory": "3Gi"}
    assert waiting["holds"] is None
    assert waiting["queues"][0] == {
        "name": two,
        "limit": {"cpu": "4"},
        "used": {"cpu": "3", "memory": "3Gi"},
        "free": {"cpu": "1"},
    }
    assert [(one["name"], one["claim"]["cpu"]) for one in waiting["holders"] if one["queue"] == two] == [
        ("ray-first-pg", "3")
    ]
    counts = {
        role["name"]: (role["replicas"], role["there"], role["gated"], role["bound"]) for role in waiting["roles"]
    }
    assert counts == {"headgroup": (1, 1, 1, 0), "worker": (2, 2, 2, 0)}
    assert ("WaitingForQuota", message) in [(event["reason"], event["note"]) for event in waiting["events"]]
    assert waiting["unknown"] == []

    alone = explained(muster_command, "raycluster/second")
    of_others = ("position", "when", "queues", "holders")
    assert {key: value for key, value in alone.items() if key not in of_others} == {
        key: value for key, value in waiting.items() if key not in of_others
    }

    running = explained(muster_command, "rayclusters.ray.io", "first")
    assert (running["state"], running["holds"]["cpu"]) == ("Running", "3")
    assert {role["name"]: (role["gated"], role["bound"]) for role in running["roles"]} == {
        "headgroup": (0, 1),
        "worker": (0, 2),
    }


def test_the_page_of_the_command_line_shows_what_is_printed(scene: Scene, tmp_path: Path) -> None:
    """Without the events, which differ. The reader's own namespace is `default`."""
    command, *shown = block("docs/cli.md", "$ muster explain").splitlines()
    queue = "kuberay-test-queue"
    scene.adopt_queue(queue)
    scene.apply(applied.queue(queue, cpu="4", memory="6Gi"))
    scene.await_queue(queue)
    for name in ("test-cluster-0", "test-cluster-1"):
        cluster = ray_cluster(name).label(QUEUE_LABEL, queue).label(SCHEDULER_LABEL, "volcano")
        scene.apply(cluster.head(memory="2Gi").workers(2))
        scene.await_event(name, "Admitted" if name.endswith("0") else "WaitingForQuota")
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(scene.testbed.kubeconfig.read_text())
    reader = Shell.on(scene.testbed, {"default": scene.namespace})
    reader.run(f"export KUBECONFIG={kubeconfig}")
    reader.obey(f"kubectl config set-context --current --namespace {scene.namespace}")
    said = reader.obey(command.removeprefix("$ ")).partition("\n  LAST SEEN")[0]
    assert [alike(line) for line in said.splitlines() if line] == [alike(line) for line in shown if line]


def test_a_pod_and_a_pod_group_stand_for_their_workload(scene: Scene, two: str, muster_command: Muster) -> None:
    """Who looks at a pod that hangs asks about that pod."""
    del two
    pod = scene.pods("ray-second-pg")[0]["metadata"]["name"]
    for words in (["pod", pod], ["podgroup/ray-second-pg"]):
        assert explained(muster_command, *words)["workload"]["name"] == "second"


def test_the_same_event_stands_on_the_pod_group(scene: Scene, two: str) -> None:
    """`kubectl describe podgroup` shows why, as `kubectl describe raycluster` does."""
    del two
    why = scene.await_event("second", "WaitingForQuota")

    def on_group() -> list[str]:
        """Volcano says things there as well."""
        found = (event for event in scene.recorder.now(EVENTS) if event["regarding"]["name"] == "ray-second-pg")
        return [event["note"] for event in found if event.get("reportingController") == REPORTING_CONTROLLER]

    scene.wait("the event on the PodGroup", lambda: why in on_group())
    assert why in scene.kubectl("describe", POD_GROUPS.full_name, "ray-second-pg").stdout


def test_a_tenant_hears_what_he_may_know_and_which_rights_are_missing(
    scene: Scene, two: str, muster_command: Muster
) -> None:
    """With the rights of a usual role in one namespace the answer is the controller's own; the rest is said."""
    kubeconfig = tenant(scene)
    waiting = explained(muster_command, "raycluster/second", kubeconfig=kubeconfig)
    assert waiting["state"] == "WaitingForQuota"
    assert "position 1 of 1 waiting" in waiting["message"]
    assert [role["gated"] for role in waiting["roles"]] == [1, 2]
    assert waiting["position"] is None
    assert "cannot list queues.scheduling.volcano.sh: limits and free resources are unknown" in waiting["unknown"]
    waiting = explained(muster_command, "--ledger", "raycluster/second", kubeconfig=kubeconfig)
    unknown = "\n".join(waiting["unknown"])
    assert "cannot list queues.scheduling.volcano.sh: limits and free resources are unknown" in unknown
    where = f'can list only in "{scene.namespace}", not in all namespaces: '
    (line,) = [one for one in waiting["unknown"] if one.startswith(where)]
    assert {POD_GROUPS.full_name, RAY_CLUSTERS.full_name} < set(re.findall(r"[\w.]+", line))
    (line,) = [one for one in waiting["unknown"] if one.startswith(f'cannot list in "{scene.namespace}": ')]
    assert "pytorchjobs.kubeflow.org" in line
    refused = muster_command("explain", "pytorchjob/any", kubeconfig=kubeconfig)
    assert refused.returncode == 2
    assert "Forbidden" in refused.stderr
    assert "Traceback" not in refused.stderr
    queues = muster_command("queues", kubeconfig=kubeconfig)
    assert (queues.returncode, two in queues.stdout) == (0, False)
    assert "cannot list queues.scheduling.volcano.sh" in queues.stderr


def tenant(scene: Scene) -> Path:
    """The kubeconfig of somebody who may look at pods, events, PodGroups and RayClusters of the namespace alone."""
    scene.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "tenant"}})
    user = f"system:serviceaccount:{scene.namespace}:tenant"
    looks = (PODS, POD_GROUPS, RAY_CLUSTERS, EVENTS)
    rules = [on(resource, "get", "list", "watch") for resource in looks]
    grant(scene.api, "looks", rules, account(scene.namespace, "tenant"), namespace=scene.namespace)
    for resource in looks:
        await_right(scene, user, "list", resource.full_name)
    return scene.testbed.service_account_kubeconfig(scene.namespace, "tenant")


def test_a_ray_job_is_followed_to_its_cluster(scene: Scene, muster_command: Muster) -> None:
    """The gang is the RayCluster's; who applied a RayJob knows no other name."""
    queue = scene.queue(cpu="9")
    cluster = ray_cluster("unused").workers(2).manifest()
    job = {
        "apiVersion": "ray.io/v1",
        "kind": "RayJob",
        "metadata": {"name": "train"},
        "spec": {"entrypoint": "true", "rayClusterSpec": cluster["spec"]},
    }
    scene.apply(job)
    scene.wait("its cluster's pods", lambda: len(scene.pods()) >= 3)
    plain = explained(muster_command, "rayjob/train")
    assert (plain["workload"]["kind"], plain["state"]) == ("RayCluster", "NotManaged")
    assert "does not ask for gang scheduling" in plain["message"]
    scene.delete(RAY_JOB.resource, "train")
    gone = muster_command("explain", "rayjob/train")
    assert (gone.returncode, gone.stderr) == (
        2,
        f'muster explain: no RayJob "train" in namespace "{scene.namespace}"\n',
    )
    scene.wait("no pods", lambda: not scene.pods())
    job["metadata"] = {"name": "labelled", "labels": {QUEUE_LABEL: queue}}
    scene.apply(pytorch_job("holder").master(cpu="8").policy(queue=queue))
    scene.await_running("holder", 1)
    scene.apply(job)
    scene.wait("its cluster's pods", lambda: sum(gates(pod) == [GATE] for pod in scene.pods()) == 3)
    entry = explained(muster_command, "rayjob/labelled")
    assert entry["workload"]["name"].startswith("labelled-")
    assert (entry["scheduling"]["queue"], entry["needs"]["cpu"]) == (queue, "3")
    assert explained(muster_command, "--ledger", "rayjob/labelled")["holders"][0]["name"] == "holder"
    scene.delete(RAY_JOB.resource, "labelled")


def test_kubectl_finds_muster(scene: Scene, two: str, tmp_path: Path) -> None:
    """A program called kubectl-muster on the PATH is `kubectl muster`, and kubectl_complete-muster completes it."""
    complete = f"{sys.executable} -c 'from muster.cli.completion import complete; complete()'"
    for name, program in (("kubectl-muster", " ".join(MUSTER)), ("kubectl_complete-muster", complete)):
        plugin = tmp_path / name
        plugin.write_text(f'#!/bin/sh\nexec {program} "$@"\n')
        plugin.chmod(0o755)
    environment = {**os.environ, **scene.testbed.environment()}
    environment["PATH"] = f"{tmp_path}:{environment['PATH']}"
    done = subprocess.run(
        ["kubectl", "muster", "queues"], env=environment, capture_output=True, text=True, timeout=PATIENCE, check=True
    )
    head, *lines = done.stdout.splitlines()
    assert head.split() == ["QUEUE", "STATE", "GANGS", "WAITING", "RESOURCE", "USED", "/", "LIMIT"]
    (row,) = (line.split() for line in lines if two in line.split())
    assert row[row.index(two) + 1 :][:7] == ["Open", "1", "1", "cpu", "3", "/", "4"]
    assert row[-1] == "75%"
    asked = ["kubectl", "__complete", "muster", "gangs", "--wait"]
    done = subprocess.run(asked, env=environment, capture_output=True, text=True, timeout=PATIENCE, check=True)
    assert done.stdout.splitlines() == ["--waiting\tonly gangs that hold nothing", ":4"]


def test_watch_shows_changes_and_ends_with_ctrl_c(scene: Scene, two: str, tmp_path: Path) -> None:
    shown = tmp_path / "shown"
    with shown.open("w") as out:
        watching = subprocess.Popen(
            [*MUSTER, "watch", f"--kubeconfig={scene.testbed.kubeconfig}"], stdout=out, stderr=subprocess.STDOUT
        )
    try:
        gang = rf"{scene.namespace} +raycluster/second +\S+ +\S+"
        wait_for("the waiting gang", lambda: re.search(f"{gang} +WaitingForQuota", shown.read_text()), PATIENCE)
        scene.patch(QUEUES, two, {"spec": {"capability": {"cpu": "6"}}})
        wait_for("the change", lambda: re.search(f"{gang} +Running", shown.read_text()), PATIENCE)
    finally:
        watching.send_signal(signal.SIGINT)
        code = watching.wait(PATIENCE)
    assert code == 0, shown.read_text()[-2000:]
    assert "Traceback" not in shown.read_text()


def test_the_page_shows_who_waits_and_why_and_ends_with_ctrl_c(scene: Scene, two: str, tmp_path: Path) -> None:
    """And prints what docs/page.md shows, but for the port and the secret."""
    command, *shown = block("docs/page.md", "$ muster page").splitlines()
    with (tmp_path / "said").open("w") as errors:
        serving = subprocess.Popen(
            [*MUSTER, *command.removeprefix("$ muster ").split(), f"--kubeconfig={scene.testbed.kubeconfig}"],
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
    try:
        assert serving.stdout is not None
        printed = serving.stdout.readline().strip()
        address = f"{printed}?namespace={scene.namespace}"
        wait_for("the waiting gang", lambda: "ray-second-pg" in _page(address), PATIENCE)
        assert f'queue "{two}" has cpu 1' in _page(address)
        of_first, of_second = (
            f"{address.partition('?')[0]}gang?namespace={scene.namespace}&name=ray-{name}-pg"
            for name in ("first", "second")
        )
        wait_for("the event of the waiting gang", lambda: "<b>WaitingForQuota</b>" in _page(of_second), PATIENCE)
        wait_for("the nodes of the running gang", lambda: "3 of 3 pods placed on a node" in _page(of_first), PATIENCE)
        assert f'<b>Admitted</b>: in queue "{two}"' in _page(of_first)
    finally:
        serving.send_signal(signal.SIGINT)
        serving.communicate(timeout=PATIENCE)
    said = (tmp_path / "said").read_text()
    assert serving.returncode == 0, said
    reading, *rest = said.splitlines()
    own = re.compile(r":\d{4,5}/[\w-]{32}/|https://[\d.]+:\d+$")
    assert [own.sub("OWN", line) for line in (reading, printed, *rest)] == [own.sub("OWN", line) for line in shown]


def _page(address: str) -> str:
    with urlopen(address, timeout=PATIENCE) as answer:  # noqa: S310 - loopback
        return html.unescape(answer.read().decode())
