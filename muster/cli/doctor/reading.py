"""Reads the cluster, each request with a deadline; a failed read becomes an `Unseen` and never ends the command."""

import asyncio
from collections.abc import Awaitable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

from muster.cli.connecting import PATIENCE
from muster.cli.doctor.diagnosis import Unseen
from muster.cli.doctor.installed import (
    AS_INSTALLED,
    KUEUE,
    LABELS,
    AnyObject,
    Deployment,
    Installation,
    WebhookConfiguration,
    installations,
)
from muster.cli.doctor.operators import is_kueue
from muster.cli.doctor.sight import DryRun, GroupSeen, Sight
from muster.cli.doctor.webhooks import POD, answer_of
from muster.cluster.served import choose_versions
from muster.kube.client import Client
from muster.kube.concurrency import burst
from muster.kube.errors import ApiError, Unreachable
from muster.kube.listing import list_all
from muster.model.names import GANG, MANAGED, NAMESPACE_NAME
from muster.model.objects import ConfigMap, InvalidObjectError, Lease, Namespace, Object, decode
from muster.model.pods import Pod
from muster.model.resource import (
    ADMISSION_POLICIES,
    ADMISSION_POLICY_BINDINGS,
    CONFIG_MAPS,
    DEPLOYMENTS,
    ELASTIC_QUOTAS,
    LEASES,
    MUTATING_WEBHOOKS,
    NAMESPACES,
    PODS,
    SECRETS,
    VALIDATING_WEBHOOKS,
    Resource,
)
from muster.queueing.sources import QUEUE_SOURCES
from muster.resources.elastic_quotas import ElasticQuota
from muster.schedulers import PRODUCTS, GangScheduler
from muster.workloads import WATCHED_KINDS

T = TypeVar("T")
_RBAC = "cannot create resource"
# Seconds within which a reachable apiserver returns its version.
_FIRST = 5.0


async def look(client: Client, namespace: str) -> Sight:
    """Read everything; the dry run goes to `namespace`. Raises ApiError when the cluster gives no version."""
    version = await server_version(client)
    deployments, mutating, judging = await asyncio.gather(
        _listed(client, DEPLOYMENTS, Deployment),
        _listed(client, MUTATING_WEBHOOKS, WebhookConfiguration, labels=LABELS),
        _listed(client, VALIDATING_WEBHOOKS, WebhookConfiguration, labels=LABELS),
    )
    found = installations(deployments, mutating, judging)
    installed = found[0] if found else None
    assumed = installed or AS_INSTALLED
    source, schedulers = assumed.queue_source, assumed.gang_schedulers
    left_out = _left_out(installed, mutating, await _labels(client, namespace))
    reads: dict[str, Awaitable[Any]] = {
        "secret": _secret(client, installed),
        "lease": _lease(client, installed),
        "policies": _listed(client, ADMISSION_POLICIES, Object, labels=LABELS),
        "bindings": _listed(client, ADMISSION_POLICY_BINDINGS, AnyObject, labels=LABELS),
        "served": served_kinds(client),
        "queues": _listed(client, source.resource, AnyObject),
        "members": _members(client, schedulers),
        "groups": _groups(client, schedulers),
        "pod_answer": _dry_run(client, namespace, left_out),
        "namespaces": _listed(client, NAMESPACES, Namespace),
        "kueue": _kueue(client, deployments),
    }
    if any(one.elastic_quotas for one in schedulers.values()):
        reads["elastic_quotas"] = _listed(client, ELASTIC_QUOTAS, ElasticQuota)
    answers = dict(zip(reads, await asyncio.gather(*reads.values()), strict=True))
    now = client.now().timestamp()
    return Sight(now, version, namespace, found, deployments, mutating, judging, **answers)


async def server_version(client: Client) -> str:
    """The version of Kubernetes. Raises ApiError when the cluster does not return it."""
    found = decode(await client.get_path("/version", deadline=_FIRST), dict[str, Any])
    return str(found.get("gitVersion", "of unknown version"))


async def _seen(ask: Awaitable[T], verb: str, thing: str, missing: T) -> T | Unseen:
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


async def _listed(
    client: Client, resource: Resource, type_: type[T], *, labels: str = "", fields: str = ""
) -> tuple[T, ...] | Unseen:
    """All objects of a kind; none where the kind does not exist."""

    def lenient(raw: bytes) -> T | None:
        # Malformed objects are skipped, as in the webhook and the controller.
        with suppress(InvalidObjectError):
            return decode(raw, type_)
        return None

    async def ask() -> tuple[T, ...]:
        return tuple(
            await list_all(client, resource, lenient, label_selector=labels, field_selector=fields, deadline=PATIENCE)
        )

    return await _seen(ask(), "list", resource.full_name, ())


async def _one(client: Client, resource: Resource, type_: type[T], name: str, namespace: str) -> T | Unseen | None:
    """An object; None when it does not exist."""

    async def ask() -> T | None:
        return decode(await client.get(resource, name, namespace, deadline=PATIENCE), type_)

    return await _seen(ask(), "get", f"{resource.full_name} {name} in namespace {namespace}", None)


async def served_kinds(client: Client) -> Mapping[str, frozenset[str]] | Unseen:
    """The resources of each served `group/version`, for the groups that muster uses."""
    wanted = {kind.group for kind in WATCHED_KINDS} | {KUEUE}
    wanted |= {scheduler.group for scheduler in PRODUCTS.values()} | {one.group for one in QUEUE_SOURCES.values()}

    async def get(path: str) -> dict[str, Any]:
        return decode(await client.get_path(path, deadline=PATIENCE), dict[str, Any])

    async def ask() -> Mapping[str, frozenset[str]]:
        groups = (await get("/apis"))["groups"]
        versions = [one["groupVersion"] for group in groups if group["name"] in wanted for one in group["versions"]]
        return dict(await burst(resources, versions))

    async def resources(version: str) -> tuple[str, frozenset[str]]:
        try:
            return version, frozenset(one["name"] for one in (await get(f"/apis/{version}"))["resources"])
        except ApiError as error:
            if error.not_found:
                return version, frozenset()  # removed in the meantime
            raise

    return await _seen(ask(), "get", "/apis", {})


async def _labels(client: Client, namespace: str) -> dict[str, str]:
    """The labels of the namespace; its name alone where it cannot be read."""
    found = await _one(client, NAMESPACES, Namespace, namespace, "")
    return {**(found.metadata.labels if isinstance(found, Namespace) else {}), NAMESPACE_NAME: namespace}


def _left_out(
    installed: Installation | None, mutating: tuple[WebhookConfiguration, ...] | Unseen, labels: Mapping[str, str]
) -> str:
    """The reason why the webhooks leave a namespace with these labels alone; "" when they do not."""
    name = labels[NAMESPACE_NAME]
    configurations = () if isinstance(mutating, Unseen) else mutating
    selected = all(one.selects(labels) for found in configurations for one in found.webhooks)
    if installed is None or name in ("kube-system", installed.namespace) or not selected:
        return f"muster is not active in namespace {name}"
    return f'namespace {name} opts out of muster (label {MANAGED}: "false")' if labels.get(MANAGED) == "false" else ""


async def _dry_run(client: Client, namespace: str, left_out: str) -> DryRun | Unseen:
    """Create a pod of a gang as a dry run; a refusal by the apiserver is an answer, too."""
    elsewhere = "choose another namespace with -n"
    if left_out:
        return Unseen(left_out, elsewhere)
    try:
        return answer_of(await client.create(PODS, POD, namespace, dry_run=True, deadline=PATIENCE))
    except Unreachable as error:
        return Unseen(f"dry run of a pod: {error}", "try again")
    except InvalidObjectError as error:
        return Unseen(f"the result of the dry run cannot be decoded: {error}", elsewhere)
    except ApiError as error:
        if error.forbidden and _RBAC in error.message:
            return Unseen(f"you cannot create pods in namespace {namespace} (as a dry run)", elsewhere)
        return DryRun(refusal=error.message or str(error))


async def _secret(client: Client, installed: Installation | None) -> Mapping[str, str] | Unseen | None:
    if installed is None:
        return None
    # A Secret has its `data` as a ConfigMap has.
    found = await _one(client, SECRETS, ConfigMap, installed.secret, installed.namespace)
    return found.data if isinstance(found, ConfigMap) else found


async def _lease(client: Client, installed: Installation | None) -> Lease | Unseen | None:
    return await _one(client, LEASES, Lease, installed.lease, installed.namespace) if installed is not None else None


async def _members(client: Client, schedulers: Mapping[str, GangScheduler]) -> tuple[Pod, ...] | Unseen:
    """The pods of the gang schedulers."""
    found: list[Pod] = []
    for name, scheduler in schedulers.items():
        # Another scheduler may have all pods of the cluster, and few of them are gangs.
        labels = "" if scheduler.keeps_room else GANG
        pods = await _listed(client, PODS, Pod, fields=f"spec.schedulerName={name}", labels=labels)
        if isinstance(pods, Unseen):
            return pods
        found += pods
    return tuple(found)


async def _groups(client: Client, schedulers: Mapping[str, GangScheduler]) -> tuple[GroupSeen, ...] | Unseen:
    found: list[GroupSeen] = []
    chosen = await _seen(choose_versions(client, schedulers.values()), "get", "/apis", None)
    if isinstance(chosen, Unseen):
        return chosen
    for scheduler in schedulers.values():
        groups = await _listed(client, scheduler.resource, scheduler.pod_groups)
        if isinstance(groups, Unseen):
            return groups
        found += map(partial(GroupSeen, scheduler), groups)
    return tuple(found)


async def _kueue(client: Client, deployments: tuple[Deployment, ...] | Unseen) -> Mapping[str, str] | Unseen:
    """The files of the ConfigMaps that Kueue's controller mounts, by `namespace/name`."""
    if isinstance(deployments, Unseen):
        return deployments
    files: dict[str, str] = {}
    for deployment in filter(is_kueue, deployments):
        namespace = deployment.metadata.namespace
        for name in deployment.config_maps:
            found = await _one(client, CONFIG_MAPS, ConfigMap, name, namespace)
            if isinstance(found, Unseen):
                return found
            data = found.data if found is not None else {}
            files |= {f"ConfigMap {namespace}/{name}, {key}": text for key, text in data.items()}
    return files
