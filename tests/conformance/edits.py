"""What a variant changes of a manifest: labels, fields of a spec, of a role, of its pods."""

import copy
from collections.abc import Callable, Mapping

from tests.conformance.case import Manifest, ray_cluster, replica_specs

Edit = Callable[[Manifest], None]
"""Changes a manifest."""


def meta(field: str, **entries: str) -> Edit:
    """Entries of the metadata: `field` is labels or annotations."""

    def edit(manifest: Manifest) -> None:
        manifest["metadata"].setdefault(field, {}).update(entries)

    return edit


def labels(entries: Mapping[str, str]) -> Edit:
    return meta("labels", **entries)


def in_turn(*edits: Edit) -> Edit:
    """All of these, one after the other."""

    def edit(manifest: Manifest) -> None:
        for one in edits:
            one(manifest)

    return edit


def in_group(**fields: object) -> Edit:
    """Fields of the first worker group; one that is None is taken away."""

    def edit(manifest: Manifest) -> None:
        _set(ray_cluster(manifest)["workerGroupSpecs"][0], fields)

    return edit


def in_cluster(**fields: object) -> Edit:
    """Fields of the spec of a Ray cluster."""

    def edit(manifest: Manifest) -> None:
        _set(ray_cluster(manifest), fields)

    return edit


def in_spec(**fields: object) -> Edit:
    """Fields of the spec; one that is None is taken away."""

    def edit(manifest: Manifest) -> None:
        _set(manifest["spec"], fields)

    return edit


def _set(target: Manifest, fields: Mapping[str, object]) -> None:
    for name, value in fields.items():
        if value is None:
            target.pop(name, None)
        else:
            target[name] = value


def _templates(manifest: Manifest) -> dict[str, Manifest]:
    """The pod specs of a workload, by role."""
    if manifest["apiVersion"].startswith("ray.io"):
        cluster = ray_cluster(manifest)
        groups = {group["groupName"]: group["template"] for group in cluster.get("workerGroupSpecs", [])}
        return {name: one["spec"] for name, one in {"head": cluster["headGroupSpec"]["template"], **groups}.items()}
    return {name: spec["template"]["spec"] for name, spec in replica_specs(manifest).items()}


def pods(role: str = "", **fields: object) -> Edit:
    """Fields of the pod specs of a role, or of all; `resources_` are the first container's."""
    resources = fields.pop("resources_", None)

    def edit(manifest: Manifest) -> None:
        for name, spec in _templates(manifest).items():
            if role in ("", name):
                _set(spec, copy.deepcopy(fields))
                if resources is not None:
                    spec["containers"][0]["resources"] = copy.deepcopy(resources)

    return edit


def worker_pods(**fields: object) -> Edit:
    """Fields of the pods of the first worker group."""

    def edit(manifest: Manifest) -> None:
        _set(ray_cluster(manifest)["workerGroupSpecs"][0]["template"]["spec"], copy.deepcopy(fields))

    return edit


def in_role(role: str, **fields: object) -> Edit:
    """Fields of a replica spec of a Kubeflow job."""

    def edit(manifest: Manifest) -> None:
        _set(replica_specs(manifest)[role], fields)

    return edit


def policy(**fields: object) -> Edit:
    """Fields of the schedulingPolicy."""

    def edit(manifest: Manifest) -> None:
        manifest["spec"].setdefault("runPolicy", {}).setdefault("schedulingPolicy", {}).update(fields)

    return edit


def without(role: str) -> Edit:
    """Take a role away."""

    def edit(manifest: Manifest) -> None:
        del replica_specs(manifest)[role]

    return edit


def suspend(manifest: Manifest) -> None:
    """Suspend a Kubeflow job."""
    manifest["spec"].setdefault("runPolicy", {})["suspend"] = True


def second_group(manifest: Manifest) -> None:
    """Add a second worker group, of large pods and several hosts a replica."""
    groups = ray_cluster(manifest)["workerGroupSpecs"]
    more = copy.deepcopy(groups[0])
    more |= {"groupName": "large", "replicas": 2, "minReplicas": 1, "maxReplicas": 4, "numOfHosts": 3}
    more["template"]["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "8", "memory": "32Gi"}}
    groups.append(more)
