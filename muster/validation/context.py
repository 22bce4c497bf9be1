"""The state of the cluster for the rules that judge workloads."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from muster.admitters import Admitter, chosen_admitter
from muster.admitters.kueue_quota import ClusterQueue
from muster.gangs.intent import Defaults, Intent, IntentScope
from muster.model.modes import GateMode
from muster.queueing.queue_tree import Place
from muster.resources.amounts import Resources
from muster.resources.elastic_quotas import Ceiling
from muster.resources.pod_defaults import NOTHING_ADDED, PodDefaults
from muster.workloads import Decoded, Reference


@dataclass(frozen=True, slots=True)
class Context:
    """The state of the cluster for the rules.

    `queue` finds a queue by name. It is None where no queues are known at all (a plan without any Queue in its input):
    then nothing is judged by queues. The same holds for `priorities`, which maps class names to values. `scope` has
    the other objects that may set the intent of the judged workload, `additions` the cluster's additions to its pods.
    `origin` returns the object that a workload is made from, decoded, or None when there is none; `made` is the result
    of both, and `origin_names` returns the names that a reference may mean. `queue_names` are the queues that the
    namespace may use, for the one that may be meant where a name is misspelled. `held` returns the usage of a queue by
    Volcano's count; None if the workload may be in it already. `cluster_queue` is Kueue's, where Kueue admits and the
    workload is new. `ceiling` is the bound of the namespace by ElasticQuotas, for gangs whose scheduler enforces them;
    None if none of them bounds it.
    """

    queue: Callable[[str], Place | None] | None = None
    priorities: Mapping[str, int] | None = None
    defaults: Defaults = field(default_factory=Defaults)
    scope: IntentScope = field(default_factory=IntentScope)
    pod_defaults: PodDefaults = NOTHING_ADDED
    origin: Callable[[Reference], object | None] = lambda _: None
    made: Decoded | None = None
    held: Callable[[str], Resources] | None = None
    cluster_queue: ClusterQueue | None = None
    ceiling: Ceiling | None = None
    queue_names: Callable[[], Sequence[str]] = tuple
    origin_names: Callable[[Reference], Sequence[str]] = lambda _: ()

    @property
    def admitter(self) -> Admitter:
        """The admitter of the gang."""
        return chosen_admitter(self.scope.namespace.annotations, self.defaults.admitters)

    def gate(self, intent: Intent) -> GateMode:
        """Return the gate mode of gangs of that intent."""
        place = self.queue(intent.queue) if self.queue else None
        if self.queue and place is None:
            # The gang waits for a missing queue in any mode.
            return GateMode.QUEUE
        return self.defaults.gate_in(self.scope.namespace.annotations, place.view.gate if place else None)
