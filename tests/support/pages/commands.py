"""The options at the end of docs/cli.md, as the parser and the man pages have them."""

import argparse
import re

from muster.cli.commands import parser

BEGIN = "<!-- options: written by MUSTER_REWRITE=1 pytest tests/docs/test_reference.py from the parser -->\n"
END = "<!-- end of options -->\n"


def options(prose: str) -> str:
    """Return a row for each option that the page does not name before, those of most commands first."""
    (commands,) = (one for one in parser()._actions if isinstance(one, argparse._SubParsersAction))
    having: dict[str, list[str]] = {}
    for name, command in sorted(commands.choices.items()):
        for action in command._actions:
            if _is_other(action, prose):
                having.setdefault(_row(action), []).append(name)
    rows = sorted(having.items(), key=lambda one: -len(one[1]))
    shown = [_with(row, of, sorted(commands.choices.keys() - of)) for row, of in rows]
    return "\n".join(["", "| option | of | meaning |", "|---|---|---|", *shown, "", ""])


def _is_other(action: argparse.Action, prose: str) -> bool:
    """True for an option, not an argument, that the prose does not name by its short or its long name."""
    named = any(re.search(rf"[`\s]{name}\b", prose) for name in action.option_strings)
    return bool(action.option_strings) and not named and action.dest != "help" and action.help != argparse.SUPPRESS


def _with(row: str, commands: list[str], others: list[str]) -> str:
    option, meaning = row.split("\n")
    of = ", ".join(commands) if len(commands) <= len(others) else f"all but {', '.join(others)}"
    return f"| {option} | {of} | {meaning} |"


def _argument(action: argparse.Action) -> str:
    shown = action.metavar if isinstance(action.metavar, str) else None
    word = shown or ("|".join(map(str, action.choices)) if action.choices else action.dest.upper())
    return {"*": f"[{word} ...]", "+": f"{word} ...", "?": f"[{word}]"}.get(str(action.nargs), word)


def _row(action: argparse.Action) -> str:
    """Return the option and its meaning in two lines."""
    value = "" if action.nargs == 0 else f" {_argument(action)}"
    shown = ", ".join(f"`{name}{value}`" for name in action.option_strings).replace("|", r"\|")
    meaning = argparse.HelpFormatter("muster")._expand_help(action) if action.help else ""
    return f"{shown}\n{_text(' '.join(meaning.split()))}"


def _text(words: str) -> str:
    return words.replace("|", "&#124;").replace("<", "&lt;").replace("*", r"\*")
