"""The result of a check: the severity, the finding, and the fix."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar


class Severity(StrEnum):
    """The severity of a diagnosis."""

    OK = "ok"
    WARNING = "warning"
    PROBLEM = "problem"
    UNKNOWN = "unknown"


class Check(StrEnum):
    """The checks, in the order of the report; docs/cli.md has a line for each."""

    INSTALLATION = "installation"
    LEASE = "lease"
    WEBHOOKS = "webhooks"
    CERTIFICATES = "certificates"
    ANSWERS = "answers"
    POLICIES = "policies"
    RIGHTS = "rights"
    KINDS = "kinds"
    ANNOTATIONS = "annotations"
    VOLCANO = "volcano"
    COSCHEDULING = "coscheduling"
    KUBERNETES = "kubernetes"
    GATES = "gates"
    POD_GROUPS = "podgroups"
    OPERATORS = "operators"


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """One finding; `cure` is empty when there is nothing to do."""

    check: Check
    level: Severity
    message: str
    cure: str = ""


@dataclass(frozen=True, slots=True)
class Unseen:
    """The place of something that could not be read: the reason, and how to make it readable."""

    why: str
    cure: str = "run muster doctor with the permissions of an administrator"


T = TypeVar("T")


def fine(check: Check, message: str) -> Diagnosis:
    """Nothing is wrong with it."""
    return Diagnosis(check, Severity.OK, message)


def warning(check: Check, message: str, cure: str) -> Diagnosis:
    """It works, but an administrator should look at it."""
    return Diagnosis(check, Severity.WARNING, message, cure)


def problem(check: Check, message: str, cure: str) -> Diagnosis:
    """It does not work."""
    return Diagnosis(check, Severity.PROBLEM, message, cure)


def unknown(check: Check, unseen: Unseen, what: str = "") -> Diagnosis:
    """It could not be checked; `what` names it when the check has several parts."""
    return Diagnosis(check, Severity.UNKNOWN, f"could not check {what or check}: {unseen.why}", unseen.cure)
