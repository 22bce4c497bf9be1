"""What an ElasticQuota of scheduler-plugins lets the pods of its namespace use, and what it guarantees them.

As the plugin CapacityScheduling (pkg/capacityscheduling of v0.34.7) reads one. Without a `max` the namespace is not
limited; with one, cpu, memory and ephemeral-storage that it does not name are 0, and other resources are unlimited.
What `min` does not name is guaranteed to nobody.
"""

from __future__ import annotations

from muster.model.objects import LocalObject, ObjectMeta, ResourceList
from muster.resources.amounts import parse_resources
from muster.resources.quantity import ZERO, Quantity

# Plain fields of the scheduler's own type for amounts: they are 0 where nothing is said. All others stand in a map.
_NEVER_UNNAMED = ("cpu", "memory", "ephemeral-storage")


class _Spec(LocalObject, frozen=True):
    min: ResourceList = {}
    # An empty one allows nothing, an absent one everything.
    max: ResourceList | None = None


class _Status(LocalObject, frozen=True):
    used: ResourceList = {}


class ElasticQuota(LocalObject, frozen=True):
    """How much the pods of a namespace may use, and what they get back from others (`scheduling.x-k8s.io/v1alpha1`)."""

    metadata: ObjectMeta = ObjectMeta()
    spec: _Spec = _Spec()
    status: _Status = _Status()


def largest_use(quota: ElasticQuota) -> dict[str, Quantity]:
    """The most that the namespace may ever use; {} where nothing limits it.

    Raises InvalidObjectError for what is no quantity, or below 0.
    """
    if quota.spec.max is None:
        return {}
    return dict.fromkeys(_NEVER_UNNAMED, ZERO) | parse_resources(quota.spec.max, path="spec.max")


def guaranteed(quota: ElasticQuota) -> dict[str, Quantity]:
    """What the namespace gets even when others use it now; what is not named is 0.

    Raises InvalidObjectError for what is no quantity, or below 0.
    """
    return parse_resources(quota.spec.min, path="spec.min")


def used(quota: ElasticQuota) -> dict[str, Quantity]:
    """What the running pods of the namespace ask for together, as the scheduler's controller last counted.

    It names the resources that `min` or `max` name. Raises InvalidObjectError for what is no quantity.
    """
    return parse_resources(quota.status.used, path="status.used", least=None)
