"""The loop never stands still: what an event brings is cut into steps, and none grows with the number of gangs.

A step is what runs before others may have their turn: the handler of the event, one step of the sweep that it leaves
for later, and the look at one gang. Each is counted in a cluster of 16 gangs and in one of 64.
"""

from collections.abc import Callable

import pytest

from muster.model.objects import PriorityClass, convert
from muster.resources.pod_defaults import LimitRange
from tests.support.calls import Calls, most_calls
from tests.support.controller.harness import Harness
from tests.support.manifests.observed import (
    JSON,
    NAMESPACE,
    amounts,
    limit_range,
    made,
    pod_group,
    priority_class,
    queue,
    ray_cluster,
    ray_owner,
    ray_pod,
    workers,
)

# In both more is held of each queue than it has.
FEW, MANY = 32, 128
QUEUES = 8
# The way through a line of gangs is a little longer where more stand in it.
GROWTH, CALLS = 1.2, 20
# Gangs that are looked at of those that an event concerns.
LOOKS = 20


def world(gangs: int, **said: str) -> Harness:
    """So many gangs of one pod in eight queues, half of them admitted, all of which need different amounts."""
    names = [f"g{number:03}" for number in range(gangs)]
    clusters, pods, groups = [], [], []
    for number, name in enumerate(names):
        runs = number // QUEUES % 2 == 0
        labels = {"volcano.sh/queue-name": f"q{number % QUEUES}"}
        one = ray_pod(f"{name}-head", "headgroup", cluster=name, owner_uid=f"uid-{name}", held=not runs)
        one["spec"]["containers"][0]["resources"]["requests"]["cpu"] = f"{1000 + number}m"
        head = {"spec": {"containers": one["spec"]["containers"]}}
        clusters.append(ray_cluster(workers(replicas=0), name=name, uid=f"uid-{name}", labels=labels, head=head))
        pods.append(one)
        groups.append(
            pod_group(
                f"ray-{name}-pg",
                owner=ray_owner(name),
                admitted=f"uid-{name}" if runs else "",
                minMember=1,
                minResources={"cpu": f"{1000 + number}m"},
                queue=f"q{number % QUEUES}",
            )
        )
    queues = [waits(number, **said) for number in range(QUEUES)]
    return Harness(workloads=clusters, pods=pods, groups=groups, queues=queues, classes=[priority_class("high", 10)])


def waits(number: int, cpu: str = "2", **said: str) -> JSON:
    """One of the queues; more is held there than it has."""
    one = queue(f"q{number}", cpu=cpu)
    one["metadata"]["annotations"] = {f"muster.dev/{name}": text for name, text in said.items()}
    return one


def comes(name: str, *, parent: str = "", cpu: str = "2") -> JSON:
    """A queue that nobody has used yet."""
    one = queue(name, cpu=cpu)
    return {**one, "spec": {**one["spec"], **({"parent": parent} if parent else {})}}


def higher(harness: Harness) -> None:
    harness.cluster.priority_classes.apply("modified", made(PriorityClass, priority_class("high", 20)))


def ranged(harness: Harness) -> None:
    harness.cluster.added.ranges.apply("added", convert(limit_range(namespace=NAMESPACE), LimitRange))


def ended(harness: Harness) -> None:
    harness.drop_workload(ray_cluster(workers(replicas=0), name="g000", uid="uid-g000"))


def told(harness: Harness) -> None:
    harness.set_queue(waits(1, cpu="2500m"))
    harness.sweep()
    harness.reconciler.refresh_messages()


EVENTS: dict[str, Callable[[Harness], None]] = {
    "a gang ends": ended,
    "a queue has more room": lambda harness: harness.set_queue(waits(1, cpu="2500m")),
    "a queue has another patience": lambda harness: harness.set_queue(waits(1, patience="1s")),
    "a queue preempts": lambda harness: harness.set_queue(waits(1, preemption="lower-priority")),
    "a queue has another gate mode": lambda harness: harness.set_queue(waits(1, gate="assemble")),
    "a queue comes": lambda harness: harness.set_queue(comes("new")),
    "a queue goes": lambda harness: harness.drop_queue(waits(1)),
    "a queue gets another parent": lambda harness: harness.set_queue(comes("q1", parent="q2")),
    "the root gets a limit": lambda harness: harness.set_queue(comes("root", cpu="1000")),
    "the nodes count": lambda harness: harness.reconciler.bound(amounts(cpu="1000")),
    "a PriorityClass changes": higher,
    "a LimitRange comes": ranged,
    "a namespace gets a label": lambda harness: harness.set_namespace(
        {"metadata": {"name": NAMESPACE, "labels": {"team": "a"}}}
    ),
    "words are told": told,
}
# What is moved by the number of gangs of the one queue that changes, in a few calls for each; see hack/bench/steps.py.
OF_ITS_OWN = {"a queue preempts"}


async def longest(gangs: int, event: Callable[[Harness], None]) -> dict[str, int]:
    """The calls of the longest step of each sort."""
    harness = world(gangs)
    harness.sweep()
    await harness.work()
    with Calls() as handler:
        event(harness)
    sweep = most_calls(harness.term.sweeps.steps())
    look = 0
    for _ in range(min(LOOKS, harness.queue.statistics().ready)):
        key = await harness.queue.get()
        with Calls() as calls:
            await harness.reconciler.reconcile(key)
        harness.queue.done(key)
        look = max(look, calls.count)
    return {"the handler": handler.count, "a step of the sweep": sweep, "the look at a gang": look}


@pytest.mark.parametrize("event", EVENTS)
async def test_no_step_grows_with_the_number_of_gangs(event: str) -> None:
    few, many = await longest(FEW, EVENTS[event]), await longest(MANY, EVENTS[event])
    grown = {what: (few[what], calls) for what, calls in many.items() if calls > GROWTH * few[what] + CALLS}
    if event in OF_ITS_OWN:
        grown.pop("the handler", None)
    assert not grown
