"""The keys of the objects to look at next: each once, never twice at the same time, failed ones later and later.

The rules are client-go's: a key added while it is worked on comes back when that is done; keys are handed out in the
order in which they became ready; a failed key waits 5 ms, 10 ms, … up to a cap, and all failed keys together come back
at a bounded rate. `QueueCore` is plain and synchronous, with the time passed in; `WorkQueue` adds a timer and waiting.
"""

import asyncio
import heapq
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, NamedTuple, TypeVar

from muster.kube.backoff import Rate
from muster.kube.concurrency import TimeSlice
from muster.kube.errors import ApiError

logger = logging.getLogger(__name__)

K = TypeVar("K", bound="Hashable")

# client-go's 10 a second, made for one kind in one controller, would bring the gangs of a large cluster back only
# minutes after an outage; an apiserver bears a hundred more requests a second, and says 429 if not.
_RETRIES_PER_SECOND = 100.0
_RETRIES_AT_ONCE = 100
# Outdated times are dropped when they are more than these, and more than the times that count.
_OUTDATED = 1000


class QueueShutDown(Exception):  # noqa: N818 - the end of the work, not a mistake
    """The queue is shut down and everything that was ready has been handed out."""


class QueueStatistics(NamedTuple):
    """Numbers for metrics; `added` and `retried` count up from the start."""

    ready: int
    processing: int
    delayed: int
    failing: int
    added: int
    retried: int


class QueueCore(Generic[K]):
    """The state of a work queue. Times are seconds of any one clock that never goes back."""

    def __init__(self, *, base: float = 0.005, cap: float = 1000.0) -> None:
        if not 0 < base <= cap:
            raise ValueError(f"no growing delays: base {base}, cap {cap}")
        self._base = base
        self._cap = cap
        self._ready: deque[K] = deque()
        self._dirty: set[K] = set()
        self._processing: set[K] = set()
        self._due: dict[K, float] = {}
        self._heap: list[tuple[float, int, K]] = []
        self._sequence = 0
        self._failures: dict[K, int] = {}
        # By key the last moment at which it was allowed to come back after a failure.
        self._slots: dict[K, float] = {}
        self._retries = Rate(_RETRIES_PER_SECOND, _RETRIES_AT_ONCE)
        self._added = self._retried = 0
        self.shutting_down = False

    def add(self, key: K) -> None:
        """Make the key ready, or, while it is worked on, ready again afterwards. Nothing after a shutdown."""
        if self.shutting_down or key in self._dirty:
            return
        self._added += 1
        self._dirty.add(key)
        if key not in self._processing:
            self._ready.append(key)

    def add_at(self, key: K, when: float) -> None:
        """Add the key at that time; of several times the earliest counts."""
        if self.shutting_down or when >= self._due.get(key, float("inf")):
            return
        self._due[key] = when
        self._sequence += 1  # so that the heap never compares keys
        heapq.heappush(self._heap, (when, self._sequence, key))
        if len(self._heap) > 2 * len(self._due) + _OUTDATED:
            # A key that comes back early each time leaves the time of next week behind, each time.
            self._heap = [(due, number, one) for number, (one, due) in enumerate(self._due.items())]
            heapq.heapify(self._heap)

    def drop_later(self, key: K) -> None:
        """Add the key at no later time after all."""
        self._due.pop(key, None)

    def advance(self, now: float) -> float | None:
        """Add the keys that are due, and return the time at which the next one will be, or None."""
        while self._heap:
            when, _, key = self._heap[0]
            if self._due.get(key) == when:
                if when > now:
                    return when
                del self._due[key]
                self.add(key)
            heapq.heappop(self._heap)
        return None

    def take(self) -> K | None:
        """Hand out the next ready key, or None. It is worked on until `done`."""
        if not self._ready:
            return None
        key = self._ready.popleft()
        self._dirty.discard(key)
        self._processing.add(key)
        return key

    def done(self, key: K) -> None:
        """End the work on a key. Raises ValueError if it was not handed out."""
        if key not in self._processing:
            raise ValueError(f"{key!r} was not handed out")
        self._processing.discard(key)
        if key in self._dirty:
            self._ready.append(key)

    def retry(self, key: K, now: float) -> float:
        """Add the key again after its failure's delay, and return that: base, doubled by each failure, capped.

        It is longer when more keys fail than may be retried in a second.
        """
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        self._retried += 1
        if self._slots.get(key, now) <= now:
            # A key that events bring back, and that fails each time, takes no more than one of the others' moments.
            self._slots[key] = now + self._retries.reserve(now)
        delay = max(min(self._cap, self._base * 2.0 ** min(failures, 60)), self._slots[key] - now)
        self.add_at(key, now + delay)
        return delay

    def forget(self, key: K) -> None:
        """Reset the key's delays, after a success."""
        self._failures.pop(key, None)
        self._slots.pop(key, None)

    def shut_down(self) -> None:
        """Take nothing more, and drop later keys; those that are ready are still handed out."""
        self.shutting_down = True
        self._due.clear()
        self._heap.clear()

    @property
    def ready(self) -> int:
        """The number of keys that could be taken now."""
        return len(self._ready)

    def statistics(self) -> QueueStatistics:
        """Numbers for metrics."""
        return QueueStatistics(
            ready=len(self._ready),
            processing=len(self._processing),
            delayed=len(self._due),
            failing=len(self._failures),
            added=self._added,
            retried=self._retried,
        )


class WorkQueue(Generic[K]):
    """A work queue in the running event loop; all but `get` may be called from any callback of that loop.

    `waited` is called with the seconds for which each key was ready when it is handed out.
    """

    def __init__(
        self, *, base: float = 0.005, cap: float = 1000.0, waited: Callable[[float], object] | None = None
    ) -> None:
        self._waited = waited
        self._ready_since: deque[float] = deque()
        self._core: QueueCore[K] = QueueCore(base=base, cap=cap)
        self._waiters: deque[asyncio.Future[None]] = deque()
        self._timer: asyncio.TimerHandle | None = None

    def add(self, key: K) -> None:
        """Work on the key as soon as possible, once, however often it is added before."""
        self._core.add(key)
        self._wake()

    def add_after(self, key: K, seconds: float) -> None:
        """Add the key after `seconds`; of several delays the one that ends first counts."""
        if seconds <= 0:
            self.add(key)
            return
        self._core.add_at(key, asyncio.get_running_loop().time() + seconds)
        self._schedule()

    def drop_later(self, key: K) -> None:
        """Take back all delays of the key."""
        self._core.drop_later(key)

    async def get(self) -> K:
        """Wait for a key. It belongs to the caller until `done`. Raises QueueShutDown."""
        while True:
            self._schedule()
            key = self._core.take()
            if key is not None:
                since = self._ready_since.popleft()
                if self._waited is not None:
                    self._waited(asyncio.get_running_loop().time() - since)
                return key
            if self._core.shutting_down and not self._core.statistics().processing:
                raise QueueShutDown
            waiter = asyncio.get_running_loop().create_future()
            self._waiters.append(waiter)
            try:
                await waiter
            except asyncio.CancelledError:
                # Woken and cancelled at once: the wake-up belongs to another waiter now.
                if waiter.done() and not waiter.cancelled():
                    self._wake()
                raise
            finally:
                if waiter in self._waiters:
                    self._waiters.remove(waiter)

    def done(self, key: K) -> None:
        """Give the key back; if it was added during the work it is ready again."""
        self._core.done(key)
        self._wake()

    def retry(self, key: K) -> float:
        """Add the key again after its failure's delay, and return that in seconds."""
        delay = self._core.retry(key, asyncio.get_running_loop().time())
        self._schedule()
        return delay

    def forget(self, key: K) -> None:
        """Reset the key's delays, after a success."""
        self._core.forget(key)

    def shut_down(self) -> None:
        """Take nothing more; `get` hands out the keys that are ready and then raises QueueShutDown."""
        self._core.shut_down()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._wake()

    def statistics(self) -> QueueStatistics:
        """Numbers for metrics."""
        return self._core.statistics()

    def _schedule(self) -> None:
        loop = asyncio.get_running_loop()
        due = self._core.advance(loop.time())
        if self._timer is not None and self._timer.when() != due:
            self._timer.cancel()
            self._timer = None
        if due is not None and self._timer is None:
            self._timer = loop.call_at(due, self._on_timer)
        self._wake()

    def _on_timer(self) -> None:
        self._timer = None
        self._schedule()

    def _wake(self) -> None:
        # Keys are handed out in the order in which they become ready, so that the times need no keys.
        new = self._core.ready - len(self._ready_since)
        if new > 0:
            self._ready_since.extend([asyncio.get_running_loop().time()] * new)
        # As many as there are keys: more would only find nothing. At the end all of them, to learn that it is the end.
        count = len(self._waiters) if self._core.shutting_down else self._core.ready
        while count > 0 and self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.done():
                waiter.set_result(None)
                count -= 1


async def work(queue: WorkQueue[K], handler: Callable[[K], Awaitable[None]], workers: int = 4) -> None:
    """Run `handler` for the queue's keys, at most `workers` at once, until the queue is shut down and drained.

    A handler that raises is logged and its key retried with growing delay, for ever; a success ends the growth.
    Cancelling stops the handlers where they are.
    """
    slice_ = TimeSlice()

    async def worker() -> None:
        while True:
            try:
                key = await queue.get()
            except QueueShutDown:
                return
            try:
                # All workers may have keys at once, and each its turn in the same turn of the loop.
                await slice_.rest()
                await handler(key)
            except Exception as error:  # noqa: BLE001 - one object's trouble must not stop the others
                _report(key, error, queue.retry(key))
            else:
                queue.forget(key)
            finally:
                queue.done(key)
            # A handler that never waits would keep all other tasks from running, the renewal of the lease above all.
            await asyncio.sleep(0)

    async with asyncio.TaskGroup() as group:
        for number in range(workers):
            group.create_task(worker(), name=f"worker-{number}")


def _report(key: object, error: Exception, delay: float) -> None:
    # The apiserver's refusals are everyday life; anything else is a mistake of ours, and its place is wanted.
    trace = None if isinstance(error, ApiError) else error
    logger.warning(
        "%s: %s; retrying in %.3g s",
        key,
        str(error) or type(error).__name__,
        delay,
        exc_info=trace,
        extra={"event": "reconcile.retry"},
    )
