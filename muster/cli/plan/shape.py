"""Faults of an object's form: fields of a wrong type, unknown keys, variables that are not filled in, names and labels.

A decoder names the first field of a wrong type, and a user wants all. An unknown key is lost without a word where a
client does not validate, as a GPU that stands next to `limits` is.
"""

import re
import types
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Union, get_args, get_origin

import msgspec

from muster.cli.faults import variable_hint
from muster.cli.parsing import InputError
from muster.cli.plan.manifests import Document, objects_in
from muster.model.findings import Finding, Reason, finding
from muster.model.objects import InvalidObjectError, fault_of
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
# Faults that are named of one object; more of them have one cause.
_MOST = 20
_LONGEST = 80
# A longer text is rather a block in the wrong place than a slip.
_SHORT = 40

# A status is not the user's, and annotations may hold any text.
_ANY_TEXT = ("annotations", "status")


def unreadable(
    document: Document, type_: type[Any], known: Sequence[Finding] = (), error: InvalidObjectError | None = None
) -> InputError:
    """The error of a document that is no `type_`: `known` faults, each field of a wrong type, or else `error`."""
    named = {one.field for one in known}
    wrong = [one.message for one in _wrong_fields(document.manifest, type_, "") if one.field not in named]
    found = [*(one.message for one in known), *(wrong or ([str(error)] if error else []))]
    lines = [f"{document.source}: {message}" for message in found]
    if len(lines) > _MOST:
        lines[_MOST:] = [f"{document.source}: {len(lines) - _MOST} more faults"]
    return InputError(*lines)


def unfilled(value: Any, type_: Any, path: str = "") -> Iterator[Finding]:  # noqa: ANN401 - a manifest and its type
    """The variables that are not filled in, in fields that are decoded: elsewhere, as in a command, they may be meant.

    Fields of a wrong type are `unreadable`'s.
    """
    type_ = _without_none(type_)
    takes_text = type_ is str or str in get_args(type_)
    if isinstance(value, str) and takes_text and (hint := variable_hint(value)):
        yield finding(Reason.INVALID, path, hint)
    for name, item, of in _below(value, type_):
        if hint := variable_hint(name):
            yield finding(Reason.INVALID, path, f"the key {hint}")
        if name not in _ANY_TEXT:
            yield from unfilled(item, of, _joined(path, name))


def _wrong_fields(value: Any, type_: Any, path: str) -> Iterator[Finding]:  # noqa: ANN401 - a manifest and its type
    """Each part of a value that has another type than the one at its place; null counts as absent."""
    type_ = _without_none(type_)
    if _is_of(value, type_):
        for name, item, of in _below(value, type_):
            yield from _wrong_fields(item, of, _joined(path, name))
        return
    try:
        msgspec.convert(value, type=type_)
    except msgspec.ValidationError as error:
        words = type_words(value, {type_}) or with_value(fault_of(error)[1], value)
        yield finding(Reason.INVALID, path, words)


def with_value(words: str, value: Any) -> str:  # noqa: ANN401 - any value of a manifest
    """The words on a value of a wrong type, with a text that is short."""
    if not isinstance(value, str) or len(value) > _SHORT:
        return words
    return re.sub(r"found a string$", lambda _: f'found the string "{value}"', words)


def type_words(value: Any, expected: set[Any]) -> str:  # noqa: ANN401 - any value of a manifest
    """What is wrong with a scalar that should have one of these types of Python; "" if there is no more to say."""
    if isinstance(value, str):
        if hint := variable_hint(value):
            return hint
        if bool in expected and value.lower() in ("true", "false"):
            return f'"{value}" is a string; write {value.lower()} without quotes'
        if expected & {int, float} and re.fullmatch(r"\s*-?\d{1,18}\s*", value):
            return f'"{value[:_LONGEST]}" is a string; write {value.strip()} without quotes'
        return ""
    if str in expected and isinstance(value, int | float):
        if isinstance(value, bool):
            return f"{str(value).lower()} is a boolean, and a string is expected; write it in quotes"
        return f'{value} is a number, and a string is expected; write "{value}" in quotes'
    return ""


def fraction_words(value: float) -> str:
    """What is wrong with a number with a fraction where a quantity belongs."""
    return f'{value} is a number with a fraction, which the apiserver refuses here; write "{value}" in quotes'


def _is_of(value: Any, type_: Any) -> bool:  # noqa: ANN401
    """True if a value has the form of a type, an object or a list, so that its parts can be looked at."""
    if isinstance(value, dict):
        return get_origin(type_) is dict or (isinstance(type_, type) and issubclass(type_, msgspec.Struct))
    return isinstance(value, list) and get_origin(type_) in (list, tuple)


def _below(value: Any, type_: Any) -> Iterable[tuple[str, Any, Any]]:  # noqa: ANN401
    """The name, the value and the type of each part of an object or a list; nothing for null."""
    parts: Iterable[tuple[str, Any, Any]] = ()
    if not _is_of(value, type_):
        return parts
    if isinstance(value, list):
        there = [item for item in value if item is not None]
        return [(f"[{index}]", item, get_args(type_)[0]) for index, item in enumerate(there)]
    if get_origin(type_) is dict:
        parts = ((key, item, get_args(type_)[1]) for key, item in value.items())
    else:
        known = fields_of(type_)
        parts = ((key, item, known.get(key, Any)) for key, item in value.items())
    return [part for part in parts if part[1] is not None]


@cache
def fields_of(type_: type[msgspec.Struct]) -> Mapping[str, Any]:
    """The types of the fields of a struct, by their names in a manifest; kept, because they take long to find out."""
    return {one.encode_name: one.type for one in msgspec.structs.fields(type_)}


def _joined(path: str, key: str) -> str:
    if key.startswith("["):
        return f"{path}{key}"
    return f"{path}[{key}]" if not key.isidentifier() else f"{path}.{key}" if path else key


def _without_none(type_: Any) -> Any:  # noqa: ANN401 - a type
    """`X` of `X | None`."""
    if get_origin(type_) in (Union, types.UnionType):
        others = [one for one in get_args(type_) if one is not types.NoneType]
        return others[0] if len(others) == 1 else type_
    return type_


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
    return finding(Reason.FIELD_DROPPED, path, words)


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
            yield finding(Reason.INVALID, path, f'"{text[:80]}" is not a valid label value; {rule}')


def fractions(manifest: JSON) -> Iterator[Finding]:
    """The amounts of resources that are numbers with a fraction: the apiserver refuses these in custom resources.

    Their schemas have an integer or a string for a quantity; objects of Kubernetes itself may have any number.
    """
    for field, _, amount in _amounts(manifest):
        if isinstance(amount, float):
            yield finding(Reason.INVALID, field, fraction_words(amount))


def parts_of_devices(manifest: JSON) -> Iterator[Finding]:
    """The amounts of extended resources, such as GPUs, that are not whole: the apiserver refuses pods with these."""
    for field, resource, amount in _amounts(manifest):
        if _part_of_device(resource, amount):
            words = (
                f'"{str(amount)[:80]}" is not a whole number, and pods ask for an extended resource in whole numbers'
            )
            yield finding(Reason.INVALID, field, f"{words}; use 1 or more")


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
                yield finding(Reason.INVALID, field, f"{words}; lower it or raise limits.{resource}")


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
        yield finding(Reason.VALUE_IGNORED, key, words)


def spec_type(type_: type[msgspec.Struct]) -> Any:  # noqa: ANN401 - a type
    """The type of the field `spec` of an object's type; None if it has none that is decoded."""
    found = fields_of(type_).get("spec")
    return found if isinstance(found, type) and issubclass(found, msgspec.Struct) else None
