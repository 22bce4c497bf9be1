"""Limits of the server: how many reviews it takes at once, how many of them large, and how long each may take.

Each kind of review has slots of its own, and a worker thread for its large ones: a flood of workloads keeps no PodGroup
and no pod from being answered. A review is as large as the largest of its body and the objects that are read for it,
which may only be found out late.

There is no queue. A review beyond the limits is refused at once with 429 and Retry-After: the apiserver tries again
after that second, as long as its own timeout lasts, and another replica may have a slot by then. (Its webhook client
follows Retry-After for 429 and 5xx; without it the call fails at once and the failure policy decides.)
"""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from contextvars import copy_context
from dataclasses import dataclass
from functools import lru_cache, partial
from http import HTTPStatus
from typing import ParamSpec, Self, TypeVar

from aiohttp import StreamReader, web

P = ParamSpec("P")
T = TypeVar("T")

_UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|us|µs|ns|h|m|s)")
_LONGEST_DURATION = 64


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of the server; the numbers of reviews are for each kind.

    :ivar decision_seconds: longest time from the head of a request to its answer
    :ivar share: part of the apiserver's `timeout` parameter that may be used
    :ivar largest_body: bytes; two objects of the 3 MiB that the apiserver takes, and the review around them
    :ivar large_body: bytes from which a body is large; small ones never wait for large ones
    :ivar large_reviews: large reviews in progress at once
    :ivar reviews: reviews in progress at once
    """

    decision_seconds: float = 4.0
    share: float = 0.8
    largest_body: int = 7 * 2**20
    large_body: int = 2**18
    large_reviews: int = 3
    reviews: int = 128

    def is_large(self, length: int) -> bool:
        """True if a body of that many bytes is large, and not for the event loop."""
        return length >= self.large_body


class Refused(Exception):  # noqa: N818 - an answer, not a fault of ours
    """The request is answered with this HTTP status; `retry` asks the client to try again in a second."""

    def __init__(self, status: HTTPStatus, text: str, *, retry: bool = False) -> None:
        super().__init__(text)
        self.status = status
        self.retry = retry


class ReviewLimits:
    """The reviews in progress, by kind."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._classes: dict[str, ReviewClass] = {}

    @property
    def reviews(self) -> int:
        """The number of reviews in progress."""
        return sum(one.reviews for one in self._classes.values())

    def of(self, kind: str) -> ReviewClass:
        """The slots for one kind of review."""
        return self._classes.setdefault(kind, ReviewClass(self.limits))


class ReviewClass:
    """The slots for one kind of review.

    :ivar reviews: reviews in progress
    :ivar large: large reviews in progress
    :ivar worker: the thread for large reviews
    """

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.worker = Worker()
        self.reviews = 0
        self.large = 0

    def admit(self, http: web.BaseRequest) -> ActiveReview:
        """A slot for a request; raises Refused if there is none, or if the request's head cannot be a review's."""
        if http.headers.get("Content-Encoding", "identity") != "identity":
            raise Refused(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "expected a body without Content-Encoding")
        if http.content_type != "application/json":
            raise Refused(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "expected Content-Type application/json")
        length = http.content_length
        if length is not None and length > self.limits.largest_body:
            raise self.too_large()
        # A body of unknown length may become large.
        return self.slot(large=length is None or self.limits.is_large(length), seconds=self._seconds(http))

    def slot(self, *, large: bool, seconds: float) -> ActiveReview:
        """A slot for a review of that many seconds, to be opened as a context; raises Refused if all are taken."""
        if self.reviews >= self.limits.reviews:
            raise _too_many()
        if large:
            self.check_large()
        return ActiveReview(self, large=large, seconds=seconds)

    def check_large(self) -> None:
        """Raise Refused if all slots for large reviews are taken."""
        if self.large >= self.limits.large_reviews:
            raise _too_many()

    def _seconds(self, http: web.BaseRequest) -> float:
        """The time for this request: less than the apiserver waits, which it passes as `?timeout=5s`."""
        granted = _timeout(http.raw_path.partition("?")[2])
        most = self.limits.decision_seconds
        return most if granted is None else min(most, granted * self.limits.share)

    def too_large(self) -> Refused:
        """The refusal of a body that no apiserver sends."""
        text = f"larger than the {self.limits.largest_body} bytes of the largest review"
        return Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, text)


class ActiveReview:
    """One review in progress, counted while its context is open: its deadline, and where its work is done.

    :ivar seconds: from the begin of the context to the deadline
    """

    __slots__ = ("_class", "_deadline", "_in_worker", "_large", "seconds")

    def __init__(self, review_class: ReviewClass, *, large: bool, seconds: float) -> None:
        self._class = review_class
        self._large = large
        self._in_worker = False
        self.seconds = seconds
        self._deadline = math.inf

    def __enter__(self) -> Self:
        """Take the slot; the time begins."""
        self._deadline = asyncio.get_running_loop().time() + self.seconds
        self._class.reviews += 1
        self._class.large += self._large
        return self

    def __exit__(self, *_: object) -> None:
        """Give the slot back."""
        self._class.reviews -= 1
        self._class.large -= self._large

    def timeout(self) -> asyncio.Timeout:
        """A context that raises TimeoutError at the review's deadline.

        It belongs around each wait. One around the whole review would cost a fifth of a decision that waits for
        nothing, as nearly all do.
        """
        return asyncio.timeout_at(self._deadline)

    def become_large(self) -> None:
        """Count the review as large, and run its steps in the worker thread; raises Refused if all slots are taken."""
        if not self._large:
            self._class.check_large()
            self._large = True
            self._class.large += 1
        self._in_worker = True

    async def run(self, step: Callable[P, T], *args: P.args, **options: P.kwargs) -> T:
        """The result of a step that neither waits nor reads what the event loop may change.

        A step of a large review runs in the worker thread; raises TimeoutError at the deadline.
        """
        if not self._in_worker:
            return step(*args, **options)
        async with self.timeout():
            return await self._class.worker.run(partial(step, *args, **options))

    async def body(self, http: web.BaseRequest) -> bytes | bytearray:
        """The whole body; raises Refused if it is larger than any review, TimeoutError at the deadline."""
        content, length = http.content, http.content_length
        if not content.is_eof():
            if http.transport is None:
                # It was lost after the head came; the body would never end.
                raise ConnectionResetError("the connection is gone")
            async with self.timeout():
                if length is None or length > content.get_read_buffer_limits()[0]:
                    return await self._in_parts(content)
                # As a whole: each turn of the event loop costs.
                await content.wait_eof()
        return content.read_nowait()

    async def _in_parts(self, content: StreamReader) -> bytearray:
        # Not a list of chunks: a client may send them byte by byte.
        body = bytearray()
        while chunk := await content.readany():
            body += chunk
            if len(body) > self._class.limits.largest_body:
                raise self._class.too_large()
        return body


class Worker:
    """A thread for the steps of large reviews, so that small reviews are answered in the meantime.

    There is one thread: Python runs one at a time anyway, and the first of several reviews is done sooner that way. It
    slows the event loop down: each wake-up waits for the interpreter, up to 5 ms (sys.getswitchinterval), so that a
    small review takes some 8 ms on average instead of less than one; and a call into C that does not release it blocks
    the loop, which was up to 0.3 s for a body of 3 MiB.

    A step cannot be interrupted: when its review gives up it runs to its end, and the next one waits for it.
    """

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="large-review")
        self._free = asyncio.Semaphore(1)

    async def run(self, step: Callable[[], T]) -> T:
        """The result of the step, once the thread is free."""
        await self._free.acquire()
        loop = asyncio.get_running_loop()

        def free(_: Future[T]) -> None:
            # The loop may have ended before the thread.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(self._free.release)

        # With the context, so that its log lines name the review.
        work = self._thread.submit(copy_context().run, step)
        work.add_done_callback(free)
        return await asyncio.wrap_future(work)


def _too_many() -> Refused:
    return Refused(HTTPStatus.TOO_MANY_REQUESTS, "too many reviews at once", retry=True)


@lru_cache(maxsize=256)
def _timeout(query: str) -> float | None:
    """The `timeout` of a query in seconds, as Go writes durations (`1m30s`, `833.5ms`); None if there is none."""
    name, _, text = query.partition("=")
    if name != "timeout" or len(text) > _LONGEST_DURATION or not re.fullmatch(f"({_DURATION.pattern})+", text):
        return None
    return sum(float(number) * _UNITS[unit] for number, unit in _DURATION.findall(text))
