"""`muster withdraw`: removes muster from a cluster and leaves no held pod behind.

The uninstall hook of the chart runs it before helm deletes anything. The order makes it safe. First it deletes the
webhook configurations, so that no new pod is held; then the permissions of the controller, so that the controller
cannot revert a change; then it opens gates until every review in flight has ended. It needs no running muster.
"""

import argparse
import asyncio
import time

from muster.cli.connecting import connected, find_settings
from muster.cli.doctor.installed import LABELS
from muster.cli.release.command import Outcomes, open_gates, print_failures, print_opened
from muster.cli.release.pod_groups import loosen
from muster.cli.settings import any_scheduler
from muster.cli.ui import CommandError, asks, complain, confirmed, counted, print_line
from muster.kube.client import Client
from muster.kube.errors import ApiError
from muster.kube.listing import list_objects
from muster.model.names import GANG, GATE
from muster.model.objects import Object
from muster.model.pods import Pod
from muster.model.resource import CLUSTER_ROLE_BINDINGS, MUTATING_WEBHOOKS, PODS, VALIDATING_WEBHOOKS

_NOT_ALL = 1
_PAUSE_SECONDS = 1.0


def run(arguments: argparse.Namespace) -> int:
    """The exit code of `muster withdraw`: 1 when something stays undone, 2 when the cluster does not answer."""
    if asks(yes=arguments.yes, dry_run=arguments.dry_run):
        held, where = asyncio.run(_held(arguments))
        gates = f"open the gates of {counted(held, 'pod')}"
        question = f"Remove muster ({arguments.name}) from {where}, and {gates}?"
        if not confirmed("withdraw", question):
            return _NOT_ALL
    return asyncio.run(_withdraw(arguments))


async def _held(arguments: argparse.Namespace) -> tuple[int, str]:
    """The number of held pods, and the server that they are at."""
    async with connected(arguments) as client:
        pods = await list_objects(client, PODS, Pod, label_selector=GANG)
        return sum(pod.gated(GATE) and pod.living for pod in pods), client.server


async def _withdraw(arguments: argparse.Namespace) -> int:
    name, dry_run, loosened = arguments.name, arguments.dry_run, True
    async with connected(arguments) as client:
        # The webhooks add gates, so they go first.
        webhooks = [await client.delete(MUTATING_WEBHOOKS, name, dry_run=dry_run)]
        try:
            webhooks.append(await client.delete(VALIDATING_WEBHOOKS, name, dry_run=dry_run))
        except ApiError:
            if any(webhooks) and not dry_run:
                print_line(
                    f"{MUTATING_WEBHOOKS.kind.lower()} {name}: deleted; no new pod is held; the rest stays as it is"
                )
            raise
        if not any(webhooks) and (others := await _others(client, name)):
            raise CommandError(
                f'no muster is called "{name}" here, and nothing was changed; did you mean --name={others[0]}?'
            )
        print_line(f"webhook configurations {name}: {_outcome(any(webhooks), dry_run)}; no new pod is held")
        binding = await client.delete(CLUSTER_ROLE_BINDINGS, f"{name}-controller", dry_run=dry_run)
        print_line(
            f"clusterrolebinding {name}-controller: {_outcome(binding, dry_run)}; the controller can change nothing"
        )
        if dry_run:
            pods = await list_objects(client, PODS, Pod, label_selector=GANG)
            outcomes = await open_gates(client, pods, dry_run=True)
            print_opened(outcomes, dry_run=True)
        else:
            pods, outcomes = await _open_until_quiet(client, arguments.settle)
            settings = arguments.values or await find_settings(client, any_scheduler())
            complain("withdraw", *filter(None, [settings.note]))
            loosened = await loosen(client, pods, settings.defaults.schedulers)
    if print_failures(outcomes, "withdraw") or not loosened:
        return _NOT_ALL
    print_line("nothing was changed (dry run)" if dry_run else "no pods are held by muster")
    return 0


def _outcome(there: bool, dry_run: bool) -> str:  # noqa: FBT001 - two facts, no options
    if not there:
        return "not found"
    return "would be deleted" if dry_run else "deleted"


async def _others(client: Client, name: str) -> list[str]:
    """The names of other installations whose webhooks hold pods; none where they may not be listed, as by the hook."""
    try:
        found = await list_objects(client, MUTATING_WEBHOOKS, Object, label_selector=LABELS)
    except ApiError as error:
        if not error.forbidden:
            raise
        return []
    return sorted(one.metadata.name for one in found if one.metadata.name != name)


async def _open_until_quiet(client: Client, settle: float) -> tuple[list[Pod], Outcomes]:
    """Open gates for `settle` seconds, then until a round opens none; returns the pods and outcomes of that round."""
    quiet_at = time.monotonic() + settle
    while True:
        started = time.monotonic()
        pods = await list_objects(client, PODS, Pod, label_selector=GANG)
        outcomes = await open_gates(client, pods)
        print_opened(outcomes)
        if started >= quiet_at and not any(outcome.opened for outcome in outcomes.values()):
            return pods, outcomes
        await asyncio.sleep(_PAUSE_SECONDS)
