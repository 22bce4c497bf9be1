"""Numbers of docs/design-notes.md and CONTRIBUTING.md."""

from __future__ import annotations

from tests.support.pages.numbers import Elsewhere, Row

__all__ = ["ELSEWHERE", "ROWS"]

_NOTES, _CONTRIBUTING = "docs/design-notes.md", "CONTRIBUTING.md"

_CHECKS = (
    Row(_CONTRIBUTING, "reviews for «ten minutes»;", (r"text:Makefile /\(or \$\(SECONDS\),(\d+)/",)),
    Row(
        _CONTRIBUTING,
        "`make test` sends «5,000»",
        ("tests.fuzz.test_fuzz:_QUESTIONS", "tests.support.examples:_PART"),
        lambda questions, part: 2 * questions / part,
    ),
    Row(
        _CONTRIBUTING, "it draws «a quarter», as `make test`", ("tests.support.examples:_PART",), lambda part: 1 / part
    ),
    Row(_CONTRIBUTING, "changes «400» statements of the", ("flag:hack/mutate/__main__.py --number",)),
    Row(_CONTRIBUTING, "draws «400» statements of the", ("flag:hack/mutate/__main__.py --number",)),
    Row(
        _CONTRIBUTING,
        "must notice «95 %» of the",
        ("flag:hack/mutate/__main__.py --least",),
        lambda least: least / 100,
    ),
    Row(_CONTRIBUTING, "below «95 %» it fails", ("flag:hack/mutate/__main__.py --least",), lambda least: least / 100),
)

_DECISIONS = (
    Row(_NOTES, "at most «four» steps", ("muster.workloads.owners:MOST_OWNERS",)),
    Row(_NOTES, "retries every «half minute», as for any", ("muster.kube.reflector:Reflector.__init__.absent_retry",)),
    Row(_NOTES, "flavors are tried, up to «20,000».", ("muster.admitters.kueue_quota:_TRIES",)),
    Row(_NOTES, "probe looks for «three seconds» more", ("muster.cli.doctor.probing:_SETTLED",)),
    Row(_NOTES, "roles are too many for «16 KiB»", ("muster.observe.admitted_terms:_LONGEST",)),
    Row(_NOTES, "at once, then after «1», 2, 4,", ("muster.observe.pod_groups:_FIRST_DELAY",)),
    Row(_NOTES, "4, … «300 seconds»", ("muster.observe.pod_groups:_LONGEST_DELAY",)),
    Row(_NOTES, "is believed when «three» counts in a row", ("muster.observe.quota_use:_COUNTS",)),
    Row(_NOTES, "in a row say it, a «second» apart", ("controller.__main__:_TICK",)),
    Row(_NOTES, "again after «ten minutes» without", ("muster.observe.pod_groups:_CALM",)),
    Row(_NOTES, "does not show it, for «five seconds»", ("controller.memory:_WATCH_PATIENCE",)),
    Row(_NOTES, "gang's claim is soft after «five minutes»", ("muster.queueing.queue_view:UNPLACED",)),
    Row(_NOTES, "is hard at once, and for «five minutes»", ("muster.queueing.queue_view:UNPLACED",)),
    Row(_NOTES, "no pod of the gang has a node for «five minutes»", ("muster.queueing.queue_view:UNPLACED",)),
    Row(_NOTES, "`Assembling` is said only after «5 seconds»", ("controller.assembling:SILENCE",)),
    Row(_NOTES, "for the first «ten» in a line", ("controller.status_updates:_HEAD",)),
    Row(_NOTES, "wait until «five seconds» after the last evicted", ("controller.evictions:_FIRST_WAIT",)),
    Row(_NOTES, "has no node yet, «a minute» at most", ("controller.evictions:_LONGEST_FOR_OTHERS",)),
    Row(_NOTES, "for at most «3 s».", ("controller.__main__:_DRAIN",)),
    Row(_NOTES, "gentle: pages of «25», after each", ("muster.kube.listing:_GENTLE",)),
    Row(_NOTES, "took («0.1 s» at most)", ("muster.kube.listing:_LONGEST_REST",)),
    Row(_NOTES, "list asks for «a quarter» of its", ("muster.kube.listing:_SMALLER",), lambda n: 1 / n),
    Row(_NOTES, "at most «100» at once", ("muster.kube.workqueue:_RETRIES_AT_ONCE",)),
    Row(_NOTES, "resumed «five» times in vain", ("muster.kube.progress:_RESUMPTIONS",)),
    Row(_NOTES, "ended within «a second»", ("muster.kube.progress:_SHORTEST_WATCH",)),
    Row(
        _NOTES,
        "have had it for «30 s», and only then signs",
        ("webhook.certificates.trust:RotationTiming.trust_delay",),
    ),
)

ROWS = (*_CHECKS, *_DECISIONS)
ELSEWHERE = (
    Elsewhere(
        _CONTRIBUTING, "| two processors, «23» GB | «1,682» | «1,115» | «4 %»", "printed by `make test` at that commit"
    ),
)
