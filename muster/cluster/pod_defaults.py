"""What the cluster does to new pods by itself, watched: its LimitRanges, RuntimeClasses and ResourceQuotas.

Webhook and controller both watch them, and a plan lists them, so that all three count a gang by the same numbers, and
by those that its pods will have.
"""

from __future__ import annotations

from collections.abc import Callable

from muster.kube.store import Change, Store
from muster.resources.limit_ranges import LimitRange
from muster.resources.pod_defaults import NOTHING_ADDED, PodDefaults, RuntimeClass
from muster.resources.resource_quotas import ResourceQuota


class Added:
    """The LimitRanges and ResourceQuotas of all namespaces, and the RuntimeClasses, as the watches last said."""

    def __init__(self) -> None:
        self.ranges: Store[LimitRange] = Store()
        self.runtimes: Store[RuntimeClass] = Store()
        self.ranges.index("namespace", lambda one: (one.metadata.namespace,))
        self.quotas: Store[ResourceQuota] = Store()
        self.quotas.index("namespace", lambda one: (one.metadata.namespace,))

    def of(self, namespace: str) -> PodDefaults:
        """What pods of a namespace get. Where there is no RuntimeClass at all none counts as missing, as in a plan."""
        ranges, quotas = self.ranges.by_index("namespace", namespace), self.quotas.by_index("namespace", namespace)
        if not ranges and not quotas and not len(self.runtimes):
            return NOTHING_ADDED
        return PodDefaults(ranges, {one.metadata.name: one for one in self.runtimes} or None, quotas)

    def subscribe(self, namespace: Callable[[str | None], None]) -> None:
        """Tell `namespace` of every namespace in which a change has pods ask for something else, None for all.

        What a quota has left changes with every pod, and has none ask for anything else.
        """

        def ranges_changed(change: Change[LimitRange]) -> None:
            namespace(change.object.metadata.namespace)

        self.ranges.subscribe(ranges_changed)
        self.runtimes.subscribe(lambda _: namespace(None))
