"""Tells open pages that something has changed, by server-sent events. What has changed they ask for themselves."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from aiohttp import web

if TYPE_CHECKING:
    from muster.cli.page.state import PageState


MOST = 32
"""How many pages are open at once."""


class Listeners:
    """The pages that are open. There are `most` of them at once; a refused one asks again later.

    A listener to whom nothing has been said for `quiet` seconds gets a comment, so that one that is gone is noticed;
    one that takes nothing for `slowest` seconds is let go.
    """

    def __init__(self, state: PageState, *, most: int = MOST, quiet: float = 15.0, slowest: float = 10.0) -> None:
        self._state = state
        self._most = most
        self._quiet = quiet
        self._slowest = slowest
        self._open: set[asyncio.Task[object]] = set()

    @property
    def open(self) -> int:
        """How many there are."""
        return len(self._open)

    async def close(self, _: web.Application) -> None:
        """Let all of them go."""
        for one in self._open:
            one.cancel()

    async def listen(self, request: web.Request) -> web.StreamResponse:
        """Say `changed` with the revision whenever that is not the last one that this page has (`since`)."""
        if self.open >= self._most:
            raise web.HTTPServiceUnavailable(text=f"{self._most} pages are open already", headers={"Retry-After": "10"})
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("a request is answered by a task")
        self._open.add(task)
        try:
            response = web.StreamResponse(headers={"Content-Type": "text/event-stream; charset=utf-8"})
            await response.prepare(request)
            with suppress(ConnectionError, TimeoutError):
                await self._tell(response, request.query.get("since", ""))
        finally:
            self._open.discard(task)
        return response

    async def _tell(self, response: web.StreamResponse, seen: str) -> None:
        while True:
            revision = self._state.revision
            line = ": nothing new\n\n" if str(revision) == seen else f"event: changed\ndata: {revision}\n\n"
            async with asyncio.timeout(self._slowest):
                await response.write(line.encode())
            seen = str(revision)
            with suppress(TimeoutError):
                async with asyncio.timeout(self._quiet):
                    await self._state.next_revision(revision)
