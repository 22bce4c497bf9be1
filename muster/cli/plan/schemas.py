"""Fields that the apiserver would drop or refuse, because the schema of the kind does not have them.

The schema comes from a CustomResourceDefinition in the input, or from the apiserver (`/openapi/v3/apis/GROUP/VERSION`,
which every user may read). kubectl asks the apiserver to validate fields; GitOps controllers and other clients often do
not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from muster.cli.parsing import InputError
from muster.cli.plan.manifests import Document
from muster.model.findings import Finding, Reason
from muster.model.texts import did_you_mean
from muster.workloads import SchedulingPolicy, kind_of

JSON = Any
_CRD = "CustomResourceDefinition"
_REFERENCES = "#/components/schemas/"
# The fields of every object, whether its schema has them or not.
_OF_ALL = ("apiVersion", "kind", "metadata")
_POLICY = ("spec", "runPolicy", "schedulingPolicy")
_ANYTHING = "x-kubernetes-preserve-unknown-fields"


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

    def dropped(self, document: Document) -> Iterator[Finding]:
        """The fields of an object that its schema does not have.

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
            unknown = list(_unknown(whole, schema, references, ""))
        except (AttributeError, TypeError):
            # The schema is malformed: the apiserver has none such, and refuses the CRD of the input.
            return
        for path, name, in_background in unknown:
            words = f"{where} has no such field: kubectl apply refuses it, and other clients lose it"
            words += did_you_mean(name, in_background)
            yield Finding(Reason.FIELD_DROPPED, path, f"{path}: {words}")


def _unread_policy(document: Document) -> Iterator[Finding]:
    found: JSON = document.manifest
    for name in _POLICY:
        found = found.get(name) if isinstance(found, dict) else None
    kind = kind_of(document.api_version, document.kind)
    if not isinstance(found, dict) or kind is None or kind.group != "kubeflow.org":
        return
    known = [one.encode_name for one in msgspec.structs.fields(SchedulingPolicy)]
    for name in found:
        if name not in known:
            path = ".".join((*_POLICY, str(name)))
            words = f"unknown field (known: {', '.join(known)}){did_you_mean(str(name), known)}"
            yield Finding(Reason.MISSPELLED, path, f"{path}: {words}")


def _unknown(
    value: JSON, schema: JSON, references: Mapping[str, JSON], path: str
) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """The path and the name of each unknown field, and the known names at the same place."""
    schema = _resolved(schema, references)
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from _unknown(item, schema.get("items") or {}, references, f"{path}[{index}]")
    if not isinstance(value, dict):
        return
    properties = schema.get("properties")
    properties = properties if isinstance(properties, dict) else {}
    others = schema.get("additionalProperties")
    for name, item in value.items():
        below = f"{path}.{name}" if path else str(name)
        if name in properties:
            yield from _unknown(item, properties[name], references, below)
        elif isinstance(others, dict):
            yield from _unknown(item, others, references, below)
        elif properties and not (others or schema.get(_ANYTHING)):
            of_all = _OF_ALL if schema.get("x-kubernetes-embedded-resource") else ()
            if name not in of_all:
                yield below, str(name), tuple(properties)


def _resolved(schema: JSON, references: Mapping[str, JSON]) -> JSON:
    """The schema of a reference, which the apiserver writes alone or as the only item of `allOf`."""
    for _ in range(2):
        wrapped: list[JSON] = schema.get("allOf") or []
        if len(wrapped) == 1 and "properties" not in schema:
            schema = wrapped[0]
        if "$ref" in schema:
            schema = references.get(str(schema["$ref"]).removeprefix(_REFERENCES), {})
    return schema
