"""Findings in objects that users apply: a message for people, a stable reason for machines, and their effect.

A message names the field, the fault, the rule, and the cure. `Reason` lists every finding; `Validation` has the effects
by the chart's `validation` and `validationReasons`.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeVar


class Severity(StrEnum):
    """Effect of a finding: the object is refused, accepted with a warning, or accepted silently."""

    DENY = "deny"
    WARN = "warn"
    OFF = "off"


class Reason(StrEnum):
    """Reason of a finding, stable for machines: refusals, then warnings, the most serious first."""

    INVALID = "Invalid"
    QUEUE_NOT_FOUND = "QueueNotFound"
    QUEUE_CLOSED = "QueueClosed"
    QUEUE_NOT_LEAF = "QueueNotLeaf"
    EXCEEDS_CAPABILITY = "ExceedsCapability"
    EXCEEDS_RESOURCE_QUOTA = "ExceedsResourceQuota"
    EXCEEDS_ELASTIC_QUOTA = "ExceedsElasticQuota"
    REQUIRED_BY_RESOURCE_QUOTA = "RequiredByResourceQuota"
    OUTSIDE_LIMIT_RANGE = "OutsideLimitRange"
    SCHEDULER_CANNOT = "SchedulerCannot"
    POD_GROUP_TAKEN = "PodGroupTaken"
    UNKNOWN_PRIORITY_CLASS = "UnknownPriorityClass"
    TRAINING_RUNTIME_NOT_FOUND = "TrainingRuntimeNotFound"
    QUEUE_HIERARCHY = "QueueHierarchy"

    # From here on warnings.
    CAPABILITY_LOWERED = "CapabilityLowered"
    UNKNOWN_RUNTIME_CLASS = "UnknownRuntimeClass"
    OVERHEAD_MISMATCH = "OverheadMismatch"
    IN_NO_KUEUE_QUEUE = "InNoKueueQueue"
    EXCEEDS_KUEUE_QUOTA = "ExceedsKueueQuota"
    TIME_LIMIT_WHILE_WAITING = "TimeLimitWhileWaiting"
    BOUND_NOT_ENFORCED = "BoundNotEnforced"
    QUEUE_ON_HOLD = "QueueOnHold"
    QUEUE_NEARLY_FULL = "QueueNearlyFull"
    NO_ROOM_TO_UPGRADE = "NoRoomToUpgrade"
    MIN_AVAILABLE_TOO_LOW = "MinAvailableTooLow"
    UNKNOWN_SCHEDULER = "UnknownScheduler"
    MISSPELLED = "Misspelled"
    VALUE_IGNORED = "ValueIgnored"
    SCHEDULE_TIMEOUT_IGNORED = "ScheduleTimeoutIgnored"
    BOUND_TO_POD_GROUP = "BoundToPodGroup"
    FIELD_DROPPED = "FieldDropped"
    POD_LEVEL_RESOURCES = "PodLevelResources"
    RESOURCE_CLAIMS = "ResourceClaims"
    REQUESTS_MISSING = "RequestsMissing"
    CAPABILITY_OF_ZERO = "CapabilityOfZero"
    LIMITS_NOTHING = "LimitsNothing"
    GROWS_BEYOND_CAPABILITY = "GrowsBeyondCapability"
    ELASTIC_WAITS_FOR_ALL = "ElasticWaitsForAll"
    FOLLOWERS_COME_LATER = "FollowersComeLater"
    NO_PODS = "NoPods"
    POD_LEFT_ALONE = "PodLeftAlone"


@dataclass(frozen=True, slots=True)
class Finding:
    """A finding: its reason, the field at fault, and the message for people, which begins with the field."""

    reason: Reason
    field: str
    message: str


def finding(reason: Reason, field: str, words: str) -> Finding:
    """Return the finding in a field, in these words."""
    return Finding(reason, field, f"{field}: {words}")


_Word = TypeVar("_Word", Reason, Severity)

_ORDER = {reason: place for place, reason in enumerate(Reason)}


def usual_severity(reason: Reason) -> Severity:
    """Return the severity of a finding of that reason where the chart values set no other."""
    return Severity.DENY if _ORDER[reason] <= _ORDER[Reason.QUEUE_HIERARCHY] else Severity.WARN


@dataclass(frozen=True, slots=True)
class Validation:
    """The effect of findings.

    With `mode` deny each has the severity that `reasons` gives to its reason, else its usual one. With warn nothing
    is refused: refusals become warnings. With off there are no messages.
    """

    mode: Severity = Severity.DENY
    reasons: Mapping[Reason, Severity] = field(default_factory=dict)

    def severity(self, reason: Reason) -> Severity:
        """Return the severity of a finding of that reason."""
        own = self.reasons.get(reason, usual_severity(reason))
        if self.mode is Severity.OFF or (self.mode is Severity.WARN and own is Severity.DENY):
            return self.mode
        return own

    def refused(self, findings: Iterable[Finding]) -> tuple[Finding, ...]:
        """Return the findings for which the object is refused."""
        return tuple(one for one in findings if self.severity(one.reason) is Severity.DENY)

    def warned(self, findings: Iterable[Finding]) -> tuple[Finding, ...]:
        """Return the warnings that come with an acceptance, the most serious first."""
        warnings = (one for one in findings if self.severity(one.reason) is Severity.WARN)
        return tuple(sorted(warnings, key=lambda one: _ORDER[one.reason]))


def read_validation(mode: str = Severity.DENY, reasons: Iterable[str] = ()) -> Validation:
    """Return the validation of a `mode` and of `Reason=severity` pairs; raises ValueError with the valid values."""
    return Validation(
        _one_of(Severity, mode, "validation"),
        dict(_pair(text) for text in reasons),
    )


def _pair(text: str) -> tuple[Reason, Severity]:
    reason, _, severity = text.partition("=")
    return _one_of(Reason, reason, "a reason"), _one_of(Severity, severity, f"validation of {reason}")


def _one_of(kind: type[_Word], text: str, what: str) -> _Word:
    try:
        return kind(text)
    except ValueError:
        known = ", ".join(kind)
        raise ValueError(f'{what}: "{text[:80]}" is not known; use one of {known}') from None
