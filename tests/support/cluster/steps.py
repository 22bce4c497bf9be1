"""How much work of muster's a step of a scene took: a slowdown that no deadline shows, in units that load leaves alone.

Two units are counted from the end of one wait to the end of the next where that is a named step, and for a test as a
whole, all its waits together:

- *calls*: what muster's ServiceAccounts asked of the apiserver, renewals and looks at a lease left out, by the
  apiserver's own count of a priority level that only they have;
- *looks*: how often the controllers worked on a gang.

Others are left out. Seconds say how busy the machine is. CPU time of muster's processes
grows with the seconds, for idle processes poll and renew; so do calls for a lease. Versions of the cluster count
everybody's writes. Kinds of steps without a recorded median are shown and not judged: some take all of the work or none
of it, by what was waited for before.

What takes more than `_SLACK` times the recorded median and `_ROOM` more fails its test. It finds work that is done ten
times over (a loop, a cache that holds nothing, a gang that wakes all others), not waiting: a longer pause between two
looks shows in neither unit. Nor is it more for having waited longer: a call and a look a second are for clocks (nudges,
deadlines), and each change that the scene has on record may be looked at; a machine that is slow tells them one by one
where a fast one tells several at once, and Volcano writes every second of what it cannot place.
"""

from __future__ import annotations

import contextlib
import csv
import json
import os
import re
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from hack.testbed import PATIENCE, Testbed, TestbedError, wait_for
from hack.testbed.process import Process

MEDIANS = Path(__file__).parents[2] / "e2e" / "medians.json"
# Ten times the work is too much wherever the median is above 2.
_SLACK, _ROOM = 5, 10

# Muster's calls have a priority level of their own, so that the apiserver counts them; a lease's stay where they are.
_GROUP = "flowcontrol.apiserver.k8s.io/v1"
_LEVEL = "muster-counted"
_PRIORITY_LEVEL = {
    "apiVersion": _GROUP,
    "kind": "PriorityLevelConfiguration",
    "metadata": {"name": _LEVEL},
    "spec": {
        "type": "Limited",
        "limited": {
            "nominalConcurrencyShares": 100,
            "limitResponse": {
                "type": "Queue",
                "queuing": {"queues": 64, "handSize": 6, "queueLengthLimit": 50},
            },
        },
    },
}
_ACCOUNTS = [{"kind": "ServiceAccount", "serviceAccount": {"namespace": "muster-system", "name": "*"}}]


def _flow_schema(name: str, level: str, precedence: int, **rule: list[str]) -> dict[str, Any]:
    rules = [{"subjects": _ACCOUNTS, "resourceRules": [{"verbs": ["*"], "namespaces": ["*"], **rule}]}]
    spec = {"priorityLevelConfiguration": {"name": level}, "matchingPrecedence": precedence, "rules": rules}
    return {"apiVersion": _GROUP, "kind": "FlowSchema", "metadata": {"name": name}, "spec": spec}


_FLOW_SCHEMAS = (
    _flow_schema("muster-leases", "leader-election", 7000, apiGroups=["coordination.k8s.io"], resources=["leases"]),
    _flow_schema(_LEVEL, _LEVEL, 7001, apiGroups=["*"], resources=["*"]),
)
_LOOKS = re.compile(r"^muster_reconcile_duration_seconds_count (\S+)$", re.MULTILINE)


class Work(NamedTuple):
    """What muster did, in calls and looks."""

    calls: int = 0
    looks: int = 0

    def since(self, before: Work) -> Work:
        """What came after that; a count that began anew, with its process, is taken as it is."""
        return Work(*(now - then if now >= then else now for now, then in zip(self, before, strict=True)))

    def and_then(self, more: Work) -> Work:
        """Both together."""
        return Work(self.calls + more.calls, self.looks + more.looks)


_NOTHING = Work()


def too_much(work: Work, usual: Work | None, waited: Work = _NOTHING) -> str:
    """Say what of the work is far beyond the usual, with both numbers; "" where nothing is, or nothing is usual yet.

    `waited` is the work that the time that passed, and what others changed, are reason for.
    """
    beyond = [
        f"{took} {unit} where {known} are usual"
        for unit, took, known, more in zip(Work._fields, work, usual or work, waited, strict=True)
        if took > _SLACK * known + _ROOM + more
    ]
    return " and ".join(beyond)


class Meter:
    """Counts the work of the muster that runs as processes of a testbed; of one that runs in pods it sees nothing.

    `changes` tells how many changes of objects are on record until now.
    """

    def __init__(self, testbed: Testbed, changes: Callable[[], int]) -> None:
        self._testbed = testbed
        self._api = testbed.api()
        self._changes = changes
        self._looks: dict[int, int] = {}
        self.took = self.waited = _NOTHING
        if testbed.state not in _counted:
            self._begin()
            _counted.add(testbed.state)
        self._last, self._last_reason = self._read(), self._reason()
        _of_the_test.append(self)

    def step(self, kind: str) -> None:
        """End a step of this kind, "" for none. Raises AssertionError when it took far more than such steps use to."""
        now, reason = self._read(), self._reason()
        work, waited = now.since(self._last), reason.since(self._last_reason)
        self._last, self._last_reason = now, reason
        self.took, self.waited = self.took.and_then(work), self.waited.and_then(waited)
        if kind and self._controllers():
            _judge(kind, work, waited)

    def _reason(self) -> Work:
        seconds = int(time.monotonic())
        return Work(seconds, seconds + self._changes())

    def _begin(self) -> None:
        """Have the apiserver count muster's calls, from here on for all scenes of the testbed."""
        self._api.apply(f"/apis/{_GROUP}/prioritylevelconfigurations/{_LEVEL}", _PRIORITY_LEVEL)
        for schema in _FLOW_SCHEMAS:
            self._api.apply(f"/apis/{_GROUP}/flowschemas/{schema['metadata']['name']}", schema)
        wait_for("the apiserver to count muster's calls", lambda: self._rows().get(_LEVEL))

    def _read(self) -> Work:
        for process in self._controllers():
            # One that is just starting or ending has nothing to say.
            with contextlib.suppress(OSError, TestbedError):
                self._looks[process.pid] = _looks(process)
        return Work(self._calls(), sum(self._looks.values()))

    def _calls(self) -> int:
        return int(self._rows()[_LEVEL]["DispatchedRequests"])

    def _rows(self) -> dict[str, dict[str, str]]:
        answer = self._api("GET", "/debug/api_priority_and_fairness/dump_priority_levels", accept="*/*")
        rows = csv.DictReader(answer.message.splitlines(), skipinitialspace=True)
        return {row["PriorityLevelName"]: row for row in rows}

    def _controllers(self) -> list[Process]:
        processes = self._testbed.processes().values()
        return [process for process in processes if "-controller-host-" in process.name and process.alive()]


def _looks(process: Process) -> int:
    arguments = Path(f"/proc/{process.pid}/cmdline").read_text().split("\0")
    # The last one counts; the chart's own comes before it.
    port = [one.partition("=")[2] for one in ("=0", *arguments) if one.startswith(("=", "--health-port="))][-1]
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=PATIENCE) as answer:
        found = _LOOKS.search(answer.read().decode())
    return int(float(found[1])) if found else 0


@contextlib.contextmanager
def counted_with_the_test(name: str) -> Iterator[None]:
    """The body of a test of this name, with the folder of its file: judge the work of all waits of its scenes."""
    try:
        yield
        if _of_the_test:
            work = waited = _NOTHING
            for meter in _of_the_test:
                work, waited = work.and_then(meter.took), waited.and_then(meter.waited)
            _judge(name, work, waited)
    finally:
        _of_the_test.clear()


def _judge(kind: str, work: Work, waited: Work) -> None:
    _taken.setdefault(kind, []).append(work)
    beyond = too_much(work, _medians().get(kind), waited)
    assert not beyond, f"{kind}: muster took {beyond}"


# Of the scenes that were opened for a test, or in it.
_of_the_test: list[Meter] = []
# The state folders of the testbeds whose apiserver counts.
_counted: set[Path] = set()
# Of this run, by kind of step.
_taken: dict[str, list[Work]] = {}
_recorded: dict[str, Work] = {}


def _medians() -> dict[str, Work]:
    if not _recorded and MEDIANS.exists():
        _recorded.update({kind: Work(**work) for kind, work in json.loads(MEDIANS.read_text()).items()})
    return _recorded


def table() -> list[str]:
    """This run's steps: how often each was taken, and its median and most in both units beside the recorded median.

    Of tests those that have no recorded numbers, or took more than twice as much; the others are a count.
    """
    lines = [f"{'step':44} {'times':>5}  {'calls':>22}  {'looks':>22}"] if _taken else []
    quiet = 0
    for kind, works in sorted(_taken.items()):
        usual = _medians().get(kind)
        if _is_test(kind) and usual and all(now <= 2 * known for now, known in zip(works[-1], usual, strict=True)):
            quiet += 1
            continue
        units = []
        for index in range(len(Work._fields)):
            took = [work[index] for work in works]
            beside = str(usual[index]) if usual else "-"
            units.append(f"{median(took):g}, most {max(took)} ({beside})")
        lines.append(f"{kind:44} {len(works):>5}  {units[0]:>22}  {units[1]:>22}")
    if quiet:
        lines.append(f"{quiet} tests took at most twice what is recorded of them")
    return lines


def _is_test(kind: str) -> bool:
    return "::" in kind


def record() -> None:
    """With MUSTER_REWRITE=1, write down what this run's steps took of which nothing is recorded; the others stay.

    Several runs may end side by side: each adds to what the others have written.
    """
    if os.environ.get("MUSTER_REWRITE") and _taken:
        now = {
            kind: Work(*(round(median(unit)) for unit in zip(*works, strict=True))) for kind, works in _taken.items()
        }
        _recorded.clear()
        medians = {kind: work._asdict() for kind, work in sorted({**now, **_medians()}.items())}
        MEDIANS.write_text(json.dumps(medians, indent=1) + "\n")
