"""Reviews pods at their creation: a member of a gang is bound, pointed at its scheduler, and held by the gate."""

from __future__ import annotations

from typing import TYPE_CHECKING

from muster.admission import Reason, Refusal
from muster.gang import gang_of
from muster.injection import inject, is_free
from muster.intent import Defaults, find_intent, speaks
from muster.names import UNNAMED_SCHEDULERS
from muster.objects import InvalidObjectError, Pod, decode
from muster.schedulers import SCHEDULERS
from muster.workloads import kind_of_owner
from webhook.review import Answer, allow, deny

if TYPE_CHECKING:
    from collections.abc import Mapping

    from muster.workloads import Decoded, Kind
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
    for fresh in (False, True):
        # A role that the workload has not is one that the watch has not shown yet, perhaps: it is read once.
        decoded = await knowledge.workload(kind, request.namespace, owner, fresh=fresh)
        answer = _decide(pod, kind, decoded, knowledge.priorities(), defaults)
        if answer is not None:
            return answer
    return allow()


def _decide(
    pod: Pod,
    kind: Kind,
    decoded: Decoded | None,
    priorities: Mapping[str, int],
    defaults: Defaults,
) -> Answer | None:
    """The answer for a pod of that workload, or None when it has a role that the workload does not know."""
    # Of an owner that is gone the garbage collector takes the pod; nothing is left to wait for.
    if decoded is None or decoded.metadata.deletion_timestamp or not speaks(decoded.metadata, kind.policy(decoded)):
        return allow()
    try:
        workload = kind.read(decoded)
        intent = find_intent(workload, defaults)
        if intent is None:
            return allow()
        gang = gang_of(workload, intent, priorities)
    except InvalidObjectError as error:
        # It slipped past validation. Without numbers there is no gang, and a part of one must not start.
        message = f"{kind.kind} {decoded.metadata.name}: {error}"
        return deny([Refusal(Reason.INVALID, "metadata.ownerReferences", message)])
    name = kind.role_of(pod)
    role = workload.role(name or "")
    if role is None:
        return allow() if name is None else None
    scheduler = SCHEDULERS[intent.scheduler]
    if not is_free(pod, gang, scheduler):
        named = pod.spec.scheduler_name
        if named not in (*UNNAMED_SCHEDULERS, scheduler.name):
            return allow(
                warnings=[f'spec.schedulerName: "{named}" is not {scheduler.name}; muster leaves the pod alone']
            )
        return allow()
    return allow(inject(pod, role, gang, intent, scheduler))
