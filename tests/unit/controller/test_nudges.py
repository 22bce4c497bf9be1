"""Operators are asked for pods that are lacking, soon at first, and less and less often."""

import asyncio
import heapq
import itertools
from typing import Any

import pytest

from controller.apiserver import LiveReader
from controller.term import Work, observe_gang
from controller.touches import Touches, TouchSchedule
from muster.kube.errors import ApiError, Unreachable
from muster.model.names import HOLD, NUDGE
from muster.planning.expectations import Expectations
from muster.planning.phase import Phase
from muster.planning.plan import GangPlan
from muster.queueing.ledger import GangKey
from tests.support.cases import cases
from tests.support.controller.harness import Harness
from tests.support.controller.observations import touches_and_looks
from tests.support.faults.apiserver import FaultyApiserver, listing, manifest, reply
from tests.support.manifests.observed import JSON, KEY, old_pod, queue, ray_cluster, ray_pod, template, workers


def times(turns: TouchSchedule, until: float) -> list[float]:
    """When a gang that lacks pods from 0 on is nudged."""
    now, nudged = 0.0, []
    while now <= until:
        wait = turns.wait(KEY, now)
        if wait == 0:
            nudged.append(now)
        now += wait
    return nudged


def test_the_first_after_five_seconds_and_then_a_sixteenth_of_what_has_passed() -> None:
    nudged = times(TouchSchedule(), 86400)
    assert nudged[:4] == [5, 7, 9, 11]
    gaps = [later - earlier for earlier, later in itertools.pairwise(nudged)]
    assert all(gap == pytest.approx(min(max(at / 16, 2), 300)) for at, gap in zip(nudged, gaps, strict=False))
    assert len(nudged) < 380


def test_a_gang_that_got_its_pods_starts_over() -> None:
    turns = TouchSchedule()
    assert turns.wait(KEY, 0.0) == 5
    turns.forget(KEY)
    assert turns.wait(KEY, 60.0) == 5


def test_a_turn_that_was_had_is_nobody_elses() -> None:
    """Gangs get their pods and lack some again, all the time: no more than twenty are nudged in a second."""
    turns, nudged = TouchSchedule(), [0] * 40
    due = [(0.0, number, GangKey("team", f"gang-{number}")) for number in range(300)]
    for step in itertools.count():
        now, number, key = heapq.heappop(due)
        if now >= len(nudged):
            break
        if step % 97 == 0:
            turns.forget(key)
        wait = turns.wait(key, now)
        if wait == 0:
            nudged[int(now)] += 1
            wait = turns.wait(key, now)
        heapq.heappush(due, (now + wait, number, key))
    assert max(nudged) <= 21


def test_nobody_waits_for_the_turns_of_those_who_have_their_pods() -> None:
    """Thousands have waited through an outage, have their pods at its end, and one lacks some a minute later."""
    turns, due = TouchSchedule(), [(0.0, GangKey("team", f"gang-{number}")) for number in range(3000)]
    while due[0][0] < 120:
        now, key = heapq.heappop(due)
        heapq.heappush(due, (now + (turns.wait(key, now) or turns.wait(key, now)), key))
    for number in range(3000):
        turns.forget(GangKey("team", f"gang-{number}"))
    assert turns.wait(KEY, 180.0) == 5
    assert turns.wait(KEY, 185.0) == 0


def test_thousands_come_one_after_the_other() -> None:
    """Each is given a turn, and comes twice: to get it, and to take it."""
    turns, due = TouchSchedule(), [(0.0, GangKey("team", f"gang-{number}")) for number in range(1000)]
    nudged: list[float] = []
    asked = 0
    while due:
        due.sort(key=lambda one: one[0])
        now, key = due.pop(0)
        asked += 1
        wait = turns.wait(key, now)
        if wait > 0:
            due.append((now + wait, key))
        else:
            nudged.append(now)
    assert len(nudged) == 1000
    assert all(len([at for at in nudged if second <= at < second + 1]) <= 21 for second in range(5, 55))
    assert asked <= 3 * 1000


def test_a_namespace_is_not_behind_the_thousands_of_another() -> None:
    """Of each second it has its part, and so it is nudged when it would be alone."""
    turns = TouchSchedule()
    due = [(0.0, GangKey("many", f"gang-{number}")) for number in range(3_000)]
    for _ in range(6_000):
        now, key = heapq.heappop(due)
        heapq.heappush(due, (now + turns.wait(key, now), key))
    assert turns.wait(KEY, 5.0) == 5
    assert turns.wait(KEY, 10.0) < 0.2


def harness_of(*pods: JSON, cluster: JSON | None = None) -> Harness:
    return Harness(workloads=[cluster or ray_cluster()], pods=pods, queues=[queue(cpu="9")])


async def nudges(harness: Harness, seconds: int = 60) -> int:
    """How often the workload is touched while so many seconds pass."""
    first = len(harness.client.writes)
    for _ in range(seconds):
        harness.queue.add(KEY)
        await harness.settle()
        harness.now += 1
    return len([write for write in harness.client.writes[first:] if write.verb == "annotate"])


HEAD, WORKERS = ray_pod("demo-head", "headgroup"), [ray_pod("demo-w-0"), ray_pod("demo-w-1")]


@cases(
    "pods",
    ("no pod yet", []),
    ("gang not whole", [HEAD]),
    ("a member lost while it runs", [ray_pod("demo-head", "headgroup", held=False), WORKERS[0]]),
)
async def test_a_workload_that_lacks_pods_is_touched(pods: list[JSON]) -> None:
    harness = harness_of(*pods)
    assert await nudges(harness) == 23
    touched = next(write for write in harness.client.writes if write.verb == "annotate")
    assert (touched.kind, touched.name, touched.uid) == ("RayCluster", "demo", "uid-demo")
    assert list(touched.body["metadata"]["annotations"]) == [NUDGE]
    assert list(touched.body) == ["metadata"], "only metadata"


@cases(
    "pods, cluster",
    ("whole", [HEAD, *WORKERS], None),
    ("more than whole", [HEAD, *WORKERS, ray_pod("demo-w-2")], None),
    ("one has finished", [HEAD, WORKERS[0], ray_pod("demo-w-1", phase="Succeeded")], None),
    ("not muster's", [], ray_cluster(labels={})),
    ("suspended", [], ray_cluster(suspend=True)),
    ("being deleted", [], ray_cluster(meta={"deletionTimestamp": "2026-11-21T10:00:00Z"})),
    ("left alone", [old_pod("old")], None),
    ("invalid", [], ray_cluster(workers(replicas=-1))),
)
async def test_a_workload_that_lacks_nothing_of_musters_is_not_touched(pods: list[JSON], cluster: JSON | None) -> None:
    assert await nudges(harness_of(*pods, cluster=cluster)) == 0


async def test_a_workload_that_runs_in_another_cluster_lacks_nothing_here() -> None:
    """MultiKueue's; its pods never come."""
    harness = Harness(workloads=[ray_cluster(managedBy="kueue.x-k8s.io/multikueue")], queues=[queue(cpu="9")])
    for _ in range(20):
        harness.queue.add(KEY)
        await harness.work()
        harness.now += 30
    assert harness.client.writes == []


async def a_gang_that_waits(group: JSON) -> Harness:
    """It has its minimum and lacks a worker more; all of the queue belongs to another."""
    blocker = ray_cluster(workers(replicas=0), name="first", uid="uid-first", head=template(cpu="3"))
    pods = [
        ray_pod("head", "headgroup"),
        ray_pod("w-0"),
        ray_pod("first", "headgroup", cluster="first", owner_uid="uid-first", template=template(cpu="3")),
    ]
    clusters = [ray_cluster(group, enableInTreeAutoscaling=True), blocker]
    harness = await Harness(workloads=clusters, pods=pods[2:], queues=[queue(cpu="3")]).settled()
    harness.client.pods |= {pod["metadata"]["name"]: pod for pod in pods[:2]}
    await harness.catch_up()
    harness.now += 30
    harness.queue.add(KEY)
    await harness.settle()
    assert harness.open_pods() == ["first"]
    harness.now += 30
    return harness


@pytest.mark.parametrize("what", ["a pod of its minimum goes", "its user holds it", "it is suspended"])
async def test_what_happens_during_a_touch_is_heeded_after_it(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A touch may take ten seconds, in which there is room and the gang may not start any more."""
    group = workers(replicas=3, minReplicas=1, maxReplicas=3)
    harness = await a_gang_that_waits(group)
    touched = []
    merge_patch = harness.client.merge_patch

    async def slow(*args: Any, **options: Any) -> bytes:  # noqa: ANN401 - whatever the client takes
        touched.append(args)
        if what == "a pod of its minimum goes":
            del harness.client.pods["w-0"]
        else:
            said = {"annotations": {HOLD: "true"}} if what == "its user holds it" else {"suspend": True}
            harness.set_workload(ray_cluster(group, enableInTreeAutoscaling=True, **said))
        del harness.client.pods["first"]
        harness.drop_workload(ray_cluster(name="first", uid="uid-first"))
        harness.watch()
        await harness.reconciler.reconcile(GangKey("team", "ray-first-pg"))
        return await merge_patch(*args, **options)

    monkeypatch.setattr(harness.client, "merge_patch", slow)
    await harness.reconciler.reconcile(KEY)
    assert touched
    monkeypatch.undo()
    await harness.catch_up()
    assert harness.open_pods() == []


async def test_a_short_gang_is_looked_at_once_more_only_after_a_touch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nothing was waited for nothing can have happened, and a look at a gang of a thousand pods has its price."""
    harness = await harness_of(HEAD).settled()
    assert await touches_and_looks(harness, KEY, monkeypatch) == {(0, 1), (1, 2)}


async def test_a_refused_nudge_hinders_nothing() -> None:
    harness = harness_of(HEAD)
    harness.client.fails = {"annotate": [ApiError(403, "Forbidden", "no")] * 99}
    assert await nudges(harness) == 23


SET = {
    "apiVersion": "jobset.x-k8s.io/v1alpha2",
    "kind": "JobSet",
    "metadata": {"name": "demo", "namespace": "team", "uid": "uid-demo", "labels": {"volcano.sh/queue-name": "q"}},
    "spec": {"replicatedJobs": [{"name": "a", "replicas": 300, "template": {"spec": {"template": template()}}}]},
}
BY_NAME = "jobset.sigs.k8s.io/jobset-name=demo"


async def touched(harness: Harness, key: GangKey, seconds: int = 6) -> list[tuple[str, str, str]]:
    """Kind, name and UID of what is touched while so many seconds pass."""
    for _ in range(seconds):
        harness.queue.add(key)
        await harness.settle()
        harness.now += 1
    return [(one.kind, one.name, one.uid) for one in harness.client.writes if one.verb == "annotate"]


async def test_where_jobs_make_the_pods_those_that_lack_some_are_touched_as_well() -> None:
    """Only the Job controller would make them, and it hears of Jobs only; of very many some."""
    jobs = [f"demo-a-{number}" for number in range(300)]
    harness = Harness(workloads=[SET], queues=[queue(cpu="9000")])
    harness.short_jobs = {BY_NAME: jobs}
    first, *others = await touched(harness, GangKey("team", "demo"))
    assert first == ("JobSet", "demo", "uid-demo")
    assert others == [("Job", name, f"uid-{name}") for name in jobs[:100]]


async def test_a_job_that_is_gone_by_then_keeps_the_others_from_nothing(caplog: pytest.LogCaptureFixture) -> None:
    harness = Harness(workloads=[SET], queues=[queue(cpu="9000")])
    harness.short_jobs = {BY_NAME: ["demo-a-0", "demo-a-1", "demo-a-2"]}
    harness.client.fails = {"annotate demo-a-0": [ApiError(404, "NotFound", "gone")]}
    touches = await touched(harness, GangKey("team", "demo"))
    assert [name for _, name, _ in touches] == ["demo", "demo-a-0", "demo-a-1", "demo-a-2"]
    assert "failed to nudge 1 Jobs, the first: team/demo-a-0: 404 NotFound: gone" in caplog.text


@pytest.mark.parametrize(
    "error", [ApiError(500, "InternalError", "failed calling webhook"), Unreachable("no answer in 10 s")]
)
async def test_where_no_write_to_jobs_is_served_the_others_have_a_later_turn(error: ApiError) -> None:
    """Each attempt takes as long as a write may: a hundred would keep a worker for a quarter of an hour."""
    harness = Harness(workloads=[SET], queues=[queue(cpu="9000")])
    harness.short_jobs = {BY_NAME: [f"demo-a-{number}" for number in range(300)]}
    harness.client.fails = {"annotate demo-a-": [error]}
    touches = await touched(harness, GangKey("team", "demo"))
    assert [name for _, name, _ in touches] == ["demo", "demo-a-0"]


class Stuck:
    """A writer whose touches are answered when it is told to."""

    def __init__(self) -> None:
        self.under_way, self.touched = 0, 0
        self.answers = asyncio.Event()

    async def annotate(self, *_: object) -> None:
        """Wait for the answer."""
        self.under_way += 1
        await self.answers.wait()
        self.under_way -= 1
        self.touched += 1


async def test_touches_that_are_not_answered_keep_few_workers() -> None:
    """While the webhook of one operator is away, gangs of all others are worked on."""
    names = [f"demo-{number}" for number in range(40)]
    clusters = [ray_cluster(meta={"name": name, "uid": f"uid-{name}"}) for name in names]
    harness = Harness(workloads=clusters, queues=[queue(cpu="9")])
    views = [observe_gang(harness.term, key) for key in harness.cluster.gangs()]
    assert len(views) == 40
    stuck: Any = Stuck()
    harness.term.writer = stuck
    touches = Touches(harness.term)

    def works() -> list[Work]:
        return [Work(view, GangPlan(Phase.ASSEMBLING), Expectations(), harness.term.clock.now) for view in views]

    stuck.answers.set()
    begin = harness.now
    for harness.now in (begin, begin + 5.0):
        for work in works():
            await touches.touch(work)
            assert work.requeue_after > 0
    assert stuck.touched == 1, "the first has its turn at once"
    stuck.answers.clear()
    harness.now = begin + 10.0
    waiting = works()
    asking = [asyncio.create_task(touches.touch(work)) for work in waiting]
    for _ in range(5):
        await asyncio.sleep(0)
    assert stuck.under_way == 4
    assert [task.result() for task in asking if task.done()] == [False] * 36
    assert [work.requeue_after for work, task in zip(waiting, asking, strict=True) if task.done()] == [2.0] * 36
    stuck.answers.set()
    await asyncio.wait(asking)
    assert stuck.touched == 5
    for harness.now in (begin + 12.0, begin + 20.0):
        for work in works():
            await touches.touch(work)
    assert stuck.touched >= 41, "all have theirs"


async def test_an_operator_that_would_wait_longer_for_it_is_left_in_peace() -> None:
    """The MPI operator's delay doubles with every event of a job."""
    specs = {role: {"replicas": 1, "template": template()} for role in ("Launcher", "Worker")}
    job = {**SET, "apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob", "spec": {"mpiReplicaSpecs": specs}}
    harness = Harness(workloads=[job], queues=[queue(cpu="9")])
    harness.short_jobs = {BY_NAME: ["demo-launcher"]}
    assert await touched(harness, GangKey("team", "demo"), 60) == []


async def test_a_workload_that_cannot_be_touched_is_told_of_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    """And nudged again in its turn."""
    harness = harness_of(HEAD)
    harness.client.fails = {"annotate demo": [ApiError(403, "Forbidden", "no")]}
    assert await nudges(harness) == 23
    assert "team/ray-demo-pg: failed to nudge its operator: 403 Forbidden: no" in caplog.text


@cases(
    "job, short",
    ("no pod yet", {"spec": {"parallelism": 2}}, True),
    ("one is missing", {"spec": {"parallelism": 2}, "status": {"active": 1}}, True),
    ("all there", {"spec": {"parallelism": 2}, "status": {"active": 2}}, False),
    ("suspended", {"spec": {"suspend": True}}, False),
    ("complete", {"status": {"conditions": [{"type": "Complete", "status": "True"}]}}, False),
    ("failed", {"status": {"conditions": [{"type": "Failed", "status": "True"}]}}, False),
    ("not failed", {"status": {"conditions": [{"type": "Failed", "status": "False"}]}}, True),
)
async def test_which_jobs_lack_pods(job: JSON, short: bool) -> None:
    async with FaultyApiserver.serving() as server, server.client() as client:
        server.on("LIST", reply(listing(7, manifest("demo-a-0", 5, uid="u", **job), {"metadata": "broken"})))
        found = await LiveReader(client).short_jobs("team", BY_NAME)
    assert [(one.name, one.uid) for one in found] == [("demo-a-0", "u")] * short
    (request,) = server.seen("LIST")
    assert (request.path, request.query["labelSelector"]) == ("/apis/batch/v1/namespaces/team/jobs", BY_NAME)
