"""Certificates as values: making the webhook's own, and reading any.

The Secret has four keys, as cert-manager's and kubectl's TLS Secrets name them: `tls.crt` and `tls.key` are served,
`ca.crt` holds the authorities that are to be trusted, the one that signs first, and `ca.key` is the key of that one.
"""

from __future__ import annotations

import base64
import datetime as dt
import ssl
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_AUTHORITY_NAME = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "muster webhook CA")])
# Clocks differ, among apiservers too.
_SKEW = dt.timedelta(hours=1)
_KEYS = ("ca.crt", "ca.key", "tls.crt", "tls.key")
_PEM = serialization.Encoding.PEM
# The errors of cryptography for malformed keys and certificates.
_UNREADABLE = (
    *(ValueError, TypeError, UnsupportedAlgorithm, InvalidSignature),
    *(x509.ExtensionNotFound, x509.DuplicateExtension),
)


class InvalidCertificateError(Exception):
    """A certificate, or its key, that cannot be served; the message names the fault."""


@dataclass(frozen=True, slots=True)
class Lives:
    """The lifetimes of new certificates. One never outlives its authority, which is renewed early enough."""

    certificate: dt.timedelta = dt.timedelta(days=90)
    authority: dt.timedelta = dt.timedelta(days=365)


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A serving certificate, perhaps with the chain above it, and its key, as PEM."""

    certificate: bytes
    key: bytes

    def chain(self) -> list[x509.Certificate]:
        """Return the serving certificate, then the chain above it. Raises InvalidCertificateError."""
        try:
            return x509.load_pem_x509_certificates(self.certificate)
        except ValueError as error:
            raise InvalidCertificateError(f"tls.crt holds no certificate: {error}") from error

    @property
    def leaf(self) -> x509.Certificate:
        """The serving certificate itself. Raises InvalidCertificateError."""
        return self.chain()[0]

    def serves(self, names: Iterable[str]) -> bool:
        """True if it is good for all of these DNS names."""
        try:
            served = self.leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        except _UNREADABLE:
            return False
        known = {name.lower() for name in served.get_values_for_type(x509.DNSName)}
        # As callers match them: a star stands for the whole first label, and for no other.
        return all(name in known or f"*.{name.partition('.')[2]}" in known for name in names)

    def signed_by(self, authorities: Iterable[x509.Certificate]) -> x509.Certificate | None:
        """Return the authority that signed it, or the highest of its chain; None if none of these did."""
        return next((one for one in authorities for link in self.chain() if link == one or _signed(link, one)), None)


@dataclass(frozen=True, slots=True)
class Certificates:
    """The content of the Secret: the authorities, the first signs with `ca_key`, and the served pair."""

    authorities: tuple[x509.Certificate, ...]
    ca_key: bytes
    pair: KeyPair

    @classmethod
    def from_secret(cls, data: Mapping[str, str]) -> Certificates:
        """Read the `data` of the Secret. Raises InvalidCertificateError where its parts do not make a whole."""
        if not any(data.get(name) for name in _KEYS):
            raise InvalidCertificateError("it is empty")
        try:
            parts = {name: base64.b64decode(data.get(name, ""), validate=True) for name in _KEYS}
        except ValueError as error:
            raise InvalidCertificateError(f"no base64: {error}") from error
        if missing := [name for name in _KEYS if not parts[name]]:
            raise InvalidCertificateError(f"it has no {' and no '.join(missing)}")
        try:
            authorities = tuple(x509.load_pem_x509_certificates(parts["ca.crt"]))
            ca_key = serialization.load_pem_private_key(parts["ca.key"], password=None)
            signer, may_sign = authorities[0].public_key(), _may_sign(authorities[0])
        except _UNREADABLE as error:
            raise InvalidCertificateError(f"ca.crt or ca.key: {error}") from error
        if not isinstance(ca_key, ec.EllipticCurvePrivateKey) or ca_key.public_key() != signer:
            raise InvalidCertificateError("ca.key is not the key of the first certificate of ca.crt")
        if not may_sign:
            raise InvalidCertificateError("the first certificate of ca.crt is none of an authority")
        whole = cls(authorities, parts["ca.key"], KeyPair(parts["tls.crt"], parts["tls.key"]))
        server_context(whole.pair)
        if whole.issuer is None:
            raise InvalidCertificateError("tls.crt is not signed by a certificate of ca.crt")
        return whole

    @property
    def issuer(self) -> x509.Certificate | None:
        """The authority that signed the served certificate; None when it is none of these."""
        return self.pair.signed_by(self.authorities)

    def secret_data(self) -> dict[str, str]:
        """Return the `data` of the Secret."""
        bundle = b"".join(authority.public_bytes(_PEM) for authority in self.authorities)
        parts = (bundle, self.ca_key, self.pair.certificate, self.pair.key)
        return {name: base64.b64encode(part).decode() for name, part in zip(_KEYS, parts, strict=True)}

    def with_new_authority(self, now: dt.datetime, lives: Lives) -> Certificates:
        """Return the same with a new authority before the others; the served pair stays."""
        authority, key = _new_authority(now, lives.authority)
        return replace(self, authorities=(authority, *self.authorities), ca_key=key)

    def with_new_pair(self, names: Sequence[str], now: dt.datetime, lives: Lives) -> Certificates:
        """Return the same with a new serving certificate of the first authority for these DNS names."""
        return replace(self, pair=_new_pair(self.authorities[0], self.ca_key, names, now, lives.certificate))


def issue(names: Sequence[str], now: dt.datetime, lives: Lives | None = None) -> Certificates:
    """Make a new authority and a serving certificate for these DNS names (P-256)."""
    lives = lives or Lives()
    authority, key = _new_authority(now, lives.authority)
    return Certificates((authority,), key, _new_pair(authority, key, names, now, lives.certificate))


def authorities_in(bundle: bytes) -> frozenset[x509.Certificate]:
    """Return the certificates of a PEM bundle; none where it cannot be read."""
    try:
        return frozenset(x509.load_pem_x509_certificates(bundle))
    except ValueError:
        return frozenset()


def made_at(certificate: x509.Certificate) -> dt.datetime:
    """Return when a certificate of muster's was made: its time begins a little earlier."""
    return certificate.not_valid_before_utc + _SKEW


def valid_at(certificate: x509.Certificate, now: dt.datetime) -> bool:
    """True if its time has begun and has not ended, as callers check it."""
    return certificate.not_valid_before_utc <= now < certificate.not_valid_after_utc


def renewal_due(certificate: x509.Certificate, now: dt.datetime) -> bool:
    """True if a third of its life is left, or less; also when it is not valid yet, for its maker's clock was wrong."""
    start, end = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    return not start <= now < end - (end - start) / 3


def server_context(pair: KeyPair) -> ssl.SSLContext:
    """Return a new TLS context that serves the pair. Raises InvalidCertificateError, also if the key is another's."""
    pair.chain()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    # The ssl module reads files only.
    with tempfile.TemporaryDirectory(prefix="muster-") as folder:
        path = Path(folder, "tls.pem")
        path.touch(mode=0o600)
        path.write_bytes(pair.key + b"\n" + pair.certificate)
        try:
            # An encrypted key is an error, and no question at a terminal.
            context.load_cert_chain(path, password=b"")
        except (ssl.SSLError, ValueError) as error:
            raise InvalidCertificateError(f"tls.crt and tls.key cannot be served together: {error}") from error
    return context


# A replica checks the same few certificates at every look.
@lru_cache(maxsize=64)
def _signed(certificate: x509.Certificate, authority: x509.Certificate) -> bool:
    try:
        certificate.verify_directly_issued_by(authority)
    except _UNREADABLE:
        return False
    return True


def _may_sign(certificate: x509.Certificate) -> bool:
    """True if clients trust its signatures: Go's demand it of roots, too (CheckSignatureFrom of crypto/x509)."""
    found = {type(one.value): one.value for one in certificate.extensions}
    basic, usage = found.get(x509.BasicConstraints), found.get(x509.KeyUsage)
    authority = basic.ca if isinstance(basic, x509.BasicConstraints) else certificate.version is x509.Version.v1
    return authority and (not isinstance(usage, x509.KeyUsage) or usage.key_cert_sign)


def _new_authority(now: dt.datetime, life: dt.timedelta) -> tuple[x509.Certificate, bytes]:
    key = ec.generate_private_key(ec.SECP256R1())
    authority = (
        _builder(_AUTHORITY_NAME, _AUTHORITY_NAME, key.public_key(), now, now + life)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_key_usage(signs=True), critical=True)
        .sign(key, hashes.SHA256())
    )
    return authority, _pem(key)


def _new_pair(
    authority: x509.Certificate, ca_key: bytes, names: Sequence[str], now: dt.datetime, life: dt.timedelta
) -> KeyPair:
    key = ec.generate_private_key(ec.SECP256R1())
    signer = serialization.load_pem_private_key(ca_key, password=None)
    if not isinstance(signer, ec.EllipticCurvePrivateKey):
        raise TypeError("muster's authorities have keys of elliptic curves")
    identifier = x509.SubjectKeyIdentifier.from_public_key(signer.public_key())
    with suppress(x509.ExtensionNotFound):
        # The authority of others may have none, or another one than muster's would.
        identifier = authority.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, names[0][:64])])
    leaf = (
        _builder(subject, authority.subject, key.public_key(), now, min(now + life, authority.not_valid_after_utc))
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_key_usage(signs=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name) for name in names]), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(identifier), critical=False)
        .sign(signer, hashes.SHA256())
    )
    return KeyPair(leaf.public_bytes(_PEM), _pem(key))


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePublicKey,
    now: dt.datetime,
    end: dt.datetime,
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _SKEW)
        .not_valid_after(end)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    )


def _key_usage(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs,
        key_cert_sign=signs,
        crl_sign=signs,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(_PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
