"""Warnings for a `muster.dev/hold` that holds nothing: on objects that muster does not hold, or unreadable."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from muster.admitters import Admitter
from muster.model.findings import Finding, Reason
from muster.model.modes import GateMode
from muster.model.names import GATE_MODE, HOLD
from muster.model.objects import ObjectMeta
from muster.queueing.queue_view import QueueView
from muster.workloads import PLAIN_POD, WATCHED_KINDS, Kind

_PATH = f"metadata.annotations[{HOLD}]"


def idle_hold(kind: Kind, metadata: ObjectMeta, admitter: Admitter, gate: GateMode) -> Iterator[Finding]:
    """Yield the finding for a workload that is on hold to no effect."""
    text = metadata.annotations.get(HOLD, "false")
    if text == "false":
        return
    if text != "true":
        yield _finding(f'"{text[:80]}" is neither "true" nor "false"; it is ignored')
    elif not kind.owns_pod_group and kind is not PLAIN_POD:
        yield _finding(f"it is ignored on a {kind.kind}; write it on one of its pods, which holds their whole gang")
    elif kind is not PLAIN_POD and kind not in WATCHED_KINDS:
        yield _finding(f"it is ignored on a {kind.kind} of {kind.group}, whose pods muster does not hold")
    elif admitter is Admitter.KUEUE:
        yield _finding(
            "it is ignored, for Kueue admits the gangs of this namespace; set spec.active: false in its Workload"
        )
    elif admitter is Admitter.NONE:
        yield _finding(
            "it is ignored, for the gangs of this namespace have no admitter: they start when they are whole"
        )
    elif gate is GateMode.OFF:
        yield _finding(f"it is ignored, for the gate is off here ({GATE_MODE}): no pod is held")


def idle_hold_of_queue(view: QueueView, admitters: Collection[Admitter]) -> Iterator[Finding]:
    """Yield the finding for a queue that is on hold to no effect, where these may admit."""
    if view.on_hold and Admitter.LEDGER not in admitters:
        yield _finding(f"it is ignored, for no gang waits for a queue here: the admitter is {' or '.join(admitters)}")
    elif view.on_hold and view.gate is GateMode.OFF:
        yield _finding(f"it is ignored, for the gate of the queue is off ({GATE_MODE}): no pod is held")


def _finding(rest: str) -> Finding:
    return Finding(Reason.VALUE_IGNORED, _PATH, f"{_PATH}: {rest}")
