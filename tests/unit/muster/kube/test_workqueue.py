import asyncio
import logging
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from hack.testbed.waiting import PATIENCE
from muster.kube.errors import ApiError
from muster.kube.workqueue import QueueCore, QueueShutDown, WorkQueue, work
from tests.support.cases import cases
from tests.support.faults.apiserver import eventually

KEYS = st.sampled_from("abc")


class QueueMachine(RuleBasedStateMachine):
    """Any order of calls, against a model of what is wanted, delayed and in work."""

    def __init__(self) -> None:
        super().__init__()
        self.queue: QueueCore[str] = QueueCore(base=1.0, cap=8.0)
        self.now = 0.0
        self.wanted: set[str] = set()
        self.later: dict[str, float] = {}
        self.working: set[str] = set()
        self.line: list[str] = []

    def queue_up(self) -> None:
        """Whoever became ready stands at the end of the line."""
        self.line += [key for key in sorted(self.wanted - self.working) if key not in self.line]

    @rule(key=KEYS)
    def add(self, key: str) -> None:
        """A key becomes wanted."""
        self.queue.add(key)
        self.wanted.add(key)
        self.queue_up()

    @rule(key=KEYS, delay=st.integers(1, 20))
    def add_later(self, key: str, delay: int) -> None:
        """The earliest time counts."""
        self.queue.add_at(key, self.now + delay)
        self.later[key] = min(self.later.get(key, float("inf")), self.now + delay)

    @rule(seconds=st.integers(0, 10))
    def time_passes(self, seconds: int) -> None:
        """What is due becomes wanted, and the next time is told."""
        self.now += seconds
        following = self.queue.advance(self.now)
        for key in [key for key, when in self.later.items() if when <= self.now]:
            del self.later[key]
            self.wanted.add(key)
        assert following == min(self.later.values(), default=None)
        # Of several that become ready at the same time any may be first.
        self.line += [key for key in self.queue._ready if key not in self.line]

    @rule(key=KEYS)
    def drop_later(self, key: str) -> None:
        """What is ready by now stays so."""
        self.queue.drop_later(key)
        self.later.pop(key, None)

    @rule()
    def take(self) -> None:
        """Only what is wanted is handed out, never twice, and in the order in which it became ready."""
        key = self.queue.take()
        if key is None:
            assert self.wanted <= self.working, "whatever is wanted and not in work is handed out"
            return
        assert key not in self.working, "a key is never in two hands"
        assert key in self.wanted, "nothing is handed out that nobody wants"
        assert key == self.line.pop(0), "nobody is overtaken"
        self.working.add(key)
        self.wanted.discard(key)

    @precondition(lambda self: self.working)
    @rule(data=st.data(), failed=st.booleans())
    def finish(self, data: st.DataObject, failed: bool) -> None:
        """Done, or failed and wanted again later."""
        key = data.draw(st.sampled_from(sorted(self.working)))
        if failed:
            delay = self.queue.retry(key, self.now)
            assert 1.0 <= delay <= 8.0
            self.later[key] = min(self.later.get(key, float("inf")), self.now + delay)
        else:
            self.queue.forget(key)
        self.queue.done(key)
        self.working.discard(key)
        self.queue_up()

    @invariant()
    def counted(self) -> None:
        """The statistics are the model's."""
        numbers = self.queue.statistics()
        assert numbers.ready == len(self.wanted - self.working)
        assert numbers.processing == len(self.working)
        assert numbers.delayed == len(self.later)


TestQueue = QueueMachine.TestCase


def test_a_time_that_counts_no_more_is_dropped_before_it_comes() -> None:
    """A gang whose time limit ends next week, and whose words are refused today, is looked at each half minute."""
    queue: QueueCore[str] = QueueCore(cap=30.0)
    week, taken = 7 * 86400.0, 0
    queue.add("gang")
    for now in range(0, 86400, 30):
        queue.add_at(f"other {now}", now + 100.0)
        queue.advance(now)
        while (key := queue.take()) is not None:
            if key == "gang":
                taken += 1
                queue.add_at(key, week + now / 1e6)
                queue.retry(key, now)
            queue.done(key)
    assert taken > 2000
    assert len(queue._heap) < 1100
    queue.advance(week - 1)
    while (key := queue.take()) is not None:
        queue.done(key)
    queue.add_at("gang", week)
    assert queue.advance(week - 1) == week
    queue.advance(week)
    assert (queue.take(), queue.take()) == ("gang", None), "the time that counts is kept"


def test_delays_grow_per_key_and_begin_again() -> None:
    """Base, doubled, capped; a success or another key does not inherit it."""
    queue: QueueCore[str] = QueueCore(base=0.005, cap=0.03)
    assert [queue.retry("a", 0.0) for _ in range(5)] == [0.005, 0.01, 0.02, 0.03, 0.03]
    assert queue.retry("b", 0.0) == 0.005
    queue.forget("a")
    assert queue.retry("a", 0.0) == 0.005


@given(failures=st.integers(1, 3000))
def test_no_number_of_failures_overflows(failures: int) -> None:
    """An object that fails for years waits for the cap."""
    queue: QueueCore[str] = QueueCore()
    for _ in range(failures):
        assert 0.005 <= queue.retry("a", 0.0) <= 1000.0


def test_all_failures_together_keep_a_rate() -> None:
    """Ten thousand keys that fail at once come back spread over time, each once, and none is forgotten."""
    queue: QueueCore[int] = QueueCore()
    delays = sorted(queue.retry(key, 0.0) for key in range(10_000))
    assert delays[99] == 0.005
    assert delays[100] > 0.005
    assert 98 < delays[-1] < 100
    assert queue.advance(100.0) is None
    assert queue.ready == 10_000


def test_a_key_that_events_bring_back_takes_nobody_elses_retries() -> None:
    """It fails at each of its events, 200 times a second: who fails for the first time is not behind all of these."""
    queue: QueueCore[str] = QueueCore(cap=30.0)
    for event in range(12_000):
        now = event / 200
        queue.advance(now)
        queue.add("noisy")
        while (key := queue.take()) is not None:
            queue.retry(key, now)
            queue.done(key)
    assert queue.retry("quiet", 60.0) < 0.1


def test_a_busy_key_does_not_keep_the_others_waiting() -> None:
    """However often a key is added while it is worked on, everybody who waits comes before it comes again."""
    queue: QueueCore[str] = QueueCore()
    for first in ("busy", "a", "b"):
        queue.add(first)
    order: list[str] = []
    while len(order) < 7 and (key := queue.take()):
        order.append(key)
        for again in ("busy", "busy", "a", "b"):
            queue.add(again)
        queue.done(key)
    assert order == ["busy", "a", "b", "busy", "a", "b", "busy"]


def test_giving_back_what_was_not_taken_is_a_mistake() -> None:
    """It would let a key into two hands."""
    with pytest.raises(ValueError, match="'a'"):
        QueueCore[str]().done("a")


async def test_a_key_added_during_its_work_comes_back_after_it() -> None:
    """The change that came meanwhile is not lost, and nobody works on it at the same time."""
    queue: WorkQueue[str] = WorkQueue()
    queue.add("a")
    assert await queue.get() == "a"
    queue.add("a")
    waiting = asyncio.create_task(queue.get())
    await eventually(lambda: len(queue._waiters) == 1)
    assert queue.statistics().ready == 0
    queue.done("a")
    assert await asyncio.wait_for(waiting, PATIENCE) == "a"


async def test_a_delayed_key_wakes_a_waiter() -> None:
    """A timer, and nothing else, brings it."""
    queue: WorkQueue[str] = WorkQueue()
    queue.add_after("late", 0.03)
    queue.add_after("early", 0.01)
    assert [await asyncio.wait_for(queue.get(), PATIENCE) for _ in range(2)] == ["early", "late"]


async def test_a_cancelled_waiter_leaves_its_key_to_another() -> None:
    """Woken and cancelled in the same breath, it must not take the wake-up with it."""
    queue: WorkQueue[str] = WorkQueue()
    first, second = asyncio.create_task(queue.get()), asyncio.create_task(queue.get())
    await eventually(lambda: len(queue._waiters) == 2)
    queue.add("a")
    first.cancel()
    assert await asyncio.wait_for(second, PATIENCE) == "a"
    with pytest.raises(asyncio.CancelledError):
        await first


async def test_shutdown_hands_out_what_is_ready_and_no_more() -> None:
    """Later keys and new ones are dropped."""
    queue: WorkQueue[str] = WorkQueue()
    queue.add("a")
    queue.add_after("b", 0.2)
    queue.shut_down()
    queue.add("c")
    assert await queue.get() == "a"
    queue.done("a")
    with pytest.raises(QueueShutDown):
        await queue.get()


async def test_workers_never_share_a_key_and_drain_at_the_end() -> None:
    """Under load from all sides every key runs, none twice at once, and `work` returns after the shutdown."""
    queue: WorkQueue[int] = WorkQueue(base=0.0001)
    running: set[int] = set()
    finished: list[int] = []
    most = 0

    async def handle(key: int) -> None:
        nonlocal most
        assert key not in running
        running.add(key)
        most = max(most, len(running))
        for _ in range(key % 3):
            queue.add(key - 1)
            await asyncio.sleep(0)
        running.discard(key)
        finished.append(key)

    working = asyncio.create_task(work(queue, handle, workers=4))
    for key in range(200):
        queue.add(key)
    await eventually(lambda: set(finished) >= set(range(200)))
    queue.shut_down()
    await asyncio.wait_for(working, PATIENCE)
    assert most <= 4
    assert queue.statistics().failing == 0


@cases(
    "error, traced",
    ("a refusal, one line", lambda: ApiError(409, "Conflict", "changed"), False),
    ("a bug, with its place", lambda: KeyError("bug"), True),
)
async def test_a_failure_is_logged_and_tried_again(
    error: Callable[[], Exception], traced: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """Until it succeeds, with growing delay, while other keys go on."""
    queue: WorkQueue[str] = WorkQueue(base=0.001)
    attempts: list[str] = []

    async def handle(key: str) -> None:
        attempts.append(key)
        if key == "bad" and attempts.count("bad") < 3:
            raise error()

    with caplog.at_level(logging.WARNING):
        working = asyncio.create_task(work(queue, handle, workers=2))
        queue.add("bad")
        queue.add("good")
        await eventually(lambda: attempts.count("bad") == 3 and "good" in attempts)
        queue.shut_down()
        await asyncio.wait_for(working, PATIENCE)
    assert queue.statistics().retried == 2
    assert [record.exc_info is not None for record in caplog.records] == [traced, traced]


async def test_endless_work_lets_others_have_their_turn() -> None:
    """Handlers that never wait, and are never done, do not hold up the rest of the process."""
    queue: WorkQueue[str] = WorkQueue()

    async def handle(key: str) -> None:
        queue.add(key)

    queue.add("endless")
    working = asyncio.create_task(work(queue, handle, workers=2))
    turn = asyncio.Event()
    asyncio.get_running_loop().call_later(0.001, turn.set)
    await asyncio.wait_for(turn.wait(), PATIENCE)
    working.cancel()
    await asyncio.wait({working})


async def test_cancelling_the_work_stops_its_handlers() -> None:
    """A lost lease stops work where it is."""
    queue: WorkQueue[str] = WorkQueue()
    queue.add("a")
    started, stopped = asyncio.Event(), asyncio.Event()

    async def handle(_: str) -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    working = asyncio.create_task(work(queue, handle))
    await asyncio.wait_for(started.wait(), PATIENCE)
    working.cancel()
    with pytest.raises(asyncio.CancelledError):
        await working
    assert stopped.is_set()


async def test_how_long_a_key_was_ready_is_told_when_it_is_handed_out() -> None:
    """A key that comes back while it is worked on is ready again only when that is done."""
    waits: list[float] = []
    queue: WorkQueue[str] = WorkQueue(waited=waits.append)
    queue.add("a")
    queue.add("b")
    queue.add_after("c", 0.01)
    assert [await queue.get(), await queue.get(), await queue.get()] == ["a", "b", "c"]
    queue.add("a")
    queue.done("a")
    assert await queue.get() == "a"
    assert len(waits) == 4
    assert all(0 <= wait < 60 for wait in waits)
