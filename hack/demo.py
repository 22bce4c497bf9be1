"""`make demo`: muster's main job on a real control plane on this machine, told as it happens.

Nothing is staged: every answer shown comes from the real kube-apiserver, scheduler and KubeRay operator, and each step
waits until the cluster really is in the state that it tells of. SCHEDULER=kubernetes, or coscheduling: without Volcano.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from hack.testbed import Testbed, TestbedError
from hack.testbed.kubernetes import DEFAULT_KUBERNETES
from hack.testbed.muster import gates_of_a_new_pod, install
from hack.testbed.operators import ray_sample
from hack.testbed.waiting import wait_for
from muster.cli.migrate_queues import gang_queue_of
from muster.model.gang_states import GangState
from muster.model.names import GATE, GROUP_NAME, STATE
from muster.model.objects import Queue, convert
from muster.schedulers import PRODUCTS


@dataclass(frozen=True, slots=True)
class Setting:
    """The scheduler of gangs in the demo: its name for people, the testbed's parts, and the chart's values."""

    title: str
    addons: tuple[str, ...]
    kubernetes: str
    values: Mapping[str, str]


_WITHOUT_VOLCANO = {"queues.source": "muster"}
SETTINGS = {
    "volcano": Setting("Volcano", ("volcano",), DEFAULT_KUBERNETES, {}),
    "coscheduling": Setting(
        "scheduler-plugins",
        ("coscheduling",),
        DEFAULT_KUBERNETES,
        {"schedulers": "{coscheduling}", **_WITHOUT_VOLCANO},
    ),
    "kubernetes": Setting(
        "Kubernetes 1.37 with its own PodGroups", (), "1.37", {"schedulers": "{kubernetes}", **_WITHOUT_VOLCANO}
    ),
}
"""Settings by the product that places gangs."""


class Story:
    """The demo on one testbed; `told` collects what the summary repeats."""

    def __init__(self, testbed: Testbed, folder: Path, product: str = "volcano") -> None:
        self.testbed = testbed
        self.product = product
        self.groups = PRODUCTS[product]().resource.full_name if product != "volcano" else "podgroups"
        self.folder = folder
        self.told: list[str] = []

    def run(self) -> None:
        """Tell the whole story; raises TestbedError when something does not come out as told."""
        queue, first = self._sample()
        name = first["metadata"]["name"]
        second, third = _renamed(first, "test-cluster-1", workers=2), _renamed(first, "test-cluster-2", workers=4)

        _say("Install muster with helm. KubeRay runs without its batch-scheduler flag, and stays so.")
        values = {"image.repository": "muster", "webhook.shutdownDelaySeconds": "0", **SETTINGS[self.product].values}
        settings = " ".join(f"--set {name}={value}" for name, value in values.items())
        _command(f"helm install muster charts/muster --namespace muster-system --create-namespace {settings}")
        started = time.monotonic()
        install(
            self.testbed,
            values=values,
            webhooks=2,
            controllers=2,
        ).wait_ready()
        wait_for("the apiserver to have muster hold a gang's pod", self._holds)
        print(f"2 webhooks and 2 controllers are ready after {time.monotonic() - started:.1f} s")

        _say("KubeRay's own sample: a queue of 4 cpu and 6Gi, and a cluster of 3 pods in it (3 cpu, 4Gi).")
        self._apply(queue, first)
        self._until(f"{name} to run", lambda: self._running(name))
        self._show("get", "pods")
        self._show("get", self.groups)
        self._tell(f"{name}: 3 pods in one gang, Running")

        _say("A cluster that needs 5 cpu can never run in that queue. It is refused at once, with numbers:")
        refusal = self._apply(third, refused=True)
        if "needs cpu 5" not in refusal:
            raise TestbedError(f"expected a refusal with numbers, kubectl said: {refusal}")
        self._tell(f"{third['metadata']['name']}: refused at admission")

        _say("A second cluster of 3 cpu fits the queue, but not together with the first: it waits, whole.")
        self._apply(second)
        waiting = second["metadata"]["name"]
        self._until(f"{waiting} to say why it waits", lambda: "WaitingForQuota" in self._events(waiting))
        self._show("get", "pods")
        self._show("get", self.groups)
        print("Why does it wait?")
        _command(f"kubectl events --for raycluster/{waiting} | grep WaitingForQuota")
        print("\n".join(line for line in self._events(waiting).splitlines() if "WaitingForQuota" in line))
        self._tell(f"{waiting}: 3 pods held by their gates; none placed, though one would fit")

        _say("The first cluster is deleted. Nothing else is done.")
        self._show("delete", "raycluster", name)
        started = time.monotonic()
        self._until(f"{waiting} to run", lambda: self._running(waiting))
        took = time.monotonic() - started
        self._show("get", "pods")
        self._show("get", self.groups)
        self._tell(f"{waiting}: Running {took:.0f} s after {name} was deleted")

    def _holds(self) -> bool:
        return GATE in gates_of_a_new_pod(self.testbed.api(), gang=True)

    def _sample(self) -> tuple[dict[str, Any], dict[str, Any]]:
        queue, cluster = ray_sample()
        if self.product != "volcano":
            queue = gang_queue_of(convert(queue, Queue))
        return queue, cluster

    def _apply(self, *manifests: dict[str, Any], refused: bool = False) -> str:
        names = "-".join(manifest["metadata"]["name"] for manifest in manifests)
        path = self.folder / f"{names}.yaml"
        path.write_text(yaml.safe_dump_all(manifests, sort_keys=False))
        _command(f"kubectl apply -f {path.name}")
        done = self.testbed.kubectl("apply", "-f", str(path), check=not refused)
        text = (done.stdout + done.stderr).strip().replace(str(path), path.name)
        print(text)
        if refused and done.returncode == 0:
            raise TestbedError(f"{names} was accepted, but can never run")
        return text

    def _show(self, *arguments: str) -> None:
        _command(f"kubectl {' '.join(arguments)}")
        print(self.testbed.kubectl(*arguments).stdout.strip())

    def _events(self, cluster: str) -> str:
        return self.testbed.kubectl("events", "--for", f"raycluster/{cluster}").stdout

    def _running(self, cluster: str) -> bool:
        found = self.testbed.kubectl("get", self.groups, "-o", "json", check=False)
        groups = json.loads(found.stdout)["items"] if found.returncode == 0 else []
        return any(self._is_of(group, f"ray-{cluster}-pg") and self._runs(group) for group in groups)

    def _is_of(self, group: dict[str, Any], name: str) -> bool:
        meta = group["metadata"]
        return bool(name == (meta["name"] if self.product == "volcano" else meta["annotations"].get(GROUP_NAME)))

    def _runs(self, group: dict[str, Any]) -> bool:
        if self.product == "volcano":
            return bool(group.get("status", {}).get("phase") == "Running")
        return bool(group["metadata"]["annotations"].get(STATE) == GangState.RUNNING)

    def _until(self, what: str, condition: Callable[[], bool]) -> None:
        print(f"(waiting for {what})")
        wait_for(what, condition)

    def _tell(self, line: str) -> None:
        self.told.append(line)


def main() -> None:
    """Run the demo; exits 1 with one line when it does not come out as told."""
    parser = argparse.ArgumentParser(prog="python -m hack.demo", description=__doc__)
    parser.add_argument("--keep", action="store_true", help="leave everything running, and say how to talk to it")
    parser.add_argument("--scheduler", choices=list(SETTINGS), default="volcano", help="what places the gangs")
    arguments = parser.parse_args()
    begun = time.monotonic()
    try:
        with tempfile.TemporaryDirectory(prefix="muster-demo-") as folder:
            _demo(Path(folder), begun, arguments.scheduler, keep=arguments.keep)
    except (TestbedError, subprocess.SubprocessError) as error:
        sys.exit(f"demo: {error}")


def _demo(folder: Path, begun: float, product: str, *, keep: bool) -> None:
    setting = SETTINGS[product]
    _say(f"Start a real control plane: etcd, kube-apiserver, {setting.title}, KubeRay, kwok nodes; no containers.")
    parts = [*setting.addons, "kuberay"]
    testbed = Testbed.start(parts=parts, kubernetes=setting.kubernetes, detached=keep, progress=print)
    finished = False
    try:
        story = Story(testbed, folder, product)
        story.run()
        finished = True
    finally:
        if not (keep and finished):
            _say("Clean up.")
            testbed.stop()
            print("every process is stopped")
    print()
    print(f"Summary, after {time.monotonic() - begun:.0f} s:")
    for line in story.told:
        print(f"  - {line}")
    if keep:
        print()
        for line in _how_to_talk(testbed):
            print(line)


def _how_to_talk(testbed: Testbed) -> Iterator[str]:
    yield "It is still running. To talk to it:"
    yield f"  .venv/bin/python -m hack.testbed kubectl --state {testbed.state} get pods"
    yield f"  eval $(.venv/bin/python -m hack.testbed env --state {testbed.state})"
    yield "To end it:"
    yield f"  .venv/bin/python -m hack.testbed down --state {testbed.state}"


def _renamed(cluster: dict[str, Any], name: str, *, workers: int) -> dict[str, Any]:
    copy: dict[str, Any] = json.loads(json.dumps(cluster))
    copy["metadata"]["name"] = name
    group = copy["spec"]["workerGroupSpecs"][0]
    group["replicas"] = group["minReplicas"] = group["maxReplicas"] = workers
    return copy


def _say(text: str) -> None:
    print(f"\n=== {text}", flush=True)


def _command(text: str) -> None:
    print(f"$ {text}", flush=True)


if __name__ == "__main__":
    main()
