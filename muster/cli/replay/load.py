"""The load of a replay: queues, and gangs with the time at which they came and the time for which they ran."""

import gzip
import random
import re
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import exp, log, log2
from pathlib import Path
from typing import Any

import msgspec

from muster.cli.parsing import InputError
from muster.model.objects import InvalidObjectError, Queue, convert, decode
from muster.queueing.entries import GangKey
from muster.queueing.queue_tree import QueueTree
from muster.queueing.queue_view import ROOT, QueueView, read_queue
from muster.queueing.usage import amounts_of
from muster.resources.amounts import Resources, parse_resources, shared
from muster.resources.quantity import ZERO

_FIELDS = 12
_MOST = re.compile(r";\s*MaxProcs:\s*(\d+)")
_GPU = "nvidia.com/gpu"
_GPUS, _LARGEST = 256, 7
_SECONDS, _PART = 86400.0, 0.95
_MEDIAN, _OF_USERS, _OF_RUNS = 600.0, 1.0, 0.9
_USERS = 40
_DEPARTMENTS = ("research", "product")
_TEAMS = ("speech", "vision")
_LEAST_RUN = 10.0
_GENERATED = "generated:"


@dataclass(frozen=True, slots=True)
class Arrival:
    """A gang that comes."""

    name: str
    """Its name."""
    namespace: str
    """Its namespace; of a log, its user."""
    at: float
    """The time at which it comes (seconds)."""
    runs: float
    """The seconds for which it runs, once it has started."""
    need: Resources
    """The resources that it holds while it runs."""
    queue: str
    """Its queue."""
    lineage: str = ""
    """The name that it shares with former runs of the same work; "" for a log."""
    limit: float | None = None
    """Its time limit, in seconds; None where it has none."""
    priority: int = 0
    """The value of its PriorityClass."""

    @property
    def key(self) -> GangKey:
        """Its key in the ledger."""
        return GangKey(self.namespace, self.name)


@dataclass(frozen=True)
class Load:
    """A load, the gangs in the order in which they come."""

    queues: tuple[QueueView, ...]
    arrivals: tuple[Arrival, ...]
    left_out: int = 0
    """The entries of a log that are no gangs: they did not run, or ask for more than the machine has."""

    @cached_property
    def counted(self) -> tuple[str, int]:
        """The resource that is scarcest, and the sum of its highest limits in the tree, in billionths."""
        tree = QueueTree(self.queues)
        tops = {next((one for one in reversed(tree.path(view.name)) if tree.limit(one)), "") for view in self.queues}
        limits: Counter[str] = Counter()
        for top in tops - {""}:
            limits.update(dict(amounts_of(tree.limit(top))))
        work: Counter[str] = Counter()
        for gang in self.arrivals:
            work.update({name: amount * gang.runs for name, amount in amounts_of(gang.need) if limits[name]})
        name = max(work, key=lambda one: work[one] / limits[one], default="")
        return name, limits[name]

    def is_large(self, gang: Arrival) -> bool:
        """True if it needs half of its queue, or more, of the scarcest resource."""
        name, _ = self.counted
        limit = next(view.limit for view in self.queues if view.name == gang.queue)
        return name in limit and 2 * gang.need.get(name, ZERO).nano >= limit[name].nano


def read_load(path: str) -> Load:
    """A log of the Standard Workload Format, a record of `muster record`, or a generated day such as `generated:1`."""
    if is_generated(path):
        seed = path.removeprefix(_GENERATED)
        if not seed.isdecimal():
            raise InputError(f'"{seed[:80]}" is no seed; use a number, as in generated:1')
        return generated(int(seed))
    return read_swf(path) if path.removesuffix(".gz").endswith(".swf") else read_record(path)


def is_generated(name: str) -> bool:
    """True if a load is no file, but a generated day."""
    return name.startswith(_GENERATED)


def lines_of(path: str) -> Iterator[str]:
    """The lines of a text file, unpacked where its name ends with .gz; raises InputError."""
    try:
        raw = Path(path).read_bytes()
        yield from (gzip.decompress(raw) if path.endswith(".gz") else raw).decode().splitlines()
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise InputError(f"{path}: {getattr(error, 'strerror', None) or error}") from error


def read_swf(path: str) -> Load:
    """A log in the Standard Workload Format: one queue of all processors, and each user is a namespace.

    Raises InputError for a line that is no entry.
    """
    most, jobs = 0, []
    for number, line in enumerate(lines_of(path), 1):
        if found := _MOST.match(line):
            most = int(found[1])
        elif line.strip() and not line.startswith(";"):
            jobs.append(_job(line.split(), f"{path}:{number}"))
    # A log without a head is of a machine that its largest job filled.
    most = most or max((job[1] for job in jobs), default=0)
    arrivals = [job[0] for job in jobs if job[0].runs > 0 and 0 < job[1] <= most]
    queue = QueueView("log", "Open", needs(f"{most}"))
    return Load((queue,), tuple(sorted(arrivals, key=_place)), len(jobs) - len(arrivals))


def read_record(path: str) -> Load:
    """The load of a record; gangs that had not started when it ended are left out. Raises InputError."""
    queues: dict[str, QueueView] = {}
    came: dict[str, _Line] = {}
    started: dict[str, float] = {}
    arrivals: list[Arrival] = []
    last = 0.0
    for number, text in enumerate(lines_of(path), 1):
        try:
            line = decode(text, _Line)
            if line.queue is not None and not isinstance(line.queue, str):
                view = read_queue(convert(line.queue, Queue))
                queues[view.name] = view
        except InvalidObjectError as error:
            raise InputError(f"{path}:{number}: {error}") from error
        last = max(last, line.at)
        if line.comes:
            came[line.comes] = line
        elif line.starts in came:
            started[line.starts] = line.at
        elif line.ends in started:
            arrivals.append(_recorded(came.pop(line.ends), started.pop(line.ends), line.at))
    arrivals += [_recorded(came.pop(name), at, last) for name, at in started.items()]
    return Load(tuple(queues.values()), tuple(sorted(arrivals, key=_place)), len(came))


class _Line(msgspec.Struct):
    """A line of a record: a queue, or what a gang does at a time."""

    at: float = 0.0
    comes: str = ""
    starts: str = ""
    ends: str = ""
    goes: str = ""
    namespace: str = ""
    lineage: str = ""
    queue: str | dict[str, Any] | None = None
    priority: int = 0
    need: dict[str, str] = {}
    limit: float | None = None


def _recorded(one: _Line, started: float, ended: float) -> Arrival:
    """A gang that has run; of one that comes again, or of another one with its name, this run."""
    return Arrival(
        f"{one.comes}-{one.at:.1f}",
        one.namespace,
        one.at,
        ended - started,
        _resources(one.need),
        str(one.queue),
        one.lineage,
        one.limit,
        one.priority,
    )


def _resources(need: Mapping[str, str]) -> Resources:
    return shared(parse_resources(need, path="need"))


def _job(fields: list[str], where: str) -> tuple[Arrival, int]:
    """A gang, and how many processors it needs."""
    try:
        number, submitted, _, runs, used, _, _, asked, limit, _, _, user = (int(float(one)) for one in fields[:_FIELDS])
    except ValueError as error:
        raise InputError(f"{where}: is no line of the Standard Workload Format, which has 18 numbers") from error
    size = asked if asked > 0 else used
    bound = float(limit) if limit > 0 else None
    return Arrival(
        f"{number:08}", f"user-{user}", float(submitted), float(runs), needs(f"{size}"), "log", limit=bound
    ), size


def _place(arrival: Arrival) -> tuple[float, str]:
    return arrival.at, arrival.name


@lru_cache
def needs(amount: str, resource: str = "cpu") -> Resources:
    """An amount of one resource; the same object for all that need as much."""
    return parse_resources({resource: amount}, path="", least=None)


def generated(seed: int, days: float = 1.0) -> Load:
    """Queues at three levels that share 256 GPUs, and gangs that need 95 % of them on average."""
    rng = random.Random(seed)  # noqa: S311
    queues = [QueueView(ROOT, "Open", needs(f"{_GPUS}", _GPU), parent="")]
    for department in _DEPARTMENTS:
        queues.append(QueueView(department, "Open", needs(f"{_GPUS * 3 // 4}", _GPU)))
        queues += [
            QueueView(f"{department}-{team}", "Open", needs(f"{_GPUS // 2}", _GPU), department) for team in _TEAMS
        ]
    leaves = [view.name for view in queues if "-" in view.name]
    users = [(f"user-{number}", rng.choice(leaves), rng.gauss(log(_MEDIAN), _OF_USERS)) for number in range(_USERS)]
    weights = [1 / (number + 1) for number in range(_USERS)]
    work, arrivals = _GPUS * _SECONDS * days * _PART, list[Arrival]()
    while work > 0:
        ((user, queue, usual),) = rng.choices(users, weights)
        size = min(int(-log2(1 - rng.random())), _LARGEST)
        runs = max(exp(rng.gauss(usual, _OF_RUNS)), _LEAST_RUN)
        limit = runs * rng.uniform(1, 10) if int(user[5:]) % 4 == 0 else None
        at = rng.uniform(0, _SECONDS * days)
        name = f"gang-{len(arrivals):06}"
        arrivals.append(Arrival(name, user, at, runs, needs(f"{2**size}", _GPU), queue, limit=limit))
        work -= runs * 2**size
    return Load(tuple(queues), tuple(sorted(arrivals, key=lambda one: (one.at, one.name))))
