"""Checks of what the webhook serves, how long yet, and of whom the apiserver trusts."""

from __future__ import annotations

import base64
import datetime as dt
from typing import TYPE_CHECKING

from muster.cli.doctor.diagnosis import Check, Diagnosis, Unseen, fine, problem, unknown, warning
from muster.cli.doctor.words import ago, lasting, listed
from muster.process.certificates import (
    Certificates,
    InvalidCertificateError,
    KeyPair,
    authorities_in,
    made_at,
    renewal_due,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from cryptography.x509 import Certificate

    from muster.cli.doctor.installed import Installation
    from muster.cli.doctor.sight import Sight

__all__ = ["certificates"]


def certificates(sight: Sight) -> Iterator[Diagnosis]:
    """The Secret holds a certificate that is good now, and every caBundle its authority."""
    installed = sight.installation
    if installed is None:
        return
    now = dt.datetime.fromtimestamp(sight.now, dt.UTC)
    where = f"Secret {installed.namespace}/{installed.secret}"
    pair = None
    if isinstance(sight.secret, Unseen):
        yield unknown(Check.CERTIFICATES, sight.secret, f"what {where} holds")
    elif sight.secret is None:
        cure = installed.upgrade if installed.own_certificates else "make it: docs/operations.md, Certificates"
        yield problem(Check.CERTIFICATES, f"{where} is missing", cure)
    else:
        try:
            pair = _pair(sight.secret, own=installed.own_certificates)
            served = pair.leaf
        except InvalidCertificateError as error:
            yield problem(Check.CERTIFICATES, f"{where} cannot be served: {error}", _renew(installed))
            pair = None
        else:
            yield from _ages(served, where, installed, now)
            name = f"{installed.service}.{installed.namespace}.svc"
            if not pair.serves([name]):
                yield problem(Check.CERTIFICATES, f"{where}: tls.crt is not good for {name}", _renew(installed))
    yield from _trust(sight, pair, installed, now)


def _pair(data: Mapping[str, str], *, own: bool) -> KeyPair:
    """What is served. Raises InvalidCertificateError."""
    if own:
        return Certificates.from_secret(data).pair
    try:
        return KeyPair(*(base64.b64decode(data.get(name, "")) for name in ("tls.crt", "tls.key")))
    except ValueError as error:
        raise InvalidCertificateError(f"no base64: {error}") from error


def _ages(served: Certificate, where: str, installed: Installation, now: dt.datetime) -> Iterator[Diagnosis]:
    left = (served.not_valid_after_utc - now).total_seconds()
    begun = made_at(served) if installed.own_certificates else served.not_valid_before_utc
    age = max(0.0, (now - begun).total_seconds())
    early = (served.not_valid_before_utc - now).total_seconds()
    until = f"{served.not_valid_after_utc:%Y-%m-%d}"
    if left <= 0:
        yield problem(
            Check.CERTIFICATES, f"{where}: what is served ended {lasting(left)} ago, on {until}", _renew(installed)
        )
    elif early > 0:
        yield problem(
            Check.CERTIFICATES, f"{where}: what is served is not good yet, {lasting(early)} long", _renew(installed)
        )
    elif installed.own_certificates and renewal_due(served, now):
        yield warning(
            Check.CERTIFICATES,
            f"{where}: what is served ends in {lasting(left)}, on {until}, and nobody has renewed it",
            f"kubectl -n {installed.namespace} events --for secret/{installed.secret} says why",
        )
    else:
        yield fine(
            Check.CERTIFICATES, f"{where}: what is served is {lasting(age)} old and ends {ago(-left)}, on {until}"
        )


def _trust(sight: Sight, pair: KeyPair | None, installed: Installation, now: dt.datetime) -> Iterator[Diagnosis]:
    """Which entries of the configurations do not trust what is served."""
    faults: dict[str, list[str]] = {}
    entries = list(_entries(sight, installed))
    for name, bundle in entries:
        if fault := _fault(bundle, pair, now):
            faults.setdefault(fault, []).append(name)
    cure = (
        f"a webhook that runs puts it back within seconds; else kubectl -n {installed.namespace} events "
        f"--for secret/{installed.secret} says who forbids it"
        if installed.own_certificates
        else "correct webhook.caBundle, or look at cert-manager's cainjector"
    )
    for fault, names in faults.items():
        yield problem(Check.CERTIFICATES, f"the caBundle holds {fault}: {listed(names)}", cure)
    if entries and not faults and pair is not None:
        yield fine(Check.CERTIFICATES, f"the caBundles of all {len(entries)} entries hold its authority")


def _entries(sight: Sight, installed: Installation) -> Iterator[tuple[str, str]]:
    """Name and caBundle of every entry; that a configuration is missing is said by the check of the webhooks."""
    for several in (sight.mutating, sight.validating):
        for configuration in () if isinstance(several, Unseen) else several:
            if configuration.metadata.name == installed.name:
                for entry in configuration.webhooks:
                    yield entry.name, entry.client_config.ca_bundle


def _fault(bundle: str, pair: KeyPair | None, now: dt.datetime) -> str:
    """What it holds instead of an authority that signed what is served; "" where it holds that."""
    trusted = _authorities(bundle)
    good = [one for one in trusted if one.not_valid_before_utc <= now < one.not_valid_after_utc]
    if not trusted:
        return "no certificate"
    if not good:
        return "only certificates that are not valid now"
    return "not the authority of what is served" if pair is not None and pair.signed_by(good) is None else ""


def _authorities(bundle: str) -> frozenset[Certificate]:
    try:
        return authorities_in(base64.b64decode(bundle))
    except ValueError:
        return frozenset()


def _renew(installed: Installation) -> str:
    if not installed.own_certificates:
        return "renew it: it is cert-manager's or your own (docs/operations.md, Certificates)"
    return (
        "a webhook that runs makes it anew by itself; ask for it with "
        f"kubectl -n {installed.namespace} annotate secret {installed.secret} muster.dev/rotate=serving"
    )
