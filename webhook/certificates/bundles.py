"""The caBundles of muster's own two webhook configurations, by which the apiserver trusts the webhook."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509 import Certificate

from muster.kube.client import Client
from muster.kube.errors import ApiError
from muster.kube.resource import MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS, Resource
from muster.model.objects import LocalObject, ObjectMeta, decode
from muster.process.certificates import authorities_in

CONFIGURATIONS = (MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS)

CLOSED = "muster-has-been-reached"
"""The condition by which the chart keeps a webhook from being called before it has been reached."""

# HTTP: a JSON patch's test did not hold; and what a ValidatingAdmissionPolicy answers that names no `reason`.
_INVALID = 422


class ChangedMeanwhileError(ApiError):
    """The configuration is not the one that was read any more: another replica, or a person, was quicker."""


class _ClientConfig(LocalObject, frozen=True):
    ca_bundle: str = ""


class _Condition(LocalObject, frozen=True):
    name: str = ""


class _Webhook(LocalObject, frozen=True):
    name: str = ""
    match_conditions: tuple[_Condition, ...] = ()
    client_config: _ClientConfig = _ClientConfig()


class _Configuration(LocalObject, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    webhooks: tuple[_Webhook, ...] = ()


@dataclass(frozen=True, slots=True)
class Configuration:
    """One of the two as it was read: the caBundle of each of its webhooks, as base64.

    `closed` are the JSON pointers, last ones first, of the conditions that keep webhooks from being called.
    """

    resource: Resource
    resource_version: str
    bundles: tuple[str, ...]
    closed: tuple[str, ...] = ()


class Bundles:
    """Reads and writes the caBundles of the configurations of that name."""

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

    async def open(self, configuration: Configuration) -> None:
        """Let all of its webhooks be called. Raises ApiError, ChangedMeanwhileError when it has changed."""
        await self._patch(configuration, [{"op": "remove", "path": path} for path in configuration.closed])

    async def write(self, configuration: Configuration, authorities: Sequence[Certificate]) -> bool:
        """Make these the caBundle of all its webhooks; False when it had it. Raises ApiError as `open` does."""
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
        # Another replica may have seen more than this one.
        same = {"op": "test", "path": "/metadata/resourceVersion", "value": configuration.resource_version}
        try:
            await self._client.json_patch(configuration.resource, self._name, [same, *operations])
        except ApiError as error:
            # The status alone does not tell a test that did not hold from a policy that refuses.
            if error.status == _INVALID and await self._changed(configuration):
                raise ChangedMeanwhileError(error.status, error.reason, error.message) from error
            raise

    async def _changed(self, configuration: Configuration) -> bool:
        """Whether it is not as it was read any more, or gone."""
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
    """The authorities that every webhook trusts; None where there are no webhooks."""
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
