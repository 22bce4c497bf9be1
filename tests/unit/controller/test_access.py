"""Who may use a queue: who may not waits as if there were none, and what runs goes on."""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Any

import pytest

from muster.names import ADMITTED, MANAGED, MESSAGE, NAMESPACE_SELECTOR, STATE
from muster.objects import Namespace
from tests.support.controller.recording_client import Scene
from tests.support.manifests.objects import (
    GROUP,
    JSON,
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

if TYPE_CHECKING:
    from collections.abc import Sequence

ROLES = (("head", "headgroup"), ("w-0", "workers"), ("w-1", "workers"))
OPENED = [name for name, _ in ROLES]


def members() -> list[JSON]:
    return [ray_pod(name, role) for name, role in ROLES]


def kept_for(selector: str, name: str = "q", **spec: Any) -> JSON:  # noqa: ANN401 - fields of the Queue
    made = queue(name, annotations={NAMESPACE_SELECTOR: selector}, cpu="8", memory="8Gi")
    made["spec"] |= spec
    return made


def scene_of(*queues: JSON, labels: dict[str, str] | None = None, **rest: Any) -> Scene:  # noqa: ANN401 - Scene's own
    return Scene(
        **{"workloads": [ray_cluster()], "pods": members(), **rest},
        queues=queues,
        namespaces=[namespace(labels=labels or {})],
    )


def relabelled(scene: Scene, **labels: str) -> None:
    scene.cluster.namespaces.apply("modified", made(Namespace, namespace(labels=labels)))


@pytest.mark.parametrize(
    ("queues", "labels", "opened"),
    [
        pytest.param([kept_for("team=ml")], {"team": "ml"}, OPENED, id="its own"),
        pytest.param([kept_for("team=ml")], {"team": "web"}, [], id="another's"),
        pytest.param([kept_for("team=ml")], {}, [], id="a namespace without labels"),
        pytest.param([kept_for("kubernetes.io/metadata.name in (team)")], {}, OPENED, id="by its name"),
        pytest.param([kept_for("team=ml", parent="up"), kept_for("!closed", "up")], {"team": "ml"}, OPENED, id="both"),
        pytest.param([kept_for("team=ml", parent="up"), kept_for("org=a", "up")], {"team": "ml"}, [], id="not above"),
        pytest.param([kept_for("team=ml"), kept_for("org=a", "root")], {"team": "ml"}, [], id="not at the root"),
        pytest.param([kept_for("team=")], {"team": ""}, OPENED, id="an empty value"),
        pytest.param([kept_for("")], {"team": "ml"}, [], id="an empty selector is nobody's"),
        pytest.param([kept_for("team in (ml")], {"team": "ml"}, [], id="one that cannot be read is nobody's"),
    ],
)
async def test_a_gang_starts_in_queues_that_are_there_for_its_namespace(
    queues: Sequence[JSON], labels: dict[str, str], opened: Sequence[str]
) -> None:
    scene = scene_of(*queues, labels=labels)
    await scene.settle()
    assert scene.open_pods() == opened


@pytest.mark.parametrize("mode", ["queue", "assemble", "off"])
@pytest.mark.parametrize("groups", [[], [pod_group()]], ids=["new", "with a PodGroup"])
async def test_a_forbidden_queue_looks_like_a_missing_one(mode: str, groups: list[JSON]) -> None:
    """Every write, byte for byte: events, PodGroup, annotations. The queue's own mode does not shine through."""
    forbidden = kept_for("team=ml")
    forbidden["metadata"]["annotations"]["muster.dev/gate"] = mode
    seen = []
    for queues in ([], [forbidden]):
        scene = scene_of(*queues, groups=deepcopy(groups))
        await scene.settle()
        assert scene.open_pods() == []
        assert ("Warning", "QueueNotFound", 'queue "q" does not exist') in scene.events()
        for write in scene.client.writes:
            if write.kind == "Event":
                # These differ from one event to the next.
                del write.body["eventTime"], write.body["metadata"]["name"]
        seen.append([(write.verb, write.kind, write.body) for write in scene.client.writes])
    assert seen[0] == seen[1]


async def test_a_namespaces_labels_act_on_who_waits_and_never_on_who_runs() -> None:
    """Closed, it waits as if the queue were gone, keeps no room in it, and goes on when it is open again."""
    waiting = ray_cluster(name="other", uid="uid-other")
    pods = [*members(), *(ray_pod(f"other-{pod}", role, cluster="other", owner_uid="uid-other") for pod, role in ROLES)]
    tight = kept_for("team=ml", capability={"cpu": "4", "memory": "9Gi"})
    scene = scene_of(tight, labels={"team": "ml"}, workloads=[ray_cluster(), waiting], pods=pods)
    await scene.settle()
    assert scene.open_pods() == OPENED
    assert scene.annotations("ray-other-pg")[STATE] == "WaitingForQuota"

    relabelled(scene, team="web")
    await scene.settle()
    assert scene.annotations(GROUP)[ADMITTED]
    assert scene.annotations("ray-other-pg")[STATE] == "QueueNotFound"
    assert scene.annotations("ray-other-pg")[MESSAGE] == 'queue "q" does not exist'
    assert set(scene.client.groups["ray-other-pg"]["spec"]["minResources"].values()) == {"0"}

    scene.set_queue(kept_for("team=ml"))
    await scene.settle()
    assert scene.open_pods() == OPENED
    relabelled(scene, team="ml")
    await scene.settle()
    assert len(scene.open_pods()) == 6


async def test_a_running_gang_replaces_what_it_loses_and_does_not_grow() -> None:
    """What it was admitted for is its own; more is new work."""
    scene = scene_of(kept_for("team=ml"), labels={"team": "ml"})
    await scene.settle()
    relabelled(scene, team="web")
    del scene.client.pods["w-0"]
    scene.client.pods["w-2"] = ray_pod("w-2", "workers")
    scene.client.pods["w-3"] = ray_pod("w-3", "workers")
    scene.watch()
    await scene.settle()
    assert scene.open_pods() == ["head", "w-1", "w-2"]
    assert "no room yet for" in scene.annotations(GROUP)[MESSAGE]


@pytest.mark.parametrize("queues", [[], [kept_for("team=ml")]], ids=["missing", "forbidden"])
async def test_to_leave_musters_hands_is_no_way_into_a_forbidden_queue(queues: list[JSON]) -> None:
    """Let go, its pods would run where their PodGroup says."""
    scene = scene_of(*queues, workloads=[ray_cluster(labels={MANAGED: "false"})], groups=[pod_group()])
    await scene.settle()
    assert scene.open_pods() == []
    assert scene.annotations(GROUP)[STATE] == "QueueNotFound"
    scene.set_queue(queue(cpu="8", memory="8Gi"))
    await scene.settle()
    assert (scene.open_pods(), scene.annotations(GROUP)[STATE]) == (OPENED, "NotManaged")


async def test_who_is_shut_out_stands_in_nobodys_line() -> None:
    """Nor does it count in what others are told."""
    scene = scene_of(kept_for("team=ml", capability={"cpu": "1"}), labels={"team": "web"})
    await scene.settle()
    ledger = scene.reconciler._ledger
    assert (ledger.waiting("q"), ledger.used("q")) == ([], {})


async def test_who_is_first_is_decided_among_all_for_whom_a_queue_opens() -> None:
    """Not by which of them is looked at first."""
    urgent = {"volcano.sh/queue-name": "q", "ray.io/priority-class-name": "high"}
    scene = scene_of(
        kept_for("team=ml", capability={"cpu": "4", "memory": "4Gi"}),
        workloads=[ray_cluster(), ray_cluster(name="other", uid="uid-other", labels=urgent)],
        pods=[
            *members(),
            *(ray_pod(f"other-{pod}", role, cluster="other", owner_uid="uid-other") for pod, role in ROLES),
        ],
        classes=[priority_class("high", 1000)],
    )
    await scene.settle()
    assert scene.open_pods() == []
    relabelled(scene, team="ml")
    await scene.settle()
    assert scene.open_pods() == ["other-head", "other-w-0", "other-w-1"]


async def test_a_claim_smaller_than_the_pods_is_no_way_past_the_capability() -> None:
    """The job says that it needs 1 cpu; its pods ask for 3."""
    job = pytorch_job(policy={"queue": "q", "minResources": {"cpu": "1"}})
    pods = [pytorch_pod("train-master-0", "master"), pytorch_pod("train-worker-0"), pytorch_pod("train-worker-1")]
    scene = scene_of(queue(cpu="2"), workloads=[job], pods=pods)
    await scene.settle()
    assert scene.open_pods() == []
    assert scene.annotations("train")[STATE] == "ExceedsCapability"
    assert "needs cpu 3" in scene.annotations("train")[MESSAGE]
    scene.set_queue(queue(cpu="4"))
    await scene.settle()
    assert len(scene.open_pods()) == 3
    assert str(scene.reconciler._ledger.used("q")["cpu"]) == "3"


async def test_a_stranger_that_names_somebodys_gang_stays_held_and_changes_nothing_for_it() -> None:
    """Any pod may carry the label; who is no member is never opened, nor counted towards the minimum."""
    stranger = {**ray_pod("stranger"), "metadata": {**ray_pod("stranger")["metadata"], "ownerReferences": []}}
    stranger["metadata"]["annotations"]["muster.dev/gang-size"] = "1"
    scene = scene_of(queue(cpu="8"), pods=[*members()[:2], stranger], groups=[pod_group()])
    await scene.settle()
    assert scene.open_pods() == []
    assert scene.reconciler._ledger.waiting("q") == []


async def test_a_pod_that_binds_itself_to_a_gangs_group_takes_of_its_queue() -> None:
    """Without muster's label no webhook sees it; what it takes is taken, and given back when it ends."""
    asks = {**template("5")["spec"], "nodeName": "node-1", "schedulingGates": []}
    scene = scene_of(queue(cpu="8", memory="64Gi"))
    await scene.settle()
    scene.client.pods["big"] = pod("big", annotations={"scheduling.k8s.io/group-name": GROUP}, **asks)
    scene.watch()
    await scene.settle()
    assert str(scene.reconciler._ledger.used("q")["cpu"]) == "8"
    scene.client.pods["w-2"] = ray_pod("w-2", "workers")
    scene.watch()
    await scene.settle()
    assert "w-2" not in scene.open_pods()
    del scene.client.pods["big"]
    scene.watch()
    await scene.settle()
    assert "w-2" in scene.open_pods()
