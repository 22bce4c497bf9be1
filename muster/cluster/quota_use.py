"""Keeps a ledger's ElasticQuotas as the cluster has them: the limits, and what pods use that are not of gangs.

The scheduler's controller writes into each quota what all running pods of the namespace use (`status.used`). What is
left of it without the running pods of gangs that hold there is used by others. The two come by different watches, some
moments apart: pods of a gang that have begun to run are in `used` only later, and hide as much of what others use. So
that others use less is believed when it was counted several times.
"""

from collections import deque
from contextlib import suppress

from muster.cluster.cluster import Cluster
from muster.kube.store import Change
from muster.model.objects import InvalidObjectError
from muster.model.pods import Pod
from muster.queueing.ledger import Ledger
from muster.resources.amounts import Resources, largest, minus
from muster.resources.elastic_quotas import ElasticQuota, used

# So often it is counted, about once a second, until what others use is what the last counts say. The controller counts
# again for each pod that begins to run.
_COUNTS = 3


class QuotaUse:
    """The use of ElasticQuotas that a ledger counts."""

    def __init__(self, cluster: Cluster, ledger: Ledger) -> None:
        self._cluster = cluster
        self._ledger = ledger
        self._quotas = cluster.elastic_quotas
        self._counted: dict[str, deque[Resources]] = {}
        # The namespaces in which pods or quotas have changed since what was counted is steady.
        self._changed: set[str] = set()
        # Namespaces whose quotas have changed since it was counted: others may use more.
        self._uncounted: set[str] = set()
        self._quotas.store.subscribe(self._quota_changed)
        cluster.pods.subscribe(self._pod_changed)

    def begin(self) -> None:
        """Enter the limits of all namespaces."""
        for namespace in self._quotas.limits:
            self.limit(namespace)

    def limit(self, namespace: str) -> bool:
        """Enter what has changed in the limit of a namespace; True when anything did."""
        ceiling = self._quotas.limits.ceiling(namespace)
        if ceiling is None:
            self._counted.pop(namespace, None)
            self._changed.discard(namespace)
            self._uncounted.discard(namespace)
        else:
            self._changed.add(namespace)
            self._uncounted.add(namespace)
        own = None if ceiling is None else ceiling.own
        return self._ledger.limit_namespace(namespace, own, whole=self._quotas.limits.whole)

    def count(self) -> bool:
        """Count what others use, where it may have changed; True when it has. To be called about every second."""
        changed = [self._count(namespace) for namespace in sorted(self._changed)]
        return any(changed)

    def notice(self, namespace: str) -> None:
        """Count what others have begun to use since the last count: a gang there may be about to start."""
        if namespace in self._uncounted:
            self._uncounted.discard(namespace)
            counts = self._counts_of(namespace)
            latest = self._others(namespace)
            if counts:
                latest = largest(counts.pop(), latest)
            counts.append(latest)
            self._update_ledger(namespace)

    def _count(self, namespace: str) -> bool:
        counts = self._counts_of(namespace)
        counts.append(self._others(namespace))
        self._uncounted.discard(namespace)
        if len(counts) == _COUNTS and all(count == counts[-1] for count in counts):
            self._changed.discard(namespace)
        return self._update_ledger(namespace)

    def _counts_of(self, namespace: str) -> deque[Resources]:
        return self._counted.setdefault(namespace, deque(maxlen=_COUNTS))

    def _update_ledger(self, namespace: str) -> bool:
        others: Resources = {}
        for count in self._counts_of(namespace):
            others = largest(others, count)
        return self._ledger.others_use(namespace, others)

    def _others(self, namespace: str) -> Resources:
        whole: Resources = {}
        for quota in self._quotas.store.by_index("namespace", namespace):
            with suppress(InvalidObjectError):
                whole = largest(whole, used(quota))
        return minus(whole, self._cluster.running_pods.of(namespace, self._ledger.holding_in(namespace)))

    def _quota_changed(self, change: Change[ElasticQuota]) -> None:
        namespace = change.object.metadata.namespace
        if namespace in self._quotas.limits:
            self._changed.add(namespace)
            self._uncounted.add(namespace)

    def _pod_changed(self, change: Change[Pod]) -> None:
        if change.object.metadata.namespace in self._quotas.limits:
            self._changed.add(change.object.metadata.namespace)
