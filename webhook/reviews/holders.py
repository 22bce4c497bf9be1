"""The present owner of the PodGroup name that a new workload would use, by the controller's rule.

It is read from the apiserver. Where it cannot be read nothing is refused: the controller finds it later, and reports
`ForeignPodGroup`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from muster.kube.client import Client
from muster.kube.errors import ApiError
from muster.model.objects import InvalidObjectError, ObjectMeta
from muster.observe.alive import somebodys
from muster.workloads import Kind
from webhook.server.deadlines import in_time

# A gang of thousands is not read for one review.
_FIRST_PODS = 20

logger = logging.getLogger(__name__)


async def holder_of(
    client: Client, read: Callable[[], Awaitable[ObjectMeta | None]], kind: Kind, name: str, *, seconds: float
) -> str | None:
    """What else lives and has the PodGroup that `read` gives, by its kind; None where nothing has, or nobody can tell.

    A former workload of that kind and `name` is nobody else: its PodGroup goes with it. All takes `seconds` at most.
    """
    try:
        async with in_time(), asyncio.timeout(seconds):
            group = await read()
            owner = group.controller if group else None
            former = owner is not None and (owner.group, owner.kind, owner.name) == (kind.group, kind.kind, name)
            if group is None or former or group.deletion_timestamp:
                return None
            if not await somebodys(client, group, deadline=seconds, first=_FIRST_PODS):
                return None
    except (ApiError, InvalidObjectError, TimeoutError) as error:
        logger.warning(
            "cannot tell who owns the PodGroup of %s %s: %s", kind.kind, name, error, extra={"event": "review.holder"}
        )
        return None
    # Whoever reaches the webhook may ask in any namespace's name, so no other object is named.
    return f"another workload ({owner.kind})" if owner else "a gang of plain pods"
