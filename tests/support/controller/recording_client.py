"""A client that records what the controller writes, fails on demand, and shows the stores what a watch would.

It knows nothing of Kubernetes but what the controller's own writes do to the four things it writes.
"""

import asyncio
import copy
import zlib
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from muster.kube.errors import ApiError
from muster.model.names import ADMITTED
from muster.model.resource import POD_GROUPS, Resource
from tests.support.manifests.observed import JSON, as_json


class Write(NamedTuple):
    """One write: what was done to what, by which field manager."""

    verb: str
    kind: str
    name: str
    body: Any = None
    manager: str = ""
    uid: str = ""

    @property
    def says(self) -> str:
        """The write in a word, for lists: which object, and for applies of a PodGroup what for."""
        if self.verb == "apply":
            return f"{'mark' if ADMITTED in self.body['metadata'].get('annotations', {}) else self.manager} {self.name}"
        return f"{self.verb} {self.kind if self.verb == 'create' else self.name}"


@dataclass
class RecordingClient:
    """Writes in their order; `fails` has by the first words of `Write.says` the errors to raise, in turn."""

    writes: list[Write] = field(default_factory=list)
    fails: dict[str, list[Exception]] = field(default_factory=dict)
    took_effect: bool = False  # whether a failed write was carried out all the same
    pods: dict[str, JSON] = field(default_factory=dict)
    groups: dict[str, JSON] = field(default_factory=dict)
    applied: dict[str, dict[str, set[str]]] = field(default_factory=dict)
    version: int = 0
    _seen: dict[str, str] = field(default_factory=dict)

    async def apply(
        self, resource: Resource, name: str, body: JSON, namespace: str, *, field_manager: str, deadline: float
    ) -> bytes:
        """Merge what this manager says into the PodGroup."""
        assert deadline > 0
        assert (body["metadata"]["name"], body["metadata"]["namespace"]) == (name, namespace)
        write = Write("apply", resource.kind, name, body, field_manager)
        failure = await self._record(write)
        if not failure and self._meets_another(name, body["metadata"]):
            failure = ApiError(409, "Conflict", "the object has been modified")
        elif not failure or (self.took_effect and not _final(failure, body["metadata"])):
            self._merge(name, body, field_manager)
        if failure:
            raise failure
        return as_json(self.groups[name]).encode()

    def _meets_another(self, name: str, said: JSON) -> bool:
        """Whether the apply names a UID or a resource version, and what is there has another."""
        now = self.groups.get(name)
        if "uid" in said:
            return now is None or now["metadata"]["uid"] != said["uid"]
        return now is not None and "resourceVersion" in said

    async def strategic_merge_patch(
        self, resource: Resource, name: str, body: JSON, namespace: str, *, deadline: float, dry_run: bool = False
    ) -> bytes:
        """Take the named gates off a pod; in a dry run a policy says no as it would, and nothing else happens."""
        assert (deadline > 0, bool(namespace)) == (True, True)
        if dry_run:
            await asyncio.sleep(0)
            if (refusal := self._policy(f"patch {name}")) is not None:
                raise refusal
            return b"{}"
        failure = await self._record(Write("patch", resource.kind, name, body, uid=body["metadata"]["uid"]))
        if failure:
            raise failure
        gone = {gate["name"] for gate in body["spec"]["schedulingGates"] if gate["$patch"] == "delete"}
        gates = self.pods[name]["spec"]["schedulingGates"]
        self.pods[name]["spec"]["schedulingGates"] = [gate for gate in gates if gate["name"] not in gone]
        return b"{}"

    async def merge_patch(self, resource: Resource, name: str, body: JSON, namespace: str, *, deadline: float) -> bytes:
        """Annotate a workload."""
        assert (deadline > 0, bool(namespace)) == (True, True)
        failure = await self._record(Write("annotate", resource.kind, name, body, uid=body["metadata"]["uid"]))
        if failure:
            raise failure
        return b"{}"

    async def create(self, resource: Resource, body: JSON, namespace: str, *, deadline: float) -> bytes:
        """Record an event."""
        assert (deadline > 0, bool(namespace)) == (True, True)
        failure = await self._record(Write("create", resource.kind, body["metadata"]["name"], body))
        if failure:
            raise failure
        return b"{}"

    async def delete(
        self,
        resource: Resource,
        name: str,
        namespace: str,
        *,
        uid: str,
        resource_version: str | None,
        deadline: float,
    ) -> None:
        """Take a PodGroup or a pod away; a pod in another state than it was seen in is a conflict."""
        assert (deadline > 0, bool(namespace)) == (True, True)
        failure = await self._record(Write("delete", resource.kind, name, uid=uid))
        if failure:
            raise failure
        if resource.kind == POD_GROUPS.kind and self.groups.get(name, {"metadata": {}})["metadata"].get("finalizers"):
            # Somebody keeps it.
            self.groups[name]["metadata"]["deletionTimestamp"] = "2026-11-21T10:02:00Z"
        elif resource.kind == POD_GROUPS.kind:
            self.groups.pop(name, None)
            self.applied.pop(name, None)
        elif with_version(self.pods[name])["metadata"]["resourceVersion"] != resource_version:
            raise ApiError(409, "Conflict", "the object has been modified")
        else:
            del self.pods[name]

    def _policy(self, says: str) -> ApiError | None:
        """What refuses the write now, and again when it is done."""
        failures = (errors[0] for prefix, errors in self.fails.items() if says.startswith(prefix) and errors)
        refusals = (one for one in failures if isinstance(one, ApiError) and one.refused)
        return next((one for one in refusals if not (one.conflict or one.not_found)), None)

    async def _record(self, write: Write) -> Exception | None:
        self.writes.append(write)
        # As on a network: others get on with their work meanwhile.
        await asyncio.sleep(0)
        for prefix, errors in self.fails.items():
            if write.says.startswith(prefix) and errors:
                return errors.pop(0)
        return None

    def _merge(self, name: str, body: JSON, manager: str) -> None:
        """An apply takes back the annotations that the same manager does not say any more."""
        group = self.groups.setdefault(
            name, {"metadata": {"name": name, "uid": f"uid-{name}", "annotations": {}}, "status": {}}
        )
        said = body["metadata"].get("annotations", {})
        before = self.applied.setdefault(name, {}).get(manager)
        kept = group["metadata"].get("annotations", {})
        if before is None and manager == "muster-ledger":
            before = {key for key in kept if key.startswith("muster.dev/")}
        kept = {key: value for key, value in kept.items() if key not in (before or set())}
        self.applied[name][manager] = set(said)
        meta = {key: value for key, value in body["metadata"].items() if key != "resourceVersion"}
        others = [entry for entry in group["metadata"].get("managedFields", []) if entry["manager"] != manager]
        fields = {f"f:{part}": _fields(body[part]) for part in ("metadata", "spec") if part in body}
        group["metadata"] = {
            **group["metadata"],
            **meta,
            "labels": {**group["metadata"].get("labels", {}), **meta.get("labels", {})},
            "annotations": {**kept, **said},
            "managedFields": [*others, {"manager": manager, "operation": "Apply", "fieldsV1": fields}],
        }
        if "spec" in body:
            group["spec"] = copy.deepcopy(body["spec"])
        self.versioned(group)

    def versioned(self, group: JSON) -> JSON:
        """The PodGroup with a resource version that has risen if anything in it changed, whoever changed it."""
        meta = group["metadata"]
        content = as_json({**group, "metadata": {**meta, "resourceVersion": ""}})
        if self._seen.get(meta["name"]) != content:
            self._seen[meta["name"]] = content
            self.version += 1
            meta["resourceVersion"] = str(self.version)
        return group


def _final(failure: Exception, said: JSON) -> bool:
    """Whether a failed apply changed nothing for certain: a conflict, unless it is with its own first try to create."""
    return isinstance(failure, ApiError) and failure.conflict and "resourceVersion" not in said


def _fields(said: JSON) -> JSON:
    """What is said, as FieldsV1; the identity of an object is nobody's field."""
    return {
        f"f:{key}": _fields(value) if isinstance(value, dict) else {}
        for key, value in said.items()
        if key not in ("name", "namespace", "uid", "resourceVersion")
    }


def with_version(manifest: JSON) -> JSON:
    """With a resource version that changes when the object does."""
    version = zlib.crc32(as_json(manifest).encode())
    return {**manifest, "metadata": {**manifest["metadata"], "resourceVersion": str(version)}}
