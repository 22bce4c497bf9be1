"""docs/commands.md: every command with its options, as the parser and the man pages have them."""

import argparse
from collections.abc import Iterator

from muster.cli.commands import parser
from muster.cli.examples import EXAMPLES

_HEAD = """\
<!-- Written by MUSTER_REWRITE=1 pytest tests/docs/test_reference.py from the parser of the command line. -->

# All commands and options

The same text is on the man pages (`man muster-plan`), and in `muster COMMAND --help`. [cli.md](cli.md) shows what the
commands print, and which rights they need.

## Options of several commands
"""


_SHARED = 3
"""An option that so many commands have, with the same words, has one row for all of them."""


def page() -> str:
    """Return the page."""
    (commands,) = (one for one in parser()._actions if isinstance(one, argparse._SubParsersAction))
    purposes = {action.dest: action.help or "" for action in commands._choices_actions}
    rows = {
        name: [row for action in of._actions if (row := _row(action))] for name, of in sorted(commands.choices.items())
    }
    having: dict[str, list[str]] = {}
    for name, own in rows.items():
        for row in own:
            having.setdefault(row, []).append(name)
    shared = {row: names for row, names in having.items() if len(names) >= _SHARED}
    table = [
        "| option | what | commands |",
        "|---|---|---|",
        *(f"{row} {', '.join(of)} |" for row, of in shared.items()),
    ]
    sections = [
        "\n".join(_section(name, commands.choices[name], purposes[name], [row for row in own if row not in shared]))
        for name, own in rows.items()
    ]
    return "\n".join([_HEAD, *table, "", *sections])


def _section(name: str, command: argparse.ArgumentParser, purpose: str, rows: list[str]) -> Iterator[str]:
    yield f"## muster {name}"
    yield ""
    description = " ".join((command.description or purpose).split())
    yield _text(description[:1].upper() + description[1:]).rstrip(".") + "."
    yield ""
    usage = [_argument(action) for action in command._actions if not action.option_strings]
    options = ["[options]"] if any(action.option_strings and _row(action) for action in command._actions) else []
    yield "```text"
    yield " ".join(["muster", name, *options, *usage])
    yield "```"
    yield ""
    if rows:
        yield "| option | what |"
        yield "|---|---|"
        yield from rows
        yield ""
    yield "Examples:"
    yield ""
    yield "```text"
    for example in EXAMPLES[name]:
        yield f"# {example.purpose}"
        yield example.command
    yield "```"
    yield ""


def _argument(action: argparse.Action) -> str:
    shown = action.metavar if isinstance(action.metavar, str) else None
    word = shown or ("|".join(map(str, action.choices)) if action.choices else action.dest.upper())
    return {"*": f"[{word} ...]", "+": f"{word} ...", "?": f"[{word}]"}.get(str(action.nargs), word)


def _row(action: argparse.Action) -> str:
    """Its row; none for `--help`, which all have."""
    if action.dest == "help" or action.help == argparse.SUPPRESS:
        return ""
    value = "" if action.nargs == 0 or not action.option_strings else f" {_argument(action)}"
    shown = ", ".join(f"`{name}{value}`" for name in action.option_strings) or f"`{_argument(action)}`"
    formatter = argparse.HelpFormatter("muster")
    said = formatter._expand_help(action) if action.help else f"default: {action.default}" if action.default else ""
    cell = shown.replace("|", r"\|")
    return f"| {cell} | {_text(' '.join(said.split()))} |"


def _text(words: str) -> str:
    return words.replace("|", "&#124;").replace("<", "&lt;").replace("*", r"\*")
