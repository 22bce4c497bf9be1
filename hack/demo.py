"""`make demo`: muster's main job on a real control plane on this machine, or on a cluster that is there.

Nothing is staged: every answer comes from the real kube-apiserver, scheduler and KubeRay operator, and each step waits
until the cluster is in the state that it shows. `--scheduler kubernetes`, or coscheduling: without Volcano. With
`--context` the same story runs on the cluster of a kubeconfig, with the scheduler that muster has there.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from hack.demo_context import NAME, Existing, find
from hack.testbed import PATIENCE, Testbed, TestbedError
from hack.testbed.kubernetes import DEFAULT_KUBERNETES
from hack.testbed.muster import gates_of_a_new_pod, install
from hack.testbed.operators import ray_sample
from hack.testbed.waiting import wait_for
from muster.cli.migrate_queues import gang_queue_of
from muster.model.gang_states import GangState
from muster.model.names import GATE, GROUP_NAME, STATE
from muster.model.objects import Queue, convert
from muster.schedulers import PRODUCTS

_CHECKOUT = Path(__file__).parents[1]


@dataclass(frozen=True, slots=True)
class Setting:
    """The scheduler of gangs in the demo: its name for people, the testbed's parts, and the version of Kubernetes."""

    title: str
    addons: tuple[str, ...]
    kubernetes: str = DEFAULT_KUBERNETES


SETTINGS = {
    "volcano": Setting("Volcano", ("volcano",)),
    "coscheduling": Setting("scheduler-plugins", ("coscheduling",)),
    "kubernetes": Setting("Kubernetes 1.37 with its own PodGroups", (), "1.37"),
}
"""Settings by the product that places gangs."""


class OwnCluster:
    """A testbed, on which the demo installs muster."""

    command, queue, patience = "kubectl", "", PATIENCE

    def __init__(self, testbed: Testbed, product: str) -> None:
        self.product = product
        self.gang_queues = product != "volcano"
        self._testbed = testbed
        self._values = {"schedulers": f"{{{product}}}", "queues.source": "muster"} if self.gang_queues else {}

    def kubectl(self, *args: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run the testbed's kubectl."""
        return self._testbed.kubectl(*args, check=check)

    def ready(self) -> None:
        """Install muster with helm, and wait until a pod of a gang is held."""
        _say("Install muster with helm. KubeRay runs without its batch-scheduler flag, and stays so.")
        values = {"image.repository": "muster", "webhook.shutdownDelaySeconds": "0", **self._values}
        settings = " ".join(f"--set {name}={value}" for name, value in values.items())
        _command(f"helm install muster charts/muster --namespace muster-system --create-namespace {settings}")
        started = time.monotonic()
        install(self._testbed, values=values, webhooks=2, controllers=2).wait_ready()
        api = self._testbed.api()
        wait_for("the apiserver to have muster hold a gang's pod", lambda: GATE in gates_of_a_new_pod(api, gang=True))
        print(f"2 webhooks and 2 controllers are ready after {time.monotonic() - started:.1f} s")


class Story:
    """The demo on one cluster; `summary` collects the lines that it repeats at its end."""

    def __init__(self, place: OwnCluster | Existing, folder: Path) -> None:
        self.place = place
        # The short name is clear where the demo knows that there is one kind of PodGroups.
        short = isinstance(place, OwnCluster) and self.place.product == "volcano"
        self.groups = "podgroups" if short else PRODUCTS[self.place.product]().resource.full_name
        self.folder = folder
        self.summary: list[str] = []

    def run(self) -> None:
        """Run the whole story; raises TestbedError when a step has another outcome."""
        queue, first, second, third = sample(self.place.queue, gang_queues=self.place.gang_queues)
        name = first["metadata"]["name"]
        self.place.ready()

        _say("KubeRay's own sample: a queue of 4 cpu and 6Gi, and a cluster of 3 pods in it (3 cpu, 4Gi).")
        self._apply(queue, first)
        self._until(f"{name} to run", lambda: self._running(name))
        self._show("get", "pods")
        self._show("get", self.groups)
        self.summary.append(f"{name}: 3 pods in one gang, Running")

        _say("A cluster that needs 5 cpu can never run in that queue. It is refused at once, with numbers:")
        refusal = self._apply(third, refused=True)
        if "needs cpu 5" not in refusal:
            raise TestbedError(f"expected a refusal with numbers, kubectl printed: {refusal}")
        self.summary.append(f"{third['metadata']['name']}: refused at admission")

        _say("A second cluster of 3 cpu fits the queue, but not together with the first: it waits, whole.")
        self._apply(second)
        waiting = second["metadata"]["name"]
        self._until(f"{waiting} to say why it waits", lambda: "WaitingForQuota" in self._events(waiting))
        self._show("get", "pods")
        self._show("get", self.groups)
        print("Why does it wait?")
        _command(f"{self.place.command} events --for raycluster/{waiting} | grep WaitingForQuota")
        print("\n".join(line for line in self._events(waiting).splitlines() if "WaitingForQuota" in line))
        self.summary.append(f"{waiting}: 3 pods held by their gates; none placed, though one would fit")

        _say("The first cluster is deleted. Nothing else is done.")
        self._show("delete", "raycluster", name)
        started = time.monotonic()
        self._until(f"{waiting} to run", lambda: self._running(waiting))
        took = time.monotonic() - started
        self._show("get", "pods")
        self._show("get", self.groups)
        self.summary.append(f"{waiting}: Running {took:.0f} s after {name} was deleted")

    def _apply(self, *manifests: dict[str, Any], refused: bool = False) -> str:
        names = "-".join(manifest["metadata"]["name"] for manifest in manifests)
        path = self.folder / f"{names}.yaml"
        path.write_text(yaml.safe_dump_all(manifests, sort_keys=False))
        _command(f"{self.place.command} apply -f {path.name}")
        done = self.place.kubectl("apply", "-f", str(path), check=not refused)
        text = (done.stdout + done.stderr).strip().replace(str(path), path.name)
        print(text)
        if refused and done.returncode == 0:
            raise TestbedError(f"{names} was accepted, but can never run")
        return text

    def _show(self, *arguments: str) -> None:
        _command(f"{self.place.command} {' '.join(arguments)}")
        print(self.place.kubectl(*arguments).stdout.strip())

    def _events(self, cluster: str) -> str:
        return self.place.kubectl("events", "--for", f"raycluster/{cluster}").stdout

    def _running(self, cluster: str) -> bool:
        found = self.place.kubectl("get", self.groups, "-o", "json", check=False)
        groups = json.loads(found.stdout)["items"] if found.returncode == 0 else []
        return any(self._is_of(group, f"ray-{cluster}-pg") and self._runs(group) for group in groups)

    def _is_of(self, group: dict[str, Any], name: str) -> bool:
        meta = group["metadata"]
        return bool(name == (meta["name"] if self.place.product == "volcano" else meta["annotations"].get(GROUP_NAME)))

    def _runs(self, group: dict[str, Any]) -> bool:
        if self.place.product == "volcano":
            return bool(group.get("status", {}).get("phase") == "Running")
        return bool(group["metadata"]["annotations"].get(STATE) == GangState.RUNNING)

    def _until(self, what: str, condition: Callable[[], bool]) -> None:
        print(f"(waiting for {what})", flush=True)
        wait_for(what, condition, self.place.patience)


def sample(name: str = "", *, gang_queues: bool) -> tuple[dict[str, Any], ...]:
    """KubeRay's sample, a Queue and a RayCluster, and two more clusters: as large, and too large for the queue.

    `name` is another name for the queue.
    """
    queue, first = ray_sample()
    if name:
        first = json.loads(json.dumps(first).replace(f'"{queue["metadata"]["name"]}"', f'"{name}"'))
        queue = {**queue, "metadata": {"name": name}}
    if gang_queues:
        queue = gang_queue_of(convert(queue, Queue))
    return queue, first, _renamed(first, "test-cluster-1", workers=2), _renamed(first, "test-cluster-2", workers=4)


def plan(folder: Path, manifests: tuple[dict[str, Any], ...], *options: str) -> None:
    """Show muster's answer to the `sample`. Raises TestbedError when that is no refusal with numbers."""
    queue, first, _, third = manifests
    (folder / "demo.yaml").write_text(yaml.safe_dump_all([queue, first, third], sort_keys=False))
    words = ["plan", *options, "-f", "demo.yaml"]
    _command(f"muster {' '.join(words)}")
    argv = [sys.executable, "-m", "muster.cli", *words]
    environment = os.environ | {"PYTHONPATH": str(_CHECKOUT)}
    done = subprocess.run(argv, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    print(f"{done.stdout}{done.stderr}".strip(), flush=True)
    if "needs cpu 5" not in done.stdout:
        raise TestbedError(f"muster plan ended with {done.returncode}, without a refusal with numbers")


def main() -> None:
    """Run the demo; exits 1 with one line when it has another outcome."""
    parser = argparse.ArgumentParser(prog="python -m hack.demo", description=__doc__)
    parser.add_argument("--keep", action="store_true", help="leave everything running, and print how to reach it")
    place = parser.add_mutually_exclusive_group()
    place.add_argument("--scheduler", choices=list(SETTINGS), default="volcano", help="what places the gangs")
    place.add_argument("--context", help="run on the cluster of this context of the kubeconfig")
    arguments = parser.parse_args()
    begun = time.monotonic()
    try:
        with tempfile.TemporaryDirectory(prefix="muster-demo-") as folder:
            if arguments.context:
                _on_cluster(Path(folder), begun, arguments.context, keep=arguments.keep)
            else:
                _demo(Path(folder), begun, arguments.scheduler, keep=arguments.keep)
    except (TestbedError, subprocess.SubprocessError) as error:
        sys.exit(f"demo: {error}")
    except KeyboardInterrupt:
        sys.exit("demo: interrupted; what is compiled is kept for the next run")


def _demo(folder: Path, begun: float, product: str, *, keep: bool) -> None:
    setting = SETTINGS[product]
    _say("muster's answer to the demo's files, by the rules of its webhook. It needs no cluster:")
    without_volcano = product != "volcano"
    (folder / "values.yaml").write_text(f"schedulers: [{product}]\nqueues: {{source: muster}}\n")
    plan(folder, sample(gang_queues=without_volcano), *(("--values", "values.yaml") if without_volcano else ()))
    _say(f"Start a real control plane: etcd, kube-apiserver, {setting.title}, KubeRay, kwok nodes; no containers.")
    parts, progress = [*setting.addons, "kuberay"], partial(print, flush=True)
    testbed = Testbed.start(parts=parts, kubernetes=setting.kubernetes, detached=keep, progress=progress)

    def stop() -> None:
        testbed.stop()
        print("every process is stopped")

    _run(Story(OwnCluster(testbed, product), folder), begun, stop, keep=keep)
    if keep:
        print("", *_how_to_talk(testbed), sep="\n")


def _on_cluster(folder: Path, begun: float, context: str, *, keep: bool) -> None:
    cluster = find(context)
    _say(f"muster's answer to the demo's files, by the settings of the cluster of context {context}:")
    manifests = sample(NAME, gang_queues=cluster.gang_queues)
    plan(folder, manifests, "--cluster", "--context", context, "--namespace", NAME)
    _run(Story(cluster, folder), begun, cluster.clean_up, keep=keep)
    if keep:
        print(f"\nNamespace and queue {NAME} are still there. To remove them:")
        print("\n".join(f"  {command}" for command in cluster.removal()))


def _run(story: Story, begun: float, clean_up: Callable[[], None], *, keep: bool) -> None:
    """Run the story, clean up unless it ends well and is to be kept, and print the summary."""
    finished = False
    try:
        story.run()
        finished = True
    finally:
        if not (keep and finished):
            _say("Clean up.")
            clean_up()
    print(f"\nSummary, after {time.monotonic() - begun:.0f} s:")
    for line in story.summary:
        print(f"  - {line}")


def _how_to_talk(testbed: Testbed) -> Iterator[str]:
    yield "It is still running. To talk to it:"
    yield f"  .venv/bin/python -m hack.testbed kubectl --state {testbed.state} get pods"
    yield f'  eval "$(.venv/bin/python -m hack.testbed env --state {testbed.state})"'
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
