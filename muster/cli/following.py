"""Keeps the picture of a command up to date by watches, for commands that go on until they are stopped."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import asynccontextmanager
from typing import Any

from muster.cli.picture import Picture, look
from muster.kube.client import Client
from muster.kube.reflector import Reflector


class Followed:
    """A picture that follows its cluster.

    :ivar picture: the picture, as the watches last said
    :ivar changed: set at every change; whoever waits for it clears it
    """

    def __init__(self, picture: Picture, reflectors: Sequence[Reflector[Any]]) -> None:
        self.picture = picture
        self.changed = asyncio.Event()
        self._reflectors = reflectors
        for one in reflectors:
            one.store.subscribe(lambda _: self.changed.set())

    @property
    def faults(self) -> list[str]:
        """Why kinds are not followed at the moment, one sentence each: what is shown of them may be old."""
        return [f"{one.resource.full_name}: {one.fault}" for one in self._reflectors if one.fault is not None]


@asynccontextmanager
async def followed(client: Client, picture: Picture, namespace: str) -> AsyncIterator[Followed]:
    """Read everything once (`muster.cli.picture.look`), and follow it in the block. Raises ApiError for the former."""
    await look(client, namespace, picture)
    following = Followed(
        picture,
        [
            Reflector(
                client,
                watched.resource,
                watched.type,
                watched.store,
                field_selector=watched.field_selector,
                label_selector=watched.label_selector,
                namespace=scope,
                keep=watched.keep,
            )
            for watched, scope in picture.scopes
        ],
    )
    async with beside(*(one.run() for one in following._reflectors)):  # noqa: SLF001 - its own maker
        yield following


@asynccontextmanager
async def beside(*work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Do all of this beside the block; at its end it is cancelled, and has ended."""
    tasks = [asyncio.create_task(one) for one in work]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
