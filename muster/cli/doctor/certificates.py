"""Checks of the serving certificate of the webhook, its expiry, and the caBundles that the apiserver trusts."""

import base64
import datetime as dt
from collections.abc import Iterator, Mapping
from contextlib import suppress

from cryptography.x509 import Certificate

from muster.cli.doctor.diagnosis import Diagnosis, Unseen, fine, problem, unknown, warning
from muster.cli.doctor.installed import Installation
from muster.cli.doctor.sight import Sight
from muster.cli.ui import ago, lasting
from muster.model.texts import listed
from muster.process.certificates import (
    Certificates,
    InvalidCertificateError,
    KeyPair,
    authorities_in,
    made_at,
    renewal_due,
    valid_at,
)


def certificates(sight: Sight) -> Iterator[Diagnosis]:
    """The Secret holds a valid certificate, and every caBundle holds the CA that signed it."""
    installed = sight.installed
    now = dt.datetime.fromtimestamp(sight.now, dt.UTC)
    where = f"Secret {installed.namespace}/{installed.secret}"
    pair = None
    if isinstance(sight.secret, Unseen):
        yield unknown(sight.secret, f"the contents of {where}")
    elif sight.secret is None:
        if installed.own_certificates:
            yield problem(f"{where} is missing", "helm makes it again:", installed.upgrade)
        else:
            yield problem(f"{where} is missing", "create it: docs/certificates.md")
    else:
        try:
            pair = _pair(sight.secret, own=installed.own_certificates)
            served = pair.leaf
        except InvalidCertificateError as error:
            yield problem(f"{where} cannot be served: {error}", *_renew(installed))
            pair = None
        else:
            yield from _ages(served, where, installed, now)
            name = f"{installed.service}.{installed.namespace}.svc"
            if not pair.serves([name]):
                yield problem(f"{where}: tls.crt is not valid for {name}", *_renew(installed))
    yield from _trust(sight, pair, installed, now)


def _pair(data: Mapping[str, str], *, own: bool) -> KeyPair:
    """The serving certificate and its key. Raises InvalidCertificateError."""
    if own:
        return Certificates.from_secret(data).pair
    try:
        return KeyPair(*(base64.b64decode(data.get(name, "")) for name in ("tls.crt", "tls.key")))
    except ValueError as error:
        raise InvalidCertificateError(f"not base64: {error}") from error


def _ages(served: Certificate, where: str, installed: Installation, now: dt.datetime) -> Iterator[Diagnosis]:
    left = (served.not_valid_after_utc - now).total_seconds()
    begun = made_at(served) if installed.own_certificates else served.not_valid_before_utc
    age = max(0.0, (now - begun).total_seconds())
    early = (served.not_valid_before_utc - now).total_seconds()
    until = f"{served.not_valid_after_utc:%Y-%m-%d}"
    if left <= 0:
        yield problem(f"{where}: the serving certificate expired {lasting(left)} ago, on {until}", *_renew(installed))
    elif early > 0:
        yield problem(f"{where}: the serving certificate becomes valid in {lasting(early)}", *_renew(installed))
    elif installed.own_certificates and renewal_due(served, now):
        yield warning(
            f"{where}: the serving certificate expires in {lasting(left)}, on {until}, and was not renewed",
            "see why:",
            _events(installed),
        )
    else:
        yield fine(f"{where}: the serving certificate is {lasting(age)} old and expires {ago(-left)}, on {until}")


def _trust(sight: Sight, pair: KeyPair | None, installed: Installation, now: dt.datetime) -> Iterator[Diagnosis]:
    """The webhook entries that do not trust the serving certificate."""
    faults: dict[str, list[str]] = {}
    entries = list(_entries(sight, installed))
    for name, bundle in entries:
        if fault := _fault(bundle, pair, now):
            faults.setdefault(fault, []).append(name)
    cure = ("a running webhook restores it within seconds; if it does not, see why:", _events(installed))
    if not installed.own_certificates:
        cure = ("correct the chart value webhook.caBundle, or check the cainjector of cert-manager", "")
    for fault, names in faults.items():
        yield problem(f"the caBundle holds {fault}: {listed(names)}", *cure)
    if entries and not faults and pair is not None:
        yield fine(f"the caBundles of all {len(entries)} entries hold its CA")


def _entries(sight: Sight, installed: Installation) -> Iterator[tuple[str, str]]:
    """Name and caBundle of every entry; the check `webhooks` reports a missing configuration."""
    for several in (sight.mutating, sight.validating):
        for configuration in () if isinstance(several, Unseen) else several:
            if configuration.metadata.name == installed.name:
                for entry in configuration.webhooks:
                    yield entry.name, entry.ca_bundle


def _fault(bundle: str, pair: KeyPair | None, now: dt.datetime) -> str:
    """The content of a caBundle that is not the CA of the serving certificate; "" when it holds that CA."""
    trusted: frozenset[Certificate] = frozenset()
    with suppress(ValueError):
        trusted = authorities_in(base64.b64decode(bundle))
    good = [one for one in trusted if valid_at(one, now)]
    if not trusted:
        return "no certificate"
    if not good:
        return "only certificates that are not valid now"
    return "a CA that did not sign the serving certificate" if pair is not None and pair.signed_by(good) is None else ""


def _events(installed: Installation) -> str:
    return f"kubectl -n {installed.namespace} events --for secret/{installed.secret}"


def _renew(installed: Installation) -> tuple[str, str]:
    if not installed.own_certificates:
        return "renew it: cert-manager or you manage this certificate (docs/certificates.md)", ""
    annotate = f"kubectl -n {installed.namespace} annotate secret {installed.secret} muster.dev/rotate=serving"
    return "a running webhook renews it by itself; to request a renewal:", annotate
