"""A whole list, read in pages and decoded page by page, so that memory holds one page of JSON and never the list.

Pages belong to one version of the cluster. When the apiserver has forgotten that version (410), what was read so far is
worth nothing: the list begins again.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, TypeVar

import msgspec

from muster.kube.errors import ApiError, Unreachable
from muster.model.objects import InvalidObjectError, LocalObject, decode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from muster.kube.client import Client
    from muster.kube.resource import Resource

__all__ = ["Listing", "Pages", "list_all", "list_into", "list_objects"]

logger = logging.getLogger(__name__)

T = TypeVar("T")
Taken_contra = TypeVar("Taken_contra", contravariant=True)

# Whoever twice needs longer for the pages than a version is kept (5 minutes) asks for all at once, as client-go does.
_ATTEMPTS_IN_PAGES = 2
# A page that does not come in time is the next time so much smaller; one that takes so small a part of its time lets
# the next one be twice as large, which then still comes in time.
_SMALLER, _QUICK = 4, 1 / 8
# What a gentle list asks for at once, for a page is decoded in one go, and how long it rests at most, for the list must
# end before its version is forgotten.
_GENTLE, _LONGEST_REST = 25, 0.1


class Listing(NamedTuple, Generic[T]):
    """All objects of one kind at one moment; a watch begins at `resource_version`."""

    items: list[T]
    resource_version: str


class _Whole(Protocol[Taken_contra]):
    """What a list's pages come into."""

    def extend(self, items: Iterable[Taken_contra], /) -> None:
        """Take one page."""


Into = TypeVar("Into", bound=_Whole[Any])


class Pages:
    """How many objects to ask for at once: `most`, but fewer while they do not come in time.

    Else a list whose first page takes longer than its deadline, for its objects are large or the way is slow, would
    never come. Kept from one list to the next.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self.size = most

    def late(self, asked: int) -> None:
        """A page of so many did not come in time."""
        self.size = max(1, asked // _SMALLER)

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
    namespace: str | None = None,
    label_selector: str = "",
    field_selector: str = "",
    page: int | Pages = 500,
    deadline: float = 60.0,
) -> Listing[T]:
    """List everything, in requests of `page` objects and `deadline` seconds at most.

    `read` decodes one object, or gives None to leave it out; it is also called for objects that do not come into the
    result. Raises ApiError, and what `read` raises.
    """
    whole: Callable[[], list[T]] = list
    items, resource_version = await list_into(
        whole,
        client,
        resource,
        read,
        namespace=namespace,
        label_selector=label_selector,
        field_selector=field_selector,
        page=page,
        deadline=deadline,
    )
    return Listing(items, resource_version)


async def list_into(
    whole: Callable[[], Into],
    client: Client,
    resource: Resource,
    read: Callable[[bytes], T | None],
    *,
    type_: type[T] | None = None,
    gently: bool = False,
    namespace: str | None = None,
    label_selector: str = "",
    field_selector: str = "",
    page: int | Pages = 500,
    deadline: float = 60.0,
) -> tuple[Into, str]:
    """List as `list_all` does, and give each page to `extend` of what `whole` gives as it comes.

    A list that begins again begins with another `whole`. Where there is a `type_`, a page of which each object can be
    decoded as that is not read one by one: that takes half the time, and others wait meanwhile. `gently` asks for small
    pages and rests after each for as long as it took, for those who wait here and for those whom the apiserver serves;
    not any more when the list had to begin again.
    """
    pages = page if isinstance(page, Pages) else Pages(page)
    clock = asyncio.get_running_loop().time
    taken = whole()
    continue_, attempt = "", 1
    while True:
        gently = gently and attempt == 1
        limit = min(pages.size, _GENTLE) if gently else pages.size
        began = clock()
        try:
            body = await client.list_page(
                resource,
                namespace=namespace,
                label_selector=label_selector,
                field_selector=field_selector,
                limit=limit if attempt <= _ATTEMPTS_IN_PAGES else 0,
                continue_=continue_,
                deadline=deadline,
            )
        except ApiError as error:
            if error.timed_out:
                pages.late(limit)
            if not (error.gone and continue_):
                raise
            taken, continue_, attempt = whole(), "", attempt + 1
            continue
        pages.came((clock() - began) / deadline)
        meta, found = _read_page(body, read, type_)
        taken.extend(found)
        continue_ = meta.continue_
        if not continue_:
            return taken, meta.resource_version
        if gently:
            await asyncio.sleep(min(clock() - began, _LONGEST_REST))


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
            logger.warning(
                "skipping malformed object of %s: %s", resource.full_name, error, extra={"event": "list.malformed"}
            )
            return None

    listing = await list_all(
        client, resource, read, namespace=namespace, label_selector=label_selector, field_selector=field_selector
    )
    return listing.items
