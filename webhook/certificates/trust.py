"""Keeps three things in step: the Secret, the certificate that this replica serves, and what the apiserver trusts.

The Secret is filled, repaired and renewed when it must be (`webhook.certificates.rotation` decides how); its
certificate is served when callers trust it; and its authorities are written into the webhook configurations, again when
they are overwritten there. Watches see a change of the Secret or of a configuration at once, and a look every ten
seconds sees it in any case.
"""

from __future__ import annotations

import asyncio
import datetime as dt
import logging
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
from cryptography.x509 import Certificate

from muster.kube.client import Client
from muster.kube.errors import ApiError
from muster.kube.reflector import Reflector
from muster.kube.resource import SECRETS
from muster.model.objects import LocalObject, ObjectMeta, decode
from muster.process.certificates import Certificates, InvalidCertificateError, Lives, made_at
from webhook.certificates.activation import WebhookActivation
from webhook.certificates.bundles import CONFIGURATIONS, Bundles, ChangedMeanwhileError, Configuration, in_all, in_any
from webhook.certificates.notices import Notices
from webhook.certificates.rotation import ROTATE, RotationStep, Situation, next_step
from webhook.certificates.serving import CertificateSource, ends_soon
from webhook.certificates.watching import watches

logger = logging.getLogger(__name__)

_CHECK_SECONDS = 10.0
# Between two looks, whoever changes things how often.
_BREATH_SECONDS = 0.2
_RETRY_SECONDS = 1.0
# How long a new caBundle may take to every apiserver, where a replica waits for that before it is ready.
_HEARD_SECONDS = 5.0
_MOST_IN_BUNDLE = 8


@dataclass(frozen=True, slots=True)
class RotationTiming:
    """How long certificates live, and how long a rotation waits (seconds).

    An authority signs nothing before all configurations have had it for `trust_delay`, so that every apiserver knows
    it; and one that is not needed any more stays for `overlap`, for replicas that do not know yet.
    """

    lives: Lives = field(default_factory=Lives)
    trust_delay: float = 30.0
    overlap: float = 3600.0


class _Secret(LocalObject, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    data: dict[str, str] = {}  # noqa: RUF012 - msgspec copies the default


class Trust(CertificateSource):
    """The certificate of this replica and the apiserver's trust in it; `clock` is monotonic, in seconds."""

    def __init__(
        self,
        client: Client,
        notices: Notices,
        *,
        namespace: str,
        secret: str,
        names: Sequence[str],
        configuration: str,
        terms: RotationTiming | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__()
        self._client = client
        self._notices = notices
        self._namespace = namespace
        self._secret = secret
        self._names = names
        self._bundles = Bundles(client, configuration)
        self._configuration = configuration
        self._terms = terms or RotationTiming()
        self._clock = clock
        self._present = _Since()
        self._unneeded = _Since()
        self._entrance = WebhookActivation(self._bundles, notices)
        self._first_install: bool | None = None
        self._last: tuple[dict[str, str], Certificates] | None = None

    def reflectors(self) -> list[Reflector[Any]]:
        """The watches by which changes are seen at once; each must run for as long as the process."""
        secret = (SECRETS, self._secret, self._namespace)
        configurations = [(kind, self._configuration, None) for kind in CONFIGURATIONS]
        return watches(self._client, [secret, *configurations], self._changed)

    async def run(self) -> None:
        """Keep everything in step for ever."""
        while True:
            delay = _RETRY_SECONDS
            self._changed.clear()
            try:
                delay = await self.turn()
            except ApiError as error:
                logger.warning("cannot look after the certificates: %s", error, extra={"event": "certificate.failed"})
            except Exception:
                # What nobody foresaw must not stop renewal for good, and somebody must see it.
                logger.exception("certificates: internal error; retrying", extra={"event": "certificate.error"})
            await asyncio.sleep(_BREATH_SECONDS)
            try:
                async with asyncio.timeout(max(0.0, delay - _BREATH_SECONDS)):
                    await self._changed.wait()
            except TimeoutError:
                continue

    async def turn(self) -> float:
        """Check everything, take a step where one is due, and return the seconds until the next check."""
        secret, raw = await self._read_secret()
        configurations = await self._bundles.read()
        found = None if secret is None else await self._certificates(secret)
        self._observe(found, configurations)
        stepped = False
        if secret is not None:
            stepped, found = await self._step(secret, raw, found)
        if found is not None:
            self._choose(found)
        self.trusted = await self._publish(found, configurations)
        if self.trusted and self._may_begin(in_any(configurations)):
            self.loaded.set()
        await self._account(found)
        called = self.ending or not self.trusted or await self._entrance.open(configurations)
        if stepped or not self.loaded.is_set() or not called:
            return _RETRY_SECONDS
        waits = self._present.soonest(self._terms.trust_delay), self._unneeded.soonest(self._terms.overlap)
        return min(_CHECK_SECONDS, *waits)

    async def _read_secret(self) -> tuple[_Secret | None, bytes]:
        try:
            raw = await self._client.get(SECRETS, self._secret, self._namespace)
        except ApiError as error:
            if not error.not_found:
                raise
            note = (
                "does not exist, and muster may not create it: `helm upgrade` does. What was loaded is served meanwhile"
            )
            await self._notices.warn("SecretMissing", f"secret {self._secret} {note}")
            return None, b""
        secret = decode(raw, _Secret)
        self._notices.secret_uid = secret.metadata.uid
        return secret, raw

    async def _certificates(self, secret: _Secret) -> Certificates | None:
        if self._last is not None and secret.data == self._last[0]:
            return self._last[1]
        try:
            found = Certificates.from_secret(secret.data)
            self._last = dict(secret.data), found
            return found
        except InvalidCertificateError as error:
            if secret.data:
                await self._notices.warn("CertificateInvalid", f"secret {self._secret} cannot be used: {error}")
            return None

    def _observe(self, found: Certificates | None, configurations: list[Configuration]) -> None:
        now = self._clock()
        everywhere = in_all(configurations)
        if everywhere is None:
            # With no configuration there is nobody to ask; one that comes is written before it is called much.
            everywhere = frozenset(found.authorities) if found else frozenset()
        self._present.observe(everywhere, now)
        known = set(in_any(configurations))
        needed = {self._serving.issuer}
        if found is not None:
            known |= set(found.authorities)
            needed |= {found.authorities[0], found.issuer}
        self._unneeded.observe(known - needed, now)

    async def _step(self, secret: _Secret, raw: bytes, found: Certificates | None) -> tuple[bool, Certificates | None]:
        """Write the Secret when it must change: whether it was written, and what holds now."""
        situation = Situation(
            found,
            self._serving.pair,
            self._serving.issuer,
            self._present.longer_than(self._terms.trust_delay),
            self._unneeded.longer_than(self._terms.overlap),
            await self._asked(secret),
            self._client.now(),
        )
        step = next_step(situation, self._names, self._terms.lives)
        if step is None:
            return False, found
        whole = msgspec.json.decode(raw)
        whole["data"] = step.certificates.secret_data()
        if step.answers:
            whole["metadata"].get("annotations", {}).pop(ROTATE, None)
        try:
            await self._client.replace(SECRETS, self._secret, whole, self._namespace)
        except ApiError as error:
            # On a conflict another replica was quicker: what it did is as good, and is looked at next.
            if not error.conflict:
                logger.warning(
                    "cannot write secret %s: %s", self._secret, error, extra={"event": "certificate.not_written"}
                )
                if error.refused:
                    await self._notices.warn("SecretNotWritten", f"{step.why}, but cannot write it: {error}")
            return True, found
        await self._notices.tell("CertificateRotated", f"secret {self._secret}: {step.why}")
        return True, step.certificates

    async def _asked(self, secret: _Secret) -> RotationStep | None:
        text = secret.metadata.annotations.get(ROTATE)
        if text is None:
            return None
        try:
            return RotationStep(text)
        except ValueError:
            note = f"annotation {ROTATE}: {text[:40]!r} is not known; use serving or authority"
            await self._notices.warn("InvalidRotation", note)
            return None

    def _choose(self, found: Certificates) -> None:
        """Serve the Secret's certificate, unless the served one is trusted and the new one is not yet."""
        serving, trusted = self._serving, self._present.longer_than(self._terms.trust_delay)
        if found.pair == serving.pair:
            return
        if serving.issuer is None or found.issuer in trusted or not serving.valid(self._client.now()):
            serving.swap(found.pair, found.issuer)

    async def _publish(self, found: Certificates | None, configurations: list[Configuration]) -> bool:
        """Write missing authorities; returns whether every configuration trusts the served certificate."""
        wanted = self._wanted(found, in_any(configurations))
        if not wanted:
            return False
        trusted = True
        for configuration in configurations:
            name = f"{configuration.resource.full_name} {self._configuration}"
            try:
                if await self._bundles.write(configuration, wanted):
                    logger.info("wrote the caBundle of %s", name, extra={"event": "cabundle.written"})
            except ApiError as error:
                trusted = trusted and self._serving.issuer in (in_all([configuration]) or frozenset())
                if isinstance(error, ChangedMeanwhileError):
                    # It is read again at once.
                    self._changed.set()
                    continue
                logger.warning(
                    "cannot write the caBundle of %s: %s", name, error, extra={"event": "cabundle.not_written"}
                )
                if error.refused:
                    await self._notices.warn(
                        "CertificateNotTrusted", f"the caBundle of {name} cannot be written: {error}"
                    )
        return trusted

    def _wanted(self, found: Certificates | None, present: Iterable[Certificate]) -> list[Certificate]:
        """The authorities to write: the Secret's, the served one's, and present ones that other replicas may need."""
        wanted = list(found.authorities) if found else []
        idle, now = self._unneeded.longer_than(self._terms.overlap), self._client.now()
        lasting = {one for one in present if one not in idle and one.not_valid_after_utc > now}
        mine = [self._serving.issuer] if self._serving.issuer else []
        for one in [
            *mine,
            *sorted(lasting, key=lambda one: (one.not_valid_before_utc, one.serial_number), reverse=True),
        ]:
            if one not in wanted and len(wanted) < _MOST_IN_BUNDLE:
                wanted.append(one)
        return wanted

    def _may_begin(self, present: frozenset[Certificate]) -> bool:
        """Whether to activate the webhooks: every apiserver knows the authority, or none can call anyway."""
        issuer = self._serving.issuer
        if issuer is None:
            return False
        if self._first_install is None:
            self._first_install = not present
        old = issuer in present and self._client.now() - made_at(issuer) >= dt.timedelta(seconds=_HEARD_SECONDS)
        return self._first_install or old or issuer in self._present.longer_than(_HEARD_SECONDS)

    async def _account(self, found: Certificates | None) -> None:
        """Report the expirations, and warn when a certificate was not renewed in time."""
        now, serving = self._client.now(), self._serving
        self._valid = serving.valid(now)
        if serving.pair is None or found is None:
            return
        ends = {"serving": serving.pair.leaf, "authority": found.authorities[0]}
        self._expirations = {name: one.not_valid_after_utc.timestamp() for name, one in ends.items()}
        for name, one in ends.items():
            if ends_soon(one, now):
                note = f"the {name} certificate ends {one.not_valid_after_utc:%Y-%m-%d %H:%M} UTC and was not renewed"
                await self._notices.warn("CertificateExpiring", f"{note}: see the log of the webhook")


class _Since:
    """Since when things have been so, in seconds of one clock that never goes back."""

    def __init__(self) -> None:
        self._since: dict[Certificate, float] = {}
        self._now = 0.0

    def observe(self, holding: Iterable[Certificate], now: float) -> None:
        """It is so of these now, and of no others."""
        self._now = now
        self._since = {one: self._since.get(one, now) for one in holding}

    def longer_than(self, seconds: float) -> frozenset[Certificate]:
        """Those of which it has been so for that long, as of the last look."""
        return frozenset(one for one, since in self._since.items() if self._now - since >= seconds)

    def soonest(self, seconds: float) -> float:
        """Seconds until the next one has been so for that long; infinite when all have."""
        left = (seconds - (self._now - since) for since in self._since.values())
        return min((one for one in left if one > 0), default=float("inf"))
