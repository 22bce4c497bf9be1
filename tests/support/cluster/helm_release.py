"""An installed release, as its users see it: helm, kubectl, and the processes in its pods."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from hack.testbed.site import cgroup_name

if TYPE_CHECKING:
    import subprocess
    from signal import Signals

    from hack.testbed import Testbed

__all__ = ["CHART", "Release"]

CHART = Path(__file__).parents[3] / "charts" / "muster"
_NAMESPACE = "muster-system"


class Release:
    """The release `muster` in namespace muster-system."""

    image: ClassVar = "muster.test/muster"
    # What the chart asks for, and for a busy machine time to answer: a review that comes late is a call that failed.
    values: ClassVar = (f"--set=image.repository={image}", "--set=webhook.timeoutSeconds=12")

    def __init__(self, testbed: Testbed) -> None:
        self.testbed = testbed
        self.chart = CHART

    def helm(self, verb: str, *flags: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run a verb of helm on the release; install and upgrade take `chart`, this checkout's at first."""
        chart = [str(self.chart), "--create-namespace"] if verb in {"install", "upgrade"} else []
        namespace = f"--namespace={_NAMESPACE}"
        return self.testbed.helm(verb, "muster", *chart, namespace, *flags, check=check, timeout=400)

    def kubectl(self, *args: str, timeout: float = 400) -> str:
        """Run kubectl in the release's namespace and return what it prints."""
        return self.testbed.kubectl(f"--namespace={_NAMESPACE}", *args, timeout=timeout).stdout

    def pods(self, component: str = "") -> list[dict[str, Any]]:
        """Return the pods of the release, or of one of its two Deployments, that are not being deleted."""
        component_is = f",app.kubernetes.io/component={component}" if component else ""
        selector = f"--selector=app.kubernetes.io/instance=muster{component_is}"
        found = json.loads(self.kubectl("get", "pods", selector, "--output=json"))["items"]
        return [pod for pod in found if "deletionTimestamp" not in pod["metadata"]]

    def ready(self, component: str = "") -> list[str]:
        """Return the names of the pods that are Ready."""
        return [pod["metadata"]["name"] for pod in self.pods(component) if _is_ready(pod)]

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


def _is_ready(pod: dict[str, Any]) -> bool:
    return any(seen["type"] == "Ready" and seen["status"] == "True" for seen in pod["status"].get("conditions", []))
