"""`muster withdraw`: takes muster out of a cluster, such that nothing that it has held stays behind.

The chart's uninstall runs it before helm removes anything. The order is what makes it safe. First nobody calls the
webhook any more, so that nothing new is held; then the controller has no rights, so that nobody puts back what is
changed here; then gates are opened until none has come for as long as a review may have been under way. It needs no
process of muster's: a broken one is no hindrance.
"""

from __future__ import annotations

import asyncio
import sys
import time
from typing import TYPE_CHECKING

from muster.cli.loosening import loosen
from muster.cli.release import Outcomes, open_gates, say_failures, say_opened
from muster.kube.client import Client
from muster.kube.config import ConfigError
from muster.kube.errors import ApiError
from muster.kube.listing import list_objects
from muster.kube.resource import CLUSTER_ROLE_BINDINGS, MUTATING_WEBHOOKS, PODS, VALIDATING_WEBHOOKS
from muster.model.names import GANG
from muster.model.objects import Pod

if TYPE_CHECKING:
    import argparse

__all__ = ["run"]

_NOT_ALL, _CANNOT = 1, 2
_PAUSE_SECONDS = 1.0


def run(arguments: argparse.Namespace) -> int:
    """The exit code of `muster withdraw`: 1 when something could not be opened, 2 when it could not go on at all."""
    try:
        return asyncio.run(_withdraw(arguments))
    except (ApiError, ConfigError) as error:
        print(f"muster withdraw: {error}", file=sys.stderr)
        return _CANNOT


async def _withdraw(arguments: argparse.Namespace) -> int:
    name = arguments.name
    async with await Client.connect(kubeconfig=arguments.kubeconfig, user_agent="muster-withdraw") as client:
        # What adds gates goes first.
        for resource in (MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS):
            await client.delete(resource, name)
        print(f"webhook configurations {name}: gone; nothing new is held")
        await client.delete(CLUSTER_ROLE_BINDINGS, f"{name}-controller")
        print(f"clusterrolebinding {name}-controller: gone; the controller changes nothing any more")
        pods, outcomes = await _open_until_quiet(client, arguments.settle)
        await loosen(client, pods)
    if say_failures(outcomes, "muster withdraw"):
        return _NOT_ALL
    print("muster holds no pod any more")
    return 0


async def _open_until_quiet(client: Client, settle: float) -> tuple[list[Pod], Outcomes]:
    """Open gates for `settle` seconds, and on until none is found that could be opened; gives the last look."""
    quiet_at = time.monotonic() + settle
    while True:
        started = time.monotonic()
        pods = await list_objects(client, PODS, Pod, label_selector=GANG)
        outcomes = await open_gates(client, pods)
        say_opened(outcomes)
        if started >= quiet_at and not any(outcome.opened for outcome in outcomes.values()):
            return pods, outcomes
        await asyncio.sleep(_PAUSE_SECONDS)
