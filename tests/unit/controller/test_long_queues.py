"""Queues whose names are longer than a label: pods name them in short, and the short form is no queue."""

import pytest

from muster.cli.release.pod_groups import substitute
from muster.gangs.pod_patch import inject, membership
from muster.model.modes import GateMode
from muster.model.names import QUEUE_ANNOTATION, QUEUE_LABEL, label_value, queue_named
from muster.model.pods import Pod
from muster.schedulers import PRODUCTS
from tests.support.controller.harness import Harness
from tests.support.manifests.observed import (
    JSON,
    NAMESPACE,
    gang_and_intent,
    made,
    pod,
    queue,
    ray_cluster,
    ray_pod,
    template,
)

LONG = f"research-{'x' * 60}-of-the-institute"
SHORT = label_value(LONG)
BOUND = {"muster.dev/gang-size": "2", "scheduling.k8s.io/group-name": "pair", QUEUE_ANNOTATION: LONG}


def plain(name: str) -> JSON:
    """A pod of a plain gang as the webhook leaves it, whose user named the long queue in the annotation."""
    labels = {"muster.dev/gang": "pair", QUEUE_LABEL: SHORT}
    gates = [{"name": "muster.dev/gang"}]
    return pod(name, labels=labels, annotations=BOUND, schedulingGates=gates, **template("1")["spec"])


def of_the_long_queue(name: str) -> JSON:
    made_of = ray_pod(name, "headgroup" if name.endswith("head") else "workers", cluster="gone", owner_uid="uid-gone")
    made_of["metadata"]["labels"][QUEUE_LABEL] = SHORT
    made_of["metadata"]["annotations"][QUEUE_ANNOTATION] = LONG
    return made_of


@pytest.mark.parametrize("product", ["volcano", "coscheduling", "kubernetes"])
def test_the_pods_of_a_gang_have_the_whole_name_in_an_annotation(product: str) -> None:
    gang, intent = gang_and_intent(ray_cluster(labels={}, annotations={QUEUE_ANNOTATION: LONG}))
    member = membership(gang.roles[0], gang, intent, PRODUCTS[product]())
    operations = inject(made(Pod, {"metadata": {"name": "p"}}), member, gate=GateMode.QUEUE)
    said = {one["path"]: one["value"] for one in operations if one["path"].startswith("/metadata")}
    labels, annotations = said["/metadata/labels"], said["/metadata/annotations"]
    assert (labels[QUEUE_LABEL], annotations[QUEUE_ANNOTATION]) == (SHORT, LONG)
    assert queue_named(labels, annotations) == LONG


def test_a_name_that_fits_is_the_label_alone() -> None:
    gang, intent = gang_and_intent(ray_cluster())
    member = membership(gang.roles[0], gang, intent, PRODUCTS["volcano"]())
    assert QUEUE_ANNOTATION not in member.annotations


def test_of_pods_that_have_only_the_short_form_no_queue_is_known() -> None:
    assert queue_named({QUEUE_LABEL: SHORT, "muster.dev/gang": "g"}, {}) == ""
    assert queue_named({QUEUE_LABEL: SHORT, "muster.dev/gang": "g"}, {QUEUE_ANNOTATION: "another"}) == ""


def test_what_a_user_writes_is_a_name_however_it_looks() -> None:
    assert queue_named({QUEUE_LABEL: SHORT}, {}) == SHORT
    assert queue_named({QUEUE_LABEL: "q"}, {QUEUE_ANNOTATION: "other"}) == "q"


async def test_a_plain_gang_starts_in_a_queue_with_a_long_name() -> None:
    world = await Harness(pods=[plain("one"), plain("two")], queues=[queue(LONG, cpu="2")]).settled()
    assert world.open_pods() == ["one", "two"]
    assert world.client.groups["pair"]["spec"]["queue"] == LONG


async def test_pods_whose_workload_is_gone_count_in_their_queue() -> None:
    """Its PodGroup is gone, too."""
    left = [of_the_long_queue(name) for name in ("gone-head", "gone-w")]
    for one in left:
        one["spec"] |= {"schedulingGates": [], "nodeName": "n"}
    world = await Harness(pods=left, queues=[queue(LONG, cpu="4")]).settled()
    assert str(world.term.ledger.used(LONG)["cpu"]) == "2"


def test_the_podgroup_that_release_makes_is_in_the_queue_of_its_pods() -> None:
    members = [made(Pod, of_the_long_queue("gone-head"))]
    assert substitute(PRODUCTS["volcano"](), NAMESPACE, "g", members)["spec"]["queue"] == LONG
