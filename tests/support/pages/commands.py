"""The options at the end of docs/cli.md, as the parser and the man pages have them."""

import argparse

from muster.cli.commands import parser

BEGIN = "<!-- options: written by MUSTER_REWRITE=1 pytest tests/docs/test_reference.py from the parser -->\n"
END = "<!-- end of options -->\n"


# The page has a sentence about each of them.
SHARED = {"--namespace", "--all-namespaces", "--kubeconfig", "--context", "--connect-timeout"}


def options() -> str:
    """Return a row for each other option, with the commands that have it; the options of most commands come first."""
    (commands,) = (one for one in parser()._actions if isinstance(one, argparse._SubParsersAction))
    having: dict[str, list[str]] = {}
    for name, command in sorted(commands.choices.items()):
        for row in filter(None, map(_row, command._actions)):
            having.setdefault(row, []).append(name)
    rows = sorted(having.items(), key=lambda one: -len(one[1]))
    shown = [_with(row, of, sorted(commands.choices.keys() - of)) for row, of in rows]
    return "\n".join(["", "| option | of | meaning |", "|---|---|---|", *shown, "", ""])


def _with(row: str, commands: list[str], others: list[str]) -> str:
    option, meaning = row.split("\n")
    of = ", ".join(commands) if len(commands) <= len(others) else f"all but {', '.join(others)}"
    return f"| {option} | {of} | {meaning} |"


def _argument(action: argparse.Action) -> str:
    shown = action.metavar if isinstance(action.metavar, str) else None
    word = shown or ("|".join(map(str, action.choices)) if action.choices else action.dest.upper())
    return {"*": f"[{word} ...]", "+": f"{word} ...", "?": f"[{word}]"}.get(str(action.nargs), word)


def _row(action: argparse.Action) -> str:
    """Return the option and its meaning in two lines, or nothing for an argument and for an option of most commands."""
    if (
        not action.option_strings
        or action.dest == "help"
        or action.help == argparse.SUPPRESS
        or SHARED & {*action.option_strings}
    ):
        return ""
    value = "" if action.nargs == 0 else f" {_argument(action)}"
    shown = ", ".join(f"`{name}{value}`" for name in action.option_strings).replace("|", r"\|")
    meaning = argparse.HelpFormatter("muster")._expand_help(action) if action.help else ""
    return f"{shown}\n{_text(' '.join(meaning.split()))}"


def _text(words: str) -> str:
    return words.replace("|", "&#124;").replace("<", "&lt;").replace("*", r"\*")
