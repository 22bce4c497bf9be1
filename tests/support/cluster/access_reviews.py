"""Thousands of SelfSubjectAccessReviews: what the apiserver's own authorizer answers to a token."""

import asyncio
import ssl
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import product
from typing import NamedTuple

import aiohttp
import msgspec

from hack.testbed import Testbed
from hack.testbed.api import Api
from muster.cli.doctor.installed import Right

_REST = ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection")
VERBS = (
    *_REST,
    # Those that Kubernetes asks about beside what its REST paths do; all of them at once; and muster's own.
    *("impersonate", "bind", "escalate", "approve", "sign", "attest", "use", "proxy", "*", "release"),
)

_CONNECTIONS = 16
_ANY_NAME = "whatever"


class Kind(NamedTuple):
    """A resource or subresource (`pods/exec`) of a group."""

    group: str
    resource: str
    namespaced: bool


def discovered(calls: Api) -> set[Kind]:
    """What the apiserver serves, in every version of every group."""
    groups = calls.done("GET", "/apis")["groups"]
    versions = ["v1", *(version["groupVersion"] for group in groups for version in group["versions"])]
    found = set()
    for version in versions:
        listed = calls.done("GET", f"/{'apis' if '/' in version else 'api'}/{version}")["resources"]
        group = version.rpartition("/")[0]
        found |= {Kind(group, item["name"], item["namespaced"]) for item in listed}
    return found


def questions(kinds: Iterable[Kind], own: str, other: str, rights: Collection[Right]) -> Iterator[Right]:
    """Every verb on every kind, so that no right can stay unseen; the namespaces are the processes' own and another.

    Who may do something to all objects may do it to any one, and who may in all namespaces may in each: so where there
    is to be no right, any one object in a namespace is asked about. Where there is one, the wider questions are asked
    as well, and those about the objects that rights name.
    """
    ways = {right[:3] for right in rights}
    for kind in kinds:
        named = {right.name for right in rights if (right.group, right.resource) == kind[:2]}
        for verb in VERBS:
            more = ("",) if (verb, *kind[:2]) in ways else ()
            places = (*more, own, *((other,) if verb in _REST else ())) if kind.namespaced else ("",)
            for place, name in product(places, {_ANY_NAME, *more, *named}):
                yield Right(verb, kind.group, kind.resource, name, place)


async def allowed(testbed: Testbed, token: str, asked: Sequence[Right]) -> list[bool]:
    """What the holder of the token may do, in the order of the questions; a path stands as the resource of no group.

    Raises AssertionError for an answer that is no review.
    """
    context = ssl.create_default_context(cafile=str(testbed.ca_file))
    url = f"{testbed.server}/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    answers = [False] * len(asked)
    waiting = iter(enumerate(asked))

    async def ask(session: aiohttp.ClientSession) -> None:
        for index, right in waiting:
            async with session.post(url, data=msgspec.json.encode(_review(right)), headers=headers) as response:
                status = msgspec.json.decode(await response.read())["status"]
            assert not status.get("evaluationError"), status
            answers[index] = status["allowed"]

    connector = aiohttp.TCPConnector(limit=_CONNECTIONS, ssl=context)
    async with aiohttp.ClientSession(connector=connector) as session, asyncio.TaskGroup() as tasks:
        for _ in range(_CONNECTIONS):
            tasks.create_task(ask(session))
    return answers


def _review(right: Right) -> dict[str, object]:
    if right.resource.startswith("/"):
        return {"spec": {"nonResourceAttributes": {"path": right.resource, "verb": right.verb}}}
    return {"spec": {"resourceAttributes": right.attributes}}
