"""Live reads for objects that are not in the cache, or not yet: one object by its name, in little time.

A read costs as much as its object is large. So a large object is read once a second for all reviews: it is decoded in
the worker thread, and the review that reads it takes a slot for large reviews. A result serves other reviews for that
second. But an object that was *not* found is only missing for the review that began the read: other reviews have to
try again, because the object may have been created after the read.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Generic, TypeVar

from muster.kube.client import Client
from muster.kube.errors import ApiError
from muster.model.names import is_object_name
from muster.model.objects import decode
from muster.model.resource import Resource
from webhook.server.limits import ActiveReview, Refused

T = TypeVar("T")

# Bytes from which an object is large, like a body.
_LARGE = 2**18
# Seconds for which the result of a read of a large object serves other reviews.
_SERVES = 1.0
_REMEMBERED = 1000


@dataclass(frozen=True, slots=True)
class Found(Generic[T]):
    """The result of a read.

    :ivar object: None if there is none
    :ivar from_cache: read for an earlier review; may be stale
    """

    object: T | None
    from_cache: bool = False


@dataclass(slots=True, eq=False)
class _Large:
    """A large object: the result of its last read while that serves other reviews, else None."""

    result: asyncio.Future[Any] | None


def try_again() -> Refused:
    """The answer to a review that needs a newer read of a large object than there is."""
    text = "a large object was read a moment ago and has to be read once more"
    return Refused(HTTPStatus.TOO_MANY_REQUESTS, text, retry=True)


class LiveReads:
    """Reads objects from the apiserver, within `seconds` each."""

    def __init__(self, client: Client, seconds: float) -> None:
        self._client = client
        self._seconds = seconds
        self._large: OrderedDict[tuple[str, str, str], _Large] = OrderedDict()

    async def read(
        self, review: ActiveReview, resource: Resource, name: str, type_: type[T], namespace: str | None = None
    ) -> Found[T]:
        """The object of that name; nothing if there is none, or if no object can have the name.

        Raises ApiError, InvalidObjectError, TimeoutError, and Refused if all slots for large reviews are taken.
        """
        if not (is_object_name(name) and (is_object_name(namespace or "") or not resource.namespaced)):
            return Found(None)
        key = resource.full_name, namespace or "", name
        large = self._large.get(key)
        if large is not None and large.result is not None:
            async with review.timeout():
                return Found(await asyncio.shield(large.result), from_cache=True)
        if large is not None:
            # Before the read: there may be no slot for it.
            review.become_large()
            large = self._begin(key)
        try:
            async with review.timeout():
                raw = await self._client.get(resource, name, namespace, deadline=self._seconds)
            if large is None and len(raw) >= _LARGE:
                review.become_large()
                large = self._begin(key)
            found = decode(raw, type_) if large is None else await review.run(decode, raw, type_)
        except BaseException as error:
            gone = isinstance(error, ApiError) and error.not_found
            _end(large, None if gone else try_again())
            if gone:
                return Found(None)
            raise
        _end(large, found)
        return Found(found)

    def _begin(self, key: tuple[str, str, str]) -> _Large:
        large = self._large[key] = _Large(asyncio.get_running_loop().create_future())
        self._large.move_to_end(key)
        if len(self._large) > _REMEMBERED:
            self._large.popitem(last=False)
        return large


def _end(large: _Large | None, result: object) -> None:
    """Give the reviews that wait for a large object the result of its read; after a failed one they try again."""
    if large is None or large.result is None:
        return
    if isinstance(result, Refused):
        large.result.set_exception(result)
        # Without this asyncio would warn if no review waits for it.
        large.result.exception()
    else:
        large.result.set_result(result)
    asyncio.get_running_loop().call_later(_SERVES, _forget, large)


def _forget(large: _Large) -> None:
    large.result = None
