"""The plan for people."""

import pytest

from muster.model.texts import printable
from muster.schedulers import PRODUCTS
from tests.support.cases import cases
from tests.support.cli.command import Command
from tests.support.cli.plan_entries import ENTRIES
from tests.support.cli.terminal import on_terminal

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

WORDY = NARROW.replace("replicas: 12", "replicas: -1")
"""It is refused in a long sentence."""


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


@pytest.mark.parametrize("scheduler", PRODUCTS)
def test_what_the_gang_needs_is_said_whichever_scheduler_places_it(command: Command, scheduler: str) -> None:
    """Not every PodGroup has fields for it: those of Kubernetes and of KAI have an annotation, and other words."""
    manifest, options = NARROW.replace("replicas: 12", "replicas: 2"), command.values(schedulers=[scheduler])
    table = command.plan(manifest, output="table", options=options).out
    assert "minMember 3, minResources cpu 4, memory 4Gi," in table
    _, row, *_ = command.plan(manifest, output="wide", options=options).out.splitlines()
    assert row.split()[5:10] == ["-", "3", "3", "cpu", "4,"]


def test_refusals_warnings_and_where_things_were_said_keep_to_80_columns_too(command: Command) -> None:
    said = command.plan(*(manifest for manifest, _ in ENTRIES.values()), NARROW.replace("cpu: 1,", ""), output="table")
    # Where files are the test's own matter.
    lines = said.out.replace(f"{command.folder}/", "").splitlines()
    assert [line for line in lines if len(line) > 80] == []
    assert not [line for line in lines if line.endswith(" ")]


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
    assert said.out.count("\n\n") == len(ENTRIES)
    assert '  refused (QueueNotFound): spec.queue: queue "gone" is not among the' in said.out


def plan_of_every_family(command: Command) -> list[str]:
    """The arguments of a plan with refusals and with allowed workloads."""
    paths = [command.file(manifest, f"{n}.yaml") for n, (manifest, _) in enumerate(ENTRIES.values())]
    return ["plan", *(word for path in paths for word in ("-f", path))]


@cases(
    "environment, coloured",
    ("a terminal", {"TERM": "xterm", "NO_COLOR": ""}, True),
    ("NO_COLOR", {"TERM": "xterm", "NO_COLOR": "1"}, False),
    ("a dumb terminal", {"TERM": "dumb"}, False),
)
def test_colours_are_for_terminals_that_show_them(
    command: Command, environment: dict[str, str], coloured: bool
) -> None:
    shown = on_terminal(*plan_of_every_family(command), environment=environment)
    assert shown.code == 1
    colours = {word: colour in shown.text for word, colour in (("red", "\x1b[31m"), ("green", "\x1b[32m"))}
    assert colours == {"red": coloured, "green": coloured}
    assert ("\x1b" in shown.text) is coloured
    assert "refused (QueueNotFound)" in shown.text.replace("\x1b[0m", "")


def test_a_pipe_has_no_colours(command: Command) -> None:
    assert "\x1b" not in command.run(*plan_of_every_family(command)).out


@pytest.mark.parametrize(("columns", "longest"), [(120, 120), (60, 60), (80, 80)])
def test_lines_are_as_wide_as_the_terminal(command: Command, columns: int, longest: int) -> None:
    shown = on_terminal("plan", "-f", command.file(WORDY), columns=columns, environment={"TERM": "dumb"})
    widths = sorted(len(line) for line in shown.text.splitlines())
    assert longest - 20 < widths[-1] <= longest


@cases(
    "text, shown",
    ("as it is", "plain text, größer", "plain text, größer"),
    ("lines and escapes", "a\nb\x1b[2Jc", "a\\nb\\x1b[2Jc"),
    ("text that turns round", "\u202egnp", "\\u202egnp"),
)
def test_what_would_play_tricks_on_a_terminal_is_shown_as_code(text: str, shown: str) -> None:
    assert printable(text) == shown


def test_tricks_in_a_manifest_do_not_reach_the_terminal(command: Command) -> None:
    said = command.plan(NARROW.replace("team-a", '"\\e[31mq\\n"'), output="table")
    assert "\x1b" not in said.out
    assert "\\x1b[31mq\\n" in said.out
