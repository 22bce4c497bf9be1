"""What `muster record` writes of a ledger, and what `muster replay` makes of it."""

import io
from pathlib import Path

from muster.cli.replay.engine import parse_policy, replay
from muster.cli.replay.load import Load, read_load
from muster.cli.replay.record import Recorder
from muster.cli.snapshot import LedgerSnapshot
from muster.model.objects import Queue, convert
from muster.queueing.entries import Claim
from muster.queueing.forecast import start
from muster.queueing.ledger import Candidate, EndKind, GangKey, Ledger, Run
from muster.queueing.queue_tree import QueueTree
from muster.queueing.queue_view import read_queue
from muster.queueing.sources import GangQueue
from tests.support.manifests.observed import amounts

QUEUE = convert(
    {
        "metadata": {"name": "research", "annotations": {"muster.dev/patience": "1m", "note": "secret"}},
        "spec": {"capability": {"cpu": "4"}, "weight": 2},
        "status": {"state": "Open"},
    },
    Queue,
)
FIRST, SECOND = GangKey("team-a", "first"), GangKey("team-b", "second")


def recorded(path: Path) -> str:
    """A gang comes at 0, starts at 2 and ends at 100; a second one comes at 10, starts at 100 and still runs at 160."""
    out, ledger = io.StringIO(), Ledger()
    recorder = Recorder(out)

    def look(now: float) -> None:
        recorder.look([QUEUE], LedgerSnapshot(ledger, {}, now))

    ledger.set_queue(read_queue(QUEUE))
    ledger.wait(Candidate(FIRST, "research", 5, "0", amounts(cpu="4"), run=Run(120.0, EndKind.ENFORCED)))
    look(0)
    start(ledger, "research", 2)
    look(2)
    ledger.wait(Candidate(SECOND, "research", 0, "1", amounts(cpu="3")))
    look(10)
    ledger.forget(FIRST)
    start(ledger, "research", 100)
    look(100)
    look(160)
    ledger.wait(Candidate(GangKey("team-a", "late"), "research", 0, "2", amounts(cpu="3")))
    look(160)
    path.write_text(out.getvalue())
    return out.getvalue()


def test_a_record_is_replayed_as_it_was(tmp_path: Path) -> None:
    recorded(tmp_path / "day.jsonl")
    load = read_load(str(tmp_path / "day.jsonl"))
    (view,) = load.queues
    assert (view.limit, view.patience, view.weight, load.left_out) == (amounts(cpu="4"), 60.0, 2, 1)
    assert [(one.at, one.runs, one.limit, one.priority) for one in load.arrivals] == [
        (0, 98, 120, 5),
        (10, 60, None, 0),
    ]
    started = replay(load, parse_policy(""), lambda _: None).started
    assert [(one.gang.need["cpu"], one.at) for one in started] == [
        (amounts(cpu="4")["cpu"], 0),
        (amounts(cpu="3")["cpu"], 98),
    ]


def test_a_record_has_no_names_and_no_notes(tmp_path: Path) -> None:
    text = recorded(tmp_path / "day.jsonl")
    assert not [word for word in ("research", "team", "first", "second", "late", "secret") if word in text]
    assert text != recorded(tmp_path / "day.jsonl"), "each has a salt of its own"


def looks(path: Path, queue: Queue, *ledgers: tuple[float, Ledger]) -> Load:
    with path.open("w") as out:
        recorder = Recorder(out)
        for now, ledger in ledgers:
            recorder.look([queue], LedgerSnapshot(ledger, {}, now))
        recorder.finish(ledgers[-1][0] + 7)
    return read_load(str(path))


def test_a_gang_that_comes_again_or_another_one_of_its_name_is_a_run_of_its_own(tmp_path: Path) -> None:
    holds, waits, gone = Ledger(), Ledger(), Ledger()
    holds.hold(Claim(FIRST, "research", amounts(cpu="4")))
    waits.wait(Candidate(FIRST, "research", 5, "0", amounts(cpu="4")))
    at = ((0.0, holds), (10.0, waits), (15.0, holds), (20.0, gone), (30.0, holds))
    load = looks(tmp_path / "day.jsonl", QUEUE, *at)
    assert [(one.at, one.runs) for one in load.arrivals] == [(0, 10), (10, 5), (30, 7)]
    assert len({one.key for one in load.arrivals}) == 3


def test_what_the_nodes_can_give_is_the_capability_of_the_root(tmp_path: Path) -> None:
    ledger = Ledger()
    ledger.bound(amounts(cpu="96"))
    load = looks(tmp_path / "day.jsonl", QUEUE, (0.0, ledger))
    assert QueueTree(load.queues).limit("root") == amounts(cpu="96")


def test_the_namespaces_of_a_queue_are_not_written(tmp_path: Path) -> None:
    queue = convert(
        {"metadata": {"name": "q"}, "spec": {"namespaceSelector": {"matchLabels": {"team": "secret"}}}}, GangQueue
    )
    path = tmp_path / "day.jsonl"
    looks(path, queue, (0.0, Ledger()))
    assert "secret" not in path.read_text()
