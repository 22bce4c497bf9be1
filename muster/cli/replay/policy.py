"""The policy of a replay: what each queue says instead of its own settings."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from muster.model.times import duration_of

if TYPE_CHECKING:
    from muster.queueing.queue_view import QueueView


_KEYS = "queueing=strict, patience=10m, reserves=estimates or bounds, drain-after=72h, bounds=0.3"
# Spreads the gangs that have a time limit over the log, the same for every policy.
_STEP = 0.6180339887498949


@dataclass(frozen=True, slots=True)
class Policy:
    """Settings, None for those of the queue."""

    text: str
    strict: bool | None = None
    patience: float | None = None
    trusts_estimates: bool | None = None
    drain_after: float | None = None
    bounds: float = 1.0
    """The part of the gangs with a time limit whose limit counts."""

    def applied(self, view: QueueView) -> QueueView:
        """The queue under this policy."""
        names = ("strict", "patience", "trusts_estimates", "drain_after")
        return replace(view, **{name: value for name in names if (value := getattr(self, name)) is not None})

    def bounded(self, number: int) -> bool:
        """Whether the time limit of the gang of that number counts."""
        return number * _STEP % 1.0 < self.bounds


def parse_policy(text: str) -> Policy:
    """The policy of a text such as `patience=10m,bounds=0.3`, "" for the settings of the queues; raises ValueError."""
    policy = Policy(text)
    for part in filter(None, text.split(",")):
        name, _, value = part.strip().partition("=")
        seconds = duration_of(value)
        match name:
            case "queueing" if value == "strict":
                policy = replace(policy, strict=True)
            case "patience" if seconds is not None:
                policy = replace(policy, patience=seconds)
            case "drain-after" if seconds is not None:
                policy = replace(policy, drain_after=seconds)
            case "reserves" if value in ("estimates", "bounds"):
                policy = replace(policy, trusts_estimates=value == "estimates")
            case "bounds" if value.replace(".", "", 1).isdecimal() and float(value) <= 1:
                policy = replace(policy, bounds=float(value))
            case _:
                raise ValueError(f'"{part.strip()[:80]}" is no setting of a policy; use {_KEYS}')
    return policy
