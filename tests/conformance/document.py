"""docs/conformance.md: the rules, and what was seen of every case, as the last run saw it."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from hack.testbed.modules import module_dir
from tests.conformance.groups import Facts, Group, facts_of
from tests.conformance.prediction import ALL_RULES, Prediction
from tests.conformance.rules import MUSTER, NONE

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tests.conformance.case import Case, Operator
    from tests.conformance.observed import Observed

__all__ = ["Row", "beginning", "line", "render", "row"]

_RULES = {rule.number: rule for rule in ALL_RULES}
_HEAD = """\
# muster beside the operators' own gang flags

What muster counts, KubeRay, the Training operator and the MPI operator can count themselves when they are started with
their gang flag, and the Trainer when a runtime says so. This page says where both come to the same PodGroup and where
not. It is written by a test that runs the real operators that way, on every sample manifest of their own (a TrainJob
for every runtime of the Trainer's) and on variants of some, and compares the PodGroups with those of `muster plan`:
name, minMember, minResources, queue, priorityClassName, networkTopology. Each difference follows from one of the rules
below, which the test computes; one that no rule predicts fails it. That muster is right about what pods ask for is
tested too: on the pods that the operators make.

`pytest tests/conformance` compares, `MUSTER_REWRITE=1 pytest tests/conformance` also rewrites this page.

## Rules

*muster* in the last column: muster is right and the operator is not; *both*: two answers to two questions.

| rule | operator | what differs | right |
|---|---|---|---|
"""
_CASES = """\
Where two values stand, the first is muster's and the second the operator's. Manifests are below `{folder}` of
`{module}`.

| manifest | kind | minMember | minResources | other fields | rules | right |
|---|---|---|---|---|---|---|
"""


@dataclass(frozen=True)
class Row:
    """One case, predicted and seen; `seen` is REFUSED or NONE where there is no group."""

    case: Case
    prediction: Prediction
    seen: Facts | str
    observed: Observed

    @property
    def explained(self) -> bool:
        """Whether the rules lead to exactly what was seen."""
        if self.prediction.ends is not None:
            return self.seen == self.prediction.ends
        return self.seen in {group.facts for group in self.prediction.groups}


def row(case: Case, prediction: Prediction, observed: Observed) -> Row:
    """Compare a case; letters that the apiserver made up for a name are told apart from a wrong name."""
    if isinstance(observed.group, str):
        return Row(case, prediction, observed.group, observed)
    facts = facts_of(observed.group)
    for group in prediction.groups:
        if re.fullmatch(group.name.replace("xxxxx", "[a-z0-9]{5}"), facts.name):
            facts = replace(facts, name=group.name)
    return Row(case, prediction, facts, observed)


def beginning() -> str:
    """The page up to its first operator: what it is about, and the rules."""
    rules = [
        f"| {rule.number} | {', '.join(one.name for one in rule.operators)} | {rule.says} | {rule.better} |\n"
        for rule in ALL_RULES
    ]
    return "".join([_HEAD, *rules])


def render(rows: Sequence[Row]) -> str:
    """The whole page."""
    parts = [beginning()]
    for operator in dict.fromkeys(row.case.operator for row in rows):
        every = [row for row in rows if row.case.operator == operator]
        own = [row for row in every if not row.case.generated]
        equal = sum(not row.prediction.rules for row in own)
        better = sum(_right(row) == MUSTER for row in own)
        switch = operator.switch or f"`{' '.join(operator.flags)}`"
        parts.append(f"\n## {operator.name} {_version(operator)}\n\nStarted with {switch}. ")
        parts.append(f"Of {len(own)} manifests {equal} come to the same; in {better} muster is right.\n")
        generated = [row for row in every if row.case.generated]
        differing = sum(bool(row.prediction.rules) for row in generated)
        parts.append(
            f"Of {len(generated)} more, in which three variants meet by chance and which are not listed, {differing} "
            "differ, as the rules foresee.\n\n"
        )
        parts.append(_CASES.format(folder=operator.folder, module=operator.module))
        parts += [line(row) for row in own]
    return "".join(parts)


def _version(operator: Operator) -> str:
    return next(part.partition("@")[2] for part in reversed(module_dir(operator.module).parts) if "@" in part)


def _right(row: Row) -> str:
    rights = [_RULES[number].better for number in row.prediction.rules]
    return MUSTER if MUSTER in rights else next(iter(rights), "")


def line(row: Row) -> str:
    """The row of the table that shows a case."""
    ours = row.prediction.muster.facts if isinstance(row.prediction.muster, Group) else None
    theirs = [row.seen] if isinstance(row.seen, str) else [group.facts for group in row.prediction.groups]
    cells = [f"{row.case.title}", row.case.kind]
    cells.append(_both(_members(ours), [_members(one) for one in theirs]))
    cells.append(_both(_resources(ours), [_resources(one) for one in theirs]))
    cells.append(_others(ours, next((one for one in theirs if isinstance(one, Facts)), None)))
    cells += [", ".join(row.prediction.rules), _right(row)]
    return f"| {' | '.join(cells)} |\n"


def _both(ours: str, theirs: Iterable[str]) -> str:
    distinct = sorted(set(theirs))
    return ours if distinct == [ours] else f"{ours} → {' or '.join(distinct)}"


def _members(facts: Facts | str | None) -> str:
    if facts is None:
        return NONE
    return facts if isinstance(facts, str) else str(facts.min_member)


def _resources(facts: Facts | str | None) -> str:
    if not isinstance(facts, Facts):
        return "–"  # noqa: RUF001 (a dash)
    return ", ".join(f"{name} {amount}" for name, amount in facts.min_resources) or "nothing"


def _others(ours: Facts | None, theirs: Facts | None) -> str:
    if ours is None or theirs is None:
        return ""
    pairs = (
        ("name", ours.name, theirs.name),
        ("queue", ours.queue, theirs.queue),
        ("priority", ours.priority_class or "none", theirs.priority_class or "none"),
        ("topology", ours.topology or "none", theirs.topology or "none"),
    )
    return ", ".join(f"{what} {mine} → {other}" for what, mine, other in pairs if mine != other)
