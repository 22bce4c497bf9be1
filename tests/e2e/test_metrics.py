"""What the real processes tell Prometheus while gangs wait and run."""

import json
import urllib.request
from collections.abc import Iterable
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from hack.testbed.muster import MusterInstall
from hack.testbed.process import Process
from muster.model.names import ADMITTED_AT, QUEUE_LABEL
from muster.model.times import seconds_of
from tests.support.cli.in_process import muster as command
from tests.support.cluster.leaders import leader as leader_of
from tests.support.cluster.recorder import RAY_CLUSTERS
from tests.support.cluster.scene import PATIENCE, Scene
from tests.support.manifests.applied import ray_cluster

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


def scraped(muster: MusterInstall, process: Process) -> Samples:
    with urllib.request.urlopen(muster.url(process, "/metrics"), timeout=PATIENCE) as answer:  # noqa: S310 - our own
        text = answer.read().decode()
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def summed(all_samples: Iterable[Samples], metric: str, /, **labels: str) -> float:
    """The sum over the processes, as Prometheus makes it, of the samples with these labels."""
    return sum(
        value
        for samples in all_samples
        for (sample, has), value in samples.items()
        if sample == metric and labels.items() <= dict(has).items()
    )


def test_gangs_admissions_and_reviews_are_counted(scene: Scene, muster: MusterInstall) -> None:
    """One gang runs, one waits, one was refused: the numbers say so, summed over the replicas of each process."""
    queue = scene.queue(cpu="4")
    for name in ("first", "second"):
        scene.apply(ray_cluster(name).label(QUEUE_LABEL, queue).workers(2))
        if name == "first":
            scene.await_running("ray-first-pg", 3)
    before = [scraped(muster, process) for process in muster.webhooks]
    scene.refused(ray_cluster("large").label(QUEUE_LABEL, queue).workers(4))
    scene.await_event("second", "WaitingForQuota")

    def controllers() -> list[Samples]:
        return [scraped(muster, process) for process in muster.controllers]

    scene.wait(
        "the gangs to be counted",
        lambda: summed(controllers(), "muster_gangs", queue=queue, state="WaitingForQuota") == 1,
    )
    now = controllers()
    assert summed(now, "muster_gangs", queue=queue, state="Running") == 1
    assert summed(now, "leader_election_master_status") == 1
    assert summed(now, "muster_admissions_total", queue=queue) == 1
    assert summed(now, "muster_admission_wait_seconds_count", queue=queue) == 1
    assert summed(now, "muster_gates_opened_total") >= 3
    assert summed(now, "workqueue_adds_total", name="gangs") > 0
    assert summed(now, "muster_watch_malformed_objects_total") == 0
    assert summed(now, "muster_events_written_total") >= 3
    cpu = {"limit": 4, "used": 3, "waiting": 3, "reserved": 0}
    scene.wait(
        "the queue's numbers to be read",
        lambda: cpu == {one: summed(controllers(), f"muster_queue_{one}", queue=queue, resource="cpu") for one in cpu},
    )
    assert summed(controllers(), "muster_queue_oldest_waiting_seconds", queue=queue) > 0
    after = [scraped(muster, process) for process in muster.webhooks]

    def grown(metric: str, **labels: str) -> float:
        return summed(after, metric, **labels) - summed(before, metric, **labels)

    assert grown("muster_webhook_reviews_total", webhook="workloads", allowed="false") == 1
    assert grown("muster_webhook_refusals_total", reason="ExceedsCapability") == 1
    assert summed(after, "muster_webhook_reviews_total", webhook="pods", allowed="true") >= 6
    assert summed(after, "muster_webhook_certificate_expiration_timestamp_seconds", certificate="serving") > 1.7e9
    for samples in (*now, *after):
        named = {value for _, has in samples for key, value in has if key not in ("le", "version")}
        assert not {value for value in named if "first" in value or "second" in value}, "a series names a workload"


def test_the_report_agrees_with_the_pods_through_a_change_of_leader(scene: Scene, muster: MusterInstall) -> None:
    """A leader that is told to go writes what gangs have used by then; the next one goes on from there."""
    queue = scene.queue(cpu="4")

    def report() -> dict[str, Any]:
        """What gangs used by when a leader has gone; another one leads."""
        leader = leader_of(muster)
        leader.stop(PATIENCE)
        muster.controllers.remove(leader)
        done = command(
            "report", f"--kubeconfig={scene.testbed.kubeconfig}", f"--queue={queue}", "--by=owner", "-o=json"
        )
        assert done.returncode == 0, done.stderr
        assert leader_of(muster).name != leader.name
        found: dict[str, Any] = json.loads(done.stdout)
        rows = {row["name"].rpartition("/")[2]: row for row in found["rows"]}
        return {"until": seconds_of(found["until"]), **rows}

    def since(time: str) -> float:
        return seconds_of(time) or 0.0

    for name in ("first", "second"):
        scene.apply(ray_cluster(name).label(QUEUE_LABEL, queue).workers(2))
        if name == "first":
            scene.await_running("ray-first-pg", 3)
    scene.await_state("ray-second-pg", "WaitingForQuota")
    admitted = since(scene.pod_group("ray-first-pg")["metadata"]["annotations"][ADMITTED_AT])
    came = min(since(pod["metadata"]["creationTimestamp"]) for pod in scene.pods("ray-second-pg"))
    for _ in range(2):
        found = report()
        # Creation times and `until` are whole seconds.
        assert found["first"]["held"]["cpu"] == pytest.approx(3 * (found["until"] - admitted), rel=0.01, abs=5)
        assert found["second"]["waited"]["cpu"] == pytest.approx(3 * (found["until"] - came), rel=0.01, abs=8)
        assert found["first"]["wait"]["gangs"] == 1
        muster.start_controller()
        muster.wait_ready()
    scene.delete(RAY_CLUSTERS, "second")
    scene.wait("the second gang to be gone", lambda: not scene.pod_group("ray-second-pg")["metadata"])
    assert report()["second"]["ended"]["deleted"] == 1
