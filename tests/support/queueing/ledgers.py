"""Ledgers with few queues and gangs, and what they decide at the same moment."""

from dataclasses import replace

from muster.queueing.entries import Claim
from muster.queueing.ledger import Candidate, Decision, GangKey, Ledger
from muster.queueing.queue_view import QueueView
from tests.support.manifests.observed import amounts

NOW = 1_000_000.0


def key(name: str) -> GangKey:
    return GangKey("team", name)


def waiting(name: str, *, queue: str = "q", since: str = "10:00", **need: str) -> Candidate:
    return Candidate(key(name), queue, 0, since, amounts(**need))


def opened(name: str = "q", **limit: str) -> QueueView:
    return QueueView(name, "Open", amounts(**limit))


def ledger(*views: QueueView, held: dict[str, dict[str, str]] | None = None) -> Ledger:
    """A ledger of these queues, where no estimates count; what is held stands in queue q."""
    made = Ledger()
    for view in views:
        made.set_queue(replace(view, trusts_estimates=False))
    for name, claim in (held or {}).items():
        made.hold(Claim(key(name), "q", amounts(**claim)))
    return made


def decision(of: Ledger, name: str) -> Decision:
    found = of.decide(key(name), NOW)
    assert found is not None
    return found


def admitted(of: Ledger, *names: str) -> list[str]:
    return [name for name in names if decision(of, name).fits]
