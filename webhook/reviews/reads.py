"""Direct reads of what is quicker than the watches, or is not watched: one object by its name, in little time.

A read costs as much as what it reads. So a large object is read once a second, whoever asks: it is decoded in the
thread of the large reviews, and the review that needs it takes one of their places. What the read has shown serves
others for that second. But that something is *not* there, it says only to the review that began it: others are told to
come again, so that nobody passes by what was read before he came.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Generic, TypeVar

from muster.kube.client import Client
from muster.kube.errors import ApiError
from muster.kube.resource import Resource
from muster.model.names import is_object_name
from muster.model.objects import decode
from webhook.server.deadlines import in_time
from webhook.server.intake import Refused, grow
from webhook.server.review_thread import in_review_thread

T = TypeVar("T")

# From so many bytes on an object is large, as a body is.
_LARGE = 2**18
# How long what a read of a large object has shown serves others, in seconds.
_SERVES = 1.0
_REMEMBERED = 1000


@dataclass(frozen=True, slots=True)
class Found(Generic[T]):
    """What a read has shown, None for nothing; `early` where it began before the review came that is told so."""

    object: T | None
    early: bool = False


@dataclass(slots=True, eq=False)
class _Large:
    """A large object, and what the last read of it shows, None when that serves nobody any more."""

    shown: asyncio.Future[Any] | None


def ask_again() -> Refused:
    """What a review is told that can only be decided by a read that is not made yet."""
    text = "a large object was read a moment ago and has to be read once more"
    return Refused(HTTPStatus.TOO_MANY_REQUESTS, text, retry=True)


class Reads:
    """Reads objects within `seconds` each."""

    def __init__(self, client: Client, seconds: float) -> None:
        self._client = client
        self._seconds = seconds
        self._large: OrderedDict[tuple[str, str, str], _Large] = OrderedDict()

    async def read(self, resource: Resource, name: str, type_: type[T], namespace: str | None = None) -> Found[T]:
        """The object of that name, whoever named it; nothing where there is none, or no object can have the name.

        Raises ApiError, InvalidObjectError, TimeoutError, and Refused where no more large objects are looked at now.
        """
        if not (is_object_name(name) and (is_object_name(namespace or "") or not resource.namespaced)):
            return Found(None)
        key = resource.full_name, namespace or "", name
        large = self._large.get(key)
        if large is not None and large.shown is not None:
            async with in_time():
                return Found(await asyncio.shield(large.shown), early=True)
        if large is not None:
            # Before it is read: there may be no place for it.
            grow()
            large = self._begin(key)
        try:
            async with in_time():
                raw = await self._client.get(resource, name, namespace, deadline=self._seconds)
            if large is None and len(raw) >= _LARGE:
                grow()
                large = self._begin(key)
            found = await in_review_thread(decode, raw, type_) if large is not None else decode(raw, type_)
        except BaseException as error:
            gone = isinstance(error, ApiError) and error.not_found
            _end(large, None if gone else ask_again())
            if gone:
                return Found(None)
            raise
        _end(large, found)
        return Found(found)

    async def object_of(self, resource: Resource, name: str, type_: type[T], namespace: str | None = None) -> T | None:
        """The object of that name, or None where there is none; raises as `read`, also where that is not certain."""
        found = await self.read(resource, name, type_, namespace)
        if found.object is None and found.early:
            raise ask_again()
        return found.object

    def _begin(self, key: tuple[str, str, str]) -> _Large:
        large = self._large[key] = _Large(asyncio.get_running_loop().create_future())
        self._large.move_to_end(key)
        if len(self._large) > _REMEMBERED:
            self._large.popitem(last=False)
        return large


def _end(large: _Large | None, shown: object) -> None:
    """Tell those who wait for a large object what its read has shown; where it failed, theirs is to try again."""
    if large is None or large.shown is None:
        return
    if isinstance(shown, Refused):
        large.shown.set_exception(shown)
        # There may be nobody who waits for it.
        large.shown.exception()
    else:
        large.shown.set_result(shown)
    asyncio.get_running_loop().call_later(_SERVES, _forget, large)


def _forget(large: _Large) -> None:
    large.shown = None
