"""The Kubernetes objects that muster reads, each reduced to the fields that a rule looks at.

JSON is decoded straight into these types: unknown fields are skipped, `null` means absent (as it does to the
apiserver), and a value of the wrong type is an error that names its path. No dict of a manifest travels further than
the module that decoded it.
"""

import re
from collections.abc import Iterable
from typing import Any, ClassVar, Protocol, TypeVar

import msgspec

from muster.model.names import MANAGED_BY, MARKS, MUSTER

# A quantity as in a manifest: custom resources keep integers and floats as the user wrote them.
RawQuantity = str | int | float
ResourceList = dict[str, RawQuantity]
T = TypeVar("T")


_TYPES = {
    "int": "an integer",
    "float": "a number",
    "str": "a string",
    "bool": "true or false",
    "object": "an object",
    "array": "a list",
    "null": "null",
}
"""The types of a decoder's messages in words."""
_QUANTITY = {"int", "float", "str"}
_WRONG_TYPE = re.compile(r"Expected `([a-z |]+)`(?:, got `([a-z]+)`)?")
_MISSING = re.compile(r"Object missing required field `(.+)`")
_UNKNOWN = re.compile(r"Object contains unknown field `(.+)`")


class InvalidObjectError(ValueError):
    """An object does not have the shape of its kind: its `field`, "" for the whole of it, has that `problem`.

    The message is both. The field may be of another object, named first ("TrainingRuntime torch: spec.template").
    """

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field}: {problem}" if field else problem)
        self.field = field


class LocalObject(msgspec.Struct, rename="camel", frozen=True, kw_only=True):
    """Base of everything decoded here: camelCase on the wire, unknown fields ignored, never changed."""


class OwnerReference(LocalObject, frozen=True):
    """An owner of an object; at most one owner is the controller."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False

    @property
    def group(self) -> str:
        """The API group, without the version: `ray.io` of `ray.io/v1`, "" for the core group."""
        group, slash, _ = self.api_version.rpartition("/")
        return group if slash else ""


class ObjectMeta(LocalObject, frozen=True):
    """Metadata of an object; `creation_timestamp` and `deletion_timestamp` are RFC 3339 text in UTC.

    A pod that is being deleted should be gone at its `deletion_timestamp`, which includes its grace period.
    """

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    # Before Kubernetes 1.34 a null in each new object that a webhook is asked about; `decode` would take ten times as
    # long for it.
    created: str | None = msgspec.field(default=None, name="creationTimestamp")
    deletion_timestamp: str = ""
    deletion_grace_period_seconds: int | None = None
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    owner_references: tuple[OwnerReference, ...] = ()

    @property
    def creation_timestamp(self) -> str:
        """The time at which the apiserver created the object, "" before that."""
        return self.created or ""

    @property
    def controller(self) -> OwnerReference | None:
        """The owner that controls the object."""
        for owner in self.owner_references:
            if owner.controller:
                return owner
        return None


class HasMetadata(Protocol):
    """Any Kubernetes object; the namespace of a cluster-scoped one is ""."""

    @property
    def metadata(self) -> ObjectMeta:
        """Its metadata."""


class Object(LocalObject, frozen=True):
    """An object of any kind: its metadata."""

    metadata: ObjectMeta = ObjectMeta()


class Condition(LocalObject, frozen=True):
    """A condition in an object's status."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""


class TimedCondition(Condition, frozen=True):
    """A condition with its last transition time; most are kept without that, for there are many."""

    last_transition_time: str = ""


def is_true(conditions: Iterable[Condition], *types: str) -> bool:
    """True if a condition of one of these types holds."""
    return any(one.type in types and one.status == "True" for one in conditions)


class Guarantee(LocalObject, frozen=True):
    """The resources that are reserved for a queue."""

    resource: ResourceList = {}


class QueueSpec(LocalObject, frozen=True):
    """The guarantee and the limits of a Volcano queue."""

    capability: ResourceList = {}
    deserved: ResourceList = {}
    guarantee: Guarantee = Guarantee()
    parent: str = ""
    reclaimable: bool = True
    weight: int = 1


class QueueStatus(LocalObject, frozen=True):
    """The status of a queue by Volcano; `allocated` is the usage of its pods and those below, a moment ago."""

    state: str = ""
    allocated: ResourceList = {}


class Queue(Object, frozen=True):
    """A queue of Volcano (`scheduling.volcano.sh/v1beta1`, cluster-scoped)."""

    spec: QueueSpec = QueueSpec()
    status: QueueStatus = QueueStatus()


class NetworkTopology(LocalObject, frozen=True):
    """The distance in the network within which a gang's pods are to be placed."""

    mode: str = ""
    highest_tier_allowed: int | None = None


class PodGroupSpec(LocalObject, frozen=True):
    """The least needs of a gang, and its queue."""

    min_member: int = 0
    min_task_member: dict[str, int] = {}
    min_resources: ResourceList = {}
    queue: str = ""
    priority_class_name: str = ""
    network_topology: NetworkTopology = NetworkTopology()


class PodGroupStatus(LocalObject, frozen=True):
    """The status of a gang by Volcano's scheduler."""

    phase: str = ""
    conditions: tuple[Condition, ...] = ()
    running: int = 0


class OwnedFields(LocalObject, frozen=True):
    """The fields of metadata and spec that a field manager owns, as FieldsV1 has them: `{"f:minMember": {}}`."""

    metadata: dict[str, Any] = msgspec.field(default_factory=dict, name="f:metadata")
    spec: dict[str, Any] = msgspec.field(default_factory=dict, name="f:spec")


class ManagedFields(LocalObject, frozen=True):
    """A field manager's fields of an object, its last write, and its `operation`, Apply for server-side apply."""

    manager: str = ""
    operation: str = ""
    time: str = ""
    fields: OwnedFields = msgspec.field(default=OwnedFields(), name="fieldsV1")


class WrittenMeta(ObjectMeta, frozen=True):
    """Metadata with field managers and finalizers, of PodGroups and Namespaces."""

    managed_fields: tuple[ManagedFields, ...] = ()
    finalizers: tuple[str, ...] = ()

    @property
    def by_muster(self) -> bool:
        """True if a PodGroup is muster's: by its label, or by a mark, which stays when the label is removed."""
        return self.labels.get(MANAGED_BY) == MUSTER or any(mark in self.annotations for mark in MARKS)

    def applied_by(self, manager: str) -> OwnedFields:
        """Return the fields that a manager owns because it applied them."""
        mine = (one.fields for one in self.managed_fields if (one.manager, one.operation) == (manager, "Apply"))
        return next(mine, OwnedFields())


class PodGroup(LocalObject, frozen=True):
    """A gang in Volcano's terms (`scheduling.volcano.sh/v1beta1`; it has no status subresource).

    PodGroups of other schedulers are subclasses with the same fields (`muster.schedulers`).
    """

    scheduler: ClassVar[str] = "volcano"
    metadata: WrittenMeta = WrittenMeta()
    spec: PodGroupSpec = PodGroupSpec()
    status: PodGroupStatus = PodGroupStatus()

    @property
    def queue(self) -> str:
        """The queue that it is in: for Volcano `default` if it names none."""
        return self.spec.queue or "default"


# Taints that no gang is made to tolerate: Kubernetes sets them on nodes under pressure, without a network or out of
# service, and autoscalers set them on new nodes and on those that they are about to remove.
_NO_NEW_PODS = (
    "node.kubernetes.io/",
    "node.cloudprovider.kubernetes.io/",
    "ToBeDeletedByClusterAutoscaler",
    "karpenter.sh/disrupted",
)
_KEEPS_OFF = frozenset({"NoSchedule", "NoExecute"})


class Taint(LocalObject, frozen=True):
    """A taint, which keeps pods off a node that do not tolerate it."""

    key: str = ""
    effect: str = ""


class NodeSpec(LocalObject, frozen=True):
    """The specification of a node: its taints, and whether it takes new pods."""

    unschedulable: bool = False
    taints: tuple[Taint, ...] = ()


class NodeStatus(LocalObject, frozen=True):
    """The resources of a node for pods, and its conditions."""

    allocatable: ResourceList = {}
    conditions: tuple[Condition, ...] = ()


class Node(Object, frozen=True):
    """A node."""

    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()

    @property
    def ready(self) -> bool:
        """True if its kubelet reports it as ready."""
        return is_true(self.status.conditions, "Ready")

    @property
    def takes_pods(self) -> bool:
        """True if it is Ready, not cordoned, and has no taint of a node that is unhealthy or about to go."""
        taints = (one.key for one in self.spec.taints if one.effect in _KEEPS_OFF)
        return self.ready and not self.spec.unschedulable and not any(key.startswith(_NO_NEW_PODS) for key in taints)


class PriorityClass(Object, frozen=True):
    """A priority by name (`scheduling.k8s.io/v1`, cluster-scoped)."""

    value: int = 0
    global_default: bool = False


class Namespace(LocalObject, frozen=True):
    """A namespace (`v1`): its labels and annotations."""

    metadata: WrittenMeta = WrittenMeta()


class _JobSpec(LocalObject, frozen=True):
    parallelism: int = 1
    completions: int | None = None
    suspend: bool = False
    active_deadline_seconds: int | None = None


class _JobStatus(LocalObject, frozen=True):
    active: int = 0
    conditions: tuple[Condition, ...] = ()


class Job(Object, frozen=True):
    """A Job (`batch/v1`)."""

    spec: _JobSpec = _JobSpec()
    status: _JobStatus = _JobStatus()

    @property
    def short(self) -> bool:
        """True if it has fewer pods than it may have, and would make more."""
        ended = is_true(self.status.conditions, "Complete", "Failed")
        idle = ended or self.spec.suspend or self.metadata.deletion_timestamp
        return not idle and self.status.active < self.spec.parallelism


class ConfigMap(LocalObject, frozen=True):
    """A ConfigMap."""

    data: dict[str, str] = msgspec.field(default_factory=dict)


class LeaseSpec(LocalObject, frozen=True):
    """The holder of a Lease and its last renewal; times are RFC 3339 text."""

    holder_identity: str = ""
    lease_duration_seconds: int = 0
    acquire_time: str = ""
    renew_time: str = ""
    lease_transitions: int = 0


class LeaseMeta(LocalObject, frozen=True):
    """Metadata of a Lease that others may have written, as they wrote it."""

    resource_version: str = ""
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    annotations: dict[str, str] = msgspec.field(default_factory=dict)
    owner_references: tuple[dict[str, Any], ...] = ()
    finalizers: tuple[str, ...] = ()


class Lease(LocalObject, frozen=True):
    """A `coordination.k8s.io/v1` Lease."""

    metadata: LeaseMeta = LeaseMeta()
    spec: LeaseSpec = LeaseSpec()


def decode(data: bytes | str, type_: type[T]) -> T:
    """Decode JSON into one of the types of this module or of `muster.workloads`.

    Raises InvalidObjectError when the text is not JSON or a field has the wrong type.
    """
    try:
        try:
            return msgspec.json.decode(data, type=type_)
        except msgspec.ValidationError:
            # Rare: either a null where a field is absent, which is harmless, or a real mistake, which fails again.
            parsed = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidObjectError("", not_json(error)) from error
    return convert(parsed, type_)


def not_json(error: Exception) -> str:
    """Return why a text is not JSON, with the place of the fault where it is known."""
    if isinstance(error, RecursionError):
        return "not JSON: nested too deeply"
    if isinstance(error, UnicodeDecodeError):
        return f"not JSON: not UTF-8 text at byte {error.start}"
    return f"not JSON: {str(error).removeprefix('JSON is malformed: ')}"


def convert(value: Any, type_: type[T]) -> T:  # noqa: ANN401 - a manifest just parsed may hold anything
    """Turn a parsed manifest into one of the types of this module; as `decode`."""
    try:
        try:
            return msgspec.convert(value, type=type_)
        except msgspec.ValidationError:
            # As above.
            return msgspec.convert(_without_nulls(value), type=type_)
    except RecursionError as error:
        raise InvalidObjectError("", "nested too deeply") from error
    except msgspec.ValidationError as error:
        raise InvalidObjectError(*fault_of(error)) from error


def fault_of(error: msgspec.ValidationError) -> tuple[str, str]:
    """Return the path of a field that cannot be decoded, and the problem in words of Kubernetes."""
    problem, _, path = str(error).partition(" - at `$")
    path = path.strip("`.")
    if (missing := _MISSING.match(problem)) is not None:
        return f"{path}.{missing[1]}".lstrip("."), "required, and missing"
    if (unknown := _UNKNOWN.match(problem)) is not None:
        return path, f'unknown field "{unknown[1]}"'
    if (wrong := _WRONG_TYPE.match(problem)) is None:
        return path, problem[:1].lower() + problem[1:].replace("`", '"')
    expected, found = {*wrong[1].split(" | ")} - {"null"}, wrong[2]
    words = "a quantity" if expected == _QUANTITY else " or ".join(_TYPES.get(one, one) for one in sorted(expected))
    if not found:
        return path, f"expected {words}"
    return (
        path,
        f"expected {words}, found {'a number with a fraction' if found == 'float' else _TYPES.get(found, found)}",
    )


def _without_nulls(value: Any) -> Any:  # noqa: ANN401 - as above
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_without_nulls(item) for item in value if item is not None]
    return value
