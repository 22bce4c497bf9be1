"""Reviews pods at their creation: a member of a gang is bound, pointed at its scheduler, and held by the gate."""

from __future__ import annotations

from typing import TYPE_CHECKING

from muster.admission import Reason, Refusal
from muster.gang import gang_of
from muster.injection import inject, is_free
from muster.intent import Defaults, find_intent, speaks
from muster.objects import InvalidObjectError, Pod, decode
from muster.schedulers import SCHEDULERS
from muster.workloads import kind_of_owner
from webhook.review import Answer, allow, deny

if TYPE_CHECKING:
    from webhook.knowledge import Knowledge
    from webhook.review import Request

__all__ = ["review_pod"]


async def review_pod(request: Request, knowledge: Knowledge, defaults: Defaults) -> Answer:
    """The answer for a new pod.

    Raises ApiError when the pod's owner cannot be read, InvalidObjectError when the pod is no pod.
    """
    pod = decode(request.object, Pod)
    owner = pod.metadata.controller
    kind = kind_of_owner(owner)
    if owner is None or kind is None:
        return allow()
    decoded = await knowledge.workload(kind, request.namespace, owner)
    # Of an owner that is gone the garbage collector takes the pod; nothing is left to wait for.
    if decoded is None or decoded.metadata.deletion_timestamp or not speaks(decoded.metadata, kind.policy(decoded)):
        return allow()
    try:
        workload = kind.read(decoded)
        intent = find_intent(workload, defaults)
        if intent is None:
            return allow()
        gang = gang_of(workload, intent, knowledge.priorities())
    except InvalidObjectError as error:
        # It slipped past validation. Without numbers there is no gang, and a part of one must not start.
        message = f"{kind.kind} {owner.name}: {error}"
        return deny([Refusal(Reason.INVALID, "metadata.ownerReferences", message)])
    role = workload.role(kind.role_of(pod) or "")
    scheduler = SCHEDULERS[intent.scheduler]
    if role is None or not is_free(pod, gang, scheduler):
        named = pod.spec.scheduler_name
        if named not in ("", "default-scheduler", scheduler.name):
            return allow(
                warnings=[f'spec.schedulerName: "{named}" is not {scheduler.name}; muster leaves the pod alone']
            )
        return allow()
    return allow(inject(pod, role, gang, intent, scheduler))
