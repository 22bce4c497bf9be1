"""Certificates as values: what muster makes, and what it reads."""

import asyncio
import base64
import datetime as dt
import ssl
from dataclasses import replace

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from muster.process.certificates import (
    Certificates,
    InvalidCertificateError,
    KeyPair,
    Lives,
    issue,
    renewal_due,
    server_context,
)
from tests.support.cases import cases
from tests.support.webhook.certificate_store import NAMES

NOW = dt.datetime.now(dt.UTC).replace(microsecond=0)
NAME = NAMES[0]
DAY = dt.timedelta(days=1)


@pytest.fixture(scope="module")
def made() -> Certificates:
    return issue(NAMES, NOW)


@pytest.fixture(scope="module")
def other() -> Certificates:
    return issue(NAMES, NOW)


async def greet(served: Certificates, trusted: Certificates, name: str) -> str:
    """Shake hands on loopback as the apiserver does: the bundle as only trust, the service name verified."""
    context = server_context(served.pair)
    server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0, ssl=context)
    port = server.sockets[0].getsockname()[1]
    bundle = base64.b64decode(trusted.secret_data()["ca.crt"]).decode()
    context = ssl.create_default_context(cadata=bundle)
    async with server:
        _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context, server_hostname=name)
        version = writer.get_extra_info("ssl_object").version()
        writer.close()
        return str(version)


@pytest.mark.parametrize("name", NAMES)
async def test_the_apiserver_trusts_what_is_served(made: Certificates, name: str) -> None:
    assert await greet(made, made, name) == "TLSv1.3"


async def test_of_several_authorities_any_will_do(made: Certificates) -> None:
    """In a rotation the bundle has two of the same name."""
    assert await greet(made, made.with_new_authority(NOW, Lives()), NAME) == "TLSv1.3"


@pytest.mark.parametrize("name", ["muster-webhook.other.svc", "evil.example.com"])
async def test_it_is_good_for_no_other_name(made: Certificates, name: str) -> None:
    with pytest.raises(ssl.SSLCertVerificationError, match="Hostname mismatch"):
        await greet(made, made, name)


async def test_another_authority_is_not_trusted(made: Certificates, other: Certificates) -> None:
    with pytest.raises(ssl.SSLCertVerificationError, match=r"unable to get local issuer|signature|self.signed"):
        await greet(made, other, NAME)


def test_old_tls_is_not_served(made: Certificates) -> None:
    assert server_context(made.pair).minimum_version is ssl.TLSVersion.TLSv1_2


def test_the_secret_keeps_everything(made: Certificates) -> None:
    data = made.secret_data()
    assert set(data) == {"ca.crt", "ca.key", "tls.crt", "tls.key"}
    assert Certificates.from_secret(data) == made


def test_the_secret_keeps_the_authorities_in_their_order(made: Certificates) -> None:
    rotating = made.with_new_authority(NOW, Lives())
    assert Certificates.from_secret(rotating.secret_data()) == rotating
    assert rotating.authorities[1:] == made.authorities
    assert rotating.issuer == made.authorities[0]


@pytest.mark.parametrize("name", ["ca.crt", "ca.key", "tls.crt", "tls.key"])
@pytest.mark.parametrize("content", [None, "", "not base64!", "abc", "é", "Z2FyYmFnZQ=="])
def test_a_broken_secret_says_what_is_wrong(made: Certificates, name: str, content: str | None) -> None:
    data = made.secret_data()
    if content is None:
        del data[name]
    else:
        data[name] = content
    with pytest.raises(InvalidCertificateError, match=r"has no|no base64|ca\.crt or ca\.key|tls\.crt"):
        Certificates.from_secret(data)


def test_an_empty_secret_has_none() -> None:
    with pytest.raises(InvalidCertificateError, match="it is empty"):
        Certificates.from_secret({})


@pytest.mark.parametrize("name", ["ca.crt", "ca.key", "tls.crt", "tls.key"])
def test_parts_of_different_makings_are_not_usable(made: Certificates, other: Certificates, name: str) -> None:
    """Two replicas that each wrote a half, or a Secret edited by hand."""
    with pytest.raises(InvalidCertificateError):
        Certificates.from_secret({**made.secret_data(), name: other.secret_data()[name]})


def by_hand(*names: str, ca: bool | None = True, signs: bool = True) -> Certificates:
    """As somebody makes them without key identifiers; `ca` None leaves out that the first is an authority."""
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "mine")])
    key, leafs = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    base = x509.CertificateBuilder().issuer_name(name).not_valid_before(NOW - DAY).not_valid_after(NOW + 300 * DAY)
    first = base.subject_name(name).serial_number(1).public_key(key.public_key())
    if ca is not None:
        first = first.add_extension(x509.BasicConstraints(ca, None), critical=True)
    if not signs:
        first = first.add_extension(
            x509.KeyUsage(
                digital_signature=True,
                **dict.fromkeys(("content_commitment", "key_encipherment", "data_encipherment"), False),
                **dict.fromkeys(
                    ("key_agreement", "key_cert_sign", "crl_sign", "encipher_only", "decipher_only"), False
                ),
            ),
            critical=True,
        )
    leaf = base.subject_name(name).serial_number(2).public_key(leafs.public_key())
    leaf = leaf.add_extension(x509.SubjectAlternativeName([x509.DNSName(one) for one in names]), critical=False)
    ca_key, own_key = (one.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()) for one in (key, leafs))
    pair = KeyPair(leaf.sign(key, hashes.SHA256()).public_bytes(Encoding.PEM), own_key)
    return Certificates((first.sign(key, hashes.SHA256()),), ca_key, pair)


async def test_an_authority_without_a_key_identifier_signs_the_next_certificate() -> None:
    """Of a Secret that somebody filled by hand, when what it serves is to be renewed."""
    found = Certificates.from_secret(by_hand("other").secret_data())
    renewed = found.with_new_pair(NAMES, NOW, Lives())
    assert renewed.issuer == found.authorities[0]
    assert await greet(renewed, renewed, NAME) == "TLSv1.3"


@cases(
    "ca, signs",
    ("not an authority", False, True),
    ("it does not say", None, True),
    ("its key is for something else", True, False),
)
def test_what_callers_let_sign_nothing_is_no_authority(ca: bool | None, signs: bool) -> None:
    with pytest.raises(InvalidCertificateError, match="is none of an authority"):
        Certificates.from_secret(by_hand(*NAMES, ca=ca, signs=signs).secret_data())


@pytest.mark.parametrize(
    ("served", "good"),
    [("*.muster-system.svc", True), ("MUSTER-webhook.muster-system.svc", True), ("*.svc", False), ("*", False)],
)
def test_names_are_matched_as_callers_match_them(served: str, good: bool) -> None:
    assert by_hand(served).pair.serves([NAME]) is good


def test_a_key_with_a_password_is_an_error_and_no_question(made: Certificates) -> None:
    key = b"-----BEGIN ENCRYPTED PRIVATE KEY-----\nMAo=\n-----END ENCRYPTED PRIVATE KEY-----\n"
    with pytest.raises(InvalidCertificateError, match="cannot be served together"):
        server_context(KeyPair(made.pair.certificate, key))


@pytest.mark.parametrize("names", [["muster-webhook.elsewhere.svc"], [*NAMES, "more"]])
def test_another_service_needs_another(made: Certificates, names: list[str]) -> None:
    assert not made.pair.serves(names)


def test_a_name_less_is_served_too(made: Certificates) -> None:
    assert made.pair.serves([NAME])


@cases(
    "later, due",
    ("not valid yet: its maker's clock was wrong", dt.timedelta(hours=-2), True),
    ("new", dt.timedelta(0), False),
    ("31 days left", 59 * DAY, False),
    ("a third is left", 60 * DAY, True),
    ("expired", 91 * DAY, True),
)
def test_it_is_renewed_long_before_it_expires(made: Certificates, later: dt.timedelta, due: bool) -> None:
    assert renewal_due(made.pair.leaf, NOW + later) is due


def test_a_certificate_never_outlives_its_authority(made: Certificates) -> None:
    late = made.with_new_pair(NAMES, NOW + 300 * DAY, Lives())
    assert late.pair.leaf.not_valid_after_utc == late.authorities[0].not_valid_after_utc


def test_the_authority_signs_leaves_and_nothing_else(made: Certificates) -> None:
    (authority,) = made.authorities
    basic = authority.extensions.get_extension_for_class(x509.BasicConstraints)
    assert (basic.critical, basic.value.ca, basic.value.path_length) == (True, True, 0)
    usage = authority.extensions.get_extension_for_class(x509.KeyUsage).value
    assert (usage.key_cert_sign, usage.digital_signature) == (True, False)


def test_the_leaf_is_no_authority(made: Certificates) -> None:
    assert not made.pair.leaf.extensions.get_extension_for_class(x509.BasicConstraints).value.ca


def test_it_is_valid_for_clocks_that_are_behind(made: Certificates) -> None:
    assert made.pair.leaf.not_valid_before_utc == NOW - dt.timedelta(hours=1)
    assert made.authorities[0].not_valid_before_utc == NOW - dt.timedelta(hours=1)


def test_a_long_service_name_fits_the_subject() -> None:
    name = f"{'x' * 60}.{'y' * 60}.svc"
    assert issue([name], NOW).pair.serves([name])


def test_no_two_are_alike(made: Certificates, other: Certificates) -> None:
    assert made.authorities != other.authorities
    assert made.pair.key != other.pair.key


def test_a_chain_is_signed_by_whoever_signed_its_top(made: Certificates, other: Certificates) -> None:
    """What others issue may have authorities in between."""
    (authority,) = made.authorities
    chained = replace(made.pair, certificate=made.pair.certificate + authority.public_bytes(Encoding.PEM))
    assert chained.signed_by(made.authorities) == authority
    assert chained.signed_by(other.authorities) is None
