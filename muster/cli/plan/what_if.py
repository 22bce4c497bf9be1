"""`muster plan --cluster --what-if`: which gangs would start at another time if something were different.

The ledger of the cluster and a copy with the change are both forecast; what is expected of either is compared.
"""

import argparse
import asyncio
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from muster.cli.connecting import opened
from muster.cli.parsing import InputError
from muster.cli.plan.entry import PlanEntry
from muster.cli.snapshot import ClusterSnapshot, LedgerSnapshot, load
from muster.cli.ui import aligned, as_long_as_read, complain, lasting, print_data
from muster.gangs.gang import priority_value
from muster.model.objects import InvalidObjectError
from muster.model.times import minute_of, stamp_of
from muster.planning.candidate import bounds_of
from muster.queueing.entries import EntryKey
from muster.queueing.forecast import forecast
from muster.queueing.ledger import Candidate, GangKey, Ledger
from muster.resources.amounts import Resources, parse_resources
from muster.validation.workload import Verdict

# A start that moves by less than a tenth of the wait is too small to notice: run times are guessed worse.
_PART, _SHORTEST = 0.1, 60.0


class StartChange(NamedTuple):
    """A gang whose expected start changes; None for a start that is not known, or a gang that is not there."""

    gang: EntryKey
    before: float | None
    after: float | None


def run(arguments: argparse.Namespace, entries: Sequence[PlanEntry]) -> int:
    """The exit code; `entries` are the objects that would be created. Raises InputError for one that is refused."""
    if refused := next((one for one in entries if one.refusals), None):
        raise InputError(f"{refused.source}: {refused.refusals[0].message}")
    verdicts = [
        (GangKey(one.namespace, one.verdict.gang.name), one.verdict)
        for one in entries
        if one.verdict and one.verdict.gang and one.verdict.intent
    ]
    snapshot, visible, nodes = asyncio.run(_look(arguments))
    after = snapshot.ledger.copy()
    _apply(arguments, after, nodes)
    priorities = visible.cluster.priorities()
    for key, verdict in verdicts:
        if snapshot.ledger.queue_of(key) is not None:
            raise InputError(f"gang {key} is in the cluster already; give the manifest another name")
        after.wait(_candidate(key, verdict, priorities, snapshot.now))
    starts = expected_starts(snapshot.ledger.copy(), snapshot.now), expected_starts(after, snapshot.now)
    new = {key for key, _ in verdicts}
    found = changes(*starts, snapshot.now)
    with as_long_as_read():
        if not print_data(_data(*starts, found), arguments.output, sys.stdout):
            print("\n".join(_lines(found, new, snapshot.now)))
    complain("plan", *visible.missing)
    return 0


async def _look(arguments: argparse.Namespace) -> tuple[LedgerSnapshot, ClusterSnapshot, Resources | None]:
    """The cluster, and what its nodes have without the one that is to be lost."""
    async with opened(arguments) as (client, settings):
        visible = ClusterSnapshot.empty(settings)
        await load(client, arguments.namespace or client.namespace, visible)
    snapshot = visible.ledger_snapshot(time.time())
    lost = arguments.lose_node
    if not lost:
        return snapshot, visible, visible.nodes
    if visible.room is None:
        raise InputError("--lose-node: the nodes do not limit admission in this cluster, so that no start would change")
    if visible.room.nodes.get("", lost) is None:
        raise InputError(f'--lose-node: there is no node "{lost}"')
    visible.room.nodes.replace_all([node for node in visible.room.nodes if node.metadata.name != lost])
    return snapshot, visible, visible.room.free()


def _apply(arguments: argparse.Namespace, ledger: Ledger, nodes: Resources | None) -> None:
    """Change the ledger as the options ask. Raises InputError."""
    ledger.bound(nodes)
    if arguments.reserves:
        for each in list(ledger.tree):
            ledger.set_queue(replace(each, trusts_estimates=arguments.reserves == "estimates"))
    if arguments.queue:
        view = ledger.tree.get(arguments.queue)
        if view is None:
            raise InputError(f'--queue: there is no queue "{arguments.queue}"')
        amounts = dict(part.partition("=")[::2] for part in arguments.capability.split(","))
        try:
            limit = parse_resources(amounts, path="--capability")
        except InvalidObjectError as error:
            raise InputError(str(error)) from error
        ledger.set_queue(replace(view, limit={**view.limit, **limit}))


def _candidate(key: GangKey, verdict: Verdict, priorities: Mapping[str, int], now: float) -> Candidate:
    assert verdict.intent is not None  # noqa: S101 - the caller leaves out what makes no gang
    assert verdict.gang is not None  # noqa: S101
    bounds = [one for one, _ in bounds_of(verdict.workload, verdict.intent)]
    priority = priority_value(verdict.intent.priority_class, priorities)
    need = verdict.gang.min_resources
    return Candidate(key, verdict.intent.queue, priority, stamp_of(now), need, run=min(bounds, default=None))


def expected_starts(ledger: Ledger, now: float) -> dict[EntryKey, float]:
    """The known expected starts of waiting gangs; the ledger is used up."""
    return {start.key: start.at for start in forecast(ledger, now)}


def changes(before: Mapping[EntryKey, float], after: Mapping[EntryKey, float], now: float) -> list[StartChange]:
    """The gangs whose start changes by more than a tenth of their wait, in the order in which they would start."""
    found = (StartChange(key, before.get(key), after.get(key)) for key in {**after, **before})
    return [one for one in found if _differs(one, now)]


def _differs(change: StartChange, now: float) -> bool:
    if change.before is None or change.after is None:
        return True
    wait = max(change.before - now, _SHORTEST)
    return abs(change.after - change.before) > _PART * wait


def _data(
    before: Mapping[EntryKey, float], after: Mapping[EntryKey, float], found: Sequence[StartChange]
) -> dict[str, Any]:
    def starts(of: Mapping[EntryKey, float]) -> list[dict[str, Any]]:
        return [{"gang": str(key), "start": stamp_of(at)} for key, at in of.items()]

    def stamp(at: float | None) -> str | None:
        return None if at is None else stamp_of(at)

    changed = [{"gang": str(one.gang), "before": stamp(one.before), "after": stamp(one.after)} for one in found]
    return {"before": starts(before), "after": starts(after), "changed": changed}


def _lines(found: Sequence[StartChange], new: set[GangKey], now: float) -> list[str]:
    if not found:
        return ["no start would change"]
    rows = [
        (str(one.gang), "-" if one.gang in new else _time(one.before, now), _time(one.after, now), _words(one, new))
        for one in found
    ]
    return aligned(("GANG", "NOW", "THEN", "CHANGE"), rows)


def _time(at: float | None, now: float) -> str:
    return "not known" if at is None else "at once" if at <= now else minute_of(at)


def _words(change: StartChange, new: set[GangKey]) -> str:
    if change.gang in new:
        return "comes"
    if change.before is None or change.after is None:
        return "not known" if change.after is None else "becomes known"
    seconds = change.after - change.before
    return f"{lasting(seconds)} {'later' if seconds > 0 else 'earlier'}"
