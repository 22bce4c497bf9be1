"""The strictness of admission: the effect of each reason, by the chart's `validation` and `validationReasons`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from muster.model.findings import ABOUT, Finding, Reason, Severity

_Word = TypeVar("_Word", Reason, Severity)

_ORDER = {reason: place for place, reason in enumerate(Reason)}


@dataclass(frozen=True, slots=True)
class Validation:
    """The effect of findings.

    With `mode` deny each has the severity that `reasons` gives to its reason, else that of
    `muster.model.findings.ABOUT`. With warn nothing is refused: refusals become warnings. With off there are no
    messages.
    """

    mode: Severity = Severity.DENY
    reasons: Mapping[Reason, Severity] = field(default_factory=dict)

    def severity(self, reason: Reason) -> Severity:
        """Return the severity of a finding of that reason."""
        own = self.reasons.get(reason, ABOUT[reason].severity)
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
