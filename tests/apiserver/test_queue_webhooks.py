"""Queues, and what names one by itself, at the real apiserver: what is refused, and what makes no call at all."""

import uuid
from collections.abc import Iterator

import pytest

from hack.testbed.api import Answer, Api
from hack.testbed.muster import MusterInstall
from muster.model.names import MANAGED_BY, MUSTER, NAMESPACE_SELECTOR, QUEUE_ANNOTATION, QUEUE_LABEL
from muster.model.resource import NAMESPACES, POD_GROUPS, QUEUES
from muster.queueing.verdicts import no_such_queue
from tests.support.cluster.desk import Manifest
from tests.support.cluster.reviews import reviews
from tests.support.cluster.verbs import Verbs, make_namespace, own_name
from tests.support.manifests import applied

CONTROLLER = "system:serviceaccount:muster-system:muster-controller"


class Place(Verbs):
    """A namespace of team ml with two queues: `NAMESPACE-open` for all, `NAMESPACE-kept` for another team."""

    def __init__(self, api: Api, namespace: str, webhook: MusterInstall) -> None:
        super().__init__(api, namespace)
        self.webhook = webhook

    def queue(self, suffix: str, selector: str = "", **spec: object) -> Manifest:
        """A Queue, not made yet."""
        manifest = applied.queue(f"{self.namespace}-{suffix}")
        manifest["spec"] |= spec
        if selector:
            manifest["metadata"]["annotations"] = {NAMESPACE_SELECTOR: selector}
        return manifest

    def group(self, queue: str, user: str = "") -> Answer:
        """Make a PodGroup in a queue."""
        manifest = {
            "apiVersion": POD_GROUPS.api_version,
            "kind": POD_GROUPS.kind,
            "metadata": {
                "name": f"group-{uuid.uuid4().hex[:8]}",
                "namespace": self.namespace,
                # Whose one is says who asks; muster's controller makes none without the label.
                "labels": {MANAGED_BY: MUSTER},
            },
            "spec": {"minMember": 1, "minResources": {"cpu": "4"}, "queue": f"{self.namespace}-{queue}"},
        }
        return self.ask(manifest, user=user)

    def reviews(self, name: str) -> int:
        """How many reviews of that webhook were answered."""
        return reviews(self.webhook, name)


@pytest.fixture
def place(calls: Api, webhook: MusterInstall) -> Iterator[Place]:
    name = own_name("naming")
    make_namespace(calls, name, team="ml")
    found = Place(calls, name, webhook)
    found.apply(found.queue("open"), found.queue("kept", "team=web"))
    yield found
    found.delete(NAMESPACES, name, wait=False)
    queues = [queue["metadata"]["name"] for queue in found.list(QUEUES)]
    found.delete(QUEUES, *(queue for queue in queues if queue.startswith(name)), wait=False)


def without(text: str, *names: str) -> str:
    """The text with each of these names as the same one."""
    for name in names:
        text = text.replace(name, "Q")
    return text


def test_a_podgroup_stands_in_a_queue_that_is_there_for_its_namespace(place: Place) -> None:
    """Made there, or moved there; a kept queue and a missing one are refused in the same words."""
    kept, none = place.group("kept"), place.group("none")
    assert kept.status == none.status == 422
    assert without(kept.message, f"{place.namespace}-kept") == without(none.message, f"{place.namespace}-none")
    assert no_such_queue(f"{place.namespace}-kept", place.namespace) in kept.message
    made = place.group("open")
    assert made.ok, made.message
    path = place.path(POD_GROUPS, made.body["metadata"]["name"])
    moved = place.api("PATCH", path, {"spec": {"queue": f"{place.namespace}-kept"}}, patch="merge")
    assert (moved.status, without(moved.message, f"{place.namespace}-kept")) == (
        422,
        without(kept.message, f"{place.namespace}-kept"),
    )


def test_what_volcano_and_muster_write_of_podgroups_makes_no_call(place: Place) -> None:
    """A status is written by an update of the whole, many times in the life of a gang."""
    made = place.group("open")
    name = made.body["metadata"]["name"]
    before = place.reviews("podgroups")
    for phase in ("Pending", "Inqueue", "Running"):
        now = place.get(POD_GROUPS, name)
        place.api.done("PUT", place.path(POD_GROUPS, name), {**now, "status": {"phase": phase, "running": 1}})
    place.patch(POD_GROUPS, name, {"spec": {"minMember": 2}})
    place.annotate(POD_GROUPS, name, **{"volcano.sh/x": "y"})
    assert place.group("kept", CONTROLLER).ok, "it says itself what is not there"
    assert place.reviews("podgroups") == before
    assert place.group("open").ok
    assert place.reviews("podgroups") == before + 1


@pytest.mark.parametrize("said", ["labels", "annotations"])
def test_a_pod_that_names_a_queue_by_itself_names_one_that_is_there_for_it(place: Place, said: str) -> None:
    key = QUEUE_LABEL if said == "labels" else QUEUE_ANNOTATION

    def make(queue: str, **spec: str) -> Answer:
        pod = applied.pod(f"pod-{uuid.uuid4().hex[:8]}", **spec)
        pod["metadata"][said] = {key: f"{place.namespace}-{queue}"}
        return place.ask(pod)

    kept, none = make("kept", schedulerName="volcano"), make("none", schedulerName="volcano")
    assert kept.status == none.status == 422
    assert without(kept.message, f"{place.namespace}-kept") == without(none.message, f"{place.namespace}-none")
    assert make("open", schedulerName="volcano").ok
    before = place.reviews("queues-of-pods")
    assert make("kept").ok, "to another scheduler it is a word like others"
    assert place.reviews("queues-of-pods") == before


def test_a_queue_that_cannot_be_is_refused_and_its_status_makes_no_call(place: Place) -> None:
    name = f"{place.namespace}-open"
    wrong = place.refused(place.queue("wrong", "team in (ml"))
    assert 'metadata.annotations[muster.dev/namespace-selector]: "team in (ml" is neither key' in wrong
    lost = place.refused(place.queue("lost", parent=f"{place.namespace}-none"))
    assert f'spec.parent: queue "{place.namespace}-none" does not exist' in lost
    before = place.reviews("queues")
    place.patch(QUEUES, name, {"status": {"state": "Open", "allocated": {"cpu": "3"}}}, "status")
    place.label(QUEUES, name, a="b")
    assert place.reviews("queues") == before


def test_a_lower_capability_and_a_first_child_are_answered_by_who_is_there(place: Place) -> None:
    """The PodGroups of the queue are read for it, with the rights of the webhook's own ServiceAccount."""
    name = f"{place.namespace}-open"
    place.patch(QUEUES, name, {"status": {"allocated": {"cpu": "3"}}}, "status")
    assert place.group("open").ok
    lower = {"spec": {"capability": {"cpu": "2"}}}
    told = " ".join(place.api("PATCH", QUEUES.path(name=name), lower, patch="merge").warnings)
    assert "spec.capability: cpu 2 is below the cpu 3 held there" in told
    assert "can never start with cpu 2, the first needs cpu 4" in told
    child = place.refused(place.queue("child", parent=name))
    assert f'spec.parent: queue "{name}" holds PodGroup {place.namespace}/group-' in child
