"""The testbed of the bench, and what of it runs in whose turn."""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from hack.bench.bare import PATIENT
from hack.bench.peers.contenders import CONTENDERS, Manifest, queues
from hack.bench.peers.figures import Used
from hack.bench.usage import cpu_seconds, forget_peak, resident
from hack.testbed import Nodes, Testbed, wait_for
from hack.testbed.api import answers
from hack.testbed.errors import TestbedError, log_tail
from hack.testbed.kueue import KUEUE, kueue
from hack.testbed.muster import MusterInstall, install
from hack.testbed.site import Site
from muster.kube.resource import MUTATING_WEBHOOKS, NAMESPACES, PODS, VALIDATING_WEBHOOKS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from hack.bench.peers.contenders import Contender
    from hack.testbed.process import Process

__all__ = ["FEW", "QUOTAS", "Place", "place"]

_SECONDS = 600.0
# Sixteen of the resource of which there is too little, one a node.
_NODES = Nodes(count=16, cpu="64", memory="512Gi", gpu=1)
_SCHEDULERS = ("kube-scheduler", "volcano-scheduler", "kwok")
FEW = "nvidia.com/gpu"
"""A resource of which the nodes have less than the queues allow."""
QUOTAS: Mapping[str, Mapping[str, str]] = {
    "wide": {"cpu": "900", "memory": "4000Gi", FEW: "24"},
    "narrow": {"cpu": "10", "memory": "4000Gi"},
    "small": {"cpu": "4", "memory": "4000Gi"},
}
"""The queues of every contender: one that holds all, one for the drain, one in which a gang waits."""
_TUNED = {"qps": 2000, "burst": 4000}
# As Go programs run where nobody says otherwise; the testbed saves time with a lazy collector, at the cost of memory.
_COLLECTOR = {"GOGC": "100"}


class Place:
    """The testbed, muster on it, and the parts that come and go; all of it is synchronous."""

    def __init__(self, testbed: Testbed, muster: MusterInstall) -> None:
        self.testbed = testbed
        self.muster = muster
        self._site = Site.load(testbed.state)
        self._shipped: dict[str, Any] = json.loads(testbed.kueue_conf.read_text())
        self._kueue: Process | None = None
        self._configured = self._flag = ""
        self._before: dict[str, float] = {}
        self._api = testbed.api()
        self._own = next(one for one in CONTENDERS if one.kueue)
        named = {"key": "kubernetes.io/metadata.name", "operator": "In", "values": [self._own.namespace]}
        self._selector = {"matchExpressions": [named]}
        self._confine()

    def schedulers(self, *, on: bool) -> None:
        """Have schedulers and kubelets (kwok) run or not: where only gates are looked at, nobody else is to work."""
        processes = self.testbed.processes()
        for part in _SCHEDULERS:
            if processes[part].alive() != on:
                (self.testbed.start_part if on else self.testbed.stop_part)(part)

    def turn(self, contender: Contender, *, rays: bool) -> None:
        """Begin a contender's turn: Kueue with its configuration, or none; for RayClusters KubeRay with its flag."""
        self._muster_runs()
        self._kueue_as(contender.kueue)
        flag = "--batch-scheduler=volcano" if contender.flag else ""
        if rays and flag != self._flag:
            self.testbed.restart_part("kuberay", extra_args=[flag] if flag else [])
            self._flag = flag

    def _muster_runs(self) -> None:
        """Start a controller that has lost its lease, and ended, again, as its kubelet would."""
        if not self.muster.controllers[0].alive():
            print("muster's controller has ended on this busy machine, and is started again")
            self.muster.controllers.pop(0)
            self.muster.free_lease()
            self.muster.start_controller()
            self.muster.wait_ready(_SECONDS)

    def _kueue_as(self, configured: str) -> None:
        if configured == self._configured:
            return
        if self._kueue is not None:
            self._kueue.stop()
            self._kueue = None
        self._configured = configured
        if not configured:
            return
        conf = {
            **self._shipped,
            "integrations": {"frameworks": ["pod", "ray.io/raycluster"]},
            "managedJobsNamespaceSelector": self._selector,
        }
        if configured == "tuned":
            conf["clientConnection"] = {**conf["clientConnection"], **_TUNED}
        self.testbed.kueue_conf.write_text(json.dumps(conf, indent=1))
        launch = kueue(self._site)
        argv = [str(self.testbed.program(KUEUE)), *launch.arguments]
        self._kueue = self.testbed.spawn(f"kueue-{configured}", argv, env={**launch.environment, **_COLLECTOR})
        process = self._kueue

        def serves() -> bool:
            if not process.alive():
                raise SystemExit(log_tail(process.log))
            return answers(launch.health, self.testbed.ca_file) and self._gates()

        wait_for("Kueue to put its gate on pods", serves, _SECONDS)

    def _confine(self) -> None:
        """Have the apiserver ask Kueue about nothing outside of its namespace, where others run while it is stopped."""
        for kind, verb in ((MUTATING_WEBHOOKS, "mutating"), (VALIDATING_WEBHOOKS, "validating")):
            path = kind.path(name=f"kueue-{verb}-webhook-configuration")
            webhooks = self._api.get(path)["webhooks"]
            self._api.merge(path, {"webhooks": [{**one, "namespaceSelector": self._selector} for one in webhooks]})

    def _gates(self) -> bool:
        pod = self._own.pod("probe", 0, 1, "wide", cpu="1")
        try:
            made = self._api.create(f"{PODS.path(self._own.namespace)}?dryRun=All", pod)
        except TestbedError:
            return False
        return bool(made["spec"].get("schedulingGates"))

    def queues(self, contender: Contender) -> None:
        """Create what a contender needs: its queues, open and ready."""
        for name, quota in QUOTAS.items():
            for resource, manifest in queues(contender, name, quota):
                path = resource.path(contender.namespace if resource.namespaced else None, manifest["metadata"]["name"])
                wait_for(f"{path} to be taken", lambda p=path, m=manifest: self._api.apply(p, m), _SECONDS)  # type: ignore[misc]
                wait_for(f"{path} to be ready", lambda p=path: _ready(self._api.get(p)), _SECONDS)  # type: ignore[misc]

    def processes(self, contender: Contender) -> dict[str, Process]:
        """The add-on's own processes, by what the report calls them."""
        if contender.name == "muster":
            return {"controller": self.muster.controllers[0], "webhook": self.muster.webhooks[0]}
        return {"manager": self._kueue} if contender.kueue and self._kueue else {}

    def begin(self, contender: Contender) -> None:
        """Remember what a contender's processes have used until now."""
        for name, process in self.processes(contender).items():
            self._before[name] = cpu_seconds(process.pid)
            forget_peak(process.pid)

    def end(self, contender: Contender, pods: int) -> list[Used]:
        """What they have used since `begin`, for so many pods."""
        return [
            Used(
                name,
                pods,
                cpu_seconds(process.pid) - self._before[name],
                resident(process.pid),
                resident(process.pid, "VmHWM"),
            )
            for name, process in self.processes(contender).items()
        ]


def _ready(found: Manifest) -> bool:
    """Whether a queue takes gangs, as its own controller says; what has no state is ready."""
    status = found.get("status", {})
    if found["kind"] == "Queue":
        return bool(status.get("state") == "Open")
    if found["kind"] in {"ClusterQueue", "LocalQueue"}:
        return any(one["type"] == "Active" and one["status"] == "True" for one in status.get("conditions", []))
    return True


@contextmanager
def place() -> Iterator[Place]:
    """Start all of it, Kueue not yet."""
    parts = ("volcano", "kuberay", "kueue")
    with Testbed.start(parts=parts, nodes=_NODES, progress=print) as testbed:
        api = testbed.api()
        for namespace in dict.fromkeys(one.namespace for one in CONTENDERS):
            manifest = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
            api.apply(NAMESPACES.path(name=namespace), manifest)
            account = f"/api/v1/namespaces/{namespace}/serviceaccounts/default"
            wait_for("its ServiceAccount", lambda path=account: api("GET", path).ok, _SECONDS)  # type: ignore[misc]
        muster = install(testbed, values=PATIENT, webhooks=1, controllers=1)
        muster.wait_ready(_SECONDS)
        # Its webhooks are asked about everything until they are confined.
        testbed.stop_part(KUEUE)
        yield Place(testbed, muster)
