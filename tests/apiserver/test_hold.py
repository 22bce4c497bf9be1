"""`muster hold` and `muster resume` at the real apiserver: what they annotate, with whose rights, and what they say."""

import json
import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hack.testbed import wait_for
from muster.model.names import GANG, GANG_SIZE, HOLD
from muster.model.resource import PODS, QUEUES
from muster.workloads import KINDS
from tests.support.cli.in_process import muster
from tests.support.cluster.desk import PATIENCE, Desk, Manifest
from tests.support.cluster.grants import account, grant, on
from tests.support.manifests import applied
from tests.support.manifests.owner_chains import owned
from tests.support.pages.blocks import block
from tests.support.pages.transcripts import alike, shown
from tests.support.pages.walkthrough import Shell

pytestmark = pytest.mark.part("commands")

RAY_CLUSTERS, RAY_JOBS = (kind.resource for kind in KINDS[:2])
CLUSTER = "raycluster.ray.io/demo"


def run(desk: Desk, *words: str, kubeconfig: Path | None = None) -> subprocess.CompletedProcess[str]:
    command, *rest = words
    kubeconfig = kubeconfig or desk.testbed.kubeconfig
    return muster(command, f"--kubeconfig={kubeconfig}", "-n", desk.namespace, *rest)


def said(desk: Desk, *words: str) -> str:
    """What is printed of what succeeds."""
    done = run(desk, *words)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def held(desk: Desk, resource: Any = RAY_CLUSTERS, name: str = "demo") -> str | None:  # noqa: ANN401 - a Resource
    annotations = desk.get(resource, name)["metadata"].get("annotations", {})
    found: str | None = annotations.get(HOLD)
    return found


@pytest.fixture
def queue(desk: Desk) -> Iterator[str]:
    """A queue of Volcano's."""
    name = f"hold-{uuid.uuid4().hex[:6]}"
    desk.create(applied.queue(name, cpu="4"))
    yield name
    desk.delete(QUEUES, name)


def test_a_workload_is_put_on_hold_and_resumed(desk: Desk) -> None:
    desk.create(applied.ray_cluster("demo").manifest())
    assert said(desk, "hold", "raycluster/demo") == f"{CLUSTER}: on hold; running gangs continue\n"
    assert held(desk) == "true"
    assert said(desk, "hold", "raycluster", "demo") == f"{CLUSTER}: on hold already\n"
    assert said(desk, "resume", "raycluster/demo") == f"{CLUSTER}: resumed\n"
    assert held(desk) is None
    assert said(desk, "resume", "raycluster/demo") == f"{CLUSTER}: not on hold\n"


def test_a_dry_run_changes_nothing_and_says_what_would_be(desk: Desk) -> None:
    desk.create(applied.ray_cluster("demo").manifest())
    assert said(desk, "hold", "--dry-run", "raycluster/demo") == f"{CLUSTER}: would be put on hold (dry run)\n"
    assert held(desk) is None
    (entry,) = json.loads(said(desk, "hold", "-ojson", "--dry-run", "raycluster/demo"))
    assert (entry["onHold"], entry["changed"], entry["wouldChange"]) == (False, False, True)


def test_a_queue_is_found_by_its_name_alone(desk: Desk, queue: str) -> None:
    (entry,) = json.loads(said(desk, "hold", "-ojson", f"queue/{queue}"))
    assert entry == {
        "object": f"queue.scheduling.volcano.sh/{queue}",
        "kind": "Queue",
        "namespace": "",
        "name": queue,
        "onHold": True,
        "changed": True,
        "wouldChange": True,
    }
    assert held(desk, QUEUES, queue) == "true"
    done = muster("queues", f"--kubeconfig={desk.testbed.kubeconfig}")
    assert f"queue {queue}: no gang starts, for it is on hold; muster resume queue/{queue}" in done.stderr
    said(desk, "resume", f"q/{queue}")
    assert held(desk, QUEUES, queue) is None


def test_a_hold_that_does_nothing_is_told_in_the_words_of_the_webhook(desk: Desk, queue: str) -> None:
    desk.annotate(QUEUES, queue, **{"muster.dev/gate": "off"})
    done = run(desk, "hold", f"queue/{queue}")
    assert done.returncode == 0
    assert done.stderr == (
        "Warning: metadata.annotations[muster.dev/hold]: it is ignored, for the gate of the "
        "queue is off (muster.dev/gate): no pod is held\n"
    )


@pytest.mark.usefixtures("every_kind")
def test_what_a_workload_has_made_is_resumed_with_it(desk: Desk) -> None:
    """KubeRay copies the annotations of a RayJob to the cluster that it makes, and takes none back."""
    spec = applied.ray_cluster("demo").manifest()["spec"]
    meta = {"name": "nightly", "annotations": {HOLD: "true"}}
    job = {"apiVersion": "ray.io/v1", "kind": "RayJob", "metadata": meta, "spec": {"rayClusterSpec": spec}}
    cluster = applied.ray_cluster("demo").annotate(HOLD, "true").manifest()
    desk.create(owned(cluster, desk.create(job)))
    assert said(desk, "resume", "rayjob/nightly") == f"rayjob.ray.io/nightly: resumed\n{CLUSTER}: resumed\n"
    assert (held(desk, RAY_JOBS, "nightly"), held(desk)) == (None, None)


@pytest.mark.usefixtures("every_kind")
def test_the_page_of_the_command_line_shows_what_is_printed(desk: Desk, queue: str) -> None:
    """The cluster of the RayJob comes while that is on hold, so that it has a copy of the annotation."""
    spec = applied.ray_cluster("any").manifest()["spec"]
    job = {"apiVersion": "ray.io/v1", "kind": "RayJob", "metadata": {"name": "nightly"}}
    made = desk.create({**job, "spec": {"rayClusterSpec": spec}})
    reader = Shell.on(desk.testbed, {"team-a": desk.namespace, "research": queue})
    hold, resume = shown(block("docs/cli.md", "$ muster hold"))
    printed = [reader.obey(hold.command)]
    desk.create(owned(applied.ray_cluster("nightly-x7k2p").annotate(HOLD, "true").manifest(), made))
    printed += [reader.obey(resume.command)]
    assert [tuple(map(alike, text.splitlines())) for text in printed] == [hold.lines, resume.lines]


def member_of(desk: Desk, cluster: Manifest) -> str:
    pod = desk.create(desk.member(cluster, "headgroup"))
    return str(pod["metadata"]["name"])


def test_a_pod_stands_for_its_workload_and_for_its_gang_where_it_has_none(desk: Desk) -> None:
    cluster = desk.create(applied.ray_cluster("demo").manifest())
    said(desk, "hold", f"pod/{member_of(desk, cluster)}")
    assert held(desk) == "true"
    plain = applied.pod("alone")
    plain["metadata"] |= {"labels": {GANG: "pair"}, "annotations": {GANG_SIZE: "2"}}
    desk.create(plain)
    said(desk, "hold", "pod/alone")
    assert held(desk, PODS, "alone") == "true"
    desk.create(applied.pod("stranger"))
    done = run(desk, "hold", "pod/stranger")
    assert (done.returncode, done.stderr) == (1, 'muster hold: pod "stranger" belongs to no gang of muster\n')


def test_one_that_is_not_there_does_not_keep_the_others(desk: Desk) -> None:
    desk.create(applied.ray_cluster("demo").manifest())
    done = run(desk, "hold", "raycluster/gone", "raycluster/demo")
    assert (done.returncode, held(desk)) == (1, "true")
    assert done.stderr == f'muster hold: no RayCluster "gone" in namespace "{desk.namespace}"\n'


def test_who_may_change_the_workload_may_put_it_on_hold_and_no_queue(desk: Desk, queue: str) -> None:
    desk.create(applied.ray_cluster("demo").manifest())
    grant(desk.api, "holder", [on(RAY_CLUSTERS, "get", "patch")], account(desk.namespace), namespace=desk.namespace)
    tenant = desk.testbed.service_account_kubeconfig(desk.namespace, "default")
    wait_for("the right", lambda: run(desk, "hold", "raycluster/demo", kubeconfig=tenant).returncode == 0, PATIENCE)
    assert held(desk) == "true"
    refused = run(desk, "hold", f"queue/{queue}", kubeconfig=tenant)
    assert refused.returncode == 1
    assert refused.stderr == (
        f'muster hold: you may not put queue "{queue}" on hold or resume it, which needs get and patch of '
        "queues.scheduling.volcano.sh or of gangqueues.muster.dev; ask its administrator\n"
    )
    assert held(desk, QUEUES, queue) is None
