"""REST calls to the apiserver: raw JSON in and out, each with a deadline, retried where that is safe.

It decodes only errors. A call returns the body as it came, for `muster.model.objects.decode`: building model objects
costs a hundred times as much (docs/design-notes.md).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from types import TracebackType
from typing import Any, Self, TypedDict, Unpack

import msgspec

from muster.kube.config import Connection, load_connection
from muster.kube.errors import ApiError
from muster.kube.transport import Call, Transport
from muster.model.resource import Resource

Body = Mapping[str, Any]

_WRITE_SECONDS = 10.0
# etcd refuses objects above 1.5 MiB, and JSON may take six bytes for one of theirs; a watch event holds one.
MAX_LINE_BYTES = 10 * 2**20
# One such object always fits in, and a page of usual ones by far.
MAX_PAGE_BYTES = 12 * 2**20


class WriteOptions(TypedDict, total=False):
    """Options of all writes but a deletion."""

    field_manager: str
    """The field manager of the written fields; the apiserver names the program if it is not set."""
    dry_run: bool
    """True for a dry run: the apiserver answers, and stores nothing."""
    deadline: float
    """Seconds for all attempts together."""


class Selection(TypedDict, total=False):
    """The objects of a kind that a list or a watch shows; all of the cluster if nothing is set."""

    namespace: str | None
    """Their namespace; None for all namespaces."""
    label_selector: str
    """A selector of labels, as the API takes it."""
    field_selector: str
    """A selector of fields."""


class Client:
    """One apiserver, over at most 64 connections. An asynchronous context manager; make it with `connect`.

    Every call raises ApiError for a refusal and Unreachable, an ApiError too, when no answer came within `deadline`
    seconds, which covers all attempts. 429 and 5xx with Retry-After are obeyed for every call, as client-go does;
    without it 5xx and broken connections are tried again only for calls that may safely happen twice.
    """

    def __init__(self, connection: Connection, *, user_agent: str) -> None:
        self._user_agent = user_agent
        self._transport = Transport(connection, user_agent=user_agent)

    @classmethod
    async def connect(cls, *, kubeconfig: str | None = None, context: str | None = None, user_agent: str) -> Self:
        """Connect by the given kubeconfig, else `$KUBECONFIG`, else in-cluster, else `~/.kube/config`.

        Sends nothing yet. Raises ConfigError (`muster.kube.config`) when there is no usable configuration.
        """
        return cls(await load_connection(kubeconfig, context), user_agent=user_agent)

    def dedicated_connection(self) -> Client:
        """Return a client with connections of its own, for calls that must not wait for other calls.

        It uses the same apiserver and credentials; close it as well.
        """
        return Client(self._transport.connection, user_agent=self._user_agent)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close all connections; safe to call twice."""
        await self._transport.close()

    @property
    def server(self) -> str:
        """The apiserver's base URL, for messages."""
        return self._transport.connection.server

    @property
    def context(self) -> str:
        """The name of the kubeconfig's context; "" in a pod."""
        return self._transport.connection.context

    @property
    def namespace(self) -> str:
        """The default namespace: the one of the context, or of the pod."""
        return self._transport.connection.namespace

    @property
    def in_cluster(self) -> bool:
        """True if this is the connection of a pod, with the credentials of its own ServiceAccount."""
        return self._transport.connection.in_cluster

    def on_warning(self, report: Callable[[str], None]) -> None:
        """Call `report` for every warning in an answer: the apiserver's own, and those of webhooks."""
        self._transport.on_warning = report

    def now(self) -> datetime:
        """Return the apiserver's clock, as of its last answer; this machine's before the first."""
        return self._transport.clock.now()

    async def get(
        self, resource: Resource, name: str, namespace: str | None = None, *, deadline: float = 10.0
    ) -> bytes:
        """Read one object."""
        return await self._transport.request(Call("GET", resource.path(namespace, name), {}), deadline)

    async def get_path(self, path: str, *, deadline: float = 10.0) -> bytes:
        """Read a path that is no object, such as `/version`; the answer must be JSON."""
        return await self._transport.request(Call("GET", path, {}), deadline)

    async def probe(self, path: str = "/version", *, deadline: float) -> bytes:
        """Get a path in a single attempt of `deadline` seconds, to learn if the apiserver answers. Raises ApiError."""
        return await self._transport.once(Call("GET", path, {}), deadline)

    async def list_page(
        self,
        resource: Resource,
        *,
        limit: int = 500,
        continue_: str = "",
        deadline: float = 60.0,
        **selection: Unpack[Selection],
    ) -> bytes:
        """Read one page of a list; the next one's `continue_` is in its metadata. `limit` 0 asks for all at once.

        Raises OversizedAnswer, too, for a page of more than `MAX_PAGE_BYTES`.
        """
        params = {**_selectors(selection), "limit": str(limit or ""), "continue": continue_}
        call = Call("GET", resource.path(selection.get("namespace")), params, most=MAX_PAGE_BYTES)
        return await self._transport.request(call, deadline)

    async def create(
        self, resource: Resource, body: Body, namespace: str | None = None, **options: Unpack[WriteOptions]
    ) -> bytes:
        """Create an object. Not repeated after a broken connection, since it may have been created."""
        return await self._write("POST", resource.path(namespace), body, options, repeatable=False)

    async def replace(
        self, resource: Resource, name: str, body: Body, namespace: str | None = None, **options: Unpack[WriteOptions]
    ) -> bytes:
        """Replace an object; with `metadata.resourceVersion` in the body only if it is still that one.

        A repetition after a lost answer meets its own work as a conflict.
        """
        return await self._write("PUT", resource.path(namespace, name), body, options)

    async def apply(
        self, resource: Resource, name: str, body: Body, namespace: str | None = None, **options: Unpack[WriteOptions]
    ) -> bytes:
        """Server-side apply by `field_manager`: create the object or take the fields in `body` from others."""
        # JSON is YAML, so no YAML writer is needed.
        path, kind = resource.path(namespace, name), "apply-patch+yaml"
        return await self._write("PATCH", path, body, options, kind=kind, force="true")

    async def json_patch(
        self,
        resource: Resource,
        name: str,
        operations: Sequence[Body],
        namespace: str | None = None,
        **options: Unpack[WriteOptions],
    ) -> bytes:
        """Apply RFC 6902 operations; a failed `test` is ApiError 422. Not repeated, as a creation is not."""
        path, kind = resource.path(namespace, name), "json-patch+json"
        return await self._write("PATCH", path, operations, options, kind=kind, repeatable=False)

    async def merge_patch(
        self, resource: Resource, name: str, body: Body, namespace: str | None = None, **options: Unpack[WriteOptions]
    ) -> bytes:
        """Apply an RFC 7386 merge patch: None removes a field, lists are replaced."""
        path = resource.path(namespace, name)
        return await self._write("PATCH", path, body, options, kind="merge-patch+json")

    async def strategic_merge_patch(
        self, resource: Resource, name: str, body: Body, namespace: str | None = None, **options: Unpack[WriteOptions]
    ) -> bytes:
        """Apply a strategic merge patch, which merges lists by key; built-in kinds only (custom ones answer 415)."""
        path = resource.path(namespace, name)
        return await self._write("PATCH", path, body, options, kind="strategic-merge-patch+json")

    async def delete(
        self,
        resource: Resource,
        name: str,
        namespace: str | None = None,
        *,
        uid: str | None = None,
        resource_version: str | None = None,
        dry_run: bool = False,
        deadline: float = 10.0,
    ) -> bool:
        """Delete an object, its dependants in the background; one that is gone already is a success.

        Returns True if it existed; False, too, if it was deleted but the answer was lost and the call repeated.
        With `uid` only that object, with `resource_version` only in that state: else it is ApiError Conflict.
        """
        body: dict[str, Any] = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background"}
        asked = {"uid": uid, "resourceVersion": resource_version}
        if preconditions := {name: value for name, value in asked.items() if value is not None}:
            body["preconditions"] = preconditions
        if dry_run:
            body["dryRun"] = ["All"]
        try:
            call = Call("DELETE", resource.path(namespace, name), {}, msgspec.json.encode(body))
            await self._transport.request(call, deadline)
        except ApiError as error:
            if not error.not_found:
                raise
            return False
        return True

    def watch(
        self,
        resource: Resource,
        *,
        resource_version: str,
        timeout_seconds: int = 300,
        silence: float = 90.0,
        open_deadline: float = 30.0,
        max_line: int = MAX_LINE_BYTES,
        **selection: Unpack[Selection],
    ) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """Watch from `resource_version` on; yields the events' raw lines until the server ends the watch.

        The server ends it after `timeout_seconds`. Never retried here: the caller knows where to resume. Raises, on
        entering or from the iterator, Unreachable, WatchIdle after `silence` seconds without a byte (bookmarks come
        only after a change to the kind, wherever in the cluster), and ApiError, also for a line above `max_line`
        bytes: list then, as it would come again after resuming.
        """
        params = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": resource_version,
            "timeoutSeconds": str(timeout_seconds),
            **_selectors(selection),
        }
        call = Call("GET", resource.path(selection.get("namespace")), params)
        return self._transport.stream(call, open_deadline=open_deadline, silence=silence, max_line=max_line)

    async def _write(
        self,
        method: str,
        path: str,
        body: object,
        options: WriteOptions,
        *,
        kind: str = "json",
        repeatable: bool = True,
        force: str = "",
    ) -> bytes:
        params = {
            "fieldManager": options.get("field_manager", ""),
            "dryRun": "All" if options.get("dry_run") else "",
            "force": force,
        }
        call = Call(method, path, params, msgspec.json.encode(body), f"application/{kind}", repeatable)
        return await self._transport.request(call, options.get("deadline", _WRITE_SECONDS))


def _selectors(selection: Selection) -> dict[str, str]:
    return {
        "labelSelector": selection.get("label_selector", ""),
        "fieldSelector": selection.get("field_selector", ""),
    }
