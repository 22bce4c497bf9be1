"""How much the server takes in at once: of each kind so many reviews, so many of them large, each body within its time.

Each kind has places of its own, and a thread for its large ones: however many workloads come, PodGroups and pods are
answered. A review is as large as the largest of its body and of what stands behind it, which may come to light late.

There is no queue. What comes beyond is refused at once with 429 and Retry-After: the apiserver tries again by itself
after that second, for as long as it waits at all, and by then another replica may have room. (Its webhook client
follows Retry-After for 429 and 5xx; without it the call fails at once and the failure policy decides.)
"""

from __future__ import annotations

import re
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache
from http import HTTPStatus
from typing import TYPE_CHECKING

from webhook.server.deadlines import in_time
from webhook.server.review_thread import ReviewThread, offered

if TYPE_CHECKING:
    from aiohttp import StreamReader, web


_UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|us|µs|ns|h|m|s)")
_LONGEST_DURATION = 64


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds in seconds, bytes and reviews, those of reviews for each kind.

    `decision_seconds` is from the head of a request to its answer, and `share` the part of the apiserver's `timeout`
    parameter that may be used. A body is large from `large_body` on; small ones never wait for the few large ones.
    """

    decision_seconds: float = 4.0
    share: float = 0.8
    # Two objects of the 3 MiB that the apiserver takes, and the review around them.
    largest_body: int = 7 * 2**20
    large_body: int = 2**18
    large_reviews: int = 3
    reviews: int = 128

    def is_large(self, length: int) -> bool:
        """Whether so many bytes count among the few large ones, and are not for the event loop."""
        return length >= self.large_body


class Refused(Exception):  # noqa: N818 - an answer, not a fault of ours
    """The request is answered with this HTTP status; `retry` says that it may come again in a second."""

    def __init__(self, status: HTTPStatus, text: str, *, retry: bool = False) -> None:
        super().__init__(text)
        self.status = status
        self.retry = retry


class Intake:
    """The reviews that are under way; `closing` means that every answer ends its connection."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.closing = False
        self._lanes: dict[str, Lane] = {}

    @property
    def reviews(self) -> int:
        """How many reviews are under way."""
        return sum(lane.reviews for lane in self._lanes.values())

    def lane(self, kind: str) -> Lane:
        """The places of one kind of review."""
        return self._lanes.setdefault(kind, Lane(self))


class Lane:
    """The reviews of one kind that are under way."""

    def __init__(self, intake: Intake) -> None:
        self._intake = intake
        self.limits = intake.limits
        self.beside = ReviewThread()
        self.reviews = 0
        self._large = 0

    @property
    def closing(self) -> bool:
        """Whether every answer ends its connection."""
        return self._intake.closing

    def place(self, http: web.BaseRequest) -> _Place:
        """Hold a place for a request; raises Refused when there is none, or when its head says that it is no review."""
        if http.headers.get("Content-Encoding", "identity") != "identity":
            raise Refused(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "expected a body without Content-Encoding")
        if http.content_type != "application/json":
            raise Refused(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "expected Content-Type application/json")
        length = http.content_length
        if length is not None and length > self.limits.largest_body:
            raise self._too_large()
        # A body of unknown length may become large.
        return self.hold(large=length is None or self.limits.is_large(length))

    def hold(self, *, large: bool) -> _Place:
        """Hold a place within the body; raises Refused when there is none."""
        if self.reviews >= self.limits.reviews:
            raise _too_many()
        if large:
            self.check_large()
        return _Place(self, large=large)

    def check_large(self) -> None:
        """Raise Refused when there is no place for one more large review."""
        if self._large >= self.limits.large_reviews:
            raise _too_many()

    def count(self, reviews: int, large: int) -> None:
        """So many reviews more are under way, and so many large ones."""
        self.reviews += reviews
        self._large += large

    async def body(self, http: web.BaseRequest) -> bytes | bytearray:
        """The whole body; raises Refused when it is larger than any review, TimeoutError when it takes too long."""
        content, length = http.content, http.content_length
        if not content.is_eof():
            if http.transport is None:
                # Since its head came; nobody else would say so.
                raise ConnectionResetError("the connection is gone")
            async with in_time():
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
            if len(body) > self.limits.largest_body:
                raise self._too_large()
        return body

    def seconds(self, http: web.BaseRequest) -> float:
        """How long this request may take: less than the apiserver waits, which says so (`?timeout=5s`)."""
        granted = _timeout(http.raw_path.partition("?")[2])
        most = self.limits.decision_seconds
        return most if granted is None else min(most, granted * self.limits.share)

    def _too_large(self) -> Refused:
        text = f"larger than the {self.limits.largest_body} bytes of the largest review"
        return Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, text)


class _Place:
    """A review is under way within its body."""

    __slots__ = ("_lane", "_large")

    def __init__(self, lane: Lane, *, large: bool) -> None:
        self._lane = lane
        self._large = large

    def __enter__(self) -> None:
        self._lane.count(1, int(self._large))
        # A connection's next review has the same context.
        offered.set(None)
        _taken.set(self)

    def __exit__(self, *_: object) -> None:
        self._lane.count(-1, -int(self._large))
        _taken.set(None)

    def grow(self) -> None:
        if not self._large:
            self._lane.check_large()
            self._large = True
            self._lane.count(0, 1)
        offered.set(self._lane.beside)


# That of the review of this task.
_taken: ContextVar[_Place | None] = ContextVar("taken", default=None)


def grow() -> None:
    """Have the review of this task count as a large one from here on, for it has met something large.

    What it does from here on is done beside the event loop. Raises Refused when there is no place for it.
    """
    place = _taken.get()
    if place is not None:
        place.grow()


def _too_many() -> Refused:
    return Refused(HTTPStatus.TOO_MANY_REQUESTS, "too many reviews at once", retry=True)


@lru_cache(maxsize=256)
def _timeout(query: str) -> float | None:
    """The `timeout` of a query in seconds, as Go writes durations (`1m30s`, `833.5ms`); None when there is none."""
    name, _, text = query.partition("=")
    if name != "timeout" or len(text) > _LONGEST_DURATION or not re.fullmatch(f"({_DURATION.pattern})+", text):
        return None
    return sum(float(number) * _UNITS[unit] for number, unit in _DURATION.findall(text))
