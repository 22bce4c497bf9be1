"""Keeps three things in step: the Secret, what this replica serves, and what the apiserver trusts.

The Secret is read again every so often and filled or renewed when it must be; the certificate in it is served; its
authority is written into the webhook configurations, also when somebody has overwritten it there.
"""

from __future__ import annotations

import asyncio
import base64
import datetime as dt
import logging
from typing import TYPE_CHECKING

import msgspec

from muster.kube.errors import ApiError
from muster.kube.resource import MUTATING_WEBHOOKS, SECRETS, VALIDATING_WEBHOOKS, Resource
from muster.objects import LocalObject, ObjectMeta, decode
from webhook.certificates import Certificates, issue, server_context

if TYPE_CHECKING:
    import ssl
    from collections.abc import Sequence

    from muster.kube.client import Client

__all__ = ["Trust"]

logger = logging.getLogger(__name__)

_CHECK_SECONDS = 10.0
_RETRY_SECONDS = 1.0


class _Secret(LocalObject, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    data: dict[str, str] = {}  # noqa: RUF012 - msgspec copies the default


class _ClientConfig(LocalObject, frozen=True):
    ca_bundle: str = ""


class _Webhook(LocalObject, frozen=True):
    name: str = ""
    client_config: _ClientConfig = _ClientConfig()


class _Configuration(LocalObject, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    webhooks: tuple[_Webhook, ...] = ()


class Trust:
    """The certificate of this replica and the apiserver's trust in it."""

    def __init__(
        self,
        client: Client,
        *,
        namespace: str,
        secret: str,
        service: str,
        configuration: str,
    ) -> None:
        self._client = client
        self._namespace = namespace
        self._secret = secret
        self._names = [f"{service}.{namespace}.svc", f"{service}.{namespace}", service]
        self._configuration = configuration
        self._served: Certificates | None = None
        self._context: ssl.SSLContext | None = None
        self._trusted = False
        self.loaded = asyncio.Event()

    @property
    def ready(self) -> bool:
        """Whether a certificate is served that the apiserver trusts."""
        return self._context is not None and self._trusted

    @property
    def context(self) -> ssl.SSLContext:
        """The context to serve with; a later certificate is taken up by new connections of the same context.

        Loading a new certificate into a live context breaks it when the load fails; a fresh one is made and swapped.
        """
        if self._context is None:
            raise RuntimeError("no certificate yet: wait for `loaded`")

        def newest(connection: ssl.SSLObject, *_: object) -> None:
            if self._context is not None:
                connection.context = self._context

        outer = self._context
        outer.sni_callback = newest
        return outer

    async def run(self) -> None:
        """Keep everything in step for ever."""
        while True:
            try:
                await self._serve(await self._ensure_secret())
                self._trusted = await self._ensure_trust()
            except ApiError as error:
                logger.warning("certificates: %s", error)
            await asyncio.sleep(_CHECK_SECONDS if self.ready else _RETRY_SECONDS)

    async def _ensure_secret(self) -> Certificates:
        """The certificates of the Secret, made and written first where there are none that serve."""
        while True:
            data = await self._client.get(SECRETS, self._secret, self._namespace)
            found = Certificates.from_secret(decode(data, _Secret).data)
            if found is not None and found.usable(self._names, _now()):
                return found
            logger.info("secret %s holds no certificate that serves; making one", self._secret)
            made = issue(self._names, _now())
            whole = msgspec.json.decode(data)
            whole["data"] = made.secret_data()
            try:
                await self._client.replace(SECRETS, self._secret, whole, self._namespace)
            except ApiError as error:
                if not error.conflict:
                    raise
                # Another replica was quicker; its certificate is as good.
                continue
            return made

    async def _serve(self, certificates: Certificates) -> None:
        if certificates == self._served:
            return
        self._context = server_context(certificates)
        self._served = certificates
        self.loaded.set()
        logger.info("serving a certificate for %s", self._names[0])

    async def _ensure_trust(self) -> bool:
        done = [await self._publish(resource) for resource in (MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS)]
        return all(done)

    async def _publish(self, resource: Resource) -> bool:
        """Write the authority into one webhook configuration; False when that is not there."""
        if self._served is None:
            return False
        try:
            data = await self._client.get(resource, self._configuration)
        except ApiError as error:
            if not error.not_found:
                raise
            # Taken away by an administrator in an emergency, or not installed yet: not ours to make.
            logger.warning("%s %s does not exist", resource.full_name, self._configuration)
            return False
        bundle = base64.b64encode(self._served.ca_certificate).decode()
        operations = _stale(decode(data, _Configuration).webhooks, bundle)
        if operations:
            await self._client.json_patch(resource, self._configuration, operations)
            logger.info("wrote the authority into %s %s", resource.full_name, self._configuration)
        return True


def _stale(webhooks: Sequence[_Webhook], bundle: str) -> list[dict[str, str]]:
    operations = []
    for index, webhook in enumerate(webhooks):
        if webhook.client_config.ca_bundle != bundle:
            operations += [
                {"op": "test", "path": f"/webhooks/{index}/name", "value": webhook.name},
                {"op": "add", "path": f"/webhooks/{index}/clientConfig/caBundle", "value": bundle},
            ]
    return operations


def _now() -> dt.datetime:
    return dt.datetime.now(dt.UTC)
