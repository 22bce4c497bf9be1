"""Gangs of Ray and Kubeflow workloads on Kubernetes: the rules, the command line, and a Python API (docs/python.md).

The API, the package `muster.api`, is loaded when the first of its names is used, so that webhook and controller do not
pay for it. `__init__.pyi` has the names for type checkers.
"""

from importlib import import_module

__version__ = "0.1.0"

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


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    modules = (import_module(f"muster.api.{one}") for one in ("errors", "values", "functions"))
    found: object = next(getattr(module, name) for module in modules if hasattr(module, name))
    return found


def __dir__() -> list[str]:
    return sorted((*globals(), *__all__))
