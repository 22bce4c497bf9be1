"""The Python API: plans of manifests, gangs, queues, and waiting for a gang; docs/python.md.

`import muster` gives all of it, and loads this package only when the first name of it is used.
"""

from muster.api.errors import (
    ClusterError,
    ManifestError,
    MusterError,
    NotFoundError,
    RefusedError,
    WaitFailedError,
    WaitTimeoutError,
)
from muster.api.functions import (
    explain,
    explain_async,
    plan,
    plan_async,
    queues,
    queues_async,
    wait,
    wait_async,
)
from muster.api.values import Finding, Gang, Queue, Queues, Verdict, Verdicts

__all__ = [
    "ClusterError",
    "Finding",
    "Gang",
    "ManifestError",
    "MusterError",
    "NotFoundError",
    "Queue",
    "Queues",
    "RefusedError",
    "Verdict",
    "Verdicts",
    "WaitFailedError",
    "WaitTimeoutError",
    "explain",
    "explain_async",
    "plan",
    "plan_async",
    "queues",
    "queues_async",
    "wait",
    "wait_async",
]
