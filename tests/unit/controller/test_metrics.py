"""What the controller counts, and that nobody can make series without end."""

import json

import pytest
from prometheus_client import CollectorRegistry

from controller.apiserver import Writer
from controller.delays import Clock
from controller.events import Announcer
from controller.metrics import Metrics, TermMetrics
from muster.cluster.cluster import Cluster
from muster.kube.workqueue import WorkQueue
from muster.model.names import ADMITTED_AT, ADMITTER, GANG, GANG_SIZE, GATE, GROUP_NAME, RUNS_AT_MOST, STATE
from muster.model.objects import PodGroup, Queue
from muster.model.times import text_of
from muster.queueing.ledger import GangKey, Ledger
from muster.queueing.queue_view import QueueView
from muster.schedulers import SCHEDULERS
from muster.workloads.kubeflow import PYTORCH_JOB
from tests.support.cases import cases
from tests.support.controller.bypass_queue import LARGE, gang, harness, running
from tests.support.controller.harness import Harness, Makers
from tests.support.controller.recording_client import RecordingClient
from tests.support.controller.stores import filled, workload_store
from tests.support.controller.two_gangs import members
from tests.support.manifests.observed import (
    GROUP,
    JSON,
    amounts,
    as_client,
    made,
    namespace,
    pod,
    pod_group,
    pytorch_job,
    pytorch_pod,
    queue,
    ray_cluster,
    ray_pod,
    template,
)

_KEPT = ("ledger", "delayed", "failing")


def gangs(registry: CollectorRegistry) -> dict[tuple[str, str], float]:
    """`muster_gangs` by queue and state."""
    return {
        (sample.labels["queue"], sample.labels["state"]): sample.value
        for family in registry.collect()
        for sample in family.samples
        if sample.name == "muster_gangs"
    }


def saying(name: str, state: str, **spec: object) -> PodGroup:
    return made(PodGroup, pod_group(name, annotations={STATE: state}, **spec))  # type: ignore[arg-type]


@pytest.fixture
def cluster() -> Cluster:
    return filled(queues=[queue("q"), queue("other")])


@pytest.fixture
def registry() -> CollectorRegistry:
    return CollectorRegistry()


def test_gangs_are_counted_by_queue_and_state_as_they_change(cluster: Cluster, registry: CollectorRegistry) -> None:
    TermMetrics(cluster, "lease", lambda: True, registry)
    groups = cluster.pod_groups.of("volcano")
    for name in ("a", "b"):
        groups.apply("added", saying(name, "WaitingForQuota"))
    groups.apply("added", saying("c", "Running", queue="other"))
    assert gangs(registry) == {("q", "WaitingForQuota"): 2, ("other", "Running"): 1}
    groups.apply("modified", saying("a", "Running"))
    groups.apply("deleted", saying("c", "Running", queue="other"))
    assert gangs(registry) == {("q", "WaitingForQuota"): 1, ("q", "Running"): 1}


def test_nobody_makes_series_by_writing_pod_groups(cluster: Cluster, registry: CollectorRegistry) -> None:
    """Queues that do not exist and states that muster does not know share one series."""
    TermMetrics(cluster, "lease", lambda: True, registry)
    for number in range(100):
        cluster.pod_groups.of("volcano").apply("added", saying(f"g{number}", f"Odd{number}", queue=f"none-{number}"))
    assert gangs(registry) == {("", ""): 100}


def test_groups_of_others_are_no_gangs(cluster: Cluster, registry: CollectorRegistry) -> None:
    TermMetrics(cluster, "lease", lambda: True, registry)
    cluster.pod_groups.of("volcano").apply("added", made(PodGroup, pod_group(ours=False)))
    assert gangs(registry) == {}


OTHERS = {"apiVersion": "x/v1", "kind": "X", "name": "x", "uid": "uid-x"}
BELOW = {"metadata": {"name": "below"}, "spec": {"parent": "q"}, "status": {"state": "Open"}}


@cases(
    "queues, groups, counted",
    ("no queue", [queue("other")], [], ("", "QueueNotFound")),
    ("no leaf", [queue(), BELOW], [], ("q", "QueueNotLeaf")),
    ("a PodGroup in the way", [queue()], [pod_group(ours=False, owner=OTHERS)], ("q", "ForeignPodGroup")),
)
async def test_gangs_without_a_pod_group_of_their_own_are_counted(
    queues: list[JSON], groups: list[JSON], counted: tuple[str, str], registry: CollectorRegistry
) -> None:
    """They need a hand, and an alert asks for one."""
    pods = [ray_pod("demo-head", "headgroup"), ray_pod("demo-w-0"), ray_pod("demo-w-1")]
    harness = Harness(workloads=[ray_cluster()], pods=pods, queues=queues, groups=groups)
    term = TermMetrics(harness.cluster, "lease", lambda: True, registry)
    term.begins(harness.queue, harness.announcer, harness.reconciler.kept, harness.term.reporter.groupless)
    await harness.settle()
    assert gangs(registry) == {counted: 1}
    if groups:
        del harness.client.groups["ray-demo-pg"]
        harness.watch()
    elif BELOW in queues:
        harness.drop_queue(BELOW)
    else:
        harness.set_queue(queue())
    await harness.settle()
    assert {key: number for key, number in gangs(registry).items() if number} == {("q", "Admitted"): 1}


def test_who_only_waits_to_lead_counts_no_gangs(cluster: Cluster, registry: CollectorRegistry) -> None:
    """Or the sum over the replicas would be twice what there is."""
    leads = False
    TermMetrics(cluster, "lease", lambda: leads, registry)
    cluster.pod_groups.of("volcano").apply("added", saying("a", "Running"))
    assert gangs(registry) == {}
    assert registry.get_sample_value("leader_election_master_status", {"name": "lease"}) == 0
    leads = True
    assert gangs(registry) == {("q", "Running"): 1}
    assert registry.get_sample_value("leader_election_master_status", {"name": "lease"}) == 1


async def test_the_work_queue_has_the_names_of_client_go(cluster: Cluster, registry: CollectorRegistry) -> None:
    metrics, term = Metrics(registry), TermMetrics(cluster, "lease", lambda: True, registry)
    work: WorkQueue[GangKey] = WorkQueue(waited=metrics.queue_wait.observe)
    announcer = Announcer(Writer(as_client(RecordingClient()), lambda: 1.0), Makers(), "c")
    term.begins(work, announcer, lambda: {"ledger": 7})
    for name in ("a", "b", "b"):
        work.add(GangKey("team", name))
    await work.get()
    work.retry(GangKey("team", "a"))

    def value(name: str) -> float | None:
        return registry.get_sample_value(f"workqueue_{name}", {"name": "gangs"})

    assert (value("depth"), value("adds_total"), value("retries_total")) == (1, 2, 1)
    assert value("queue_duration_seconds_count") == 1
    kept = {part: registry.get_sample_value("muster_kept_entries", {"part": part}) for part in _KEPT}
    assert kept == {"ledger": 7, "delayed": 1, "failing": 1}


async def test_nothing_is_kept_of_gangs_that_are_gone() -> None:
    """Or a leader would grow with all gangs that there have ever been."""
    labels = {"muster.dev/gang": "pair", "volcano.sh/queue-name": "q"}
    bound = {"muster.dev/gang-size": "2", "scheduling.k8s.io/group-name": "pair"}
    pair = [
        pod(name, labels=labels, annotations=bound, schedulingGates=[{"name": GATE}], **template()["spec"])
        for name in ("a", "b")
    ]
    pods = [ray_pod("demo-head", "headgroup"), ray_pod("demo-w-0"), ray_pod("demo-w-1"), *pair]
    harness = await Harness(workloads=[ray_cluster()], pods=pods, queues=[queue(cpu="4")]).settled()
    kept = harness.reconciler.kept()
    assert (kept["ledger"], kept["memories"], kept["accounts"]) == (2, 2, 2)
    assert kept["reports"] > 0
    harness.client.pods.clear()
    harness.drop_workload(ray_cluster())
    await harness.catch_up()
    harness.client.groups.clear()
    await harness.catch_up()
    assert set(harness.reconciler.kept().values()) == {0}


async def test_no_later_look_is_kept_of_gangs_that_are_gone() -> None:
    """A time limit may be weeks away."""
    job = pytorch_job(policy={"queue": "q"}, activeDeadlineSeconds=3_000_000, start_time=text_of(1000.0))
    pods = [pytorch_pod("m", "master"), pytorch_pod("w-0"), pytorch_pod("w-1")]
    harness = await Harness(workloads=[job], pods=pods, queues=[queue(cpu="2")]).settled()
    assert harness.queue.statistics().delayed == 1
    harness.client.pods.clear()
    workload_store(harness.cluster, PYTORCH_JOB).apply("deleted", made(PYTORCH_JOB.decoded, job))
    await harness.catch_up()
    harness.client.groups.clear()
    await harness.catch_up()
    assert harness.queue.statistics().delayed == 0


async def test_nothing_is_kept_of_rivals_that_are_gone() -> None:
    """Each is told that the PodGroup is another's; the gang outlives them."""
    harness = await Harness(workloads=[ray_cluster()], pods=members(), queues=[queue(cpu="4")]).settled()
    before = harness.reconciler.kept()
    for number in range(3):
        stray = pod(f"stray-{number}", labels={GANG: GROUP}, annotations={GROUP_NAME: GROUP, GANG_SIZE: "2"})
        harness.client.pods["stray"] = stray
        await harness.catch_up()
        assert harness.reconciler.kept()["reports"] == before["reports"] + 1
    assert len(harness.events_on("Pod")) == 3
    del harness.client.pods["stray"]
    await harness.catch_up()
    assert harness.reconciler.kept() == before


class OfCoscheduling(Harness):
    """Gangs of a scheduler without queues."""

    scheduler = SCHEDULERS["scheduler-plugins-scheduler"]


async def test_nobody_makes_series_by_naming_queues_that_bound_nothing() -> None:
    """Where the ledger does not admit, and the scheduler has no queues, a workload may name any."""
    labels = [{"volcano.sh/queue-name": name} for name in ("q", "none-1", "none-2")]
    pods = [
        {**one, "spec": {**one["spec"], "schedulerName": OfCoscheduling.scheduler.name}}
        for number in range(3)
        for one in members(f"w{number}")
    ]
    harness = await OfCoscheduling(
        workloads=[ray_cluster(name=f"w{n}", uid=f"uid-w{n}", labels=said) for n, said in enumerate(labels)],
        pods=pods,
        queues=[queue(cpu="4")],
        namespaces=[namespace(annotations={ADMITTER: "none"})],
    ).settled()
    counted = {
        sample.labels["queue"]: sample.value
        for family in harness.registry.collect()
        for sample in family.samples
        if sample.name == "muster_admissions_total"
    }
    assert counted == {"q": 1, "": 2}


async def test_an_admission_is_counted_with_its_wait_and_its_gates() -> None:
    meta = {"creationTimestamp": "1970-01-01T00:16:00Z"}
    pods = [
        ray_pod("demo-head", "headgroup", meta=meta),
        ray_pod("demo-w-0", meta=meta),
        ray_pod("demo-w-1", meta=meta),
    ]
    harness = await Harness(workloads=[ray_cluster()], pods=pods, queues=[queue(cpu="3")]).settled()

    def value(name: str, **labels: str) -> float | None:
        return harness.registry.get_sample_value(f"muster_{name}", labels)

    assert value("admissions_total", queue="q") == 1
    assert value("admission_wait_seconds_sum", queue="q") == 40
    assert value("gates_opened_total") == 3
    assert value("ungating_duration_seconds_count") == 1


async def test_the_series_of_a_queue_go_with_it() -> None:
    harness = await Harness(
        workloads=[ray_cluster()],
        pods=[ray_pod("demo-head", "headgroup"), ray_pod("demo-w-0"), ray_pod("demo-w-1")],
        queues=[queue(cpu="3")],
    ).settled()
    harness.reconciler.tick()
    await harness.settle()
    assert of(harness.registry, "muster_queue_used") == {
        (name, resource): amount for name in ("q", "root") for resource, amount in (("cpu", 3), ("memory", 3 * 2**30))
    }
    harness.drop_queue(queue())
    harness.cluster.queues.apply("added", made(Queue, queue("never-used")))
    harness.drop_queue(queue("never-used"))
    left = {sample.labels.get("queue") for family in harness.registry.collect() for sample in family.samples}
    assert left == {None, "root"}


async def test_work_that_fails_is_counted_and_still_fails(registry: CollectorRegistry) -> None:
    async def failing(_: GangKey) -> None:
        raise ValueError("no")

    measured = Metrics(registry).measured(failing)
    with pytest.raises(ValueError, match="no"):
        await measured(GangKey("team", "a"))
    assert registry.get_sample_value("muster_reconcile_errors_total") == 1
    assert registry.get_sample_value("muster_reconcile_duration_seconds_count") == 1


def of(registry: CollectorRegistry, name: str) -> dict[tuple[str, ...], float]:
    """The samples of that name, by the values of their labels in the order of the labels' names."""
    samples = [one for family in registry.collect() for one in family.samples if one.name == name and one.value]
    return {tuple(text for _, text in sorted(one.labels.items())): one.value for one in samples}


async def test_the_cluster_measures_how_true_its_planned_starts_are() -> None:
    """By a limit of its user's: the gang starts at the end of what runs, unless that ends otherwise."""
    (runs, pods), group = running("runs", 2)
    group["metadata"]["annotations"][ADMITTED_AT] = text_of(1000.0)
    runs["metadata"]["annotations"][RUNS_AT_MOST] = "1h"
    large = gang("large", 3, created="2026-11-21T10:00:00Z")
    small = gang("small", 1, created="2026-11-21T11:00:00Z")
    world = harness((runs, pods), large, small, groups=[group], annotations={"patience": "10s"})
    TermMetrics(world.cluster, "lease", lambda: True, world.registry).begins(
        world.queue, world.announcer, world.reconciler.kept, reserved=world.reconciler.reserved
    )
    await world.settle()
    assert of(world.registry, "muster_reservations") == {}, "the small one has only just passed it"
    world.now += 60
    world.reconciler.gang_changed(GangKey("team", LARGE))
    await world.settle()
    assert of(world.registry, "muster_reservations") == {("said", "q"): 1}
    world.reconciler.tick()
    world.sweep()
    assert of(world.registry, "muster_queue_reserved")["q", "cpu"] == 3, "as much as the large one needs"
    runs["metadata"]["annotations"][RUNS_AT_MOST] = "2h"
    world.set_workload(runs)
    world.reconciler.gang_changed(GangKey("team", LARGE))
    await world.settle()
    assert of(world.registry, "muster_reservation_moved_seconds_sum") == {("said",): 3600}
    world.now += 3600
    for name in [name for name in world.client.pods if name.startswith(("runs", "small"))]:
        del world.client.pods[name]
    for manifest in (runs, small[0]):
        world.drop_workload(manifest)
    await world.catch_up()
    assert world.annotations(LARGE)[STATE] == "Admitted"
    below = {bound: count for (_, bound, _), count in of(world.registry, "muster_start_error_seconds_bucket").items()}
    assert below["-300.0"] == 1, "it started an hour earlier, less a minute"
    assert "-3600.0" not in below
    (counts,) = json.loads(world.metrics.start_errors.text()).values()
    assert sum(counts) == 1, "planned at first for an hour after it came, and started then"
    assert counts[0] == 1


async def test_each_queue_has_its_numbers_with_all_below_it() -> None:
    """Read every 15 seconds, of the resources that are named; what is not limited has no limit and no share."""
    gangs = [ray_cluster(name=name, uid=f"uid-{name}") for name in ("a", "b")]
    for one in gangs:
        one["metadata"]["creationTimestamp"] = text_of(400.0)
    below = queue(cpu="4")
    below["spec"] |= {"parent": "org", "weight": 1}
    beside = queue("other")
    beside["spec"] |= {"parent": "org", "weight": 3}
    org = queue("org", cpu="16")
    org["spec"] |= {"deserved": {"cpu": "8"}}
    world = Harness(workloads=gangs, pods=[*members("a"), *members("b")], queues=[org, below, beside])
    await world.settle()
    for _ in range(2):
        world.reconciler.tick()
        world.sweep()

    def cpu(number: str) -> dict[str, float]:
        samples = of(world.registry, f"muster_queue_{number}").items()
        return {queue: amount for (queue, resource), amount in samples if resource == "cpu"}

    assert cpu("limit") == {"org": 16, "q": 4}
    assert cpu("used") == cpu("waiting") == {"root": 3, "org": 3, "q": 3}
    assert cpu("deserved") == {"org": 8, "q": 4, "other": 12}, "nothing limits what org shares: its own words"
    assert cpu("reserved") == {}
    assert of(world.registry, "muster_queue_oldest_waiting_seconds") == {("q",): world.now - 400}
    world.drop_workload(gangs[1])
    for name in [name for name in world.client.pods if name.startswith("b-")]:
        del world.client.pods[name]
    await world.catch_up()
    world.reconciler.tick()
    world.sweep()
    assert cpu("waiting") == {"root": 3, "org": 3, "q": 3}, "as they were read last"
    world.now += 15
    world.reconciler.tick()
    world.sweep()
    assert cpu("waiting") == {}


def test_only_the_leader_has_numbers_of_queues(registry: CollectorRegistry) -> None:
    """The sums over the replicas are right."""
    leads = True
    queues = Metrics(registry, ["cpu"], lambda: leads).queues
    ledger = Ledger()
    ledger.set_queue(QueueView("q", "Open", amounts(cpu="4", memory="1Gi")))
    for _ in queues.read(ledger, Clock()):
        pass
    assert of(registry, "muster_queue_limit") == {("q", "cpu"): 4}
    leads = False
    assert of(registry, "muster_queue_limit") == {}


async def test_what_gangs_hold_is_counted_of_what_their_queues_limit() -> None:
    """Resources of other names are their users' to make up, and no queue's to make series of."""
    spec = template()["spec"]
    spec["containers"][0]["resources"]["requests"]["example.com/any"] = "1"
    pods = [ray_pod("demo-head", "headgroup", **spec), ray_pod("demo-w-0"), ray_pod("demo-w-1")]
    below = queue(cpu="9")
    below["spec"]["parent"] = "org"
    harness = Harness(
        workloads=[ray_cluster()], pods=pods, queues=[queue("org", memory="9Gi"), below, queue("idle", cpu="1")]
    )
    TermMetrics(harness.cluster, "lease", lambda: True, harness.registry).begins(
        harness.queue, harness.announcer, harness.reconciler.kept, held=harness.reconciler.held
    )
    await harness.settle()
    harness.now += 10
    for _ in range(2):
        harness.reconciler.count_held()
    held = of(harness.registry, "muster_held_resource_seconds_total")
    assert held == {("q", "cpu"): 30, ("q", "memory"): 10 * 3 * 2**30}
    harness.drop_queue(below)
    assert of(harness.registry, "muster_held_resource_seconds_total") == {}
