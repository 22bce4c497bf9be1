"""`muster test`: whether the queues of a file keep its promises under its load. It needs no cluster."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from math import inf
from pathlib import Path
from typing import Any

import msgspec

from muster.cli.parsing import InputError, parse
from muster.cli.replay.engine import Policy, Replayed, replay
from muster.cli.replay.load import Arrival, Load, is_generated, read_load
from muster.cli.replay.results import percentile
from muster.cli.ui import aligned, as_long_as_read, print_data
from muster.model.objects import InvalidObjectError, decode, fault_of
from muster.model.texts import printable
from muster.model.times import duration_of, duration_text
from muster.queueing.queue_tree import QueueTree
from muster.queueing.queue_view import QueueView, read_queue
from muster.queueing.sources import QUEUE_SOURCES, GangQueue
from muster.resources.amounts import parse_resources

_FAILED, _UNREADABLE = 1, 2
_MEASURES = re.compile(r"mean|max|p\d{1,2}")
_SHORT = frozenset({"name", *(one.encode_name for one in msgspec.structs.fields(type(GangQueue().spec)))})


def run(arguments: argparse.Namespace) -> int:
    """The exit code of `muster test`: 1 when an expectation fails, 2 when the file cannot be read."""
    try:
        load, expected = read_policy_file(arguments.policy)
    except InputError as error:
        print(f"muster test: {printable(str(error))}", file=sys.stderr)
        return _UNREADABLE
    replayed, tree = replay(load, Policy(""), lambda _: None), QueueTree(load.queues)
    results = [_result(one, replayed, tree) for one in expected]
    with as_long_as_read():
        if not print_data(results, arguments.output, sys.stdout):
            rows = [[one["expected"], one["found"], "passed" if one["passed"] else "FAILED"] for one in results]
            print("\n".join(aligned(["EXPECTED", "FOUND", "RESULT"], rows)))
    if arguments.junit:
        try:
            Path(arguments.junit).write_text(_junit(arguments.policy, results))
        except OSError as error:
            print(f"muster test: {arguments.junit}: {error.strerror}", file=sys.stderr)
            return _UNREADABLE
    return 0 if all(one["passed"] for one in results) else _FAILED


def _result(expected: Expected, replayed: Replayed, tree: QueueTree) -> dict[str, Any]:
    """An expectation in words, what was found, and whether it holds."""
    if not (expected.queue or expected.gang):
        found, text = replayed.busy, f"{replayed.busy:.1%}"
        return {"expected": expected.words, "found": text, "value": found, "passed": found >= expected.limit}
    # A gang that has not started by the end has waited for longer than any that has.
    waits = [(one.gang, one.waited) for one in replayed.started] + [(gang, inf) for gang in replayed.never]
    if expected.gang:
        # Two gangs may have one name, in two namespaces.
        found = max(wait for gang, wait in waits if gang.name == expected.gang)
    else:
        found = _measured(expected.measure, [wait for gang, wait in waits if expected.queue in tree.path(gang.queue)])
    text = duration_text(found) if found < inf else "never"
    value = found if found < inf else None
    return {"expected": expected.words, "found": text, "value": value, "passed": found <= expected.limit}


def _measured(measure: str, waits: Sequence[float]) -> float:
    """A measure of waits; 0 where no gang came."""
    if measure == "mean":
        return sum(waits) / len(waits) if waits else 0.0
    return percentile(sorted(waits), 100 if measure == "max" else float(measure[1:])) or 0.0


def _junit(name: str, results: Sequence[dict[str, Any]]) -> str:
    failures = sum(not one["passed"] for one in results)
    counts = f'tests="{len(results)}" failures="{failures}"'
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', f'<testsuite name="muster test" {counts}>']
    for one in results:
        head = f'  <testcase classname="{escape(printable(name))}" name="{escape(printable(one["expected"]))}"'
        lines.append(f"{head}/>" if one["passed"] else f'{head}><failure message="{one["found"]}"/></testcase>')
    return "\n".join([*lines, "</testsuite>", ""])


class _LoadedGang(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    queue: str
    runs: str
    needs: dict[str, str | int | float]
    at: str = "0s"
    limit: str = ""
    namespace: str = "default"
    priority: int = 0


class _GivenQueues(msgspec.Struct, forbid_unknown_fields=True):
    queues: list[dict[str, Any]] = []
    gangs: list[_LoadedGang] = []


class _Expect(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    queue: str = ""
    wait: dict[str, str] = {}
    gang: str = ""
    starts_within: str = ""
    used: float | None = None


class _File(msgspec.Struct, forbid_unknown_fields=True):
    expect: list[_Expect]
    load: str = ""
    given: _GivenQueues = msgspec.field(default_factory=_GivenQueues)


@dataclass(frozen=True, slots=True)
class Expected:
    """One expectation: a wait of a queue or gang that is no longer than this (seconds), or at least a part in use."""

    words: str
    limit: float
    queue: str = ""
    measure: str = ""
    """Of the waits in the queue and below it: mean, max, or a percentile such as p95."""
    gang: str = ""


def read_policy_file(path: str) -> tuple[Load, list[Expected]]:
    """The load of a file, named by a path relative to it, and its expectations; raises InputError."""
    file = _decoded(path)
    try:
        load = _load(file, path)
        expected = [
            one for number, each in enumerate(file.expect) for one in _expected(each, f"expect[{number}]", load)
        ]
    except InvalidObjectError as error:
        raise InputError(f"{path}: {error}") from error
    if not expected:
        raise InputError(f"{path}: expect: is empty; write at least one expectation, such as used: 0.8")
    return load, expected


def _decoded(path: str) -> _File:
    try:
        documents = list(parse(path, Path(path).read_text()))
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: {getattr(error, 'strerror', None) or error}") from error
    if len(documents) != 1:
        raise InputError(f"{path}: has {len(documents)} documents; write one, with given, load and expect")
    try:
        return msgspec.convert(documents[0].value, _File)
    except msgspec.ValidationError as error:
        field, what = fault_of(error)
        raise InputError(f"{path}: {field or 'the file'}: {what}; docs/cli.md has all fields") from error


def _load(file: _File, path: str) -> Load:
    """The load, with the given queues in place of its own of the same names, and the given gangs."""
    load = Load((), ())
    if file.load:
        load = read_load(file.load if is_generated(file.load) else str(Path(path).parent / file.load))
    queues = {view.name: view for view in load.queues}
    for number, one in enumerate(file.given.queues):
        queues |= {(view := _queue(one, f"given.queues[{number}]")).name: view}
    begin = load.arrivals[0].at if load.arrivals else 0.0
    given = [_gang(one, f"given.gangs[{number}]", begin) for number, one in enumerate(file.given.gangs)]
    for number, gang in enumerate(given):
        if gang.queue not in queues:
            _refuse(f"given.gangs[{number}].queue", gang.queue, f"is no queue here; use one of {_few(queues)}")
    arrivals = sorted((*load.arrivals, *given), key=lambda one: (one.at, one.name))
    if not arrivals:
        _refuse("load", file.load, "has no gangs; name a log, a record, or generated:1, or write given.gangs")
    return replace(load, queues=tuple(queues.values()), arrivals=tuple(arrivals))


def _queue(manifest: dict[str, Any], where: str) -> QueueView:
    """A Queue or GangQueue as a manifest, or in short: its name with the fields of a GangQueue's spec."""
    kinds = {source.kind: source.decoded for source in QUEUE_SOURCES.values()}
    kind = manifest.get("kind")
    if kind is None:
        for name in manifest.keys() - _SHORT:
            _refuse(f"{where}.{name}", manifest[name], f"is no field of a queue; use {', '.join(sorted(_SHORT))}")
        manifest = {"metadata": {"name": manifest.get("name")}, "spec": manifest}
    elif kind not in kinds:
        _refuse(f"{where}.kind", kind, f"is no queue; use {' or '.join(kinds)}")
    try:
        view = read_queue(decode(msgspec.json.encode(manifest), kinds[kind or "GangQueue"]))
    except InvalidObjectError as error:
        raise InvalidObjectError(where, str(error)) from error
    if not view.name:
        _refuse(f"{where}.name", view.name, "names no queue; write a name")
    for problem in (*view.problems, *view.unread):
        raise InvalidObjectError(where, str(problem))
    # Volcano's controller writes it into the status, which no manifest has.
    return replace(view, state=view.state or "Open")


def _gang(one: _LoadedGang, where: str, begin: float) -> Arrival:
    seconds = {name: _seconds(getattr(one, name), f"{where}.{name}") for name in ("at", "runs")}
    limit = _seconds(one.limit, f"{where}.limit") if one.limit else None
    need = parse_resources(one.needs, path=f"{where}.needs")
    at = begin + seconds["at"]
    return Arrival(one.name, one.namespace, at, seconds["runs"], need, one.queue, one.name, limit, one.priority)


def _expected(one: _Expect, where: str, load: Load) -> Iterator[Expected]:
    queues = {view.name for view in load.queues}
    subjects = [name for name, value in (("queue", one.queue), ("gang", one.gang), ("used", one.used)) if value]
    if len(subjects) != 1 or bool(one.wait) != bool(one.queue) or bool(one.starts_within) != bool(one.gang):
        raise InvalidObjectError(where, "is no expectation; write queue with wait, gang with startsWithin, or used")
    if one.used is not None:
        if not 0 < one.used <= 1:
            _refuse(f"{where}.used", one.used, "is no part; write a number above 0 and up to 1, such as 0.8")
        yield Expected(f"used while any gang waits: at least {one.used:.1%}", one.used)
    elif one.gang:
        if all(gang.name != one.gang for gang in load.arrivals):
            _refuse(f"{where}.gang", one.gang, "is no gang of the load; add it to given.gangs")
        seconds = _seconds(one.starts_within, f"{where}.startsWithin")
        yield Expected(f"gang {one.gang}: starts within {one.starts_within}", seconds, gang=one.gang)
    elif one.queue not in queues:
        _refuse(f"{where}.queue", one.queue, f"is no queue here; use one of {_few(queues)}")
    for measure, text in one.wait.items():
        if not _MEASURES.fullmatch(measure):
            _refuse(f"{where}.wait.{measure}", text, "is of no known measure; use mean, max, or a percentile like p95")
        limit = _seconds(text, f"{where}.wait.{measure}")
        yield Expected(f"queue {one.queue}: {measure} of waits at most {text}", limit, one.queue, measure)


def _seconds(text: str, where: str) -> float:
    seconds = duration_of(text)
    if seconds is None:
        _refuse(where, text, "is not a duration; write one such as 30s, 10m or 1h30m")
    return seconds or 0.0


def _few(names: Mapping[str, Any] | set[str]) -> str:
    return ", ".join(sorted(names)[:10])


def _refuse(where: str, found: object, rule: str) -> None:
    raise InvalidObjectError(where, f'"{str(found)[:80]}" {rule}')
