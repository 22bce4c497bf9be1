"""What is served and who is trusted, at any time of a certificate's life."""

import base64
import datetime as dt

import pytest

from muster.cli.doctor.certificates import certificates
from muster.cli.doctor.diagnosis import Level, Unseen
from muster.cli.doctor.webhooks import ENTRIES
from muster.process.certificates import issue
from tests.support.cases import cases
from tests.support.cli.doctor_snapshots import HELD, NOW, configuration, found, levels, messages, ours

DAY = 86400.0
WHERE = "Secret muster-system/muster-webhook-tls"


@cases(
    "days, level, said",
    ("young", 10, Level.OK, "is 10 days old and expires in 80 days, on 2027-02-20"),
    ("due", 61, Level.WARNING, "expires in 29 days, on 2027-02-20, and was not renewed"),
    ("over", 90, Level.PROBLEM, "expired 0 seconds ago, on 2027-02-20"),
    ("of a clock that was ahead", -1, Level.PROBLEM, "becomes valid in 23 hours"),
)
def test_an_own_certificate_through_its_life(days: int, level: Level, said: str) -> None:
    first, *_ = found(certificates, now=NOW + days * DAY)
    assert (first.level, first.message) == (level, f"{WHERE}: the serving certificate {said}")


def test_one_of_somebody_elses_is_nobodys_to_renew_early() -> None:
    deployments = (ours("webhook", "--certificate-directory=/c"), ours("controller"))
    assert levels(found(certificates, now=NOW + 61 * DAY, deployments=deployments)) == {Level.OK}
    over = found(certificates, now=NOW + 91 * DAY, deployments=deployments)
    assert over[0].cure.startswith("renew it: cert-manager or you manage this certificate")


def test_only_the_served_part_of_such_a_secret_is_read() -> None:
    """As `kubectl create secret tls` makes it."""
    data = {name: HELD.secret_data()[name] for name in ("tls.crt", "tls.key")}
    deployments = (ours("webhook", "--certificate-directory=/c"), ours("controller"))
    assert levels(found(certificates, secret=data, deployments=deployments)) == {Level.OK}
    assert messages(found(certificates, secret=data)) == [f"{WHERE} cannot be served: it has no ca.crt and no ca.key"]


def test_in_a_rotation_the_old_authority_beside_the_new_one_is_enough() -> None:
    new = issue(["x"], dt.datetime.fromtimestamp(NOW, dt.UTC)).secret_data()["ca.crt"]
    both = base64.b64encode(base64.b64decode(new) + base64.b64decode(HELD.secret_data()["ca.crt"])).decode()
    kind = "MutatingWebhookConfiguration"
    trusted, strange = (configuration(kind, clientConfig={"caBundle": bundle}) for bundle in (both, new))
    assert levels(found(certificates, mutating=(trusted,))) == {Level.OK}
    named = ", ".join(ENTRIES[kind])
    assert messages(found(certificates, mutating=(strange,))) == [
        f"the caBundle holds a CA that did not sign the serving certificate: {named}"
    ]


def test_without_a_look_at_the_secret_empty_bundles_are_seen_all_the_same() -> None:
    empty = configuration("MutatingWebhookConfiguration", clientConfig={"caBundle": ""})
    said = found(certificates, secret=Unseen("you may not get it"), mutating=(empty,))
    assert levels(said) == {Level.UNKNOWN, Level.PROBLEM}


def test_a_secret_that_is_not_there() -> None:
    said = found(certificates, secret=None)
    assert messages(said) == [f"{WHERE} is missing"]
    assert said[0].command.startswith("helm upgrade muster ")


@pytest.mark.parametrize("bundle", ["?", "Pz8=", "é"])
def test_a_bundle_that_makes_no_sense_holds_nothing(bundle: str) -> None:
    broken = configuration("ValidatingWebhookConfiguration", clientConfig={"caBundle": bundle})
    assert messages(found(certificates, validating=(broken,)))[0].startswith("the caBundle holds no certificate: ")
