"""Fields that the apiserver would drop or refuse by the schema of the kind: unknown, missing, or of a wrong type.

The schema comes from a CustomResourceDefinition in the input, or from the apiserver (`/openapi/v3/apis/GROUP/VERSION`,
which every user may read). kubectl asks the apiserver to validate fields; GitOps controllers and other clients often do
not.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from muster.cli.parsing import InputError
from muster.cli.plan.manifests import Document
from muster.cli.plan.shape import fields_of, fraction_words, type_words, with_value
from muster.model.findings import Finding, Reason, finding
from muster.model.texts import did_you_mean
from muster.workloads import SchedulingPolicy, kind_of

JSON = Any
_CRD = "CustomResourceDefinition"
_REFERENCES = "#/components/schemas/"
# The fields of every object, whether its schema has them or not.
_OF_ALL = ("apiVersion", "kind", "metadata")
_POLICY = ("spec", "runPolicy", "schedulingPolicy")
_ANYTHING, _INT_OR_STRING = "x-kubernetes-preserve-unknown-fields", "x-kubernetes-int-or-string"
_TYPES: Mapping[str, tuple[type, ...]] = {
    "array": (list,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
    "object": (dict,),
    "string": (str,),
}


@dataclass(slots=True)
class Schemas:
    """The known fields of each kind, by `apiVersion` and `kind`."""

    _known: dict[tuple[str, str], tuple[JSON, Mapping[str, JSON]]] = field(default_factory=dict)

    def learn_crd(self, document: Document) -> bool:
        """Add the schemas of a CustomResourceDefinition; False for a document of any other kind. Raises InputError."""
        if document.kind != _CRD or not document.api_version.startswith("apiextensions.k8s.io/"):
            return False
        try:
            self._learn_versions(document.manifest.get("spec") or {})
        except (AttributeError, TypeError) as error:
            # Text, for example, where a mapping belongs.
            raise InputError(f"{document.source}: not a CustomResourceDefinition: {error}") from error
        return True

    def _learn_versions(self, spec: JSON) -> None:
        for version in spec.get("versions") or ():
            schema = (version.get("schema") or {}).get("openAPIV3Schema")
            if schema:
                key = f"{spec.get('group')}/{version.get('name')}", (spec.get("names") or {}).get("kind", "")
                self._known.setdefault(key, (schema, {}))

    def learn_published(self, api_version: str, kind: str, openapi: JSON) -> bool:
        """Add the schema that the apiserver publishes for a group and version; schemas of the input take precedence.

        False where neither has the kind.
        """
        group, _, version = api_version.rpartition("/")
        wanted = {"group": group, "version": version, "kind": kind}
        schemas = (openapi.get("components") or {}).get("schemas") or {}
        for schema in schemas.values():
            if wanted in schema.get("x-kubernetes-group-version-kind", ()):
                self._known.setdefault((api_version, kind), (schema, schemas))
        return self.has(api_version, kind)

    def has(self, api_version: str, kind: str) -> bool:
        """True if the fields of a kind are known."""
        return (api_version, kind) in self._known

    def findings(self, document: Document) -> Iterator[Finding]:
        """The fields of an object that its schema does not have, and those that it has with other values.

        Without a schema, only the unknown fields of `schedulingPolicy`, because muster knows all of its fields.
        """
        known = self._known.get((document.api_version, document.kind))
        if known is None:
            yield from _unread_policy(document)
            return
        schema, references = known
        whole = {name: value for name, value in document.manifest.items() if name not in _OF_ALL}
        where = f"{document.api_version} {document.kind}"
        try:
            parts = list(_described(whole, schema, references))
            unknown = [one for value, of, path in parts for one in _unknown(value, of, path)]
            wrong = [one for value, of, path in parts for one in _wrong(value, of, references, path)]
        except (AttributeError, TypeError):
            # The schema is malformed: the apiserver has none such, and refuses the CRD of the input.
            return
        for path, words in wrong:
            yield finding(Reason.INVALID, path, words)
        for path, name, in_background in unknown:
            words = f"{where} has no such field: kubectl apply refuses it, and other clients lose it"
            words += did_you_mean(name, in_background)
            yield finding(Reason.FIELD_DROPPED, path, words)


def _unread_policy(document: Document) -> Iterator[Finding]:
    found: JSON = document.manifest
    for name in _POLICY:
        found = found.get(name) if isinstance(found, dict) else None
    kind = kind_of(document.api_version, document.kind)
    if not isinstance(found, dict) or kind is None or kind.group != "kubeflow.org":
        return
    known = fields_of(SchedulingPolicy)
    for name in found:
        if name not in known:
            words = f"unknown field (known: {', '.join(known)}){did_you_mean(str(name), known)}"
            yield finding(Reason.MISSPELLED, ".".join((*_POLICY, str(name))), words)


def _described(
    value: JSON, schema: JSON, references: Mapping[str, JSON], path: str = ""
) -> Iterator[tuple[JSON, JSON, str]]:
    """Each value that a schema describes, the whole before its parts, with its schema and its path; null is absent."""
    schema = _resolved(schema, references)
    yield value, schema, path
    parts: Iterable[tuple[JSON, JSON, str]] = ()
    if isinstance(value, list):
        parts = ((item, schema.get("items") or {}, f"{path}[{index}]") for index, item in enumerate(value))
    elif isinstance(value, dict):
        properties, others = schema.get("properties") or {}, schema.get("additionalProperties")
        others = others if isinstance(others, dict) else None
        parts = ((item, properties.get(name, others), _joined(path, name)) for name, item in value.items())
    for item, of, below in parts:
        if item is not None and of is not None:
            yield from _described(item, of, references, below)


def _unknown(value: JSON, schema: JSON, path: str) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """The path and the name of each unknown field of an object, and the known names at the same place."""
    properties = schema.get("properties")
    if not (isinstance(value, dict) and isinstance(properties, dict) and properties):
        return
    if schema.get("additionalProperties") or schema.get(_ANYTHING):
        return
    of_all = _OF_ALL if schema.get("x-kubernetes-embedded-resource") else ()
    for name in value:
        if name not in properties and name not in of_all:
            yield _joined(path, name), str(name), tuple(properties)


def _wrong(value: JSON, schema: JSON, references: Mapping[str, JSON], path: str) -> Iterator[tuple[str, str]]:
    """The path of a value that the schema does not allow, or of a required part, and the problem."""
    types = _types(schema, references)
    if types and not _is_of(value, types):
        yield path, _type_problem(value, types)
        return
    if problem := _value_problem(value, schema):
        yield path, problem
    if isinstance(value, dict):
        properties = schema.get("properties") or {}
        for name in schema.get("required") or ():
            if value.get(name) is None and "default" not in properties.get(name, {}) and name not in _OF_ALL:
                yield _joined(path, name), "required, and missing"


def _joined(path: str, name: object) -> str:
    return f"{path}.{name}" if path else str(name)


def _value_problem(value: JSON, schema: JSON) -> str:
    """Why a value of the right type is not one of those that the schema allows; "" if it is."""
    if (allowed := schema.get("enum")) and value not in allowed:
        return f'"{str(value)[:80]}" is not allowed; use {" or ".join(map(str, allowed))}'
    if isinstance(value, int | float) and not isinstance(value, bool):
        least, most = schema.get("minimum"), schema.get("maximum")
        if least is not None and value < least:
            return f"{value} is not allowed; use at least {least}"
        if most is not None and value > most:
            return f"{value} is not allowed; use at most {most}"
    return ""


def _types(schema: JSON, references: Mapping[str, JSON]) -> tuple[str, ...]:
    """The types that a schema allows; () for any."""
    if schema.get(_INT_OR_STRING):
        return ("integer", "string")
    if of := schema.get("type"):
        return (of,)
    choices = [_resolved(one, references) for one in schema.get("oneOf") or schema.get("anyOf") or ()]
    found = tuple(one["type"] for one in choices if "type" in one)
    return found if len(found) == len(choices) else ()


def _is_of(value: JSON, types: tuple[str, ...]) -> bool:
    allowed = {one for name in types for one in _TYPES.get(name, (object,))}
    return object in allowed or type(value) in allowed


def _type_problem(value: JSON, types: tuple[str, ...]) -> str:
    if type(value) is float and set(types) == {"integer", "string"}:
        return fraction_words(value)
    expected = {one for name in types for one in _TYPES.get(name, ())}
    found = next((name for name, of in _TYPES.items() if type(value) in of), "null")
    return type_words(value, expected) or with_value(f"expected {_called(*types)}, found {_called(found)}", value)


def _called(*types: str) -> str:
    return " or ".join(f"an {name}" if name[0] in "aio" else f"a {name}" for name in types)


def _resolved(schema: JSON, references: Mapping[str, JSON]) -> JSON:
    """The schema of a reference, which the apiserver writes alone or as the only item of `allOf`."""
    for _ in range(2):
        wrapped: list[JSON] = schema.get("allOf") or []
        if len(wrapped) == 1 and "properties" not in schema:
            schema = wrapped[0]
        if "$ref" in schema:
            schema = references.get(str(schema["$ref"]).removeprefix(_REFERENCES), {})
    return schema
