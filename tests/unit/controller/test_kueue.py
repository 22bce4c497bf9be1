"""Gangs that Kueue admits: held until Kueue says yes and they are whole, and by nothing of the ledger's."""

from dataclasses import replace

import pytest

from controller.apiserver import LiveReader
from muster.admitters.kueue import KueueTimeouts, KueueWorkload
from muster.model.names import ADMITTED, ADMITTER, GATE, MESSAGE, STATE
from muster.model.times import seconds_of
from tests.support.cases import cases
from tests.support.controller.harness import Harness
from tests.support.controller.two_gangs import members
from tests.support.faults.apiserver import Answer, FaultyApiserver, failure, reply
from tests.support.manifests.kueue import ADMITTED as YES
from tests.support.manifests.kueue import EVICTED, PENDING, kueue_workload
from tests.support.manifests.observed import DEFAULTS, GROUP, JSON, made, namespace, pod, queue, ray_cluster, ray_pod

LABELS = {"volcano.sh/queue-name": "q", "kueue.x-k8s.io/queue-name": "team"}
KUEUES = namespace(annotations={ADMITTER: "kueue"})
# Nothing of it would ever fit.
TINY = queue(cpu="1")


def demo(*conditions: JSON, harness: type[Harness] = Harness, **changes: list[JSON]) -> Harness:
    """A gang of 3 cpu in a queue of 1, and what Kueue says of it."""
    return harness(
        **{
            "workloads": [ray_cluster(labels=LABELS)],
            "pods": members(),
            "queues": [TINY],
            "namespaces": [KUEUES],
            "kueue": [kueue_workload([*conditions])],
            **changes,
        }
    )


def says(harness: Harness, *conditions: JSON) -> None:
    """What Kueue's Workload says from now on, as the watch shows it."""
    harness.cluster.kueue.workloads.apply("modified", made(KueueWorkload, kueue_workload([*conditions])))


def suspended(harness: Harness, *, suspend: bool) -> None:
    harness.set_workload(ray_cluster(labels=LABELS, suspend=suspend))


async def test_a_whole_gang_that_kueue_has_admitted_starts_whatever_its_queue_has() -> None:
    harness = await demo(*YES).settled()
    assert harness.open_pods() == ["demo-head", "demo-w-0", "demo-w-1"]
    assert harness.annotations(GROUP)[ADMITTER] == "kueue"
    assert ("Normal", "Admitted", "Kueue has admitted it, and all its pods are there") in harness.events()
    assert harness.annotations(GROUP)[MESSAGE].startswith("cpu 3 and memory 3Gi, admitted by Kueue; Kueue takes its")


async def test_a_gang_that_lacks_a_pod_is_held_all_the_same() -> None:
    harness = await demo(*YES, pods=members()[:2]).settled()
    assert harness.open_pods() == []
    assert ADMITTED not in harness.annotations(GROUP)


async def test_pods_that_are_there_before_kueues_yes_wait_for_it() -> None:
    """Their user has resumed the workload; Kueue suspends it again."""
    harness = await demo(*PENDING).settled()
    assert harness.open_pods() == []
    words = "Kueue has not admitted it: insufficient unused quota for cpu, 2 more needed"
    resumed = f"{words}; it was resumed by hand, and Kueue suspends it again"
    assert (harness.annotations(GROUP)[STATE], harness.annotations(GROUP)[MESSAGE]) == ("WaitingForKueue", resumed)
    says(harness, *YES)
    await harness.settle()
    assert harness.open_pods() == ["demo-head", "demo-w-0", "demo-w-1"]


async def test_kueues_other_words_are_on_the_pod_group_at_once() -> None:
    harness = await demo(*PENDING).settled()
    other = "couldn't assign flavors to pod set workers: insufficient quota for cpu"
    says(harness, {**PENDING[0], "message": other})
    await harness.settle()
    assert harness.annotations(GROUP)[MESSAGE].startswith(f"Kueue has not admitted it: {other}")
    assert await harness.settle() == []


async def test_kueue_is_asked_once_more_in_the_moment_of_opening() -> None:
    """The watch shows the yes of a moment ago."""
    harness = demo(*YES)
    harness.revoked.add("uid-workload")
    await harness.settle()
    assert harness.open_pods() == []
    assert ADMITTED not in harness.annotations(GROUP)


def pair(**conditions: list[JSON]) -> Harness:
    """A plain gang of one pod each of the Jobs j and k, and what Kueue says of these."""
    pods = [
        pod(
            f"{job}-0",
            labels={"muster.dev/gang": "pair"},
            annotations={"muster.dev/gang-size": "2", "scheduling.k8s.io/group-name": "pair"},
            owner={"apiVersion": "batch/v1", "kind": "Job", "name": job, "uid": f"uid-{job}", "controller": True},
            meta={"creationTimestamp": "2026-11-21T10:00:00Z"},
            schedulingGates=[{"name": GATE}],
        )
        for job in ("j", "k")
    ]
    kueue = [
        kueue_workload(said, name=f"job-{job}", uid=f"of-{job}", owner_uid=f"uid-{job}")
        for job, said in conditions.items()
    ]
    return Harness(pods=pods, queues=[queue("default", cpu="9")], namespaces=[KUEUES], kueue=kueue)


async def test_a_gang_of_several_jobs_starts_when_kueue_has_admitted_all_of_them() -> None:
    harness = await pair(j=YES, k=PENDING).settled()
    assert harness.open_pods() == []
    assert harness.annotations("pair")[MESSAGE].startswith('Job "k": Kueue has not admitted it: ')
    admitted = kueue_workload(YES, name="job-k", uid="of-k", owner_uid="uid-k")
    harness.cluster.kueue.workloads.apply("modified", made(KueueWorkload, admitted))
    await harness.settle()
    assert harness.open_pods() == ["j-0", "k-0"]


@pytest.mark.parametrize("revoked", ["of-j", "of-k"])
async def test_of_a_gang_of_several_jobs_kueue_is_asked_of_each_in_the_moment_of_opening(revoked: str) -> None:
    harness = pair(j=YES, k=YES)
    harness.revoked.add(revoked)
    await harness.settle()
    assert harness.open_pods() == []
    assert ADMITTED not in harness.annotations("pair")


@cases("conditions", ("evicted", EVICTED), ("another Workload of the name", []))
async def test_of_an_admitted_gang_nothing_more_is_opened_when_kueue_takes_it_back(conditions: list[JSON]) -> None:
    """Its quota is gone seconds before its pods are; what comes meanwhile must not start."""
    harness = await demo(*YES).settled()
    says(harness, *conditions)
    del harness.client.pods["demo-w-1"]
    harness.client.pods["demo-w-2"] = ray_pod("demo-w-2")
    await harness.catch_up()
    assert harness.open_pods() == ["demo-head", "demo-w-0"]


async def test_what_kueue_suspends_says_so_in_kueues_words_and_queues_again() -> None:
    harness = await demo(*YES).settled()
    says(harness, *EVICTED)
    suspended(harness, suspend=True)
    await harness.settle()
    assert harness.annotations(GROUP)[STATE] == "WaitingForKueue"
    assert "for its pods were not ready in time" in harness.annotations(GROUP)[MESSAGE]
    assert ADMITTED not in harness.annotations(GROUP)
    assert [row.ends for _, row in harness.accounts.rows() if row.ends] == [{"evicted": 1}]
    harness.client.pods.clear()
    harness.client.pods |= {pod["metadata"]["name"]: pod for pod in members()}
    harness.watch()
    suspended(harness, suspend=False)
    says(harness, *YES)
    await harness.settle()
    assert harness.open_pods() == ["demo-head", "demo-w-0", "demo-w-1"]


async def test_a_suspension_that_kueue_reverts_says_how_to_stop_it() -> None:
    harness = await demo(*YES).settled()
    suspended(harness, suspend=True)
    await harness.settle()
    assert harness.annotations(GROUP)[STATE] == "Suspended"
    assert 'set spec.active: false in Kueue\'s Workload "raycluster-demo-4e95f"' in harness.annotations(GROUP)[MESSAGE]


async def test_what_is_suspended_from_the_beginning_says_why_on_itself_alone() -> None:
    harness = await demo(*PENDING, pods=[], workloads=[ray_cluster(labels=LABELS, suspend=True)]).settled()
    assert harness.client.groups == {}
    words = "Kueue has not admitted it: insufficient unused quota for cpu, 2 more needed"
    assert harness.events() == [("Normal", "WaitingForKueue", words)]


async def test_a_gang_in_no_queue_of_kueues_is_told_so_and_waits() -> None:
    harness = await demo(workloads=[ray_cluster()], kueue=[]).settled()
    assert harness.open_pods() == []
    assert "label it kueue.x-k8s.io/queue-name" in harness.annotations(GROUP)[MESSAGE]


async def test_kueues_time_is_warned_of_before_it_ends() -> None:
    harness = await demo(*YES).settled()
    assert not [note for _, reason, note in harness.events() if reason == "DeadlineNear"]
    # 2026-11-21T10:29:00Z, a minute before the end.
    harness.now = 1795256940.0
    harness.reconciler.gang_changed(next(iter(harness.cluster.gangs())))
    await harness.settle()
    (warning,) = [note for _, reason, note in harness.events() if reason == "DeadlineNear"]
    assert warning == "Kueue takes its quota back at 2026-11-21T10:30:00Z if its pods are not ready by then"


async def test_the_time_in_which_kueue_awaits_nodes_is_warned_of_where_it_ends_first() -> None:
    """Held pods have none, and the time does not stop for them; when Kueue has seen all of them on nodes it is over."""

    class Impatient(Harness):
        defaults = replace(DEFAULTS, kueue=KueueTimeouts(1800, 600))

    harness = await demo(*YES, harness=Impatient, pods=members()[:2]).settled()
    # 2026-11-21T10:09:00Z, a minute before the end.
    harness.now = 1795255740.0
    harness.reconciler.gang_changed(next(iter(harness.cluster.gangs())))
    await harness.settle()
    (warning,) = [note for _, reason, note in harness.events() if reason == "DeadlineNear"]
    assert warning == "Kueue takes its quota back at 2026-11-21T10:10:00Z if its pods have no nodes by then"
    assert harness.annotations(GROUP)[MESSAGE].endswith(f"; {warning}")
    says(harness, *YES, {"type": "PodsScheduled", "status": "True"})
    await harness.settle()
    later = "Kueue takes its quota back at 2026-11-21T10:30:00Z if its pods are not ready by then"
    assert harness.annotations(GROUP)[MESSAGE].endswith(f"; {later}")
    assert [reason for _, reason, _ in harness.events()].count("DeadlineNear") == 1


async def test_an_admitted_gang_keeps_its_admitter_and_one_that_waits_does_not() -> None:
    harness = await demo(*YES).settled()
    harness.set_namespace(namespace())
    del harness.client.pods["demo-w-1"]
    harness.client.pods["demo-w-2"] = ray_pod("demo-w-2")
    await harness.catch_up()
    assert harness.open_pods() == ["demo-head", "demo-w-0", "demo-w-2"]
    waiting = await demo(*PENDING).settled()
    waiting.set_namespace(namespace())
    await waiting.settle()
    assert waiting.annotations(GROUP)[STATE] == "ExceedsCapability"


async def test_a_new_leader_reads_who_has_admitted() -> None:
    harness = await demo(*YES).settled()
    harness.set_namespace(namespace())
    harness.restart()
    await harness.settle()
    assert harness.annotations(GROUP)[ADMITTER] == "kueue"
    assert ", admitted by Kueue" in harness.annotations(GROUP)[MESSAGE]


async def test_what_kueue_has_admitted_counts_in_its_schedulers_queue_for_the_gangs_of_the_ledger() -> None:
    """Volcano counts it there, too."""
    harness = await demo(*YES, queues=[queue(cpu="4", memory="9Gi")]).settled()
    harness.set_namespace(namespace())
    harness.set_workload(ray_cluster(name="other", uid="uid-other"))
    harness.client.pods |= {pod["metadata"]["name"]: pod for pod in members("other")}
    await harness.catch_up()
    assert harness.annotations("ray-other-pg")[STATE] == "WaitingForQuota"


async def test_a_new_workload_says_nothing_until_kueue_had_five_seconds_to_look_at_it() -> None:
    """Kueue makes its Workload in a moment; a warning before that would be a false one in every apply."""
    manifest = ray_cluster(labels=LABELS, suspend=True)
    harness = demo(pods=[], workloads=[manifest], kueue=[])
    began = seconds_of(manifest["metadata"]["creationTimestamp"])
    assert began is not None
    harness.now = began + 3
    await harness.settle()
    assert (harness.events(), harness.queue.statistics().delayed) == ([], 1)
    harness.now = began + 5
    harness.reconciler.gang_changed(next(iter(harness.cluster.gangs())))
    await harness.settle()
    assert [reason for _, reason, _ in harness.events()] == ["WaitingForKueue"]


async def test_kueues_words_are_said_half_a_minute_later_when_they_come_after_others() -> None:
    """A gang without pods has no PodGroup: what no event says nobody reads."""
    manifest = ray_cluster(labels=LABELS, suspend=True)
    harness = demo(pods=[], workloads=[manifest], kueue=[])
    harness.now = 1e10
    await harness.settle()
    assert len(harness.events()) == 1
    says(harness, *PENDING)
    await harness.settle()
    assert (len(harness.events()), harness.queue.statistics().delayed) == (1, 1)
    harness.now += 30
    harness.reconciler.gang_changed(next(iter(harness.cluster.gangs())))
    await harness.settle()
    words = "Kueue has not admitted it: insufficient unused quota for cpu, 2 more needed"
    assert harness.events()[1:] == [("Normal", "WaitingForKueue", words)]


@cases(
    "answer, admitted",
    ("still", reply(kueue_workload(YES)), True),
    ("no longer", reply(kueue_workload(PENDING)), False),
    ("another of that name", reply(kueue_workload(YES, uid="uid-next")), False),
    ("gone", failure(404, "NotFound"), False),
)
async def test_the_apiserver_says_whether_kueues_yes_holds(answer: Answer, *, admitted: bool) -> None:
    async with FaultyApiserver.serving() as server, server.client() as client:
        server.on("GET", answer)
        assert await LiveReader(client).still_admitted(made(KueueWorkload, kueue_workload(YES))) is admitted
    (request,) = server.seen("GET")
    assert request.path == "/apis/kueue.x-k8s.io/v1beta2/namespaces/ns/workloads/raycluster-demo-4e95f"
