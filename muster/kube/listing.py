"""A whole list, read in pages and decoded page by page, so that memory holds one page of JSON and never the list.

Pages belong to one version of the cluster. When the apiserver has forgotten that version (410), what was read so far is
worth nothing: the list begins anew.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

import msgspec

from muster.kube.errors import ApiError, Unreachable
from muster.objects import InvalidObjectError, LocalObject, decode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from muster.kube.client import Client
    from muster.kube.resource import Resource

__all__ = ["Listing", "Pages", "list_all", "list_objects"]

logger = logging.getLogger(__name__)

T = TypeVar("T")

# Whoever twice needs longer for the pages than a version is kept (5 minutes) asks for all at once, as client-go does.
_ATTEMPTS_IN_PAGES = 2
# A page that does not come in time is the next time so much smaller; one that takes so small a part of its time lets
# the next one be twice as large, which then still comes in time.
_SMALLER, _QUICK = 4, 1 / 8


class Listing(NamedTuple, Generic[T]):
    """All objects of one kind at one moment; a watch begins at `resource_version`."""

    items: list[T]
    resource_version: str


class Pages:
    """How many objects to ask for at once: `most`, but fewer while they do not come in time.

    Else a list whose first page takes longer than its deadline, for its objects are large or the way is slow, would
    never come. Kept from one list to the next.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self.size = most

    def late(self) -> None:
        """The page did not come in time."""
        self.size = max(1, self.size // _SMALLER)

    def came(self, part: float) -> None:
        """The page took this part of its time."""
        if part < _QUICK:
            self.size = min(self._most, self.size * 2)


class _ListMeta(LocalObject, frozen=True):
    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")


class _Page(LocalObject, Generic[T], frozen=True):
    metadata: _ListMeta = _ListMeta()
    items: tuple[T, ...] | None = ()


async def list_all(
    client: Client,
    resource: Resource,
    read: Callable[[bytes], T | None],
    *,
    type_: type[T] | None = None,
    keep: Callable[[T], T] = lambda item: item,
    namespace: str | None = None,
    label_selector: str = "",
    field_selector: str = "",
    page: int | Pages = 500,
    deadline: float = 60.0,
) -> Listing[T]:
    """List everything, in requests of `page` objects and `deadline` seconds at most.

    `read` decodes one object, or gives None to leave it out; it is also called for objects that do not come into the
    result. Where there is a `type_`, a page of which each object can be decoded as that is not read one by one: that
    takes half the time, and others wait meanwhile. `keep` gives what is kept of an object, or in its place. Raises
    ApiError, and what `read` raises.
    """
    pages = page if isinstance(page, Pages) else Pages(page)
    clock = asyncio.get_running_loop().time
    items: list[T] = []
    continue_, attempt = "", 1
    while True:
        began = clock()
        try:
            body = await client.list_page(
                resource,
                namespace=namespace,
                label_selector=label_selector,
                field_selector=field_selector,
                limit=pages.size if attempt <= _ATTEMPTS_IN_PAGES else 0,
                continue_=continue_,
                deadline=deadline,
            )
        except ApiError as error:
            if error.timed_out:
                pages.late()
            if not (error.gone and continue_):
                raise
            items, continue_, attempt = [], "", attempt + 1
            continue
        pages.came((clock() - began) / deadline)
        meta, found = _read_page(body, read, type_)
        items += map(keep, found)
        continue_ = meta.continue_
        if not continue_:
            return Listing(items, meta.resource_version)


def _read_page(body: bytes, read: Callable[[bytes], T | None], type_: type[T] | None) -> tuple[_ListMeta, Iterable[T]]:
    page_of: Any = _Page
    if type_ is not None:
        with suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            whole: _Page[T] = msgspec.json.decode(body, type=page_of[type_])
            return whole.metadata, whole.items or ()
    try:
        page: _Page[msgspec.Raw] = decode(body, page_of[msgspec.Raw])
    except InvalidObjectError as error:
        raise Unreachable(f"not a list: {error}") from error
    return page.metadata, [item for item in (read(bytes(raw)) for raw in page.items or ()) if item is not None]


async def list_objects(
    client: Client,
    resource: Resource,
    type_: type[T],
    *,
    namespace: str | None = None,
    label_selector: str = "",
    field_selector: str = "",
) -> list[T]:
    """All objects of the kind that these selectors let pass, as they are now, for those who look once and do not watch.

    A broken one is logged and passed over. Raises ApiError.
    """

    def read(raw: bytes) -> T | None:
        try:
            return decode(raw, type_)
        except InvalidObjectError as error:
            logger.warning("one of %s is passed over: %s", resource.full_name, error)
            return None

    listing = await list_all(
        client, resource, read, namespace=namespace, label_selector=label_selector, field_selector=field_selector
    )
    return listing.items
