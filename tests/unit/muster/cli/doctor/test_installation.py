"""Is muster there, once, does it run, who leads; what no apiserver can be made to show within a test's time."""

import pytest

from muster.cli.doctor.diagnosis import Level, Unseen
from muster.cli.doctor.installation import installation, lease, policies
from muster.cli.doctor.installed import Installation, installations
from muster.model.objects import Lease, convert
from muster.model.times import text_of
from tests.support.cases import cases
from tests.support.cli.doctor_snapshots import (
    NAMESPACE,
    NOW,
    configuration,
    deployment,
    found,
    healthy,
    levels,
    messages,
    ours,
)

UNSEEN = Unseen("you may not look")


def test_without_anything_of_muster_it_is_not_installed() -> None:
    said = found(installation, deployments=(), mutating=(), validating=())
    assert messages(said) == ["muster is not installed: no Deployment and no webhook configuration has its labels"]
    # What the chart refuses to install without is in it.
    assert said[0].command.endswith("--create-namespace --set image.repository=REGISTRY/muster")
    assert levels(said) == {Level.PROBLEM}


def test_who_may_not_look_is_not_told_that_it_is_not_installed() -> None:
    said = found(installation, deployments=UNSEEN, mutating=UNSEEN, validating=UNSEEN)
    assert levels(said) == {Level.UNKNOWN}


def test_webhook_configurations_without_deployments_are_a_rest() -> None:
    """As `helm uninstall --no-hooks` of a broken release may leave them."""
    assert messages(found(installation, deployments=())) == [
        "Deployment muster-system/muster-webhook is missing: the apiserver gets no answer",
        "Deployment muster-system/muster-controller is missing: waiting gangs keep waiting",
    ]


def test_two_installations_decide_about_the_same_gangs() -> None:
    labels = {"app.kubernetes.io/component": "webhook", "app.kubernetes.io/instance": "other"}
    second = deployment("other-muster-webhook", "own/muster", namespace="elsewhere", labels=labels)
    said = found(installation, deployments=(*healthy().deployments, second))  # type: ignore[misc]
    assert messages(said) == [
        (
            "muster is installed 2 times (muster in namespace muster-system, other in namespace elsewhere); all "
            "installations act on the same gangs"
        )
    ]


@cases(
    "changes, level, said",
    (
        "one of two",
        {"replicas": 2, "ready": 1},
        Level.WARNING,
        "Deployment muster-system/muster-webhook: 1 of 2 pods Ready",
    ),
    (
        "none",
        {"ready": 0},
        Level.PROBLEM,
        "Deployment muster-system/muster-webhook: 0 of 1 pods Ready: the apiserver gets no answer",
    ),
    (
        "another version",
        {"labels": {"app.kubernetes.io/version": "9.9"}},
        Level.WARNING,
        (
            "Deployment muster-system/muster-webhook runs version 9.9, this command is version 0.1.0: some checks may "
            "not apply"
        ),
    ),
)
def test_pods_of_the_webhook(changes: dict[str, object], level: Level, said: str) -> None:
    diagnoses = found(installation, deployments=(ours("webhook", **changes), ours("controller")))
    assert messages(diagnoses) == [said]
    assert level in levels(diagnoses)


@cases(
    "age, level",
    ("renewed just now", 2.0, Level.OK),
    ("over, or a clock behind", 40.0, Level.WARNING),
    ("stale", 50.0, Level.PROBLEM),
    ("a clock ahead", -20.0, Level.OK),
    ("a clock far ahead", -60.0, Level.WARNING),
)
def test_a_lease_is_fresh_within_its_duration_and_what_clocks_differ(age: float, level: Level) -> None:
    spec = {"holderIdentity": "c-0", "leaseDurationSeconds": 15, "renewTime": text_of(NOW - age)}
    assert levels(found(lease, lease=convert({"spec": spec}, Lease))) == {level}


def test_no_policy_at_all_is_a_value_of_the_chart() -> None:
    assert levels(found(policies, policies=(), bindings=())) == {Level.OK}


def test_a_policy_that_only_warns_is_not_in_force() -> None:
    sight = healthy()
    assert not isinstance(sight.bindings, Unseen)
    lax = replace_action(sight.bindings[0])
    assert messages(found(policies, bindings=(lax, *sight.bindings[1:]))) == [
        "not in force: muster-other-pods (the policy, or its binding with action Deny, is missing)"
    ]


def replace_action(binding: object) -> object:
    """The binding, which warns only."""
    return convert({"spec": {"policyName": binding.spec["policyName"], "validationActions": ["Warn"]}}, type(binding))  # type: ignore[attr-defined]


@pytest.mark.parametrize("client", [{"url": "https://198.51.100.1"}, {"service": {"namespace": "elsewhere"}}])
def test_configurations_that_call_elsewhere_make_no_second_installation(client: dict[str, object]) -> None:
    edited = configuration("MutatingWebhookConfiguration", clientConfig=client)
    (installed,) = healthy(mutating=(edited,)).installations
    assert installed.namespace == NAMESPACE
    assert installations(UNSEEN, (configuration("MutatingWebhookConfiguration", clientConfig={}),)) == ()


def test_names_are_those_that_the_chart_told_the_processes() -> None:
    sight = healthy(
        deployments=(
            ours("webhook", "--secret=own", "--certificate-directory=/c"),
            ours("controller", "--lease=l", "--default-queue=q"),
        )
    )
    (installed,) = sight.installations
    assert (installed.secret, installed.lease, installed.default_queue) == ("own", "l", "q")
    assert installed.own_certificates is False


def test_without_the_deployments_the_charts_own_names_are_taken() -> None:
    (installed,) = installations(UNSEEN, *(healthy().mutating,))
    assert installed == Installation(NAMESPACE, "muster", "muster")
    assert (installed.secret, installed.lease) == ("muster-webhook-tls", "muster-controller")
