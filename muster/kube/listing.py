"""A whole list, read in pages and decoded page by page, so that memory holds one page of JSON and never the list.

Pages belong to one version of the cluster. When the apiserver has forgotten that version (410), what was read so far is
worth nothing: the list begins anew.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

import msgspec

from muster.kube.errors import ApiError, Unreachable
from muster.objects import InvalidObjectError, LocalObject, decode

if TYPE_CHECKING:
    from collections.abc import Callable

    from muster.kube.client import Client
    from muster.kube.resource import Resource

__all__ = ["Listing", "list_all", "list_objects"]

logger = logging.getLogger(__name__)

T = TypeVar("T")

# Whoever twice needs longer for the pages than a version is kept (5 minutes) asks for all at once, as client-go does.
_ATTEMPTS_IN_PAGES = 2


class Listing(NamedTuple, Generic[T]):
    """All objects of one kind at one moment; a watch begins at `resource_version`."""

    items: list[T]
    resource_version: str


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
    namespace: str | None = None,
    label_selector: str = "",
    field_selector: str = "",
    page: int = 500,
    deadline: float = 60.0,
) -> Listing[T]:
    """List everything, in requests of `page` objects and `deadline` seconds at most.

    `read` decodes one object, or gives None to leave it out; it is also called for objects that do not come into the
    result. Raises ApiError, and what `read` raises.
    """
    items: list[T] = []
    continue_, attempt = "", 1
    while True:
        try:
            body = await client.list_page(
                resource,
                namespace=namespace,
                label_selector=label_selector,
                field_selector=field_selector,
                limit=page if attempt <= _ATTEMPTS_IN_PAGES else 0,
                continue_=continue_,
                deadline=deadline,
            )
        except ApiError as error:
            if not (error.gone and continue_):
                raise
            items, continue_, attempt = [], "", attempt + 1
            continue
        try:
            decoded = decode(body, _Page)
        except InvalidObjectError as error:
            raise Unreachable(f"not a list: {error}") from error
        items += [item for item in (read(bytes(raw)) for raw in decoded.items or ()) if item is not None]
        continue_ = decoded.metadata.continue_
        if not continue_:
            return Listing(items, decoded.metadata.resource_version)


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
