"""`muster gangs`: who waits, since when, in the order of the queue; and that a dead controller is named."""

import asyncio
import datetime as dt
import json
from collections.abc import Callable, Sequence
from functools import partial

import pytest

from muster.cli.connecting import silence
from muster.cli.page.board import Board
from muster.cli.queues.gangs import Gangs
from muster.cli.settings import Settings
from muster.cli.snapshot import ClusterSnapshot
from muster.model.names import ADMITTED_AT, REQUEUED_AT
from muster.model.times import seconds_of, text_of
from tests.support.cases import cases
from tests.support.cli.command import Command, Said
from tests.support.cli.connections import kubeconfig
from tests.support.cli.small_cluster import answers
from tests.support.controller.stores import filled
from tests.support.faults.apiserver import Answer, FaultyApiserver, failure, only, reply
from tests.support.manifests.gangs import gangs, limited
from tests.support.manifests.observed import JSON, namespace

_AT = "2026-11-28T10:00:00Z"
_KUBE = "/apis/ray.io/v1/rayclusters", "/api/v1/pods", "/apis/scheduling.volcano.sh/v1beta1/podgroups"
_QUEUES = "/apis/scheduling.volcano.sh/v1beta1/queues"
_LEASE = "/apis/coordination.k8s.io/v1/namespaces/muster-system/leases/muster-controller"


def scene() -> tuple[list[JSON], list[JSON], list[JSON]]:
    """A gang runs in `q`; two wait, the second of them again."""
    parts = (
        gangs(["run"], state="Running", message="holds cpu 3"),
        gangs(["again", "wait"], state="WaitingForQuota", message="needs cpu 3; position 1 of 2 waiting"),
        gangs(["half"], "other", state="Assembling", message="waiting for its pods: workers 0 of 2"),
    )
    workloads, pods, groups = ([one for part in parts for one in part[place]] for place in range(3))
    for group in groups:
        name, annotations = group["metadata"]["name"], group["metadata"]["annotations"]
        if name == "ray-run-pg":
            annotations[ADMITTED_AT] = _AT
        if name == "ray-again-pg":
            annotations[REQUEUED_AT] = _AT
    return workloads, [one for one in pods if not one["metadata"]["name"].startswith("half-w")], groups


def served() -> dict[str, Sequence[JSON] | str]:
    workloads, pods, groups = scene()
    queues = [limited("org", cpu="9"), limited("q", "org", cpu="4"), limited("other", cpu="4")]
    found = dict(zip((*_KUBE, _QUEUES), (workloads, pods, groups, queues), strict=True))
    return {**found, "/api/v1/namespaces": [namespace()], "/apis/events.k8s.io/v1/events": []}


async def listed(command: Command, *words: str) -> Said:
    async with FaultyApiserver.serving() as server:
        for kind in ("GET", "LIST"):
            server.on(kind, answers(served()))
        config = command.file(kubeconfig(0).replace("https://127.0.0.1:0", server.url), "config")
        return await asyncio.to_thread(command.run, "gangs", f"--kubeconfig={config}", *words)


async def test_who_waits_is_listed_in_order_before_who_runs(command: Command) -> None:
    done = await listed(command)
    head, *rows = [line.split() for line in done.out.splitlines()]
    assert (done.code, head[:4]) == (0, ["NAMESPACE", "WORKLOAD", "QUEUE", "STATE"])
    assert [row[1:5] for row in rows] == [
        ["raycluster/wait", "q", "WaitingForQuota", "1"],
        ["raycluster/again", "q", "WaitingForQuota", "2"],
        ["raycluster/half", "other", "Assembling", "-"],
        ["raycluster/run", "q", "Running", "-"],
    ]


@cases(
    "words, names",
    ("waiting", ("--waiting",), ["wait", "again", "half"]),
    ("a queue", ("-q", "other"), ["half"]),
    ("a queue and those below", ("--queue=org",), ["wait", "again", "run"]),
    ("a namespace without any", ("-n", "empty"), []),
)
async def test_only_some(command: Command, words: tuple[str, ...], names: list[str]) -> None:
    done = await listed(command, "-o", "json", *words)
    assert [one["workload"].partition("/")[2] for one in json.loads(done.out)["gangs"]] == names


async def test_programs_get_numbers_and_times(command: Command) -> None:
    _, first, _, last = json.loads((await listed(command, "-ojson")).out)["gangs"]
    assert (first["position"], first["priority"], first["since"], first["holds"]) == (2, 0, _AT, None)
    assert first["needs"] == {"cpu": "3", "memory": "3Gi"}
    assert (last["position"], last["since"], last["needs"]) == (None, _AT, None)
    assert last["holds"] == {"cpu": "3", "memory": "3Gi"}


async def test_a_queue_that_does_not_exist_is_an_error_with_a_near_name(command: Command) -> None:
    done = await listed(command, "--queue=othr")
    assert (done.code, done.out) == (2, "")
    assert 'muster gangs: there is no queue "othr", or none that you may read; did you mean other?' in done.err


def test_a_queue_without_a_name_does_not_mean_every_queue(command: Command) -> None:
    done = command.run("gangs", "--queue=", "--kubeconfig=none")
    assert (done.code, done.out) == (2, "")
    assert "argument -q/--queue: is empty; leave it out to mean every queue" in done.err


async def test_the_message_has_a_column_of_its_own_when_asked_for(command: Command) -> None:
    assert "waiting for its pods" not in (await listed(command)).out
    assert "waiting for its pods: workers 0 of 2" in (await listed(command, "-owide")).out


def test_the_workload_that_the_user_applied_is_named() -> None:
    """The RayJob above a RayCluster; where none is known, the PodGroup."""
    workloads, pods, groups = gangs(["made"], state="WaitingForQuota")
    owner = {"apiVersion": "ray.io/v1", "kind": "RayJob", "name": "train", "uid": "uid-train", "controller": True}
    workloads[0]["metadata"]["ownerReferences"] = [owner]
    job = {"name": "train", "namespace": "team", "uid": "uid-train", "creationTimestamp": _AT}
    workloads.append({"apiVersion": "ray.io/v1", "kind": "RayJob", "metadata": job, "spec": {}})
    visible = ClusterSnapshot(filled(workloads=workloads, pods=pods, groups=groups, queues=[limited("q", cpu="4")]))
    found = Gangs.of(visible.ledger_snapshot(seconds_of(_AT) or 0.0))
    assert [one.title for one in found.waiting] == ["rayjob/train"]


def test_the_page_has_the_same_gangs() -> None:
    workloads, pods, groups = scene()
    visible = ClusterSnapshot(filled(workloads=workloads, pods=pods, groups=groups, queues=[limited("q", cpu="4")]))
    snapshot = visible.ledger_snapshot(seconds_of(_AT) or 0.0)
    board, found = Board(snapshot, whole=True), Gangs.of(snapshot)
    assert [row.gang for row in board.waiting().rows] == found.waiting
    assert board.totals == (len(found.waiting), len(found.others), len(found.holding))


def lease(age: float, holder: str = "c-0") -> Answer:
    """A Lease of 15 seconds that was renewed so many seconds ago."""
    renewed = text_of(dt.datetime.now(dt.UTC).timestamp() - age)
    return reply({"spec": {"holderIdentity": holder, "leaseDurationSeconds": 15, "renewTime": renewed}})


@cases(
    "answer, words",
    ("renewed", partial(lease, 2.0), ""),
    ("over", partial(lease, 500.0), "no controller of muster has renewed its lease for 8 minutes"),
    ("given back", partial(lease, 2.0, ""), "no controller of muster holds the lease"),
    ("never held", partial(failure, 404, "NotFound"), "no controller of muster holds the lease"),
    ("may not be read", partial(failure, 403, "Forbidden"), ""),
)
async def test_a_controller_that_is_dead_is_named(answer: Callable[[], Answer], words: str) -> None:
    async with FaultyApiserver.serving() as server, server.client() as client:
        server.on("GET", only(_LEASE, answer(), failure(500)))
        found = await silence(client, Settings(lease="muster-system/muster-controller"))
        assert (bool(found), found.startswith(words)) == (bool(words), True)
        assert await silence(client, Settings()) == ""


@pytest.mark.parametrize("name", ["gangs", "queues", "explain"])
async def test_commands_say_that_no_controller_is_alive(command: Command, name: str) -> None:
    settings = {"metadata": {"name": "muster"}, "data": {"values.yaml": "", "lease": "muster-system/muster-controller"}}
    everything = answers(served())
    async with FaultyApiserver.serving() as server:
        public = "/api/v1/namespaces/kube-public/configmaps/muster"
        server.on("GET", only(public, reply(settings), only(_LEASE, lease(500.0), everything)))
        server.on("LIST", everything)
        config = command.file(kubeconfig(0).replace("https://127.0.0.1:0", server.url), "config")
        words = ("explain", "-n", "team", "raycluster/wait") if name == "explain" else (name,)
        done = await asyncio.to_thread(command.run, *words, f"--kubeconfig={config}")
    assert done.code == 0
    where = done.out if name == "explain" else done.err
    assert "no controller of muster has renewed its lease for 8 minutes" in " ".join(where.split())
    assert "unknown: no controller" not in where


async def test_a_cluster_without_queues_is_not_an_empty_table_alone(command: Command) -> None:
    async with FaultyApiserver.serving() as server:
        server.on("GET", failure(404, "NotFound"))
        server.on("LIST", failure(404, "NotFound"))
        config = command.file(kubeconfig(0).replace("https://127.0.0.1:0", server.url), "config")
        done = await asyncio.to_thread(command.run, "queues", f"--kubeconfig={config}")
    assert done.code == 0
    assert "muster queues: there is no Queue (scheduling.volcano.sh) in this cluster, or none that you may" in done.err
