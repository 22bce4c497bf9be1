"""The webhook's own certificate authority and serving certificate.

One Secret is the truth: created empty by the chart, filled by whichever replica comes first; a conflict means that
another one did. Its four keys are `ca.crt`, `ca.key`, `tls.crt` and `tls.key`.
"""

from __future__ import annotations

import base64
import datetime as dt
import ssl
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["Certificates", "issue", "server_context"]

_CA_LIFE = dt.timedelta(days=3650)
_LEAF_LIFE = dt.timedelta(days=365)
# Renewed with this much left, so that nobody ever meets an expired one.
_LEAF_RENEWAL = dt.timedelta(days=90)
# Clocks differ.
_SKEW = dt.timedelta(hours=1)
_KEYS = ("ca.crt", "ca.key", "tls.crt", "tls.key")


@dataclass(frozen=True, slots=True)
class Certificates:
    """An authority and a serving certificate signed by it, each with its key, as PEM."""

    ca_certificate: bytes
    ca_key: bytes
    certificate: bytes
    key: bytes

    @classmethod
    def from_secret(cls, data: Mapping[str, str]) -> Certificates | None:
        """Read the `data` of the Secret; None when it is empty or incomplete."""
        try:
            parts = [base64.b64decode(data[name], validate=True) for name in _KEYS]
        except (KeyError, ValueError):
            return None
        return cls(*parts) if all(parts) else None

    def secret_data(self) -> dict[str, str]:
        """The `data` of the Secret."""
        parts = (self.ca_certificate, self.ca_key, self.certificate, self.key)
        return {name: base64.b64encode(part).decode() for name, part in zip(_KEYS, parts, strict=True)}

    def usable(self, names: Sequence[str], now: dt.datetime) -> bool:
        """Whether this serves these DNS names for a good while yet: parsed, matching, signed by its authority."""
        try:
            leaf = x509.load_pem_x509_certificate(self.certificate)
            authority = x509.load_pem_x509_certificate(self.ca_certificate)
            leaf.verify_directly_issued_by(authority)
            server_context(self)
            served = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        except (ValueError, TypeError, ssl.SSLError, x509.ExtensionNotFound, InvalidSignature):
            return False
        lasts = min(leaf.not_valid_after_utc, authority.not_valid_after_utc) - now
        return lasts > _LEAF_RENEWAL and set(names) <= set(served.get_values_for_type(x509.DNSName))


def issue(names: Sequence[str], now: dt.datetime) -> Certificates:
    """Make a new authority and a serving certificate for these DNS names (P-256)."""
    ca_key = ec.generate_private_key(ec.SECP256R1())
    ca_name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "muster webhook CA")])
    ca_identifier = x509.SubjectKeyIdentifier.from_public_key(ca_key.public_key())
    authority = (
        _builder(ca_name, ca_name, ca_key.public_key(), now, _CA_LIFE)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_key_usage(signs=True), critical=True)
        .add_extension(ca_identifier, critical=False)
        .sign(ca_key, hashes.SHA256())
    )
    key = ec.generate_private_key(ec.SECP256R1())
    leaf = (
        _builder(
            x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, names[0][:64])]),
            ca_name,
            key.public_key(),
            now,
            _LEAF_LIFE,
        )
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_key_usage(signs=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name) for name in names]), critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(ca_identifier), critical=False)
        .sign(ca_key, hashes.SHA256())
    )
    return Certificates(
        ca_certificate=authority.public_bytes(serialization.Encoding.PEM),
        ca_key=_pem(ca_key),
        certificate=leaf.public_bytes(serialization.Encoding.PEM),
        key=_pem(key),
    )


def server_context(certificates: Certificates) -> ssl.SSLContext:
    """A fresh TLS context that serves these; raises ssl.SSLError when certificate and key do not match."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    # The ssl module reads files only.
    with tempfile.TemporaryDirectory(prefix="muster-") as folder:
        chain = Path(folder, "tls.pem")
        chain.touch(mode=0o600)
        chain.write_bytes(certificates.key + certificates.certificate)
        context.load_cert_chain(chain)
    return context


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePublicKey,
    now: dt.datetime,
    life: dt.timedelta,
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _SKEW)
        .not_valid_after(now + life)
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
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
