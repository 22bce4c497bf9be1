"""The certificate that this replica serves, and how it is changed under live connections."""

from __future__ import annotations

import asyncio
import datetime as dt
import logging
import ssl
from collections.abc import Mapping

from cryptography.x509 import Certificate

from muster.process.certificates import KeyPair, server_context, valid_at

logger = logging.getLogger(__name__)


class Serving:
    """The certificate that is served: `pair`, signed by `issuer` where that is known; none at first."""

    def __init__(self) -> None:
        self.pair: KeyPair | None = None
        self.issuer: Certificate | None = None
        self._context: ssl.SSLContext | None = None

    def swap(self, pair: KeyPair, issuer: Certificate | None) -> None:
        """Serve this from now on; open connections keep theirs. Raises InvalidCertificateError and changes nothing.

        Loading a new certificate into a live context breaks it when the load fails; a fresh one is made and swapped.
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
        """Whether there is a certificate, valid at `now`."""
        return self.pair is not None and valid_at(self.pair.leaf, now)

    @property
    def context(self) -> ssl.SSLContext:
        """The context for the next connection. Raises RuntimeError before there is one."""
        if self._context is None:
            raise RuntimeError("no certificate yet: wait for `loaded`")
        return self._context


class CertificateSource:
    """Keeps the served certificate in step with its source, for the server and the metrics.

    `trusted` is whether the apiserver has been told to trust it; `loaded` is set once there is something to serve.
    """

    def __init__(self) -> None:
        self._serving = Serving()
        self._valid = False
        self._expirations: Mapping[str, float] = {}
        self._changed = asyncio.Event()
        self.trusted = False
        # One that ends opens no configurations: who comes after it may not serve yet.
        self.ending = False
        self.loaded = asyncio.Event()

    @property
    def ready(self) -> bool:
        """Whether a certificate is served that is valid; with one of muster's own, that the apiserver trusts, too."""
        return self.loaded.is_set() and self._valid

    @property
    def expirations(self) -> Mapping[str, float]:
        """When `serving`, and `authority` where there is one, end, in seconds since 1970; nothing before."""
        return self._expirations

    @property
    def context(self) -> ssl.SSLContext:
        """The context for the next connection, once `loaded`."""
        return self._serving.context


def ends_soon(certificate: Certificate, now: dt.datetime) -> bool:
    """Whether a quarter of its life is left, at most 30 days: whoever renews it should have done so at a third."""
    start, end = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    return (end - now).total_seconds() < min((end - start).total_seconds() / 4, 30 * 86400)
