"""Reviews workloads: what can never run is refused, with numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from muster.admission import Reason, Refusal, Verdict, judge
from muster.intent import find_intent, speaks
from muster.objects import InvalidObjectError, decode
from muster.quantity import ZERO
from muster.workloads import Decoded, Kind, kind_of
from webhook.review import Answer, allow, deny

if TYPE_CHECKING:
    from muster.intent import Defaults, Intent
    from webhook.knowledge import Knowledge
    from webhook.review import Request

__all__ = ["review_workload"]


async def review_workload(request: Request, knowledge: Knowledge, defaults: Defaults) -> Answer:
    """The answer for a new or changed workload; raises ApiError when its queue cannot be read."""
    kind = kind_of(request.kind.api_version, request.kind.kind)
    if kind is None:
        return allow()
    decoded = decode(request.object, kind.decoded)
    if decoded.metadata.deletion_timestamp:
        return allow()
    verdict = await _verdict(kind, decoded, knowledge, defaults)
    if verdict.allowed:
        return allow(warnings=verdict.warnings)
    refusals = verdict.refusals
    if request.operation == "UPDATE":
        # What was wrong before must stay editable, or it could never be put right in steps.
        old = await _verdict(kind, decode(request.old_object, kind.decoded), knowledge, defaults)
        refusals = tuple(refusal for refusal in refusals if not _was_there(refusal, old, verdict))
    if not refusals:
        return allow(warnings=[*(refusal.message for refusal in verdict.refusals), *verdict.warnings])
    return deny(refusals)


def _was_there(refusal: Refusal, old: Verdict, new: Verdict) -> bool:
    """Whether the workload had this fault before, and it has not got worse."""
    if refusal.reason is Reason.EXCEEDS_CAPABILITY and old.gang and new.gang and old.intent and new.intent:
        same_queue = old.intent.queue == new.intent.queue
        return same_queue and all(
            amount <= old.gang.min_resources.get(name, ZERO) for name, amount in new.gang.min_resources.items()
        )
    return refusal in old.refusals


async def _verdict(kind: Kind, decoded: Decoded, knowledge: Knowledge, defaults: Defaults) -> Verdict:
    return judge(kind, decoded, await knowledge.context(_intent(kind, decoded, defaults)))


def _intent(kind: Kind, decoded: Decoded, defaults: Defaults) -> Intent | None:
    """The intent that the verdict will ask about, so that what it names can be read before."""
    if not speaks(decoded.metadata, kind.policy(decoded)):
        return None
    try:
        return find_intent(kind.read(decoded), defaults)
    except InvalidObjectError:
        return None
