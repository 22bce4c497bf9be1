"""What a check says: how bad it is, what was found where, and what to do about it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

__all__ = ["Check", "Diagnosis", "Severity", "Unseen", "fine", "problem", "unknown", "warning"]


class Severity(StrEnum):
    """How bad it is."""

    OK = "ok"
    WARNING = "warning"
    PROBLEM = "problem"
    UNKNOWN = "unknown"


class Check(StrEnum):
    """What is looked at, in the order in which it is told; docs/cli.md has a line for each."""

    INSTALLATION = "installation"
    LEASE = "lease"
    WEBHOOKS = "webhooks"
    CERTIFICATES = "certificates"
    ANSWERS = "answers"
    POLICIES = "policies"
    RIGHTS = "rights"
    KINDS = "kinds"
    VOLCANO = "volcano"
    GATES = "gates"
    POD_GROUPS = "podgroups"
    OPERATORS = "operators"


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """One thing that was found; `cure` is empty where there is nothing to do."""

    check: Check
    level: Severity
    message: str
    cure: str = ""


@dataclass(frozen=True, slots=True)
class Unseen:
    """Stands for what could not be read: the reason, and what to do so that it can."""

    why: str
    cure: str = "ask with the rights of an administrator"


T = TypeVar("T")


def fine(check: Check, message: str) -> Diagnosis:
    """Nothing is wrong with it."""
    return Diagnosis(check, Severity.OK, message)


def warning(check: Check, message: str, cure: str) -> Diagnosis:
    """It works, but somebody should look."""
    return Diagnosis(check, Severity.WARNING, message, cure)


def problem(check: Check, message: str, cure: str) -> Diagnosis:
    """It does not work."""
    return Diagnosis(check, Severity.PROBLEM, message, cure)


def unknown(check: Check, unseen: Unseen, what: str = "") -> Diagnosis:
    """It could not be looked at; `what` names it where the check has several parts."""
    return Diagnosis(check, Severity.UNKNOWN, f"could not check {what or check}: {unseen.why}", unseen.cure)
