"""Plain pods: a gang that is known by its pods alone."""

from typing import Any

import pytest

from muster.cluster.observe import observe
from muster.model.names import STATE
from muster.queueing.ledger import GangKey
from muster.workloads.kubeflow import PYTORCH_JOB
from tests.support.controller.harness import Harness
from tests.support.controller.stores import filled, workload_store
from tests.support.manifests.observed import (
    DEFAULTS,
    JSON,
    NAMESPACE,
    made,
    pod,
    pod_group,
    pytorch_job,
    pytorch_pod,
    queue,
    template,
)

KEY = GangKey(NAMESPACE, "pair")
_SPEAKS = {"muster.dev/gang": "pair", "volcano.sh/queue-name": "q"}
_BOUND = {"muster.dev/gang-size": "2", "scheduling.k8s.io/group-name": "pair"}


def member(name: str, *, second: int = 0, held: bool = True, cpu: str = "1", **rest: Any) -> JSON:  # noqa: ANN401
    """A pod of the gang, bound as the webhook binds it, created in that second."""
    return pod(
        name,
        labels=_SPEAKS,
        annotations=_BOUND,
        meta={"creationTimestamp": f"2026-11-21T10:00:{second:02}Z", **rest.pop("meta", {})},
        schedulingGates=[{"name": "muster.dev/gang"}] if held else [],
        **{**template(cpu)["spec"], **rest},
    )


def other_gang(name: str) -> JSON:
    """The only pod of another gang, which came later."""
    made = member(name, second=5)
    made["metadata"]["labels"]["muster.dev/gang"] = "other"
    made["metadata"]["annotations"] = {"muster.dev/gang-size": "1", "scheduling.k8s.io/group-name": "other"}
    return made


def group(**rest: Any) -> JSON:  # noqa: ANN401 - whatever `pod_group` takes
    made = pod_group("pair", minMember=2, minTaskMember={"member": 2}, minResources={"cpu": "2"}, **rest)
    made["metadata"]["ownerReferences"] = []
    return made


def _end(pod: JSON, *, on: str = "") -> None:
    pod["metadata"]["deletionTimestamp"] = "2026-11-21T10:01:00Z"
    pod["spec"] |= {"nodeName": on} if on else {}


async def test_half_a_gang_waits_for_the_rest() -> None:
    harness = Harness(pods=[member("a")], queues=[queue(cpu="4")])
    harness.now += 10
    await harness.settle()
    assert harness.open_pods() == []
    assert "ownerReferences" not in harness.client.groups["pair"]["metadata"]


async def test_a_whole_gang_starts_and_is_admitted_by_its_podgroup() -> None:
    """Pods come and go; the PodGroup is there for as long as one of them is."""
    harness = await Harness(pods=[member("a"), member("b")], queues=[queue(cpu="4")]).settled()
    assert harness.open_pods() == ["a", "b"]
    assert harness.annotations("pair")["muster.dev/admitted"] == harness.client.groups["pair"]["metadata"]["uid"]


async def test_who_does_not_fit_waits() -> None:
    harness = await Harness(pods=[member("a"), member("b")], queues=[queue(cpu="1500m")]).settled()
    assert harness.open_pods() == []
    assert harness.annotations("pair")[STATE] == "ExceedsCapability"


async def test_a_podgroup_whose_pods_are_all_gone_is_deleted() -> None:
    harness = Harness(groups=[group(admitted="uid-pair")], queues=[queue(cpu="4")])
    assert await harness.settle() == ["delete pair"]


async def test_pods_that_come_while_the_former_ones_end_queue_as_any_others() -> None:
    """A Job that is applied again, or resumed, within the grace period; another gang has the room by then."""
    harness = await Harness(pods=[member("a0"), member("a1")], queues=[queue(cpu="2")]).settled()
    assert harness.open_pods() == ["a0", "a1"]
    harness.client.pods["b"] = other_gang("b")
    for name in ("a0", "a1"):
        _end(harness.client.pods[name], on="somewhere")
    await harness.catch_up()
    assert harness.annotations("pair")[STATE] == "Finished"
    del harness.client.pods["a1"]
    await harness.catch_up()
    assert harness.open_pods() == ["a0", "b"]
    for second, name in enumerate(("n0", "n1"), start=30):
        harness.client.pods[name] = member(name, second=second)
        await harness.catch_up()
        assert harness.open_pods() == ["a0", "b"]
    assert harness.annotations("pair")[STATE] == "WaitingForQuota"
    for name in ("a0", "b"):
        del harness.client.pods[name]
    await harness.catch_up()
    assert harness.open_pods() == ["n0", "n1"]


async def test_its_podgroup_does_not_wait_for_pods_that_never_had_a_node() -> None:
    """The apiserver removes them in the call that deletes them, and a moment after a watch has shown them marked."""
    harness = await Harness(pods=[member("a"), member("b")], queues=[queue(cpu="2")]).settled()
    assert harness.open_pods() == ["a", "b"]
    for one in harness.client.pods.values():
        _end(one)
    assert await harness.catch_up() == ["delete pair"]
    for name in ("c", "d"):
        harness.client.pods[name] = member(name, second=30)
    await harness.catch_up()
    # They are a gang of their own, for which there is room.
    assert harness.open_pods()[-2:] == ["c", "d"]
    assert harness.annotations("pair")[STATE] == "Admitted"


@pytest.mark.parametrize("stay", [True, False])
async def test_pods_that_come_while_its_podgroup_is_kept_do_not_start_by_the_former_ones_mark(*, stay: bool) -> None:
    """Kubernetes keeps its own PodGroups while pods name them, and some pods stay for their finalizers."""
    harness = await Harness(pods=[member("a"), member("b")], queues=[queue(cpu="2")]).settled()
    harness.client.groups["pair"]["metadata"]["finalizers"] = ["scheduling.k8s.io/podgroup-protection"]
    harness.client.pods["z"] = other_gang("z")
    for name in ("a", "b"):
        if stay:
            _end(harness.client.pods[name])
        else:
            # A watch that was behind shows both steps as one.
            del harness.client.pods[name]
    await harness.catch_up()
    left = ["a", "b", "z"] if stay else ["z"]
    assert harness.open_pods() == left
    for name in ("c", "d"):
        harness.client.pods[name] = member(name, second=30)
    await harness.catch_up()
    assert harness.open_pods() == left
    assert harness.annotations("pair")[STATE] == "WaitingForQuota"


async def test_it_stays_while_pods_that_have_ended_are_there() -> None:
    ended = [member("a", phase="Succeeded"), member("b", phase="Succeeded")]
    harness = await Harness(pods=ended, groups=[group(admitted="uid-pair")], queues=[queue(cpu="4")]).settled()
    assert harness.annotations("pair")[STATE] == "Finished"
    assert "muster.dev/admitted" not in harness.annotations("pair")


async def test_the_apiserver_is_not_asked_for_pods_that_this_leader_saw_go() -> None:
    """For each gang that ends it would look through all pods of the namespace; a new leader asks."""
    harness = await Harness(pods=[member("a"), member("b")], queues=[queue(cpu="4")]).settled()
    harness.alive.add("pair")
    # A watch shows each pod as it is marked for deletion, and again when it is gone.
    for one in harness.client.pods.values():
        _end(one, on="somewhere")
    harness.watch()
    # It is admitted no more.
    assert await harness.settle() == ["muster-ledger pair"]
    del harness.client.pods["a"]
    assert await harness.catch_up() == []
    harness.client.pods.clear()
    assert await harness.catch_up() == ["delete pair"]
    harness = Harness(groups=[group(admitted="uid-pair")], queues=[queue(cpu="4")])
    harness.alive.add("pair")
    assert await harness.settle() == []


async def test_pods_that_come_one_by_one_are_no_write_each() -> None:
    """What the gang asks for is written with the first of them and when all are there."""
    harness = Harness(queues=[queue(cpu="9")])
    written = []
    for name in ("a", "b", "c", "d"):
        one = member(name)
        one["metadata"]["annotations"] = {**one["metadata"]["annotations"], "muster.dev/gang-size": "4"}
        harness.client.pods[name] = one
        written.append([says for says in await harness.catch_up() if says.startswith("muster ")])
    assert written == [["muster pair"], [], [], ["muster pair"]]
    assert harness.client.groups["pair"]["spec"]["minResources"]["cpu"] == "4"
    assert harness.open_pods() == ["a", "b", "c", "d"]


def test_a_gang_needs_what_its_pods_ask_for_however_different_they_are() -> None:
    pods = [member("leader", cpu="4"), member("worker", second=1), member("surplus", second=2, cpu="9")]
    view = observe(KEY, filled(pods=pods), DEFAULTS)
    assert view.gang is not None
    assert str(view.gang.min_resources["cpu"]) == "5"
    assert len(view.members) == 3


def test_the_oldest_living_pod_speaks_for_the_gang() -> None:
    pods = [member("a", phase="Failed"), member("c", second=2), member("b", second=1)]
    view = observe(KEY, filled(pods=pods), DEFAULTS)
    assert view.decoded is not None
    assert view.decoded.metadata.name == "b"


async def test_the_place_of_a_member_that_crashed_is_kept() -> None:
    """Its Job makes it anew, or somebody does by hand; also with a leader that comes in between."""
    harness = await Harness(pods=[member("a"), member("b", second=1)], queues=[queue(cpu="2")]).settled()
    del harness.client.pods["b"]
    rival = {"muster.dev/gang": "rival", "volcano.sh/queue-name": "q"}
    bound = {"muster.dev/gang-size": "1", "scheduling.k8s.io/group-name": "rival"}
    harness.client.pods["r"] = member("r", second=2)
    harness.client.pods["r"]["metadata"] |= {"labels": rival, "annotations": bound}
    await harness.catch_up()
    assert harness.open_pods() == ["a"]
    harness.restart()
    await harness.settle()
    harness.client.pods["c"] = member("c", second=3)
    await harness.catch_up()
    assert harness.open_pods() == ["a", "c"]
    del harness.client.pods["a"], harness.client.pods["c"]
    await harness.catch_up()
    assert harness.open_pods() == ["r"]


def job(name: str = "pair") -> list[JSON]:
    """The pods of a PyTorchJob of the same name as the gang."""
    pods = [pytorch_pod(f"{name}-m", "master"), pytorch_pod(f"{name}-0"), pytorch_pod(f"{name}-1")]
    for one in pods:
        one["metadata"]["ownerReferences"][0] |= {"name": name, "uid": f"uid-job-{name}"}
        one["metadata"]["labels"] |= {"training.kubeflow.org/job-name": name, "muster.dev/gang": name}
        one["metadata"]["annotations"]["scheduling.k8s.io/group-name"] = name
    return pods


async def test_a_workload_of_the_same_name_is_a_rival_and_takes_nothing_from_a_gang_that_runs() -> None:
    """Its PodGroup stays, as do its place and its replacements; the workload is told, and starts when it is gone."""
    harness = await Harness(pods=[member("a"), member("b")], queues=[queue(cpu="9")]).settled()
    was = harness.client.groups["pair"]["metadata"]["uid"]
    harness.client.pods |= {one["metadata"]["name"]: one for one in job()}
    harness.set_workload(pytorch_job(name="pair", uid="uid-job-pair", labels={"volcano.sh/queue-name": "q"}))
    await harness.catch_up()
    assert harness.open_pods() == ["a", "b"]
    assert [write.says for write in harness.client.writes if write.verb == "delete"] == []
    assert harness.client.groups["pair"]["metadata"]["uid"] == was
    note = 'the PodGroup "pair" belongs to Pod "a"; this workload waits until the other is gone; rename one of them'
    assert ("Warning", "ForeignPodGroup", note) in harness.events()

    del harness.client.pods["b"]
    harness.client.pods["c"] = member("c", second=1)
    await harness.catch_up()
    assert harness.open_pods() == ["a", "c"]

    del harness.client.pods["a"], harness.client.pods["c"]
    await harness.catch_up()
    assert harness.open_pods() == ["pair-0", "pair-1", "pair-m"]


async def test_a_rival_whose_pods_come_and_go_is_told_once() -> None:
    """Its operator replaces pods that crash: a gang's budget of events is for all of them."""
    harness = await Harness(pods=[member("a"), member("b")], queues=[queue(cpu="9")]).settled()
    before = harness.reconciler.kept()
    rival = pytorch_job(name="pair", uid="uid-job-pair", labels={"volcano.sh/queue-name": "q"})
    harness.set_workload(rival)
    for life in range(3):
        harness.client.pods |= {
            one["metadata"]["name"]: {**one, "metadata": {**one["metadata"], "uid": f"{one['metadata']['uid']}-{life}"}}
            for one in job()
        }
        await harness.catch_up()
        for one in job():
            del harness.client.pods[one["metadata"]["name"]]
        await harness.catch_up()
    assert [reason for _, reason, _ in harness.events()].count("ForeignPodGroup") == 1
    workload_store(harness.cluster, PYTORCH_JOB).apply("deleted", made(PYTORCH_JOB.decoded, rival))
    await harness.settle()
    assert harness.reconciler.kept() == before


async def test_plain_pods_of_a_workloads_name_are_told_whose_it_is() -> None:
    harness = await Harness(
        workloads=[pytorch_job(name="pair", uid="uid-job-pair", labels={"volcano.sh/queue-name": "q"})],
        pods=job(),
        queues=[queue(cpu="9")],
    ).settled()
    harness.client.pods |= {"a": member("a"), "b": member("b", second=1)}
    await harness.catch_up()
    assert harness.open_pods() == ["pair-0", "pair-1", "pair-m"]
    told = [(event["regarding"]["name"], event["reason"]) for event in harness.events_on("Pod")]
    assert told == [("a", "ForeignPodGroup")]
