"""Runs on this machine what the chart has helm run in the cluster before it uninstalls: no kubelet is there to do it.

The Job's own command runs with a token of its ServiceAccount and nothing more: its rights are those of a real one.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from hack.testbed.errors import TestbedError

if TYPE_CHECKING:
    from hack.testbed.cluster import Testbed

__all__ = ["before_uninstall"]

_CHECKOUT = Path(__file__).parents[2]
_HOOK = "helm.sh/hook"


def before_uninstall(testbed: Testbed, release: str, namespace: str, *, timeout: float = 300) -> str:
    """Run the release's pre-delete hooks as helm would, and return what the Job's command prints.

    Raises TestbedError, with what it says, when the command fails.
    """
    text = testbed.helm("get", "hooks", release, f"--namespace={namespace}").stdout
    hooks = [hook for hook in yaml.safe_load_all(text) if hook and _is_first(hook)]
    (job,) = (hook for hook in hooks if hook["kind"] == "Job")
    others = yaml.safe_dump_all([hook for hook in hooks if hook is not job])
    testbed.kubectl("apply", "--filename=-", input=others)
    try:
        pod = job["spec"]["template"]["spec"]
        (container,) = pod["containers"]
        if container["command"] != ["muster"]:
            raise TestbedError(f"{job['metadata']['name']} runs {container['command']}: teach it to {__file__}")
        kubeconfig = testbed.service_account_kubeconfig(namespace, pod["serviceAccountName"])
        argv = [sys.executable, "-m", "muster.cli", *container["args"], f"--kubeconfig={kubeconfig}"]
        done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=timeout, cwd=_CHECKOUT)
    finally:
        testbed.kubectl("delete", "--filename=-", "--ignore-not-found", input=others)
    if done.returncode:
        raise TestbedError(f"{job['metadata']['name']} failed ({done.returncode}): {done.stdout}{done.stderr}")
    return done.stdout


def _is_first(hook: dict[str, Any]) -> bool:
    return "pre-delete" in hook["metadata"].get("annotations", {}).get(_HOOK, "").split(",")
