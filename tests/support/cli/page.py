"""The page as it is served, for a cluster that a test made up: real sockets, an apiserver that does as told."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import aiohttp

from muster.cli.following import Followed
from muster.cli.page.command import loopback, serving
from muster.cli.page.state import PageState
from muster.cli.picture import Picture
from tests.support.faults.apiserver import FaultyApiserver
from tests.support.manifests.observed import JSON, pod_group, queue, ray_cluster, ray_owner, ray_pod

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Mapping

    from muster.cli.page.live import Listeners
    from muster.observe.cluster import Cluster

__all__ = ["SECRET", "Served", "gangs", "limited", "served"]

SECRET = "the-secret-of-tests"  # noqa: S105 - of tests


@dataclass(frozen=True)
class Served:
    """A page that is served, and the apiserver behind it."""

    session: aiohttp.ClientSession
    state: PageState
    following: Followed
    apiserver: FaultyApiserver
    listeners: Listeners
    port: int

    def url(self, path: str = "", *, host: str = "127.0.0.1") -> str:
        """The address of a path below the secret."""
        return f"http://{host}:{self.port}/{SECRET}/{path}"

    async def get(self, path: str = "", **headers: str) -> tuple[int, str, Mapping[str, str]]:
        """Status, text and headers of an answer."""
        async with self.session.get(self.url(path), headers=headers) as answer:
            return answer.status, await answer.text(), answer.headers


@asynccontextmanager
async def served(cluster: Cluster, *, whole: bool = True) -> AsyncIterator[Served]:
    """The page of this cluster, as nobody changes it."""
    async with FaultyApiserver.serving() as apiserver, apiserver.client() as client, aiohttp.ClientSession() as session:
        following = Followed(Picture(cluster, whole=whole), [])
        state = PageState(client, following)
        await state.refresh()
        sockets = loopback(0)
        async with serving(state, SECRET, sockets) as listeners:
            yield Served(session, state, following, apiserver, listeners, sockets[0].getsockname()[1])


def limited(name: str, parent: str = "root", **capability: str) -> JSON:
    """A queue below another one, with these limits."""
    manifest = queue(name)
    manifest["spec"] = {"capability": capability, "parent": parent}
    return manifest


def gangs(names: Iterable[str], queue: str = "q", **annotations: str) -> tuple[list[JSON], list[JSON], list[JSON]]:
    """Workloads, pods and PodGroups of gangs of a head and two workers; those whose names begin with `run` run."""
    workloads, pods, groups = [], [], []
    for name in names:
        uid, runs = f"uid-{name}", name.startswith("run")
        workloads.append(ray_cluster(name=name, uid=uid, labels={"volcano.sh/queue-name": queue}))
        pods += [
            ray_pod(f"{name}-{pod}", role, held=not runs, cluster=name, owner_uid=uid)
            for pod, role in (("head", "headgroup"), ("w-0", "workers"), ("w-1", "workers"))
        ]
        said = {f"muster.dev/{key}": text for key, text in annotations.items()}
        groups.append(
            pod_group(
                f"ray-{name}-pg",
                owner=ray_owner(name),
                annotations=said,
                admitted=uid if runs else "",
                queue=queue,
            )
        )
    return workloads, pods, groups
