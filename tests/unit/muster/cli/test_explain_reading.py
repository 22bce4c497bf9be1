"""How little `muster explain` reads by default, and that its answer is the one that all of the cluster gives."""

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from muster.model.names import GANG, GANG_SIZE, GATE, GROUP_NAME, HOLD, MESSAGE, QUEUE_ANNOTATION, STATE
from tests.support.cli.connections import http_kubeconfig
from tests.support.cli.in_process import muster
from tests.support.cli.small_cluster import FORBIDDEN, answers
from tests.support.faults.apiserver import FaultyApiserver, failure
from tests.support.manifests.observed import (
    JSON,
    NO_QUEUE,
    namespace,
    old_pod,
    pod,
    pod_group,
    pytorch_job,
    pytorch_pod,
    queue,
    ray_cluster,
    ray_owner,
    ray_pod,
)

RAYS, JOBS = "/apis/ray.io/v1/rayclusters", "/apis/ray.io/v1/rayjobs"
GROUPS = "/apis/scheduling.volcano.sh/v1beta1/podgroups"
QUEUES = "/apis/scheduling.volcano.sh/v1beta1/queues"
WAITING = {STATE: "WaitingForQuota", MESSAGE: 'needs cpu 3; queue "q" has cpu 1 free of cpu 4; position 1 of 1 waiting'}
EVENT = {
    "metadata": {"name": "e", "namespace": "team"},
    "regarding": {"uid": "uid-demo"},
    "reason": "WaitingForQuota",
    "note": "needs cpu 3",
    "reportingController": "muster.dev/controller",
}
# The settings of the installation: the first request of each command.
OF_CONNECTION = ("/api/v1/namespaces/kube-public/configmaps/muster",)
# What the ledger alone knows.
OF_LEDGER = ("position", "when", "queues", "holders")


def pods(name: str, *, held: bool) -> list[JSON]:
    roles = {"head": "headgroup", "w-0": "workers", "w-1": "workers"}
    return [
        ray_pod(f"{name}-{pod}", role, held=held, cluster=name, owner_uid=f"uid-{name}") for pod, role in roles.items()
    ]


def cluster(**more: Sequence[JSON] | str) -> dict[str, Sequence[JSON] | str]:
    """A gang that waits for another one, and what the test says of each path."""
    groups = [
        pod_group("ray-demo-pg", owner=ray_owner(), annotations=WAITING),
        pod_group("ray-other-pg", owner=ray_owner("other"), admitted="uid-other", annotations={STATE: "Running"}),
    ]
    return {
        RAYS: [ray_cluster(), ray_cluster(name="other", uid="uid-other")],
        GROUPS: groups,
        QUEUES: [queue(cpu="4")],
        "/api/v1/pods": [*pods("demo", held=True), *pods("other", held=False)],
        "/api/v1/namespaces": [namespace()],
        "/apis/events.k8s.io/v1/events": [EVENT],
        **more,
    }


async def explained(tmp_path: Path, objects: dict[str, Sequence[JSON] | str], *words: str) -> tuple[JSON, list[str]]:
    """The entry, and the paths that were asked for after the connection was made."""
    async with FaultyApiserver.serving() as server:
        served = answers(objects)
        server.on("GET", served)
        server.on("LIST", served)
        (tmp_path / "config").write_text(http_kubeconfig(server.url))
        asked = ("explain", f"--kubeconfig={tmp_path / 'config'}", "-n", "team", "-o", "json", *words)
        done = await asyncio.to_thread(muster, *asked)
        (entry,) = json.loads(done.stdout)
        return dict(entry), [one.path for one in server.requests if one.path not in OF_CONNECTION]


def job_of(cluster_: JSON) -> tuple[JSON, JSON]:
    """A RayJob, and the cluster that its operator has made of it."""
    job = {"metadata": {"name": "nightly", "namespace": "team", "uid": "uid-nightly"}, "spec": {}}
    owner = {"apiVersion": "ray.io/v1", "kind": "RayJob", "name": "nightly", "uid": "uid-nightly", "controller": True}
    return job, {**cluster_, "metadata": {**cluster_["metadata"], "ownerReferences": [owner]}}


@pytest.mark.parametrize(
    ("word", "most"),
    [("raycluster/demo", 6), ("podgroup/ray-demo-pg", 7), ("pod/demo-head", 7)],
)
async def test_the_answer_of_few_requests_is_the_one_of_the_whole_cluster(tmp_path: Path, word: str, most: int) -> None:
    """A workload, its PodGroup, pods, namespace and events, and the queues; a name of another kind is one more."""
    entry, paths = await explained(tmp_path, cluster(), word)
    assert len(paths) <= most, paths
    whole, all_paths = await explained(tmp_path, cluster(), word, "--ledger")
    assert len(all_paths) > 20
    assert {key: value for key, value in entry.items() if key not in OF_LEDGER} == {
        key: value for key, value in whole.items() if key not in OF_LEDGER
    }
    assert (entry["state"], entry["message"]) == (WAITING[STATE], WAITING[MESSAGE])
    assert [event["note"] for event in entry["events"]] == ["needs cpu 3"]
    assert [role["gated"] for role in entry["roles"]] == [1, 2]
    assert [entry[key] for key in OF_LEDGER] == [
        None,
        None,
        [{"name": "q", "limit": {"cpu": "4"}, "used": None, "free": None}],
        [],
    ]
    assert (whole["position"], [one["name"] for one in whole["holders"]]) == (
        {"position": 1, "waiting": 1},
        ["ray-other-pg"],
    )


@pytest.mark.parametrize("word", ["rayjob/nightly", "raycluster/demo"])
async def test_what_the_maker_of_a_workload_says_counts(tmp_path: Path, word: str) -> None:
    """One request more: the workload is two objects."""
    job, made = job_of(ray_cluster(labels={}))
    job["metadata"]["labels"] = {"volcano.sh/queue-name": "q"}
    entry, paths = await explained(tmp_path, cluster(**{RAYS: [made], JOBS: [job]}), word)
    assert len(paths) <= 7, paths
    assert (entry["workload"]["name"], entry["scheduling"]["queue"]) == ("demo", "q")
    assert entry["scheduling"]["from"]["queue"] == "owner nightly: metadata.labels[volcano.sh/queue-name]"


@pytest.mark.parametrize(("word", "kind"), [("demo", "RayCluster"), ("nightly", "RayCluster")])
async def test_a_name_alone_is_looked_for_among_all_kinds(tmp_path: Path, word: str, kind: str) -> None:
    """Of a RayJob the answer is its cluster, as with its kind."""
    job, made = job_of(ray_cluster())
    entry, _ = await explained(tmp_path, cluster(**{RAYS: [made], JOBS: [job]}), word)
    assert (entry["workload"]["kind"], entry["workload"]["name"]) == (kind, "demo")


async def test_a_name_that_no_workload_has_is_an_error(tmp_path: Path) -> None:
    async with FaultyApiserver.serving() as server:
        server.on("GET", failure(404, "NotFound"))
        (tmp_path / "config").write_text(http_kubeconfig(server.url))
        done = await asyncio.to_thread(muster, "explain", f"--kubeconfig={tmp_path / 'config'}", "-n", "team", "gone")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == 'muster explain: no workload "gone" in namespace "team", or none that you may read\n'


async def test_without_a_controller_there_is_a_reason(tmp_path: Path) -> None:
    entry, _ = await explained(tmp_path, cluster(**{GROUPS: []}), "raycluster/demo")
    assert (entry["state"], entry["gang"]["exists"]) == ("Assembling", False)
    assert entry["message"].endswith("if this lasts, tell your administrator: muster-controller may be down")
    entry, _ = await explained(tmp_path, cluster(**{GROUPS: [], QUEUES: [queue("other")]}), "raycluster/demo")
    assert (entry["state"], entry["message"]) == (
        "QueueNotFound",
        NO_QUEUE,
    )


async def test_what_the_namespace_says_counts(tmp_path: Path) -> None:
    there = namespace(labels={"muster.dev/managed": "true"}, annotations={QUEUE_ANNOTATION: "theirs"})
    more = {RAYS: [ray_cluster(labels={})], "/api/v1/namespaces": [there]}
    entry, _ = await explained(tmp_path, cluster(**more), "raycluster/demo")
    assert entry["scheduling"]["from"]["queue"].startswith("namespace team: ")


@pytest.mark.parametrize(
    ("path", "words"),
    [
        (GROUPS, "cannot get podgroups.scheduling.volcano.sh"),
        (QUEUES, "cannot list queues.scheduling.volcano.sh: limits and free resources are unknown"),
        ("/api/v1/namespaces", "cannot list namespaces: the settings of the namespace"),
        ("/api/v1/pods", 'cannot list pods in "team"'),
        ("/apis/events.k8s.io/v1/events", 'cannot list events.events.k8s.io in "team"'),
    ],
)
async def test_what_may_not_be_read_is_named_and_not_taken_for_missing(tmp_path: Path, path: str, words: str) -> None:
    entry, _ = await explained(tmp_path, cluster(**{path: FORBIDDEN}), "raycluster/demo")
    assert [one for one in entry["unknown"] if one.startswith(words)]
    assert entry["state"] == "WaitingForQuota"


def plain_pods() -> list[JSON]:
    labels, annotations = {GANG: "pair", "volcano.sh/queue-name": "q"}, {GANG_SIZE: "2", GROUP_NAME: "pair"}
    gate = [{"name": GATE}]
    return [pod(f"pair-{n}", labels=labels, annotations=annotations, schedulingGates=gate) for n in range(2)]


SCENES: dict[str, tuple[str, dict[str, Sequence[JSON] | str]]] = {
    "another operator": (
        "pytorchjob/train",
        {
            "/apis/kubeflow.org/v1/pytorchjobs": [pytorch_job()],
            "/api/v1/pods": [pytorch_pod("train-master-0", "master"), pytorch_pod("train-worker-0")],
            GROUPS: [],
        },
    ),
    "plain pods": ("pod/pair-0", {"/api/v1/pods": plain_pods(), GROUPS: []}),
    "pods that came without muster": (
        "raycluster/demo",
        {"/api/v1/pods": [old_pod("demo-head", "headgroup"), old_pod("demo-w-0")], GROUPS: []},
    ),
    "a foreign PodGroup": ("raycluster/demo", {GROUPS: [pod_group(ours=False)]}),
    "not managed": ("raycluster/demo", {RAYS: [ray_cluster(labels={})], "/api/v1/pods": [], GROUPS: []}),
    "suspended": ("raycluster/demo", {RAYS: [ray_cluster(suspend=True)], "/api/v1/pods": [], GROUPS: []}),
    "running": (
        "raycluster/demo",
        {
            "/api/v1/pods": pods("demo", held=False),
            GROUPS: [pod_group(admitted="uid-demo", annotations={STATE: "Running", MESSAGE: "cpu 3"}, phase="Running")],
        },
    ),
    "a closed queue": ("raycluster/demo", {QUEUES: [queue(state="Closed")], GROUPS: []}),
    "a queue on hold": (
        "raycluster/demo",
        {QUEUES: [queue(cpu="4", annotations={HOLD: "true"})], "/api/v1/pods": pods("demo", held=True)},
    ),
}


@pytest.mark.parametrize("scene", SCENES)
async def test_every_state_is_the_one_of_the_whole_cluster(tmp_path: Path, scene: str) -> None:
    word, objects = SCENES[scene]
    entry, paths = await explained(tmp_path, cluster(**objects), word)
    whole, _ = await explained(tmp_path, cluster(**objects), word, "--ledger")
    assert {key: value for key, value in entry.items() if key not in OF_LEDGER} == {
        key: value for key, value in whole.items() if key not in OF_LEDGER
    }
    assert len(paths) <= 6, paths
