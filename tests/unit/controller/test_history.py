"""What the leader records of runs, what it says of those that come, and how it keeps both."""

import json
import logging
from collections.abc import Callable
from typing import Any

import pytest

from controller.apiserver import Writer
from controller.history import HistoryStore
from muster.gangs.history import History, lineage_of
from muster.gangs.start_errors import PlannedStart, StartError, StartErrors
from muster.kube.errors import ApiError, Unreachable
from muster.model.names import DRAIN_AFTER, HOLD, PASSED_SINCE, RUNS_ABOUT, STATE
from muster.queueing.ledger import GangKey
from tests.support.cases import cases
from tests.support.controller.bypass_queue import LARGE, SMALL, small_behind_large
from tests.support.controller.config_maps import NAMES, OWN, STARTS, ConfigMaps
from tests.support.controller.harness import Harness
from tests.support.controller.two_gangs import members
from tests.support.manifests.observed import (
    GROUP,
    JSON,
    KEY,
    NAMESPACE,
    QUEUE_LABELS,
    as_client,
    pod,
    pod_group,
    pytorch_job,
    pytorch_pod,
    queue,
    ray_cluster,
    template,
)
from tests.support.manifests.owner_chains import owned

HOUR = 3600.0
TRAIN = GangKey(NAMESPACE, "train")
NIGHTLY = lineage_of(NAMESPACE, "RayCronJob", "nightly")


def known(*hours: float, lineage: tuple[str, str, str] = (NAMESPACE, "RayCronJob", "nightly")) -> History:
    history = History()
    for one in hours:
        history.record(lineage_of(*lineage), "q", one * HOUR)
    return history


def run_times(harness: Harness) -> list[int]:
    """The run times that were recorded in queue q."""
    (found,) = json.loads(harness.history.text()).values() or [{}]
    assert len({tuple(one) for one in found.values()}) <= 1, "of the lineage, and of the namespace in the queue"
    return next(iter(found.values()), [])


def maker(kind: str, name: str, owner: JSON | None = None, **status: object) -> JSON:
    spec = {"rayClusterSpec": ray_cluster()["spec"], "shutdownAfterJobFinishes": True} if kind == "RayJob" else {}
    meta = {"name": name, "namespace": NAMESPACE, "uid": f"uid-{name}", "labels": QUEUE_LABELS}
    made = {"apiVersion": "ray.io/v1", "kind": kind, "metadata": meta, "spec": spec, "status": status}
    return owned(made, owner) if owner else made


CRON = maker("RayCronJob", "nightly")
JOB = maker("RayJob", "nightly-x7k2d", CRON)
CLUSTER = owned(ray_cluster(), JOB)


def nightly(**more: list[JSON]) -> Harness:
    """A RayCluster of a RayJob of a RayCronJob, and room for it."""
    return Harness(**{"workloads": [CRON, JOB, CLUSTER], "pods": members(), "queues": [queue(cpu="4")], **more})


def job(*conditions: str, **more: Any) -> JSON:  # noqa: ANN401 - whatever `pytorch_job` takes
    said = [{"type": one, "status": "True"} for one in conditions]
    return pytorch_job(labels=QUEUE_LABELS, conditions=said, **more)


async def training(*pods: JSON) -> Harness:
    """A PyTorchJob that has run for two hours."""
    there = list(pods) or [pytorch_pod("m", "master"), pytorch_pod("w-0"), pytorch_pod("w-1")]
    harness = await Harness(workloads=[job()], pods=there, queues=[queue(cpu="4")]).settled()
    assert len(harness.open_pods()) == 3
    await harness.settle()
    harness.now += 2 * HOUR
    return harness


async def after(harness: Harness, key: GangKey = TRAIN) -> Harness:
    """The gang was looked at once more."""
    harness.reconciler.gang_changed(key)
    await harness.settle()
    return harness


# --- what is recorded -------------------------------------------------------------------------------------------------


@cases(
    "manifest, recorded",
    ("it has succeeded", job("Succeeded"), [7200]),
    ("it has failed", job("Failed"), [7200]),
    ("it was suspended", job(suspend=True), []),
    ("it runs on", job(), []),
)
async def test_a_run_counts_that_has_come_to_its_end(manifest: JSON, recorded: list[int]) -> None:
    harness = await training()
    harness.set_workload(manifest)
    await after(harness)
    assert run_times(harness) == recorded
    await after(harness)
    assert run_times(harness) == recorded, "once"


async def test_a_workload_that_is_deleted_has_not_run_to_its_end() -> None:
    harness = await training()
    deleted = job()
    deleted["metadata"]["deletionTimestamp"] = "2026-11-21T12:00:00Z"
    harness.set_workload(deleted)
    await after(harness)
    assert run_times(harness) == []


async def test_of_a_run_that_ended_while_nobody_led_the_end_is_not_known() -> None:
    harness = await training()
    harness.set_workload(job("Succeeded"))
    harness.restart()
    await after(harness)
    assert harness.annotations("train")[STATE] == "Finished"
    assert run_times(harness) == []


async def test_a_new_leader_goes_on_with_runs_that_began_before_it() -> None:
    harness = await training()
    harness.restart()
    await after(harness)
    harness.set_workload(job("Succeeded"))
    await after(harness)
    assert run_times(harness) == [7200]


@cases(
    "state, recorded",
    ("it is complete", "Complete", [7200]),
    ("it has failed", "Failed", [7200]),
    ("it tries again", "Retrying", []),
    ("only the cluster was deleted", "Running", []),
)
async def test_a_ray_job_that_ends_takes_its_cluster_along(state: str, recorded: list[int]) -> None:
    harness = await nightly().settled()
    await harness.settle()
    harness.now += 2 * HOUR
    harness.set_workload(maker("RayJob", "nightly-x7k2d", CRON, jobDeploymentStatus=state))
    await after(harness, KEY)
    assert run_times(harness) == [], "it holds its room still"
    harness.drop_workload(CLUSTER)
    await after(harness, KEY)
    assert run_times(harness) == recorded
    assert (NIGHTLY.name in harness.history.text()) is bool(recorded)


async def test_plain_pods_have_the_lineage_of_their_job() -> None:
    of = {"apiVersion": "batch/v1", "kind": "Job", "name": "fit-29384761", "uid": "uid-fit", "controller": True}
    said = {"muster.dev/gang": "fit-29384761", "volcano.sh/queue-name": "q"}
    sized = {"muster.dev/gang-size": "2", "scheduling.k8s.io/group-name": "fit-29384761"}
    spec = {**template("1")["spec"], "restartPolicy": "Never", "schedulingGates": [{"name": "muster.dev/gang"}]}
    pods = [pod(name, owner=of, labels=said, annotations=sized, **spec) for name in ("a", "b")]
    harness = Harness(pods=pods, queues=[queue(cpu="4")])
    for _ in range(2):
        await harness.settle()
    harness.now += HOUR
    for one in harness.client.pods.values():
        one["status"]["phase"] = "Succeeded"
    harness.watch()
    await after(harness, GangKey(NAMESPACE, "fit-29384761"))
    assert run_times(harness) == [3600]
    fit = lineage_of(NAMESPACE, "Job", "fit")
    assert fit.name in harness.history.text()


# --- what is said -----------------------------------------------------------------------------------------------------


async def test_a_gang_that_waits_says_its_estimates_and_keeps_those_with_which_it_starts() -> None:
    harness = nightly(queues=[queue(cpu="4", annotations={HOLD: "true"})])
    harness.history = known(1, 2, 9)
    harness.restart()
    await harness.settle()
    assert harness.annotations(GROUP)[STATE] == "OnHold"
    assert harness.annotations(GROUP)[RUNS_ABOUT] == "1h 2h 9h"
    harness.history.record(NIGHTLY, "q", 5 * HOUR)
    await after(harness, KEY)
    assert harness.annotations(GROUP)[RUNS_ABOUT] == "1h 2h 9h"
    harness.set_queue(queue(cpu="4"))
    await harness.settle()
    harness.history.record(NIGHTLY, "q", 60 * HOUR)
    await harness.settle()
    assert harness.annotations(GROUP)[STATE] == "Admitted"
    assert harness.annotations(GROUP)[RUNS_ABOUT] == "1h 2h 9h"


async def test_estimates_are_no_writes_of_their_own() -> None:
    without, harness = nightly(), nightly()
    harness.history = known(1, 2, 9)
    harness.restart()
    assert await harness.settle() == await without.settle()
    assert harness.annotations(GROUP)[RUNS_ABOUT] == "1h 2h 9h"
    harness.history.record(NIGHTLY, "q", 100 * HOUR)
    assert await (await after(harness, KEY)).settle() == []


@pytest.mark.parametrize("waits_first", [True, False])
async def test_the_claim_of_a_gang_ends_by_its_estimate_from_the_first_moment(waits_first: bool) -> None:
    """Also where no PodGroup has said it yet; and another leader sees the same."""
    harness = nightly(queues=[queue(cpu="4", annotations={HOLD: "true"} if waits_first else {})])
    harness.history = known(1, 2, 9)
    harness.restart()
    await harness.settle()
    harness.set_queue(queue(cpu="4"))
    ends = []
    for _ in range(3):
        await harness.settle()
        claim = harness.term.ledger.claims("q")[KEY]
        assert claim.end is not None
        ends.append((claim.end.start, claim.end.seconds, claim.end.former))
        harness.history = History()
        harness.restart()
    assert ends == [(1000.0, 2 * HOUR, (HOUR, 2 * HOUR, 9 * HOUR))] * 3


async def test_where_no_history_is_kept_nothing_is_said_and_what_was_said_goes() -> None:
    group = pod_group(annotations={RUNS_ABOUT: "2h 9h", STATE: "OnHold"})
    harness = nightly(groups=[group])
    harness.history = None  # type: ignore[assignment]
    harness.restart()
    await harness.settle()
    assert harness.annotations(GROUP)[STATE] == "Admitted"
    assert RUNS_ABOUT not in harness.annotations(GROUP)


async def test_a_service_has_no_estimate() -> None:
    """Though the gangs of its namespace have."""
    harness = Harness(workloads=[ray_cluster()], pods=members(), queues=[queue(cpu="4")])
    harness.history = known(1, 2, 9)
    harness.restart()
    await harness.settle()
    assert harness.annotations(GROUP)[STATE] == "Admitted"
    assert RUNS_ABOUT not in harness.annotations(GROUP)


@cases(
    "runs, annotations, said",
    ("five times what nearly all take", 20, {}, "15h"),
    ("too few are known", 19, {}, None),
    ("the queue says it", 20, {"drain-after": "24h"}, None),
)
async def test_a_gang_that_is_passed_says_when_the_queue_drains_for_it(
    runs: int, annotations: dict[str, str], said: str | None
) -> None:
    harness = small_behind_large(annotations=annotations)
    harness.history = known(*[3.0] * runs)
    harness.restart()
    await harness.settle()
    assert (harness.annotations(SMALL)[STATE], PASSED_SINCE in harness.annotations(LARGE)) == ("Admitted", True)
    assert harness.annotations(LARGE).get(DRAIN_AFTER) == said
    for queue_runs in (0, 20):
        harness.history = known(*[9.0] * queue_runs)
        harness.restart()
        await harness.settle()
        assert harness.annotations(LARGE).get(DRAIN_AFTER) == said, "it stays as it was when the gang was first passed"
        waits = harness.term.ledger.candidate(GangKey(NAMESPACE, LARGE))
        assert waits is not None
        assert waits.drain_after == (15 * HOUR if said else None)


# --- how it is kept ---------------------------------------------------------------------------------------------------


async def stored(client: ConfigMaps, starts: StartErrors | None = None) -> tuple[HistoryStore, History]:
    """The history as a leader begins with it."""
    writer, history = Writer(as_client(client), lambda: 60.0), History()
    store = HistoryStore(
        as_client(client),
        writer,
        namespace="muster",
        name=OWN,
        parts={"runs": history},
        starts=starts or StartErrors(),
    )
    await store.read()
    return store, history


async def test_the_next_leader_reads_what_one_has_written_of_what_has_changed() -> None:
    client = ConfigMaps()
    store, history = await stored(client)
    await store.write()
    assert client.written == []
    for _ in range(3):
        history.record(NIGHTLY, "q", HOUR)
    for _ in range(2):
        await store.write()
    assert client.written == [OWN]
    _, again = await stored(client)
    assert again.estimates(NIGHTLY, "q") == (HOUR,) * 3


async def test_the_errors_of_planned_starts_are_kept_as_the_run_times_are() -> None:
    client, errors = ConfigMaps(), StartErrors()
    store, _ = await stored(client, errors)
    for _ in range(10):
        errors.record(PlannedStart(3600.0, "said", 3600.0, 0.0), 7200.0)
    for _ in range(2):
        await store.write()
    assert client.written == [STARTS]
    later = StartErrors()
    await stored(client, later)
    assert later.last_week(7200.0) == StartError(10, 2.0)
    client.data[STARTS]["starts"] = "{"
    lost = StartErrors()
    await stored(client, lost)
    assert lost.last_week(7200.0) is None


async def test_one_config_map_is_written_a_minute_and_the_public_one_once_an_hour() -> None:
    client, errors = ConfigMaps(), StartErrors()
    store, history = await stored(client, errors)
    for minute in range(180):
        errors.record(PlannedStart(3600.0, "said", 3600.0, 0.0), 7200.0)
        history.record(NIGHTLY, "q", HOUR)
        await store.write()
        assert len(client.written) == minute + 1
    assert [minute for minute, name in enumerate(client.written) if name == STARTS] == [1, 61, 121]
    await store.write(last=True)
    assert (client.written[-1], history.changed) == (OWN, False)


@cases(
    "spoil",
    ("cut off", lambda data: data[OWN].update(runs="{")),
    ("no hashes", lambda data: data[OWN].update(runs='{"team": {"nightly": [60]}}')),
    ("large", lambda data: data[OWN].update(runs="x" * 10**6)),
    ("not text", lambda data: data[OWN].update(runs=7)),
    ("all deleted", lambda data: data.clear()),
)
async def test_history_that_cannot_be_read_is_empty_and_no_failure(
    spoil: Callable[[dict[str, Any]], None], caplog: pytest.LogCaptureFixture
) -> None:
    client = ConfigMaps()
    spoil(client.data)
    store, history = await stored(client)
    for _ in range(3):
        history.record(NIGHTLY, "q", HOUR)
    assert history.estimates(NIGHTLY, "q") == (HOUR,) * 3
    await store.write()
    assert [record.__dict__["event"] for record in caplog.records if record.levelno == logging.WARNING] == [
        "history.lost" if client.data else "history.failed"
    ]


async def test_what_did_not_answer_is_read_before_it_is_written(caplog: pytest.LogCaptureFixture) -> None:
    client = ConfigMaps()
    first, history = await stored(client)
    for _ in range(3):
        history.record(NIGHTLY, "q", HOUR)
    await first.write()
    client.fails = [Unreachable("silent")] * len(NAMES)
    second, later = await stored(client)
    for _ in range(17):
        later.record(NIGHTLY, "q", 2 * HOUR)
    client.fails = [Unreachable("silent")] * len(NAMES)
    await second.write()
    assert client.written == [OWN]
    await second.write()
    (runs,) = {tuple(runs) for named in json.loads(client.data[OWN]["runs"]).values() for runs in named.values()}
    assert runs == (3600,) * 3 + (7200,) * 17
    assert [record.__dict__["event"] for record in caplog.records] == ["history.failed"], "said once"


async def test_a_write_that_fails_is_written_again() -> None:
    client = ConfigMaps()
    store, history = await stored(client)
    history.record(NIGHTLY, "q", HOUR)
    client.fails = [ApiError(403, "Forbidden", "no")]
    for _ in range(3):
        await store.write()
    assert client.written == [OWN, OWN]


async def test_without_a_name_nothing_is_kept_read_or_written() -> None:
    client = ConfigMaps()
    writer = Writer(as_client(client), lambda: 60.0)
    store = HistoryStore(as_client(client), writer, namespace="muster", name="", parts={}, starts=StartErrors())
    client.fails = [ApiError(403, "Forbidden", "no")]
    await store.read()
    await store.write(last=True)
    assert client.fails
