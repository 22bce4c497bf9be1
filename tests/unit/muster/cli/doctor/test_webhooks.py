"""Configurations that are not the chart's, and what the apiserver says of a trial."""

import pytest
from msgspec.structs import replace

from muster.cli.doctor.diagnosis import Severity, Unseen
from muster.cli.doctor.objects import CLOSED
from muster.cli.doctor.sight import ProbeAnswer
from muster.cli.doctor.webhooks import JUDGING, answers, webhooks
from muster.model.objects import Namespace, convert
from tests.support.cases import cases
from tests.support.cli.doctor_snapshots import configuration, found, healthy, levels, messages, ours
from webhook.certificates import bundles

CALL = 'Internal error occurred: failed calling webhook "plain.pods.muster.dev": failed to call webhook: Post "u": '


def test_entries_that_call_somebody_else_are_named() -> None:
    elsewhere = configuration("MutatingWebhookConfiguration", clientConfig={"url": "https://198.51.100.1/x"})
    (line,) = messages(found(webhooks, mutating=(elsewhere,)))
    assert "ray.pods.muster.dev calls https://198.51.100.1/x" in line


def test_operations_that_nobody_is_asked_about_are_named() -> None:
    rules = [{"apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"], "operations": ["UPDATE"]}]
    (line,) = messages(found(webhooks, mutating=(configuration("MutatingWebhookConfiguration", rules=rules),)))
    assert "ray.pods.muster.dev is not called for CREATE of pods" in line


def test_webhooks_that_are_not_called_yet_are_named() -> None:
    """As in a first installation whose pods do not start."""
    closed = configuration("MutatingWebhookConfiguration", matchConditions=[{"name": CLOSED, "expression": "false"}])
    (line,) = messages(found(webhooks, mutating=(closed,)))
    assert "the apiserver has not reached a webhook since the installation, and does not call ray.pods." in line
    assert CLOSED == bundles.CLOSED


def test_more_than_the_chart_asks_is_no_fault() -> None:
    rules = [{"apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"], "operations": ["*"]}]
    assert levels(found(webhooks, mutating=(configuration("MutatingWebhookConfiguration", rules=rules),))) == {
        Severity.OK
    }


@cases("told", ("seen", ("--validation=off",)), ("not seen", ()))
def test_without_validation_nobody_judges(told: tuple[str, ...]) -> None:
    whole = configuration("ValidatingWebhookConfiguration")
    rest = convert(
        {
            "metadata": {"name": "muster"},
            "webhooks": [
                {
                    "name": one.name,
                    "clientConfig": {
                        "service": {
                            "namespace": one.client_config.service.namespace,
                            "name": one.client_config.service.name,
                            "path": one.client_config.service.path,
                        }
                    },
                    "rules": [
                        {
                            "apiGroups": list(rule.api_groups),
                            "resources": list(rule.resources),
                            "operations": list(rule.operations),
                        }
                        for rule in one.rules
                    ],
                }
                for one in whole.webhooks
                if one.name not in JUDGING
            ],
        },
        type(whole),
    )
    deployments = (ours("webhook", *told), ours("controller")) if told else Unseen("you may not list them")
    assert levels(found(webhooks, validating=(rest,), deployments=deployments)) == {Severity.OK}


@cases(
    "cause, cure",
    ("down", "dial tcp 127.96.0.1:443: connect: connection refused", "no webhook pod accepts connections"),
    ("unready", 'no endpoints available for service "muster-webhook"', "no webhook pod accepts connections"),
    ("x509", "tls: failed to verify certificate: x509: signed by unknown", "the certificates"),
    ("timeout", "context deadline exceeded", "the apiserver does not reach port 9443"),
    ("no Service", 'service "muster-webhook" not found', "the Service is missing: helm upgrade"),
    ("anything else", "EOF", "kubectl -n muster-system logs"),
)
def test_a_call_that_fails_has_a_cure_for_its_cause(cause: str, cure: str) -> None:
    pod, _ = found(answers, pod_answer=ProbeAnswer(refusal=CALL + cause))
    assert pod.level is Severity.PROBLEM
    assert pod.message.endswith(cause)
    assert pod.cure.startswith(cure)


def test_the_port_that_is_not_reached_is_the_one_that_the_chart_was_told() -> None:
    """A firewall before the nodes may let through another one alone (docs/platforms.md)."""
    installed = (ours("webhook", "--port=10250"), ours("controller"))
    refused = ProbeAnswer(refusal=CALL + "context deadline exceeded")
    pod, _ = found(answers, pod_answer=refused, deployments=installed)
    assert pod.cure.startswith("the apiserver does not reach port 10250 of the pods")


def test_what_others_refuse_says_nothing_of_muster() -> None:
    refusal = 'pods "x" is forbidden: exceeded quota: team'
    pod, _ = found(answers, pod_answer=ProbeAnswer(refusal=refusal))
    assert (pod.level, pod.cure) == (Severity.UNKNOWN, "choose another namespace with -n")


@cases(
    "told, level",
    ("deny", (), Severity.PROBLEM),
    ("warn", ("--validation=warn",), Severity.OK),
    ("this reason warns", ("--validation-reason=QueueNotFound=warn",), Severity.OK),
    ("unknown", ("--validation=of-the-future",), Severity.OK),
)
def test_a_workload_that_is_taken_is_measured_by_the_values(told: tuple[str, ...], level: Severity) -> None:
    _, job = found(answers, job_answer=ProbeAnswer(), deployments=(ours("webhook", *told), ours("controller")))
    assert job.level is level


def test_with_gates_off_a_pod_is_bound_and_not_held() -> None:
    pod, _ = found(answers, pod_answer=ProbeAnswer(group="muster-doctor", queue="default"))
    assert (pod.level, pod.message) == (
        Severity.OK,
        "a pod of a gang would be bound to PodGroup muster-doctor in queue default, and not held (gate off)",
    )


def test_without_muster_nothing_is_said_of_its_webhooks() -> None:
    nothing = healthy(deployments=(), mutating=(), validating=())
    assert [*webhooks(nothing), *answers(nothing)] == []


@pytest.mark.parametrize(
    ("group", "plural", "level"),
    [("muster.dev", "gangqueues", Severity.OK), ("scheduling.volcano.sh", "queues", Severity.PROBLEM)],
)
def test_queues_are_judged_where_they_are_read(group: str, plural: str, level: Severity) -> None:
    """With GangQueues the chart's webhook is called for these."""
    rules = [{"apiGroups": [group], "apiVersions": ["*"], "resources": [plural], "operations": ["*"]}]
    chart = configuration("ValidatingWebhookConfiguration")
    other = configuration("ValidatingWebhookConfiguration", rules=rules)
    entries = (*(one for one in chart.webhooks if one.name != "queues.muster.dev"), *other.webhooks)
    there = replace(chart, webhooks=tuple({one.name: one for one in reversed(entries)}.values()))
    told = ("--queue-source=muster",)
    deployments = (ours("webhook", *told), ours("controller", *told))
    assert found(webhooks, validating=(there,), deployments=deployments)[-1].level is level


@cases(
    "told, annotations, level",
    ("the ledger admits", ("--admitters=ledger",), {}, Severity.PROBLEM),
    ("nobody admits", ("--admitters=none",), {}, Severity.OK),
    ("nor here", ("--admitters=ledger,none",), {"muster.dev/admitter": "none"}, Severity.OK),
    ("Volcano has queues", ("--admitters=none", "--schedulers=volcano"), {}, Severity.PROBLEM),
)
def test_a_lost_queue_is_refused_where_queues_count(
    told: tuple[str, ...], annotations: dict[str, str], level: Severity
) -> None:
    arguments = (*(("--schedulers=kubernetes",) if len(told) == 1 else ()), *told)
    here = convert({"metadata": {"name": "default", "annotations": annotations}}, Namespace)
    deployments = (ours("webhook", *arguments), ours("controller", *arguments))
    _, job = found(answers, job_answer=ProbeAnswer(), deployments=deployments, namespaces=(here,))
    assert job.level is level
