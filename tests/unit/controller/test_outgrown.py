"""Gangs that were admitted, and whose pods come again asking for more: what is more than was granted needs room."""

import pytest

from muster.model.names import ADMITTED, MESSAGE, REQUEUED_AT, STATE
from tests.support.controller.harness import Harness
from tests.support.manifests.observed import GROUP, JSON, queue, ray_cluster, ray_pod, template, workers

ROLES = {"head": "headgroup", "w-0": "workers", "w-1": "workers"}


def demo(cpu: str) -> JSON:
    """The gang's workload, with workers of so many cpu."""
    return ray_cluster(workers(template=template(cpu)))


def member(name: str, cpu: str = "1", cluster: str = "demo") -> JSON:
    spec = template(cpu if ROLES[name] == "workers" else "1")["spec"]
    full = name if cluster == "demo" else f"{cluster}-{name}"
    return ray_pod(full, ROLES[name], cluster=cluster, owner_uid=f"uid-{cluster}", **spec)


async def running(cpu: str, *, beside: bool) -> Harness:
    """A gang of 3 cpu that runs in a queue of so many, perhaps beside another one."""
    clusters = ["demo", *(["other"] if beside else [])]
    harness = await Harness(
        workloads=[demo("1"), *(ray_cluster(name=name, uid=f"uid-{name}") for name in clusters[1:])],
        pods=[member(name, cluster=cluster) for cluster in clusters for name in ROLES],
        queues=[queue(cpu=cpu)],
    ).settled()
    assert len(harness.open_pods()) == len(harness.client.pods)
    for pod in harness.client.pods.values():
        pod["spec"]["nodeName"] = "n"
    await harness.catch_up()
    return harness


async def anew(harness: Harness, *names: str, cpu: str = "2") -> list[str]:
    """These members are made anew, from templates whose workers ask for so many cpu; gives which of the gang's run."""
    harness.set_workload(demo(cpu))
    for name in names:
        harness.client.pods[name] = member(name, cpu)
    await harness.catch_up()
    return [name for name in harness.open_pods() if name in ROLES]


@pytest.mark.parametrize("restarted", [False, True])
async def test_a_larger_replacement_queues_again_as_a_whole(*, restarted: bool) -> None:
    """With KubeRay's upgrade strategy Recreate: 5 cpu in a queue of 7 of which another holds 3."""
    harness = await running("7", beside=True)
    for name in ROLES:
        del harness.client.pods[name]
    harness.watch()
    if restarted:
        harness.restart()
    await harness.settle()
    assert await anew(harness, *ROLES) == [], "with the other's 3 that is 8"
    said = harness.annotations(GROUP)
    assert (ADMITTED in said, REQUEUED_AT in said, said[STATE]) == (False, False, "WaitingForQuota")
    assert said[MESSAGE].startswith('needs cpu 5 and memory 3Gi; queue "q" has cpu 4 free of cpu 7')
    assert harness.client.groups[GROUP]["spec"]["minResources"]["cpu"] == "5"
    why = "all its pods were replaced and need cpu 5 and memory 3Gi, which is more than it was admitted for"
    assert ("Warning", "Requeued", why) in harness.events()
    for name in ROLES:
        del harness.client.pods[f"other-{name}"]
    harness.drop_workload(ray_cluster(name="other", uid="uid-other"))
    await harness.catch_up()
    assert harness.open_pods() == list(ROLES)


async def test_a_replacement_made_pod_by_pod_starts_no_part_of_it() -> None:
    harness = await running("7", beside=True)
    for name in ROLES:
        del harness.client.pods[name]
    for name in ROLES:
        assert await anew(harness, name) == []


async def test_a_larger_replacement_starts_at_once_where_there_is_room() -> None:
    harness = await running("5", beside=False)
    assert await anew(harness, *ROLES) == list(ROLES)
    assert harness.annotations(GROUP)[ADMITTED] == "uid-demo"


@pytest.mark.parametrize("cpu", ["1", "500m"])
async def test_a_replacement_as_large_or_smaller_keeps_its_place(cpu: str) -> None:
    harness = await running("6", beside=True)
    before = [write.says for write in harness.client.writes].count(f"mark {GROUP}")
    assert await anew(harness, *ROLES, cpu=cpu) == list(ROLES)
    marks = [write for write in harness.client.writes if write.says == f"mark {GROUP}"]
    assert all(ADMITTED in write.body["metadata"]["annotations"] for write in marks[before:])


async def test_a_member_that_comes_back_larger_waits_for_what_is_more() -> None:
    """The others run on, and the place of the one that died is kept."""
    harness = await running("6", beside=True)
    assert await anew(harness, "w-1") == ["head", "w-0"]
    said = harness.annotations(GROUP)
    assert said[MESSAGE].endswith("; no room yet for cpu 2 and memory 1Gi more (w-1)")
    harness.set_queue(queue(cpu="7"))
    await harness.settle()
    assert harness.open_pods() == sorted([*ROLES, *(f"other-{name}" for name in ROLES)])
