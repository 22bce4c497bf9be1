"""Members of every kind of workload, with the owners that their operators give them, on a real apiserver.

Only the CRDs are real: nobody but the test makes pods. Most of these kinds are younger than the webhook's watches,
which ask again for a kind that was not served after half a minute only: so each owner is read once, directly.
"""

import json
from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any

import pytest

from hack.testbed import Testbed
from hack.testbed.api import Api
from muster.model.names import (
    GANG,
    GANG_COMPLETIONS,
    GATE,
    GROUP_NAME,
    PRIORITY_CLASS_LABEL,
    QUEUE_LABEL,
    TASK_SPEC,
    WORKLOAD,
)
from muster.model.resource import POD_GROUPS, PODS, PRIORITY_CLASSES, QUEUES
from tests.support.cluster.desk import Desk, Manifest, open_desk, wait_for_class
from tests.support.cluster.other_webhooks import Injector, injecting, with_sidecar
from tests.support.manifests.applied import queue, ray_cluster
from tests.support.manifests.members import (
    MPI_JOB_V1,
    PLAIN,
    TEMPLATE,
    WITH_WORKLOAD,
    Chain,
    Member,
    mpi_job,
    serving_v1,
)
from tests.support.manifests.owner_chains import chain, member

pytestmark = pytest.mark.usefixtures("webhook")

_THEIRS = {"name": "example.com/theirs"}
_ALL = [pytest.param(one, id=one.title) for one in (*WITH_WORKLOAD, *PLAIN)] + [
    # Meanwhile its CRD takes the place of the other MPIJob's.
    pytest.param(MPI_JOB_V1, id="MPIJob v1")
]


@pytest.fixture(scope="module")
def desk(bare: Testbed, calls: Api, every_kind: None) -> Iterator[Desk]:
    """A namespace, and a queue and a PriorityClass of its name: of value 700, which never preempts."""
    del every_kind
    with open_desk(bare, calls, "owner-chains") as opened:
        name = opened.namespace
        calls.create(PRIORITY_CLASSES.path(), _class(name, 700, preemptionPolicy="Never"))
        # What the cluster gives to whoever says nothing: every pod comes with it.
        calls.create(PRIORITY_CLASSES.path(), _class(f"{name}-usual", 5, globalDefault=True))
        opened.create(queue(name, cpu="100"))
        wait_for_class(calls, name)
        wait_for_class(calls, f"{name}-usual", everybodys=True)
        yield opened
        opened.delete(QUEUES, name)
        opened.delete(PRIORITY_CLASSES, name, f"{name}-usual")


@pytest.fixture(scope="module")
def lane(desk: Desk) -> str:
    """What the namespace, the queue and the class are called."""
    return desk.namespace


def _class(name: str, value: int, **fields: object) -> Manifest:
    return {"metadata": {"name": name}, "value": value, **fields}


def test_launcher_that_waits_for_its_workers_is_bound_and_never_held(desk: Desk) -> None:
    """It comes when they run: held, it would wait for a gang that has started."""
    job = mpi_job("patient")
    job["metadata"]["labels"] = {QUEUE_LABEL: desk.namespace}
    job["spec"]["launcherCreationPolicy"] = "WaitForWorkersReady"
    batch = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "patient-launcher"}}
    launcher = chain([job, {**batch, "spec": {"template": TEMPLATE}}], desk.create)
    labels = {"training.kubeflow.org/job-name": "patient", "training.kubeflow.org/job-role": "launcher"}
    pod = desk.create(member(launcher, labels))
    assert pod["metadata"]["annotations"][GROUP_NAME] == "patient"
    assert pod["spec"]["schedulerName"] == "volcano"
    assert "schedulingGates" not in pod["spec"]


@pytest.fixture(scope="module", params=_ALL)
def kind(request: pytest.FixtureRequest, bare: Testbed, lane: str) -> Iterator[Chain]:
    """Each kind of workload in turn, served."""
    del lane
    found: Chain = request.param
    with serving_v1(bare) if found is MPI_JOB_V1 else nullcontext():
        yield found


def _name(kind: Chain) -> str:
    return kind.title.lower().replace(" ", "-")


@pytest.fixture(scope="module")
def one(desk: Desk, kind: Chain, lane: str) -> Member:
    """A workload of that kind, in the queue and of the class."""
    return kind.made(desk.create, _name(kind), {QUEUE_LABEL: lane, PRIORITY_CLASS_LABEL: lane})


def test_member_is_bound_and_held_for_what_the_topmost_says(desk: Desk, lane: str, one: Member) -> None:
    """All of it in the pod's first version: none of it ever stands there without the rest."""
    pod = desk.create(one.pod())
    spec, meta = pod["spec"], pod["metadata"]
    assert (spec["schedulerName"], spec["schedulingGates"]) == ("volcano", [{"name": GATE}])
    assert meta["labels"] == {**one.labels, GANG: one.group, QUEUE_LABEL: lane}
    assert meta["name"].startswith(meta["generateName"])
    # Of a pod that a Job controls nobody else could tell whose it is.
    behind = json.loads(meta["annotations"].pop(WORKLOAD, "{}"))
    top = (one.chain.owners(one.name, TEMPLATE) or [{}])[0]
    by_job = one.owner is not None and one.owner["kind"] == "Job" and not one.chain.plain
    assert (behind.get("kind"), behind.get("name")) == ((top["kind"], one.name) if by_job else (None, None))
    # Of a plain gang's Job the controller learns by its pods how many of them are to succeed.
    plain_job = one.chain.plain and one.owner is not None and one.owner["kind"] == "Job"
    assert meta["annotations"].pop(GANG_COMPLETIONS, "") == ("1" if plain_job else "")
    assert meta["annotations"] == {**one.annotations, GROUP_NAME: one.group, TASK_SPEC: one.chain.role}


def test_member_with_a_name_of_its_own_is_the_same(desk: Desk, one: Member) -> None:
    """The Training operator and the MPI operator name their pods; Jobs and KubeRay leave that to the apiserver."""
    wanted = one.pod()
    del wanted["metadata"]["generateName"]
    wanted["metadata"]["name"] = f"{one.group}-0"
    pod = desk.create(wanted)
    assert (pod["metadata"]["name"], pod["metadata"]["labels"][GANG]) == (f"{one.group}-0", one.group)
    assert pod["spec"]["schedulingGates"] == [{"name": GATE}]


def test_class_comes_with_its_value_and_its_preemption_policy(desk: Desk, lane: str, one: Member) -> None:
    """The cluster's default had been written into the pod, with its numbers, before muster was asked.

    A plain pod is its own template: there the default cannot be told from what its user wrote, and stays.
    """
    expected = (f"{lane}-usual", 5, "PreemptLowerPriority") if one.chain.plain else (lane, 700, "Never")
    assert _priority(desk.create(one.pod())) == expected


def test_class_of_the_template_is_its_users(desk: Desk, lane: str, kind: Chain) -> None:
    """The workload's goes into the PodGroup alone."""
    usual = f"{lane}-usual"
    template = {"spec": {**TEMPLATE["spec"], "priorityClassName": usual}}
    said = {QUEUE_LABEL: lane, PRIORITY_CLASS_LABEL: lane}
    pod = desk.create(kind.made(desk.create, f"{_name(kind)}-classed", said, template).pod(priorityClassName=usual))
    assert pod["spec"]["schedulingGates"] == [{"name": GATE}]
    assert _priority(pod) == (usual, 5, "PreemptLowerPriority")


def test_class_that_nobody_names_is_the_clusters(desk: Desk, lane: str, kind: Chain) -> None:
    pod = desk.create(kind.made(desk.create, f"{_name(kind)}-unclassed", {QUEUE_LABEL: lane}).pod())
    assert pod["spec"]["schedulingGates"] == [{"name": GATE}]
    assert _priority(pod) == (f"{lane}-usual", 5, "PreemptLowerPriority")


def test_class_of_one_roles_template_leaves_the_other_role_to_the_workloads(desk: Desk, lane: str) -> None:
    usual = f"{lane}-usual"
    cluster = ray_cluster("mixed").label(QUEUE_LABEL, lane).label(PRIORITY_CLASS_LABEL, lane).workers(1)
    owner = desk.create(cluster.head(priorityClassName=usual).manifest())
    head = desk.create(desk.member(owner, "headgroup", priorityClassName=usual))
    assert _priority(head) == (usual, 5, "PreemptLowerPriority")
    assert _priority(desk.create(desk.member(owner, "worker"))) == (lane, 700, "Never")


def test_scheduler_of_the_users_own_is_respected(desk: Desk, one: Member) -> None:
    """Nothing of muster's is on such a pod; it is not stored, or muster would leave all of its workload alone."""
    wanted = one.pod(schedulerName="my-own", schedulingGates=[_THEIRS])
    pod = desk.create(wanted, dry_run=True)
    assert (pod["spec"]["schedulerName"], pod["spec"]["schedulingGates"]) == ("my-own", [_THEIRS])
    assert pod["metadata"]["labels"] == wanted["metadata"]["labels"]
    assert pod["metadata"].get("annotations", {}) == wanted["metadata"]["annotations"]


def test_gates_labels_and_annotations_of_others_are_kept_in_their_order(desk: Desk, one: Member) -> None:
    wanted = one.pod(schedulingGates=[_THEIRS, {"name": "example.com/second"}])
    wanted["metadata"]["annotations"]["example.com/note"] = "a/b~c"
    wanted["metadata"]["labels"]["example.com/team"] = "blue"
    pod = desk.create(wanted)
    assert pod["spec"]["schedulingGates"] == [_THEIRS, {"name": "example.com/second"}, {"name": GATE}]
    assert pod["metadata"]["annotations"]["example.com/note"] == "a/b~c"
    assert pod["metadata"]["labels"].items() >= wanted["metadata"]["labels"].items()
    assert pod["metadata"].get("ownerReferences") == wanted["metadata"].get("ownerReferences")


def test_dry_run_shows_the_patch_and_nothing_is_stored(desk: Desk, one: Member) -> None:
    """The same patch as the real thing gets, and neither pod nor PodGroup."""
    before = len(desk.list(PODS))
    dry = desk.create(one.pod(), dry_run=True)
    assert len(desk.list(PODS)) == before
    assert desk.list(POD_GROUPS) == []
    real = desk.create(one.pod())
    for key in ("labels", "annotations", "ownerReferences"):
        assert dry["metadata"].get(key) == real["metadata"].get(key)
    for key in ("schedulerName", "schedulingGates", "priorityClassName", "priority", "preemptionPolicy", "tolerations"):
        assert dry["spec"].get(key) == real["spec"].get(key)


@pytest.fixture(scope="module")
def crowded(bare: Testbed, calls: Api, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Desk, Injector]]:
    """A namespace with an injector of sidecars before muster and one after it; gives the last one, too."""
    first, last = Injector(with_sidecar("before")), Injector(with_sidecar("after"))
    folders = tmp_path_factory.mktemp("before"), tmp_path_factory.mktemp("after")
    with (
        open_desk(bare, calls, "injected") as opened,
        injecting(first, "a-before", opened.namespace, calls=calls, folder=folders[0]),
        injecting(last, "z-after", opened.namespace, calls=calls, folder=folders[1]),
    ):
        yield opened, last


def test_asked_again_among_sidecar_injectors_a_member_comes_out_the_same(
    lane: str, crowded: tuple[Desk, Injector], kind: Chain
) -> None:
    """Whoever is asked after muster sees scheduler, group and gate together, in the first round and in the second."""
    there, last = crowded
    # What the queue is called does not depend on the namespace.
    its = kind.made(there.create, _name(kind), {QUEUE_LABEL: lane, PRIORITY_CLASS_LABEL: lane})
    last.seen.clear()
    wanted = its.pod(schedulingGates=[_THEIRS])
    pod = there.create(wanted)
    # Not those that the Job's own controller makes.
    shown = [seen for seen in last.seen if seen["metadata"]["generateName"] == wanted["metadata"]["generateName"]]
    assert len(shown) == 2
    for seen in (*shown, pod):
        spec, meta = seen["spec"], seen["metadata"]
        assert (spec["schedulerName"], spec["schedulingGates"]) == ("volcano", [_THEIRS, {"name": GATE}])
        assert meta["annotations"].items() >= {GROUP_NAME: its.group, TASK_SPEC: kind.role}.items()
        assert meta["labels"] == {**its.labels, GANG: its.group, QUEUE_LABEL: lane}
        assert meta.get("ownerReferences") == wanted["metadata"].get("ownerReferences")
    assert [one["name"] for one in pod["spec"]["containers"]] == ["main", "before", "after"]
    if not kind.plain:
        assert _priority(pod) == (lane, 700, "Never")


def _priority(pod: Manifest) -> tuple[Any, ...]:
    spec = pod["spec"]
    return spec["priorityClassName"], spec["priority"], spec["preemptionPolicy"]
