"""Numbers of hack/bench/README.md."""

from __future__ import annotations

from tests.support.pages.numbers import Elsewhere, Row

__all__ = ["ELSEWHERE", "ROWS"]

_README = "hack/bench/README.md"
_PERFORMANCE = "held by tests/docs/test_performance.py"
_KEPT = "tests.unit.webhook.reviews.test_kept"


def _minutes(minutes: float) -> float:
    return minutes * 60


ROWS = (
    Row(_README, "below «100 kB» for", (f"{_KEPT}:MOST_BYTES",)),
    Row(_README, "100 kB for «1.5 MB» |", (f"{_KEPT}:MANIFEST_BYTES",)),
    Row(_README, "takes, «10 ms» are a slice", ("muster.kube.slices:SLICE",)),
    Row(_README, "holds it at «95 %».", ("tests.unit.controller.test_drain:_GOAL",)),
    Row(_README, "and for «100 seconds» after that", ("hack.bench.writes:_SECONDS",)),
    Row(_README, "in any of «100 seconds» | 5, of", ("hack.bench.writes:_SECONDS",)),
    Row(_README, "| «5», of all queues together", ("controller.status_updates:_PER_SECOND",)),
    Row(_README, "and then «5» a second; no event |", ("controller.status_updates:_PER_SECOND",)),
    Row(_README, "begins a cycle every «five seconds»", ("hack.bench.fleet.place:_CYCLE",)),
    Row(_README, "how it goes every «five seconds»", ("hack.bench.fleet.__main__:_EVERY",)),
    Row(_README, "same cluster for «two hours» (`--minutes`)", ("flag:hack/bench/churn.py --minutes",), _minutes),
    Row(_README, "rest, for «a day», by age", ("hack.bench.siblings:_MINUTES",), _minutes),
    Row(_README, "run for «10» to", ("hack.bench.churn:_RUNS.0",)),
    Row(_README, "run for 10 to «60 seconds», end", ("hack.bench.churn:_RUNS.1",)),
    Row(_README, "Every «ten seconds» (`--every`)", ("flag:hack/bench/churn.py --every",)),
    Row(_README, "«twice» the standard deviation", ("hack.bench.trends:_SPREADS",)),
    Row(_README, "or «3 MB» or", ("hack.bench.churn:_LEAST.MB",), lambda megabytes: megabytes * 1e6),
    Row(_README, "or 3 MB or «5» of anything", ("hack.bench.churn:_LEAST_OF_OTHERS",)),
    Row(_README, "«five minutes» after it started", ("muster.queueing.queue_view:UNPLACED",)),
)
ELSEWHERE = (
    Elsewhere(_README, "the goal is below «10 ms» at 4,000", "the goal of hack.bench.reconcile"),
    Elsewhere(_README, "take less than «10 ms» with 16,000;", "a goal of hack.bench.forecast"),
    Elsewhere(_README, "| below «2 ms» |", "a goal of hack.bench.waiting"),
    Elsewhere(_README, "| below «10 ms» |", "a goal of hack.bench.waiting"),
    Elsewhere(_README, "for it | below «1 ms», and 2 told", "a goal of hack.bench.waiting"),
    Elsewhere(_README, "been bypassed | below «1 ms», and none told", "a goal of hack.bench.waiting"),
    Elsewhere(_README, "| gangs «a second», beside raw", "what a column of hack.bench.drain counts by"),
    Elsewhere(
        _README,
        "controller for «20 seconds»: of the first in which it is below «1 %»",
        "by what hack.bench.gang tells idle",
    ),
    Elsewhere(_README, "or after «ten minutes» | none", "how long hack.bench.gang waits for that"),
    Elsewhere(_README, "«1 kB» for each gang is what", "a row of docs/operations.md"),
    Elsewhere(_README, "when shared; 17 beside «99 %» |", "printed by hack.bench.siblings"),
    Elsewhere(_README, "longer than «ten seconds», where", "how hack.bench.peers tells halves"),
    Elsewhere(_README, "| below «50 ms», as any step", "the goal of hack.bench.steps"),
    Elsewhere(_README, "| below «1 ms», and no gang is", "a goal of hack.bench.waiting"),
    Elsewhere(_README, "| below «1 ms» |", "a goal of hack.bench.waiting"),
    Elsewhere(_README, "no step above «50 ms», with", "the goal of hack.bench.steps"),
    Elsewhere(_README, "two pods of «6 kB» for each", f"{_PERFORMANCE}::test_the_pods_of_the_first_list"),
    Elsewhere(_README, "they took «two hours», and 19 GB.", "docs/performance.md has that run"),
    Elsewhere(_README, "two hours, and «19 GB».", "docs/performance.md has that run"),
    Elsewhere(_README, "*«An hour»* is the growth", "what a column of hack.bench.churn counts by"),
    Elsewhere(_README, "(`--rate`, «a second»;", "what the flag counts by"),
)
