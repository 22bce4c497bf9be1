"""The versions of PodGroups that a cluster serves, for schedulers whose PodGroup has more than one."""

from collections.abc import Iterable

from muster.kube.client import Client
from muster.kube.errors import ApiError
from muster.model.objects import LocalObject, decode
from muster.schedulers import GangScheduler


class _Resource(LocalObject, frozen=True):
    name: str = ""


class _Resources(LocalObject, frozen=True):
    resources: tuple[_Resource, ...] = ()


async def choose_versions(client: Client, schedulers: Iterable[GangScheduler]) -> None:
    """Use the preferred version of each scheduler's PodGroup that the apiserver serves, from now on in this process.

    Where it serves none it is the last version. Most schedulers have one, and nothing is asked for them. Raises
    ApiError.
    """
    for scheduler in schedulers:
        for version in scheduler.versions:
            type(scheduler).version = version
            if await _serves(client, scheduler.api_version):
                break


async def _serves(client: Client, api_version: str) -> bool:
    try:
        raw = await client.get_path(f"/apis/{api_version}")
    except ApiError as error:
        if error.not_found or error.forbidden:
            return False
        raise
    return any(one.name == "podgroups" for one in decode(raw, _Resources).resources)
