"""Gangs of two schedulers in one cluster: each is found by its own pods and PodGroups, and both fill the same queue."""

from muster.cluster.cluster import Cluster
from muster.cluster.observe import observe
from muster.gangs.gang import gang_of
from muster.gangs.intent import Defaults, find_intent
from muster.model.gang_states import GangState
from muster.model.names import SCHEDULER_LABEL
from muster.model.objects import Queue, convert
from muster.model.pods import Pod
from muster.planning import messages
from muster.planning.candidate import candidate
from muster.planning.phase import Phase
from muster.planning.plan import GangPlan, plan_gang
from muster.planning.snapshot import AdmissionRecord, GangSnapshot
from muster.queueing.ledger import Ledger
from muster.queueing.queue_view import read_queue
from muster.schedulers import named
from muster.workloads import kind_of
from tests.support.cases import cases
from tests.support.controller.stores import workload_store
from tests.support.manifests.observed import JSON, KEY, made, queue, ray_cluster, ray_pod, read

SCHEDULERS = named("volcano", "coscheduling")
DEFAULTS = Defaults(schedulers=SCHEDULERS)
OTHER = SCHEDULERS["scheduler-plugins-scheduler"]
ADMITTED_AT, LATE = "2026-11-21T10:00:00Z", 2_000_000_000.0
DEMO = ray_cluster(labels={"volcano.sh/queue-name": "q", SCHEDULER_LABEL: OTHER.name})


def seen(
    phase: str = "Pending", node: str = "", now: JSON | None = None, *, stranger: bool = False
) -> tuple[GangSnapshot, Cluster]:
    """An admitted gang of coscheduling, whose pods are in this phase; `now` is its workload as it is by now.

    With a `stranger` one more pod of it is held for Volcano.
    """
    workload = read(DEMO)
    intent = find_intent(workload, DEFAULTS)
    assert intent is not None
    group = OTHER.pod_group(gang_of(workload, intent, {}), intent, workload)
    marks = {"muster.dev/admitted": "uid-demo", "muster.dev/admitted-at": ADMITTED_AT}
    group["metadata"] |= {"uid": "uid-group", "annotations": {**group["metadata"]["annotations"], **marks}}
    cluster = Cluster(schedulers=SCHEDULERS.values())
    pods: list[JSON] = [
        ray_pod(name, role, held=False, schedulerName=OTHER.name, phase=phase, nodeName=node)
        for name, role in (("head", "headgroup"), ("w-0", "workers"), ("w-1", "workers"))
    ]
    cluster.pods.of(OTHER.name).replace_all([made(Pod, one) for one in pods])
    if stranger:
        cluster.pods.of("volcano").replace_all([made(Pod, ray_pod("w-2", "workers"))])
    cluster.pod_groups.of(OTHER.name).replace_all([convert(group, OTHER.pod_groups)])
    kind = kind_of("ray.io/v1", "RayCluster")
    assert kind is not None
    workload_store(cluster, kind).apply("added", made(kind.decoded, now or DEMO))
    return observe(KEY, cluster, DEFAULTS), cluster


def entered(view: GangSnapshot, ledger: Ledger) -> GangPlan:
    ledger.set_queue(read_queue(convert(queue(cpu="3"), Queue)))
    return plan_gang(view, ledger, now=LATE)


def test_a_gang_is_found_by_the_pod_group_of_its_scheduler() -> None:
    view, cluster = seen()
    assert [member.role for member in view.members] == ["headgroup", "workers", "workers"]
    assert view.ours
    assert view.pod_group is not None
    assert (view.pod_group.spec.queue, view.pod_group.spec.min_task_member) == ("q", {"headgroup": 1, "workers": 2})
    assert cluster.gangs() == {KEY}
    assert entered(view, Ledger()).phase is Phase.ADMITTED


def test_a_claim_stays_hard_where_the_scheduler_bounds_no_queue() -> None:
    """Who passed it would fill the queue a second time as soon as nodes come. Its reason is told all the same."""
    view, _ = seen()
    ledger = Ledger()
    standing = entered(view, ledger)
    assert not ledger.soft(KEY, LATE)
    assert messages.admitted(view, standing, "", "")[0] is GangState.UNSCHEDULABLE


def test_nobody_is_evicted_by_queue_for_a_gang_of_another_scheduler_than_volcano() -> None:
    view, _ = seen()
    found = candidate(view, AdmissionRecord())
    assert (found.preempts, found.reclaims) == (False, False)


@cases("phase, state", ("all run", "Running", GangState.RUNNING), ("none runs", "Pending", GangState.ADMITTED))
def test_where_the_scheduler_tells_no_phase_the_pods_tell_it(phase: str, state: GangState) -> None:
    view, _ = seen(phase, node="n")
    assert messages.admitted(view, entered(view, Ledger()), "", "")[0] is state


def test_on_nodes_all_pods_of_others_count_and_members_once() -> None:
    """Of Volcano all pods are in the stores, of others the members of gangs alone."""
    assert Cluster().other_pods == ("spec.schedulerName!=volcano,spec.nodeName!=", "")
    both = Cluster(schedulers=SCHEDULERS.values())
    assert both.other_pods == ("spec.schedulerName!=volcano,spec.nodeName!=", "!muster.dev/gang")


def test_a_workload_keeps_its_scheduler_whatever_its_labels_say_by_now() -> None:
    """Its pods cannot change theirs, and two schedulers place no gang together."""
    moved = ray_cluster(labels={"volcano.sh/queue-name": "q", SCHEDULER_LABEL: "volcano"})
    view, _ = seen(now=moved)
    assert view.intent is not None
    assert (view.intent.scheduler, view.intent.gang_scheduler.product) == (OTHER.name, "coscheduling")
    assert not view.error


def test_pods_of_two_schedulers_are_no_gang() -> None:
    view, _ = seen(stranger=True)
    problem = "pods of the gang are for volcano, and others for scheduler-plugins-scheduler; delete its pods"
    assert view.error == f"spec.schedulerName: {problem}"
