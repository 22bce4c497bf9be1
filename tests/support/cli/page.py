"""The page as it is served, for a cluster that a test made up: real sockets, an apiserver that does as told."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

import aiohttp

from muster.cli.page.command import loopback, serving
from muster.cli.page.guard import Door
from muster.cli.page.server import Listeners
from muster.cli.page.state import PageState
from muster.cli.snapshot import ClusterSnapshot, Followed
from muster.cluster.cluster import Cluster
from tests.support.faults.apiserver import FaultyApiserver, failure

SECRET = "the-secret-of-tests"  # noqa: S105 - of tests
_LOCAL = Door(SECRET)


@dataclass(frozen=True)
class Served:
    """A page that is served, and the apiserver behind it."""

    session: aiohttp.ClientSession
    state: PageState
    following: Followed
    apiserver: FaultyApiserver
    listeners: Listeners
    port: int
    secret: str = SECRET

    def url(self, path: str = "", *, host: str = "127.0.0.1") -> str:
        """The address of a path below the secret."""
        return f"http://{host}:{self.port}/{self.secret}{'/' if self.secret else ''}{path}"

    async def get(self, path: str = "", **headers: str) -> tuple[int, str, Mapping[str, str]]:
        """Status, text and headers of an answer."""
        async with self.session.get(self.url(path), headers=headers) as answer:
            return answer.status, await answer.text(), answer.headers


@asynccontextmanager
async def served(
    cluster: Cluster, *, whole: bool = True, door: Door = _LOCAL, viewer: str = ""
) -> AsyncIterator[Served]:
    """The page of this cluster, as nobody changes it, behind this door; `viewer` as of PageState."""
    async with FaultyApiserver.serving() as apiserver, apiserver.client() as client, aiohttp.ClientSession() as session:
        # Nobody waits for what it is not told to answer.
        apiserver.on("LIST", failure(403, "Forbidden"))
        following = Followed(ClusterSnapshot(cluster, whole=whole), [])
        state = PageState(client, following, viewer)
        await state.refresh()
        sockets = loopback(0)
        async with serving(state, door, sockets) as listeners:
            yield Served(session, state, following, apiserver, listeners, sockets[0].getsockname()[1], door.secret)
