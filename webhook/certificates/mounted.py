"""Certificates from elsewhere (cert-manager, or a Secret of the administrator's own), mounted as files.

They are served, and reloaded when they change. Nothing is written: neither the Secret nor any caBundle is muster's
then. Problems are reported as events all the same, before calls fail.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cryptography.x509 import Certificate

from muster.kube.client import Client
from muster.kube.errors import ApiError
from muster.kube.reflector import Reflector
from muster.process.certificates import InvalidCertificateError, KeyPair, authorities_in, valid_at
from webhook.certificates.activation import WebhookActivation
from webhook.certificates.bundles import CONFIGURATIONS, Bundles, in_all
from webhook.certificates.notices import Notices
from webhook.certificates.serving import CertificateSource, ends_soon
from webhook.certificates.watching import watches

logger = logging.getLogger(__name__)

# The files are small, and a kubelet changes them within a minute or so of the Secret.
_READ_SECONDS = 2.0
_CHECK_SECONDS = 10.0
# Who issues and who writes the caBundle are two, and need not be equally quick.
_PATIENCE_SECONDS = 60.0


class Mounted(CertificateSource):
    """Serves `tls.crt` and `tls.key` of a folder, which should be good for these DNS names."""

    def __init__(
        self, client: Client, notices: Notices, *, directory: Path, names: Sequence[str], configuration: str
    ) -> None:
        super().__init__()
        self._client = client
        self._notices = notices
        self._directory = directory
        self._names = names
        self._configuration = configuration
        self._bundles = Bundles(client, configuration)
        self._entrance = WebhookActivation(self._bundles, notices)
        self._doubtful_since: float | None = None
        self._authorities: frozenset[Certificate] = frozenset()
        # The certificate of the caBundle by which callers know what is served, as of the last check.
        self._signer: Certificate | None = None

    def reflectors(self) -> list[Reflector[Any]]:
        """The watches by which changes of the configurations are seen at once."""
        return watches(self._client, [(kind, self._configuration, None) for kind in CONFIGURATIONS], self._changed)

    async def run(self) -> None:
        """Watch the files, and from time to time the configurations, for ever."""
        loop = asyncio.get_running_loop()
        check_at = loop.time()
        while True:
            try:
                await self.take()
                if self._changed.is_set() or loop.time() >= check_at:
                    self._changed.clear()
                    check_at = loop.time() + _CHECK_SECONDS
                    await self._check(loop.time())
            except ApiError as error:
                logger.warning(
                    "cannot read the mounted certificates: %s", error, extra={"event": "certificate.unreadable"}
                )
            await asyncio.sleep(_READ_SECONDS)

    async def take(self) -> None:
        """Serve the files as they are now; unusable files change nothing, and are reported."""
        try:
            pair, authorities = await asyncio.to_thread(self._read)
            if pair != self._serving.pair:
                self._serving.swap(pair, None)
                if not pair.serves(self._names):
                    note = f"tls.crt is not good for {self._names[0]}: add it to its DNS names"
                    await self._notices.warn("CertificateInvalid", note)
        except OSError as error:
            # In a pod the folder is there before the process: it is the Secret that lacks the key.
            await self._notices.warn("CertificateInvalid", f"cannot read {error.filename}: {error.strerror}")
        except InvalidCertificateError as error:
            await self._notices.warn("CertificateInvalid", f"what is mounted cannot be served: {error}")
        else:
            self._authorities = authorities
            self._account(pair)
            self.loaded.set()
        self._valid = self._serving.valid(self._client.now())

    def _account(self, pair: KeyPair) -> None:
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
        """Compare with what the apiserver trusts, and with the calendar."""
        pair = self._serving.pair
        if pair is None:
            return
        configurations, today = await self._bundles.read(), self._client.now()
        present = in_all(configurations)
        signers = [one for one in present or () if pair.signed_by([one]) is not None]
        # An authority that was renewed with its key is there twice, and one valid certificate of it is enough.
        valid = [one for one in signers if valid_at(one, today)]
        self._signer = max(valid or signers, key=lambda one: one.not_valid_after_utc, default=None)
        self._account(pair)
        self.trusted = present is None or bool(valid)
        if self.trusted:
            self._doubtful_since = None
            if not self.ending and not await self._entrance.open(configurations):
                self._changed.set()
        elif self._doubtful_since is None:
            self._doubtful_since = now
        elif now - self._doubtful_since > _PATIENCE_SECONDS:
            await self._notices.warn("CertificateNotTrusted", self._doubt())
        ends = {"serving certificate": pair.leaf}
        if self._signer is not None and self._signer != pair.leaf:
            ends["authority in the caBundle"] = self._signer
        for name, one in ends.items():
            if ends_soon(one, today):
                end = f"{one.not_valid_after_utc:%Y-%m-%d %H:%M}"
                await self._notices.warn("CertificateExpiring", f"the {name} ends {end} UTC and was not renewed")

    def _doubt(self) -> str:
        """Why the apiserver does not trust what is served."""
        if self._signer is None:
            return (
                "no certificate in the caBundle of the webhook configurations has signed tls.crt: no call will succeed"
            )
        one = self._signer
        span = f"from {one.not_valid_before_utc:%Y-%m-%d %H:%M} to {one.not_valid_after_utc:%Y-%m-%d %H:%M} UTC"
        return f"the authority in the caBundle that has signed tls.crt is valid {span} only: no call succeeds"
