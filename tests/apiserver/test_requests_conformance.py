"""What a pod asks for is what the real scheduler makes room for: that much is enough, and the least bit less is not.

Every shape of a pod gets nodes of its own, and its pods may go nowhere else: to one node with exactly the room that we
computed, and for every resource to a node with one unit less of it (a milli-core, a byte, a piece). All of them are
made at once, and the scheduler's answers are collected as they come. Nothing but the apiserver and the scheduler runs
meanwhile: for the scheduler a node is room, and nobody else needs to hear of two thousand.
"""

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any, NamedTuple

import pytest

from hack.testbed import Nodes, Testbed
from hack.testbed.api import Answer, Api
from hack.testbed.errors import TestbedError
from hack.testbed.waiting import wait_for
from muster.model.objects import convert
from muster.model.pods import Pod, PodSpec
from muster.resources.amounts import Resources, as_text, parse_resources, total
from muster.resources.pod_defaults import LimitRange, PodDefaults, RuntimeClass
from muster.resources.pod_requests import pod_requests
from muster.resources.quantity import ZERO, Quantity, parse_quantity
from tests.support.cluster.desk import PATIENCE, wait_for_class
from tests.support.cluster.verbs import make_namespace
from tests.support.examples import examples
from tests.support.manifests.pod_shapes import LIMIT_RANGES, OVERHEADS, Shape, resized, shapes

JSON = dict[str, Any]

_SHAPES = examples(480)
_LEAST_SHAPES = examples(300)
_MILLI = parse_quantity("1m")
_ONE = parse_quantity("1")

# How many pods are resized, what is left beside each, and what is the least bit more.
_RESIZED = examples(100)
_LEFT = {"cpu": "10m", "memory": "10"}
_TOO_MUCH = {"cpu": "11m", "memory": "11"}

PLAIN = "shapes-plain"
SCHEDULED = "scheduled"


class Trial(NamedTuple):
    """A pod of some shape, the nodes it may go to, each with its room, and what the scheduler must say of it."""

    name: str
    shape: Shape
    nodes: dict[str, Resources]
    expected: str


def limit_ranges(namespace: str) -> list[JSON]:
    return [
        {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": f"limits-{n}"}, "spec": {"limits": [item]}}
        for n, item in enumerate(LIMIT_RANGES[namespace])
    ]


def runtime_classes() -> list[JSON]:
    return [
        {"metadata": {"name": name}, "handler": "none", "overhead": {"podFixed": overhead}}
        for name, overhead in OVERHEADS.items()
    ]


def computed(shape: Shape) -> dict[str, Quantity]:
    """What the pod asks for, in our words, from what its user wrote."""
    ranges = [convert(one, LimitRange) for one in limit_ranges(shape.namespace)]
    runtimes = {one["metadata"]["name"]: convert(one, RuntimeClass) for one in runtime_classes()}
    return pod_requests(PodDefaults(ranges, runtimes).completed(convert(shape.spec, PodSpec)))


def manifest(shape: Shape, name: str = "shape", nodes: Iterable[str] = ()) -> JSON:
    """The pod; it goes to none but these nodes, and never mind in which state they are."""
    terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]} for node in nodes]
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {
            **shape.spec,
            **({"affinity": affinity} if terms else {}),
            "tolerations": [{"operator": "Exists"}],
            "priorityClassName": "shapes",
            "automountServiceAccountToken": False,
        },
    }


@pytest.fixture(scope="module")
def prepared() -> Iterator[Api]:
    """Namespaces with their LimitRanges, RuntimeClasses with overhead, a priority that evicts nobody."""
    with Testbed.start(parts=[], nodes=Nodes(count=1), progress=print) as testbed:
        calls = testbed.api()
        _prepare(calls)
        testbed.stop_part("kwok")
        testbed.stop_part("kube-controller-manager")
        yield calls
        calls.close()


def _prepare(calls: Api) -> None:
    calls.done(
        "POST",
        "/apis/scheduling.k8s.io/v1/priorityclasses",
        {"metadata": {"name": "shapes"}, "value": 1, "preemptionPolicy": "Never"},
    )
    wait_for_class(calls, "shapes")
    for one in runtime_classes():
        calls.done("POST", "/apis/node.k8s.io/v1/runtimeclasses", one)
    for namespace in LIMIT_RANGES:
        make_namespace(calls, namespace)
        for one in limit_ranges(namespace):
            calls.done("POST", f"/api/v1/namespaces/{namespace}/limitranges", one)


@pytest.fixture(scope="module")
def accepted(prepared: Api) -> list[tuple[Shape, JSON]]:
    """The shapes that the apiserver takes, each with the specification that it made of it."""

    def tried(shape: Shape) -> Answer:
        return prepared("POST", f"/api/v1/namespaces/{shape.namespace}/pods?dryRun=All", manifest(shape))

    candidates = shapes(seed=4, count=_SHAPES)
    answers = prepared.each(tried, candidates)
    taken = [(shape, one.body["spec"]) for shape, one in zip(candidates, answers, strict=True) if one.ok]
    refused = {one.message for one in answers if not one.ok}
    assert len(taken) >= _LEAST_SHAPES, refused
    return taken


def test_what_the_apiserver_makes_of_a_pod_asks_for_no_more_and_no_less(accepted: list[tuple[Shape, JSON]]) -> None:
    """Defaults that it writes into a pod are those that we reckon with beforehand."""
    differing = [
        (shape, ours, theirs)
        for shape, admitted in accepted
        if (ours := as_text(computed(shape))) != (theirs := as_text(pod_requests(convert(admitted, PodSpec))))
    ]
    assert differing == []


def test_a_pod_fits_where_there_is_room_for_what_we_computed_and_not_with_one_unit_less(
    prepared: Api, accepted: list[tuple[Shape, JSON]]
) -> None:
    trials = [trial for n, (shape, _) in enumerate(accepted) for trial in trials_of(f"shape-{n}", shape)]
    rooms = {name: room for trial in trials for name, room in trial.nodes.items()}
    prepared.each(lambda name: prepared.done("POST", "/api/v1/nodes", node(name, rooms[name])), rooms)
    prepared.each(lambda trial: create(prepared, trial), trials)
    said = answers(prepared, trials)
    wrong = [(trial, said[trial.name]) for trial in trials if said[trial.name] != trial.expected]
    assert wrong == []


def test_a_pod_in_the_midst_of_a_resize_holds_what_we_computed_and_nothing_more(
    prepared: Api, accepted: list[tuple[Shape, JSON]]
) -> None:
    """Beside it there is room for a small pod of the size that is left on its node, and for none that is larger."""
    shapes_resized = [shape for shape, _ in accepted if shape.namespace == PLAIN][:_RESIZED]
    holders = dict(enumerate(shapes_resized))
    held = dict(zip(holders, prepared.each(lambda n: hold(prepared, f"held-{n}", n, holders[n]), holders), strict=True))
    rooms = {n: total((held[n], parse_resources(_LEFT, path="left"))) for n in holders}
    prepared.each(lambda n: prepared.done("POST", "/api/v1/nodes", node(f"held-{n}", rooms[n], pods=9)), holders)

    def beside(n: int, name: str, asks: JSON, expected: str) -> Trial:
        container = {"name": "c", "image": "none", "resources": {"requests": asks}}
        return Trial(f"beside-{n}-{name}", Shape(PLAIN, {"containers": [container]}), {f"held-{n}": rooms[n]}, expected)

    too_large = [
        beside(n, resource, _LEFT | {resource: amount}, lacking([resource]))
        for n in holders
        for resource, amount in _TOO_MUCH.items()
    ]
    fitting = [beside(n, "exact", _LEFT, SCHEDULED) for n in holders]
    wrong = []
    # One after the other: where the fitting pod is, nothing else fits anyway.
    for trials in (too_large, fitting):
        prepared.each(lambda trial: create(prepared, trial), trials)
        said = answers(prepared, trials)
        wrong += [(trial, said[trial.name]) for trial in trials if said[trial.name] != trial.expected]
    assert wrong == []


def hold(calls: Api, name: str, seed: int, shape: Shape) -> Resources:
    """Bind a pod to the node of its name, report a resize in its status, and return what it holds now."""
    pods = f"/api/v1/namespaces/{shape.namespace}/pods"
    bound = manifest(shape, name)
    bound["spec"]["nodeName"] = name
    calls.done("POST", pods, bound)
    pod = calls.done("PATCH", f"{pods}/{name}/status", {"status": resized(seed, shape)}, patch="merge")
    live = convert(pod, Pod)
    return pod_requests(live.spec, status=live.status)


def trials_of(name: str, shape: Shape) -> Iterable[Trial]:
    requests = computed(shape)
    yield Trial(f"{name}-exact", shape, {f"{name}-exact": requests}, SCHEDULED)
    less = {resource: one_less(requests, resource) for resource, amount in requests.items() if amount}
    if less:
        nodes = {f"{name}-less-{n}": room for n, room in enumerate(less.values())}
        yield Trial(f"{name}-less", shape, nodes, lacking(less))


def one_less(room: Resources, resource: str) -> Resources:
    unit = _MILLI if resource == "cpu" else _ONE
    return {**room, resource: max(room[resource] - unit, ZERO)}


def lacking(resources: Iterable[str]) -> str:
    return ", ".join(f"1 Insufficient {resource}" for resource in sorted(resources))


def node(name: str, room: Resources, pods: int = 1) -> JSON:
    resources = {"pods": str(pods), **as_text(room)}
    return {"metadata": {"name": name}, "status": {"capacity": resources, "allocatable": resources}}


def create(calls: Api, trial: Trial) -> None:
    calls.done(
        "POST",
        f"/api/v1/namespaces/{trial.shape.namespace}/pods",
        manifest(trial.shape, trial.name, trial.nodes),
    )


def answers(calls: Api, trials: list[Trial]) -> dict[str, str]:
    """The scheduler's answer on each pod by name, when it has spoken on all, or else after a while."""
    last: dict[str, str] = {}

    def all_final() -> bool:
        last.update(
            (pod["metadata"]["name"], answer(pod))
            for namespace in LIMIT_RANGES
            for pod in calls.done("GET", f"/api/v1/namespaces/{namespace}/pods")["items"]
        )
        # Not every node may be known to the scheduler when it first looks at a pod; it looks again.
        return all(last.get(trial.name) in {SCHEDULED, trial.expected} for trial in trials)

    with suppress(TestbedError):
        wait_for("the scheduler's word on every pod", all_final, 2 * PATIENCE, interval=0.5)
    return last


def answer(pod: JSON) -> str:
    """What the scheduler has last said: that the pod is scheduled, or of what how many nodes have too little."""
    said = next((one for one in pod["status"].get("conditions", []) if one["type"] == "PodScheduled"), None)
    if said is None:
        return "nothing"
    if said["status"] == "True":
        return SCHEDULED
    return ", ".join(
        sorted(re.findall(r"[0-9]+ Insufficient [^ ,]*[^ ,.]", said["message"]), key=lambda one: one.split()[-1])
    )
