"""Where Volcano takes back what queues hold beyond their shares, others may start for what it will get."""

from dataclasses import replace

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import rule

from muster.model.names import RECLAIM
from muster.model.objects import Queue
from muster.queueing.entries import Claim
from muster.queueing.ledger import Candidate, GangKey, Ledger
from muster.queueing.queue_view import ROOT, QueueView, read_queue
from muster.resources.amounts import Resources, minus
from tests.support.cases import cases
from tests.support.examples import examples
from tests.support.manifests.observed import amounts, made
from tests.support.queueing.facts import Holder
from tests.unit.muster.queueing.test_ledger_histories import History

NOW = 1_000_000.0


def root(*, reclaims: bool = True) -> QueueView:
    return QueueView(ROOT, "Open", {}, parent="", reclaims=reclaims)


def queue(name: str, deserved: int, **capability: str) -> QueueView:
    """A queue that deserves so many cpu."""
    return QueueView(name, "Open", amounts(**capability), deserved=amounts(cpu=str(deserved)))


def ledger(*, reclaims: bool = True, nodes: int = 10) -> Ledger:
    """Of ten cpu, rich and poor deserve five each; rich holds nine, of which its gang can spare four."""
    books = Ledger()
    for view in (root(reclaims=reclaims), queue("rich", 5), queue("poor", 5), queue("third", 0)):
        books.set_queue(view)
    books.bound(amounts(cpu=str(nodes)))
    hold(books, "elastic", "rich", 9, spare=4)
    return books


def hold(books: Ledger, name: str, where: str, cpu: int, *, spare: int = 0) -> bool:
    return books.hold(Claim(GangKey("team", name), where, amounts(cpu=str(cpu)), spare=amounts(cpu=str(spare))))


def waits(name: str, where: str, cpu: int, *, reclaims: bool = True, passed: float | None = None) -> Candidate:
    key = GangKey("team", name)
    return Candidate(key, where, 0, f"10:00 {name}", amounts(cpu=str(cpu)), passed_since=passed, reclaims=reclaims)


def starts(books: Ledger, *candidates: Candidate) -> list[str]:
    """Who may start, of these."""
    for one in candidates:
        books.wait(one)
    return [key.name for key in books.startable(candidates[0].queue, NOW)]


def test_a_gang_starts_for_what_others_hold_beyond_their_share_and_can_spare() -> None:
    assert starts(ledger(), waits("claimant", "poor", 5)) == ["claimant"]


def test_without_the_annotation_it_waits_for_free_room() -> None:
    assert starts(ledger(reclaims=False), waits("claimant", "poor", 5)) == []
    assert starts(ledger(reclaims=False), waits("small", "poor", 1)) == ["small"]


def test_a_queue_takes_back_no_more_than_its_own_share() -> None:
    assert starts(ledger(), waits("claimant", "poor", 4), waits("second", "poor", 2)) == ["claimant"]
    assert starts(ledger(), waits("claimant", "third", 2)) == []


def test_no_more_is_counted_on_than_gangs_can_spare() -> None:
    books = ledger()
    assert hold(books, "elastic", "rich", 9, spare=3)
    assert starts(books, waits("claimant", "poor", 5)) == []
    assert starts(books, waits("claimant", "poor", 4)) == ["claimant"]


def test_what_a_queue_holds_within_its_share_is_its_own() -> None:
    books = ledger(nodes=6)
    hold(books, "elastic", "rich", 6, spare=6)
    assert starts(books, waits("claimant", "poor", 2)) == []
    assert starts(books, waits("claimant", "poor", 1)) == ["claimant"]


def test_the_same_is_counted_on_once() -> None:
    """One that started for it holds room before the others have given it back."""
    books = ledger()
    assert starts(books, waits("claimant", "poor", 3), waits("second", "poor", 2)) == ["claimant", "second"]
    hold(books, "claimant", "poor", 3)
    hold(books, "second", "poor", 2)
    books.set_queue(queue("third", 5))
    assert starts(books, waits("another", "third", 1)) == []


def test_a_gang_whose_scheduler_takes_nothing_back_waits() -> None:
    assert starts(ledger(), waits("claimant", "poor", 5, reclaims=False)) == []


def test_what_bounds_the_queue_itself_is_not_taken_back() -> None:
    books = ledger()
    books.set_queue(queue("poor", 5, cpu="3"))
    assert starts(books, waits("claimant", "poor", 4)) == []


def test_one_whose_patience_is_over_starts_too() -> None:
    assert starts(ledger(), waits("claimant", "poor", 5, passed=NOW - 1000)) == ["claimant"]


def test_what_can_be_spared_is_news_only_where_it_is_taken_back() -> None:
    for reclaims in (False, True):
        books = ledger(reclaims=reclaims)
        books.newly_startable("rich", NOW)
        assert hold(books, "elastic", "rich", 9, spare=2) is reclaims
        assert (books.newly_startable("rich", NOW) is None) is not reclaims


def test_where_no_nodes_bind_the_queues_it_is_news_in_its_own() -> None:
    books = Ledger()
    for view in (root(), queue("rich", 5, cpu="20"), queue("poor", 5, cpu="20")):
        books.set_queue(view)
    hold(books, "elastic", "rich", 9, spare=4)
    for name in ("rich", "poor"):
        books.newly_startable(name, NOW)
    assert hold(books, "elastic", "rich", 9, spare=2)
    assert books.newly_startable("rich", NOW) is not None
    assert books.newly_startable("poor", NOW) is None


def test_a_queue_that_is_not_reclaimable_gives_nothing_back() -> None:
    said = made(Queue, {"metadata": {"name": "rich"}, "spec": {"reclaimable": False}})
    assert [read_queue(one).reclaimable for one in (said, made(Queue, {"metadata": {"name": "rich"}}))] == [False, True]
    books = ledger()
    books.set_queue(replace(queue("rich", 5), reclaimable=False))
    assert starts(books, waits("claimant", "poor", 5)) == []
    assert starts(books, waits("small", "poor", 1)) == ["small"]


@cases(
    "guaranteed, most",
    ("more is there", "2", 5),
    ("two of four pods may go", "7", 3),
    ("none may go", "9", 1),
    ("less is there", "12", 1),
)
def test_no_pod_is_taken_that_leaves_its_queue_less_than_its_guarantee(guaranteed: str, most: int) -> None:
    """It holds nine of each resource, and each of its four spare pods has one of each."""
    books = ledger()
    books.set_queue(replace(queue("rich", 5), guarantee=amounts(gpu=guaranteed)))
    both = {"cpu": "9", "gpu": "9"}
    books.hold(Claim(GangKey("team", "elastic"), "rich", amounts(**both), spare=amounts(cpu="4", gpu="4")))
    found = [cpu for cpu in range(1, 6) if starts(books, waits("claimant", "poor", cpu))]
    assert max(found) == most


@cases(
    "deserved, guarantee, counts",
    ("cpu is deserved", {"cpu": "5"}, {}, True),
    ("only gpu is", {"gpu": "5"}, {}, False),
    ("cpu is guaranteed", {"gpu": "5"}, {"cpu": "2"}, True),
    ("by weight", {}, {}, True),
)
def test_a_queue_that_deserves_nothing_of_what_a_gang_needs_gets_nothing_back(
    deserved: dict[str, str], guarantee: dict[str, str], counts: bool
) -> None:
    """By the plugin `capacity`; without any `deserved` its share is by weight, and `proportion` gives it that."""
    books = ledger()
    books.set_queue(replace(queue("poor", 0), deserved=amounts(**deserved), guarantee=amounts(**guarantee)))
    assert starts(books, waits("claimant", "poor", 2)) == ["claimant"] * counts


def test_the_root_says_it() -> None:
    said = made(Queue, {"metadata": {"name": "root", "annotations": {RECLAIM: "beyond-share"}}})
    assert read_queue(said).reclaims
    wrong = made(Queue, {"metadata": {"name": "root", "annotations": {RECLAIM: "yes"}}})
    assert not read_queue(wrong).reclaims
    assert [one.field for one in read_queue(wrong).problems] == [f"metadata.annotations[{RECLAIM}]"]


SIZES = st.builds(lambda cpu, gpu: amounts(cpu=str(cpu), gpu=str(gpu)), st.integers(0, 4), st.integers(0, 2))
LEAVES = ("t1", "t2", "u")


class Reclaiming(History):
    """Three queues on nodes that are often full; rich ones are beyond their shares, and can spare much."""

    def __init__(self) -> None:
        super().__init__()
        self.other_nodes(9, 4)
        for name in (ROOT, "t", *LEAVES):
            self._set(self._view(name, 2))

    def _set(self, view: QueueView) -> None:
        self.ledger.set_queue(view)
        self.world.queues[view.name] = view

    def _view(
        self,
        name: str,
        deserved: int,
        *,
        guarantee: Resources | None = None,
        patience: float = 60.0,
        reclaims: bool = True,
        reclaimable: bool = True,
    ) -> QueueView:
        return QueueView(
            name=name,
            state="Open",
            limit={},
            parent={ROOT: "", "t1": "t", "t2": "t"}.get(name, ROOT),
            # With 3 it says nothing of cpu.
            deserved=amounts(gpu="1", **({} if deserved == 3 else {"cpu": str(deserved)})) if deserved else {},
            guarantee=guarantee or {},
            patience=patience,
            reclaimable=reclaimable,
            reclaims=reclaims and name == ROOT,
        )

    @rule(
        name=st.sampled_from(LEAVES),
        deserved=st.integers(0, 4),
        patience=st.sampled_from([0.0, 60.0]),
        guarantee=st.sampled_from([{}, {}, amounts(gpu="1"), amounts(cpu="1", gpu="3")]),
        reclaimable=st.sampled_from([True, True, False]),
    )
    def a_share_changes(
        self, name: str, deserved: int, patience: float, guarantee: Resources, *, reclaimable: bool
    ) -> None:
        """And how long the queue is patient, and whether it gives back."""
        self._set(self._view(name, deserved, patience=patience, guarantee=guarantee, reclaimable=reclaimable))

    @rule(reclaims=st.sampled_from([True, True, False]))
    def the_root_changes(self, *, reclaims: bool) -> None:
        """It is taken back, or no longer."""
        self._set(self._view(ROOT, 0, reclaims=reclaims))

    @rule(cpu=st.integers(6, 12), gpu=st.integers(1, 5))
    def other_nodes(self, cpu: int, gpu: int) -> None:
        """A few more, or less."""
        self.world.nodes = amounts(cpu=str(cpu), gpu=str(gpu))
        self.ledger.bound(self.world.nodes)

    @rule(
        name=st.sampled_from("abc"),
        queue=st.sampled_from(LEAVES),
        claim=st.integers(2, 7),
        gpu=st.integers(0, 3),
        needed=st.integers(1, 3),
        lasts=st.booleans(),
    )
    def an_elastic_gang_runs(self, name: str, queue: str, claim: int, gpu: int, needed: int, *, lasts: bool) -> None:
        """It can spare what it does not need."""
        whole = amounts(cpu=str(claim), gpu=str(gpu))
        spare: Resources = minus(whole, amounts(cpu=str(needed)))
        self.a_gang_holds(name, Holder(queue, whole, 0, "08:00", {}, idle=False, lasts=lasts, spare=spare))

    @rule(
        name=st.sampled_from("def"),
        queue=st.sampled_from(LEAVES),
        need=SIZES,
        passed=st.sampled_from([None, NOW - 100, NOW - 10]),
        lasts=st.booleans(),
        reclaims=st.sampled_from([True, True, True, False]),
    )
    def a_claimant_waits(
        self, name: str, queue: str, need: Resources, passed: float | None, *, lasts: bool, reclaims: bool
    ) -> None:
        """Patient or not."""
        self.a_gang_waits(
            Candidate(
                *(GangKey("other", name), queue, 0, "09:00", need),
                passed_since=passed,
                lasts=lasts,
                reclaims=reclaims,
            )
        )


Reclaiming.TestCase.settings = settings(max_examples=examples(150), stateful_step_count=25, deadline=None)
TestReclaiming = Reclaiming.TestCase


@cases("kept, free", ("old enough", False, True), ("too young", True, False))
def test_where_volcano_preempts_no_gang_counts_on_a_claim_that_is_too_young(*, kept: bool, free: bool) -> None:
    books = Ledger()
    books.set_queue(QueueView("q", "Open", amounts(cpu="4"), preempts=True))
    books.hold(Claim(GangKey("team", "low"), "q", amounts(cpu="4"), kept=kept))
    urgent = replace(waits("urgent", "q", 2), priority=10, preempts=True)
    assert bool(starts(books, urgent)) is free
    books.hold(Claim(GangKey("team", "low"), "q", amounts(cpu="4")))
    assert starts(books, urgent) == ["urgent"]
