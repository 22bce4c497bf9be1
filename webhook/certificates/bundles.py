"""The caBundles by which the apiserver trusts the webhook, activation of the webhooks, and events about both.

A first installation creates the webhook configurations before any replica serves. The chart gives each webhook that
fails closed a match condition that is always false, so that it is not called and no call fails. The condition is
removed here once the apiserver has reached a replica through the Service, with a dry run of an event.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import logging
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509 import Certificate

from muster.kube.client import Client
from muster.kube.errors import ApiError
from muster.kube.events import EventSource, Regarding
from muster.model.objects import LocalObject, Object, decode
from muster.model.resource import EVENTS, MUTATING_WEBHOOKS, SECRETS, VALIDATING_WEBHOOKS, Resource
from muster.process.certificates import authorities_in

logger = logging.getLogger(__name__)

CONFIGURATIONS = (MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS)

CLOSED = "muster-has-been-reached"
"""The match condition by which the chart keeps a webhook inactive until it has been reached."""

REPORTING_CONTROLLER = "muster.dev/webhook"
_HOUR = 3600

# Several apiservers and nodes learn of Service and configurations at different moments.
_PROBES, _PAUSE_SECONDS = 3, 0.3

# HTTP: the test of a JSON patch failed, or a ValidatingAdmissionPolicy without a `reason` has refused.
_INVALID = 422


class ChangedMeanwhileError(ApiError):
    """The configuration has changed since it was read: another replica, or a person, was faster."""


class _ClientConfig(LocalObject, frozen=True):
    ca_bundle: str = ""


class _Condition(LocalObject, frozen=True):
    name: str = ""


class _Webhook(LocalObject, frozen=True):
    name: str = ""
    match_conditions: tuple[_Condition, ...] = ()
    client_config: _ClientConfig = _ClientConfig()


class _Configuration(Object, frozen=True):
    webhooks: tuple[_Webhook, ...] = ()


@dataclass(frozen=True, slots=True)
class Configuration:
    """A webhook configuration as it was read.

    :ivar bundles: the caBundle of each of its webhooks, as base64
    :ivar closed: JSON pointers, last ones first, of the conditions that keep webhooks inactive
    """

    resource: Resource
    resource_version: str
    bundles: tuple[str, ...]
    closed: tuple[str, ...] = ()


class Bundles:
    """Reads and patches the two configurations of one name."""

    def __init__(self, client: Client, name: str) -> None:
        self._client = client
        self._name = name

    async def read(self) -> list[Configuration]:
        """The configurations that exist: an administrator may have deleted one. Raises ApiError."""
        found = []
        for resource in CONFIGURATIONS:
            try:
                read = decode(await self._client.get(resource, self._name), _Configuration)
            except ApiError as error:
                if not error.not_found:
                    raise
                continue
            bundles = tuple(webhook.client_config.ca_bundle for webhook in read.webhooks)
            found.append(Configuration(resource, read.metadata.resource_version, bundles, _closed(read)))
        return found

    async def activate(self, configuration: Configuration) -> None:
        """Activate all of its webhooks. Raises ApiError, ChangedMeanwhileError if it has changed."""
        await self._patch(configuration, [{"op": "remove", "path": path} for path in configuration.closed])

    async def write(self, configuration: Configuration, authorities: Sequence[Certificate]) -> bool:
        """Make these the caBundle of all its webhooks; False if they are already. Raises as `activate`."""
        bundle = base64.b64encode(b"".join(one.public_bytes(Encoding.PEM) for one in authorities)).decode()
        operations: list[dict[str, Any]] = [
            {"op": "add", "path": f"/webhooks/{index}/clientConfig/caBundle", "value": bundle}
            for index, present in enumerate(configuration.bundles)
            if present != bundle
        ]
        if not operations:
            return False
        await self._patch(configuration, operations)
        return True

    async def _patch(self, configuration: Configuration, operations: list[dict[str, Any]]) -> None:
        # Another replica may have a newer view than this one.
        same = {"op": "test", "path": "/metadata/resourceVersion", "value": configuration.resource_version}
        try:
            await self._client.json_patch(configuration.resource, self._name, [same, *operations])
        except ApiError as error:
            # By the status alone a failed test looks like the refusal of a policy.
            if error.status == _INVALID and await self._changed(configuration):
                raise ChangedMeanwhileError(error.status, error.reason, error.message) from error
            raise

    async def _changed(self, configuration: Configuration) -> bool:
        """True if it has changed since it was read, or is gone."""
        try:
            raw = await self._client.get(configuration.resource, self._name)
        except ApiError as error:
            if error.not_found:
                return True
            raise
        return decode(raw, _Configuration).metadata.resource_version != configuration.resource_version


def _closed(read: _Configuration) -> tuple[str, ...]:
    return tuple(
        f"/webhooks/{number}/matchConditions/{index}"
        for number, webhook in enumerate(read.webhooks)
        for index, condition in reversed(list(enumerate(webhook.match_conditions)))
        if condition.name == CLOSED
    )


def in_all(configurations: Collection[Configuration]) -> frozenset[Certificate] | None:
    """The authorities that every webhook trusts; None if there are no webhooks."""
    sets = _sets(configurations)
    return frozenset.intersection(*sets) if sets else None


def in_any(configurations: Collection[Configuration]) -> frozenset[Certificate]:
    """The authorities that some webhook trusts."""
    return frozenset().union(*_sets(configurations))


def _sets(configurations: Collection[Configuration]) -> list[frozenset[Certificate]]:
    return [_authorities(bundle) for configuration in configurations for bundle in configuration.bundles]


@lru_cache(maxsize=16)
def _authorities(bundle: str) -> frozenset[Certificate]:
    try:
        return authorities_in(base64.b64decode(bundle))
    except binascii.Error:
        return frozenset()


async def ensure_active(bundles: Bundles, events: CertificateEvents, configurations: Sequence[Configuration]) -> bool:
    """Activate all webhooks of the configurations once the apiserver reaches one; True if none is inactive."""
    if not any(configuration.closed for configuration in configurations):
        return True
    try:
        for probe in range(_PROBES):
            await asyncio.sleep(_PAUSE_SECONDS if probe else 0)
            await events.probe()
        closed = [configuration for configuration in await bundles.read() if configuration.closed]
    except ApiError as error:
        logger.info("the apiserver does not reach the webhook yet: %s", error, extra={"event": "webhook.unreached"})
        return False
    return all([await _activate(bundles, events, configuration) for configuration in closed])


async def _activate(bundles: Bundles, events: CertificateEvents, configuration: Configuration) -> bool:
    name = configuration.resource.full_name
    try:
        await bundles.activate(configuration)
    except ChangedMeanwhileError:
        # Another replica may have done it; the next check reads it again.
        return False
    except ApiError as error:
        logger.warning("cannot activate the webhooks of %s: %s", name, error, extra={"event": "webhook.not_activated"})
        if error.refused:
            note = f"the apiserver reaches the webhook, but the webhooks of {name} cannot be activated: {error}"
            await events.report("WebhookNotActivated", note)
        return False
    logger.info("the apiserver calls the webhooks of %s from now on", name, extra={"event": "webhook.activated"})
    return True


class CertificateEvents:
    """Events about the certificates, on their Secret; the same one at most once an hour from all replicas together.

    :ivar namespace: the Secret's namespace
    :ivar secret: the Secret's name
    :ivar secret_uid: UID of the Secret, once it has been read
    """

    def __init__(self, client: Client, namespace: str, secret: str, instance: str) -> None:
        self._client = client
        self._source = EventSource(REPORTING_CONTROLLER, instance, "ManageCertificates")
        self.namespace = namespace
        self.secret = secret
        self._reported: set[str] = set()
        self._hour = 0
        self.secret_uid = ""

    async def probe(self) -> None:
        """Send an event that the apiserver reviews and never stores. Raises ApiError if it reaches no replica."""
        event = self._event("Reached", "is never kept", warning=False, suffix="reached")
        await self._client.create(EVENTS, event, self.namespace, dry_run=True, deadline=2.0)

    async def report(self, reason: str, note: str, *, warning: bool = True) -> None:
        """Report a problem, or a change that was made, in words that are the same in every replica."""
        hour = int(self._client.now().timestamp() // _HOUR)
        # Every replica gives the event the same name, so that the apiserver refuses a second one.
        suffix = f"{hashlib.sha256(f'{reason}: {note}'.encode()).hexdigest()[:10]}{hour:x}"
        if hour != self._hour:
            self._reported.clear()
            self._hour = hour
        if suffix in self._reported:
            return
        self._reported.add(suffix)
        level = logging.WARNING if warning else logging.INFO
        logger.log(level, "%s: %s", reason, note, extra={"event": "certificate.notice"})
        event = self._event(reason, note, warning=warning, suffix=suffix)
        try:
            # A short deadline: an event must not delay a renewal.
            await self._client.create(EVENTS, event, self.namespace, deadline=2.0)
        except ApiError as error:
            if not error.already_exists:
                logger.warning(
                    "cannot write an event about secret %s: %s",
                    self.secret,
                    error,
                    extra={"event": "certificate.event"},
                )

    def _event(self, reason: str, note: str, *, warning: bool, suffix: str) -> dict[str, Any]:
        about = Regarding(SECRETS.api_version, SECRETS.kind, self.namespace, self.secret, self.secret_uid)
        seconds = self._client.now().timestamp()
        return self._source.event(about, reason, note, warning=warning, seconds=seconds, suffix=suffix)
