"""The web server of the page: addresses, errors, and nothing but reading.

All that comes from the cluster is text in its HTML: it is escaped, and on one line.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache, partial
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from aiohttp import web
from aiohttp.typedefs import Handler
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from muster.cli.page.board import Board, Filter
from muster.cli.page.charts import ahead, chart
from muster.cli.page.gang import HOLDERS, gang_page
from muster.cli.page.guard import HEADERS, Door, refusal
from muster.cli.page.state import PageState
from muster.cli.ui import age, amounts, counted, lasting
from muster.kube.errors import ApiError
from muster.model.gang_states import GangState
from muster.model.texts import printable
from muster.queueing.ledger import GangKey

logger = logging.getLogger(__name__)
_HERE = Path(__file__).parent
# Of the folder `static`: what the page loads in addition to its HTML.
_FILES = {"page.css": "text/css", "page.js": "text/javascript", "icon.svg": "image/svg+xml"}
# Headers that an error keeps.
_KEPT = ("Allow", "Retry-After")
# A page number; more digits are no page of anything.
_LONGEST_NUMBER = 6
MOST = 32
"""The number of pages that are open at once."""


def application(state: PageState, door: Door, listeners: Listeners) -> web.Application:
    """The application, below `/SECRET/` where its door has a secret."""
    pages = _Pages(state, door)
    below = "/{secret}" if door.secret else ""
    app = web.Application(middlewares=[pages.guarded, pages.readable])
    app.on_response_prepare.append(_say_headers)
    app.on_shutdown.append(listeners.close)
    app.router.add_get(f"{below}/", pages.board)
    app.router.add_get(f"{below}/gang", pages.gang)
    app.router.add_get(f"{below}/events", listeners.listen, allow_head=False)
    for name in _FILES:
        app.router.add_get(f"{below}/{name}", pages.file)
    return app


async def _say_headers(_: web.Request, response: web.StreamResponse) -> None:
    response.headers.update(HEADERS)


class _Pages:
    """The handlers."""

    def __init__(self, state: PageState, door: Door) -> None:
        self._state = state
        self._door = door
        self._static = {name: (_HERE / "static" / name).read_bytes() for name in _FILES}

    @web.middleware
    async def guarded(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Refuse what `muster.cli.page.guard` refuses, before anything else is answered."""
        _, given, *_ = [*request.path.split("/", 2), ""]
        refused = refusal(request.headers, self._door, given)
        if refused is not None:
            raise refused
        return await handler(request)

    @web.middleware
    async def readable(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Give every error a page that explains it."""
        try:
            return await handler(request)
        except web.HTTPException as error:
            if error.status < web.HTTPBadRequest.status_code:
                raise
            answer = self._error(error.status, error.reason, error.text or "")
            answer.headers.update({name: error.headers[name] for name in _KEPT if name in error.headers})
            return answer
        except ApiError as error:
            return self._error(502, "The apiserver gives no answer", str(error))
        except TimeoutError:
            return self._error(504, "The apiserver gives no answer", f"{self._state.client.server} takes too long")
        except Exception:
            logger.exception("no page", extra={"event": "page.error"})
            where = "log of muster-page" if self._state.viewer else "terminal in which muster page runs"
            message = f"internal error; the {where} shows it"
            return self._error(500, "No page", message)

    def _error(self, status: int, title: str, message: str) -> web.Response:
        return self._page("error.html", status=status, title=title, message=message)

    def _page(self, template: str, *, status: int = 200, title: str, **values: object) -> web.Response:
        state = self._state
        about = {
            "title": title,
            "revision": state.revision,
            "server": state.client.server,
            "cluster": state.cluster_name,
            "viewer": state.viewer,
        }
        text = render(template, **about, reader="this page" if state.viewer else "you", **values)
        return web.Response(text=text, content_type="text/html", status=status)

    async def file(self, request: web.Request) -> web.Response:
        """A file that the pages load."""
        name = request.path.rpartition("/")[2]
        return web.Response(body=self._static[name], content_type=_FILES[name], charset="utf-8")

    async def board(self, request: web.Request) -> web.Response:
        """All queues and gangs."""
        state, board, asked = self._state, self._state.board, request.query
        state.want_starts()
        only = Filter(asked.get("namespace", ""), asked.get("queue", ""))
        samples, starts = state.samples, state.starts
        queues = board.queues(_number(asked, "queues"), only.queue)
        rows = {row.entry["name"]: row for row in queues.rows}
        waiting_total, others_total, holding_total = board.totals
        return self._page(
            "board.html",
            title="Queues and gangs - muster",
            now=state.as_of,
            troubles=state.warnings,
            only=only,
            namespaces=board.namespaces,
            queue_names=board.queue_names,
            waiting_total=waiting_total,
            others_total=others_total,
            holding_total=holding_total,
            queues=queues,
            coming={
                name: ahead(
                    board.now,
                    _titled(row.entry["reservation"], board),
                    starts.in_queue(name) if starts is not None else (),
                )
                for name, row in rows.items()
            },
            forecast=starts.now if starts is not None else None,
            charts={name: chart(*samples.hour(name)) for name in rows},
            watched=samples.began,
            weeks=state.weeks,
            shares=any(row.entry["share"] for row in queues.rows),
            waiting=board.waiting(only, _number(asked, "waiting"), starts=starts),
            holding=board.holding(only, _number(asked, "running")),
            others=board.others(only, _number(asked, "others")),
            unknown=tuple(state.visible.missing),
            links=lambda param, number: f"?{urlencode({**asked, param: number})}",
        )

    async def gang(self, request: web.Request) -> web.Response:
        """One gang."""
        state, asked = self._state, request.query
        state.want_starts()
        key = GangKey(asked.get("namespace", ""), asked.get("name", ""))
        page = await gang_page(key, state)
        if page is None:
            message = (
                f'There is no gang "{key.name}" in namespace "{key.namespace}": it has ended and is deleted, '
                f"the name is wrong, or {'this page' if state.viewer else 'you'} may not read it."
            )
            return self._error(404, "No such gang", message)
        return self._page(
            "gang.html",
            title=f"{key.namespace}/{page.entry['workload']['name']} - muster",
            now=state.as_of,
            troubles=[*state.warnings, *page.troubles],
            key=key,
            page=page,
            title_of=lambda namespace, name: state.board.title(GangKey(namespace, name)),
            holders=HOLDERS,
        )


def _titled(reservation: Mapping[str, Any] | None, board: Board) -> Mapping[str, Any] | None:
    """The reservation with the workload of its gang."""
    if reservation is None:
        return None
    namespace, _, name = reservation["gang"].partition("/")
    return {**reservation, "gang": f"{namespace}/{board.title(GangKey(namespace, name))}"}


def _number(asked: Mapping[str, str], name: str) -> int:
    """The page number that was asked for; the first for anything else."""
    text = asked.get(name, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _LONGEST_NUMBER else 1


class Listeners:
    """The pages that are open. There are `most` of them at once; a refused one asks again later.

    A listener without an event for `quiet` seconds gets a comment, so that one that is gone is noticed;
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
        """The number of open pages."""
        return len(self._open)

    async def close(self, _: web.Application) -> None:
        """Let all of them go."""
        for one in self._open:
            one.cancel()

    async def listen(self, request: web.Request) -> web.StreamResponse:
        """Send `changed` with the revision whenever it is not the last one that this page has (`since`)."""
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


def render(template: str, **values: object) -> str:
    """The HTML of a template of `templates/`."""
    return _environment().get_template(template).render(values)


@cache
def _environment() -> Environment:
    environment = Environment(
        # For every file, independent of its name.
        autoescape=True,
        loader=FileSystemLoader(_HERE / "templates"),
        undefined=StrictUndefined,
        finalize=_finalized,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals["known_states"] = frozenset(map(str, GangState))
    # Text as a value in the query of a link.
    query = partial(quote, safe="")
    environment.filters.update(age=age, amounts=amounts, counted=counted, lasting=lasting, moment=_moment, query=query)
    return environment


def _finalized(value: object) -> object:
    """The text of an expression of a template, without control characters or marks that turn its direction."""
    return printable(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _moment(seconds: float) -> str:
    """A moment in UTC, for people: `2026-11-24 14:03:22`."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S")
