"""The gang schedulers that muster supports, one file each: they place gangs."""

from collections.abc import Mapping
from typing import Any

from muster.model.objects import PodGroup, PodGroupSpec, convert
from muster.schedulers.coscheduling import Coscheduling
from muster.schedulers.kai import Kai
from muster.schedulers.kubernetes import Kubernetes
from muster.schedulers.model import GangScheduler
from muster.schedulers.volcano import Volcano

__all__ = [
    "PRODUCTS",
    "SCHEDULERS",
    "GangScheduler",
    "gang_name",
    "named",
    "scheduler_of_group",
    "spec_of",
]

PRODUCTS: dict[str, type[GangScheduler]] = {one.product: one for one in (Volcano, Coscheduling, Kubernetes, Kai)}
"""The gang schedulers by their names in the chart's values."""

_USUAL: dict[str, GangScheduler] = {product: made() for product, made in PRODUCTS.items()}

SCHEDULERS: dict[str, GangScheduler] = {one.name: one for one in _USUAL.values() if one.runs}
"""The same by their usual schedulerNames, without those that are for plans alone."""


def named(*texts: str) -> dict[str, GangScheduler]:
    """Return the schedulers that these arguments choose, by name, in their order: a product, or PRODUCT=NAME.

    Raises ValueError for an unknown product, and if two have the same name.
    """
    chosen: dict[str, GangScheduler] = {}
    for text in texts:
        product, _, name = text.partition("=")
        if product not in PRODUCTS:
            raise ValueError(f'"{product}" is no gang scheduler that muster knows; use one of {", ".join(PRODUCTS)}')
        scheduler = PRODUCTS[product](name)
        if scheduler.name in chosen:
            raise ValueError(f'two gang schedulers have the name "{scheduler.name}"')
        chosen[scheduler.name] = scheduler
    return chosen


def scheduler_of_group(group: PodGroup) -> GangScheduler:
    """Return the scheduler of a PodGroup, under its usual name."""
    return _USUAL[group.scheduler]


def gang_name(group: PodGroup) -> str:
    """Return the name of a PodGroup's gang: its own, unless its scheduler allows no such name."""
    return scheduler_of_group(group).gang_name(group.metadata)


def spec_of(manifest: Mapping[str, Any]) -> PodGroupSpec:
    """Return the specification of any scheduler's PodGroup, in Volcano's terms."""
    group = manifest["apiVersion"].partition("/")[0]
    (scheduler,) = (one for one in _USUAL.values() if one.group == group)
    return convert(manifest, scheduler.pod_groups).spec
