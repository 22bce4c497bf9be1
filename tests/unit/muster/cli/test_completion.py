"""The completion scripts know every command and option, as the shells see them."""

import argparse
import os
import subprocess

import pytest
import shtab

from muster.cli import parser
from muster.cli.completion import completions, script
from tests.support.cases import cases
from tests.support.cli.command import Command

_SHELLS = ("bash", "zsh", "fish")
_FILES = {"filename", "kubeconfig", "values"}


def _with_files(one: argparse.ArgumentParser) -> argparse.ArgumentParser:
    """The parser, with the options that take a file marked as shtab wants it."""
    for action in one._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                _with_files(command)
        elif action.dest in _FILES:
            vars(action)["complete"] = shtab.FILE
    return one


@cases(
    "words, found, files",
    ("commands", ["ga"], ["gangs"], False),
    ("all commands", [""], ["plan", "explain", "queues"], False),
    ("options", ["gangs", "--wa"], ["--waiting"], False),
    ("options of muster itself", ["--ver"], ["--version"], False),
    ("after another option", ["queues", "-A", "--out"], ["--output"], False),
    ("a choice", ["queues", "-o", "j"], ["json"], False),
    ("a choice behind =", ["queues", "--output=y"], ["--output=yaml"], False),
    ("a positional choice", ["completion", "z"], ["zsh"], False),
    ("files", ["plan", "-f", "dir"], [], True),
    ("a kubeconfig", ["queues", "--kubeconfig", ""], [], True),
    ("free text", ["explain", "raycluster/"], [], False),
)
def test_kubectl_gets_what_completes_a_word(words: list[str], found: list[str], *, files: bool) -> None:
    """Names with their meaning behind a tab, and whether files complete the rest, as cobra's programs say it."""
    *lines, directive = completions(words)
    assert [line.partition("\t")[0] for line in lines][: len(found)] == found
    assert (bool(lines), directive) == (bool(found), ":0" if files else ":4")


@pytest.mark.parametrize("shell", _SHELLS)
def test_the_script_is_what_shtab_writes(command: Command, shell: str) -> None:
    """`MUSTER_REWRITE=1` writes it. A change of a command or an option changes all three."""
    written = shtab.complete(_with_files(parser()), shell=shell).rstrip() + "\n"
    if os.environ.get("MUSTER_REWRITE"):
        script(shell).write_text(written)
    assert script(shell).read_text() == written, "run this test with MUSTER_REWRITE=1"
    assert command.run("completion", shell).out == written


@cases(
    "words, found",
    ("a command", ["muster", "rel"], ["release"]),
    ("an option", ["muster", "queues", "--conn"], ["--connect-timeout"]),
    ("a choice", ["muster", "audit", "--validation", "d"], ["deny"]),
    ("a positional choice", ["muster", "completion", "z"], ["zsh"]),
)
def test_bash_completes(words: list[str], found: list[str]) -> None:
    """A real bash, with what readline would hand to the function."""
    line = " ".join(words)
    asked = (
        f"source {script('bash')}\n"
        f"COMP_WORDS=({line}); COMP_CWORD={len(words) - 1}; COMP_LINE='{line}'; COMP_POINT={len(line)}\n"
        'function_of() { complete -p muster | sed -E "s/.*-F ([^ ]+) .*/\\1/"; }\n'
        f'"$(function_of)" muster {words[-1]} {words[-2]}\n'
        'printf "%s\\n" "${COMPREPLY[@]}"\n'
    )
    done = subprocess.run(["bash", "-c", asked], capture_output=True, text=True, check=True)
    assert done.stdout.split() == found
