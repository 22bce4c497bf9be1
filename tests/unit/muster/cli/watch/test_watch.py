"""What `muster watch` shows: on a screen of any size, as plain text, and of a connection that is lost and found."""

import io
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from itertools import pairwise

import pytest
from rich.console import Console

from muster.cli.page.state import PageState
from muster.cli.queues.screen import Screen
from muster.cli.queues.watch import Changes, PlainDisplay, display
from muster.cli.snapshot import ClusterSnapshot, Followed
from muster.cluster.cluster import Cluster
from muster.model.names import MESSAGE, STATE
from muster.model.objects import PodGroup
from muster.model.texts import printable
from muster.model.times import minute_of
from muster.queueing.entries import Claim
from muster.queueing.ledger import EndKind, GangKey, Run
from tests.support.cases import cases
from tests.support.cli.command import Command
from tests.support.cli.connections import kubeconfig, refusing_port
from tests.support.controller.stores import filled
from tests.support.faults.apiserver import FaultyApiserver
from tests.support.manifests.gangs import gangs, limited
from tests.support.manifests.observed import made, pod_group, ray_owner

NOW = 1_800_000_000.0
HOSTILE = "waits [bold red]for\x1b[2J ever[/]"


class Terminal(io.StringIO):
    """Text that a terminal with colours gets."""

    encoding = "utf-8"

    def isatty(self) -> bool:
        """Whether it is a terminal."""
        return True

    def fileno(self) -> int:
        """Raises OSError: nobody knows how wide it is."""
        raise OSError


def cluster(many: int = 1) -> Cluster:
    waits = gangs([f"wait-{number:02}" for number in range(many)], state="WaitingForQuota", message=HOSTILE)
    runs = gangs(["run"], state="Running", message="cpu 3 of queue q")
    workloads, pods, groups = ([*waiting, *running] for waiting, running in zip(waits, runs, strict=True))
    queues = [limited("org", cpu="8"), limited("q", "org", cpu="4")]
    return filled(workloads=workloads, pods=pods, groups=groups, queues=queues)


class Shown:
    """A state that nobody changes but the test, and what is shown of it."""

    def __init__(self, state: PageState, visible: ClusterSnapshot) -> None:
        self.state = state
        self.visible = visible
        self.history = Changes(lambda: NOW)

    def say(self, gang: str, state: str) -> None:
        """The controller reports a state."""
        group = pod_group(f"ray-{gang}-pg", owner=ray_owner(gang), queue="q", annotations={STATE: state, MESSAGE: "so"})
        self.visible.cluster.pod_groups.of("volcano").apply("modified", made(PodGroup, group))

    def screen(self, columns: int = 120, rows: int = 30) -> list[str]:
        """The screen of a terminal of that size."""
        out = io.StringIO()
        console = Console(file=out, width=columns, height=rows, force_terminal=True, no_color=True, markup=False)
        console.print(Screen(console, out).of(self.state, self.history))
        text = out.getvalue()
        assert "\x1b[2J" not in text
        return [line.rstrip() for line in _bare(text).splitlines()]


def _bare(text: str) -> str:
    """Without the sequences for bold and dim."""
    for code in ("0", "1", "2", "31", "1;31"):
        text = text.replace(f"\x1b[{code}m", "")
    return text


@pytest.fixture
async def shown() -> AsyncIterator[Shown]:
    async with FaultyApiserver.serving() as apiserver, apiserver.client() as client:
        visible = ClusterSnapshot(cluster())
        state = PageState(client, Followed(visible, []))
        await state.refresh()
        yield Shown(state, visible)


async def test_the_screen_has_the_tree_who_waits_and_why_and_who_runs(shown: Shown) -> None:
    lines = shown.screen()
    text = "\n".join(lines)
    assert lines[0].startswith("muster watch  ")
    assert lines[1].split()[:3] == ["QUEUE", "STATE", "GANGS"]
    found = [
        text.index(word) for word in ("org ", "\nWAITING", "\nraycluster/wait-00", "\nRUNNING", "\nraycluster/run ")
    ]
    assert found == sorted(found)
    (waits,) = [line for line in lines if line.startswith("raycluster/wait-00")]
    assert "1 of 1" in waits
    assert "[bold red]for" in waits, "text of the cluster is no markup"


@pytest.mark.parametrize(("columns", "rows"), [(40, 10), (80, 24), (200, 50)])
async def test_a_screen_fits_its_terminal(columns: int, rows: int) -> None:
    async with FaultyApiserver.serving() as apiserver, apiserver.client() as client:
        visible = ClusterSnapshot(cluster(60))
        state = PageState(client, Followed(visible, []))
        await state.refresh()
        lines = Shown(state, visible).screen(columns, rows)
    assert len(lines) <= rows
    assert max(map(len, lines)) <= columns


@cases("many, rows", ("all could stand there", 120, 400), ("too many", 300, 250))
async def test_a_heading_says_how_many_rows_stand_below_it(many: int, rows: int) -> None:
    """Also on a terminal that has room for more than there are rows for."""
    workloads, pods, groups = gangs([f"run-{number:03}" for number in range(many)], state="Running")
    visible = ClusterSnapshot(filled(workloads=workloads, pods=pods, groups=groups, queues=[limited("q", cpu="4")]))
    async with FaultyApiserver.serving() as apiserver, apiserver.client() as client:
        state = PageState(client, Followed(visible, []))
        await state.refresh()
        lines = Shown(state, visible).screen(120, rows)
    shown = sum(line.startswith("raycluster/run-") for line in lines)
    assert f"RUNNING  {shown} of {many}  in namespace team" in lines


async def test_the_last_changes_are_told(shown: Shown) -> None:
    shown.history.seen(shown.state)
    shown.say("wait-00", "Admitted")
    await shown.state.refresh()
    shown.history.seen(shown.state)
    assert [one.what for one in shown.history.last(9)] == ["team raycluster/wait-00: WaitingForQuota -> Admitted"]
    assert any("team raycluster/wait-00: WaitingForQuota -> Admitted" in line for line in shown.screen())


async def test_a_start_that_is_planned_or_moves_is_a_change(shown: Shown) -> None:
    shown.history.seen(shown.state)
    told = ["WaitingForQuota"]
    for seconds in (60.0, 120.0):
        await shown.state.refresh()
        ledger, now = shown.state.snapshot.ledger, shown.state.snapshot.now
        waits = ledger.candidate(GangKey("team", "ray-wait-00-pg"))
        assert waits is not None
        ledger.wait(replace(waits, passed_since=0.0))
        ledger.hold(Claim(GangKey("team", "ray-run-pg"), "q", waits.need, end=Run(seconds, EndKind.SAID).from_(now)))
        shown.history.seen(shown.state)
        told.append(f"WaitingForQuota, planned for {minute_of(now + seconds)}, if what runs ends as it says")
    changes = [f"team raycluster/wait-00: {old} -> {new}" for old, new in pairwise(told)]
    assert [one.what for one in shown.history.last(9)] == changes[::-1]


async def test_a_lost_connection_is_told_once_and_so_is_its_return(shown: Shown) -> None:
    for _ in range(3):
        shown.history.logged("watch.retry", "pods: connection reset; resuming in 0.8 s")
    assert "not up to date" in shown.screen()[0]
    for _ in range(3):
        shown.history.seen(shown.state)
    assert [one.what for one in shown.history.last(9)] == [
        "connected again",
        "connection lost: pods: connection reset; resuming in 0.8 s",
    ]
    assert "not up to date" not in shown.screen()[0]


async def test_plain_text_is_printed_when_something_has_changed(shown: Shown) -> None:
    out = io.StringIO()
    plain = PlainDisplay(out)
    for _ in range(2):
        shown.history.seen(shown.state)
        plain.show(shown.state, shown.history)
    first = out.getvalue()
    rows = [line.split()[:4] for line in first.splitlines()]
    waits, runs = ["team", "raycluster/wait-00", "q", "1"], ["team", "raycluster/run", "q", "-"]
    assert rows.index(waits) < rows.index(runs)
    assert first.count("raycluster/run ") == 1, "the same is not printed twice"
    assert "\x1b" not in first
    shown.say("wait-00", "Admitted")
    await shown.state.refresh()
    shown.history.seen(shown.state)
    plain.show(shown.state, shown.history)
    more = out.getvalue().removeprefix(first).splitlines()
    assert more[-1] == "(team raycluster/wait-00: WaitingForQuota -> Admitted)"


async def test_a_terminal_without_rich_gets_the_tree_in_colours(shown: Shown, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    out = Terminal()
    shown.history.logged("", HOSTILE)
    PlainDisplay(out).show(shown.state, shown.history)
    assert "\x1b[32m" in out.getvalue()
    assert "\\x1b[32m" not in out.getvalue()
    assert out.getvalue().endswith(f"\n({printable(HOSTILE)})\n")
    assert "\x1b[2J" not in out.getvalue()


def test_without_rich_a_terminal_gets_plain_text(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As in muster's image."""
    monkeypatch.setitem(sys.modules, "rich.console", None)
    monkeypatch.delitem(sys.modules, "muster.cli.queues.screen")
    monkeypatch.setattr("muster.cli.queues.watch.clears", lambda _: True)
    with display() as show:
        assert getattr(show, "__func__", None) is PlainDisplay.show
    assert capsys.readouterr().err == "muster watch: plain text, for rich is not installed: pip install rich\n"


def test_queues_with_watch_is_watch_and_has_one_form(command: Command) -> None:
    with refusing_port() as port:
        done = command.run("queues", "--watch", f"--kubeconfig={command.file(kubeconfig(port))}")
    assert (done.code, done.err.startswith("muster queues: The connection to the server")) == (2, True)
    done = command.run("queues", "--watch", "-o", "json")
    assert (done.code, done.err.splitlines()[-1]) == (2, "muster: error: --watch: needs the output format table")
