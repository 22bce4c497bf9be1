"""The command line's words about certificates."""

import argparse
import datetime as dt
from pathlib import Path

import pytest

from muster.process.lifecycle import Identity
from tests.support.manifests.observed import as_client
from tests.support.webhook.certificate_store import Places
from webhook.__main__ import add_certificate_arguments, certificate_source
from webhook.certificates.authority import CertificateManager
from webhook.certificates.source import CertificateSource, MountedCertificates


def chosen(*arguments: str) -> CertificateSource:
    parser = argparse.ArgumentParser()
    add_certificate_arguments(parser)
    own = Identity("pod", "muster-system")
    return certificate_source(parser.parse_args(arguments), as_client(Places.as_installed()), own)


def test_by_default_its_own_for_the_service() -> None:
    one = chosen()
    assert isinstance(one, CertificateManager)
    assert one._names[0] == "muster-webhook.muster-system.svc"
    assert one._timing.lives.certificate == dt.timedelta(days=90)


def test_a_folder_means_somebody_else_s() -> None:
    one = chosen("--certificate-directory=/etc/tls")
    assert isinstance(one, MountedCertificates)
    assert one._directory == Path("/etc/tls")


def test_an_authority_that_is_too_short_is_refused_with_what_to_do() -> None:
    with pytest.raises(ValueError, match=r"--authority-days 100 is too short for --certificate-days 90: .* 3 times"):
        chosen("--authority-days=100")


@pytest.mark.parametrize(
    "argument",
    [
        "--certificate-days=0.5",
        "--certificate-days=nan",
        "--authority-days=1e9",
        "--trust-delay=-1",
        "--trust-delay=nan",
    ],
)
def test_what_makes_no_sense_is_refused(argument: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        chosen(argument)
    assert "use " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("flag", "words"),
    [
        ("--secret", "Secret that holds the certificates"),
        ("--service", "Service by which the apiserver calls"),
        ("--configuration", "name of both webhook configurations"),
    ],
)
def test_a_flag_that_names_an_object_says_which(flag: str, words: str) -> None:
    parser = argparse.ArgumentParser()
    add_certificate_arguments(parser)
    told = " ".join(parser.format_help().split())
    assert f"{flag} {flag[2:].upper()} {words} --" in told
