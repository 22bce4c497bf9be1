"""`muster queues`, once or as they change (`muster watch`); the queues of a snapshot, which the page shows as well."""

import argparse
import asyncio
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TextIO

from muster.cli.connecting import opened, start_error
from muster.cli.queues.table import ASCII, BLOCKS, queue_lines
from muster.cli.snapshot import ClusterSnapshot, LedgerSnapshot, read_cluster
from muster.cli.ui import aligned, amounts, as_long_as_read, complain, draws, print_data, width
from muster.cli.when import basis_of, starts_by
from muster.gangs.start_errors import StartError
from muster.model.times import minute_of, seconds_of
from muster.queueing.queue_view import ROOT
from muster.queueing.reservations import Reservation
from muster.queueing.shares import percent
from muster.resources.amounts import as_text
from muster.resources.quantity import Quantity

_RESTS_ON = {
    "enforced": "limits that are enforced",
    "said": "limits that users set",
    "about": "estimates",
    None: "no known end",
}


def queue_entries(snapshot: LedgerSnapshot, *, whole: bool) -> list[dict[str, Any]]:
    """Every queue, parents before children; `used` is None unless `whole`: unreadable namespaces may hold more."""
    reservations = reservations_of(snapshot) if whole else {}
    return [_entry(snapshot, name, depth, reservations.get(name), whole=whole) for name, depth in _in_tree(snapshot)]


def remarks(entries: Sequence[Mapping[str, Any]]) -> list[str]:
    """Remarks below the tree: queues that are on hold, and what in a queue cannot be read."""
    held = [name for entry in entries if entry["onHoldBy"] == (name := entry["name"])]
    on_hold = [f"queue {name}: no gang starts, for it is on hold; muster resume queue/{name}" for name in held]
    return on_hold + [f"queue {entry['name']}: {problem}" for entry in entries for problem in entry["problems"]]


def _in_tree(snapshot: LedgerSnapshot) -> Iterator[tuple[str, int]]:
    children: dict[str, list[str]] = {}
    for view in snapshot.ledger.tree:
        children.setdefault(view.parent, []).append(view.name)
    known = {name for names in children.values() for name in names}
    seen: set[str] = set()

    def below(name: str, depth: int) -> Iterator[tuple[str, int]]:
        # Queues in a cycle are shown once each.
        for child in sorted(children.get(name, ())):
            if child not in seen:
                seen.add(child)
                yield child, depth
                yield from below(child, depth + 1)

    yield from below("", 0)
    # Then the children of a missing root or a missing parent; the rest are cycles.
    for parent in sorted(children, key=lambda parent: (parent != ROOT, parent in known, parent)):
        yield from below(parent, 1 if parent in seen else 0)


def reservations_of(snapshot: LedgerSnapshot) -> dict[str, Reservation]:
    """The reservations that keep anything, by the queue that has too little room."""
    passes = (snapshot.ledger.outcome(queue, snapshot.now) for queue in snapshot.ledger.queues_in_use())
    return {level: one for made in passes for level, one in made.reservations.by_level.items() if one.known}


def _reservation(snapshot: LedgerSnapshot, reservation: Reservation) -> dict[str, Any]:
    limit = snapshot.ledger.tree.limit
    return {
        "gang": str(reservation.order.key.gang),
        "startsBy": starts_by(reservation),
        "basis": basis_of(reservation),
        "levels": list(reservation.spare),
        "spare": {
            level: as_text({name: Quantity(max(0, nano), limit(level)[name].format) for name, nano in spare.items()})
            for level, spare in reservation.spare.items()
        },
    }


def _entry(
    snapshot: LedgerSnapshot, name: str, depth: int, reservation: Reservation | None, *, whole: bool
) -> dict[str, Any]:
    ledger = snapshot.ledger
    view = ledger.tree.get(name)
    limit = ledger.tree.limit(name)
    return {
        "name": name,
        "depth": depth,
        "parent": view.parent if view else "",
        "state": view.state if view else "",
        "onHoldBy": ledger.tree.on_hold_by(name) or None,
        "limit": as_text(limit),
        "used": as_text(ledger.used(name)) if whole else None,
        "share": percent(share) if whole and (share := ledger.share(name)) is not None else None,
        "byPast": percent(past) if whole and (past := ledger.share_by_past(name)) is not None else None,
        # Pods that are being deleted, or that others bound to its PodGroup, are no second gang.
        "gangs": len({key.gang for key in ledger.claims(name)}),
        "waiting": len(ledger.waiting(name)),
        "reservation": _reservation(snapshot, reservation) if reservation is not None else None,
        "problems": [*(f"{one}; {one.effect}" for one in view.problems), *map(str, view.unread)] if view else [],
    }


def tree_lines(entries: Sequence[Mapping[str, Any]], out: TextIO, *, elide: bool = False) -> list[str]:
    """The tree of the queues in the characters and the width of `out`, and the reservations below it.

    With `elide` names are shortened so that each line of the tree fits.
    """
    rows = [_reservation_row(entry["name"], one) for entry in entries if (one := entry.get("reservation"))]
    lines = queue_lines(entries, BLOCKS if draws(out) else ASCII, width(out), elide=elide)
    return [*lines, "", *aligned(["RESERVED IN", "FOR", "FROM", "RESTS ON", "SPARE"], rows)] if rows else lines


def _reservation_row(queue: str, reservation: Mapping[str, Any]) -> list[str]:
    start = seconds_of(reservation["startsBy"] or "")
    return [
        queue,
        reservation["gang"],
        minute_of(start) if start is not None else "now on",
        _RESTS_ON[reservation["basis"]],
        amounts(reservation["spare"].get(queue, {})),
    ]


def run(arguments: argparse.Namespace) -> int:
    """The exit code of `muster queues` and `muster watch`: 2 when the cluster does not answer at the beginning."""
    if arguments.watch:
        from muster.cli.queues.watch import watch  # noqa: PLC0415 - it loads much that one look does not need

        with as_long_as_read():
            asyncio.run(watch(arguments))
        return 0
    visible, starts = asyncio.run(_read(arguments))
    entries = queue_entries(visible.ledger_snapshot(time.time()), whole=visible.whole)
    with as_long_as_read():
        start_error_data = {"gangs": starts.gangs, "halfWithin": starts.factor} if starts is not None else None
        data = {"queues": entries, "startError": start_error_data, "unknown": visible.missing}
        if print_data(data, arguments.output, sys.stdout):
            return 0
        print("\n".join([*tree_lines(entries, sys.stdout), *(["", str(starts)] if starts is not None else [])]))
    source = visible.defaults.queue_source
    none = [] if entries else [f"there is no {source.kind} ({source.group}) in this cluster, or none that you may read"]
    complain("queues", *none, *remarks(entries), *visible.missing)
    return 0


async def _read(arguments: argparse.Namespace) -> tuple[ClusterSnapshot, StartError | None]:
    """The cluster as far as it can be read, and the error of its planned starts; notes are in `missing`."""
    async with opened(arguments) as (client, settings):
        visible = await read_cluster(client, settings, arguments.namespace or client.namespace)
        return visible, await start_error(client, settings, time.time())
