"""The result of a check: the severity, the finding, and the fix."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

T = TypeVar("T")
MOST = 20
"""The number of gangs, PodGroups or annotations that are reported; the others are counted."""


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


class CannotCheckError(Exception):
    """A check cannot go on; `diagnosis` says why, and is None where there is nothing to check."""

    def __init__(self, diagnosis: Diagnosis | None = None) -> None:
        super().__init__(diagnosis)
        self.diagnosis = diagnosis


def seen(thing: T | Unseen, what: str) -> T:
    """A thing that has been read. Raises CannotCheckError, which says that `what` could not be checked."""
    if isinstance(thing, Unseen):
        raise CannotCheckError(unknown(thing, what))
    return thing


def diagnoses_of(check: Callable[[T], Iterable[Diagnosis]], sight: T) -> Iterator[Diagnosis]:
    """The diagnoses of a check, with the reason if it could not go on."""
    try:
        yield from check(sight)
    except CannotCheckError as error:
        if error.diagnosis is not None:
            yield error.diagnosis


def first_of(found: Sequence[Diagnosis], more: str, cure: str = "as above", command: str = "") -> Iterator[Diagnosis]:
    """The first diagnoses of one kind, and how many `more` there are."""
    yield from found[:MOST]
    if len(found) > MOST:
        yield Diagnosis(found[0].level, f"{len(found) - MOST} more {more}", cure, command)
