"""The ElasticQuotas of all namespaces as the watch last said, and what they let the gangs of a namespace hold.

Webhook and controller watch them, and a plan lists them, where the scheduler enforces them (chart value
`elasticQuotas`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from muster.kube.store import Change, Store
from muster.model.objects import InvalidObjectError
from muster.resources.elastic_quotas import ElasticQuota, NamespaceLimits, limit_of

logger = logging.getLogger(__name__)


class ElasticQuotas:
    """The ElasticQuotas of all namespaces, and the limits that follow from them."""

    def __init__(self) -> None:
        self.store: Store[ElasticQuota] = Store()
        self.store.index("namespace", lambda one: (one.metadata.namespace,))
        self.limits = NamespaceLimits()
        self._told: list[Callable[[str], None]] = []
        self.store.subscribe(self._changed)

    def subscribe(self, namespace: Callable[[str], None]) -> None:
        """Tell `namespace` of every namespace whose limit is another now.

        The scheduler's controller writes what is used into each quota again and again; that changes no limit.
        """
        self._told.append(namespace)

    def _changed(self, change: Change[ElasticQuota]) -> None:
        if change.new is not None:
            _complain(change.new)
        namespace = change.object.metadata.namespace
        limit = limit_of(one for one in self.store.by_index("namespace", namespace) if not _fault(one))
        if self.limits.put(namespace, limit):
            for told in self._told:
                told(namespace)


def _fault(quota: ElasticQuota) -> str:
    """Why it cannot be read; "" where it can."""
    try:
        limit_of([quota])
    except InvalidObjectError as error:
        return str(error)
    return ""


def _complain(quota: ElasticQuota) -> None:
    if fault := _fault(quota):
        named = quota.metadata.namespace, quota.metadata.name, fault
        logger.warning(
            "cannot read ElasticQuota %s/%s; it limits nothing here: %s", *named, extra={"event": "quota.unreadable"}
        )
