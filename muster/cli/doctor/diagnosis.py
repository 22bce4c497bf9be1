"""The result of a check: the severity, the finding, and the fix."""

from dataclasses import dataclass
from enum import StrEnum


class Level(StrEnum):
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
    """One finding of a check.

    :ivar level: its severity
    :ivar message: what was found
    :ivar cure: what to do about it; "" when there is nothing to do
    :ivar command: the command for that, to copy; "" for none
    """

    level: Level
    message: str
    cure: str = ""
    command: str = ""


@dataclass(frozen=True, slots=True)
class Unseen:
    """The place of something that could not be read: the reason, and how to make it readable."""

    why: str
    cure: str = "run muster doctor with the permissions of an administrator"


def fine(message: str) -> Diagnosis:
    """Nothing is wrong with it."""
    return Diagnosis(Level.OK, message)


def warning(message: str, cure: str, command: str = "") -> Diagnosis:
    """It works, but an administrator should look at it."""
    return Diagnosis(Level.WARNING, message, cure, command)


def problem(message: str, cure: str, command: str = "") -> Diagnosis:
    """It does not work."""
    return Diagnosis(Level.PROBLEM, message, cure, command)


def unknown(unseen: Unseen, what: str) -> Diagnosis:
    """It could not be checked."""
    return Diagnosis(Level.UNKNOWN, f"could not check {what}: {unseen.why}", unseen.cure)
