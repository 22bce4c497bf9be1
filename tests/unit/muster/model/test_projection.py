"""What stores keep of an object: all that muster reads, and whatever makes an object large costs little."""

import ast
import gc
import importlib
import inspect
import json
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, get_args, get_origin

import msgspec
import pytest

import muster
from muster.admitters import Admitter
from muster.cluster.cluster import Cluster
from muster.kube.reflector import Reflector, Watched
from muster.kube.store import Store
from muster.model.keep import Keep, copied
from muster.model.large_objects import MOST_CONTAINERS
from muster.model.names import READ_KEYS
from muster.model.objects import InvalidObjectError, Node, PodGroup, decode
from muster.model.pods import Pod
from muster.model.projection import Projection
from muster.model.resource import NODES, PODS
from muster.queueing.sources import QUEUE_SOURCES
from muster.resources.pod_requests import check_size, pod_requests
from muster.schedulers import SCHEDULERS
from muster.workloads import GANG_KINDS, kind_of
from muster.workloads.ray import RAY_CLUSTER
from tests.support.calls import Calls
from tests.support.cases import cases
from tests.support.manifests.families import FAMILIES, Family, each
from tests.support.manifests.observed import JSON, template

# etcd takes 1.5 MiB; with muster's share of two cores an event must leave room for all others.
OBJECT_BYTES, MOST_BYTES = 1_450_000, 300_000
# Calls of functions, where 60,000 to 480,000 values are in an object, and the bytes that are taken for a moment. At
# most 11,800 and 45,100, 10.2 MB and 4.2 MB in Python 3.11; `python -m hack.bench memory` measures the time.
MOST_CALLS, MOST_CALLS_OF_EVENT = 13_000, 50_000
MOST_TAKEN, MOST_TAKEN_BY_EVENT = 11_000_000, 5_000_000
_LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789"


def _watched() -> list[Watched]:
    """Every store of the controller, and so every type that the webhook keeps."""
    found: dict[tuple[type[Any], Keep], Watched] = {}
    for source in QUEUE_SOURCES.values():
        placing = [one for one in SCHEDULERS.values() if one.runs]
        cluster = Cluster(None, placing, source, list(Admitter), elastic_quotas=True)
        for one in (*cluster.watched(), Watched(NODES, Node, cluster.nodes)):
            found.setdefault((one.type, one.keep), one)
    return list(found.values())


def _name(number: int) -> str:
    text = ""
    while True:
        text += _LETTERS[number % 36]
        number //= 36
        if not number:
            return text


def _map(value: bytes) -> bytes:
    entries: list[bytes] = []
    size = 0
    while size < OBJECT_BYTES:
        entries.append(b'"a.b/%s":%s' % (_name(len(entries)).encode(), value))
        size += len(entries[-1]) + 1
    return b"{%s}" % b",".join(entries)


_MAPS = {value: _map(value) for value in (b'""', b"{}", b"1")}


def _stuffed(type_: Any, seen: set[Any]) -> Iterator[tuple[str, bytes]]:  # noqa: ANN401 - any type
    """Values of a type, each with as much as an object can have in one place, once for each type of object in it."""
    if type_ is str:
        yield "", b'"%s"' % (b"x" * OBJECT_BYTES)
        # Python keeps four bytes for each letter of a text that has one such letter.
        yield "{wide}", '"\U0001f600%s"'.encode() % (b"x" * OBJECT_BYTES)
    elif isinstance(type_, type) and issubclass(type_, msgspec.Struct):
        fields = msgspec.structs.fields(type_) if type_ not in seen else ()
        seen.add(type_)
        for one in fields:
            if not one.encode_name.startswith("muster.dev/"):
                for path, value in _stuffed(one.type, seen):
                    yield f".{one.encode_name}{path}", b'{"%s":%s}' % (one.encode_name.encode(), value)
    elif get_origin(type_) is tuple:
        inner = get_args(type_)[0]
        item = {str: b'""', Any: b"1"}.get(inner, b"{}")
        yield "[]", b"[%s]" % b",".join([item] * (OBJECT_BYTES // (len(item) + 1)))
        yield from ((f"[0]{path}", b"[%s]" % value) for path, value in _stuffed(inner, seen))
    elif get_origin(type_) is dict:
        inner = get_args(type_)[1]
        item = {str: b'""', Any: b"{}"}.get(inner, b"1" if get_args(inner) else b"{}" if inner is not int else b"1")
        yield "{}", _MAPS[item]
        yield "{long}", b'{"%s":%s}' % (b"k" * OBJECT_BYTES, item)
        yield from ((f"{{0}}{path}", b'{"Worker":%s}' % value) for path, value in _stuffed(inner, seen))
    else:
        for one in get_args(type_):
            yield from _stuffed(one, seen)


def _size(of: object) -> int:
    """The bytes of an object and of all that hangs on it."""
    seen: set[int] = set()
    left, total = [of], 0
    while left:
        one = left.pop()
        if id(one) not in seen and not isinstance(one, type) and not callable(one):
            seen.add(id(one))
            total += sys.getsizeof(one)
            left += gc.get_referents(one)
    return total


def _cost(run: Callable[[], object]) -> tuple[int, int]:
    """The calls that it makes, and the most bytes that it takes at once, when caches are filled."""
    run()
    with Calls(builtin=True) as calls:
        run()
    gc.collect()
    tracemalloc.start()
    run()
    taken = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return calls.count, taken


def _is_less(keep: Keep, path: str) -> bool:
    """Whether the apiserver takes less there than an object can have: annotations, and no tenant labels a namespace."""
    return (keep is not Keep.READ and path.startswith(".metadata.annotations")) or (
        keep is Keep.ALL and path.startswith(".metadata.labels")
    )


@pytest.mark.parametrize("watched", _watched(), ids=lambda one: f"{one.resource.full_name} {one.type.__name__}")
def test_whatever_makes_an_object_large_takes_little_work_and_room(watched: Watched) -> None:
    """Each field that muster decodes in turn, with as much in it as an object can have."""
    projection, costly, places = Projection(watched.type, watched.keep), {}, 0
    for path, raw in _stuffed(watched.type, set()):
        if _is_less(watched.keep, path):
            continue
        kept = _size(projection.decode(raw))
        calls, taken = _cost(partial(projection.decode, raw))
        places += 1
        if kept > MOST_BYTES or calls > MOST_CALLS or taken > MOST_TAKEN:
            costly[path] = (kept, calls, taken)
    assert costly == {}
    assert places > 10


def _labelled(many: int, **more: JSON) -> JSON:
    labels = {f"x{_name(number)}": "" for number in range(many)}
    fields: JSON = {"f:metadata": {"f:labels": {f"f:{key}": {} for key in labels}}}
    written = {"manager": "kubectl-create", "operation": "Update", "fieldsType": "FieldsV1", "fieldsV1": fields}
    meta = {"name": "p", "namespace": "evil", "uid": "u", "resourceVersion": "7"}
    return {"metadata": {**meta, "labels": labels, "managedFields": [written]}, **more}


_AMOUNTS = {f"a.b/{_name(number)}": "1" for number in range(57_000)}
_CASES = [
    pytest.param(Pod, Keep.READ, _labelled(57_000, spec={"containers": [{"name": "c"}]}), id="labels of a pod"),
    pytest.param(PodGroup, Keep.COPIED, _labelled(57_000, spec={"minMember": 1}), id="labels of a PodGroup"),
    pytest.param(RAY_CLUSTER.decoded, Keep.COPIED, _labelled(57_000, spec={}), id="labels of a workload"),
    pytest.param(
        Pod,
        Keep.READ,
        _labelled(0, spec={"containers": [{"name": "c", "resources": {"requests": _AMOUNTS}}]}),
        id="resources of a pod",
    ),
    pytest.param(
        RAY_CLUSTER.decoded,
        Keep.COPIED,
        _labelled(
            0,
            spec={
                "workerGroupSpecs": [
                    {
                        "groupName": f"g{group}",
                        "template": {"spec": {"containers": [{"name": f"c{n}"} for n in range(20)]}},
                    }
                    for group in range(4_000)
                ]
            },
        ),
        id="groups of a workload",
    ),
    pytest.param(
        RAY_CLUSTER.decoded,
        Keep.COPIED,
        _labelled(
            0,
            spec={
                "workerGroupSpecs": [
                    {
                        "groupName": f"g{group}",
                        "template": {
                            "spec": {
                                "containers": [{"name": f"c{n}"} for n in range(60)],
                                "initContainers": [{"name": f"i{n}"} for n in range(60)],
                                "volumes": [{"name": "v" * 3_000}],
                            }
                        },
                    }
                    for group in range(200)
                ]
            },
        ),
        id="containers of a workload",
    ),
]


def _annotated(many: int, length: int) -> bytes:
    said = ",".join(f'"{_name(number):x>{length}}":""' for number in range(many))
    return f'{{"metadata":{{"annotations":{{{said}}}}}}}'.encode()


@pytest.mark.parametrize("keep", Keep)
@pytest.mark.parametrize(("many", "length"), [(65_000, 4), (2_000, 131), (1_000, 262), (500, 520)])
def test_as_many_annotations_as_an_object_can_have_take_little_work_and_room(
    keep: Keep, many: int, length: int
) -> None:
    """The apiserver takes 256 KiB of keys and values."""
    raw, projection = _annotated(many, length), Projection(PodGroup, keep)
    assert _size(projection.decode(raw)) < MOST_BYTES
    calls, taken = _cost(partial(projection.decode, raw))
    assert calls < MOST_CALLS
    assert taken < MOST_TAKEN


@pytest.mark.parametrize(("type_", "keep", "manifest"), _CASES)
async def test_an_event_of_the_largest_object_takes_little_work_and_room(
    type_: type[Any], keep: Keep, manifest: JSON
) -> None:
    """From the line that came to the store that has it."""
    line = json.dumps({"type": "MODIFIED", "object": manifest}, separators=(",", ":")).encode()
    assert len(line) > OBJECT_BYTES / 2

    def take() -> Store[Any]:
        store: Store[Any] = Store()
        Reflector(None, Watched(PODS, type_, store, keep=keep))._take(line)  # type: ignore[arg-type] # it asks for nothing
        return store

    take()
    gc.collect()
    tracemalloc.start()
    kept = take()
    gc.collect()
    taken = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert len(kept) == 1
    assert taken < MOST_BYTES
    reflector = Reflector(None, Watched(PODS, type_, Store(), keep=keep))  # type: ignore[arg-type] # as above
    calls, taken = _cost(partial(reflector._take, line))
    assert calls < MOST_CALLS_OF_EVENT
    assert taken < MOST_TAKEN_BY_EVENT


def test_a_pod_that_holds_too_much_is_not_read_and_counts() -> None:
    """What is not read of it must not make it ask for less."""
    containers = [{"name": f"c{number}", "resources": {"requests": {"cpu": "1"}}} for number in range(20_000)]
    found = Projection(Pod).decode(json.dumps({"spec": {"containers": containers}}).encode())
    assert len(found.spec.containers) > MOST_CONTAINERS
    with pytest.raises(InvalidObjectError, match="holds more than muster reads: 64 containers"):
        check_size(found.spec)
    assert str(pod_requests(found.spec)["cpu"]) == "64"


def test_of_a_workload_that_holds_too_much_no_gang_is_made() -> None:
    groups = [{"groupName": f"g{number}", "template": template()} for number in range(2_000)]
    raw = json.dumps({"metadata": {"name": "a"}, "spec": {"workerGroupSpecs": groups}}).encode()
    with pytest.raises(InvalidObjectError, match="use fewer or smaller templates"):
        RAY_CLUSTER.read(Projection(RAY_CLUSTER.decoded, Keep.COPIED).decode(raw))


def _padded(value: Any, *, field: str = "") -> Any:  # noqa: ANN401 - any JSON
    """With nulls and with what nobody reads, in each object that is no map."""
    if isinstance(value, dict):
        more = {"unread": {"a": ["b", {"c": 1}], "text": "x" * 2_000}, "null": None}
        padded = {key: _padded(item, field=key) for key, item in value.items()}
        is_map = field.endswith("ReplicaSpecs") or not any(isinstance(item, dict | list) for item in value.values())
        return padded if is_map else padded | more
    return [_padded(item) for item in value] if isinstance(value, list) else value


@each()
def test_a_large_object_reads_as_a_small_one(family: Family) -> None:
    manifest = family.manifest(template(), template())
    manifest["metadata"] |= {"uid": "u", "annotations": {"team": "a", "muster.dev/requeue-after": "5m"}}
    kind = kind_of(family.api_version, family.kind)
    assert kind is not None
    projection = Projection(kind.decoded, Keep.COPIED)
    small, large = (msgspec.json.encode(one) for one in (manifest, {**manifest, "spec": _padded(manifest["spec"])}))
    assert len(small) < 8_192 < len(large)
    assert projection.decode(large) == projection.decode(small)


@cases("padding", ("small", 0), ("large", 20_000))
def test_what_is_kept_of_labels_and_annotations(padding: int) -> None:
    said = {"team": "a", "volcano.sh/queue-name": "q", "muster.dev/gang": "g"}
    meta = {"labels": said, "annotations": {**said, "kubectl.kubernetes.io/last-applied-configuration": "x" * padding}}
    raw = json.dumps({"metadata": meta}).encode()
    read = {key: value for key, value in said.items() if key != "team"}
    for keep, labels, texts in (
        (Keep.READ, read, read),
        (Keep.COPIED, read, said),
        (Keep.ALL, said, {*meta["annotations"]}),
    ):
        found = Projection(PodGroup, keep).decode(raw).metadata
        assert found.labels == labels
        assert texts in (found.annotations, {*found.annotations})


def test_of_managed_fields_what_muster_applied_is_kept() -> None:
    fields: JSON = {"f:spec": {"f:queue": {}}}
    written = [
        {"manager": manager, "operation": operation, "fieldsV1": fields}
        for manager in ("muster", "kubectl")
        for operation in ("Apply", "Update")
    ]
    for padding in (0, 20_000):
        raw = json.dumps({"metadata": {"managedFields": written, "selfLink": "x" * padding}}).encode()
        (one,) = Projection(PodGroup, Keep.COPIED).decode(raw).metadata.managed_fields
        assert (one.manager, one.operation, one.fields.spec) == ("muster", "Apply", {"f:queue": {}})


def test_a_large_object_of_the_wrong_shape_says_where() -> None:
    raw = json.dumps({"metadata": {"name": 5}, "spec": {"text": "x" * 20_000}}).encode()
    with pytest.raises(InvalidObjectError, match=r"^metadata\.name: expected a string, found an integer$"):
        Projection(Pod).decode(raw)


def test_the_controller_of_an_object_of_many_owners_is_found() -> None:
    owner = {"apiVersion": "v1", "kind": "Kind", "uid": "u" * 100}
    owners = [{**owner, "name": f"o{number}"} for number in range(150)] + [{**owner, "name": "c", "controller": True}]
    found = Projection(Pod).decode(json.dumps({"metadata": {"ownerReferences": owners}}).encode()).metadata
    assert found.controller is not None
    assert found.controller.name == "c"


# ---- no key is read that is not kept

_READERS = ("admitters", "gangs", "model", "observe", "queueing", "schedulers", "validation", "workloads")
_TEXTS = {"labels", "annotations"}


def _modules() -> Iterator[Any]:
    root = Path(muster.__file__).parents[1]
    rooms = [*(root / "muster" / room for room in _READERS), root / "webhook" / "reviews", root / "controller"]
    for room in rooms:
        for file in sorted(room.rglob("*.py")):
            if file.stem != "__main__":
                yield importlib.import_module(".".join(file.relative_to(root).with_suffix("").parts))


def _are_texts(node: ast.expr) -> bool:
    """Whether an expression names labels or annotations: `pod.metadata.labels`, or a variable of that name."""
    return (isinstance(node, ast.Attribute) and node.attr in _TEXTS) or (
        isinstance(node, ast.Name) and node.id in _TEXTS | {"said"}
    )


def _keys_asked(tree: ast.AST) -> Iterator[ast.expr]:
    """The keys in `labels.get(KEY)`, `labels[KEY]` and `KEY in labels`."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(value=texts, attr="get"), args=[key, *_]) if _are_texts(texts):
                yield key
            case ast.Subscript(value=texts, slice=key, ctx=ast.Load()) if _are_texts(texts):
                yield key
            case ast.Compare(left=key, ops=[ast.In() | ast.NotIn()], comparators=[texts]) if _are_texts(texts):
                yield key


def _key_of(node: ast.expr, module: dict[str, Any]) -> object:
    """A key that is written out, `KEY` of the module, or `names.KEY`."""
    match node:
        case ast.Constant(value=value):
            return value
        case ast.Name(id=name):
            return module.get(name)
        case ast.Attribute(value=ast.Name(id="names"), attr=name):
            return getattr(module.get("names"), name, None)
    return None


def test_no_key_is_read_that_stores_do_not_keep() -> None:
    """A key of another file or kind must go through `read_key`, or stand in muster/model/names.py."""
    asked: dict[str, str] = {}
    for module in _modules():
        for node in _keys_asked(ast.parse(inspect.getsource(module))):
            value = _key_of(node, vars(module))
            if isinstance(value, str) and {*value} & {*"/-"}:
                asked[value] = module.__name__
    assert len(asked) > 25
    assert {key: where for key, where in asked.items() if key not in READ_KEYS} == {}


def test_the_labels_that_kinds_name_are_kept() -> None:
    assert {kind.pod_label for kind in GANG_KINDS} <= READ_KEYS
    units = [role.unit.label for family in FAMILIES for role in _roles(family) if role.unit]
    assert set(units) <= READ_KEYS


def _roles(family: Family) -> Any:  # noqa: ANN401 - the roles of a workload
    kind = kind_of(family.api_version, family.kind)
    assert kind is not None
    try:
        return kind.read(decode(msgspec.json.encode(family.manifest()), kind.decoded)).roles
    except InvalidObjectError:
        return ()


def test_the_shortest_annotations_are_copied_where_they_are_too_many() -> None:
    annotations = {"large": "x" * 100_000, "larger": "x" * 110_000, "small": "a"}
    assert set(copied(annotations)) == {"large", "small"}
