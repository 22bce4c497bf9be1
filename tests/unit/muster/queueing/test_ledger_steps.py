"""48,000 random steps: after each, the ledger says what one says that is made of the same facts at that moment.

Hypothesis (`test_ledger_histories.py`) finds short histories; steps like these showed what it had not found: an
admission that changes where an older gang is short that nobody may pass any more, and one that counts on preemption.
"""

import random
from dataclasses import replace
from functools import cache

import pytest

from muster.queueing.entries import Claim, EntryKey
from muster.queueing.ledger import Candidate, GangKey, Ledger
from muster.queueing.queue_view import ROOT, QueueView
from muster.resources.amounts import Resources
from tests.support.examples import examples
from tests.support.manifests.observed import amounts

STEPS, HISTORIES, CASES = 120, examples(400), 8
LEAVES, PARENTS = ("a", "b", "c", "d"), ("p", "p2")


@cache
def sized(cpu: int, gpu: int = 0) -> Resources:
    """So much of both, nothing named that is not asked for."""
    return amounts(cpu=str(cpu), **({"gpu": str(gpu)} if gpu else {}))


class History:
    """One history, its ledger, and the facts that the ledger was told."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)  # noqa: S311 - to find histories again, not to keep a secret
        self.ledger = Ledger()
        self.queues: dict[str, QueueView] = {}
        self.waits: dict[EntryKey, Candidate] = {}
        self.held: dict[EntryKey, Claim] = {}
        self.nodes: Resources | None = None
        self.now = 1000.0
        for name in LEAVES:
            self.queue(name)
        for name in PARENTS:
            limit = self.random.choice([{}, sized(self.random.randrange(6, 20))])
            self._set(QueueView(name, "Open", limit, by_age=self.random.random() < 0.3))

    def _set(self, view: QueueView) -> None:
        self.queues[view.name] = view
        self.ledger.set_queue(view)

    def queue(self, name: str) -> None:
        """A queue comes, or changes."""
        chance = self.random
        limits = [{}, sized(chance.randrange(3, 12)), sized(chance.randrange(3, 12), chance.randrange(1, 4))]
        self._set(
            QueueView(
                name,
                chance.choice(["Open"] * 6 + ["Closed"]),
                chance.choice(limits),
                parent=chance.choice([ROOT, ROOT, *PARENTS]),
                strict=chance.random() < 0.1,
                patience=chance.choice([0.0, 5.0, 50.0]),
                preempts=chance.random() < 0.15,
                guarantee=chance.choice([{}, {}, sized(2)]),
                deserved=chance.choice([{}, {}, sized(4)]),
                weight=chance.choice([1, 1, 3]),
            )
        )

    def step(self) -> None:
        """Something happens, as often as it might."""
        chance, key = self.random, GangKey("t", f"g{self.random.randrange(14)}")
        self.now += chance.choice([0, 0, 1, 10])
        what = chance.random()
        if what < 0.3:
            self.wait(key)
        elif what < 0.45:
            self.ledger.forget(key)
            self.waits.pop(key, None)
            self.held.pop(key, None)
        elif what < 0.75:
            self.start()
        elif what < 0.85:
            self.change()
        elif what < 0.92:
            self.queue(chance.choice(LEAVES))
        elif what < 0.96:
            self.nodes = chance.choice([None, sized(chance.randrange(5, 25))])
            self.ledger.bound(self.nodes)

    def wait(self, key: EntryKey) -> None:
        """A gang comes to wait, or waits for something else."""
        chance = self.random
        candidate = Candidate(
            key,
            chance.choice(LEAVES),
            chance.choice([0, 5]),
            str(chance.randrange(9)),
            sized(chance.randrange(1, 6), int(chance.random() < 0.3)),
            passed_since=chance.choice([None, None, self.now - chance.randrange(60)]),
            deadline=chance.choice([None, None, self.now + chance.randrange(20)]),
            begun=chance.random() < 0.1,
            lasts=chance.random() < 0.3,
            follows=chance.random() < 0.05,
            preempts=chance.random() < 0.7,
        )
        self.ledger.wait(candidate)
        self.waits[key] = candidate
        self.held.pop(key, None)

    def start(self) -> None:
        """All that may start do, in any order."""
        fits = list(dict.fromkeys(key for queue in LEAVES for key in self.ledger.startable(queue, self.now)))
        self.random.shuffle(fits)
        began = False
        for key in fits:
            candidate = self.waits[key]
            found = self.ledger.decide(key, self.now)
            # The rest of a gang that has begun is decided of again when it has started.
            assert found is not None
            assert found.fits or began
            if found.fits:
                began = began or candidate.begun
                del self.waits[key]
                self._hold(replace(candidate.claim(self.now), running={}))

    def change(self) -> None:
        """A claim turns soft or hard, or is of another size."""
        if self.held:
            key = self.random.choice(list(self.held))
            claim = self.held[key]
            if self.random.random() < 0.5:
                claim = replace(claim, resources=sized(self.random.randrange(1, 6)))
            if self.random.random() < 0.5:
                soft = self.random.choice([{}, claim.resources])
                claim = replace(claim, soft=soft, idle=self.random.random() < 0.5)
            self._hold(replace(claim, running=self.random.choice([None, {}, sized(1)])))

    def _hold(self, claim: Claim) -> None:
        self.ledger.hold(claim)
        self.held[claim.key] = claim

    def startable(self, ledger: Ledger) -> dict[str, list[EntryKey]]:
        """Who may start, in order, by one queue of every field."""
        return {queue: ledger.startable(queue, self.now) for queue in LEAVES}

    def made_now(self) -> Ledger:
        """A ledger of the facts as they are."""
        fresh = Ledger()
        for view in self.queues.values():
            fresh.set_queue(view)
        fresh.bound(self.nodes)
        for claim in self.held.values():
            fresh.hold(claim)
        for candidate in self.waits.values():
            fresh.wait(candidate)
        return fresh


@pytest.mark.parametrize("part", range(CASES))
def test_after_every_step_it_says_what_a_ledger_of_the_same_facts_says(part: int) -> None:
    for seed in range(part, HISTORIES, CASES):
        history = History(seed)
        for step in range(STEPS):
            history.step()
            assert history.startable(history.ledger) == history.startable(history.made_now()), f"seed {seed}, {step=}"
