"""Who may use a queue: who may not waits as if there were none, and what runs goes on."""

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

import pytest

from muster.model.names import ADMITTED, HOLD, MANAGED, MESSAGE, NAMESPACE_SELECTOR, STATE
from muster.model.objects import Namespace
from tests.support.cases import cases
from tests.support.controller.harness import Harness
from tests.support.manifests.observed import (
    GROUP,
    JSON,
    NO_QUEUE,
    made,
    namespace,
    pod,
    pod_group,
    priority_class,
    pytorch_job,
    pytorch_pod,
    queue,
    ray_cluster,
    ray_pod,
    template,
)

ROLES = (("head", "headgroup"), ("w-0", "workers"), ("w-1", "workers"))
OPENED = [name for name, _ in ROLES]


def members() -> list[JSON]:
    return [ray_pod(name, role) for name, role in ROLES]


def kept_for(selector: str, name: str = "q", **spec: Any) -> JSON:  # noqa: ANN401 - fields of the Queue
    made = queue(name, annotations={NAMESPACE_SELECTOR: selector}, cpu="8", memory="8Gi")
    made["spec"] |= spec
    return made


def harness_of(*queues: JSON, labels: dict[str, str] | None = None, **rest: Any) -> Harness:  # noqa: ANN401 - Harness's own
    return Harness(
        **{"workloads": [ray_cluster()], "pods": members(), **rest},
        queues=queues,
        namespaces=[namespace(labels=labels or {})],
    )


def relabelled(harness: Harness, **labels: str) -> None:
    harness.cluster.namespaces.apply("modified", made(Namespace, namespace(labels=labels)))


@cases(
    "queues, labels, opened",
    ("its own", [kept_for("team=ml")], {"team": "ml"}, OPENED),
    ("another's", [kept_for("team=ml")], {"team": "web"}, []),
    ("a namespace without labels", [kept_for("team=ml")], {}, []),
    ("by its name", [kept_for("kubernetes.io/metadata.name in (team)")], {}, OPENED),
    ("both", [kept_for("team=ml", parent="up"), kept_for("!closed", "up")], {"team": "ml"}, OPENED),
    ("not above", [kept_for("team=ml", parent="up"), kept_for("org=a", "up")], {"team": "ml"}, []),
    ("not at the root", [kept_for("team=ml"), kept_for("org=a", "root")], {"team": "ml"}, []),
    ("an empty value", [kept_for("team=")], {"team": ""}, OPENED),
    ("an empty selector is nobody's", [kept_for("")], {"team": "ml"}, []),
    ("one that cannot be read is nobody's", [kept_for("team in (ml")], {"team": "ml"}, []),
)
async def test_a_gang_starts_in_queues_that_are_there_for_its_namespace(
    queues: Sequence[JSON], labels: dict[str, str], opened: Sequence[str]
) -> None:
    harness = await harness_of(*queues, labels=labels).settled()
    assert harness.open_pods() == opened


@pytest.mark.parametrize("mode", ["queue", "assemble", "off"])
@cases("groups", ("new", []), ("with a PodGroup", [pod_group()]))
async def test_a_forbidden_queue_looks_like_a_missing_one(mode: str, groups: list[JSON]) -> None:
    """Every write, byte for byte: events, PodGroup, annotations. The queue's own mode does not shine through."""
    forbidden = kept_for("team=ml")
    forbidden["metadata"]["annotations"]["muster.dev/gate"] = mode
    seen = []
    for queues in ([], [forbidden]):
        harness = await harness_of(*queues, groups=deepcopy(groups)).settled()
        assert harness.open_pods() == []
        assert (
            "Warning",
            "QueueNotFound",
            NO_QUEUE,
        ) in harness.events()
        for write in harness.client.writes:
            if write.kind == "Event":
                # These differ from one event to the next.
                del write.body["eventTime"], write.body["metadata"]["name"]
        seen.append([(write.verb, write.kind, write.body) for write in harness.client.writes])
    assert seen[0] == seen[1]


async def test_who_asks_for_one_missing_queue_after_another_reads_of_the_last() -> None:
    """In no queue nobody has turns to say other words."""
    harness = await harness_of(groups=[pod_group()]).settled()
    harness.set_workload(ray_cluster(labels={"volcano.sh/queue-name": "other"}))
    await harness.settle()
    assert harness.annotations(GROUP)[MESSAGE] == 'queue "other" does not exist, or is not open to namespace "team"'


async def test_a_namespaces_labels_act_on_who_waits_and_never_on_who_runs() -> None:
    """Closed, it waits as if the queue were gone, keeps no room in it, and goes on when it is open again."""
    waiting = ray_cluster(name="other", uid="uid-other")
    pods = [*members(), *(ray_pod(f"other-{pod}", role, cluster="other", owner_uid="uid-other") for pod, role in ROLES)]
    tight = kept_for("team=ml", capability={"cpu": "4", "memory": "9Gi"})
    harness = await harness_of(tight, labels={"team": "ml"}, workloads=[ray_cluster(), waiting], pods=pods).settled()
    assert harness.open_pods() == OPENED
    assert harness.annotations("ray-other-pg")[STATE] == "WaitingForQuota"

    relabelled(harness, team="web")
    await harness.settle()
    assert harness.annotations(GROUP)[ADMITTED]
    assert harness.annotations("ray-other-pg")[STATE] == "QueueNotFound"
    assert harness.annotations("ray-other-pg")[MESSAGE] == NO_QUEUE
    assert set(harness.client.groups["ray-other-pg"]["spec"]["minResources"].values()) == {"0"}

    harness.set_queue(kept_for("team=ml"))
    await harness.settle()
    assert harness.open_pods() == OPENED
    relabelled(harness, team="ml")
    await harness.settle()
    assert len(harness.open_pods()) == 6


async def test_a_running_gang_replaces_what_it_loses_and_does_not_grow() -> None:
    """What it was admitted for is its own; more is new work."""
    harness = await harness_of(kept_for("team=ml"), labels={"team": "ml"}).settled()
    relabelled(harness, team="web")
    del harness.client.pods["w-0"]
    harness.client.pods["w-2"] = ray_pod("w-2", "workers")
    harness.client.pods["w-3"] = ray_pod("w-3", "workers")
    await harness.catch_up()
    assert harness.open_pods() == ["head", "w-1", "w-2"]
    assert "no room yet for" in harness.annotations(GROUP)[MESSAGE]


@pytest.mark.parametrize("held", ["q", "up"])
async def test_who_runs_in_a_queue_that_was_closed_to_it_is_not_told_that_it_is_on_hold(held: str) -> None:
    """What is done with a queue that is not there is nobody's business; in a missing one the words are these."""
    harness = await harness_of(kept_for("team=ml"), labels={"team": "ml"}).settled()
    relabelled(harness, team="web")
    queues = [kept_for("team=ml", parent="up"), kept_for("team=ml", "up")]
    for one in queues:
        one["metadata"]["annotations"] |= {HOLD: "true"} if one["metadata"]["name"] == held else {}
        harness.set_queue(one)
    harness.client.pods["w-2"] = ray_pod("w-2", "workers")
    await harness.catch_up()
    assert "no room yet for" in harness.annotations(GROUP)[MESSAGE]
    assert "on hold" not in harness.annotations(GROUP)[MESSAGE]


@cases("queues", ("missing", []), ("forbidden", [kept_for("team=ml")]))
async def test_to_leave_musters_hands_is_no_way_into_a_forbidden_queue(queues: list[JSON]) -> None:
    """Let go, its pods would run where their PodGroup says."""
    harness = await harness_of(
        *queues, workloads=[ray_cluster(labels={MANAGED: "false"})], groups=[pod_group()]
    ).settled()
    assert harness.open_pods() == []
    assert harness.annotations(GROUP)[STATE] == "QueueNotFound"
    harness.set_queue(queue(cpu="8", memory="8Gi"))
    await harness.settle()
    assert (harness.open_pods(), harness.annotations(GROUP)[STATE]) == (OPENED, "NotManaged")


async def test_who_is_shut_out_stands_in_nobodys_line() -> None:
    """Nor does it count in what others are told."""
    harness = await harness_of(kept_for("team=ml", capability={"cpu": "1"}), labels={"team": "web"}).settled()
    ledger = harness.term.ledger
    assert (ledger.waiting("q"), ledger.used("q")) == ([], {})


async def test_who_is_first_is_decided_among_all_for_whom_a_queue_opens() -> None:
    """Not by which of them is looked at first."""
    urgent = {"volcano.sh/queue-name": "q", "ray.io/priority-class-name": "high"}
    harness = await harness_of(
        kept_for("team=ml", capability={"cpu": "4", "memory": "4Gi"}),
        workloads=[ray_cluster(), ray_cluster(name="other", uid="uid-other", labels=urgent)],
        pods=[
            *members(),
            *(ray_pod(f"other-{pod}", role, cluster="other", owner_uid="uid-other") for pod, role in ROLES),
        ],
        classes=[priority_class("high", 1000)],
    ).settled()
    assert harness.open_pods() == []
    relabelled(harness, team="ml")
    await harness.settle()
    assert harness.open_pods() == ["other-head", "other-w-0", "other-w-1"]


async def test_a_claim_smaller_than_the_pods_is_no_way_past_the_capability() -> None:
    """The job says that it needs 1 cpu; its pods ask for 3."""
    job = pytorch_job(policy={"queue": "q", "minResources": {"cpu": "1"}})
    pods = [pytorch_pod("train-master-0", "master"), pytorch_pod("train-worker-0"), pytorch_pod("train-worker-1")]
    harness = await harness_of(queue(cpu="2"), workloads=[job], pods=pods).settled()
    assert harness.open_pods() == []
    assert harness.annotations("train")[STATE] == "ExceedsCapability"
    assert "needs cpu 3" in harness.annotations("train")[MESSAGE]
    harness.set_queue(queue(cpu="4"))
    await harness.settle()
    assert len(harness.open_pods()) == 3
    assert str(harness.term.ledger.used("q")["cpu"]) == "3"


async def test_a_stranger_that_names_somebodys_gang_stays_held_and_changes_nothing_for_it() -> None:
    """Any pod may carry the label; who is no member is never opened, nor counted towards the minimum."""
    stranger = {**ray_pod("stranger"), "metadata": {**ray_pod("stranger")["metadata"], "ownerReferences": []}}
    stranger["metadata"]["annotations"]["muster.dev/gang-size"] = "1"
    harness = await harness_of(queue(cpu="8"), pods=[*members()[:2], stranger], groups=[pod_group()]).settled()
    assert harness.open_pods() == []
    assert harness.term.ledger.waiting("q") == []


async def test_a_pod_that_binds_itself_to_a_gangs_group_takes_of_its_queue() -> None:
    """Without muster's label no webhook sees it; what it takes is taken, and given back when it ends."""
    asks = {**template("5")["spec"], "nodeName": "node-1", "schedulingGates": []}
    harness = await harness_of(queue(cpu="8", memory="64Gi")).settled()
    harness.client.pods["big"] = pod("big", annotations={"scheduling.k8s.io/group-name": GROUP}, **asks)
    await harness.catch_up()
    assert str(harness.term.ledger.used("q")["cpu"]) == "8"
    harness.client.pods["w-2"] = ray_pod("w-2", "workers")
    await harness.catch_up()
    assert "w-2" not in harness.open_pods()
    del harness.client.pods["big"]
    await harness.catch_up()
    assert "w-2" in harness.open_pods()


async def test_a_podgroup_that_slipped_into_a_queue_of_others_gets_no_room_and_is_told_so() -> None:
    """Its webhook fails open. What runs of it is counted: that room is gone."""
    slipped = pod_group("slipped", ours=False, phase="Inqueue", minResources={"cpu": "8"})
    slipped["metadata"]["ownerReferences"] = []
    harness = await harness_of(
        kept_for("team=ml"), labels={"team": "web"}, workloads=[], pods=[], groups=[slipped]
    ).settled()
    ledger = harness.term.ledger
    assert ledger.used("q") == {}
    for key in harness.cluster.gangs():
        harness.queue.add(key)
    await harness.settle()
    assert [(event["type"], event["reason"]) for event in harness.events_on("PodGroup")] == [
        ("Warning", "QueueNotFound")
    ]
    asks = {**template("2")["spec"], "nodeName": "node-1", "schedulingGates": []}
    harness.client.pods["runs"] = pod("runs", annotations={"scheduling.k8s.io/group-name": "slipped"}, **asks)
    await harness.catch_up()
    assert str(ledger.used("q")["cpu"]) == "2"
    relabelled(harness, team="ml")
    await harness.settle()
    assert str(ledger.used("q")["cpu"]) == "8"
