"""Warnings for the run time limit that a user sets on a workload: unreadable, or not enforced."""

from __future__ import annotations

from collections.abc import Iterator

from muster.gangs.intent import Intent, IntentScope
from muster.gangs.run_limits import unreadable_limits
from muster.model.findings import Finding, Reason
from muster.model.names import KUEUE_MOST_RUN
from muster.workloads import Workload
from muster.workloads.ray import RAY_CLUSTER
from muster.workloads.volcano_job import VOLCANO_JOB


def run_time_findings(workload: Workload, intent: Intent, scope: IntentScope) -> Iterator[Finding]:
    """Yield the findings; for a workload that a controller made only warnings, since its maker is judged itself."""
    made = workload.metadata.controller is not None
    for path, text in unreadable_limits(workload, scope.intent_sources):
        rest = f'"{text[:80]}" is not a duration from 1m to 1440h (60 days); write one such as 90m or 36h'
        yield _finding(Reason.VALUE_IGNORED if made else Reason.INVALID, path, rest)
    run = intent.run_limit
    # Kueue itself enforces its own label.
    if run is None or made or KUEUE_MOST_RUN in run.path:
        return
    if workload.kind is VOLCANO_JOB:
        yield _finding(Reason.VALUE_IGNORED, run.path, "it is ignored, for muster does not start Volcano's own Jobs")
        return
    if workload.lasts:
        rest = f"it is ignored, for a {workload.kind.kind} stays until it is deleted"
        cure = "; set shutdownAfterJobFinishes in a RayJob" if workload.kind is RAY_CLUSTER else ""
        yield _finding(Reason.VALUE_IGNORED, run.path, rest + cure)
        return
    limits = [limit for limit in workload.time_limits if limit.frees_after is not None]
    if any(limit.seconds <= run.seconds for limit in limits):
        return
    longer = f"; {limits[0].path} ends it after {limits[0].text} only" if limits else ""
    rest = f"gangs behind count on {run.text}, and nothing ends the workload then{longer}"
    yield _finding(Reason.BOUND_NOT_ENFORCED, run.path, rest)


def _finding(reason: Reason, path: str, rest: str) -> Finding:
    return Finding(reason, path, f"{path}: {rest}")
