"""docs/conformance.md: the rules, and what was seen of every case, as the last run saw it."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from hack.testbed.modules import module_dir
from tests.conformance.case import Case, Operator
from tests.conformance.groups import Facts, Group, facts_of
from tests.conformance.observed import Observed
from tests.conformance.prediction import ALL_RULES, Prediction
from tests.conformance.rules import MUSTER, NONE

_RULES = {rule.number: rule for rule in ALL_RULES}
_HEAD = """\
# muster and the operators' own gang flags

KubeRay, the Training operator and the MPI operator make PodGroups themselves when they are started with their gang
flag, and the Trainer when a runtime asks for it. A test (`pytest tests/conformance`; with `MUSTER_REWRITE=1` it writes
this page) runs the real operators on all of their own sample manifests and on variants, and compares name, minMember,
minResources, queue, priorityClassName and networkTopology with `muster plan`. It fails for a difference that no rule
predicts, and compares the requests that muster counts with the pods that the operators create.

A table for each operator has a row for each rule, with the number of manifests that differ by it and an example:
muster's value, then the operator's.

## Rules

The last column says which result is right; *both* where two results answer two questions.

| rule | operator | what differs | right |
|---|---|---|---|
"""
_CASES = """
Samples are in `{folder}` of `{module}`.

| rule | manifests | example | what differs |
|---|---|---|---|
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
        parts.append(f"Of {len(own)} manifests, {equal} give the same PodGroup; ")
        parts.append(f"in {better} muster is right.\n")
        generated = [row for row in every if row.case.generated]
        differing = sum(bool(row.prediction.rules) for row in generated)
        parts.append(f"Of {len(generated)} random combinations of three variants, {differing} differ, as predicted.\n")
        parts.append(_CASES.format(folder=operator.folder, module=operator.module))
        parts += _by_rule(own)
    return "".join(parts)


def _version(operator: Operator) -> str:
    return next(part.partition("@")[2] for part in reversed(module_dir(operator.module).parts) if "@" in part)


def _right(row: Row) -> str:
    rights = [_RULES[number].better for number in row.prediction.rules]
    return MUSTER if MUSTER in rights else next(iter(rights), "")


def _by_rule(rows: Sequence[Row]) -> Iterator[str]:
    """A line for each rule: how many cases differ by it, and the first of those that differ by the fewest others."""
    for number in _RULES:
        if found := [row for row in rows if number in row.prediction.rules]:
            first = min(found, key=lambda row: len(row.prediction.rules))
            others = ", ".join(other for other in first.prediction.rules if other != number)
            yield f"| {number} | {len(found)} {example(first, others)}"


def example(row: Row, others: str = "") -> str:
    """The part of a line that shows a case, its differences and the other rules that have a part in them."""
    ours = row.prediction.muster.facts if isinstance(row.prediction.muster, Group) else None
    theirs = [row.seen] if isinstance(row.seen, str) else [group.facts for group in row.prediction.groups]
    other = next((one for one in theirs if isinstance(one, Facts)), None)
    differences = [_members(ours, theirs), *_resources(ours, theirs), *_others(ours, other)]
    also = f" (also {others})" if others else ""
    return f"| {row.case.title} ({row.case.kind}) | {'; '.join(filter(None, differences))}{also} |\n"


def _members(ours: Facts | None, theirs: Sequence[Facts | str]) -> str:
    """The difference in minMember, or that one of the two has no PodGroup."""
    mine = str(ours.min_member) if ours else NONE
    member = "" if ours else "minMember "
    others = [one if isinstance(one, str) else f"{member}{one.min_member}" for one in theirs]
    return _both("minMember " if ours else "", mine, others)


def _resources(ours: Facts | None, theirs: Sequence[Facts | str]) -> Iterator[str]:
    """The resources of minResources that differ."""
    others = [dict(one.min_resources) for one in theirs if isinstance(one, Facts)]
    mine = dict(ours.min_resources) if ours else {}
    names = dict.fromkeys([*mine, *(name for one in others for name in one)])
    if ours and others:
        for name in names:
            yield _both(f"{name} ", mine.get(name, "none"), [one.get(name, "none") for one in others])


def _both(what: str, mine: str, others: Iterable[str]) -> str:
    distinct = sorted(set(others))
    return "" if distinct == [mine] else f"{what}{mine} → {' or '.join(distinct)}"


def _others(ours: Facts | None, theirs: Facts | None) -> Iterator[str]:
    """The names that differ."""
    if ours and theirs:
        yield _both("name ", ours.name, [theirs.name])
        yield _both("queue ", ours.queue, [theirs.queue])
        yield _both("priority ", ours.priority_class or "none", [theirs.priority_class or "none"])
        yield _both("topology ", ours.topology or "none", [theirs.topology or "none"])
