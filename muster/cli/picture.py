"""What a user may see of the cluster, in the controller's own stores, and in words what he may not.

The ledger is made from it as a leader makes his at the beginning of a term: the same objects, the same rules.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from muster.gangs.intent import Defaults
from muster.kube.errors import ApiError
from muster.kube.listing import list_objects
from muster.kube.resource import NAMESPACES, NODES, PODS
from muster.model.modes import GateMode
from muster.model.objects import InvalidObjectError, Namespace, Node, Pod, decode
from muster.observe.cluster import Cluster, Watched
from muster.observe.context import EntryContext
from muster.observe.ledger_entry import enter_ledger
from muster.observe.nodes import OTHERS, NodeRoom
from muster.observe.observing import observe
from muster.queueing.ledger import GangKey, Ledger
from muster.queueing.queue_tree import read_queue

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from muster.kube.client import Client
    from muster.observe.view import View
    from muster.resources.amounts import Resources

__all__ = ["LedgerSnapshot", "Picture", "look"]

_CONSEQUENCES = {
    "queues.scheduling.volcano.sh": "limits, and what is free, are unknown",
    "priorityclasses.scheduling.k8s.io": "priorities count as 0, so that positions may be wrong",
    "limitranges": "what they give to containers that ask for nothing is unknown",
    "resourcequotas": "what they still allow is unknown",
    "runtimeclasses.node.k8s.io": "what pods take beside their containers (overhead) is unknown",
    "namespaces": "what the namespace says of its gangs (a queue, opting in or out) is unknown",
}


@dataclass(slots=True)
class Picture:
    """The stores as they are now; `missing` are the rights that were missing, each with what that means.

    `whole` tells whether every namespace was seen: else what others hold, and who waits before whom, is unknown.
    `scopes` gives for every store that could be read the namespace that was, None for all of them. `defaults` and
    `by_nodes` are what muster was installed with: what holds where nobody says anything, whether the nodes bound all.
    """

    cluster: Cluster = field(default_factory=Cluster)
    nodes: Resources | None = None
    missing: list[str] = field(default_factory=list)
    whole: bool = True
    scopes: list[tuple[Watched, str | None]] = field(default_factory=list)
    defaults: Defaults = field(default_factory=Defaults)
    by_nodes: bool = False

    @classmethod
    def begun(cls, arguments: argparse.Namespace) -> Picture:
        """A picture of nothing yet, of a cluster that has muster as the command's options say."""
        defaults = Defaults(queue=arguments.default_queue, gate=GateMode(arguments.gate))
        return cls(defaults=defaults, by_nodes=arguments.bound == "nodes")

    def ledger_snapshot(self, now: float) -> LedgerSnapshot:
        """The ledger of all gangs in sight, at `now` in seconds of the wall clock."""
        snapshot = LedgerSnapshot(Ledger(), {}, now)
        for queue in self.cluster.queues:
            try:
                snapshot.ledger.set_queue(read_queue(queue))
            except InvalidObjectError as error:
                self.note(f"queue {queue.metadata.name} cannot be read, and nothing new starts there: {error}")
        snapshot.ledger.bound(self.nodes)
        priorities = self.cluster.priorities()
        for key in self.cluster.gangs():
            view = snapshot.views[key] = observe(key, self.cluster, self.defaults, now=now)
            enter_ledger(view, snapshot.ledger, EntryContext(now, priorities, grow=False))
        return snapshot

    def note(self, text: str) -> None:
        """Remember what is not known, once."""
        if text not in self.missing:
            self.missing.append(text)


@dataclass(frozen=True, slots=True)
class LedgerSnapshot:
    """The ledger, and every gang in it as it stands."""

    ledger: Ledger
    views: dict[GangKey, View]
    now: float


async def look(client: Client, namespace: str, picture: Picture) -> None:
    """Put all into the picture that a decision rests on: from everywhere where that is allowed, else of the namespace.

    Raises ApiError when the apiserver does not answer.
    """
    for watched in picture.cluster.watched():
        scope = await _list(client, watched, namespace, picture)
        if scope is not _UNREADABLE:
            picture.scopes.append((watched, scope or None))
    tree = picture.ledger_snapshot(0.0).ledger.tree
    if picture.by_nodes or tree.bound_by_nodes:
        picture.nodes = await _nodes(client, picture)


_UNREADABLE = "."  # no namespace's name


async def _list(client: Client, watched: Watched, namespace: str, picture: Picture) -> str:
    """Fill a store; gives the namespace that was read, "" for all."""
    resource, name = watched.resource, watched.resource.full_name
    scopes = ("", namespace) if resource.namespaced else ("",)
    for scope in scopes:
        try:
            found: Sequence[Any] = await list_objects(
                client,
                resource,
                watched.type,
                namespace=scope or None,
                field_selector=watched.field_selector,
                label_selector=watched.label_selector,
            )
        except ApiError as error:
            if error.not_found:
                # The kind is not installed: there are none.
                watched.store.replace_all([])
                return ""
            if not error.forbidden:
                raise
            continue
        watched.store.replace_all(found)
        if scope:
            picture.whole = False
            picture.note(f'may not list {name} in all namespaces, only in "{scope}": what is elsewhere is unknown')
        return scope
    watched.store.replace_all([])
    if resource == NAMESPACES and await _one_namespace(client, namespace, picture):
        return _UNREADABLE
    where = f' in "{namespace}"' if resource.namespaced else ""
    picture.whole = picture.whole and not resource.namespaced
    picture.note(f"may not list {name}{where}: {_CONSEQUENCES.get(name, 'they are unknown')}")
    return _UNREADABLE


async def _one_namespace(client: Client, name: str, picture: Picture) -> bool:
    """Read the namespace that is looked at; what others say of their gangs is with their gangs."""
    try:
        found = decode(await client.get(NAMESPACES, name), Namespace)
    except ApiError as error:
        if not (error.forbidden or error.not_found):
            raise
        return False
    picture.cluster.namespaces.replace_all([found])
    return True


async def _nodes(client: Client, picture: Picture) -> Resources | None:
    room = NodeRoom(picture.cluster)
    try:
        room.nodes.replace_all(await list_objects(client, NODES, Node))
        room.others.replace_all(await list_objects(client, PODS, Pod, field_selector=OTHERS))
    except ApiError as error:
        if not error.forbidden:
            raise
        picture.note("may not list nodes, or pods in all namespaces: what the nodes can give is unknown")
        return None
    return room.free()
