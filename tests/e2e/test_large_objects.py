"""Objects as large as the apiserver takes, written by a tenant with Kubernetes' role `edit`."""

import re
import urllib.request
from pathlib import Path

import pytest

from hack.testbed import wait_for
from hack.testbed.muster import MusterInstall
from hack.testbed.process import Process
from muster.model.names import GANG, GANG_SIZE, QUEUE_LABEL
from muster.model.resource import POD_GROUPS, PODS, Resource
from tests.support.cluster.grants import bind, grant, on, user
from tests.support.cluster.recorder import RAY_CLUSTERS, Manifest
from tests.support.cluster.scene import PATIENCE, Scene
from tests.support.manifests.applied import pod, ray_cluster

TENANT, INVALID = "tenant", "names 6[0-9] resources, and muster reads 64 at most; use fewer"
# Each of some 1 MB with what the apiserver notes of who wrote it: 5 MB for a pod and 15 MB for a PodGroup as a whole.
LABELS, EACH, MOST_MB = 35_000, 8, 60
WATCHED = re.compile(r'^muster_watch_objects\{resource="(?:pods|podgroups)[^}]*\} ([\d.e+]+)$', re.MULTILINE)


@pytest.fixture
def tenant(scene: Scene) -> str:
    bind(scene.api, "edit", "edit", user(TENANT), namespace=scene.namespace)
    may = [on(resource, "*") for resource in (POD_GROUPS, RAY_CLUSTERS)]
    grant(scene.api, "writes", may, user(TENANT), namespace=scene.namespace)
    return TENANT


def seen(muster: MusterInstall, process: Process) -> int:
    """The pods and PodGroups in the watches of a process."""
    with urllib.request.urlopen(muster.url(process, "/metrics"), timeout=PATIENCE) as answer:  # noqa: S310 - our own
        return sum(int(float(number)) for number in WATCHED.findall(answer.read().decode()))


def megabytes(process: Process) -> int:
    """The memory of a process."""
    found = re.search(r"^VmRSS:\s+(\d+) kB", Path(f"/proc/{process.pid}/status").read_text(), re.MULTILINE)
    assert found is not None
    return int(found[1]) // 1024


def write(scene: Scene, tenant: str, resource: Resource, manifest: Manifest) -> None:
    answer = scene.api("POST", scene.path(resource), manifest, user=tenant)
    assert answer.ok, answer.message


def test_large_objects_of_a_tenant_do_not_fill_memory(scene: Scene, muster: MusterInstall, tenant: str) -> None:
    """Of neither process: what an object takes while it is read stays with the process, and no more."""

    def make(name: str) -> None:
        labels = {f"x{number:x}": "" for number in range(LABELS)} | {"ray.io/cluster": "none"}
        write(scene, tenant, PODS, {**pod(name), "metadata": {"name": name, "labels": labels}})
        group: Manifest = {"apiVersion": POD_GROUPS.api_version, "kind": POD_GROUPS.kind, "spec": {"minMember": 1}}
        write(scene, tenant, POD_GROUPS, {**group, "metadata": {"name": name, "labels": labels}})

    processes = [*muster.webhooks, *muster.controllers]
    there = {one: seen(muster, one) for one in processes}
    make("first")

    def reading() -> list[Process]:
        # Of the controllers the leader alone reads.
        return [one for one in processes if seen(muster, one) > there[one]]

    wait_for("a webhook and the leader to see the first", lambda: len(reading()) > len(muster.webhooks), PATIENCE)
    before = {one: megabytes(one) for one in reading()}
    for number in range(EACH):
        make(f"large-{number}")
    wait_for("all to see them", lambda: all(seen(muster, one) > there[one] + EACH for one in before), PATIENCE)
    assert {one.name: grown for one in before if (grown := megabytes(one) - before[one]) > MOST_MB} == {}


def asking(names: int) -> dict[str, object]:
    amounts = {f"example.com/{number}": "1" for number in range(names)}
    return {"containers": [{"name": "main", "image": "none", "resources": {"requests": amounts, "limits": amounts}}]}


def test_a_plain_pod_of_too_many_resources_is_refused(scene: Scene, tenant: str) -> None:
    manifest = pod("many", **asking(65))
    manifest["metadata"] |= {"labels": {GANG: "many", QUEUE_LABEL: "default"}, "annotations": {GANG_SIZE: "1"}}
    answer = scene.api("POST", scene.path(PODS), manifest, user=tenant)
    assert re.search(INVALID, answer.message), answer.message


def test_a_workload_of_too_many_resources_is_refused(scene: Scene, tenant: str) -> None:
    manifest = ray_cluster("many").label(QUEUE_LABEL, "default").manifest()
    manifest["spec"]["headGroupSpec"]["template"]["spec"] = asking(65)
    answer = scene.api("POST", scene.path(RAY_CLUSTERS), manifest, user=tenant)
    assert re.search(INVALID, answer.message), answer.message
