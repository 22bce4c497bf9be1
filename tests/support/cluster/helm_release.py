"""An installed release, as its users see it: helm, kubectl, and the processes in its pods."""

import os
import re
import subprocess
from pathlib import Path
from signal import Signals
from typing import Any, ClassVar
from urllib.parse import quote

from hack.testbed import PATIENCE, Testbed
from hack.testbed.nodes import REAL
from hack.testbed.site import cgroup_name
from muster.model.resource import PODS

CHART = Path(__file__).parents[3] / "charts" / "muster"
NAMESPACE = "muster-system"
WITHIN = f"--timeout={PATIENCE:g}s"
"""How long helm and kubectl wait."""
_REVIEWS = re.compile(r"^muster_webhook_reviews_total\{.*\} (\S+)$", re.MULTILINE)


class Release:
    """The release `muster` in namespace muster-system."""

    image: ClassVar = "muster.test/muster"
    # What the chart asks for, and for a busy machine time to answer: a review that comes late is a call that failed.
    # By the toleration its pods come to the real node, and by nothing else can they go to kwok's.
    values: ClassVar = (
        f"--set=image.repository={image}",
        "--set=webhook.timeoutSeconds=12",
        *(
            f"--set={process}.tolerations[0].key={REAL},{process}.tolerations[0].operator=Exists"
            for process in ("webhook", "controller")
        ),
        # Of a process that waits for a core: it may begin in minutes, and answers within three seconds.
        *(
            f"--set={process}.probes.startup.failureThreshold=300,{process}.probes.readiness.timeoutSeconds=3"
            for process in ("webhook", "controller")
        ),
    )

    def __init__(self, testbed: Testbed) -> None:
        self.testbed = testbed
        self._api = testbed.api()
        self.chart: Path | str = CHART

    def helm(self, verb: str, *flags: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run a verb of helm on the release; install and upgrade take `chart`, this checkout's at first."""
        chart = [str(self.chart), "--create-namespace"] if verb in {"install", "upgrade"} else []
        if verb == "install":
            # Where one was cut short another takes up what it has left.
            verb, chart = "upgrade", ["--install", *chart]
        namespace = f"--namespace={NAMESPACE}"
        return self.testbed.helm(verb, "muster", *chart, namespace, *flags, check=check)

    def kubectl(self, *args: str) -> str:
        """Run kubectl in the release's namespace and return what it prints."""
        return self.testbed.kubectl(f"--namespace={NAMESPACE}", *args).stdout

    def pods(self, component: str = "") -> list[dict[str, Any]]:
        """Return the pods of the release, or of one of its two Deployments, that are not being deleted."""
        component_is = f",app.kubernetes.io/component={component}" if component else ""
        selector = quote(f"app.kubernetes.io/instance=muster{component_is}")
        found = self._api.get(f"{PODS.path(NAMESPACE)}?labelSelector={selector}")["items"]
        return [pod for pod in found if "deletionTimestamp" not in pod["metadata"]]

    def ready(self, component: str = "") -> list[str]:
        """Return the names of the pods that are Ready."""
        return [pod["metadata"]["name"] for pod in self.pods(component) if is_ready(pod)]

    def metrics(self, pod: str) -> str:
        """Return what a pod shows to Prometheus."""
        shown: str = self._api("GET", f"{self.path_of(pod, 8080)}/metrics").body["message"]
        return shown

    def reviews(self) -> dict[str, float]:
        """Return how many reviews each webhook that is Ready has answered since it began."""
        return {pod: sum(map(float, _REVIEWS.findall(self.metrics(pod)))) for pod in self.ready("webhook")}

    @staticmethod
    def path_of(pod: str, port: int, scheme: str = "") -> str:
        """Return the path by which the apiserver leads to a port of a pod."""
        return f"/api/v1/namespaces/{NAMESPACE}/pods/{scheme}{pod}:{port}/proxy"

    def signal(self, pod: dict[str, Any], number: Signals) -> None:
        """Send a signal to the process of a pod, from outside."""
        container = pod["status"]["containerStatuses"][0]["containerID"].rpartition("/")[2]
        top = cgroup_name(self.testbed.state)
        hierarchies = [folder for folder in Path("/sys/fs/cgroup").rglob(top) if folder.is_dir()]
        files = [folder / "cgroup.procs" for top in hierarchies for folder in top.rglob(container)]
        for pid in {int(line) for file in files for line in file.read_text().splitlines()}:
            os.kill(pid, number)


def restarts(pod: dict[str, Any]) -> int:
    """Return how often the container of a pod was started again."""
    return int(pod["status"]["containerStatuses"][0]["restartCount"])


def is_ready(pod: dict[str, Any]) -> bool:
    """Tell whether the kubelet says that the pod is Ready."""
    return any(seen["type"] == "Ready" and seen["status"] == "True" for seen in pod["status"].get("conditions", []))
