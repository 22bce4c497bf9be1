"""Reads the cluster, each request with a deadline; a failed read becomes an `Unseen` and never ends the command."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from muster.cli.connecting import PATIENCE
from muster.cli.doctor.diagnosis import Unseen
from muster.cli.doctor.installed import KUEUE, LABELS, VOLCANO, Installation, Right, installations, needed
from muster.cli.doctor.objects import Binding, Deployment, Lease, QueueSeen, WebhookConfiguration, selects
from muster.cli.doctor.operators import is_kueue
from muster.cli.doctor.schedulers import program_of
from muster.cli.doctor.sight import Account, GangMember, Group, ProbeAnswer, Sight
from muster.cli.doctor.webhooks import JOB, POD, answer_of
from muster.kube.burst import burst
from muster.kube.client import Client
from muster.kube.errors import ApiError, Unreachable
from muster.kube.listing import list_all
from muster.model.names import GANG, GATE, GROUP_NAME, MANAGED, MESSAGE, NAMESPACE_NAME, STATE
from muster.model.objects import ConfigMap, InvalidObjectError, LocalObject, Namespace, PartialObjectMetadata, decode
from muster.model.pods import Pod
from muster.model.resource import (
    ACCESS_REVIEWS,
    ADMISSION_POLICIES,
    ADMISSION_POLICY_BINDINGS,
    CONFIG_MAPS,
    DEPLOYMENTS,
    ELASTIC_QUOTAS,
    JOBS,
    LEASES,
    MUTATING_WEBHOOKS,
    NAMESPACES,
    PODS,
    SECRETS,
    VALIDATING_WEBHOOKS,
    Resource,
)
from muster.model.times import seconds_of
from muster.queueing.sources import QUEUE_SOURCES
from muster.resources.elastic_quotas import ElasticQuota
from muster.schedulers import PRODUCTS, GangScheduler, gang_name, named
from muster.workloads import WATCHED_KINDS

T = TypeVar("T")
_RBAC = "cannot create resource"
# Seconds within which a reachable apiserver returns its version.
_FIRST = 5.0


async def seen(ask: Awaitable[T], verb: str, thing: str, missing: T | None) -> T | Unseen | None:
    """The answer; `missing` when the object or the kind does not exist."""
    try:
        return await ask
    except ApiError as error:
        if error.not_found:
            return missing
        if error.forbidden:
            return Unseen(f"you cannot {verb} {thing}")
        return Unseen(f"{thing}: {error}", "try again, or see the log of the apiserver")
    except InvalidObjectError as error:
        return Unseen(f"{thing} cannot be decoded: {error}", "correct the object")


async def listed(
    client: Client, resource: Resource, type_: type[T], *, label_selector: str = ""
) -> tuple[T, ...] | Unseen:
    """All objects of a kind; none where the kind does not exist."""
    return await read_all(client, resource, lambda raw: decode(raw, type_), label_selector=label_selector)


async def read_all(
    client: Client,
    resource: Resource,
    read: Callable[[bytes], T],
    *,
    label_selector: str = "",
    field_selector: str = "",
) -> tuple[T, ...] | Unseen:
    """All objects of a kind, each decoded by `read`."""

    def lenient(raw: bytes) -> T | None:
        # Malformed objects are skipped, as in the webhook and the controller.
        with suppress(InvalidObjectError):
            return read(raw)
        return None

    async def ask() -> tuple[T, ...]:
        listing = await list_all(
            client, resource, lenient, label_selector=label_selector, field_selector=field_selector, deadline=PATIENCE
        )
        return tuple(listing.items)

    return await seen(ask(), "list", resource.full_name, ()) or ()


async def data_of(client: Client, resource: Resource, name: str, namespace: str) -> dict[str, str] | Unseen | None:
    """The `data` of a Secret or a ConfigMap, None when it does not exist."""

    async def ask() -> dict[str, str]:
        return decode(await client.get(resource, name, namespace, deadline=PATIENCE), ConfigMap).data

    return await seen(ask(), "get", f"{resource.full_name} {name} in namespace {namespace}", None)


class _Named(LocalObject, frozen=True):
    """An entry of a discovery document: a group with its versions, or a resource."""

    name: str = ""
    group_version: str = ""
    versions: tuple[_Named, ...] = ()


class _Discovered(LocalObject, frozen=True):
    groups: tuple[_Named, ...] = ()
    resources: tuple[_Named, ...] = ()


class _Verdict(LocalObject, frozen=True):
    allowed: bool = False


class _Review(LocalObject, frozen=True):
    status: _Verdict = _Verdict()


async def accounts_of(
    client: Client, installed: Installation | None, deployments: tuple[Deployment, ...] | Unseen
) -> tuple[Account, ...] | Unseen:
    """The ServiceAccounts and the permissions that they lack, according to the authorizers of the apiserver."""
    asked: list[tuple[Account, list[Right]]] = []
    if installed is not None:
        asked += [
            (Account(installed.namespace, installed.account(component), ours=True), needed(component, installed))
            for component in ("webhook", "controller")
        ]
    asked += [
        (Account(deployment.metadata.namespace, deployment.account, ours=False), list(VOLCANO[program]))
        for deployment in (() if isinstance(deployments, Unseen) else deployments)
        for program in map(program_of, deployment.containers)
        if program in VOLCANO
    ]

    async def lacks(question: tuple[Account, Right]) -> bool:
        body = await client.create(ACCESS_REVIEWS, _review(*question), deadline=PATIENCE)
        return not decode(body, _Review).status.allowed

    questions = [(account, right) for account, rights in asked for right in rights]

    async def ask() -> tuple[Account, ...]:
        answers = list(zip(questions, await burst(lacks, questions), strict=True))
        return tuple(
            replace(account, lacks=tuple(right for (other, right), lack in answers if lack and other is account))
            for account, _ in asked
        )

    return await seen(ask(), "create", ACCESS_REVIEWS.full_name, ()) or ()


def _review(account: Account, right: Right) -> dict[str, Any]:
    groups = ["system:serviceaccounts", f"system:serviceaccounts:{account.namespace}", "system:authenticated"]
    user = f"system:serviceaccount:{account.namespace}:{account.name}"
    return {
        "apiVersion": ACCESS_REVIEWS.api_version,
        "kind": ACCESS_REVIEWS.kind,
        "spec": {"user": user, "groups": groups, "resourceAttributes": right.attributes},
    }


async def served_kinds(client: Client) -> dict[str, frozenset[str]] | Unseen:
    """The resources of each served `group/version`, for the groups that muster uses."""
    wanted = {kind.group for kind in WATCHED_KINDS}
    wanted |= {scheduler.group for scheduler in PRODUCTS.values()} | {one.group for one in QUEUE_SOURCES.values()}
    wanted |= {KUEUE}

    async def ask() -> dict[str, frozenset[str]]:
        groups = decode(await client.get_path("/apis", deadline=PATIENCE), _Discovered).groups
        versions = [one.group_version for group in groups if group.name in wanted for one in group.versions]
        return dict(await burst(resources, versions))

    async def resources(version: str) -> tuple[str, frozenset[str]]:
        try:
            found = decode(await client.get_path(f"/apis/{version}", deadline=PATIENCE), _Discovered)
        except ApiError as error:
            if error.not_found:
                return version, frozenset()  # removed in the meantime
            raise
        return version, frozenset(one.name for one in found.resources)

    return await seen(ask(), "get", "/apis", {}) or {}


async def try_out(
    client: Client, resource: Resource, manifest: dict[str, Any], namespace: str, left_out: Collection[str]
) -> ProbeAnswer | Unseen:
    """Create it as a dry run; a refusal by the apiserver is an answer, too."""
    elsewhere = "choose another namespace with -n"
    if namespace in left_out:
        return Unseen(f"muster is not active in namespace {namespace}", elsewhere)

    async def managed() -> str:
        body = await client.get(NAMESPACES, namespace, deadline=PATIENCE)
        return decode(body, Namespace).metadata.labels.get(MANAGED, "")

    # A user without permission to read namespaces may still create pods in them.
    if await seen(managed(), "get", f"namespaces {namespace}", "") == "false":
        return Unseen(f'namespace {namespace} opts out of muster (label {MANAGED}: "false")', elsewhere)
    try:
        return answer_of(await client.create(resource, manifest, namespace, dry_run=True, deadline=PATIENCE))
    except Unreachable as error:
        return Unseen(f"dry run of {resource.full_name}: {error}", "try again")
    except InvalidObjectError as error:
        return Unseen(f"the result of the dry run of {resource.full_name} cannot be decoded: {error}", elsewhere)
    except ApiError as error:
        if error.forbidden and _RBAC in error.message:
            return Unseen(f"you cannot create {resource.full_name} in namespace {namespace} (as a dry run)", elsewhere)
        return ProbeAnswer(refusal=error.message or str(error))


class _Version(LocalObject, frozen=True):
    git_version: str = "of unknown version"


async def look(client: Client, namespace: str) -> Sight:
    """Read everything; the dry runs go to `namespace`. Raises ApiError when the cluster does not return its version."""
    version = await server_version(client)
    deployments, mutating, judging = await asyncio.gather(
        listed(client, DEPLOYMENTS, Deployment),
        listed(client, MUTATING_WEBHOOKS, WebhookConfiguration, label_selector=LABELS),
        listed(client, VALIDATING_WEBHOOKS, WebhookConfiguration, label_selector=LABELS),
    )
    found = installations(deployments, mutating, judging)
    installed = found[0] if found else None
    # Without muster there is no webhook to test.
    left_out = {namespace}
    if installed is not None:
        labels = await _labels(client, namespace)
        left_out = set() if _selected(installed, mutating, labels) else {namespace}
    source = installed.queue_source if installed is not None else QUEUE_SOURCES["volcano"]
    schedulers = installed.gang_schedulers if installed is not None else named("volcano")
    reads: dict[str, Awaitable[Any]] = {
        "secret": _secret(client, installed),
        "lease": _lease(client, installed),
        "policies": listed(client, ADMISSION_POLICIES, PartialObjectMetadata, label_selector=LABELS),
        "bindings": listed(client, ADMISSION_POLICY_BINDINGS, Binding, label_selector=LABELS),
        "accounts": accounts_of(client, installed, deployments),
        "served": served_kinds(client),
        "queues": listed(client, source.resource, QueueSeen),
        "members": _members(client, schedulers),
        "groups": _groups(client, schedulers),
        "pod_answer": try_out(client, PODS, POD, namespace, left_out),
        "job_answer": try_out(client, JOBS, JOB, namespace, left_out),
        "namespaces": listed(client, NAMESPACES, Namespace),
        "elastic_quotas": _elastic_quotas(client, schedulers),
        "kueue": _kueue(client, deployments),
    }
    answers = dict(zip(reads, await asyncio.gather(*reads.values()), strict=True))
    now = client.now().timestamp()
    return Sight(now, version, namespace, found, deployments, mutating, judging, **answers)


async def server_version(client: Client) -> str:
    """The version of Kubernetes. Raises ApiError when the cluster does not return it."""
    return decode(await client.get_path("/version", deadline=_FIRST), _Version).git_version


async def _labels(client: Client, namespace: str) -> dict[str, str]:
    """The labels of the namespace; its name alone where it cannot be read."""
    name = {NAMESPACE_NAME: namespace}
    try:
        found = decode(await client.get(NAMESPACES, namespace, deadline=PATIENCE), Namespace)
    except ApiError:
        return name
    return {**found.metadata.labels, **name}


def _selected(
    installed: Installation, mutating: tuple[WebhookConfiguration, ...] | Unseen, labels: dict[str, str]
) -> bool:
    """True if the webhooks for pods see a namespace with these labels."""
    if labels[NAMESPACE_NAME] in ("kube-system", installed.namespace):
        return False
    configurations = () if isinstance(mutating, Unseen) else mutating
    return all(selects(one.namespace_selector, labels) for found in configurations for one in found.webhooks)


async def _secret(client: Client, installed: Installation | None) -> dict[str, str] | Unseen | None:
    if installed is None:
        return None
    return await data_of(client, SECRETS, installed.secret, installed.namespace)


async def _lease(client: Client, installed: Installation | None) -> Lease | Unseen | None:
    if installed is None:
        return None

    async def ask() -> Lease:
        return decode(await client.get(LEASES, installed.lease, installed.namespace, deadline=PATIENCE), Lease)

    thing = f"{LEASES.full_name} {installed.lease} in namespace {installed.namespace}"
    return await seen(ask(), "get", thing, None)


async def _members(client: Client, schedulers: Mapping[str, GangScheduler]) -> tuple[GangMember, ...] | Unseen:
    """The pods of the gang schedulers, with few fields each: there may be many."""

    def read(raw: bytes) -> GangMember:
        pod = decode(raw, Pod)
        meta = pod.metadata
        return GangMember(
            namespace=meta.namespace,
            name=meta.name,
            group=meta.annotations.get(GROUP_NAME, ""),
            created=seconds_of(meta.creation_timestamp) or 0.0,
            gated=pod.gated(GATE),
            placed=bool(pod.spec.node_name),
            living=pod.living,
        )

    found: list[GangMember] = []
    for name, scheduler in schedulers.items():
        # Another scheduler may have all pods of the cluster, and few of them are gangs.
        labels = "" if scheduler.keeps_room else GANG
        of_one = await read_all(client, PODS, read, field_selector=f"spec.schedulerName={name}", label_selector=labels)
        if isinstance(of_one, Unseen):
            return of_one
        found += of_one
    return tuple(found)


async def _groups(client: Client, schedulers: Mapping[str, GangScheduler]) -> tuple[Group, ...] | Unseen:
    def read(scheduler: GangScheduler, raw: bytes) -> Group:
        group = decode(raw, scheduler.pod_groups)
        meta = group.metadata
        return Group(
            namespace=meta.namespace,
            name=gang_name(group),
            created=seconds_of(meta.creation_timestamp) or 0.0,
            scheduler=scheduler,
            called=meta.name,
            minimum=group.spec.min_member,
            owned=bool(meta.owner_references),
            ours=meta.by_muster,
            phase=group.status.phase,
            state=meta.annotations.get(STATE, ""),
            message=meta.annotations.get(MESSAGE, ""),
        )

    found: list[Group] = []
    for scheduler in schedulers.values():
        of_one = await read_all(client, scheduler.resource, partial(read, scheduler))
        if isinstance(of_one, Unseen):
            return of_one
        found += of_one
    return tuple(found)


async def _elastic_quotas(client: Client, schedulers: Mapping[str, GangScheduler]) -> tuple[ElasticQuota, ...] | Unseen:
    """The ElasticQuotas, if a scheduler counts them."""
    if not any(one.elastic_quotas for one in schedulers.values()):
        return ()
    return await listed(client, ELASTIC_QUOTAS, ElasticQuota)


async def _kueue(client: Client, deployments: tuple[Deployment, ...] | Unseen) -> dict[str, str] | Unseen:
    """The files of the ConfigMaps that Kueue's controller mounts, by `namespace/name`."""
    if isinstance(deployments, Unseen):
        return deployments
    files: dict[str, str] = {}
    for deployment in filter(is_kueue, deployments):
        namespace = deployment.metadata.namespace
        for name in deployment.config_maps:
            data = await data_of(client, CONFIG_MAPS, name, namespace)
            if isinstance(data, Unseen):
                return data
            files |= {f"ConfigMap {namespace}/{name}, {key}": text for key, text in (data or {}).items()}
    return files
