"""The room of the nodes, for clusters whose nodes limit admission (`muster.dev/bound: nodes`).

The sum of what Ready nodes that are not cordoned can hold, less what pods of other schedulers have there. What pods
of muster's own scheduler hold on other nodes is added, for their claims count as well: a node that is cordoned leaves
together with what runs on it. What only such nodes have is there, and none of it is free. It is a sum: that a gang fits
in it does not mean that its pods fit on the nodes one by one; the scheduler sees to that.
"""

import asyncio
import contextlib
import logging

from muster.cluster.cluster import Cluster
from muster.cluster.gang_pods import requests_of
from muster.kube.client import Client
from muster.kube.reflector import Reflector, Watched
from muster.kube.store import Change, Store
from muster.model.objects import InvalidObjectError, Node
from muster.model.pods import Pod
from muster.model.resource import PODS
from muster.resources.amounts import Resources, minus, parse_resources, times, total
from muster.resources.pod_requests import pod_requests
from muster.resources.quantity import Quantity

logger = logging.getLogger(__name__)

# Nodes that are counted before others get their turn: a few milliseconds.
_AT_ONCE = 100


class NodeRoom:
    """Nodes, our pods on them (both of `cluster`), and other schedulers' pods; kept up to date from outside.

    The sum follows what changes: a node is counted again only when it, or another scheduler's pod on it, has changed.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.nodes: Store[Node] = cluster.nodes
        self.others: Store[Pod] = Store()
        self._held: dict[str, dict[str, Resources]] = {}
        self._changed = {node.metadata.name for node in self.nodes}
        # Of nodes that take pods what each can give, of the others (`_away`) what our pods there have, and the sum.
        self._given: dict[str, Resources] = {}
        self._sum: dict[str, Quantity] = {}
        self._away: set[str] = set()
        self.nodes.subscribe(self._node_changed)
        self.others.subscribe(self._pod_changed)
        cluster.pods.subscribe(self._our_pod_changed)

    def close(self) -> None:
        """Hear of nodes and of our pods no more."""
        self.nodes.unsubscribe(self._node_changed)
        self._cluster.pods.unsubscribe(self._our_pod_changed)

    @property
    def synced(self) -> bool:
        """True if everything was listed once."""
        return self.nodes.synced and self.others.synced

    def free(self) -> Resources:
        """The most that all gangs together may hold; a resource that no node has is unlimited, for autoscalers."""
        while self.count():
            pass
        return dict(self._sum)

    def count(self, most: int = _AT_ONCE) -> bool:
        """Count so many of the nodes that have changed; whether some are left."""
        for _ in range(min(most, len(self._changed))):
            self._count(self._changed.pop())
        return bool(self._changed)

    def _count(self, name: str) -> None:
        """Bring a node's part of the sum up to date."""
        for resource, amount in self._given.pop(name, {}).items():
            self._sum[resource] -= amount
            if not self._sum[resource] and not any(resource in other for other in self._given.values()):
                del self._sum[resource]
        self._away.discard(name)
        node = self.nodes.get("", name)
        if node is None:
            return
        if not node.takes_pods:
            self._away.add(name)
        others = total(self._held.get(name, {}).values())
        self._given[name] = minus(self._has(node), others) if node.takes_pods else self._away_with(node)
        self._sum = total([self._sum, self._given[name]])

    def _away_with(self, node: Node) -> Resources:
        """What gangs claim of all nodes and use on one that takes no new pods; 0 of what else it has.

        Pods that are being deleted are claimed until they are gone; on a node that is not Ready, only for a time.
        """
        pods = self._cluster.pods_on(node.metadata.name)
        ours = (pod for pod in pods if pod.living or (node.ready and not pod.finished))
        return total((times(self._has(node), 0), requests_of(self._cluster, ours)))

    def _has(self, node: Node) -> Resources:
        try:
            return parse_resources(node.status.allocatable, path="status.allocatable")
        except InvalidObjectError as error:
            logger.warning(
                "skipping node %s, which cannot be counted: %s",
                node.metadata.name,
                error,
                extra={"event": "node.unreadable"},
            )
            return {}

    def _our_pod_changed(self, change: Change[Pod]) -> None:
        names = {pod.spec.node_name for pod in (change.old, change.new) if pod is not None}
        self._changed |= names & self._away

    def _node_changed(self, change: Change[Node]) -> None:
        self._changed.update(node.metadata.name for node in (change.old, change.new) if node is not None)

    def _pod_changed(self, change: Change[Pod]) -> None:
        self._changed.update(pod.spec.node_name for pod in (change.old, change.new) if pod is not None)
        for pod in (change.old, change.new):
            if pod is not None and (there := self._held.get(pod.spec.node_name)) is not None:
                there.pop(pod.metadata.uid, None)
                if not there:
                    # Where nodes come and go, each has another name.
                    del self._held[pod.spec.node_name]
        pod = change.new
        if pod is not None and pod.spec.node_name and not pod.finished:
            with contextlib.suppress(InvalidObjectError):  # the apiserver has checked the quantities of every pod
                held = self._held.setdefault(pod.spec.node_name, {})
                held[pod.metadata.uid] = pod_requests(pod.spec, status=pod.status)


class NodeWatch:
    """Watches what others use on nodes, but only while it is asked for: a cluster has many pods."""

    def __init__(self, client: Client, cluster: Cluster) -> None:
        self._client = client
        self._cluster = cluster
        self._room: NodeRoom | None = None
        self._tasks: list[asyncio.Task[None]] = []

    async def room(self, *, wanted: bool) -> Resources | None:
        """The room of the nodes, None while it is not asked for; waits for the first list."""
        if not wanted:
            await self.stop()
            return None
        if self._room is None:
            self._room = NodeRoom(self._cluster)
            fields, labels = self._cluster.other_pods
            reflector = Reflector(self._client, Watched(PODS, Pod, self._room.others, fields, labels))
            self._tasks = [asyncio.create_task(reflector.run())]
        while not self._room.synced:  # noqa: ASYNC110 - two stores, once
            await asyncio.sleep(0.05)
        while self._room.count():  # noqa: ASYNC110 - it gives others their turn
            await asyncio.sleep(0)
        return self._room.free()

    async def stop(self) -> None:
        """Stop watching."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._room is not None:
            self._room.close()
        self._tasks, self._room = [], None
