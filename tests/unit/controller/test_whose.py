"""Whose a PodGroup is: what was admitted counts in its queue while a pod of it lives, whatever a tenant writes."""

from collections.abc import Callable
from copy import deepcopy

import pytest

from muster.model.names import ADMITTED, GROUP_NAME, MANAGED_BY, MESSAGE, MUSTER, QUEUE_LABEL, STATE
from tests.support.cases import cases
from tests.support.controller.tenants import LATER, PRODUCTS, Tenancy
from tests.support.manifests.observed import pod, ray_cluster, ray_owner

Trick = Callable[[Tenancy], None]

pytestmark = pytest.mark.parametrize("product", PRODUCTS)


def names_a_queue(world: Tenancy) -> None:
    world.names_queue("first", "p")


def takes_the_label_off(world: Tenancy) -> None:
    del world.group("first")["metadata"]["labels"][MANAGED_BY]
    names_a_queue(world)


def takes_the_owner_off(world: Tenancy) -> None:
    world.group("first")["metadata"] |= {"ownerReferences": [], "finalizers": ["tenant/keeps"]}
    names_a_queue(world)


def gives_another_owner(world: Tenancy) -> None:
    world.set_workload(ray_cluster(name="other", uid="uid-other"))
    world.group("first")["metadata"]["ownerReferences"] = [ray_owner("other", controller=True)]
    names_a_queue(world)


def has_it_deleted_with_a_finalizer(world: Tenancy) -> None:
    gone = {"finalizers": ["tenant/keeps"], "deletionTimestamp": "2026-11-21T10:02:00Z", "labels": {}}
    world.group("first")["metadata"] |= gone
    names_a_queue(world)


def deletes(world: Tenancy) -> None:
    del world.client.groups[world.group_name("first")]
    world.set_workload(world.gang("first", queue_name="p")[0])


def makes_by_hand(world: Tenancy) -> None:
    world.by_hand("first", "p")


def makes_by_hand_with_the_label(world: Tenancy) -> None:
    world.by_hand("first", "p", labels={MANAGED_BY: MUSTER})


def makes_by_hand_all_but_the_marks(world: Tenancy) -> None:
    owner = ray_owner("first", controller=True)
    world.by_hand("first", "p", labels={MANAGED_BY: MUSTER}, ownerReferences=[owner])


TRICKS = [
    names_a_queue,
    takes_the_label_off,
    takes_the_owner_off,
    gives_another_owner,
    has_it_deleted_with_a_finalizer,
    deletes,
    makes_by_hand,
    makes_by_hand_with_the_label,
    makes_by_hand_all_but_the_marks,
]


@cases("led", ("under a leader", True), ("while nothing leads", False))
@pytest.mark.parametrize("trick", TRICKS, ids=lambda trick: trick.__name__)
async def test_a_running_gang_stays_in_its_queue(product: str, trick: Trick, *, led: bool) -> None:
    """Whoever leads then: the next gang of its queue waits, and the other queue has all its room."""
    world = Tenancy(product, "first")
    await world.seen()
    trick(world)
    if led:
        await world.seen()
    else:
        world.watch()
    for _ in range(2):
        world.restart()
        await world.seen()
    await world.apply("next")
    await world.later()
    await world.apply("there", queue_name="p")
    assert world.open_of("first", "next", "there") == {"first", "there"}
    assert "has cpu 0 and memory 60Gi free of" in world.annotations(world.group_name("next"))[MESSAGE]


@pytest.mark.parametrize("trick", TRICKS, ids=lambda trick: trick.__name__)
async def test_its_room_is_free_when_its_pods_are_gone(product: str, trick: Trick) -> None:
    world = Tenancy(product, "first")
    await world.seen()
    trick(world)
    await world.seen()
    await world.apply("next")
    workload, pods = world.gang("first")
    world.drop_workload(workload)
    for one in pods:
        del world.client.pods[one["metadata"]["name"]]
    await world.seen()
    assert world.open_of("next") == {"next"}


async def test_pods_that_are_being_deleted_stay_in_the_queue_in_which_they_ran(product: str) -> None:
    """Their grace period may be hours; meanwhile their workload, which is suspended, names another queue."""
    world = Tenancy(product, "first")
    await world.seen()
    workload, pods = world.gang("first", queue_name="p")
    world.set_workload({**workload, "spec": {**workload["spec"], "suspend": True}})
    for one in pods:
        going = world.client.pods[one["metadata"]["name"]]
        going["metadata"]["deletionTimestamp"] = LATER
    await world.seen()
    world.names_queue("first", "p")
    await world.seen()
    await world.apply("next")
    await world.apply("there", queue_name="p")
    assert world.open_of("next", "there") == {"there"}


async def test_of_two_pod_groups_of_one_gang_musters_counts(product: str) -> None:
    """The PodGroup of another scheduler, or one whose annotation names the gang, is none of it."""
    world = Tenancy(product, "first")
    await world.seen()
    before = deepcopy(world.group("first"))
    world.by_hand("first", "p")
    decoy = world.group("first")
    decoy["metadata"] |= {"name": f"ray-first-pg-{'x' * 8}", "uid": "uid-decoy"}
    decoy["metadata"].setdefault("annotations", {})[GROUP_NAME] = "ray-first-pg"
    world.client.groups = {before["metadata"]["name"]: before, decoy["metadata"]["name"]: decoy}
    await world.seen()
    world.restart()
    await world.seen()
    await world.apply("next")
    assert world.open_of("first", "next") == {"first"}
    replacement = world.gang("first")[1][1]
    replacement["metadata"] |= {"name": "first-again", "uid": "uid-again"}
    del world.client.pods["first-1"]
    world.client.pods["first-again"] = replacement
    await world.seen()
    assert "first-again" in world.open_pods()


# --- a mark ----------------------------------------------------------------------------------------------------------


@cases("led", ("under a leader", True), ("while nothing leads", False))
async def test_an_admission_is_not_kept_for_later(product: str, *, led: bool) -> None:
    """The gang is suspended while its PodGroup has no label, and comes back when its queue is full."""
    world = Tenancy(product, "first")
    await world.seen()
    workload, pods = world.gang("first")
    del world.group("first")["metadata"]["labels"][MANAGED_BY]
    world.set_workload({**workload, "spec": {**workload["spec"], "suspend": True}})
    for one in pods:
        del world.client.pods[one["metadata"]["name"]]
    await world.seen()
    await world.apply("second", created="2026-11-21T08:00:00Z")
    await world.apply("third", created="2026-11-21T08:30:00Z")
    assert world.open_of("second", "third") == {"second"}
    if not led:
        world.restart()
    world.group("first")["metadata"]["labels"][MANAGED_BY] = MUSTER
    await world.apply("first")
    await world.later()
    assert world.open_of("first", "second", "third") == {"second"}
    assert world.annotations(world.group_name("first"))[MESSAGE].endswith("position 2 of 2 waiting")


@cases("made_again", ("on the PodGroup", False), ("on one made again", True))
async def test_a_mark_that_reappears_is_no_admission(product: str, *, made_again: bool) -> None:
    world = Tenancy(product, "first")
    await world.seen()
    said = dict(world.annotations(world.group_name("first")))
    workload, pods = world.gang("first")
    world.set_workload({**workload, "spec": {**workload["spec"], "suspend": True}})
    for one in pods:
        del world.client.pods[one["metadata"]["name"]]
    await world.seen()
    await world.apply("second", created="2026-11-21T08:00:00Z")
    await world.apply("first")
    assert world.annotations(world.group_name("first"))[STATE] == "WaitingForQuota"
    if made_again:
        before = world.client.groups.pop(world.group_name("first"))
        world.watch()
        await world.work()
        world.client.groups[world.group_name("first")] = before
        before["metadata"] |= {"uid": "uid-again", "creationTimestamp": LATER}
    world.group("first")["metadata"]["annotations"] |= said
    await world.seen()
    await world.later()
    assert world.open_of("first", "second") == {"second"}
    assert not world.annotations(world.group_name("first"))[ADMITTED]
    assert world.annotations(world.group_name("first"))[STATE] == "WaitingForQuota"


# --- a name ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("part", ["former", "bound", "leaving", "wave", "growth 0"])
async def test_no_text_of_a_pod_names_a_part_of_a_gang(product: str, part: str) -> None:
    """What pods use besides their gang stays counted: pods that others bound to it, former ones, and those that go."""
    world = Tenancy(product)
    await world.apply("first", 2)
    more = pod("more", labels={QUEUE_LABEL: "q"}, annotations={GROUP_NAME: "ray-first-pg"}, schedulingGates=[])
    former, going = world.gang("gone", 1)[1][0], world.gang("first", 1)[1][0]
    for one in (more, former, going):
        one["spec"] |= {"schedulerName": world.scheduler.name, "nodeName": "node", "schedulingGates": []}
        one["metadata"]["annotations"][GROUP_NAME] = "ray-first-pg"
    going["metadata"] |= {"name": "going", "uid": "uid-going", "deletionTimestamp": LATER}
    world.client.pods |= {one["metadata"]["name"]: one for one in (more, former, going)}
    await world.seen()
    await world.apply("next", 1)
    assert world.open_of("next") == set()
    eraser = pod("eraser", annotations={GROUP_NAME: f"ray-first-pg ({part})"}, schedulingGates=[])
    eraser["spec"]["schedulerName"] = world.scheduler.name
    world.client.pods["eraser"] = eraser
    await world.seen()
    assert world.open_of("next") == set()
    world.restart()
    await world.seen()
    assert world.open_of("next") == set()


# --- orphans ---------------------------------------------------------------------------------------------------------


def orphan(world: Tenancy) -> None:
    """`kubectl delete raycluster first --cascade=orphan`."""
    world.drop_workload(world.gang("first")[0])
    for one in world.client.pods.values():
        one["metadata"].pop("ownerReferences", None)
    world.group("first")["metadata"].pop("ownerReferences", None)


@cases("led", ("under a leader", True), ("while nothing leads", False))
async def test_orphans_count_once_whatever_is_applied_in_their_place(product: str, *, led: bool) -> None:
    world = Tenancy(product)
    await world.apply("first", 3)
    orphan(world)
    await world.seen()
    await world.apply("second", 2)
    assert world.open_of("second") == set()
    workload, _ = world.gang("first", 3, queue_name="p")
    workload["metadata"]["uid"] = "uid-again"
    world.set_workload(workload)
    await world.seen()
    if not led:
        world.restart()
    await world.later()
    await world.seen()
    assert world.open_of("second") == set()
    await world.apply("third", 1)
    assert world.open_of("second") == set(), "the room of one cpu is third's"
    for name in [name for name in world.client.pods if name.startswith("first-")]:
        del world.client.pods[name]
    await world.seen()
    assert world.open_of("second", "third") == {"second", "third"}


async def test_orphans_are_what_they_were(product: str) -> None:
    """Their PodGroup says neither that they have ended nor that they are being deleted."""
    world = Tenancy(product)
    await world.apply("first", 3)
    orphan(world)
    await world.seen()
    assert world.annotations(world.group_name("first"))[STATE] == "Running"


# --- plain pods ------------------------------------------------------------------------------------------------------


@cases("led", ("under a leader", True), ("while nothing leads", False))
@cases("labels", ("without a label", {}), ("with muster's label", {MANAGED_BY: MUSTER}))
async def test_a_running_plain_gang_stays_in_its_queue(product: str, labels: dict[str, str], *, led: bool) -> None:
    """Its PodGroup, which has no owner, is made by hand in another queue."""
    world = Tenancy(product)
    await world.apply_plain("first", 4)
    assert world.open_of("first") == {"first"}
    world.client.groups.clear()
    world.client.applied.clear()
    world.by_hand("first", "p", called="first", labels=labels)
    if led:
        await world.seen()
    else:
        world.watch()
    world.restart()
    await world.seen()
    await world.apply("next")
    await world.apply("there", queue_name="p")
    assert world.open_of("next", "there") == {"there"}
