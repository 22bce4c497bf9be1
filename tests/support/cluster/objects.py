"""What stands in the objects of a cluster, by the words of tests: gates, node, phase, state."""

from typing import Any

from muster.model.names import ADMITTED, GANG, MESSAGE, STATE

Manifest = dict[str, Any]


def gates(pod: Manifest) -> list[str]:
    """Return the names of a pod's scheduling gates."""
    return [gate["name"] for gate in pod["spec"].get("schedulingGates", [])]


def node_of(pod: Manifest) -> str:
    """Return the node of a pod, "" before it has one."""
    return str(pod["spec"].get("nodeName", ""))


def phase(item: Manifest) -> str:
    """Return `status.phase`."""
    return str(item.get("status", {}).get("phase", ""))


def alive(pod: Manifest) -> bool:
    """Tell whether a pod is neither finished nor being deleted."""
    return phase(pod) not in {"Succeeded", "Failed"} and "deletionTimestamp" not in pod["metadata"]


def has_condition(item: Manifest, kind: str, status: str = "True") -> bool:
    """Tell whether a condition of that type has that status."""
    conditions = item.get("status", {}).get("conditions") or []
    return any(condition.get("type") == kind and condition["status"] == status for condition in conditions)


def annotations_of(item: Manifest) -> dict[str, str]:
    """Return the annotations of an object."""
    found: dict[str, str] = item["metadata"].get("annotations") or {}
    return found


def gang_of(pod: Manifest) -> str:
    """Return the name of the PodGroup that muster's label on a pod names, or ""."""
    return str((pod["metadata"].get("labels") or {}).get(GANG, ""))


def state(group: Manifest) -> str:
    """Return what muster says of a gang, on its PodGroup."""
    return annotations_of(group).get(STATE, "")


def message(group: Manifest) -> str:
    """Return muster's sentence on a gang, from its PodGroup."""
    return annotations_of(group).get(MESSAGE, "")


def admitted(group: Manifest) -> str:
    """Return the UID of the workload whose admission the PodGroup records, or ""."""
    return annotations_of(group).get(ADMITTED, "")
