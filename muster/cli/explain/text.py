"""The text output of `muster explain`: the answer first, then the numbers."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TextIO

from muster.cli.connecting import NO_CONTROLLER
from muster.cli.explain.what_helps import NOTHING_HELPS
from muster.cli.ui import GREEN, RED, YELLOW, age, aligned, amounts, placement, print_wrapped, width, wrapped
from muster.cli.when import when_lines
from muster.model.gang_states import GangState
from muster.model.texts import printable
from muster.model.times import seconds_of

_PAINTS = {
    GangState.RUNNING: GREEN,
    GangState.ADMITTED: GREEN,
    GangState.FINISHED: GREEN,
    GangState.INVALID: RED,
    GangState.EXCEEDS_CAPABILITY: RED,
    GangState.QUEUE_NOT_FOUND: RED,
    GangState.FOREIGN_POD_GROUP: RED,
}
_HOLDERS = 10


def print_explained(entries: Sequence[Mapping[str, Any]], out: TextIO, now: float) -> None:
    """Print every entry; `now` is the wall-clock time in seconds, for the age of events."""
    for number, entry in enumerate(entries):
        if number:
            print(file=out)
        workload = entry["workload"]
        print(printable(f"{workload['kind']} {workload['namespace']}/{workload['name']}"), file=out)
        # An annotation, which all users with the right to patch the PodGroup can write.
        state = printable(entry["state"]) or ("unknown" if entry["gang"] else "no gang")
        paint = _PAINTS.get(entry["state"], YELLOW)
        print_wrapped(f"  {state}: {printable(entry['message'])}", 4, out, paint, len(state) + 2)
        for line in _details(entry, now, width(out)):
            print(printable(line), file=out)


def _details(entry: Mapping[str, Any], now: float, columns: int) -> Iterator[str]:
    yield from _facts(entry, columns)
    yield from _in_line(entry, now, columns)
    if entry["roles"]:
        yield ""
        names = ("replicas", "minMember", "there", "gated", "bound")
        rows = [[role["name"], *(str(role[name]) for name in names)] for role in entry["roles"]]
        yield from _indented(["ROLE", "WANTED", "MIN", "PODS", "GATED", "BOUND"], rows, right=range(1, 6))
    if entry["queues"]:
        yield ""
        known = [name for name in ("limit", "used", "free") if any(one[name] is not None for one in entry["queues"])]
        rows = [[queue["name"], *(amounts(queue[name]) for name in known)] for queue in entry["queues"]]
        yield from _indented(["QUEUE", *map(str.upper, known)], rows)
    if entry["holders"]:
        yield ""
        rows = [
            [f"{holder['namespace']}/{holder['name']}", holder["queue"], amounts(holder["claim"])]
            for holder in entry["holders"][:_HOLDERS]
        ]
        yield from _indented(["HELD BY", "QUEUE", "CLAIM"], rows)
        if len(entry["holders"]) > _HOLDERS:
            yield f"  and {len(entry['holders']) - _HOLDERS} more"
    if entry["events"]:
        yield ""
        rows = [
            [_since(event["time"], now), event["reason"], event["from"].removesuffix("/controller"), event["note"]]
            for event in entry["events"]
        ]
        yield from _indented(["LAST SEEN", "REASON", "FROM", "MESSAGE"], rows)
    if entry["unknown"]:
        yield ""
        for unknown in entry["unknown"]:
            # That no controller is alive is known.
            title = "" if unknown.startswith(NO_CONTROLLER) else "unknown: "
            yield from wrapped(f"  {title}{unknown}", 4, columns)


def _facts(entry: Mapping[str, Any], columns: int) -> Iterator[str]:
    gang, scheduling = entry["gang"], entry["scheduling"]
    # Where muster manages nothing, that there is no PodGroup is no second fault.
    if gang is not None and (gang["exists"] or entry["state"] != GangState.NOT_MANAGED):
        phase = f", phase {gang['phase']}" if gang["phase"] else ""
        known = {True: f", minMember {gang['minMember']}{phase}", False: " does not exist", None: ": not readable"}
        yield f"  {'gang':<10} PodGroup {gang['podGroup']}{known[gang['exists']]}"
    if scheduling is not None:
        yield from placement(scheduling)
    if entry["onHold"] is not None and entry["onHold"] not in entry["message"]:
        yield from wrapped(f"  {'on hold':<10} {entry['onHold']}", 13, columns)


def _in_line(entry: Mapping[str, Any], now: float, columns: int) -> Iterator[str]:
    if (position := entry["position"]) is not None:
        yield f"  {'position':<10} {position['position']} of {position['waiting']} waiting"
    if entry["when"] is not None:
        for title, words in when_lines(entry["when"], entry["message"], now):
            yield from wrapped(f"  {title:<10} {words}", 13, columns)
    if entry["help"] is not None:
        for words in [one["text"] for one in entry["help"]] or [NOTHING_HELPS]:
            yield from wrapped(f"  {'would help':<10} {words}", 13, columns)
    if entry["needs"] is not None:
        yield f"  {'needs':<10} {amounts(entry['needs'])}"
    if entry["holds"] is not None:
        yield f"  {'holds':<10} {amounts(entry['holds'])}"


def _indented(head: Sequence[str], rows: Sequence[Sequence[str]], right: range = range(0)) -> Iterator[str]:
    return (f"  {line}" for line in aligned(head, rows, right=right))


def _since(text: str, now: float) -> str:
    moment = seconds_of(text)
    return age(now - moment) if moment is not None else "-"
