"""The plan for people."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from muster.model.texts import printable
from tests.support.cli.plan_entries import ENTRIES

if TYPE_CHECKING:
    from tests.support.cli.command import Command

NARROW = """\
apiVersion: ray.io/v1
kind: RayCluster
metadata: {name: demo, labels: {volcano.sh/queue-name: team-a}}
spec:
  headGroupSpec:
    template: {spec: {containers: [{name: h, resources: {requests: {cpu: 1, memory: 2Gi}}}]}}
  workerGroupSpecs:
    - groupName: w
      replicas: 12
      template: {spec: {containers: [{name: w, resources: {requests: {cpu: 1500m, memory: 1Gi, nvidia.com/gpu: 1}}}]}}
"""


def test_the_table_keeps_to_80_columns_where_names_allow_it(command: Command) -> None:
    lines = command.plan(NARROW, output="table").out.splitlines()
    assert [line for line in lines if len(line) > 80] == []
    assert lines[:9] == [
        "RayCluster default/demo",
        "  allowed: no Queue in the input: queue limits are not checked",
        "  scheduler  volcano  (default)",
        "  queue      team-a  (metadata.labels[volcano.sh/queue-name])",
        "  priority   -",
        "  PodGroup   ray-demo-pg: minMember 13, minResources cpu 19, memory 14Gi,",
        "             nvidia.com/gpu 12",
        "  ROLE       PODS  MIN  REQUESTS PER POD",
        "  headgroup     1    1  cpu 1, memory 2Gi",
    ]


def test_refusals_warnings_and_where_things_were_said_keep_to_80_columns_too(command: Command) -> None:
    said = command.plan(*(manifest for manifest, _ in ENTRIES.values()), NARROW.replace("cpu: 1,", ""), output="table")
    assert [line for line in said.out.splitlines() if len(line) > 80] == []
    assert not [line for line in said.out.splitlines() if line.endswith(" ")]


def test_a_name_wider_than_the_table_stays_whole(command: Command) -> None:
    name = "n" * 120
    out = command.plan(NARROW.replace("name: demo", f"name: {name}"), output="table").out
    assert f"RayCluster default/{name}\n" in out
    assert f"  PodGroup   ray-{name}-pg:\n             minMember 13, minResources" in out


def test_columns_are_aligned_whatever_the_names(command: Command) -> None:
    wide = NARROW.replace("groupName: w", "groupName: a-group-with-a-rather-long-name")
    lines = command.plan(wide, output="table").out.splitlines()
    start = lines.index(next(line for line in lines if line.startswith("  ROLE")))
    assert len({line.index("cpu") for line in lines[start + 1 : start + 3]} | {lines[start].index("REQUESTS")}) == 1


def test_every_entry_is_printed_with_a_line_between(command: Command) -> None:
    said = command.plan(*(manifest for manifest, _ in ENTRIES.values()), output="table")
    assert said.code == 1
    assert said.out.count("\n\n") == len(ENTRIES) - 1
    assert '  refused (QueueNotFound): spec.queue: queue "gone" does not exist' in said.out


@pytest.mark.parametrize("terminal", [False, True])
def test_colours_are_for_terminals_only(command: Command, terminal: bool) -> None:  # noqa: FBT001
    """A real terminal, as seen by the command: a pseudo terminal."""
    paths = [command.file(manifest, f"{n}.yaml") for n, (manifest, _) in enumerate(ENTRIES.values())]
    argv = [sys.executable, "-m", "muster.cli", "plan", *(word for path in paths for word in ("-f", path))]
    ours, theirs = pty.openpty() if terminal else os.pipe()
    with subprocess.Popen(argv, stdout=theirs) as process:
        os.close(theirs)
        shown = _read(ours)
        assert process.wait() == 1
    colours = {word: colour in shown for word, colour in (("red", "\x1b[31m"), ("green", "\x1b[32m"))}
    assert colours == {"red": terminal, "green": terminal}
    assert ("\x1b" in shown) is terminal
    assert "refused (QueueNotFound)" in shown.replace("\x1b[0m", "")


def _read(descriptor: int) -> str:
    parts = []
    try:
        while part := os.read(descriptor, 65536):
            parts.append(part)
    except OSError:
        # So a terminal says that nobody writes to it any more.
        pass
    finally:
        os.close(descriptor)
    return b"".join(parts).decode()


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        pytest.param("plain text, größer", "plain text, größer", id="as it is"),
        pytest.param("a\nb\x1b[2Jc", "a\\nb\\x1b[2Jc", id="lines and escapes"),
        pytest.param("\u202egnp", "\\u202egnp", id="text that turns round"),
    ],
)
def test_what_would_play_tricks_on_a_terminal_is_shown_as_code(text: str, shown: str) -> None:
    assert printable(text) == shown


def test_tricks_in_a_manifest_do_not_reach_the_terminal(command: Command) -> None:
    said = command.plan(NARROW.replace("team-a", '"\\e[31mq\\n"'), output="table")
    assert "\x1b" not in said.out
    assert "\\x1b[31mq\\n" in said.out
