"""The gang schedulers that muster can work with, one file each."""

from __future__ import annotations

from muster.schedulers.coscheduling import Coscheduling
from muster.schedulers.model import Binding, GangScheduler, owner_reference
from muster.schedulers.volcano import Volcano

__all__ = ["SCHEDULERS", "Binding", "GangScheduler", "owner_reference"]

SCHEDULERS: dict[str, GangScheduler] = {scheduler.name: scheduler for scheduler in (Volcano(), Coscheduling())}
