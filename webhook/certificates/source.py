"""Sources of the serving certificate: their common part, and certificates that are mounted as files.

Mounted certificates come from cert-manager, or from a Secret of the administrator's own. They are served, and reloaded
when they change. Nothing is written: neither the Secret nor any caBundle is muster's then. Problems are reported as
events all the same, before calls fail.
"""

import asyncio
import datetime as dt
import logging
import ssl
from collections.abc import Mapping, Sequence
from pathlib import Path

from cryptography.x509 import Certificate

from muster.kube.client import Client
from muster.kube.errors import ApiError
from muster.kube.reflector import Reflector, Watched
from muster.kube.store import Store
from muster.model.objects import Object
from muster.model.resource import Resource
from muster.process.certificates import InvalidCertificateError, KeyPair, authorities_in, server_context, valid_at
from webhook.certificates.bundles import CONFIGURATIONS, Bundles, CertificateEvents, ensure_active, in_all

logger = logging.getLogger(__name__)

# The files are small, and a kubelet changes them within a minute or so of the Secret.
_READ_SECONDS = 2.0
_CHECK_SECONDS = 10.0
# One program issues the certificate and another writes the caBundle: one may be slower than the other.
_PATIENCE_SECONDS = 60.0


class ServedCertificate:
    """The certificate that is served.

    :ivar pair: certificate and key; None at first
    :ivar issuer: the authority that signed it; None if unknown
    """

    def __init__(self) -> None:
        self.pair: KeyPair | None = None
        self.issuer: Certificate | None = None
        self._context: ssl.SSLContext | None = None

    def swap(self, pair: KeyPair, issuer: Certificate | None) -> None:
        """Serve this from now on; open connections keep theirs. Raises InvalidCertificateError and changes nothing.

        A failed load of a new certificate would break a live context, so a fresh one is made and swapped.
        """
        context, leaf = server_context(pair), pair.leaf
        self._context, self.pair, self.issuer = context, pair, issuer
        logger.info(
            "serving certificate %x, valid until %s",
            leaf.serial_number,
            leaf.not_valid_after_utc,
            extra={"event": "certificate.serving"},
        )

    def valid(self, now: dt.datetime) -> bool:
        """True if there is a certificate and it is valid at `now`."""
        return self.pair is not None and valid_at(self.pair.leaf, now)

    @property
    def context(self) -> ssl.SSLContext:
        """The context for the next connection. Raises RuntimeError before there is one."""
        if self._context is None:
            raise RuntimeError("no certificate yet: wait for `loaded`")
        return self._context


class CertificateSource:
    """Keeps the served certificate in step with its source.

    :ivar trusted: the apiserver trusts the certificate, by the caBundles of both configurations
    :ivar ending: the process is about to end and activates no webhooks: its successor may not serve yet
    :ivar loaded: set once there is a certificate to serve
    """

    def __init__(self, client: Client, events: CertificateEvents, configuration: str) -> None:
        self._client = client
        self._events = events
        self._configuration = configuration
        self._bundles = Bundles(client, configuration)
        self._serving = ServedCertificate()
        self._valid = False
        self._expirations: Mapping[str, float] = {}
        self._changed = asyncio.Event()
        self.trusted = False
        self.ending = False
        self.loaded = asyncio.Event()

    async def run(self) -> None:
        """Keep the certificate up to date for the life of the process."""
        raise NotImplementedError

    def reflectors(self) -> list[Reflector]:
        """The watches that report changes at once; each must run for as long as the process."""
        return [self._watch(kind, self._configuration) for kind in CONFIGURATIONS]

    def _watch(self, resource: Resource, name: str, namespace: str | None = None) -> Reflector:
        """A watch of one object by its name, which needs no right but for that object."""
        store: Store[Object] = Store()
        store.subscribe(lambda _: self._changed.set())
        field = f"metadata.name={name}"
        return Reflector(self._client, Watched(resource, Object, store, field, namespace=namespace))

    @property
    def ready(self) -> bool:
        """True if a valid certificate is served, and the apiserver knows the authority where that is muster's own."""
        return self.loaded.is_set() and self._valid

    @property
    def expirations(self) -> Mapping[str, float]:
        """When `serving` and `authority` expire, in seconds since 1970; without an entry while unknown."""
        return self._expirations

    @property
    def context(self) -> ssl.SSLContext:
        """The context for the next connection, once `loaded`."""
        return self._serving.context


def expires_soon(certificate: Certificate, now: dt.datetime) -> bool:
    """True if less than a quarter of its life is left, or 30 days; it should have been renewed at a third."""
    start, end = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    return (end - now).total_seconds() < min((end - start).total_seconds() / 4, 30 * 86400)


class MountedCertificates(CertificateSource):
    """Serves `tls.crt` and `tls.key` of a folder, which should be valid for these DNS names."""

    def __init__(
        self, client: Client, events: CertificateEvents, configuration: str, *, directory: Path, names: Sequence[str]
    ) -> None:
        super().__init__(client, events, configuration)
        self._directory = directory
        self._names = names
        self._untrusted_since: float | None = None
        self._authorities: frozenset[Certificate] = frozenset()
        # The authority in the caBundle that signed the served certificate, as of the last check.
        self._signer: Certificate | None = None

    async def run(self) -> None:
        """Read the files every 2 seconds, and compare with the configurations every 10 and when they change."""
        loop = asyncio.get_running_loop()
        check_at = loop.time()
        while True:
            try:
                await self.reload()
                if self._changed.is_set() or loop.time() >= check_at:
                    self._changed.clear()
                    check_at = loop.time() + _CHECK_SECONDS
                    await self._check(loop.time())
            except ApiError as error:
                logger.warning(
                    "cannot read the mounted certificates: %s", error, extra={"event": "certificate.unreadable"}
                )
            await asyncio.sleep(_READ_SECONDS)

    async def reload(self) -> None:
        """Serve the files as they are now; unusable files change nothing, and are reported."""
        try:
            pair, authorities = await asyncio.to_thread(self._read)
            if pair != self._serving.pair:
                self._serving.swap(pair, None)
                if not pair.serves(self._names):
                    note = f"tls.crt is not good for {self._names[0]}: add it to its DNS names"
                    await self._events.report("CertificateInvalid", note)
        except OSError as error:
            # A pod's folder exists before its process does: a missing file means a missing key of the Secret.
            await self._events.report("CertificateInvalid", f"cannot read {error.filename}: {error.strerror}")
        except InvalidCertificateError as error:
            await self._events.report("CertificateInvalid", f"what is mounted cannot be served: {error}")
        else:
            self._authorities = authorities
            self._record_expirations(pair)
            self.loaded.set()
        self._valid = self._serving.valid(self._client.now())

    def _record_expirations(self, pair: KeyPair) -> None:
        ends = {"serving": pair.leaf.not_valid_after_utc}
        if self._authorities:
            ends["authority"] = min(one.not_valid_after_utc for one in self._authorities)
        elif self._signer is not None:
            ends["authority"] = self._signer.not_valid_after_utc
        self._expirations = {name: moment.timestamp() for name, moment in ends.items()}

    def _read(self) -> tuple[KeyPair, frozenset[Certificate]]:
        pair = KeyPair(*((self._directory / name).read_bytes() for name in ("tls.crt", "tls.key")))
        authority = self._directory / "ca.crt"
        return pair, authorities_in(authority.read_bytes()) if authority.exists() else frozenset()

    async def _check(self, now: float) -> None:
        """Compare with the caBundles, and report what expires soon."""
        pair = self._serving.pair
        if pair is None:
            return
        configurations, today = await self._bundles.read(), self._client.now()
        present = in_all(configurations)
        signers = [one for one in present or () if pair.signed_by([one]) is not None]
        # An authority that was renewed with its key is present twice; one valid certificate of it is enough.
        valid = [one for one in signers if valid_at(one, today)]
        self._signer = max(valid or signers, key=lambda one: one.not_valid_after_utc, default=None)
        self._record_expirations(pair)
        self.trusted = present is None or bool(valid)
        if self.trusted:
            self._untrusted_since = None
            if not self.ending and not await ensure_active(self._bundles, self._events, configurations):
                self._changed.set()
        elif self._untrusted_since is None:
            self._untrusted_since = now
        elif now - self._untrusted_since > _PATIENCE_SECONDS:
            await self._events.report("CertificateNotTrusted", self._why_untrusted())
        ends = {"serving certificate": pair.leaf}
        if self._signer is not None and self._signer != pair.leaf:
            ends["authority in the caBundle"] = self._signer
        for name, one in ends.items():
            if expires_soon(one, today):
                end = f"{one.not_valid_after_utc:%Y-%m-%d %H:%M}"
                await self._events.report("CertificateExpiring", f"the {name} ends {end} UTC and was not renewed")

    def _why_untrusted(self) -> str:
        if self._signer is None:
            return (
                "no certificate in the caBundle of the webhook configurations has signed tls.crt: no call will succeed"
            )
        one = self._signer
        span = f"from {one.not_valid_before_utc:%Y-%m-%d %H:%M} to {one.not_valid_after_utc:%Y-%m-%d %H:%M} UTC"
        return f"the authority in the caBundle that has signed tls.crt is valid {span} only: no call succeeds"
