"""What the rules together say that an operator does with a case."""

from dataclasses import dataclass

from tests.conformance.case import Case
from tests.conformance.groups import Group, muster_says
from tests.conformance.job_rules import JOB_RULES
from tests.conformance.ray_rules import RAY_RULES
from tests.conformance.rules import NONE
from tests.conformance.shared_rules import SHARED_RULES
from tests.conformance.trainer_rules import TRAINER_RULES

ALL_RULES = (*SHARED_RULES, *RAY_RULES, *JOB_RULES, *TRAINER_RULES)


@dataclass(frozen=True)
class Prediction:
    """What the operator must do: one of the groups, or what stands in `ends`; and the rules that it took."""

    muster: Group | str
    groups: tuple[Group, ...]
    ends: str | None
    rules: tuple[str, ...]


def predict(case: Case) -> Prediction:
    """What the rules say of a case."""
    rules = [rule for rule in ALL_RULES if case.operator in rule.operators]
    muster = muster_says(case)
    fired: list[str] = []
    start, asked = muster, case
    for rule in rules:
        if isinstance(start, str) and (other := rule.asked(asked)) is not None:
            fired.append(rule.number)
            start, asked = muster_says(other), other
    for rule in rules:
        if (end := rule.ends(case)) is not None:
            return Prediction(muster, (), end, (*fired, rule.number))
    if isinstance(start, str):
        return Prediction(muster, (), NONE, tuple(fired))
    groups = [start]
    for rule in rules:
        changed = [new for old in groups for new in rule.change(case, old)]
        if {group.facts for group in changed} != {group.facts for group in groups}:
            fired.append(rule.number)
        groups = list({group.facts: group for group in changed}.values())
    return Prediction(muster, tuple(sorted(groups, key=lambda group: group.facts)), None, tuple(dict.fromkeys(fired)))
