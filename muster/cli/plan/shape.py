"""Faults of an object's shape that need no schema: unknown keys where Kubernetes knows all, and its name and labels.

Such keys are lost without a word where a client does not validate, as a GPU that stands next to `limits` is.
"""

import re
from collections.abc import Collection, Iterator
from typing import Any

import msgspec

from muster.cli.plan.malformed import fields_of, fraction_words
from muster.cli.plan.manifests import Document, objects_in
from muster.model.findings import Finding, Reason
from muster.model.texts import did_you_mean
from muster.resources.quantity import InvalidQuantityError, parse_quantity

JSON = Any


def _keys(text: str) -> frozenset[str]:
    return frozenset(text.split())


_OBJECT = _keys("apiVersion kind metadata spec status")
_METADATA = _keys(
    "annotations creationTimestamp deletionGracePeriodSeconds deletionTimestamp finalizers generateName generation "
    "labels managedFields name namespace ownerReferences resourceVersion selfLink uid"
)
_TEMPLATE = _keys("metadata spec")
_POD_SPEC = _keys(
    "activeDeadlineSeconds affinity automountServiceAccountToken containers dnsConfig dnsPolicy enableServiceLinks "
    "ephemeralContainers hostAliases hostIPC hostNetwork hostPID hostUsers hostname hostnameOverride imagePullSecrets "
    "initContainers nodeName nodeSelector os overhead preemptionPolicy priority priorityClassName readinessGates "
    "resourceClaims resources restartPolicy runtimeClassName schedulerName schedulingGates schedulingGroup "
    "securityContext serviceAccount serviceAccountName setHostnameAsFQDN shareProcessNamespace subdomain "
    "terminationGracePeriodSeconds tolerations topologySpreadConstraints volumes workloadRef"
)
_CONTAINER = _keys(
    "args command env envFrom image imagePullPolicy lifecycle livenessProbe name ports readinessProbe resizePolicy "
    "resources restartPolicy restartPolicyRules securityContext startupProbe stdin stdinOnce terminationMessagePath "
    "terminationMessagePolicy tty volumeDevices volumeMounts workingDir"
)
_RESOURCES = _keys("claims limits requests")
# The places below which a misplaced key belongs, the first that knows it.
_HOMES = (("metadata", _METADATA), ("spec", _POD_SPEC), ("resources", _RESOURCES), ("containers", _CONTAINER))
_STANDARD_RESOURCES = ("cpu", "memory", "ephemeral-storage")
_NANO = 10**9
_AMOUNTS = ("capability", "deserved", "limits", "minResources", "requests", "resource")
_LABEL = re.compile(r"(?:[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?)?")


def misplaced(manifest: JSON, spec_type: Any = None) -> Iterator[Finding]:  # noqa: ANN401 - a type
    """The unknown keys of an object's top level, of metadata, and of pods, containers and their resources.

    Those of the top level that `spec_type` has as a field belong in `spec`. A kind without one, such as PriorityClass,
    has other keys there: of these only those of metadata are found.
    """
    own = fields_of(spec_type) if spec_type is not None else ()
    for name in _unknown(manifest, _OBJECT):
        home = "metadata" if name in _METADATA else "spec" if name in own else ""
        if home or spec_type is not None:
            yield _found(name, name, home, _OBJECT)
    yield from _metadata(manifest.get("metadata"), "metadata")
    yield from _pods(manifest)


def _pods(manifest: JSON) -> Iterator[Finding]:
    """The unknown keys of all pods in a manifest, of their templates and of `resourcesPerNode`."""
    for path, value in objects_in(manifest.get("spec"), "spec"):
        spec, name = value.get("spec"), path.rpartition(".")[2]
        of_pod = isinstance(value.get("containers"), list) or (path == "spec" and manifest.get("kind") == "Pod")
        if name == "spec" and of_pod:
            yield from _of_pod(value, path)
        elif name == "template" and isinstance(spec, dict) and isinstance(spec.get("containers"), list):
            for key in _unknown(value, _TEMPLATE):
                yield _found(f"{path}.{key}", key, _home(key, "metadata", "spec"), _TEMPLATE)
            yield from _metadata(value.get("metadata"), f"{path}.metadata")
        elif name == "resourcesPerNode":
            yield from _resources(value, path)


def _of_pod(spec: JSON, path: str) -> Iterator[Finding]:
    for key in _unknown(spec, _POD_SPEC):
        yield _found(f"{path}.{key}", key, _home(key, "metadata", "resources", "containers"), _POD_SPEC)
    for field in ("containers", "initContainers"):
        containers = spec.get(field)
        for index, one in enumerate(containers if isinstance(containers, list) else ()):
            where = f"{path}.{field}[{index}]"
            for key in _unknown(one, _CONTAINER):
                home = "resources.limits" if _is_resource(key) else _home(key, "resources", "spec", "metadata")
                yield _found(f"{where}.{key}", key, home, _CONTAINER)
            if isinstance(one, dict):
                yield from _resources(one.get("resources"), f"{where}.resources")


def _resources(value: JSON, path: str) -> Iterator[Finding]:
    for key in _unknown(value, _RESOURCES):
        yield _found(f"{path}.{key}", key, "limits" if _is_resource(key) else "", _RESOURCES)


def _metadata(value: JSON, path: str) -> Iterator[Finding]:
    for key in _unknown(value, _METADATA):
        yield _found(f"{path}.{key}", key, "", _METADATA)


def _is_resource(key: str) -> bool:
    return key in _STANDARD_RESOURCES or "/" in key


def _unknown(value: JSON, known: Collection[str]) -> list[str]:
    return [str(key) for key in value if key not in known] if isinstance(value, dict) else []


def _home(key: str, *homes: str) -> str:
    return next((name for name, keys in _HOMES if name in homes and key in keys), "")


def _found(path: str, key: str, home: str, known: Collection[str]) -> Finding:
    hint = f"; it belongs in {home}: check its indentation" if home else did_you_mean(key, sorted(known))
    words = f"Kubernetes has no such field here: kubectl apply refuses it, and other clients lose it{hint}"
    return Finding(Reason.FIELD_DROPPED, path, f"{path}: {words}")


def unnamed(manifest: JSON) -> Iterator[Finding]:
    """The finding for an object that has no name, and none from which one is made."""
    metadata = manifest.get("metadata") or {}
    if isinstance(metadata, dict) and not (metadata.get("name") or metadata.get("generateName")):
        yield Finding(Reason.INVALID, "metadata.name", "metadata.name: missing; an object needs a name")


def unusable_labels(manifest: JSON) -> Iterator[Finding]:
    """The labels of an object whose values the apiserver refuses, whatever its kind."""
    metadata = manifest.get("metadata")
    labels = metadata.get("labels") if isinstance(metadata, dict) else None
    for key, text in labels.items() if isinstance(labels, dict) else ():
        if isinstance(text, str) and not _LABEL.fullmatch(text):
            path = f"metadata.labels[{key}]"
            rule = "use at most 63 letters, digits, -, _ and ., with a letter or a digit at both ends"
            yield Finding(Reason.INVALID, path, f'{path}: "{text[:80]}" is not a valid label value; {rule}')


def fractions(manifest: JSON) -> Iterator[Finding]:
    """The amounts of resources that are numbers with a fraction: the apiserver refuses these in custom resources.

    Their schemas have an integer or a string for a quantity; objects of Kubernetes itself may have any number.
    """
    for field, _, amount in _amounts(manifest):
        if isinstance(amount, float):
            yield Finding(Reason.INVALID, field, f"{field}: {fraction_words(amount)}")


def parts_of_devices(manifest: JSON) -> Iterator[Finding]:
    """The amounts of extended resources, such as GPUs, that are not whole: the apiserver refuses pods with these."""
    for field, resource, amount in _amounts(manifest):
        if _part_of_device(resource, amount):
            words = (
                f'"{str(amount)[:80]}" is not a whole number, and pods ask for an extended resource in whole numbers'
            )
            yield Finding(Reason.INVALID, field, f"{field}: {words}; use 1 or more")


def above_limits(manifest: JSON) -> Iterator[Finding]:
    """The requests above the limit next to them: the apiserver refuses pods with these."""
    for path, value in objects_in(manifest):
        limits, requests = value.get("limits"), value.get("requests")
        if not (isinstance(limits, dict) and isinstance(requests, dict)):
            continue
        for resource in [name for name in requests if name in limits]:
            if _is_more(requests[resource], limits[resource]):
                words = f"{str(requests[resource])[:80]} is above the limit {str(limits[resource])[:80]}"
                field = f"{path}.requests.{resource}"
                yield Finding(Reason.INVALID, field, f"{field}: {words}; lower it or raise limits.{resource}")


def _is_more(amount: JSON, limit: JSON) -> bool:
    try:
        return parse_quantity(amount) > parse_quantity(limit)
    except InvalidQuantityError:
        return False


def _part_of_device(resource: str, amount: JSON) -> bool:
    if "/" not in resource or isinstance(amount, bool) or not isinstance(amount, str | float):
        return False
    try:
        return parse_quantity(amount).nano % _NANO != 0
    except InvalidQuantityError:
        return False


def _amounts(manifest: JSON) -> Iterator[tuple[str, str, JSON]]:
    """Each amount of a resource below limits and requests: its path, the name of the resource, and the amount."""
    for path, value in objects_in(manifest):
        if path.rpartition(".")[2] in _AMOUNTS:
            yield from ((f"{path}.{resource}", str(resource), amount) for resource, amount in value.items())


def twice_written(document: Document) -> Iterator[Finding]:
    """The keys that an object has twice."""
    for key, line in document.duplicates:
        words = f"written twice, again in line {line}; the last value counts, as for kubectl"
        yield Finding(Reason.VALUE_IGNORED, key, f"{key}: {words}")


def spec_type(type_: type[msgspec.Struct]) -> Any:  # noqa: ANN401 - a type
    """The type of the field `spec` of an object's type; None if it has none that is decoded."""
    found = fields_of(type_).get("spec")
    return found if isinstance(found, type) and issubclass(found, msgspec.Struct) else None
