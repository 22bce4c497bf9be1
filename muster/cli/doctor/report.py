"""All diagnoses of a sight, in order; as data for programs, and as a table for people."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TextIO

from muster.cli.doctor.annotations import unread_annotations
from muster.cli.doctor.certificates import certificates
from muster.cli.doctor.coscheduling import coscheduling
from muster.cli.doctor.diagnosis import Check, Diagnosis, Severity
from muster.cli.doctor.gangs import LONG, gates, pod_groups
from muster.cli.doctor.installation import installation, lease, policies, rights
from muster.cli.doctor.operators import operators
from muster.cli.doctor.probed import kubernetes
from muster.cli.doctor.sight import Sight
from muster.cli.doctor.volcano import kinds, volcano
from muster.cli.doctor.webhooks import answers, webhooks
from muster.cli.output import print_data
from muster.cli.terminal import GREEN, RED, YELLOW, colours, painted, width, wrapped
from muster.cli.words import counted
from muster.model.texts import printable

if TYPE_CHECKING:
    from muster.cli.doctor.installed import Installation


_GRAVEST = (Severity.PROBLEM, Severity.UNKNOWN, Severity.WARNING, Severity.OK)
_PLACE = {check: place for place, check in enumerate(Check)}
_PAINT = {Severity.OK: GREEN, Severity.WARNING: YELLOW, Severity.UNKNOWN: YELLOW, Severity.PROBLEM: RED}
_COLUMNS = (9, 14)
_INDENT = sum(_COLUMNS)


def diagnose(sight: Sight, long: float = LONG) -> list[Diagnosis]:
    """All diagnoses, check by check, the most severe of each check first."""
    checks = (
        installation,
        lease,
        webhooks,
        certificates,
        answers,
        policies,
        rights,
        kinds,
        unread_annotations,
        volcano,
        coscheduling,
        kubernetes,
        pod_groups,
        operators,
    )
    found = [said for check in checks for said in check(sight)]
    found += gates(sight, long)
    return sorted(found, key=lambda one: (_PLACE[one.check], _GRAVEST.index(one.level)))


def report(version: str, installed: Installation | None, found: Iterable[Diagnosis]) -> dict[str, Any]:
    """The diagnoses as data for programs, with the version of Kubernetes."""
    entries = [
        {"check": str(one.check), "level": str(one.level), "message": one.message, "cure": one.cure} for one in found
    ]
    counts = {level: sum(entry["level"] == level for entry in entries) for level in Severity}
    return {
        "kubernetes": version,
        "release": installed.release if installed is not None else None,
        "namespace": installed.namespace if installed is not None else None,
        "problems": counts[Severity.PROBLEM],
        "warnings": counts[Severity.WARNING],
        "unknown": counts[Severity.UNKNOWN],
        "diagnoses": entries,
    }


def print_report(said: Mapping[str, Any], form: str, out: TextIO) -> None:
    """Print the report: as json, as yaml, or as a table with a summary at the end."""
    if not print_data(said, form, out):
        _print_table(said["diagnoses"], out)
        level = (
            Severity.PROBLEM
            if said["problems"]
            else Severity.WARNING
            if said["warnings"] or said["unknown"]
            else Severity.OK
        )
        print(painted(_sum(said), _PAINT[level], colour=colours(out)), file=out)


def _print_table(diagnoses: Sequence[Mapping[str, Any]], out: TextIO) -> None:
    colour, columns = colours(out), width(out)
    for one in diagnoses:
        level = Severity(one["level"])
        words = f"{level.upper() if level is Severity.PROBLEM else level}".ljust(_COLUMNS[0])
        line = words + one["check"].ljust(_COLUMNS[1]) + printable(one["message"])
        first, *more = wrapped(line, _INDENT, columns)
        print(painted(words, _PAINT[level], colour=colour) + first[len(words) :], file=out)
        for rest in more:
            print(rest, file=out)
        if one["cure"]:
            for rest in wrapped(f"{' ' * _INDENT}-> {printable(one['cure'])}", _INDENT + 3, columns):
                print(rest, file=out)


def _sum(said: Mapping[str, Any]) -> str:
    words = [counted(said["problems"], "problem"), counted(said["warnings"], "warning")]
    if said["unknown"]:
        words.append(f"{said['unknown']} could not be checked")
    return ", ".join(words)
