"""What a waiting gang is to the ledger: its priority, its age, its need, and what may be evicted for it."""

from muster.model.names import TOPOLOGY_MODE_LABEL
from muster.planning.candidate import candidate
from muster.planning.snapshot import AdmissionRecord
from muster.queueing.ledger import Candidate
from muster.resources.amounts import Resources
from tests.support.manifests.observed import JSON, KEY, amounts, priority_class, ray_cluster, ray_pod, template
from tests.unit.muster.planning.test_plan import HELD, seen


def need(workload: JSON, *pods: JSON) -> Resources:
    return candidate(seen(workload, list(pods)), AdmissionRecord()).need


def test_a_candidate_has_priority_age_and_need() -> None:
    workload = ray_cluster(labels={"volcano.sh/queue-name": "q", "ray.io/priority-class-name": "high"})
    assert candidate(seen(workload, HELD, classes=[priority_class("high", 1000)]), AdmissionRecord()) == Candidate(
        *(KEY, "q", 1000, "2026-11-21T10:00:00Z", amounts(cpu="3", memory="3Gi")),
        lasts=True,
        preempts=True,
        reclaims=True,
    )


def test_nothing_is_evicted_or_taken_back_for_pods_that_may_not_preempt() -> None:
    pods = [ray_pod("head", "headgroup", preemptionPolicy="Never"), *HELD[1:]]
    found = candidate(seen(ray_cluster(), pods), AdmissionRecord())
    assert (found.preempts, found.reclaims) == (False, False)


def test_nobody_is_preempted_for_a_gang_with_a_network_topology() -> None:
    """Volcano leaves such gangs out, as of 1.14.1, but takes back for them."""
    near = ray_cluster(labels={"volcano.sh/queue-name": "q", TOPOLOGY_MODE_LABEL: "soft"})
    found = candidate(seen(near, HELD), AdmissionRecord())
    assert (found.preempts, found.reclaims) == (False, True)


def test_a_candidate_needs_what_its_pods_really_ask_for() -> None:
    """KubeRay adds the autoscaler's container to the head; a template does not show it."""
    assert need(ray_cluster(), ray_pod("head", "headgroup", **template("2")["spec"]), *HELD[1:]) == amounts(
        cpu="4", memory="3Gi"
    )


def test_a_candidate_needs_what_its_template_says_where_pods_ask_for_less() -> None:
    assert need(ray_cluster(head=template("5")), *HELD) == amounts(cpu="7", memory="3Gi")


def test_pods_beyond_the_minimum_are_not_needed() -> None:
    assert need(ray_cluster(), *HELD, ray_pod("w-2")) == amounts(cpu="3", memory="3Gi")
