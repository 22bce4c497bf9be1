"""Requests that never end the command: each has a deadline, and a failure becomes an `Unseen`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TypeVar

import msgspec

from muster.cli.doctor.diagnosis import Unseen
from muster.cli.reading import PATIENCE
from muster.kube.client import Client
from muster.kube.errors import ApiError
from muster.kube.listing import list_all
from muster.kube.resource import Resource
from muster.model.objects import InvalidObjectError, LocalObject, decode

T = TypeVar("T")


class _Data(LocalObject, frozen=True):
    data: dict[str, str] = msgspec.field(default_factory=dict)


async def seen(ask: Awaitable[T], verb: str, thing: str, missing: T | None) -> T | Unseen | None:
    """The answer; `missing` when the object or the kind does not exist."""
    try:
        return await ask
    except ApiError as error:
        if error.not_found:
            return missing
        if error.forbidden:
            return Unseen(f"you cannot {verb} {thing}")
        return Unseen(f"{thing}: {error}", "try again, or see the log of the apiserver")
    except InvalidObjectError as error:
        return Unseen(f"{thing} cannot be decoded: {error}", "correct the object")


async def listed(
    client: Client, resource: Resource, type_: type[T], *, label_selector: str = ""
) -> tuple[T, ...] | Unseen:
    """All objects of a kind; none where the kind does not exist."""
    return await read_all(client, resource, lambda raw: decode(raw, type_), label_selector=label_selector)


async def read_all(
    client: Client,
    resource: Resource,
    read: Callable[[bytes], T],
    *,
    label_selector: str = "",
    field_selector: str = "",
) -> tuple[T, ...] | Unseen:
    """The same, each decoded by `read`."""

    def lenient(raw: bytes) -> T | None:
        # Malformed objects are skipped, as in the webhook and the controller.
        with suppress(InvalidObjectError):
            return read(raw)
        return None

    async def ask() -> tuple[T, ...]:
        listing = await list_all(
            client,
            resource,
            lenient,
            label_selector=label_selector,
            field_selector=field_selector,
            deadline=PATIENCE,
        )
        return tuple(listing.items)

    return await seen(ask(), "list", resource.full_name, ()) or ()


async def data_of(client: Client, resource: Resource, name: str, namespace: str) -> dict[str, str] | Unseen | None:
    """The `data` of a Secret or a ConfigMap, None where there is none."""

    async def ask() -> dict[str, str]:
        return decode(await client.get(resource, name, namespace, deadline=PATIENCE), _Data).data

    return await seen(ask(), "get", f"{resource.full_name} {name} in namespace {namespace}", None)
