"""Reads the context of a plan or an audit (queues, classes, namespaces) from a cluster, page by page."""

import argparse
import asyncio
from collections.abc import Callable, Iterable
from typing import Any
from urllib.parse import quote

import msgspec

from muster.cli.connecting import PATIENCE, NoClusterError, opened
from muster.cli.parsing import InputError
from muster.cli.plan.context import PlanContext
from muster.cli.plan.manifests import Document
from muster.cli.plan.schemas import Schemas
from muster.cli.settings import any_scheduler
from muster.gangs.intent import Defaults
from muster.kube.client import Client
from muster.kube.config import ConfigError
from muster.kube.errors import ApiError
from muster.kube.listing import list_all
from muster.model.resource import (
    ELASTIC_QUOTAS,
    LIMIT_RANGES,
    NAMESPACES,
    PRIORITY_CLASSES,
    RESOURCE_QUOTAS,
    RUNTIME_CLASSES,
    Resource,
)
from muster.workloads import SOURCES


async def learn_all(
    client: Client,
    known: PlanContext,
    unlisted: Callable[[Resource, ApiError], None],
    namespace: str | None = None,
    *,
    elastic_quotas: bool = False,
) -> None:
    """Fill `known` from the cluster; with `namespace`, namespaced kinds from that namespace only.

    With `elastic_quotas` the ElasticQuotas of all namespaces are read, because their sum counts.
    `unlisted` is called for each kind that cannot be listed, and ends the read by an exception. A malformed object gets
    a note.
    """
    sources = [source.resource for source in SOURCES]
    queues = known.queue_source.resource
    elastic = (ELASTIC_QUOTAS,) if elastic_quotas else ()
    others = (PRIORITY_CLASSES, NAMESPACES, LIMIT_RANGES, RESOURCE_QUOTAS, RUNTIME_CLASSES, *elastic, *sources)
    for resource in (queues, *others):

        def read(raw: bytes, resource: Resource = resource) -> None:
            item: dict[str, Any] = msgspec.json.decode(raw)
            manifest = {"apiVersion": resource.api_version, "kind": resource.kind, **item}
            try:
                known.learn(Document(f"{resource.kind} {item['metadata']['name']} of the cluster", manifest))
            except InputError as error:
                known.ignore(error)

        try:
            within = namespace if resource.namespaced and resource != ELASTIC_QUOTAS else None
            await list_all(client, resource, read, namespace=within, deadline=PATIENCE)
            known.elastic_limits.whole = known.elastic_limits.whole or resource == ELASTIC_QUOTAS
        except ApiError as error:
            if not (error.not_found and resource in sources):  # an operator that is not installed
                unlisted(resource, error)


async def learn_fields(client: Client, schemas: Schemas, kinds: Iterable[tuple[str, str]]) -> set[tuple[str, str]]:
    """Read the fields of these kinds, each an `apiVersion` and a `kind`, from the apiserver; gives those it lacks."""
    unserved = set()
    for api_version, kind in sorted(set(kinds)):
        path = f"/openapi/v3/{'apis' if '/' in api_version else 'api'}/{quote(api_version)}"
        try:
            published = msgspec.json.decode(await client.get_path(path))
            if not schemas.learn_published(api_version, kind, published):
                unserved.add((api_version, kind))
        except ApiError as error:
            if error.not_found:
                unserved.add((api_version, kind))
            elif not error.forbidden:
                raise InputError(f"cannot read the fields of {api_version} {kind} in the cluster: {error}") from error
    return unserved


def from_cluster(
    arguments: argparse.Namespace, kinds: Iterable[tuple[str, str]] = (), notes: list[str] | None = None
) -> tuple[Defaults, PlanContext]:
    """As `learn_cluster`. Raises InputError when the cluster cannot be read, too."""
    try:
        return asyncio.run(learn_cluster(arguments, kinds, notes))
    except NoClusterError as error:
        raise InputError(str(error)) from error
    except (ApiError, ConfigError) as error:
        raise InputError(f"cluster: {error}") from error


async def learn_cluster(
    arguments: argparse.Namespace, kinds: Iterable[tuple[str, str]], notes: list[str] | None = None
) -> tuple[Defaults, PlanContext]:
    """The defaults and the context from a cluster, with the fields of these kinds, each an `apiVersion` and a `kind`.

    A malformed object gets a note, and does not count. The notes go to `notes`, which has them after an error as well.
    Raises InputError for a kind that cannot be read, and the errors of `opened`.
    """

    def unlisted(resource: Resource, error: ApiError) -> None:
        raise InputError(f"cannot list {resource.full_name} of the cluster: {error}") from error

    async with opened(arguments, any_scheduler()) as (client, settings):
        defaults, known = settings.defaults, PlanContext(of_cluster=True, notes=[] if notes is None else notes)
        known.queue_source = defaults.queue_source
        if settings.note:
            known.note(settings.note)
        await learn_all(client, known, unlisted, elastic_quotas=defaults.elastic_quotas)
        known.unserved = await learn_fields(client, known.schemas, kinds)
    return defaults, known
