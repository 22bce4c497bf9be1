"""Keys and certificates of one testbed: its own authority, made at `up` and gone at `down`."""

from __future__ import annotations

import datetime as dt
import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from hack.testbed.errors import TestbedError

# The Training operator renews a certificate 90 days before its end; no testbed lives as long as this.
_VALID = dt.timedelta(days=400)


@dataclass(frozen=True, slots=True)
class Authority:
    """A certificate authority."""

    certificate: x509.Certificate
    key: rsa.RSAPrivateKey

    @classmethod
    def create(cls, name: str) -> Authority:
        """Make an authority whose subject and DNS name are `name`."""
        # The Training operator reads nothing but RSA in PKCS #1.
        key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        subject = _name(name)
        builder = _builder(subject, subject, key.public_key(), [x509.DNSName(name)]).add_extension(
            x509.BasicConstraints(ca=True, path_length=None), critical=True
        )
        return cls(builder.sign(key, hashes.SHA256()), key)

    @classmethod
    def load(cls, folder: Path, name: str) -> Authority:
        """Read an authority back that `write_pair` wrote."""
        key = serialization.load_pem_private_key((folder / f"{name}.key").read_bytes(), password=None)
        if not isinstance(key, rsa.RSAPrivateKey):
            raise TestbedError(f"{folder / name}.key is no RSA key: take the testbed down and start another")
        return cls(x509.load_pem_x509_certificate((folder / f"{name}.crt").read_bytes()), key)

    def issue(self, names: Sequence[str]) -> tuple[bytes, bytes]:
        """Return certificate and key (PEM) of a server with these DNS names and IP addresses."""
        key = ec.generate_private_key(ec.SECP256R1())
        builder = _builder(
            _name(names[0]), self.certificate.subject, key.public_key(), [_alternative(name) for name in names]
        ).add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        return builder.sign(self.key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM), _pem(key)

    def issue_client(self, user: str, group: str) -> tuple[bytes, bytes]:
        """Return certificate and key (PEM) with which a client is this user of this group."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name(
            [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group), x509.NameAttribute(NameOID.COMMON_NAME, user)]
        )
        builder = _builder(subject, self.certificate.subject, key.public_key(), [x509.DNSName(user)]).add_extension(
            x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False
        )
        return builder.sign(self.key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM), _pem(key)

    def pem(self) -> tuple[bytes, bytes]:
        """Return the authority's own certificate and key (PEM)."""
        return self.certificate.public_bytes(serialization.Encoding.PEM), _pem(self.key)


def write_pair(folder: Path, name: str, pair: tuple[bytes, bytes]) -> None:
    """Write NAME.crt and NAME.key, the key readable by its owner only."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.crt").write_bytes(pair[0])
    _write_private(folder / f"{name}.key", pair[1])


def write_service_account_keys(folder: Path) -> None:
    """Write sa.key and sa.pub, with which ServiceAccount tokens are signed and checked."""
    key = ec.generate_private_key(ec.SECP256R1())
    _write_private(folder / "sa.key", _pem(key))
    (folder / "sa.pub").write_bytes(
        key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    )


def _write_private(path: Path, content: bytes) -> None:
    path.touch(mode=0o600)
    path.write_bytes(content)


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _alternative(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePublicKey | rsa.RSAPublicKey,
    names: Sequence[x509.GeneralName],
) -> x509.CertificateBuilder:
    now = dt.datetime.now(dt.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(minutes=5))
        .not_valid_after(now + _VALID)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
    )


def _pem(key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    )
