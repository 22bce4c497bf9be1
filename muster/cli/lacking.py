"""What `muster plan` says where its input, or the cluster, lacks what a workload needs.

The webhook sees every queue, and no workload of a kind that the cluster does not serve. A plan may see less, or more.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from muster.model.findings import Finding, Reason
from muster.model.objects import InvalidObjectError

if TYPE_CHECKING:
    from muster.cli.known import PlanContext
    from muster.cli.manifests import Document
    from muster.validation.workload import Verdict
    from muster.workloads import Decoded, Kind, Workload


def default_queue_unknown(verdict: Verdict, known: PlanContext) -> str:
    """What to say where a workload names no queue, and the input has queues without the default one; "" elsewhere.

    On a cluster with Volcano that queue exists.
    """
    intent = verdict.intent
    if known.of_cluster or intent is None or "queue" in intent.said or known.queues.get(intent.queue) is not None:
        return ""
    where = f'the default queue "{intent.queue}" is not in the input'
    return f"the workload names no queue, and {where}: its limits are not checked" if known.queues else ""


def as_of_input(verdict: Verdict, known: PlanContext) -> Verdict:
    """The verdict, with a queue that nobody has found called missing in the input, where only that was looked at."""
    intent = verdict.intent
    if known.of_cluster or intent is None or known.queues.get(intent.queue) is not None:
        return verdict
    refusals, warnings = (
        tuple(_of_input(one) if one.reason is Reason.QUEUE_NOT_FOUND else one for one in found)
        for found in (verdict.refusals, verdict.warnings)
    )
    return replace(verdict, refusals=refusals, warnings=warnings)


def _of_input(finding: Finding) -> Finding:
    before, after = "does not exist", "is not among the Queues of the input"
    message = finding.message.replace(before, after, 1).replace("; name an existing queue or create it first", "")
    return replace(finding, message=f"{message}; name one of those, add it to the input, or use --cluster")


def readable(kind: Kind, decoded: Decoded, known: PlanContext) -> Workload | None:
    """A workload that asks for nothing, as it is read to say why; None where it cannot be read."""
    with suppress(InvalidObjectError):
        return kind.read(kind.whole(decoded, known.origins.get))
    return None


def unserved(document: Document, known: PlanContext) -> Iterator[Finding]:
    """What is found in an object of a kind that the cluster does not serve."""
    served = document.api_version, document.kind
    if served not in known.unserved or known.schemas.has(*served):  # its CRD may be in the input
        return
    words = f"the cluster does not serve {document.kind} of {document.api_version}; kubectl apply fails there"
    yield Finding(Reason.FIELD_DROPPED, "kind", f"kind: {words} until its operator is installed")
