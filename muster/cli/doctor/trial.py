"""The dry runs of `muster doctor`: a pod of a gang, and a Job of a gang in a queue that does not exist.

A dry run goes through all of admission, webhooks included, and stores nothing. Its answer is what a user would get.
"""

from __future__ import annotations

from typing import Any

from muster.cli.doctor.sight import ProbeAnswer
from muster.model.names import GANG, GANG_SIZE, GATE, GROUP_NAME, QUEUE_LABEL
from muster.model.objects import Pod, decode

NAME = "muster-doctor"
"""The name of the gang, and of the queue that does not exist."""

_META: dict[str, Any] = {"labels": {GANG: NAME}, "annotations": {GANG_SIZE: "1"}}
# Satisfies the restricted Pod Security Standard and ResourceQuotas.
_SPEC: dict[str, Any] = {
    "restartPolicy": "Never",
    "automountServiceAccountToken": False,
    "securityContext": {"runAsNonRoot": True, "runAsUser": 65532, "seccompProfile": {"type": "RuntimeDefault"}},
    "containers": [
        {
            "name": "none",
            "image": "none",
            "resources": {name: {"cpu": "1m", "memory": "1Mi"} for name in ("requests", "limits")},
            "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
        }
    ],
}

POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"generateName": f"{NAME}-", **_META},
    "spec": _SPEC,
}
JOB: dict[str, Any] = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {"generateName": f"{NAME}-", "labels": {QUEUE_LABEL: NAME}},
    "spec": {
        "suspend": False,
        "template": {"metadata": {**_META, "labels": {GANG: NAME, QUEUE_LABEL: NAME}}, "spec": _SPEC},
    },
}


def answer_of(body: bytes) -> ProbeAnswer:
    """The changes to a pod; a Job shows none of them."""
    pod = decode(body, Pod)
    meta = pod.metadata
    return ProbeAnswer(
        gated=pod.gated(GATE), group=meta.annotations.get(GROUP_NAME, ""), queue=meta.labels.get(QUEUE_LABEL, "")
    )
