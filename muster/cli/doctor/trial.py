"""What is created on trial, as dry runs: a pod of a gang, and a Job of one in a queue that does not exist.

A dry run passes all of admission, the webhooks too, and nothing is stored. So what comes back is what a user would get.
"""

from __future__ import annotations

from typing import Any

from muster.cli.doctor.sight import ProbeAnswer
from muster.model.names import GANG, GANG_SIZE, GATE, GROUP_NAME, QUEUE_LABEL
from muster.model.objects import Pod, decode

__all__ = ["JOB", "NAME", "POD", "answer_of"]

NAME = "muster-doctor"
"""Of the gang, and of the queue that nobody has made."""

_META: dict[str, Any] = {"labels": {GANG: NAME}, "annotations": {GANG_SIZE: "1"}}
# As Pod Security's restricted standard and quotas demand it.
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
    """What a pod was made into; of a Job nothing of this is to be seen."""
    pod = decode(body, Pod)
    meta = pod.metadata
    return ProbeAnswer(
        gated=pod.gated(GATE), group=meta.annotations.get(GROUP_NAME, ""), queue=meta.labels.get(QUEUE_LABEL, "")
    )
