"""Watches of single objects, for callers that look again whenever one changes."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

from muster.kube.client import Client
from muster.kube.reflector import Reflector
from muster.kube.resource import Resource
from muster.kube.store import Change, Store
from muster.model.objects import PartialObjectMetadata


def watches(
    client: Client, objects: Iterable[tuple[Resource, str, str | None]], changed: asyncio.Event
) -> list[Reflector[Any]]:
    """A watch for each single object (kind, name, namespace) that sets `changed` whenever it changes."""

    def note(_: Change[PartialObjectMetadata]) -> None:
        changed.set()

    made = []
    for resource, name, namespace in objects:
        store: Store[PartialObjectMetadata] = Store()
        store.subscribe(note)
        # By its name: the right to watch one object is enough.
        made.append(
            Reflector(
                client,
                resource,
                PartialObjectMetadata,
                store,
                namespace=namespace,
                field_selector=f"metadata.name={name}",
            )
        )
    return made
