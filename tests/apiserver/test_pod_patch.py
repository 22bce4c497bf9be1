"""New pods that are no members although they look like it, and what makes a member; the apiserver has the last word.

What becomes of the members of every kind is in test_owner_chains.py.
"""

import json
import uuid
from collections.abc import Iterator

import pytest

from hack.testbed import Testbed, wait_for
from hack.testbed.api import Api
from hack.testbed.muster import MusterInstall
from muster.model.names import (
    GANG,
    GANG_SIZE,
    GATE,
    GROUP_NAME,
    MANAGED,
    QUEUE_LABEL,
    SCHEDULER_LABEL,
    WORKLOAD,
)
from muster.model.resource import NAMESPACES, QUEUES
from tests.apiserver.conftest import running
from tests.support.cases import cases
from tests.support.cluster.desk import Desk, Manifest, open_desk
from tests.support.manifests.applied import queue, ray_cluster


@pytest.fixture(scope="module")
def desk(bare: Testbed, calls: Api, webhook_of_session: MusterInstall) -> Iterator[Desk]:
    """One namespace for all, with a queue of its name."""
    running(webhook_of_session)
    with open_desk(bare, calls, "pod-patch") as opened:
        opened.create(queue(opened.namespace, cpu="8"))
        yield opened
        opened.delete(QUEUES, opened.namespace)


@pytest.fixture
def name() -> str:
    """What the test's own workload is called."""
    return f"c-{uuid.uuid4().hex[:6]}"


@pytest.fixture
def cluster(desk: Desk, name: str) -> Manifest:
    """A RayCluster of a gang."""
    return desk.create(ray_cluster(name).label(QUEUE_LABEL, desk.namespace).workers(2).manifest())


def test_in_a_namespace_that_requires_muster_nothing_opts_out(desk: Desk, bare: Testbed, calls: Api, name: str) -> None:
    """Not by a label, by a scheduler, nor by a group in a template; what is older than the rule goes on as it was."""
    lane = desk.namespace
    with open_desk(bare, calls, "required") as ours:
        older = ours.create(ray_cluster(f"{name}-older").manifest())
        ours.create(ours.member(older, "headgroup"))
        ours.label(NAMESPACES, ours.namespace, **{MANAGED: "required"})
        out = ray_cluster(name).label(QUEUE_LABEL, lane).label(MANAGED, "false").workers(1).manifest()
        told = '"false" is ignored, for this namespace requires muster; remove the label'
        wait_for("the rule to be known", lambda: any(told in one for one in ours.ask(out, dry_run=True).warnings))
        cluster = ours.create(out)
        assert _traces(ours.create(ours.member(cluster, "headgroup"))) == [GANG, GATE]
        assert "this namespace requires muster" in ours.refused(ours.member(cluster, "worker", schedulerName="mine"))
        grouped = ours.member(cluster, "worker")
        grouped["metadata"]["annotations"] = {GROUP_NAME: "mine"}
        assert 'names the PodGroup "mine"' in ours.refused(grouped)
        elsewhere = ray_cluster(f"{name}-elsewhere").label(SCHEDULER_LABEL, "yunikorn").manifest()
        assert "which this namespace requires; name volcano" in ours.refused(elsewhere)
        assert _traces(ours.create(ours.member(older, "headgroup"))) == []


def test_opting_in_is_enough(desk: Desk, name: str) -> None:
    """`muster.dev/managed: "true"` alone makes a gang, in the default queue."""
    desk.create(queue("default", cpu="8"))
    owner = desk.create(ray_cluster(name).label(MANAGED, "true").manifest())
    assert _traces(desk.create(desk.member(owner, "headgroup"))) == [GANG, GATE]
    desk.delete(QUEUES, "default")


def test_cleanup_pod_is_no_member(desk: Desk, cluster: Manifest) -> None:
    """KubeRay's redis clean-up runs when the cluster is deleted: held, it would keep it for ever."""
    wanted = desk.member(cluster, "headgroup")
    wanted["metadata"]["labels"]["ray.io/node-type"] = "redis-cleanup"
    assert _traces(desk.create(wanted)) == []


def test_owner_of_a_former_life_is_no_owner(desk: Desk, cluster: Manifest) -> None:
    """A pod whose owner's UID is of a deleted workload of the same name is left to the garbage collector."""
    wanted = desk.member(cluster, "worker")
    wanted["metadata"]["ownerReferences"][0]["uid"] = "00000000-0000-0000-0000-000000000000"
    assert _traces(desk.create(wanted)) == []


_DAEMON = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "u", "controller": True}


@pytest.mark.parametrize("kind", ["a pod with a node", "the mirror of a static pod", "a daemon"])
def test_what_is_certain_of_its_node_is_left_as_it_is(desk: Desk, cluster: Manifest, kind: str) -> None:
    """Also with the labels of a gang, by which it is seen."""
    wanted = desk.member(cluster, "worker", **({} if kind == "a daemon" else {"nodeName": "node-0"}))
    if kind == "a daemon":
        wanted["metadata"]["ownerReferences"] = [_DAEMON]
    if kind == "the mirror of a static pod":
        del wanted["metadata"]["ownerReferences"]
        wanted["metadata"]["annotations"] = dict.fromkeys(
            ("kubernetes.io/config.mirror", "kubernetes.io/config.hash"), "x"
        )
    pod = desk.create(wanted, dry_run=True)
    assert _traces(pod) == []
    assert pod["spec"]["schedulerName"] == "default-scheduler"
    assert pod["metadata"].get("annotations", {}) == wanted["metadata"].get("annotations", {})


@cases(
    "spec, owner",
    ("a workload's that is none of muster's", {}, "silent"),
    ("with a node from its first moment on", {"nodeName": "node-0"}, "c"),
    ("a daemon", {}, ""),
)
def test_nobody_but_muster_makes_a_member(
    desk: Desk, cluster: Manifest, name: str, spec: Manifest, *, owner: str
) -> None:
    """One that runs would be a sign that the gang was admitted: what carries the marks of another's gang loses them."""
    silent = desk.create(ray_cluster(f"silent-{name}").workers(1).manifest())
    wanted = desk.member(
        {"silent": silent, "c": cluster, "": cluster}[owner], "worker", schedulerName="volcano", **spec
    )
    if not owner:
        wanted["metadata"]["ownerReferences"] = [_DAEMON]
        wanted["metadata"]["labels"] = {"ray.io/group": "worker"}
    meta = cluster["metadata"]
    claimed = {"apiVersion": "ray.io/v1", "kind": "RayCluster", "name": name, "uid": meta["uid"], "controller": True}
    group = f"ray-{name}-pg"
    wanted["metadata"]["labels"][GANG] = group
    wanted["metadata"]["annotations"] = {GROUP_NAME: group, GANG_SIZE: "1", WORKLOAD: json.dumps(claimed)}
    made = desk.create(wanted)["metadata"]
    assert WORKLOAD not in made["annotations"]
    assert not (GANG in made["labels"] and GROUP_NAME in made["annotations"])


def _traces(pod: Manifest) -> list[str]:
    """What muster put on the pod: its label, its gate."""
    label = [GANG] if GANG in pod["metadata"].get("labels", {}) else []
    return label + [gate["name"] for gate in pod["spec"].get("schedulingGates", []) if gate["name"] == GATE]
