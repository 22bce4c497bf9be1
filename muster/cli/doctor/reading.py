"""Reads the cluster, each request with a deadline; a failed read becomes an `Unseen` and never ends the command."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partial

from muster.cli.doctor.asking import accounts_of, served_kinds, try_out
from muster.cli.doctor.diagnosis import Unseen
from muster.cli.doctor.installed import LABELS, Installation, installations
from muster.cli.doctor.objects import Binding, Deployment, Lease, Policy, QueueSeen, WebhookConfiguration
from muster.cli.doctor.operators import is_kueue
from muster.cli.doctor.seeing import data_of, listed, read_all, seen
from muster.cli.doctor.sight import GangMember, Group, Sight
from muster.cli.doctor.trial import JOB, POD
from muster.cli.reading import PATIENCE
from muster.kube.client import Client
from muster.kube.errors import ApiError
from muster.kube.resource import (
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
)
from muster.model.names import GANG, GATE, GROUP_NAME, MESSAGE, NAMESPACE_NAME, STATE
from muster.model.objects import LocalObject, Namespace, Pod, decode
from muster.model.times import seconds_of
from muster.observe.resources import pod_groups_of, queues_of
from muster.queueing.sources import QUEUE_SOURCES
from muster.resources.elastic_quotas import ElasticQuota
from muster.schedulers import GangScheduler, gang_name, named

# Seconds within which a reachable apiserver returns its version.
_FIRST = 5.0


class _Version(LocalObject, frozen=True):
    git_version: str = "of unknown version"


async def look(client: Client, namespace: str) -> Sight:
    """Read everything; the dry runs go to `namespace`. Raises ApiError when the cluster does not return its version."""
    version = await server_version(client)
    async with asyncio.TaskGroup() as first:
        deploying = first.create_task(listed(client, DEPLOYMENTS, Deployment))
        mutating = first.create_task(listed(client, MUTATING_WEBHOOKS, WebhookConfiguration, label_selector=LABELS))
        judging = first.create_task(listed(client, VALIDATING_WEBHOOKS, WebhookConfiguration, label_selector=LABELS))
    deployments = deploying.result()
    found = installations(deployments, mutating.result(), judging.result())
    installed = found[0] if found else None
    # Without muster there is no webhook to test.
    left_out = {namespace}
    if installed is not None:
        labels = await _labels(client, namespace)
        left_out = set() if _selected(installed, mutating.result(), labels) else {namespace}
    source = installed.queue_source if installed is not None else QUEUE_SOURCES["volcano"]
    schedulers = installed.gang_schedulers if installed is not None else named("volcano")
    async with asyncio.TaskGroup() as tasks:
        secret = tasks.create_task(_secret(client, installed))
        lease = tasks.create_task(_lease(client, installed))
        policies = tasks.create_task(listed(client, ADMISSION_POLICIES, Policy, label_selector=LABELS))
        bindings = tasks.create_task(listed(client, ADMISSION_POLICY_BINDINGS, Binding, label_selector=LABELS))
        accounts = tasks.create_task(accounts_of(client, installed, deployments))
        served = tasks.create_task(served_kinds(client))
        queues = tasks.create_task(listed(client, queues_of(source), QueueSeen))
        members = tasks.create_task(_members(client, schedulers))
        groups = tasks.create_task(_groups(client, schedulers))
        pod = tasks.create_task(try_out(client, PODS, POD, namespace, left_out))
        job = tasks.create_task(try_out(client, JOBS, JOB, namespace, left_out))
        namespaces = tasks.create_task(listed(client, NAMESPACES, Namespace))
        quotas = tasks.create_task(_elastic_quotas(client, schedulers))
        kueue = tasks.create_task(_kueue(client, deployments))
    return Sight(
        now=client.now().timestamp(),
        kubernetes=version,
        namespace=namespace,
        installations=found,
        deployments=deployments,
        mutating=mutating.result(),
        validating=judging.result(),
        secret=secret.result(),
        lease=lease.result(),
        policies=policies.result(),
        bindings=bindings.result(),
        accounts=accounts.result(),
        served=served.result(),
        queues=queues.result(),
        members=members.result(),
        groups=groups.result(),
        pod_answer=pod.result(),
        job_answer=job.result(),
        namespaces=namespaces.result(),
        elastic_quotas=quotas.result(),
        kueue=kueue.result(),
    )


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
    """Whether the webhooks for pods see a namespace with these labels."""
    if labels[NAMESPACE_NAME] in ("kube-system", installed.namespace):
        return False
    configurations = () if isinstance(mutating, Unseen) else mutating
    return all(one.namespace_selector.matches(labels) for found in configurations for one in found.webhooks)


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
        # Another scheduler may have all pods of the cluster, of which gangs are few.
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
        of_one = await read_all(client, pod_groups_of(scheduler), partial(read, scheduler))
        if isinstance(of_one, Unseen):
            return of_one
        found += of_one
    return tuple(found)


async def _elastic_quotas(client: Client, schedulers: Mapping[str, GangScheduler]) -> tuple[ElasticQuota, ...] | Unseen:
    """The ElasticQuotas, where a scheduler heeds them."""
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
