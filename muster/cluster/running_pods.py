"""The requests of pods, each counted once, and the sums of the running pods of gangs, kept up by events."""

from collections.abc import Collection
from collections.abc import Set as AbstractSet
from contextlib import suppress

from muster.cluster.stores import gangs_of_pod
from muster.kube.store import Change
from muster.model.objects import InvalidObjectError
from muster.model.pods import Pod
from muster.queueing.ledger import GangKey
from muster.queueing.usage import Amounts, amounts_of
from muster.resources.amounts import Resources, shared
from muster.resources.pod_requests import pod_requests
from muster.resources.quantity import Quantity


class PodRequests:
    """The requests of the pods of the stores, each counted once for each version of the pod."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[Pod, Resources]] = {}

    def of(self, pod: Pod) -> Resources:
        """The requests of a pod of a store, wherever it is; raises InvalidObjectError."""
        known = self._known.get(pod.metadata.uid)
        if known is not None and known[0] is pod:
            return known[1]
        requests = shared(pod_requests(pod.spec, status=pod.status))
        self._known[pod.metadata.uid] = pod, requests
        return requests

    def forget(self, pod: Pod) -> None:
        """Drop the requests of a pod that has changed, or is gone."""
        self._known.pop(pod.metadata.uid, None)


class RunningPods:
    """The running pods of each gang, by namespace."""

    def __init__(self, requests: PodRequests) -> None:
        self._requests = requests
        self._pods: dict[str, tuple[Collection[GangKey], Amounts]] = {}
        self._gangs: dict[str, dict[GangKey, dict[str, int]]] = {}
        self._sums: dict[str, dict[str, int]] = {}

    def note(self, change: Change[Pod]) -> None:
        """Count a pod as it is now."""
        known = self._pods.pop(change.object.metadata.uid, None)
        if known is not None:
            self._add(*known, sign=-1)
        pod = change.new
        if pod is not None and pod.running:
            with suppress(InvalidObjectError):
                now = tuple(gangs_of_pod(pod)), amounts_of(self._requests.of(pod))
                self._pods[pod.metadata.uid] = now
                self._add(*now)

    def _add(self, gangs: Collection[GangKey], amounts: Amounts, *, sign: int = 1) -> None:
        for gang in gangs:
            of_namespace = self._gangs.setdefault(gang.namespace, {})
            for sums in (of_namespace.setdefault(gang, {}), self._sums.setdefault(gang.namespace, {})):
                for name, amount in amounts:
                    sums[name] = sums.get(name, 0) + sign * amount
            if not any(of_namespace[gang].values()):
                # Gangs and namespaces come and go.
                del of_namespace[gang]
                if not of_namespace:
                    del self._gangs[gang.namespace], self._sums[gang.namespace]

    def of(self, namespace: str, gangs: AbstractSet[GangKey]) -> Resources:
        """What the running pods of these gangs of a namespace ask for; of nearly all that run there, as it is meant."""
        running, sums = self._gangs.get(namespace, {}), dict(self._sums.get(namespace, {}))
        for other in running.keys() - gangs:
            for name, amount in running[other].items():
                sums[name] -= amount
        return {name: Quantity(amount) for name, amount in sums.items()}
