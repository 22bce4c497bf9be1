"""A control plane on which nobody else works on pods and nodes, so that the figures are of what is measured."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hack.testbed import wait_for

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hack.testbed import Testbed

__all__ = ["PATIENT", "QUEUES_AND_GROUPS", "bare", "make_namespace", "serve"]

QUEUES_AND_GROUPS = (
    ("volcano.sh/volcano", "config/crd/volcano/bases/scheduling.volcano.sh_queues.yaml"),
    ("volcano.sh/volcano", "config/crd/volcano/bases/scheduling.volcano.sh_podgroups.yaml"),
)
"""The CRDs without which muster works on nothing, each by its module and its file there."""
PATIENT = {
    "image.repository": "muster",
    "webhook.timeoutSeconds": "30",
    "controller.lease.durationSeconds": "60",
    "controller.lease.renewDeadlineSeconds": "45",
}
"""Values of the chart for a busy machine: no call is lost, and the leader keeps its lease; nothing that is measured."""
_SECONDS = 120.0


def serve(testbed: Testbed, crds: Iterable[tuple[str, str]]) -> None:
    """Have the apiserver serve the kinds of these CRDs, each by its module and its file there."""
    for module, file in crds:
        testbed.kubectl("apply", "--server-side", f"--filename={testbed.module_dir(module) / file}")
    established = ("wait", "--for=condition=Established", "crd", "--all", "--timeout=60s")
    wait_for("the CRDs to be served", lambda: testbed.kubectl(*established), _SECONDS)


def bare(testbed: Testbed, crds: Iterable[tuple[str, str]], namespace: str) -> None:
    """Serve these kinds, stop the scheduler and the simulated nodes, and make the namespace."""
    serve(testbed, crds)
    for part in ("kube-scheduler", "kwok"):
        testbed.stop_part(part)
    make_namespace(testbed, namespace)


def make_namespace(testbed: Testbed, name: str) -> None:
    """Make a namespace, and wait until pods can be created in it."""
    testbed.kubectl("create", "namespace", name)
    account = ("get", "serviceaccount", "default", f"--namespace={name}")
    wait_for("its ServiceAccount", lambda: testbed.kubectl(*account, check=False).returncode == 0, _SECONDS)
