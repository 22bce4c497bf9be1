"""Pods that a scheduler or Kueue takes back are reported on the workload, once and together, and no other loss is."""

from muster.admitters.kueue import KueueWorkload
from muster.kube.store import Change
from muster.model.names import ADMITTER, GROUP_NAME, MESSAGE
from muster.model.pods import Pod
from muster.planning.messages import EvictionReport, eviction_in
from tests.support.cases import cases
from tests.support.controller.harness import Harness
from tests.support.controller.two_gangs import members
from tests.support.manifests.kueue import ADMITTED as YES
from tests.support.manifests.kueue import PENDING, kueue_workload
from tests.support.manifests.observed import (
    GROUP,
    JSON,
    KEY,
    made,
    namespace,
    pod,
    pod_group,
    queue,
    ray_cluster,
    ray_pod,
    workers,
)
from tests.unit.controller.test_kueue import pair

LEAVES = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
IN_TEAM = {"volcano.sh/queue-name": "q", "kueue.x-k8s.io/queue-name": "team"}
REPLACEMENTS_WAIT = "; replacements beyond its minimum wait no longer"
RECLAIMED = {"type": "Ready", "status": "False", "reason": "Evict", "message": "Pod is evicted, because of reclaim"}


async def running(count: int) -> Harness:
    """A gang of a head and so many workers on node n, of which it needs one."""
    manifest = ray_cluster(workers(replicas=count, minReplicas=1, maxReplicas=count), enableInTreeAutoscaling=True)
    names = [f"w-{number}" for number in range(count)]
    pods = [ray_pod("h", "headgroup", held=False), *(ray_pod(name, held=False) for name in names)]
    for one in pods:
        one["spec"]["nodeName"] = "n"
        # The clock of a harness begins at 1000.
        one["status"] = {"phase": "Running", "startTime": "1970-01-01T00:05:00Z"}
    world = Harness(workloads=[manifest], pods=pods, groups=[pod_group(admitted="uid-demo")], queues=[queue(cpu="999")])
    return await world.settled()


def evict(world: Harness, *names: str, at: str = "1970-01-01T00:16:50Z", **condition: str) -> None:
    """The scheduler marks the pods, and has them deleted."""
    for name in names:
        pod = world.client.pods[name]
        pod["status"] |= {"conditions": [RECLAIMED, LEAVES | condition]}
        pod["metadata"]["deletionTimestamp"] = at
    world.watch()


def end(world: Harness, *names: str) -> None:
    for name in names:
        del world.client.pods[name]
    world.watch()


async def wait(world: Harness, seconds: float) -> None:
    world.now += seconds
    world.queue.add(KEY)
    await world.settle()


def told(world: Harness) -> list[str]:
    return [note for _, reason, note in world.events() if reason == "Evicted"]


async def test_many_pods_are_one_event_with_three_names_and_the_longest_run() -> None:
    world = await running(40)
    lost = [f"w-{number}" for number in range(1, 40)]
    world.client.pods["w-1"]["status"]["startTime"] = "1970-01-01T00:00:00Z"
    evict(world, *lost[:20])
    await wait(world, 1)
    evict(world, *lost[20:])
    end(world, *lost)
    await wait(world, 2)
    await wait(world, 60)
    (note,) = told(world)
    assert "reclaimed 39 of its pods (w-1, w-2, w-3 and 36 more; cpu 39 and memory 39Gi)" in note
    assert "; they had run up to 16m43s; " in note


async def test_an_eviction_after_another_is_an_event_of_its_own_and_no_flood_of_them() -> None:
    """Ten in a row, and one a minute then; the gang's message has each of them."""
    world = await running(3)
    for life in range(15):
        evict(world, "w-1")
        end(world, "w-1")
        await wait(world, 3)
        world.client.pods["w-1"] = again = ray_pod("w-1", held=False)
        again["metadata"]["uid"] = f"uid-{life}"
        again["spec"]["nodeName"], again["status"] = "n", {"phase": "Running"}
        await world.catch_up()
    assert 5 < len(told(world)) <= 10


async def test_evictions_that_never_stop_are_reported_all_the_same() -> None:
    """One each second: that would be no news for ever, and all pods would be remembered."""
    world = await running(30)
    for number in range(1, 30):
        evict(world, f"w-{number}")
        end(world, f"w-{number}")
        await wait(world, 1)
    assert len(told(world)) == 2
    assert "reclaimed 10 of its pods" in told(world)[0]


@cases(
    "condition",
    ("kubectl drain", {"reason": "EvictionByEvictionAPI"}),
    ("a taint", {"reason": "DeletionByTaintManager"}),
    ("pressure on the node", {"reason": "TerminationByKubelet"}),
    ("the garbage collector", {"reason": "DeletionByPodGC"}),
    ("no more", {"status": "False"}),
)
async def test_other_reasons_to_go_are_no_eviction_by_the_scheduler(condition: dict[str, str]) -> None:
    world = await running(3)
    evict(world, "w-1", **condition)
    end(world, "w-1")
    await wait(world, 10)
    assert told(world) == []


@cases("failed", ("deleted by its user", False), ("failed by itself", True))
async def test_a_pod_that_is_deleted_or_fails_is_no_eviction(*, failed: bool) -> None:
    world = await running(3)
    if failed:
        world.client.pods["w-1"]["status"]["phase"] = "Failed"
        world.watch()
    end(world, "w-1")
    await wait(world, 10)
    assert told(world) == []


async def test_a_gang_that_is_evicted_whole_and_made_again_has_one_event() -> None:
    world = await running(2)
    evict(world, "h", "w-0", "w-1")
    world.client.pods = {"h-2": ray_pod("h-2", "headgroup"), "w-2": ray_pod("w-2"), "w-3": ray_pod("w-3")}
    await world.catch_up()
    await wait(world, 2)
    await wait(world, 60)
    (note,) = told(world)
    assert "reclaimed 3 of its pods (h, w-0, w-1; cpu 3 and memory 3Gi)" in note


async def test_a_new_leader_reports_what_the_former_one_had_no_time_for_and_names_the_claimant() -> None:
    world = await running(3)
    world.set_workload(ray_cluster(name="other", uid="uid-other"))
    claimant = ray_pod("c", cluster="other", owner_uid="uid-other", held=False)
    claimant["status"] = {"nominatedNodeName": "n"}
    evict(world, "w-1", "w-2")
    await world.settle()
    assert told(world) == []
    world.client.pods["c"] = claimant
    world.watch()
    world.restart()
    await wait(world, 2)
    assert [note.partition("; ")[0] for note in told(world)] == ["volcano reclaimed 2 of its pods (w-1, w-2"]
    assert ' for gang "ray-other-pg"' in told(world)[0]


async def test_a_claimant_that_is_no_gang_of_musters_is_named_by_its_pod_group_and_queue() -> None:
    """Such as a Job of Volcano's."""
    world = await running(3)
    job = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "job", "uid": "uid-job"}
    world.client.groups["job-1"] = pod_group("job-1", owner=job, ours=False)
    world.watch()
    for claimant in (pod("c", annotations={GROUP_NAME: "job-1"}), pod("alone")):
        claimant["status"] = {"nominatedNodeName": "n"}
        world.term.evictions.note(Change("added", None, made(Pod, claimant)), world.now)
    evict(world, "w-1")
    await wait(world, 2)
    (note,) = told(world)
    assert ' for gang "job-1" of queue "q"; ' in note


async def test_a_new_leader_repeats_no_report() -> None:
    """The gang's message has it as long as its pods are not replaced."""
    world = await running(3)
    evict(world, "w-1", "w-2")
    await wait(world, 2)
    assert "reclaimed 2 of its pods" in world.annotations(GROUP)[MESSAGE]
    end(world, "w-1")
    world.restart()
    await wait(world, 2)
    await wait(world, 60)
    assert len(told(world)) == 1


@cases(
    "evicted, ended, later, reported",
    ("all named, one of them gone", "w-1 w-2", "w-1", "", ""),
    ("all named, and one more", "w-1 w-2", "", "w-3", "1 of its pods (w-3;"),
    ("all gone, and one more", "w-1 w-2", "w-1 w-2", "w-3", "1 of its pods (w-3;"),
    ("all that were named gone", "w-1 w-2 w-3 w-4 w-5", "w-1 w-2 w-3", "", ""),
    ("more than are named, and one more", "w-1 w-2 w-3 w-4 w-5", "", "w-0", "1 of its pods (w-0;"),
)
async def test_a_new_leader_reports_what_was_evicted_since_the_last_report(
    evicted: str, ended: str, later: str, reported: str
) -> None:
    world = await running(6)
    evict(world, *evicted.split())
    await wait(world, 2)
    end(world, *ended.split())
    world.now += 1
    evict(world, *later.split(), at="1970-01-01T00:16:53Z")
    world.restart()
    await wait(world, 2)
    await wait(world, 60)
    _, *since = told(world)
    assert len(since) == bool(reported)
    assert all(reported in one for one in since)


@cases(
    "words",
    ("another note", "2 of its 3 pods have nodes and are not ready (w-1: CrashLoopBackOff)"),
    ("cut off", "volcano reclaimed 2 of its pods (w-1, w-2"),
    ("no number", f"volcano reclaimed {'9' * 5000} of its pods (w-1{REPLACEMENTS_WAIT}"),
    ("again and again", "; volcano reclaimed 1 of its pods (w-1" * 5000),
)
def test_other_words_in_a_message_are_no_report(words: str) -> None:
    assert eviction_in(words) == EvictionReport()


async def test_of_two_reports_a_new_leader_repeats_neither() -> None:
    """The message has the last one."""
    world = await running(3)
    evict(world, "w-1")
    await wait(world, 2)
    evict(world, "w-2", at="1970-01-01T00:16:52Z")
    await wait(world, 2)
    world.restart()
    await wait(world, 2)
    assert len(told(world)) == 2


async def test_the_message_keeps_the_report_under_new_leaders_until_the_pods_are_replaced() -> None:
    world = await running(3)
    world.set_workload(ray_cluster(name="other", uid="uid-other"))
    claimant = ray_pod("c", cluster="other", owner_uid="uid-other", held=False)
    claimant["status"] = {"nominatedNodeName": "n"}
    world.client.pods["c"] = claimant
    evict(world, "w-1", "w-2")
    await wait(world, 2)
    (note,) = told(world)
    for _ in range(2):
        world.restart()
        await wait(world, 2)
        await wait(world, 5)
        assert world.annotations(GROUP)[MESSAGE].endswith(f"; {note}")
    assert told(world) == [note]
    end(world, "w-1", "w-2")
    for name in ("w-4", "w-5"):
        again = world.client.pods[name] = ray_pod(name, held=False)
        again["spec"]["nodeName"], again["status"] = "n", {"phase": "Running"}
    await world.catch_up()
    await wait(world, 60)
    assert "reclaimed" not in world.annotations(GROUP)[MESSAGE]


async def test_a_pod_that_never_ends_is_no_news_to_a_new_leader() -> None:
    world = await running(3)
    evict(world, "w-1")
    await wait(world, 2)
    world.now += 600
    world.restart()
    await wait(world, 10)
    assert len(told(world)) == 1


def preempted(for_: str = "uid-urgent") -> list[JSON]:
    message = (
        f"Preempted to accommodate a workload (UID: 1, JobUID: {for_}) due to prioritization in the ClusterQueue; "
        "preemptor path: /cq; preemptee path: /cq"
    )
    return [*YES, {"type": "Evicted", "status": "True", "reason": "Preempted", "message": message}]


def kueue_says(harness: Harness, conditions: list[JSON], **more: object) -> None:
    harness.cluster.kueue.workloads.apply("modified", made(KueueWorkload, kueue_workload(conditions) | more))


async def by_kueue(said: list[JSON]) -> Harness:
    """A gang that Kueue has answered for so."""
    pods = members()
    for one in pods:
        one["spec"]["nodeName"], one["status"] = "n", {"phase": "Running", "startTime": "1970-01-01T00:05:00Z"}
    world = Harness(
        workloads=[ray_cluster(labels=IN_TEAM)],
        pods=pods,
        queues=[queue(cpu="1")],
        namespaces=[namespace(annotations={ADMITTER: "kueue"})],
        kueue=[kueue_workload(said)],
    )
    return await world.settled()


def preemptor(space: str) -> JSON:
    urgent = kueue_workload(PENDING, name="urgent-wl", uid="uid-wl", owner_uid="uid-urgent", namespace=space)
    urgent["metadata"]["ownerReferences"][0]["name"] = "urgent"
    return urgent


@cases("space, named", ("its own namespace", "ns", True), ("another namespace", "elsewhere", False))
async def test_what_kueue_preempts_is_reported_once_with_what_was_lost_and_for_whom(space: str, *, named: bool) -> None:
    """Kueue names the preemptor by UIDs; who is in another namespace stays unnamed."""
    world = await by_kueue(YES)
    world.cluster.kueue.workloads.apply("added", made(KueueWorkload, preemptor(space)))
    kueue_says(world, preempted())
    await world.settle()
    world.client.pods.clear()
    world.watch()
    world.set_workload(ray_cluster(labels=IN_TEAM, suspend=True))
    await world.settle()
    (note,) = told(world)
    lost = "Kueue evicted 3 of its pods (demo-head, demo-w-0, demo-w-1; cpu 3 and memory 3Gi)"
    assert note.startswith(f"{lost}; they had run up to 11m40s; Kueue has preempted it: Preempted to accommodate a ")
    assert note.endswith('; the preemptor is RayCluster "urgent" of LocalQueue "team"') is named


async def test_what_kueue_says_since_an_eviction_is_in_the_message() -> None:
    world = await by_kueue(YES)
    evicted = preempted()[-1]
    kueue_says(world, [PENDING[0], evicted])
    world.set_workload(ray_cluster(labels=IN_TEAM, suspend=True))
    await world.settle()
    assert "; since then: insufficient unused quota for cpu, 2 more needed" in world.annotations(GROUP)[MESSAGE]


async def test_each_eviction_by_kueue_is_reported() -> None:
    world = await by_kueue(YES)
    for _ in range(2):
        kueue_says(world, preempted())
        await world.settle()
        world.client.pods.clear()
        world.set_workload(ray_cluster(labels=IN_TEAM, suspend=True))
        await world.catch_up()
        world.restart()
        kueue_says(world, YES)
        world.client.pods |= {pod["metadata"]["name"]: pod for pod in members()}
        world.set_workload(ray_cluster(labels=IN_TEAM))
        await world.catch_up()
    assert len(told(world)) == 2


async def test_a_new_leader_reports_an_eviction_by_kueue_though_its_pods_are_gone() -> None:
    world = await by_kueue(YES)
    kueue_says(world, preempted())
    world.client.pods.clear()
    world.watch()
    world.restart()
    await world.settle()
    (note,) = told(world)
    assert note.startswith("Kueue evicted it; Kueue has preempted it: ")


async def test_a_new_leader_repeats_no_report_on_an_eviction_by_kueue() -> None:
    world = await by_kueue(YES)
    kueue_says(world, preempted())
    await world.settle()
    world.restart()
    await world.settle()
    assert len(told(world)) == 1


async def test_of_a_gang_of_several_jobs_each_evicted_one_is_reported_once() -> None:
    world = await pair(j=YES, k=YES).settled()
    for name in "kj":
        taken = kueue_workload(preempted(), name=f"job-{name}", uid=f"of-{name}", owner_uid=f"uid-{name}")
        world.cluster.kueue.workloads.apply("modified", made(KueueWorkload, taken))
        await world.settle()
    notes = [event["note"] for event in world.events_on("PodGroup") if event["reason"] == "Evicted"]
    reports = ["Kueue evicted 1 of its pods (k-0", "Kueue evicted 1 of its pods (j-0"]
    assert [note.partition("; ")[0] for note in notes] == reports


async def test_what_waited_held_has_lost_nothing_to_kueue() -> None:
    """Its quota was reserved, and its pods had not come."""
    world = await by_kueue(PENDING)
    kueue_says(world, preempted())
    await world.settle()
    assert told(world) == []
    assert "Kueue has preempted it" in world.annotations(GROUP)[MESSAGE]


def test_a_change_of_a_pod_without_a_gang_is_nothing() -> None:
    world = Harness()
    pod = made(Pod, {"metadata": {"name": "p", "namespace": "n"}, "status": {"conditions": [LEAVES]}})
    world.term.evictions.note(Change("added", None, pod), world.now)
    assert world.term.evictions.gangs == 0
