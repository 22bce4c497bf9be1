"""The intent of a gang while its pods are held: the owner's last request stands until the held pods are gone.

Otherwise removing a label, or creating one pod without muster, would open the gates of a whole gang in a full queue.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from muster.gangs.gang import priority_value
from muster.gangs.intent import Defaults, Intent, IntentScope, named_queue
from muster.model.names import queue_named
from muster.model.objects import InvalidObjectError
from muster.model.pods import Pod
from muster.planning.snapshot import GangSnapshot
from muster.workloads import Workload


def last_asked(
    snapshot: GangSnapshot, workload: Workload, scope: IntentScope, priorities: Mapping[str, int], defaults: Defaults
) -> Intent:
    """The intent for which the held pods of a workload that asks for nothing any more were made.

    The pods name scheduler and class, which cannot be changed there. The queue is the queue of the PodGroup, unless
    the workload itself names another queue: then the gang waits in that queue.
    """
    pods = [member.pod for member in snapshot.members if member.held]
    said = named_queue(workload, scope)
    of_group = snapshot.pod_group.spec.queue if snapshot.pod_group else ""
    of_pods = next(filter(None, (queue_named(pod.metadata.labels, pod.metadata.annotations) for pod in pods)), "")
    classes = {pod.spec.priority_class_name for pod in pods}
    named = (pod.spec.scheduler_name for pod in pods)
    scheduler = next((name for name in named if name in defaults.schedulers), defaults.scheduler)
    return Intent(
        scheduler=scheduler,
        gang_scheduler=defaults.schedulers[scheduler],
        queue=(said[1] if said else "") or of_group or of_pods or defaults.queue,
        priority_class=min(classes, key=lambda name: (priority_value(name, priorities), name), default=""),
        paths={"queue": said[0]} if said else {},
        prioritise_pods=True,
        topology=workload.topology,
    )


def of_its_scheduler(intent: Intent, snapshot: GangSnapshot, defaults: Defaults) -> Intent:
    """The intent with the scheduler for which the gang's PodGroup was made: a workload keeps it for its life.

    Pods cannot change theirs, and two schedulers place no gang together. Raises InvalidObjectError where its pods name
    different ones all the same: they came while the webhook could not tell.
    """
    if snapshot.ours and not snapshot.stale and snapshot.pod_group is not None:
        product = snapshot.pod_group.scheduler
        kept = next((one for one in defaults.schedulers.values() if one.product == product), None)
        if kept is not None and intent.gang_scheduler.product != product:
            intent = replace(intent, scheduler=kept.name, gang_scheduler=kept)
    others = sorted({member.pod.spec.scheduler_name for member in snapshot.members} - {intent.scheduler})
    if others and snapshot.holds:
        problem = f"pods of the gang are for {others[0]}, and others for {intent.scheduler}; delete its pods"
        raise InvalidObjectError("spec.schedulerName", problem)
    scheduler = intent.gang_scheduler
    if scheduler.counts_living and any(
        member.held and not scheduler.bound_to(member.pod) for member in snapshot.members
    ):
        problem = "the apiserver dropped it: it needs the feature gate GenericWorkload and scheduling.k8s.io/v1beta1"
        raise InvalidObjectError("spec.schedulingGroup", problem)
    return intent


def class_of_pods(intent: Intent, pods: Sequence[Pod], priorities: Mapping[str, int]) -> Intent:
    """The intent with no higher class than its pods got, where the workload as a whole names one.

    A pod keeps the class of its template, and no label changes the class of an existing pod: otherwise a user whose
    quota allows few pods of a class, or none, could name that class in a label and put the whole gang first.
    """
    numbered = [pod.spec for pod in pods if pod.spec.priority is not None]
    lowest = min(numbered, key=lambda spec: (spec.priority or 0, spec.priority_class_name), default=None)
    if lowest is None or not intent.prioritise_pods:
        return intent
    if priority_value(intent.priority_class, priorities) <= (lowest.priority or 0):
        return intent
    return replace(intent, priority_class=lowest.priority_class_name)
