"""muster's PodGroups are those of the operators' own gang flags, but for differences that have a number."""

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from muster.resources.amounts import as_text
from muster.resources.pod_requests import pod_requests
from tests.conformance.case import KUBERAY, MPI, TRAINER, TRAINING
from tests.conformance.cases import cases, one_of_each
from tests.conformance.document import Row, example, render, row
from tests.conformance.groups import Facts, Group
from tests.conformance.observed import control_plane, observe, observe_pods
from tests.conformance.prediction import ALL_RULES, predict

# The first run compiles the operators.
pytestmark = pytest.mark.timeout(1800)

_DOCUMENT = Path(__file__).parents[2] / "docs" / "conformance.md"


@pytest.fixture(scope="module")
def rows(request: pytest.FixtureRequest) -> list[Row]:
    """Cases of every operator: MPIJob has two makers, so that there are two control planes, one after another.

    All cases, where the test that compares the whole page runs, too; else the samples and one case for each rule.
    """
    whole = any(item.function is test_document_shows_what_was_seen for item in request.session.items)  # type: ignore[attr-defined]
    chosen = cases if whole else one_of_each
    seen = []
    for operators in ((KUBERAY, MPI, TRAINER), (TRAINING,)):
        with control_plane(*operators) as testbed:
            for operator in operators:
                compared = chosen(operator)
                predictions = [predict(case) for case in compared]
                observed = observe(testbed, compared, predictions)
                own = [row(*one) for one in zip(compared, predictions, observed, strict=True)]
                observe_pods(testbed, observed, {one.observed.namespace: _roles(one) for one in own})
                seen += own
    return seen


def _roles(one: Row) -> set[str]:
    """The roles that must have a pod, for which nothing is missing on this bare control plane."""
    if isinstance(one.seen, str) or not isinstance(one.prediction.muster, Group):
        return set()
    if '"serviceAccountName": "$' in json.dumps(one.case.manifest):
        return set()  # a sample to be filled in first: no pod can have such an account
    if one.case.manifest["spec"].get("suspend"):
        return set()  # the Trainer makes the group, and no pod
    return {
        name
        for name, pods in one.prediction.muster.pods.items()
        if pods.count and not pods.spec.overhead and not pods.late
    }


def test_every_difference_follows_from_a_rule(rows: list[Row]) -> None:
    unexplained = [
        f"{one.case.operator.name}, {one.case.title}: seen {one.seen}, rules {one.prediction.rules} lead to "
        f"{one.prediction.ends or [group.facts for group in one.prediction.groups]}"
        for one in rows
        if not one.explained
    ]
    assert not unexplained, "\n".join(unexplained)


def test_pods_ask_for_what_muster_counts(rows: list[Row]) -> None:
    """Where muster and an operator differ about requests, the operator's own pods say who is right."""
    compared = 0
    for one in rows:
        if isinstance(one.prediction.muster, Group):
            for name, pods in one.prediction.muster.pods.items():
                asked = one.observed.requests.get(name, set())
                counted = ", ".join(f"{what} {amount}" for what, amount in as_text(pod_requests(pods.spec)).items())
                assert asked <= {counted}, f"{one.case.operator.name}, {one.case.title}, {name}"
                compared += len(asked)
    assert compared > len(rows)


def test_every_rule_is_needed(rows: list[Row]) -> None:
    """A rule that explains nothing any more, because somebody mended something, has to go."""
    assert {number for one in rows for number in one.prediction.rules} == {rule.number for rule in ALL_RULES}


def test_rules_explain_nothing_else(rows: list[Row]) -> None:
    """One pod, one resource, another queue, priority or name more than was seen is not what the rules lead to."""
    for one in rows:
        if isinstance(one.seen, Facts):
            for wrong in (
                replace(one.seen, min_member=one.seen.min_member + 1),
                replace(one.seen, min_resources=(*one.seen.min_resources, ("example.com/thing", "1"))),
                replace(one.seen, queue="elsewhere"),
                replace(one.seen, priority_class="other"),
                replace(one.seen, name="other"),
            ):
                assert not replace(one, seen=wrong).explained, one.case.title


def test_document_has_each_rule_and_its_example_as_it_was_seen(rows: list[Row]) -> None:
    page = _DOCUMENT.read_text()
    differing = [one for one in rows if not one.case.generated and one.prediction.rules]
    missing = [rule for one in differing for rule in one.prediction.rules if f"\n| {rule} | " not in page]
    shown = [one for one in differing if f"| {one.case.title} ({one.case.kind}) |" in page]
    missing += [text for one in shown if (text := example(one).removesuffix(" |\n")) not in page]
    assert shown
    assert not missing or os.environ.get("MUSTER_REWRITE"), "".join(missing)


@pytest.mark.long
def test_document_shows_what_was_seen(rows: list[Row]) -> None:
    page = render(rows)
    if os.environ.get("MUSTER_REWRITE"):
        _DOCUMENT.write_text(page)
    assert _DOCUMENT.read_text() == page, (
        "docs/conformance.md is out of date: MUSTER_REWRITE=1 pytest tests/conformance"
    )
