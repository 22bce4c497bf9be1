"""Configurations that are not the chart's, and what the apiserver says of a trial."""

from msgspec.structs import replace

from muster.cli.doctor.diagnosis import Level, Unseen
from muster.cli.doctor.installed import CLOSED
from muster.cli.doctor.sight import DryRun
from muster.cli.doctor.webhooks import JUDGING, answers, webhooks
from tests.support.cases import cases
from tests.support.cli.doctor_snapshots import configuration, found, levels, messages, ours
from webhook.certificates import bundles

CALL = 'Internal error occurred: failed calling webhook "plain.pods.muster.dev": failed to call webhook: Post "u": '


def test_entries_that_call_somebody_else_are_named() -> None:
    elsewhere = configuration("MutatingWebhookConfiguration", clientConfig={"url": "https://198.51.100.1/x"})
    (line,) = messages(found(webhooks, mutating=(elsewhere,)))
    assert "ray.pods.muster.dev calls https://198.51.100.1/x" in line


def test_webhooks_that_are_not_called_yet_are_named() -> None:
    """As in a first installation whose pods do not start."""
    closed = configuration("MutatingWebhookConfiguration", matchConditions=[{"name": CLOSED, "expression": "false"}])
    (line,) = messages(found(webhooks, mutating=(closed,)))
    assert "the apiserver has not reached a webhook since the installation, and does not call ray.pods." in line
    assert CLOSED == bundles.CLOSED


@cases("told", ("seen", ("--validation=off",)), ("not seen", ()))
def test_without_validation_nobody_judges(told: tuple[str, ...]) -> None:
    whole = configuration("ValidatingWebhookConfiguration")
    rest = replace(whole, webhooks=tuple(one for one in whole.webhooks if one.name not in JUDGING))
    deployments = (ours("webhook", *told), ours("controller")) if told else Unseen("you may not list them")
    assert levels(found(webhooks, validating=(rest,), deployments=deployments)) == {Level.OK}


@cases(
    "cause, cure",
    ("down", "dial tcp 127.96.0.1:443: connect: connection refused", "no webhook pod accepts connections"),
    ("unready", 'no endpoints available for service "muster-webhook"', "no webhook pod accepts connections"),
    ("x509", "tls: failed to verify certificate: x509: signed by unknown", "the certificates"),
    ("timeout", "context deadline exceeded", "the apiserver does not reach port 9443"),
    ("no Service", 'service "muster-webhook" not found', "the Service is missing; helm makes it again:"),
    ("anything else", "EOF", "see the log:"),
)
def test_a_call_that_fails_has_a_cure_for_its_cause(cause: str, cure: str) -> None:
    (pod,) = found(answers, pod_answer=DryRun(refusal=CALL + cause))
    assert pod.level is Level.PROBLEM
    assert pod.message.endswith(cause)
    assert pod.cure.startswith(cure)


def test_the_port_that_is_not_reached_is_the_one_that_the_chart_was_told() -> None:
    """A firewall before the nodes may let through another one alone (docs/platforms.md)."""
    installed = (ours("webhook", "--port=10250"), ours("controller"))
    refused = DryRun(refusal=CALL + "context deadline exceeded")
    (pod,) = found(answers, pod_answer=refused, deployments=installed)
    assert pod.cure.startswith("the apiserver does not reach port 10250 of the pods")


def test_what_others_refuse_says_nothing_of_muster() -> None:
    refusal = 'pods "x" is forbidden: exceeded quota: team'
    (pod,) = found(answers, pod_answer=DryRun(refusal=refusal))
    assert (pod.level, pod.cure) == (Level.UNKNOWN, "choose another namespace with -n")


def test_with_gates_off_a_pod_is_bound_and_not_held() -> None:
    (pod,) = found(answers, pod_answer=DryRun(group="muster-doctor", queue="default"))
    assert (pod.level, pod.message) == (
        Level.OK,
        "a pod of a gang would be bound to PodGroup muster-doctor in queue default, and not held (gate off)",
    )


def test_without_muster_nothing_is_said_of_its_webhooks() -> None:
    nothing: dict[str, object] = {"deployments": (), "mutating": (), "validating": ()}
    assert [*found(webhooks, **nothing), *found(answers, **nothing)] == []
