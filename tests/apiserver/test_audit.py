"""`muster audit` on a real apiserver: what it finds is what the webhook would say, and what it may not see it says."""

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hack.testbed import Testbed
from muster.model.names import NAMESPACE_SELECTOR, PRIORITY_CLASS_LABEL, QUEUE_LABEL
from muster.model.resource import POD_GROUPS, PRIORITY_CLASSES, QUEUES
from tests.support.cli.in_process import muster
from tests.support.cluster.desk import Desk
from tests.support.manifests.applied import queue, ray_cluster

pytestmark = pytest.mark.part("commands")


def audit(kubeconfig: Path | str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return muster("audit", f"--kubeconfig={kubeconfig}", *arguments)


@pytest.fixture
def workloads(desk: Desk) -> Iterator[str]:
    """Workloads in the test's namespace, and the queue of its name: some were in order when they were applied only."""
    name = desk.namespace
    gone = f"{name}-gone"
    desk.create(queue(name, cpu="8"))
    desk.create(queue(gone))
    class_ = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": gone}, "value": 7}
    desk.create(class_)
    for one in (
        ray_cluster("fits").label(QUEUE_LABEL, name).head(cpu="1"),
        ray_cluster("large").label(QUEUE_LABEL, name).head(cpu="5"),
        ray_cluster("lost").label(QUEUE_LABEL, gone),
        ray_cluster("unheard").head(cpu="9"),
        ray_cluster("classless").label(QUEUE_LABEL, name).label(PRIORITY_CLASS_LABEL, gone).head(cpu="1"),
    ):
        desk.create(one.manifest())
    desk.delete(QUEUES, gone)
    desk.delete(PRIORITY_CLASSES, gone)
    desk.patch(QUEUES, name, {"spec": {"capability": {"cpu": "4"}}})
    yield name
    desk.delete(QUEUES, name)


def reasons(report: dict[str, Any], entries: str = "workloads") -> dict[str, list[tuple[str, str]]]:
    return {
        entry["name"]: [(found["severity"], found["reason"]) for found in entry["findings"]]
        for entry in report[entries]
    }


def test_every_workload_that_would_be_refused_is_named_with_its_reason(bare: Testbed, workloads: str) -> None:
    done = audit(bare.kubeconfig, f"--namespace={workloads}", "-ojson")
    assert done.stderr == ""
    report = json.loads(done.stdout)
    assert reasons(report) == {
        "classless": [("deny", "UnknownPriorityClass")],
        "large": [("deny", "ExceedsCapability")],
        "lost": [("deny", "QueueNotFound")],
    }
    assert report["lookedAt"] == {"workloads": 5, "queues": 0, "podGroups": 0}
    assert (report["refused"], report["warned"], report["unknown"]) == (3, 0, [])
    assert done.returncode == 1


def test_under_the_values_that_are_to_come_nothing_may_be_refused(bare: Testbed, workloads: str) -> None:
    done = audit(bare.kubeconfig, f"--namespace={workloads}", "--validation=warn")
    assert done.returncode == 0, done.stderr
    assert f"RayCluster {workloads}/large\n  allowed\n  warning (ExceedsCapability): metadata.labels" in done.stdout
    last = done.stdout.splitlines()[-1]
    assert re.fullmatch(r"\d+ workloads.* checked: 0 would be refused, [1-9]\d* with warnings", last), last


def test_a_gang_that_runs_is_told_to_go_on(desk: Desk, bare: Testbed, workloads: str) -> None:
    desk.create(
        {
            "apiVersion": "scheduling.volcano.sh/v1beta1",
            "kind": "PodGroup",
            "metadata": {"name": "ray-large-pg"},
            "spec": {"minMember": 1, "queue": workloads},
            "status": {"phase": "Running"},
        }
    )
    done = audit(bare.kubeconfig, f"--namespace={workloads}")
    assert f"RayCluster {workloads}/large (running; it keeps running)\n  refused (ExceedsCapability): " in done.stdout


def _pod_group(name: str, queue_: str) -> dict[str, Any]:
    spec = {"minMember": 1, "queue": queue_, "minResources": {"cpu": "3"}}
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": name},
        "spec": spec,
    }


@pytest.fixture
def spoilt(desk: Desk) -> Iterator[str]:
    """A queue whose parent is gone, and one that was closed to its users; a PodGroup in each."""
    name = desk.namespace
    desk.create(queue(f"{name}-top", cpu="8"))
    child = queue(f"{name}-leaf", cpu="8")
    child["spec"]["parent"] = f"{name}-top"
    desk.create(child)
    desk.create(queue(f"{name}-private", cpu="8"))
    for group, where in (("inside", "leaf"), ("outside", "private")):
        desk.create(_pod_group(group, f"{name}-{where}"))
    desk.delete(QUEUES, f"{name}-top")
    selector = {NAMESPACE_SELECTOR: "kubernetes.io/metadata.name=elsewhere"}
    desk.patch(QUEUES, f"{name}-private", {"metadata": {"annotations": selector}})
    yield name
    desk.delete(POD_GROUPS, "inside", "outside")
    desk.delete(QUEUES, f"{name}-leaf", f"{name}-private")


def test_queues_and_pod_groups_that_would_be_refused_are_named_too(desk: Desk, bare: Testbed, spoilt: str) -> None:
    """What the webhook says to the same objects, applied anew, is what the audit said before."""
    report = json.loads(audit(bare.kubeconfig, "-ojson").stdout)
    leaf, private = f"{spoilt}-leaf", f"{spoilt}-private"
    ours = {name: found for name, found in reasons(report, "queues").items() if name.startswith(spoilt)}
    assert ours == {leaf: [("deny", "QueueHierarchy")]}
    found = {entry["name"]: entry for entry in report["podGroups"] if entry["namespace"] == spoilt}
    assert {name: [one["reason"] for one in entry["findings"]] for name, entry in found.items()} == {
        "inside": ["QueueNotFound"],
        "outside": ["QueueNotFound"],
    }
    anew = queue(f"{leaf}-anew", cpu="8")
    anew["spec"]["parent"] = f"{spoilt}-top"
    (said,) = [finding["message"] for one in report["queues"] if one["name"] == leaf for finding in one["findings"]]
    assert said in desk.refused(anew)
    for name, where in (("inside", leaf), ("outside", private)):
        assert found[name]["findings"][0]["message"] in desk.refused(_pod_group(f"{name}-again", where))
