"""Runs on this machine what the chart has helm run in the cluster: no kubelet is there to do it.

A hook's own command runs with a token of its ServiceAccount and nothing more: its rights are those of a real one.
"""

import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

from hack.testbed.cluster import Testbed
from hack.testbed.errors import TestbedError
from hack.testbed.waiting import PATIENCE

_CHECKOUT = Path(__file__).parents[2]
_HOOK = "helm.sh/hook"


def before_uninstall(testbed: Testbed, release: str, namespace: str) -> str:
    """Run the release's pre-delete hooks as helm would, and return what the Job's command prints.

    Raises TestbedError, with what it says, when the command fails.
    """
    hooks = _hooks(testbed, release, namespace, "pre-delete")
    (job,) = (hook for hook in hooks if hook["kind"] == "Job")
    return _run(testbed, job, hooks)


def probe_of_helm_test(testbed: Testbed, release: str, namespace: str) -> str:
    """Run the probe of `helm test`, with the account that helm makes for it, and return what it prints.

    Raises TestbedError, with what it says, when it fails.
    """
    hooks = _hooks(testbed, release, namespace, "test")
    (pod,) = (hook for hook in hooks if hook["metadata"]["name"] == f"{release}-probe" and hook["kind"] == "Pod")
    return _run(testbed, pod, hooks)


def _run(testbed: Testbed, runs: dict[str, Any], hooks: list[dict[str, Any]]) -> str:
    """Run the command of a Pod or a Job while those of the hooks are there that run nothing."""
    name, namespace = runs["metadata"]["name"], runs["metadata"]["namespace"]
    pod = runs["spec"]["template"]["spec"] if runs["kind"] == "Job" else runs["spec"]
    manifests = yaml.safe_dump_all([hook for hook in hooks if hook["kind"] not in {"Pod", "Job"}])
    testbed.kubectl("apply", "--filename=-", input=manifests)
    try:
        (container,) = pod["containers"]
        if container["command"] != ["muster"]:
            raise TestbedError(f"{name} runs {container['command']}: teach it to {__file__}")
        kubeconfig = testbed.service_account_kubeconfig(namespace, pod["serviceAccountName"])
        argv = [sys.executable, "-m", "muster.cli", *container["args"], f"--kubeconfig={kubeconfig}"]
        done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=PATIENCE, cwd=_CHECKOUT)
    finally:
        testbed.kubectl("delete", "--filename=-", "--ignore-not-found", input=manifests)
    if done.returncode:
        raise TestbedError(f"{name} failed ({done.returncode}): {done.stdout}{done.stderr}")
    return done.stdout


def _hooks(testbed: Testbed, release: str, namespace: str, event: str) -> list[dict[str, Any]]:
    text = testbed.helm("get", "hooks", release, f"--namespace={namespace}").stdout
    return [hook for hook in yaml.safe_load_all(text) if hook and _is_of(hook, event)]


def _is_of(hook: dict[str, Any], event: str) -> bool:
    return event in hook["metadata"].get("annotations", {}).get(_HOOK, "").split(",")
