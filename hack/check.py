"""Runs tests: `python -m hack.check {quick,test,all} [pytest options]`, for `make check`, `make test`, `make test-all`.

`quick` is what needs no control plane, on all cores. `test` is all else but the tests marked `long`, `all` is all else.
The first two draw a quarter of the random examples, all of them where MUSTER_EXAMPLES=all, as `make test-all` has it.
A few pytests run side by side, because most tests wait for clusters most of the time. Each starts a control plane or
two; the long ones begin, and each of the others starts where another has ended. How many there are at a time depends
on the machine and on its other work (`hack.room`). Tests of the MPI operator, which has a port compiled in, run one
after another. Every line begins with the name of its pytest; the last ones name every test that failed, because readers
of a long log see its end. The exit code is 0 when all have passed; no test gets a second attempt.

`make test` does not build the schedulers and admitters of `SMOKE`. Of each it runs one story where the programs are
there, and names at the start and at the end those that are not; `make test-all` builds them all.

MUSTER_WITHOUT_NODE=1 leaves out what needs a real node, on a machine that cannot run one, and says so at the start and
at the end; where CI is set it is an error.
"""

import os
import re
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path

from hack.part import Part, table
from hack.room import Machine
from hack.testbed.build import binaries, binary_path, is_finished
from hack.testbed.kubernetes import DEFAULT_KUBERNETES
from hack.testbed.parts import PARTS, select
from hack.testbed.schemas import schemas
from hack.testbed.toolchain import find_go

_TESTS = Path("tests")
_NODE = _TESTS / "node"
QUICK = (_TESTS / "unit", _TESTS / "chart", _TESTS / "docs")
"""The tests of `make check`."""
# The programs that the chart's tests run.
_PROGRAMS = ("helm", "kubeconform", "cyclonus")
_SWITCH = "MUSTER_WITHOUT_NODE"
LEFT_OUT = f"{_SWITCH} is set: {_NODE}, muster in pods on a real node, is NOT tested"
SMOKE = {
    "coscheduling": (["coscheduling"], DEFAULT_KUBERNETES),
    "native": ([], "1.37"),
    "kueue": (["kueue"], DEFAULT_KUBERNETES),
}
"""Add-ons and version of Kubernetes of a testbed, by the mark of its one story of muster."""
# The parts in the order in which they start: the long ones first, and last what never waits.
_PARTS = (
    *("node", "clusters", "bare", "operators", "time", "kinds", "others", "commands", "faults", "processes"),
    *("replicas", "conformance", "apiserver", "image"),
)
# The part of a folder's files, but for those with a mark of their own: `pytestmark = pytest.mark.part("time")`.
_OF_FOLDERS = {
    **{name: name for name in ("node", "faults", "conformance", "apiserver", "image")},
    "e2e": "clusters",
    "testbed": "operators",
}
_MARK = re.compile(r'^pytestmark = .*?pytest\.mark\.part\("(\w+)"\)', re.MULTILINE | re.DOTALL)
# Both need the MPI operator.
_LANES = {"conformance": "operators"}
# Between two looks whether there is room for one more.
_LOOK_SECONDS = 5.0


def quick(more: Sequence[str] = ()) -> list[Part]:
    """Return the one pytest that needs no control plane: a worker for each core, and one for while others wait.

    A file's tests stay together, for they share modules and fixtures, but at the end, where one worker helps another.
    """
    workers = (f"--numprocesses={(os.cpu_count() or 1) + 1}", "--dist=worksteal", "--quiet")
    return [Part("check", [*workers, *more], [*map(str, QUICK)])]


def parts(
    more: Sequence[str] = (), *, node: bool = True, everything: bool = True, without: Sequence[str] = ()
) -> list[Part]:
    """Return all other pytests, each with the options `more`.

    Together they run every test that `quick` does not, but for the node's without `node`, and without `everything` for
    those marked `long` or with a mark of `without`.
    """
    files: dict[str, list[str]] = {name: [] for name in _PARTS}
    # The testbed's own tests come first: they start and end control planes, and the others keep one to the end.
    for file in sorted(_TESTS.rglob("test_*.py"), key=lambda file: (file.parts[1] != "testbed", file)):
        if not any(file.is_relative_to(folder) for folder in (QUICK if node else (*QUICK, _NODE))):
            mark = _MARK.search(file.read_text())
            files[mark[1] if mark else _OF_FOLDERS.get(file.parts[1], "others")].append(str(file))
    # One line for each test, where some take a minute.
    chosen = " and ".join(f"not {mark}" for mark in ("long", *without))
    options = ["-v", *([] if everything else ["-m", chosen]), *more]
    # A pytest without paths would run every test there is.
    return [Part(name, options, files[name], lane=_LANES.get(name, name)) for name in _PARTS if files[name]]


def unbuilt() -> list[str]:
    """Return the marks of `SMOKE` whose programs are not built, all of them or some."""
    go = find_go()
    usual = select([])
    return [
        mark
        for mark, (addons, kubernetes) in SMOKE.items()
        if not all(is_finished(binary_path(part, go)) for part in select(addons, kubernetes) if part not in usual)
    ]


def _with_node(environment: Mapping[str, str]) -> bool:
    if not environment.get(_SWITCH):
        return True
    if environment.get("CI"):
        sys.exit(f"{_SWITCH} is for a developer's own machine, and CI is set: unset {_SWITCH}")
    return False


def lanes(chosen: Sequence[Part]) -> list[list[Part]]:
    """Return the parts in groups of those that run one after another, in their order."""
    found: dict[str, list[Part]] = {}
    for part in chosen:
        found.setdefault(part.lane or part.name, []).append(part)
    return [*found.values()]


def run(chosen: Sequence[Part]) -> bool:
    """Run these parts in this order, side by side as there is room; print what failed and what it cost.

    Returns whether all passed.
    """
    started, machine = time.monotonic(), Machine()

    def one_by_one(lane: Sequence[Part]) -> None:
        for part in lane:
            part.run()

    running: set[Future[None]] = set()
    with ThreadPoolExecutor(len(chosen)) as pool:
        for lane in lanes(chosen):
            while len(running) >= machine.room(len(running)):
                ended, running = wait(running, _LOOK_SECONDS, FIRST_COMPLETED)
                for one in ended:
                    one.result()
            running.add(pool.submit(one_by_one, lane))
    for one in running:
        one.result()
    costs = table(chosen, time.monotonic() - started, machine.share_of_others())
    print("\n".join([*costs, *_last_words(chosen)]))
    print(f"== {', '.join(part.outcome() for part in chosen)}, after {time.monotonic() - started:.0f} s", flush=True)
    return all(part.code == 0 for part in chosen)


def _last_words(chosen: Sequence[Part]) -> Iterator[str]:
    """Lines for tests that were left out, and for failures."""
    if left := sum(part.left for part in chosen):
        yield f"== left to `make test-all`: {left} tests, marked `long` or of programs that are not built"
    for part in chosen:
        for line in part.failed:
            yield f"{part.name:<11}| {line}"


def main() -> None:
    """Run what was asked for and exit."""
    _, what, *more = sys.argv
    if what != "all":
        os.environ.setdefault("MUSTER_EXAMPLES", "few")
    if what == "quick":
        # The first time they are built, which pytest would hide.
        binaries([PARTS[name] for name in _PROGRAMS], print)
        schemas(print)
        sys.exit(not run(quick(more)))
    node, everything = _with_node(os.environ), what == "all"
    without = [] if everything else unbuilt()
    left_out = [] if node else [f"== {LEFT_OUT}"]
    left_out += [
        f"== {mark} is NOT tested: its programs are not built, `make build-backends` does so" for mark in without
    ]
    for line in left_out:
        print(line, flush=True)
    passed = run(parts(more, node=node, everything=everything, without=without))
    for line in left_out:
        print(line)
    sys.exit(not passed)


if __name__ == "__main__":
    main()
