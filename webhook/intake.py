"""How much the server takes in at once: so many reviews, so many of them large, and each body within its time.

There is no queue. What comes beyond is refused at once with 429 and Retry-After: the apiserver tries again by itself
after that second, for as long as it waits at all, and by then another replica may have room. (Its webhook client
follows Retry-After for 429 and 5xx; without it the call fails at once and the failure policy decides.)
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from http import HTTPStatus
from typing import TYPE_CHECKING

from webhook.beside import Beside
from webhook.deadline import in_time

if TYPE_CHECKING:
    from aiohttp import StreamReader, web

__all__ = ["Intake", "Limits", "Refused"]

_UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|us|µs|ns|h|m|s)")
_LONGEST_DURATION = 64


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds in seconds, bytes and reviews.

    `decision_seconds` is from the head of a request to its answer, and `share` the part of the apiserver's `timeout`
    parameter that may be used. A body is large from `large_body` on; small ones never wait for the few large ones.
    """

    decision_seconds: float = 4.0
    share: float = 0.8
    # Two objects of the 3 MiB that the apiserver takes, and the review around them.
    largest_body: int = 7 * 2**20
    large_body: int = 2**18
    large_reviews: int = 4
    reviews: int = 256


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
        self.beside = Beside()
        self._reviews = 0
        self._large = 0

    @property
    def reviews(self) -> int:
        """How many reviews are under way."""
        return self._reviews

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
        large = length is None or self.is_large(length)
        if self._reviews >= self.limits.reviews or (large and self._large >= self.limits.large_reviews):
            raise Refused(HTTPStatus.TOO_MANY_REQUESTS, "too many reviews at once", retry=True)
        return _Place(self, large=large)

    def count(self, reviews: int, *, large: bool) -> None:
        """So many reviews more are under way."""
        self._reviews += reviews
        self._large += reviews * large

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

    def is_large(self, length: int) -> bool:
        """Whether a body of so many bytes counts among the few large ones, and is not for the event loop."""
        return length >= self.limits.large_body

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

    __slots__ = ("_intake", "_large")

    def __init__(self, intake: Intake, *, large: bool) -> None:
        self._intake = intake
        self._large = large

    def __enter__(self) -> None:
        self._intake.count(1, large=self._large)

    def __exit__(self, *_: object) -> None:
        self._intake.count(-1, large=self._large)


@lru_cache(maxsize=256)
def _timeout(query: str) -> float | None:
    """The `timeout` of a query in seconds, as Go writes durations (`1m30s`, `833.5ms`); None when there is none."""
    name, _, text = query.partition("=")
    if name != "timeout" or len(text) > _LONGEST_DURATION or not re.fullmatch(f"({_DURATION.pattern})+", text):
        return None
    return sum(float(number) * _UNITS[unit] for number, unit in _DURATION.findall(text))
