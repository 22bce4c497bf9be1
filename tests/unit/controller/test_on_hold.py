"""Gangs and queues on hold: what does not start, whom it does not hold up, and what is said."""

from typing import Any

import pytest

from muster.model.names import HOLD, MESSAGE, PASSED_SINCE, STATE
from tests.support.cases import cases
from tests.support.controller.bypass_queue import LARGE, OF_A_JOB, passed, small_behind_large
from tests.support.controller.harness import Harness
from tests.support.controller.two_gangs import SMALL, demo, members, two
from tests.support.manifests.observed import (
    GROUP,
    JSON,
    NAMESPACE,
    namespace,
    pod_group,
    queue,
    ray_cluster,
    ray_pod,
    workers,
)
from tests.support.manifests.owner_chains import owned

ON_HOLD = {HOLD: "true"}
OPEN = ["demo-head", "demo-w-0", "demo-w-1"]
SAID = (
    'RayCluster "demo" is on hold (its annotation muster.dev/hold); '
    f"to resume it: muster resume raycluster/demo -n {NAMESPACE}"
)
OF_QUEUE = 'queue "q" is on hold (its annotation muster.dev/hold); to resume it: muster resume queue/q'


def held(**rest: Any) -> JSON:  # noqa: ANN401 - whatever `ray_cluster` takes
    return ray_cluster(annotations=ON_HOLD, **rest)


def held_queue(value: str = "true", **rest: Any) -> JSON:  # noqa: ANN401 - whatever `queue` takes
    return queue(**{"cpu": "4", "memory": "6Gi", **rest}, annotations={HOLD: value})


def stands(harness: Harness, group: str = GROUP) -> tuple[str, str]:
    said = harness.annotations(group)
    return said[STATE], said[MESSAGE]


async def test_a_gang_on_hold_says_so_and_starts_when_it_is_resumed() -> None:
    harness = await demo(workloads=[held()]).settled()
    assert harness.open_pods() == []
    assert stands(harness) == ("OnHold", SAID)
    assert ("Normal", "OnHold", SAID) in harness.events()
    harness.set_workload(ray_cluster())
    await harness.settle()
    assert harness.open_pods() == OPEN


async def test_the_gang_behind_one_on_hold_starts_and_the_place_in_line_is_kept() -> None:
    """By priority and age: that is all that a place in line ever is."""
    harness = two()
    harness.set_workload(held())
    await harness.settle()
    assert harness.open_pods() == ["other-head", "other-w-0", "other-w-1"]
    harness.set_workload(ray_cluster())
    await harness.settle()
    state, message = stands(harness)
    assert state == "WaitingForQuota"
    assert message.endswith("position 1 of 1 waiting")


@cases("settings", ("whose patience is over", {}), ("strict", {"queueing": "strict"}))
async def test_nobody_waits_behind_a_gang_on_hold(settings: dict[str, str]) -> None:
    harness = await small_behind_large(passed(), annotations=settings).settled()
    assert "small-0" not in harness.open_pods()
    large = ray_cluster(workers(replicas=2), name="large", uid="uid-large", annotations=ON_HOLD, meta=OF_A_JOB)
    harness.set_workload(large)
    await harness.settle()
    assert "small-0" in harness.open_pods()
    assert PASSED_SINCE not in harness.annotations(LARGE), "its patience begins when it is back in line"


async def test_what_made_the_workload_puts_it_on_hold_as_well() -> None:
    """Whether its operator copies the annotation or not; the name is that of the object that its user wrote."""
    meta = {"name": "nightly", "namespace": NAMESPACE, "uid": "uid-nightly"}
    job = {"apiVersion": "ray.io/v1", "kind": "RayJob", "metadata": {**meta, "annotations": ON_HOLD}}
    harness = await demo(workloads=[owned(held(), job), job]).settled()
    assert harness.open_pods() == []
    said = stands(harness)[1]
    assert said.startswith('RayJob "nightly" is on hold')
    assert said.endswith(f"muster resume rayjob/nightly -n {NAMESPACE}")
    harness.set_workload(owned(ray_cluster(), job))
    await harness.settle()
    assert harness.open_pods() == []
    harness.set_workload({**job, "metadata": meta})
    await harness.settle()
    assert harness.open_pods() == OPEN


async def test_where_one_of_two_objects_is_resumed_the_state_names_the_other() -> None:
    """KubeRay takes no copy of the annotation back; a gang on hold stands in no line, and has no turn to say so."""
    meta = {"name": "nightly", "namespace": NAMESPACE, "uid": "uid-nightly"}
    job = {"apiVersion": "ray.io/v1", "kind": "RayJob", "metadata": {**meta, "annotations": ON_HOLD}}
    harness = await demo(workloads=[owned(held(), job), job]).settled()
    assert stands(harness)[1].startswith('RayJob "nightly" is on hold')
    harness.set_workload({**job, "metadata": meta})
    await harness.settle()
    assert stands(harness) == ("OnHold", SAID)


async def test_one_pod_holds_a_gang_of_plain_pods() -> None:
    said = {"muster.dev/gang-size": "2", "scheduling.k8s.io/group-name": "pair"}

    def member(name: str, **annotations: str) -> JSON:
        made = ray_pod(name)
        made["metadata"] |= {"labels": {"muster.dev/gang": "pair", "volcano.sh/queue-name": "q"}, "ownerReferences": []}
        made["metadata"]["annotations"] = {**said, **annotations}
        return made

    harness = await Harness(pods=[member("a"), member("b", **ON_HOLD)], queues=[SMALL]).settled()
    assert harness.open_pods() == []
    assert stands(harness, "pair")[1].startswith('Pod "b" is on hold')


async def test_a_gang_that_lacks_pods_says_both() -> None:
    harness = await demo(workloads=[held()], pods=members()[:2]).settled()
    harness.now += 6
    harness.queue.add(next(iter(harness.cluster.gangs())))
    await harness.settle()
    assert stands(harness) == ("Assembling", f"waiting for its pods: workers 1 of 2; {SAID}")


@pytest.mark.parametrize("mode", ["queue", "assemble"])
async def test_nothing_starts_in_a_queue_on_hold(mode: str) -> None:
    harness = await demo(namespaces=[namespace(annotations={"muster.dev/gate": mode})], queues=[held_queue()]).settled()
    assert harness.open_pods() == []
    assert stands(harness) == ("OnHold", OF_QUEUE)
    harness.set_queue(SMALL)
    await harness.settle()
    assert harness.open_pods() == OPEN


async def test_a_queue_on_hold_holds_those_below_it() -> None:
    """Also where it limits nothing, so that those below compete with nobody."""
    team = {"metadata": {"name": "team", "annotations": ON_HOLD}, "spec": {}, "status": {"state": "Open"}}
    below = queue(cpu="4")
    below["spec"]["parent"] = "team"
    harness = await demo(queues=[team, below]).settled()
    assert harness.open_pods() == []
    assert stands(harness)[1].startswith('queue "team" above "q" is on hold')
    harness.set_queue({**team, "metadata": {"name": "team"}})
    await harness.settle()
    assert harness.open_pods() == OPEN


@pytest.mark.parametrize("value", ["false", "yes", ""])
async def test_another_value_holds_nothing(value: str) -> None:
    harness = await demo(workloads=[ray_cluster(annotations={HOLD: value})], queues=[held_queue(value)]).settled()
    assert harness.open_pods() == OPEN


async def test_where_nobody_admits_nothing_is_on_hold() -> None:
    """The webhook says so; with Kueue the quota would be spent on pods that never start."""
    alone = namespace(annotations={"muster.dev/admitter": "none"})
    harness = await demo(workloads=[held()], namespaces=[alone], queues=[held_queue()]).settled()
    assert harness.open_pods() == OPEN


@pytest.mark.parametrize("by", ["workload", "queue"])
async def test_what_runs_stays_and_gets_lost_pods_back_but_does_not_grow(by: str) -> None:
    """As in a closed queue."""
    workload = held() if by == "workload" else ray_cluster()
    pods = [*(ray_pod(name, role, held=False) for name, role in (("head", "headgroup"), ("w-0", "workers")))]
    lost, more = ray_pod("w-1"), ray_pod("w-2")
    marked = pod_group(admitted="uid-demo", minResources={"cpu": "3", "memory": "3Gi"})
    queues = [held_queue(cpu="9", memory="9Gi") if by == "queue" else queue(cpu="9", memory="9Gi")]
    harness = await Harness(workloads=[workload], pods=[*pods, lost, more], groups=[marked], queues=queues).settled()
    assert harness.open_pods() == ["head", "w-0", "w-1"]
    state, message = stands(harness)
    assert state == "Admitted"
    assert message.endswith(f"(w-2) do not start: {OF_QUEUE if by == 'queue' else SAID}")
    harness.set_workload(ray_cluster())
    harness.set_queue(queue(cpu="9", memory="9Gi"))
    await harness.settle()
    assert harness.open_pods() == ["head", "w-0", "w-1", "w-2"]
