"""The certificate manager: muster's own authority and serving certificate, in the Secret and in the caBundles.

The Secret is filled, repaired and renewed as `webhook.certificates.rotation` decides; its certificate is served once
callers trust it; its authorities are written into the webhook configurations, again if they are overwritten there.
Watches report a change of the Secret or of a configuration at once; a ten-second poll is the fallback.
"""

import asyncio
import datetime as dt
import logging
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import msgspec
from cryptography.x509 import Certificate

from muster.kube.client import Client
from muster.kube.errors import ApiError
from muster.kube.reflector import Reflector
from muster.model.objects import Object, decode
from muster.model.resource import SECRETS
from muster.process.certificates import Certificates, InvalidCertificateError, Lives, made_at
from webhook.certificates.bundles import (
    CertificateEvents,
    ChangedMeanwhileError,
    Configuration,
    ensure_active,
    in_all,
    in_any,
)
from webhook.certificates.rotation import ROTATE, RotationStep, Situation, next_step
from webhook.certificates.source import CertificateSource, expires_soon

logger = logging.getLogger(__name__)

_CHECK_SECONDS = 10.0
# The shortest time between two checks, however often things change.
_PAUSE_SECONDS = 0.2
_RETRY_SECONDS = 1.0
# How long a new caBundle may take to reach every apiserver; a replica is not ready before.
_PROPAGATION_SECONDS = 5.0
_MOST_IN_BUNDLE = 8


@dataclass(frozen=True, slots=True)
class RotationTiming:
    """How long certificates live, and how long a rotation waits.

    :ivar lives: lifetimes of authority and serving certificate
    :ivar trust_delay: seconds that all configurations have a new authority before it signs, so that every apiserver
        knows it
    :ivar overlap: seconds that an authority stays after it was last needed, for replicas with an older view
    """

    lives: Lives = field(default_factory=Lives)
    trust_delay: float = 30.0
    overlap: float = 3600.0


class _Secret(Object, frozen=True):
    data: dict[str, str] = {}  # noqa: RUF012 - msgspec copies the default


class CertificateManager(CertificateSource):
    """Keeps the Secret of `events`, the served certificate and the caBundles in step."""

    def __init__(
        self,
        client: Client,
        events: CertificateEvents,
        configuration: str,
        *,
        names: Sequence[str],
        timing: RotationTiming,
    ) -> None:
        super().__init__(client, events, configuration)
        self._names = names
        self._timing = timing
        self._present = _SeenSince()
        self._unneeded = _SeenSince()
        self._first_install: bool | None = None
        self._last: tuple[dict[str, str], Certificates] | None = None

    def reflectors(self) -> list[Reflector]:
        """The watches that report changes at once; each must run for as long as the process."""
        return [self._watch(SECRETS, self._events.secret, self._events.namespace), *super().reflectors()]

    async def run(self) -> None:
        """Reconcile for the life of the process."""
        while True:
            delay = _RETRY_SECONDS
            self._changed.clear()
            try:
                delay = await self.reconcile(time.monotonic())
            except ApiError as error:
                logger.warning("cannot look after the certificates: %s", error, extra={"event": "certificate.failed"})
            except Exception:
                # An unexpected error must not end renewal, and must be seen.
                logger.exception("certificates: internal error; retrying", extra={"event": "certificate.error"})
            await asyncio.sleep(_PAUSE_SECONDS)
            try:
                async with asyncio.timeout(max(0.0, delay - _PAUSE_SECONDS)):
                    await self._changed.wait()
            except TimeoutError:
                continue

    async def reconcile(self, now: float) -> float:
        """Check everything, take a step if one is due, and return the seconds until the next check.

        `now` is in seconds of a monotonic clock.
        """
        secret, raw = await self._read_secret()
        configurations = await self._bundles.read()
        found = None if secret is None else await self._certificates(secret)
        self._observe(found, configurations, now)
        stepped = False
        if secret is not None:
            stepped, found = await self._step(secret, raw, found)
        if found is not None:
            self._serve(found)
        self.trusted = await self._write_bundles(found, configurations)
        if self.trusted and self._every_apiserver_knows(in_any(configurations)):
            self.loaded.set()
        await self._record_expirations(found)
        may_activate = self.trusted and not self.ending
        active = not may_activate or await ensure_active(self._bundles, self._events, configurations)
        if stepped or not self.loaded.is_set() or not active:
            return _RETRY_SECONDS
        waits = self._present.soonest(self._timing.trust_delay), self._unneeded.soonest(self._timing.overlap)
        return min(_CHECK_SECONDS, *waits)

    async def _read_secret(self) -> tuple[_Secret | None, bytes]:
        try:
            raw = await self._client.get(SECRETS, self._events.secret, self._events.namespace)
        except ApiError as error:
            if not error.not_found:
                raise
            note = f"secret {self._events.secret} does not exist, and muster may not create it: `helm upgrade` does"
            await self._events.report("SecretMissing", f"{note}. The loaded certificate is still served")
            return None, b""
        secret = decode(raw, _Secret)
        self._events.secret_uid = secret.metadata.uid
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
                await self._events.report("CertificateInvalid", f"secret {self._events.secret} cannot be used: {error}")
            return None

    def _observe(self, found: Certificates | None, configurations: list[Configuration], now: float) -> None:
        everywhere = in_all(configurations)
        if everywhere is None:
            # Without a configuration no apiserver calls; a new one is written before it is called much.
            everywhere = frozenset(found.authorities) if found else frozenset()
        self._present.observe(everywhere, now)
        known = set(in_any(configurations))
        needed = {self._serving.issuer}
        if found is not None:
            known |= set(found.authorities)
            needed |= {found.authorities[0], found.issuer}
        self._unneeded.observe(known - needed, now)

    async def _step(self, secret: _Secret, raw: bytes, found: Certificates | None) -> tuple[bool, Certificates | None]:
        """Write the Secret if it must change; True if it was written, and its content now."""
        situation = Situation(
            found,
            self._serving.pair,
            self._serving.issuer,
            self._present.longer_than(self._timing.trust_delay),
            self._unneeded.longer_than(self._timing.overlap),
            await self._requested_rotation(secret),
            self._client.now(),
        )
        step = next_step(situation, self._names, self._timing.lives)
        if step is None:
            return False, found
        whole = msgspec.json.decode(raw)
        whole["data"] = step.certificates.secret_data()
        if step.fulfils_request:
            whole["metadata"].get("annotations", {}).pop(ROTATE, None)
        try:
            await self._client.replace(SECRETS, self._events.secret, whole, self._events.namespace)
        except ApiError as error:
            # On a conflict another replica was faster: its step is as good, and is read next.
            if not error.conflict:
                logger.warning(
                    "cannot write secret %s: %s", self._events.secret, error, extra={"event": "certificate.not_written"}
                )
                if error.refused:
                    await self._events.report("SecretNotWritten", f"{step.reason}, but cannot write it: {error}")
            return True, found
        await self._events.report("CertificateRotated", f"secret {self._events.secret}: {step.reason}", warning=False)
        return True, step.certificates

    async def _requested_rotation(self, secret: _Secret) -> RotationStep | None:
        text = secret.metadata.annotations.get(ROTATE)
        if text is None:
            return None
        try:
            return RotationStep(text)
        except ValueError:
            note = f"annotation {ROTATE}: {text[:40]!r} is not known; use serving or authority"
            await self._events.report("InvalidRotation", note)
            return None

    def _serve(self, found: Certificates) -> None:
        """Serve the Secret's certificate, unless only the one that is served now is trusted."""
        serving, trusted = self._serving, self._present.longer_than(self._timing.trust_delay)
        if found.pair == serving.pair:
            return
        if serving.issuer is None or found.issuer in trusted or not serving.valid(self._client.now()):
            serving.swap(found.pair, found.issuer)

    async def _write_bundles(self, found: Certificates | None, configurations: list[Configuration]) -> bool:
        """Write missing authorities; True if every configuration trusts the served certificate."""
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
                    # Read it again at once.
                    self._changed.set()
                    continue
                logger.warning(
                    "cannot write the caBundle of %s: %s", name, error, extra={"event": "cabundle.not_written"}
                )
                if error.refused:
                    await self._events.report(
                        "CertificateNotTrusted", f"the caBundle of {name} cannot be written: {error}"
                    )
        return trusted

    def _wanted(self, found: Certificates | None, present: Iterable[Certificate]) -> list[Certificate]:
        """The authorities to write: the Secret's, the served certificate's, and present ones that replicas may need."""
        wanted = list(found.authorities) if found else []
        idle, now = self._unneeded.longer_than(self._timing.overlap), self._client.now()
        lasting = {one for one in present if one not in idle and one.not_valid_after_utc > now}
        mine = [self._serving.issuer] if self._serving.issuer else []
        for one in [
            *mine,
            *sorted(lasting, key=lambda one: (one.not_valid_before_utc, one.serial_number), reverse=True),
        ]:
            if one not in wanted and len(wanted) < _MOST_IN_BUNDLE:
                wanted.append(one)
        return wanted

    def _every_apiserver_knows(self, present: frozenset[Certificate]) -> bool:
        """True if every apiserver knows the authority of the served certificate, or none can call anyway."""
        issuer = self._serving.issuer
        if issuer is None:
            return False
        if self._first_install is None:
            self._first_install = not present
        old = issuer in present and self._client.now() - made_at(issuer) >= dt.timedelta(seconds=_PROPAGATION_SECONDS)
        return self._first_install or old or issuer in self._present.longer_than(_PROPAGATION_SECONDS)

    async def _record_expirations(self, found: Certificates | None) -> None:
        """Update the expirations, and warn if a certificate was not renewed in time."""
        now, serving = self._client.now(), self._serving
        self._valid = serving.valid(now)
        if serving.pair is None or found is None:
            return
        ends = {"serving": serving.pair.leaf, "authority": found.authorities[0]}
        self._expirations = {name: one.not_valid_after_utc.timestamp() for name, one in ends.items()}
        for name, one in ends.items():
            if expires_soon(one, now):
                note = f"the {name} certificate ends {one.not_valid_after_utc:%Y-%m-%d %H:%M} UTC and was not renewed"
                await self._events.report("CertificateExpiring", f"{note}: see the log of the webhook")


class _SeenSince:
    """Since when each certificate has been in a set, in seconds of a monotonic clock."""

    def __init__(self) -> None:
        self._since: dict[Certificate, float] = {}
        self._now = 0.0

    def observe(self, holding: Iterable[Certificate], now: float) -> None:
        """The set holds exactly these now."""
        self._now = now
        self._since = {one: self._since.get(one, now) for one in holding}

    def longer_than(self, seconds: float) -> frozenset[Certificate]:
        """The certificates that had been in the set for that long when it was last observed."""
        return frozenset(one for one, since in self._since.items() if self._now - since >= seconds)

    def soonest(self, seconds: float) -> float:
        """Seconds until the next one has been in the set for that long; infinite if all have."""
        left = (seconds - (self._now - since) for since in self._since.values())
        return min((one for one in left if one > 0), default=float("inf"))
