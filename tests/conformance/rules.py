"""The numbered rules of docs/conformance.md: what an operator does otherwise than muster, and exactly how.

A rule takes muster's group and gives the group as the operator would make it; where the operator leaves it to chance,
it gives all that may come. After all rules of an operator one of the groups must be the operator's, in every field.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

import msgspec

from muster.model.pods import PodSpec, ResourceRequirements
from tests.conformance.case import Case, Manifest, Operator
from tests.conformance.groups import Group

NONE, REFUSED = "no PodGroup", "refused"
MUSTER, DESIGN = "muster", "both"


@dataclass(frozen=True)
class Rule:
    """One difference: whose numbers serve the user better (`better`), and what it does to muster's group."""

    number: str
    operators: tuple[Operator, ...]
    better: str
    says: str
    change: Callable[[Case, Group], Iterable[Group]]
    asked: Callable[[Case], Case | None] = lambda _: None
    """Where muster makes no group: the case for which it makes the one to go on from, if the rule knows one."""
    ends: Callable[[Case], str | None] = lambda _: None
    """Where the operator makes no group: NONE."""


def same(_case: Case, group: Group) -> Iterator[Group]:
    """The change of a rule that is not about numbers."""
    yield group


def each(change: Callable[[PodSpec], PodSpec]) -> Callable[[Case, Group], Iterator[Group]]:
    """The change of a rule that reads every pod otherwise."""

    def changed(_case: Case, group: Group) -> Iterator[Group]:
        yield replace(group, pods={name: replace(pods, spec=change(pods.spec)) for name, pods in group.pods.items()})

    return changed


def containers_only(spec: PodSpec) -> PodSpec:
    """A pod whose plain containers are all that counts."""
    return msgspec.structs.replace(spec, init_containers=(), overhead={}, resources=ResourceRequirements())


def policy(case: Case) -> Manifest:
    """The `schedulingPolicy` of a Kubeflow job, empty where there is none."""
    run = case.manifest["spec"].get("runPolicy") or {}
    return run.get("schedulingPolicy") or {}
