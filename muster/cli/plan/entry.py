"""The entry of an object in a plan or an audit: admission's answer to it, as a value and as data for programs."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from muster.model.findings import Finding, Reason, Severity
from muster.validation.workload import Verdict

# The findings that `--strict` counts, in addition to workloads that muster does not manage.
_SLIPS = (Reason.MISSPELLED, Reason.FIELD_DROPPED)
_WHY_NOT = "not managed: "


@dataclass(frozen=True, slots=True)
class PlanEntry:
    """An object of the input or of the cluster, and the answer of admission to it.

    :ivar api_version: its `apiVersion`.
    :ivar kind: its `kind`.
    :ivar namespace: its namespace, "" for an object without one.
    :ivar name: its name.
    :ivar source: its file and place there in words, "" for an object of the cluster.
    :ivar file: its file.
    :ivar line: the line of the file in which its document begins, 0 if that is not known.
    :ivar within: the template that it is, and of what: `spec.jobTemplate of CronJob nightly`; "" otherwise.
    :ivar refusals: the findings for which it is refused.
    :ivar warnings: the findings that come with it when it is accepted, the most serious first.
    :ivar managed: False if muster leaves the object alone.
    :ivar note: why muster does not manage it, or what was not checked.
    :ivar wrong_kind: True if its kind is unknown, and resembles one of muster's.
    :ivar running: True if its gang runs, as far as that is known.
    :ivar verdict: the verdict of the rules; None for an object that is no workload.
    :ivar intent: scheduler, queue and priority class with the fields that set them; None without a gang.
    :ivar pod_group: the PodGroup that muster would create; None without a gang.
    :ivar roles: the roles of the gang, each with the patch of its pods.
    """

    api_version: str
    kind: str
    namespace: str
    name: str
    source: str = ""
    file: str = ""
    line: int = 0
    within: str = ""
    refusals: tuple[Finding, ...] = ()
    warnings: tuple[Finding, ...] = ()
    managed: bool = True
    note: str = ""
    wrong_kind: bool = False
    running: bool = False
    verdict: Verdict | None = None
    intent: dict[str, Any] | None = None
    pod_group: dict[str, Any] | None = None
    roles: list[dict[str, Any]] = field(default_factory=list)

    @property
    def allowed(self) -> bool:
        """True if the object may be created."""
        return not self.refusals

    @property
    def misspelled(self) -> bool:
        """True if something in the object looks misspelled."""
        return self.wrong_kind or any(one.reason in _SLIPS for one in self.warnings)

    @property
    def slips(self) -> bool:
        """True if `--strict` fails for this object, even if it is allowed."""
        return self.misspelled or not self.managed

    @property
    def message(self) -> str:
        """All refusals, or the note."""
        if not self.managed:
            return f"{_WHY_NOT}{self.note}"
        return "; ".join(one.message for one in self.refusals) or self.note

    @property
    def place(self) -> str:
        """Its file and line, as programs take them: `job.yaml:12`."""
        return f"{self.file}:{self.line}" if self.line else self.file

    def data(self) -> dict[str, Any]:
        """The entry as `muster plan` prints it for programs."""
        return {
            "workload": {
                "apiVersion": self.api_version,
                "kind": self.kind,
                "namespace": self.namespace,
                "name": self.name,
            },
            "intent": self.intent,
            "podGroup": self.pod_group,
            "roles": self.roles,
            "verdict": {
                "allowed": self.allowed,
                "managed": self.managed,
                "reason": str(self.refusals[0].reason) if self.refusals else "",
                "message": self.message,
                "refusals": [_data(one) for one in self.refusals],
                "warnings": [_data(one) for one in self.warnings],
                "misspelled": self.misspelled,
            },
            "source": {"file": self.file, "line": self.line, "within": self.within},
        }

    def audit_data(self) -> dict[str, Any]:
        """The entry as `muster audit` prints it for programs."""
        return {
            "apiVersion": self.api_version,
            "kind": self.kind,
            "namespace": self.namespace,
            "name": self.name,
            "running": self.running,
            "findings": [*_graded(Severity.DENY, self.refusals), *_graded(Severity.WARN, self.warnings)],
        }


def _graded(severity: Severity, findings: Iterable[Finding]) -> list[dict[str, str]]:
    return [{"severity": str(severity), **_data(one)} for one in findings]


def _data(finding: Finding) -> dict[str, str]:
    return {"reason": str(finding.reason), "field": finding.field, "message": finding.message}
