"""Reviews workloads: what can never run is refused, with numbers."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from muster.admission import Verdict, is_judged, judge
from muster.findings import Finding, Reason, Severity
from muster.intent import find_intent, speaks
from muster.objects import InvalidObjectError, decode
from muster.quantity import ZERO
from muster.workloads import Decoded, Kind, kind_of
from webhook.beside import beside
from webhook.review import Answer, allow, deny

if TYPE_CHECKING:
    from muster.intent import Defaults, Intent, Surroundings
    from webhook.knowledge import Knowledge
    from webhook.review import Request

__all__ = ["review_workload"]


async def review_workload(request: Request, knowledge: Knowledge, defaults: Defaults) -> Answer:
    """The answer for a new or changed workload; raises ApiError when its queue cannot be read."""
    kind = kind_of(request.kind.api_version, request.kind.kind)
    if kind is None or defaults.validation.mode is Severity.OFF:
        return allow()
    decoded = await beside(decode, request.object, kind.decoded)
    if not is_judged(decoded.metadata):
        return allow()
    around = await knowledge.around(request.namespace)
    around = replace(around, owners=await knowledge.owners(decoded.metadata))
    new = request.operation == "CREATE"
    verdict = await _verdict(kind, decoded, around, knowledge, defaults, new=new)
    if verdict.allowed:
        return allow(warnings=verdict.warnings)
    refusals = verdict.refusals
    if request.operation == "UPDATE":
        # What was wrong before must stay editable, or it could never be put right in steps.
        before = await beside(decode, request.old_object, kind.decoded)
        old = await _verdict(kind, before, around, knowledge, defaults)
        refusals = await beside(_new, refusals, old, verdict)
    if not refusals:
        return allow(warnings=[*verdict.refusals, *verdict.warnings])
    return deny(refusals)


def _new(refusals: tuple[Finding, ...], old: Verdict, new: Verdict) -> tuple[Finding, ...]:
    return tuple(refusal for refusal in refusals if not _was_there(refusal, old, new))


def _was_there(refusal: Finding, old: Verdict, new: Verdict) -> bool:
    """Whether the workload had this fault before, and it has not got worse.

    Of one that made no gang nobody knows which other faults it had.
    """
    if any(fault.reason is Reason.INVALID for fault in old.refusals):
        return True
    if refusal.reason is Reason.EXCEEDS_CAPABILITY and old.gang and new.gang and old.intent and new.intent:
        same_queue = old.intent.queue == new.intent.queue
        return same_queue and all(
            amount <= old.gang.min_resources.get(name, ZERO) for name, amount in new.gang.min_resources.items()
        )
    if refusal.reason is Reason.EXCEEDS_RESOURCE_QUOTA and old.gang and new.gang:
        before, now = old.gang.charged, new.gang.charged
        had = any(fault.reason is Reason.EXCEEDS_RESOURCE_QUOTA for fault in old.refusals)
        return had and all(amount <= before.get(name, ZERO) for name, amount in now.items())
    return refusal in old.refusals


async def _verdict(
    kind: Kind,
    decoded: Decoded,
    around: Surroundings,
    knowledge: Knowledge,
    defaults: Defaults,
    *,
    new: bool = False,
) -> Verdict:
    origin = await knowledge.origin(kind, decoded)
    intent = await beside(_intent, kind, decoded, origin, around, defaults)
    context = replace(await knowledge.context(intent, around, new=new), origin=lambda _: origin)
    return await beside(judge, kind, decoded, context)


def _intent(
    kind: Kind, decoded: Decoded, origin: object | None, around: Surroundings, defaults: Defaults
) -> Intent | None:
    """The intent that the verdict will ask about, so that what it names can be read before."""
    if origin is not None:
        decoded = kind.whole(decoded, lambda _: origin)
    around = replace(around, nearer=kind.voices(decoded))
    if not speaks(decoded.metadata, kind.policy(decoded), around):
        return None
    try:
        return find_intent(kind.read(decoded), defaults, around)
    except InvalidObjectError:
        return None
