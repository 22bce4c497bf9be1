"""The values of the Python API, readable in a terminal and, as HTML, in a notebook.

Each is made from the data that the command line prints for programs (`-o json`), which `data` has as a whole.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from html import escape
from typing import Any

from muster.api.errors import RefusedError
from muster.model.gang_states import BEFORE_ADMISSION, GangState
from muster.model.texts import printable

_STARTED = frozenset({GangState.ADMITTED, GangState.UNSCHEDULABLE, GangState.RUNNING, GangState.FINISHED})
_RAN = frozenset({GangState.RUNNING, GangState.FINISHED})


@dataclass(frozen=True, slots=True)
class Finding:
    """A reason for which admission refuses a workload, or warns of it.

    :ivar reason: the stable name of the reason (docs/denials.md).
    :ivar field: the field of the manifest.
    :ivar message: the field, what is wrong with it, and what to do.
    """

    reason: str
    field: str
    message: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer of admission to one manifest, and the gang that muster would make of it.

    :ivar kind: the kind of the workload.
    :ivar namespace: its namespace, "" for an object without one.
    :ivar name: its name.
    :ivar allowed: False if the webhook would refuse it.
    :ivar managed: False if muster leaves it alone.
    :ivar message: all refusals, or why muster does not manage it, or what was not checked; "" for none of these.
    :ivar refusals: the reasons for which it is refused.
    :ivar warnings: the warnings that come with it when it is accepted.
    :ivar queue: the queue of its gang; "" without a gang.
    :ivar min_member: the number of pods that start together; 0 without a gang.
    :ivar pod_group: the PodGroup that muster would create; None without a gang.
    :ivar data: the entry as `muster plan -o json` prints it.
    """

    kind: str
    namespace: str
    name: str
    allowed: bool
    managed: bool
    message: str
    refusals: tuple[Finding, ...]
    warnings: tuple[Finding, ...]
    queue: str
    min_member: int
    pod_group: Mapping[str, Any] | None
    data: Mapping[str, Any] = field(repr=False)

    def raise_for_refusal(self) -> None:
        """Raise RefusedError if the webhook would refuse the workload."""
        if not self.allowed:
            raise RefusedError(f"{self.subject} is refused: {self.message}", self.refusals)

    @property
    def subject(self) -> str:
        """Kind, namespace and name of the workload."""
        return f"{self.kind} {_of(self.namespace, self.name)}"

    @property
    def answer(self) -> str:
        """The answer in a word or two: allowed, refused, or not managed."""
        return "refused" if not self.allowed else "allowed" if self.managed else "not managed"

    def __repr__(self) -> str:
        gang = f", gang of {self.min_member} in queue {self.queue}" if self.min_member else ""
        lines = [f"{self.subject}: {self.answer}{gang}"]
        lines += [f"  {one}" for one in [self.message, *(f"warning: {one.message}" for one in self.warnings)] if one]
        return _lines(lines)

    def _repr_html_(self) -> str:
        return Verdicts([self])._repr_html_()


@dataclass(frozen=True, slots=True)
class Gang:
    """The gang of a workload as it stands now.

    :ivar kind: the kind of the workload.
    :ivar namespace: its namespace.
    :ivar name: its name.
    :ivar state: the state of the gang (docs/reasons.md); "" where none is known yet.
    :ivar message: the state in a sentence, with numbers.
    :ivar queue: its queue; "" where it has none.
    :ivar position: its position among the gangs that wait in its queue, 1 for the next; None where it does not wait, or
        you may not read all gangs.
    :ivar waiting: the number of gangs that wait there; None as for `position`.
    :ivar expected_start: the time at which it is expected to start; None where that is not known.
    :ivar starts_by: the time for which its room is reserved; None without a reservation.
    :ivar needs: what it needs to start, by resource; None where that is not known.
    :ivar holds: what it holds, by resource; None while it holds nothing.
    :ivar on_hold: what keeps it on hold, and how to resume it; None where nothing does.
    :ivar unknown: what you may not read, and what that means for the answer.
    :ivar data: the entry as `muster explain -o json` prints it.
    """

    kind: str
    namespace: str
    name: str
    state: str
    message: str
    queue: str
    position: int | None
    waiting: int | None
    expected_start: datetime | None
    starts_by: datetime | None
    needs: Mapping[str, str] | None
    holds: Mapping[str, str] | None
    on_hold: str | None
    unknown: tuple[str, ...]
    data: Mapping[str, Any] = field(repr=False)

    @property
    def waits(self) -> bool:
        """True if the gang may not start yet."""
        return self.state in BEFORE_ADMISSION

    @property
    def admitted(self) -> bool:
        """True if the gang may start, runs, or has ended."""
        return self.state in _STARTED

    @property
    def running(self) -> bool:
        """True if the gang runs, or has ended."""
        return self.state in _RAN

    @property
    def finished(self) -> bool:
        """True if the workload has ended, whether well or not."""
        return self.state == GangState.FINISHED

    def __repr__(self) -> str:
        return _lines([f"{self.kind} {_of(self.namespace, self.name)}: {self.state or 'no state yet'}", *self._more()])

    def _more(self) -> Iterable[str]:
        if self.message:
            yield f"  {self.message}"
        if self.position is not None:
            yield f"  position {self.position} of {self.waiting} in queue {self.queue}"
        if self.expected_start is not None:
            yield f"  expected to start at {_stamp(self.expected_start)}"
        if self.on_hold:
            yield f"  {self.on_hold}"
        yield from (f"  unknown: {one}" for one in self.unknown)

    def _repr_html_(self) -> str:
        place = f"{self.position} of {self.waiting}" if self.position is not None else ""
        start = _stamp(self.expected_start) if self.expected_start is not None else ""
        rows = {
            "workload": f"{self.kind} {_of(self.namespace, self.name)}",
            "state": self.state or "no state yet",
            "message": self.message,
            "queue": self.queue,
            "position": place,
            "expected start": start,
            "needs": _amounts(self.needs),
            "holds": _amounts(self.holds),
            "on hold": self.on_hold or "",
            "unknown": "; ".join(self.unknown),
        }
        return _table((), [(name, text) for name, text in rows.items() if text])


@dataclass(frozen=True, slots=True)
class Queue:
    """A queue, with its usage and the number of its gangs.

    :ivar name: its name.
    :ivar parent: the queue above it; "" for none.
    :ivar depth: the number of queues above it.
    :ivar state: its state, such as Open or Closed.
    :ivar limit: what its gangs may hold together, by resource; a resource without a limit is not there.
    :ivar used: what its gangs hold, by resource; None where you may not read all gangs.
    :ivar gangs: the number of gangs that hold a claim there.
    :ivar waiting: the number of gangs that wait there.
    :ivar on_hold_by: the queue that keeps gangs there from starting: itself, or one above it; None for none.
    :ivar problems: what in the queue cannot be read.
    :ivar data: the entry as `muster queues -o json` prints it.
    """

    name: str
    parent: str
    depth: int
    state: str
    limit: Mapping[str, str]
    used: Mapping[str, str] | None
    gangs: int
    waiting: int
    on_hold_by: str | None
    problems: tuple[str, ...]
    data: Mapping[str, Any] = field(repr=False)

    def __repr__(self) -> str:
        hold = f", on hold by {self.on_hold_by}" if self.on_hold_by else ""
        counts = f"{self.gangs} running, {self.waiting} waiting"
        return printable(f"queue {self.name}: {self.state}, {counts}, used {_usage(self)}{hold}")

    def _repr_html_(self) -> str:
        return Queues([self])._repr_html_()


class Verdicts(list[Verdict]):
    """A list of verdicts.

    :ivar notes: remarks on the input: objects that muster does not handle, and what could not be checked.
    """

    notes: tuple[str, ...]

    def __init__(self, verdicts: Iterable[Verdict] = (), notes: Sequence[str] = ()) -> None:
        super().__init__(verdicts)
        self.notes = tuple(notes)

    @property
    def allowed(self) -> bool:
        """True if the webhook would refuse none of them."""
        return all(one.allowed for one in self)

    def raise_for_refusals(self) -> None:
        """Raise RefusedError if the webhook would refuse one of them."""
        refused = [one for one in self if not one.allowed]
        if refused:
            text = "\n".join(f"{one.subject} is refused: {one.message}" for one in refused)
            raise RefusedError(text, [finding for one in refused for finding in one.refusals])

    def __repr__(self) -> str:
        return "\n".join(map(repr, self)) or "no workloads"

    def _repr_html_(self) -> str:
        rows = [
            (
                one.subject,
                one.answer,
                str(one.min_member or ""),
                one.queue,
                "; ".join(filter(None, [one.message, *(f"warning: {found.message}" for found in one.warnings)])),
            )
            for one in self
        ]
        return _table(("workload", "answer", "pods together", "queue", "message"), rows)


class Queues(list[Queue]):
    """The queues of a cluster, parents before their children.

    :ivar unknown: what you may not read, and what that means for the numbers.
    """

    unknown: tuple[str, ...]

    def __init__(self, queues: Iterable[Queue] = (), unknown: Sequence[str] = ()) -> None:
        super().__init__(queues)
        self.unknown = tuple(unknown)

    def __repr__(self) -> str:
        return "\n".join(f"{'  ' * one.depth}{one!r}" for one in self) or "no queues"

    def _repr_html_(self) -> str:
        rows = [
            ("\N{NO-BREAK SPACE}" * 4 * one.depth + one.name, one.state, str(one.gangs), str(one.waiting), _usage(one))
            for one in self
        ]
        return _table(("queue", "state", "running", "waiting", "used"), rows)


def verdict_of(data: Mapping[str, Any]) -> Verdict:
    """The verdict of an entry of `muster plan -o json`."""
    workload, answer, intent, group = data["workload"], data["verdict"], data["intent"], data["podGroup"]
    return Verdict(
        kind=workload["kind"],
        namespace=workload["namespace"],
        name=workload["name"],
        allowed=answer["allowed"],
        managed=answer["managed"],
        message=answer["message"],
        refusals=tuple(Finding(**one) for one in answer["refusals"]),
        warnings=tuple(Finding(**one) for one in answer["warnings"]),
        queue=intent["queue"] if intent else "",
        min_member=sum(role["minMember"] for role in data["roles"]),
        pod_group=group,
        data=data,
    )


def gang_of_entry(data: Mapping[str, Any]) -> Gang:
    """The gang of an entry of `muster explain -o json`."""
    scheduling, position, when = (data[key] for key in ("scheduling", "position", "when"))
    return Gang(
        **data["workload"],
        state=str(data["state"]),
        message=data["message"],
        queue=scheduling["queue"] if scheduling else "",
        position=position["position"] if position else None,
        waiting=position["waiting"] if position else None,
        expected_start=_time(when["expected"]) if when else None,
        starts_by=_time(when["startsBy"]) if when else None,
        needs=data["needs"],
        holds=data["holds"],
        on_hold=data["onHold"],
        unknown=tuple(data["unknown"]),
        data=data,
    )


def queue_of_entry(data: Mapping[str, Any]) -> Queue:
    """The queue of an entry of `muster queues -o json`."""
    same = ("name", "parent", "depth", "state", "limit", "used", "gangs", "waiting")
    return Queue(
        **{name: data[name] for name in same},
        on_hold_by=data["onHoldBy"],
        problems=tuple(data["problems"]),
        data=data,
    )


def _lines(lines: Iterable[str]) -> str:
    return "\n".join(map(printable, lines))


def _of(namespace: str, name: str) -> str:
    return f"{namespace}/{name}" if namespace else name


def _time(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None


def _stamp(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def _amounts(amounts: Mapping[str, str] | None) -> str:
    return ", ".join(f"{name} {amount}" for name, amount in (amounts or {}).items())


def _usage(queue: Queue) -> str:
    if queue.used is None:
        return "unknown"
    used = [f"{name} {queue.used.get(name, '0')} of {limit}" for name, limit in queue.limit.items()]
    return ", ".join([*used, *(f"{name} {amount}" for name, amount in queue.used.items() if name not in queue.limit)])


def _table(headers: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    head = "".join(f"<th>{escape(text)}</th>" for text in headers)
    cell = '<td style="text-align:left">{}</td>'
    body = "".join(f"<tr>{''.join(cell.format(escape(text)) for text in row)}</tr>" for row in rows)
    return f"<table>{f'<thead><tr>{head}</tr></thead>' if headers else ''}<tbody>{body}</tbody></table>"
