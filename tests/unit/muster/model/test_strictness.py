"""How strict admission is: modes, and severities of single reasons."""

import pytest

from muster.gangs.intent import Defaults
from muster.model.findings import Finding, Reason, Severity, Validation, read_validation
from muster.queueing.queue_tree import QueueTree
from muster.queueing.queue_view import QueueView
from muster.validation.context import Context
from muster.validation.workload import judge
from muster.workloads.ray import RAY_CLUSTER, RayCluster
from tests.support.cases import cases
from tests.support.manifests.observed import amounts, made, ray_cluster, template

DENY, WARN, OFF = Severity
NOT_FOUND, NO_PODS = Reason.QUEUE_NOT_FOUND, Reason.NO_PODS


@cases(
    "mode, reasons, refusal, surprise",
    ("as it comes", "deny", [], DENY, WARN),
    ("a refusal made a warning", "deny", ["QueueNotFound=warn"], WARN, WARN),
    ("a warning made a refusal", "deny", ["NoPods=deny"], DENY, DENY),
    ("not said", "deny", ["NoPods=off", "QueueNotFound=off"], OFF, OFF),
    ("nothing is refused", "warn", [], WARN, WARN),
    ("whatever single reasons say", "warn", ["QueueNotFound=deny", "NoPods=deny"], WARN, WARN),
    ("but what is not said stays so", "warn", ["QueueNotFound=off"], OFF, WARN),
    ("nothing is said", "off", ["QueueNotFound=deny"], OFF, OFF),
)
def test_what_comes_of_a_finding(mode: str, reasons: list[str], refusal: Severity, surprise: Severity) -> None:
    validation = read_validation(mode, reasons)
    assert (validation.severity(NOT_FOUND), validation.severity(NO_PODS)) == (refusal, surprise)


@pytest.mark.parametrize(
    ("mode", "reasons", "line"),
    [
        ("Deny", [], 'validation: "Deny" is not known; use one of deny, warn, off'),
        ("deny", ["NoPods=no"], 'validation of NoPods: "no" is not known; use one of deny, warn, off'),
        ("deny", ["NoPods"], 'validation of NoPods: "" is not known; use one of deny, warn, off'),
        ("deny", ["NoPod=warn"], 'a reason: "NoPod" is not known; use one of Invalid, QueueNotFound, '),
    ],
)
def test_what_cannot_be_read_is_refused_with_what_may_be_written(mode: str, reasons: list[str], line: str) -> None:
    with pytest.raises(ValueError, match=r"is not known") as refused:
        read_validation(mode, reasons)
    assert str(refused.value).startswith(line)


def test_warnings_come_with_the_gravest_first() -> None:
    found = [Finding(reason, "spec", f"spec: {reason}") for reason in (NO_PODS, NOT_FOUND, Reason.EXCEEDS_CAPABILITY)]
    told = Validation(WARN).warned(found)
    assert [one.reason for one in told] == [NOT_FOUND, Reason.EXCEEDS_CAPABILITY, NO_PODS]
    assert Validation(WARN).refused(found) == ()


@cases(
    "mode, refused, warned",
    ("deny", DENY, ["ExceedsCapability"], []),
    ("warn", WARN, [], ["ExceedsCapability"]),
    ("off", OFF, [], []),
)
def test_a_verdict_knows_the_gang_whatever_comes_of_it(mode: Severity, refused: list[str], warned: list[str]) -> None:
    queues = QueueTree([QueueView("q", "Open", amounts(cpu="4"))])
    context = Context(queue=queues.place, defaults=Defaults(validation=Validation(mode)))
    verdict = judge(RAY_CLUSTER, made(RayCluster, ray_cluster(head=template("9"))), context)
    assert [one.reason for one in verdict.refusals] == refused
    assert [one.reason for one in verdict.warnings] == warned
    assert verdict.gang is not None
    assert verdict.intent is not None
