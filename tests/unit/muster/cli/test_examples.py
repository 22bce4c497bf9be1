"""The examples of `--help` work: each is a command that there is, with options that it has."""

import argparse
import json
import shlex
from pathlib import Path

import pytest

from muster.cli import parser
from muster.cli.examples import EXAMPLES
from tests.support.cli.command import Command

CHECKOUT = Path(__file__).parents[4]
_PUNCTUATION = set("|<>()")
ALL = [(name, line) for name, examples in EXAMPLES.items() for line in examples]


def words(line: str) -> list[str]:
    """What a shell would hand to muster: up to a pipe, a redirection, or the end of a substitution."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    found = list(lexer)
    found = found[found.index("muster") + 1 :]
    end = next((at for at, word in enumerate(found) if set(word) <= _PUNCTUATION), len(found))
    return found[:end]


def test_every_command_has_examples() -> None:
    (commands,) = (one.choices for one in parser()._actions if isinstance(one, argparse._SubParsersAction))
    assert set(EXAMPLES) == set(commands)
    assert all(EXAMPLES.values())


@pytest.mark.parametrize(("name", "line"), ALL, ids=[line for _, line in ALL])
def test_every_example_is_one_of_its_command(name: str, line: str) -> None:
    """One that is none makes the parser exit."""
    assert parser().parse_args(words(line)).command == name


@pytest.mark.parametrize("name", EXAMPLES)
def test_help_ends_with_the_examples_line_by_line(command: Command, name: str) -> None:
    shown = command.run(name, "--help").out
    _, _, examples = shown.partition("\nexamples:\n")
    assert examples.splitlines() == [
        text for line, purpose in EXAMPLES[name].items() for text in (f"  # {purpose}", f"  {line}")
    ]
    assert max(map(len, examples.splitlines())) <= 80, "wider than a terminal"


def test_the_example_of_a_plan_shows_a_gang(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(CHECKOUT / "docs" / "examples")
    first = next(iter(EXAMPLES["plan"]))
    done = command.run(*words(first), "-o", "json")
    (entry,) = json.loads(done.out)
    assert (done.code, entry["podGroup"]["spec"]["minMember"]) == (0, 3)


@pytest.mark.parametrize("line", list(EXAMPLES["completion"]))
def test_the_examples_of_a_completion_print_a_script(command: Command, line: str) -> None:
    done = command.run(*words(line))
    assert (done.code, "migrate-queues" in done.out) == (0, True)
