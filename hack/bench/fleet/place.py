"""The control plane of a fleet: real Volcano, kwok's nodes, muster, and counts of calls by who made them."""

from __future__ import annotations

import re
from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING

from hack.bench.bare import PATIENT, make_namespace
from hack.bench.fleet.gangs import NAMESPACE
from hack.bench.fleet.sampling import Watched
from hack.testbed import Nodes, Testbed
from hack.testbed.muster import MusterInstall, install
from muster.kube.resource import Resource

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["CORES", "Place", "place"]

CORES = 16
"""Of each node."""
_READY = 600.0
# In each cycle Volcano looks at all that waits, and by itself it begins one every second.
_CYCLE = 5
_FLOW_SCHEMAS = Resource("flowcontrol.apiserver.k8s.io", "v1", "flowschemas", "FlowSchema", namespaced=False)
# Accounts whose calls are counted apart: namespace and name of the ServiceAccount, and its usual priority level.
_COUNTED = {
    "muster-controller": ("muster-system", "muster-controller", "workload-low"),
    "muster-webhook": ("muster-system", "muster-webhook", "workload-low"),
    "volcano-scheduler": ("volcano-system", "volcano-scheduler", "global-default"),
    "volcano-controllers": ("volcano-system", "volcano-controllers", "global-default"),
    "kwok": ("kube-system", "kwok-controller", "global-default"),
}
# The bench's own token is of a group that is exempt.
_NAMES = {"exempt": "bench"}
_DISPATCHED = re.compile(
    r"^apiserver_flowcontrol_dispatched_requests_total\{[^}]*flow_schema=\"([^\"]+)\"[^}]*\} (\S+)$", re.MULTILINE
)


class Place:
    """A control plane with muster on it."""

    def __init__(self, testbed: Testbed, muster: MusterInstall) -> None:
        self.testbed = testbed
        self.muster = muster

    def watched(self) -> list[Watched]:
        """The processes whose usage is sampled: both of muster, and those that work for the same gangs."""
        controller, webhook = self.muster.controllers[0], self.muster.webhooks[0]
        others = (self.testbed.processes()[name] for name in ("kube-apiserver", "volcano-scheduler"))
        return [
            Watched("controller", controller, self.muster.url(controller, "/metrics")),
            Watched("webhook", webhook, self.muster.url(webhook, "/metrics")),
            *(Watched(one.name, one, "") for one in others),
        ]

    def calls(self) -> Counter[str]:
        """The calls so far, watches and leases included, by who made them: a FlowSchema for each of `_COUNTED`."""
        found: Counter[str] = Counter()
        for schema, number in _DISPATCHED.findall(self.testbed.api()("GET", "/metrics").message):
            found[_NAMES.get(schema, schema.removeprefix("bench-"))] += int(float(number))
        return found

    def count_apart(self) -> None:
        """Have the apiserver count the calls of each of them; what it does with them stays the same."""
        api = self.testbed.api()
        for number, (name, (namespace, account, level)) in enumerate(_COUNTED.items()):
            subject = {"kind": "ServiceAccount", "serviceAccount": {"namespace": namespace, "name": account}}
            anything = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "namespaces": ["*"]}
            rule = {
                "subjects": [subject],
                "resourceRules": [{**anything, "clusterScope": True}],
                "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
            }
            spec = {
                "priorityLevelConfiguration": {"name": level},
                "matchingPrecedence": 500 + number,
                "distinguisherMethod": {"type": "ByUser"},
                "rules": [rule],
            }
            manifest = {
                "apiVersion": _FLOW_SCHEMAS.api_version,
                "kind": _FLOW_SCHEMAS.kind,
                "metadata": {"name": f"bench-{name}"},
                "spec": spec,
            }
            api.apply(_FLOW_SCHEMAS.path(name=f"bench-{name}"), manifest)


@contextmanager
def place(nodes: int) -> Iterator[Place]:
    """Start all of it with so many nodes; it ends with the context."""
    size = Nodes(count=nodes, cpu=str(CORES), memory="256Gi", gpu=0)
    with Testbed.start(parts=("volcano",), nodes=size, many_pods=True, progress=print) as testbed:
        testbed.stop_part("volcano-scheduler")
        testbed.start_part("volcano-scheduler", extra_args=(f"--schedule-period={_CYCLE}s",))
        make_namespace(testbed, NAMESPACE)
        muster = install(testbed, values=PATIENT, webhooks=1, controllers=1)
        muster.wait_ready(_READY)
        found = Place(testbed, muster)
        found.count_apart()
        yield found
