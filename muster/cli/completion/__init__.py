"""Completion: scripts of the shells, which shtab writes from the options of the commands, and answers for kubectl."""

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from muster.cli.commands import parser
from muster.cli.ui import as_long_as_read

# What kubectl makes of the answers (cobra's ShellCompDirective): files complete what has none, or nothing does.
_FILES, _NO_FILES = ":0", ":4"
_OF_FILES = ("FILE", "KUBECONFIG", "LOG")


def script(shell: str) -> Path:
    """The file with the completion script of `bash`, `zsh` or `fish`."""
    return Path(__file__).with_name(f"muster.{shell}")


def run(arguments: argparse.Namespace) -> int:
    """The exit code of `muster completion`."""
    with as_long_as_read():
        sys.stdout.write(script(arguments.shell).read_text())
    return 0


def complete() -> None:
    """Answer kubectl, which runs this with the words of `kubectl muster …`, the last of them unfinished."""
    with as_long_as_read():
        print("\n".join(completions(sys.argv[1:])))


def completions(words: Sequence[str]) -> list[str]:
    """The words that may stand in place of the last one, each with its meaning, and what kubectl makes of them."""
    *before, last = words or [""]
    top = parser()
    commands = next(one for one in top._actions if isinstance(one, argparse._SubParsersAction))  # noqa: SLF001
    chosen = next((commands.choices[word] for word in before if word in commands.choices), None)
    if chosen is None:
        meanings = {one.dest: one.help or "" for one in commands._choices_actions}  # noqa: SLF001
        if last.startswith("-"):
            meanings = {name: one.help or "" for name, one in top._option_string_actions.items()}  # noqa: SLF001
        return [*_described((name, meanings[name]) for name in meanings if name.startswith(last)), _NO_FILES]
    name, equals, text = last.partition("=")
    option = chosen._option_string_actions.get(name if equals else (before or [""])[-1])  # noqa: SLF001
    if option is not None and option.nargs != 0:
        # An option waits for its value.
        start = f"{name}=" if equals else ""
        found = [f"{start}{one}" for one in option.choices or () if str(one).startswith(text if equals else last)]
        return [*found, _FILES if (option.metavar or option.dest.upper()) in _OF_FILES else _NO_FILES]
    if last.startswith("-"):
        options = chosen._option_string_actions.items()  # noqa: SLF001
        return [*_described((name, one.help or "") for name, one in options if name.startswith(last)), _NO_FILES]
    positional = next((one for one in chosen._actions if not one.option_strings), None)  # noqa: SLF001
    if positional is None:
        return [_NO_FILES]
    found = [str(one) for one in positional.choices or () if str(one).startswith(last)]
    return [*found, _FILES if positional.metavar in _OF_FILES else _NO_FILES]


def _described(found: Iterator[tuple[str, str]]) -> list[str]:
    return [f"{name}\t{meaning.partition(';')[0]}" for name, meaning in found]
