"""Questions to the apiserver: permissions, the kinds that it serves, and the answer to a dry run."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from muster.cli.doctor.diagnosis import Unseen
from muster.cli.doctor.rights import KUEUE, VOLCANO, Right, needed
from muster.cli.doctor.seeing import seen
from muster.cli.doctor.sight import Account, ProbeAnswer
from muster.cli.doctor.trial import answer_of
from muster.cli.doctor.volcano import program_of
from muster.cli.reading import PATIENCE
from muster.kube.burst import burst
from muster.kube.client import Client
from muster.kube.errors import ApiError, Unreachable
from muster.kube.resource import ACCESS_REVIEWS, NAMESPACES, Resource
from muster.model.names import MANAGED
from muster.model.objects import InvalidObjectError, LocalObject, Namespace, decode
from muster.queueing.sources import QUEUE_SOURCES
from muster.schedulers import PRODUCTS
from muster.workloads import WATCHED_KINDS

if TYPE_CHECKING:
    from muster.cli.doctor.installed import Installation
    from muster.cli.doctor.objects import Deployment


_RBAC = "cannot create resource"


class _GroupVersion(LocalObject, frozen=True):
    group_version: str = ""


class _ApiGroup(LocalObject, frozen=True):
    name: str = ""
    versions: tuple[_GroupVersion, ...] = ()


class _ApiGroups(LocalObject, frozen=True):
    groups: tuple[_ApiGroup, ...] = ()


class _ApiResource(LocalObject, frozen=True):
    name: str = ""


class _ApiResources(LocalObject, frozen=True):
    resources: tuple[_ApiResource, ...] = ()


class _Verdict(LocalObject, frozen=True):
    allowed: bool = False


class _Review(LocalObject, frozen=True):
    status: _Verdict = _Verdict()


async def accounts_of(
    client: Client, installed: Installation | None, deployments: tuple[Deployment, ...] | Unseen
) -> tuple[Account, ...] | Unseen:
    """Which permissions the ServiceAccounts lack, according to the authorizers of the apiserver."""
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
        missing = await burst(lacks, questions)
        return tuple(
            Account(
                account.namespace,
                account.name,
                account.ours,
                tuple(
                    right for (other, right), lack in zip(questions, missing, strict=True) if lack and other is account
                ),
            )
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
        groups = decode(await client.get_path("/apis", deadline=PATIENCE), _ApiGroups).groups
        versions = [one.group_version for group in groups if group.name in wanted for one in group.versions]
        return dict(await burst(resources, versions))

    async def resources(version: str) -> tuple[str, frozenset[str]]:
        try:
            found = decode(await client.get_path(f"/apis/{version}", deadline=PATIENCE), _ApiResources)
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
