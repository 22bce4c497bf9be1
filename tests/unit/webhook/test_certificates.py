"""The webhook's own authority and certificate."""

from __future__ import annotations

import asyncio
import datetime as dt
import ssl
from dataclasses import replace

import pytest
from cryptography import x509

from webhook.certificates import Certificates, issue, server_context

NOW = dt.datetime.now(dt.UTC).replace(microsecond=0)
NAME = "muster-webhook.muster-system.svc"
NAMES = [NAME, "muster-webhook.muster-system", "muster-webhook"]
DAY = dt.timedelta(days=1)


@pytest.fixture(scope="module")
def made() -> Certificates:
    return issue(NAMES, NOW)


@pytest.fixture(scope="module")
def other() -> Certificates:
    return issue(NAMES, NOW)


async def greet(served: Certificates, trusted: Certificates, name: str) -> str:
    """Shake hands on loopback as the apiserver does: the bundle as only trust, the service name verified."""
    server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0, ssl=server_context(served))
    port = server.sockets[0].getsockname()[1]
    context = ssl.create_default_context(cadata=trusted.ca_certificate.decode())
    async with server:
        _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context, server_hostname=name)
        version = writer.get_extra_info("ssl_object").version()
        writer.close()
        return str(version)


@pytest.mark.parametrize("name", NAMES)
async def test_the_apiserver_trusts_what_is_served(made: Certificates, name: str) -> None:
    assert await greet(made, made, name) == "TLSv1.3"


@pytest.mark.parametrize("name", ["muster-webhook.other.svc", "evil.example.com"])
async def test_it_is_good_for_no_other_name(made: Certificates, name: str) -> None:
    with pytest.raises(ssl.SSLCertVerificationError, match="Hostname mismatch"):
        await greet(made, made, name)


async def test_another_authority_is_not_trusted(made: Certificates, other: Certificates) -> None:
    with pytest.raises(ssl.SSLCertVerificationError, match=r"unable to get local issuer|signature|self.signed"):
        await greet(made, other, NAME)


def test_old_tls_is_not_served(made: Certificates) -> None:
    assert server_context(made).minimum_version is ssl.TLSVersion.TLSv1_2


def test_the_secret_keeps_all_four_parts(made: Certificates) -> None:
    data = made.secret_data()
    assert set(data) == {"ca.crt", "ca.key", "tls.crt", "tls.key"}
    assert Certificates.from_secret(data) == made


@pytest.mark.parametrize("name", ["ca.crt", "ca.key", "tls.crt", "tls.key"])
@pytest.mark.parametrize("content", [None, "", "not base64!", "abc", "é"])
def test_an_incomplete_secret_is_as_good_as_empty(made: Certificates, name: str, content: str | None) -> None:
    data = made.secret_data()
    if content is None:
        del data[name]
    else:
        data[name] = content
    assert Certificates.from_secret(data) is None


def test_an_empty_secret_has_none() -> None:
    assert Certificates.from_secret({}) is None


def test_what_was_just_made_is_usable(made: Certificates) -> None:
    assert made.usable(NAMES, NOW)


@pytest.mark.parametrize(
    ("later", "usable"),
    [
        pytest.param(274 * DAY, True, id="91 days left"),
        pytest.param(276 * DAY, False, id="89 days left: time to renew"),
        pytest.param(366 * DAY, False, id="expired"),
    ],
)
def test_it_is_renewed_long_before_it_expires(made: Certificates, later: dt.timedelta, usable: bool) -> None:  # noqa: FBT001
    assert made.usable(NAMES, NOW + later) is usable


def test_another_service_needs_another(made: Certificates) -> None:
    assert not made.usable(["muster-webhook.elsewhere.svc"], NOW)


def test_a_name_less_is_served_too(made: Certificates) -> None:
    assert made.usable([NAME], NOW)


@pytest.mark.parametrize("part", ["certificate", "key", "ca_certificate"])
@pytest.mark.parametrize("garbage", [b"garbage", b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"])
def test_garbage_is_not_usable(made: Certificates, part: str, garbage: bytes) -> None:
    assert not replace(made, **{part: garbage}).usable(NAMES, NOW)


@pytest.mark.parametrize("part", ["certificate", "key", "ca_certificate"])
def test_parts_of_different_makings_are_not_usable(made: Certificates, other: Certificates, part: str) -> None:
    """Two replicas that each wrote a half, or a Secret edited by hand."""
    assert not replace(made, **{part: getattr(other, part)}).usable(NAMES, NOW)


def test_a_key_that_does_not_match_is_never_served(made: Certificates, other: Certificates) -> None:
    with pytest.raises(ssl.SSLError):
        server_context(replace(made, key=other.key))


def test_the_authority_signs_leaves_and_nothing_else(made: Certificates) -> None:
    authority = x509.load_pem_x509_certificate(made.ca_certificate)
    basic = authority.extensions.get_extension_for_class(x509.BasicConstraints)
    assert (basic.critical, basic.value.ca, basic.value.path_length) == (True, True, 0)
    usage = authority.extensions.get_extension_for_class(x509.KeyUsage).value
    assert (usage.key_cert_sign, usage.digital_signature) == (True, False)


def test_the_leaf_is_no_authority(made: Certificates) -> None:
    leaf = x509.load_pem_x509_certificate(made.certificate)
    assert not leaf.extensions.get_extension_for_class(x509.BasicConstraints).value.ca


def test_it_is_valid_for_clocks_that_are_behind(made: Certificates) -> None:
    leaf = x509.load_pem_x509_certificate(made.certificate)
    assert leaf.not_valid_before_utc == NOW - dt.timedelta(hours=1)


def test_a_long_service_name_fits_the_subject() -> None:
    name = f"{'x' * 60}.{'y' * 60}.svc"
    assert issue([name], NOW).usable([name], NOW)


def test_no_two_are_alike(made: Certificates, other: Certificates) -> None:
    assert made.ca_certificate != other.ca_certificate
    assert made.key != other.key
