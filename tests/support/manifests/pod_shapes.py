"""Pods of many shapes: whatever decides how much room a pod needs, in every combination, written in every way."""

import random
from dataclasses import dataclass, field
from typing import Any

JSON = dict[str, Any]

_CPU = (
    "1",
    "250m",
    "0.1",
    ".5",
    "2.",
    "1500u",
    "1n",
    "1e-1",
    "1e0",
    "1001m",
    "00012m",
    "+1",
    "0",
    1,
    2,
    0.25,
    "333333u",
)
_MEMORY = (
    "64Mi",
    "1.5Mi",
    "100M",
    "1e6",
    "12345678",
    "1500m",
    "1Ki",
    "0.3Ki",
    "1Gi",
    "0.1Gi",
    "7",
    "1n",
    1048577,
    4096,
    0.5,
)
_STORAGE = ("1Gi", "100M", "1500m", "12345")
_GPU = ("1", "2", 3, "0", "4e0")
_HUGE = ("2Mi", "4Mi", "6Mi", 2097152)
_GIANT = ("1Gi", "2Gi")
_HUGE_PAGES = {"hugepages-2Mi": _HUGE, "hugepages-1Gi": _GIANT}

# RuntimeClasses: their overhead is written into the pods that name them.
OVERHEADS = {
    "overhead-both": {"cpu": "250m", "memory": "64Mi"},
    "overhead-cpu": {"cpu": "1"},
    "overhead-memory": {"memory": "123456789"},
}

# Namespaces by their LimitRanges, each with what stands in its list of limits.
LIMIT_RANGES: dict[str, list[JSON]] = {
    "shapes-plain": [],
    "shapes-requests": [{"type": "Container", "defaultRequest": {"cpu": "150m", "memory": "33Mi"}}],
    "shapes-limits": [{"type": "Container", "default": {"cpu": "12", "memory": "40Gi", "ephemeral-storage": "80Gi"}}],
    "shapes-bounds": [
        {
            "type": "Container",
            "min": {"memory": "1m", "ephemeral-storage": "1"},
            "max": {"cpu": "16"},
            "default": {"memory": "30Gi"},
            "defaultRequest": {"cpu": "0.7"},
        },
        {"type": "Pod", "max": {"cpu": "100"}},
        {"type": "PersistentVolumeClaim", "min": {"storage": "1Gi"}},
    ],
}


@dataclass(frozen=True)
class Shape:
    """A pod's specification as a user writes it, and the namespace it goes into."""

    namespace: str
    spec: JSON = field(hash=False)


def shapes(seed: int, count: int) -> list[Shape]:
    """So many shapes, the same for the same seed; the apiserver refuses some of them."""
    chance = random.Random(seed)  # noqa: S311 (no secret)
    namespaces = ["shapes-plain"] * 5 + [name for name in LIMIT_RANGES if name != "shapes-plain"]
    return [Shape(chance.choice(namespaces), _pod(chance)) for _ in range(count)]


def _pod(chance: random.Random) -> JSON:
    pod: JSON = {
        "containers": [_container(chance, f"c{n}") for n in range(chance.randint(1, 3))],
        "initContainers": [_init(chance, f"i{n}") for n in range(chance.choice((0, 0, 1, 2, 4)))],
    }
    if chance.random() < 0.3:
        pod["resources"] = _pod_level(chance)
    if chance.random() < 0.25:
        name, overhead = chance.choice(list(OVERHEADS.items()))
        pod["runtimeClassName"] = name
        # Whoever writes the overhead must write that of the class.
        if chance.random() < 0.3:
            pod["overhead"] = overhead
    return pod


def _init(chance: random.Random, name: str) -> JSON:
    container = _container(chance, name)
    return {**container, "restartPolicy": "Always"} if chance.random() < 0.5 else container


def _container(chance: random.Random, name: str) -> JSON:
    requests: JSON = {}
    limits: JSON = {}
    for resource, texts, limit in (
        ("cpu", _CPU, "8"),
        ("memory", _MEMORY, "20Gi"),
        ("ephemeral-storage", _STORAGE, "9Gi"),
    ):
        if chance.random() < (0.2 if resource == "ephemeral-storage" else 0.75):
            amount = chance.choice(texts)
            match chance.randrange(5):
                case 0:
                    limits[resource] = amount
                case 1:
                    requests[resource], limits[resource] = amount, limit
                case _:
                    requests[resource] = amount
    if chance.random() < 0.2:
        gpus = chance.choice(_GPU)
        limits["example.com/gpu"] = gpus
        if chance.random() < 0.5:
            requests["example.com/gpu"] = gpus
    if chance.random() < 0.15 and "cpu" in requests | limits:
        resource, pages = chance.choice(list(_HUGE_PAGES.items()))
        limits[resource] = chance.choice(pages)
    return {"name": name, "image": "none", "resources": {"requests": requests, "limits": limits}}


def _pod_level(chance: random.Random) -> JSON:
    """Mostly enough for every container; too little is refused, and too much is wanted."""
    requests: JSON = {}
    limits: JSON = {}
    for resource, wanted, limit in (
        ("cpu", ("9", "12500m", "7.0001"), "100"),
        ("memory", ("8Gi", "5e9", "4294967297"), "200Gi"),
    ):
        if chance.random() < 0.6:
            requests[resource] = chance.choice(wanted)
        if chance.random() < 0.6:
            limits[resource] = limit
    if chance.random() < 0.2:
        limits["hugepages-2Mi"] = "16Mi"
    return {"requests": requests, "limits": limits}


def resized(seed: int, shape: Shape) -> JSON:
    """The status of a pod of this shape in the midst of a resize in place, as a kubelet reports it."""
    chance = random.Random(seed)  # noqa: S311 (no secret)
    status: JSON = {
        "phase": "Running",
        "containerStatuses": [_status(chance, one["name"]) for one in shape.spec["containers"]],
        "initContainerStatuses": [_status(chance, one["name"]) for one in shape.spec["initContainers"]],
    }
    if reason := chance.choice(("", "", "Deferred", "Infeasible")):
        status["conditions"] = [{"type": "PodResizePending", "status": "True", "reason": reason}]
    if "resources" in shape.spec and chance.random() < 0.7:
        status |= {"resources": {"requests": _given(chance)}, "allocatedResources": _given(chance)}
    return status


def _status(chance: random.Random, name: str) -> JSON:
    status: JSON = {"name": name, "image": "none", "imageID": "none", "ready": True, "restartCount": 0}
    if chance.random() < 0.8:
        status["resources"] = {"requests": _given(chance)}
    if chance.random() < 0.7:
        status["allocatedResources"] = _given(chance)
    return status


def _given(chance: random.Random) -> JSON:
    return {
        resource: chance.choice(texts)
        for resource, texts in (("cpu", _CPU), ("memory", _MEMORY))
        if chance.random() < 0.8
    }
