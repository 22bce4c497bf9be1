"""A whole list, read in pages and decoded page by page, so that memory holds one page of JSON and never the list.

A page is bounded in bytes: if objects do not fit in it, fewer are asked for at once.

Pages belong to one version of the cluster. When the apiserver has forgotten that version (410), the pages read so far
are worth nothing: the list begins again.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable
from typing import Any, Protocol, TypeVar, Unpack

import msgspec

from muster.kube.client import MAX_PAGE_BYTES, Client, Selection
from muster.kube.errors import ApiError, OversizedAnswer, Unreachable
from muster.model.keep import Keep
from muster.model.objects import InvalidObjectError, LocalObject, decode
from muster.model.projection import Projection
from muster.model.resource import Resource

logger = logging.getLogger(__name__)

T = TypeVar("T")
Taken_contra = TypeVar("Taken_contra", contravariant=True)

# After two lists that took longer than a version is kept (5 minutes) all is asked for at once, as by client-go.
_ATTEMPTS_IN_PAGES = 2
# Factor by which a page shrinks that does not come in time; below this part of its time the next page is twice as
# large, and still comes in time.
_SMALLER, _QUICK = 4, 1 / 8
# Objects in a page of a gentle list, which is decoded in one go, and the longest rest in seconds after it: the list
# must end before its version is forgotten.
_GENTLE, _LONGEST_REST = 25, 0.1


class _Whole(Protocol[Taken_contra]):
    """The target of a list's pages."""

    def extend(self, items: Iterable[Taken_contra], /) -> None:
        """Take one page."""


Into = TypeVar("Into", bound=_Whole[Any])


class Pages:
    """The number of objects to ask for at once: `most`, but fewer while they come too late, or are too large.

    Else a list whose first page takes longer than its deadline, because of large objects or a slow network, would never
    come. Kept from one list to the next.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self.size = most

    def next(self, attempt: int, *, gently: bool) -> int:
        """Return the number to ask for in this attempt at a list; 0 for all at once."""
        if attempt > _ATTEMPTS_IN_PAGES:
            return 0
        return min(self.size, _GENTLE) if gently else self.size

    def failed(self, asked: int) -> None:
        """Note that a page of this size did not come in time, or was too large."""
        self.size = max(1, (asked or self._most) // _SMALLER)

    def came(self, part: float) -> None:
        """Note which part of its time, or of its bytes, the page took, whichever is more."""
        if part < _QUICK:
            self.size = min(self._most, self.size * 2)


class _ListMeta(LocalObject, frozen=True):
    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")


class _Page(LocalObject, frozen=True):
    metadata: _ListMeta = _ListMeta()
    items: tuple[msgspec.Raw, ...] | None = ()


async def list_all(
    client: Client,
    resource: Resource,
    read: Callable[[bytes], T | None],
    *,
    page: int | Pages = 500,
    deadline: float = 60.0,
    **selection: Unpack[Selection],
) -> list[T]:
    """List everything, in requests of `page` objects and `deadline` seconds at most.

    `read` decodes one object, or returns None to leave it out; it is also called for objects that do not come into the
    result. Raises ApiError, and the errors of `read`.
    """
    whole: Callable[[], list[T]] = list
    return (await list_into(whole, client, resource, read, page=page, deadline=deadline, **selection))[0]


async def list_into(
    whole: Callable[[], Into],
    client: Client,
    resource: Resource,
    read: Callable[[bytes], T | None],
    *,
    gently: bool = False,
    page: int | Pages = 500,
    deadline: float = 60.0,
    **selection: Unpack[Selection],
) -> tuple[Into, str]:
    """List as `list_all` does, and pass each page as it comes to `extend` of the result of `whole`.

    A list that begins again calls `whole` again. `gently` asks for small pages and rests after each for as long as it
    took, to spare this event loop and the apiserver; not any more when the list had to begin again.
    """
    pages = page if isinstance(page, Pages) else Pages(page)
    clock = asyncio.get_running_loop().time
    taken = whole()
    continue_, attempt = "", 1
    while True:
        gently = gently and attempt == 1
        limit = pages.next(attempt, gently=gently)
        began = clock()
        try:
            body = await client.list_page(resource, limit=limit, continue_=continue_, deadline=deadline, **selection)
        except OversizedAnswer:
            if limit == 1:
                raise
            pages.failed(limit)
            attempt = min(attempt, _ATTEMPTS_IN_PAGES)
            continue
        except ApiError as error:
            if error.timed_out:
                pages.failed(limit)
            if not (error.gone and continue_):
                raise
            taken, continue_, attempt = whole(), "", attempt + 1
            continue
        pages.came(max((clock() - began) / deadline, len(body) / MAX_PAGE_BYTES))
        meta, found = _read_page(body, read)
        taken.extend(found)
        continue_ = meta.continue_
        if not continue_:
            return taken, meta.resource_version
        if gently:
            await asyncio.sleep(min(clock() - began, _LONGEST_REST))


def _read_page(body: bytes, read: Callable[[bytes], T | None]) -> tuple[_ListMeta, list[T]]:
    try:
        page = decode(body, _Page)
    except InvalidObjectError as error:
        raise Unreachable(f"not a list: {error}") from error
    return page.metadata, [item for item in (read(bytes(raw)) for raw in page.items or ()) if item is not None]


async def list_objects(
    client: Client,
    resource: Resource,
    type_: type[T],
    *,
    keep: Keep | None = None,
    **selection: Unpack[Selection],
) -> list[T]:
    """Return all objects of the kind that these selectors let pass, as they are now: a single look without a watch.

    With `keep` no more of each than a store keeps. A malformed one is logged and skipped. Raises ApiError.
    """
    projection = Projection(type_, keep) if keep is not None else None

    def read(raw: bytes) -> T | None:
        try:
            return projection.decode(raw) if projection is not None else decode(raw, type_)
        except InvalidObjectError as error:
            logger.warning(
                "skipping malformed object of %s: %s", resource.full_name, error, extra={"event": "list.malformed"}
            )
            return None

    return await list_all(client, resource, read, **selection)
