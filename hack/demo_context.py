"""`make demo CONTEXT=NAME`: the demo on a cluster that is there, in a namespace and a queue of its own.

It takes what the cluster has: KubeRay, muster, and the scheduler and queues that muster publishes there. Where
something is missing it says what, and how to get it, and creates nothing.
"""

import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import yaml

from hack.testbed import CommandError, TestbedError
from muster.queueing.sources import QUEUE_SOURCES
from muster.schedulers import PRODUCTS

NAME = "muster-demo"
"""The name of the demo's namespace and of its queue."""
_SECONDS = 120.0
# The kinds of PodGroups, in the order of preference.
_GROUPS = {product: PRODUCTS[product]().resource.full_name for product in ("volcano", "kubernetes", "coscheduling")}
_VALUES = {"volcano": ""} | {
    name: f" --set schedulers={{{name}}} --set queues.source=muster" for name in ("kubernetes", "coscheduling")
}
_INSTALL = (
    "helm install muster charts/muster --namespace muster-system --create-namespace "
    "--set image.repository=REGISTRY/muster"
)


@dataclass(frozen=True, slots=True)
class Existing:
    """The cluster of a context of the kubeconfig.

    :ivar product: the scheduler of gangs there
    :ivar gang_queues: true if its queues are muster's GangQueues, false if Volcano's Queues
    """

    context: str
    product: str = "volcano"
    gang_queues: bool = False
    queue = NAME
    # Nodes that have never run Ray pull an image of some gigabytes.
    patience = 1800.0

    @property
    def command(self) -> str:
        """The beginning of a kubectl command, as a user types it."""
        return f"kubectl --context {self.context} --namespace {NAME}"

    def kubectl(self, *args: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run the kubectl of the PATH. Raises CommandError."""
        argv = [*self.command.split(), *args]
        try:
            done = subprocess.run(argv, capture_output=True, text=True, timeout=_SECONDS, check=False)
        except subprocess.TimeoutExpired as error:
            raise CommandError(argv, None, f"after {_SECONDS:g} s") from error
        if check and done.returncode:
            raise CommandError(argv, done.returncode, done.stderr)
        return done

    def ready(self) -> None:
        """Create the demo's namespace."""
        print(f"$ kubectl --context {self.context} create namespace {NAME}", flush=True)
        print(self.kubectl("create", "namespace", NAME).stdout.strip())

    def removal(self) -> Iterator[str]:
        """The commands that remove the demo's namespace and queue."""
        queues = QUEUE_SOURCES["muster" if self.gang_queues else "volcano"]
        for kind in ("namespace", f"{queues.plural}.{queues.group}"):
            yield f"kubectl --context {self.context} delete {kind} {NAME} --ignore-not-found"

    def clean_up(self) -> None:
        """Remove the namespace and the queue, as far as they are there."""
        for command in self.removal():
            print(f"$ {command}", flush=True)
            done = subprocess.run(command.split(), capture_output=True, text=True, check=False)
            print((done.stdout + done.stderr).strip(), flush=True)


def find(context: str) -> Existing:
    """Look at a cluster, and return it with what it has. Raises TestbedError with all that is missing."""
    if shutil.which("kubectl") is None:
        raise TestbedError("kubectl is not on the PATH: install it")
    cluster = Existing(context)
    version = cluster.kubectl("get", "--raw", "/version", check=False)
    if version.returncode:
        raise TestbedError(f"the cluster of context {context} does not answer: {version.stderr.strip()}")
    # A failing extension of the API makes the command fail, and leaves out only its own resources.
    served = set(cluster.kubectl("api-resources", "--output=name", "--cached=false", check=False).stdout.split())
    values = cluster.kubectl(
        "get", "configmap", "muster", "-nkube-public", "-ojsonpath={.data.values\\.yaml}", check=False
    )
    settings: dict[str, Any] = yaml.safe_load(values.stdout or "{}")
    missing = [*_missing(cluster, served, settings)]
    if missing:
        lines = "\n".join(f"  - {line}" for line in missing)
        raise TestbedError(f"the demo cannot run on the cluster of context {context}:\n{lines}")
    return Existing(context, settings["schedulers"][0], settings["queues"]["source"] == "muster")


def _missing(cluster: Existing, served: set[str], settings: dict[str, Any]) -> Iterator[str]:
    found = [product for product, group in _GROUPS.items() if group in served]
    if "rayclusters.ray.io" not in served:
        yield "KubeRay is missing: install its operator (https://docs.ray.io, Kubernetes)"
    if not found:
        yield (
            "no gang scheduler that the demo knows: install Volcano, or serve PodGroups of Kubernetes 1.37 "
            f"(no {' or '.join(_GROUPS.values())} there)"
        )
    if not settings:
        product = found[0] if found else "volcano"
        yield f"muster is missing; with an image of yours: {_INSTALL}{_VALUES[product]}"
    else:
        first = settings["schedulers"][0]
        if first not in found:
            yield f"muster's first scheduler there is {first}, and the demo needs {' or '.join(found or _GROUPS)}"
        if "ledger" not in settings["admitters"]:
            yield f"muster's admitter there is {settings['admitters'][0]}, and the demo needs the ledger"
    made = cluster.kubectl("create", "namespace", NAME, "--dry-run=server", check=False)
    if made.returncode:
        yield f"{made.stderr.strip()}; to remove a former demo: {next(cluster.removal())}"
