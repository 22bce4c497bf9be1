"""The man pages of the command line, one for each command: argparse-manpage writes them from the parser.

They are kept in `hack/cli/man`, where the wheel of the command line takes them from;
`MUSTER_REWRITE=1 .venv/bin/pytest -n0 tests/unit/test_man.py` writes them.
"""

import argparse
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path

from argparse_manpage.manpage import Manpage

import muster
from muster.cli.commands import parser
from muster.cli.examples import EXAMPLES
from muster.cli.options import CONNECT_TIMEOUT

FOLDER = Path(__file__).parent / "cli" / "man"

_ENVIRONMENT = (
    ("KUBECONFIG", "the kubeconfig, as for kubectl"),
    (CONNECT_TIMEOUT, "the default of --connect-timeout, in seconds"),
    ("NO_COLOR", "without colours, when it is set"),
)
_STATUS = (
    ("0", "everything was done, and nothing is wrong"),
    ("1", "something is refused, a problem was found, or something could not be done"),
    ("2", "the input cannot be read, or the cluster does not answer; also for a wrong option"),
)


def pages() -> dict[str, str]:
    """The source of each page in troff, by the name of its file."""
    top = parser()
    # argparse has no public name for its commands; argparse-manpage and shtab look them up in the same way.
    (commands,) = (one for one in top._actions if isinstance(one, argparse._SubParsersAction))  # noqa: SLF001
    purposes = {action.dest: action.help or "" for action in commands._choices_actions}  # noqa: SLF001
    found = {"kubectl-muster.1": ".so man1/muster.1\n"}
    overview = argparse.ArgumentParser(prog="muster", usage="%(prog)s COMMAND ...", description=top.description)
    rows = [(rf"\fBmuster\-{_text(name)}\fR(1)", purpose) for name, purpose in purposes.items()]
    sections = {"commands": _list(rows), "environment": _list(_ENVIRONMENT), "exit status": _list(_STATUS)}
    found["muster.1"] = _page(overview, "muster", "gang scheduling of Ray and Kubeflow workloads", sections)
    for name, command in commands.choices.items():
        command.epilog = None
        examples = "\n.PP\n".join(
            f"{_text(purpose)}:\n.PP\n.RS 4\n.nf\n{_text(line)}\n.fi\n.RE" for line, purpose in EXAMPLES[name].items()
        )
        sections = {"examples": examples, "see also": ".BR muster (1)"}
        found[f"muster-{name}.1"] = _page(command, f"muster-{name}", purposes[name], sections)
    return found


def _page(of: argparse.ArgumentParser, name: str, purpose: str, sections: Mapping[str, str]) -> str:
    # The source is the same, however wide the terminal is in which it is written.
    of.formatter_class = partial(argparse.HelpFormatter, width=100)
    data = {"description": purpose, "project_name": "muster", "version": muster.__version__, "manual_title": "muster"}
    page = Manpage(of, data)
    # No date: a page that has not changed stays the same file.
    page.prog, page.date = name, ""
    for heading, content in sections.items():
        page.add_section(heading, "=", content)
    return str(page)


def _list(rows: Iterable[tuple[str, str]]) -> str:
    return "\n".join(f".TP\n{name}\n{_text(text)}" for name, text in rows)


def _text(words: str) -> str:
    return words.replace("\\", r"\e").replace("-", r"\-").replace("'", r"\(aq").replace("~", r"\(ti")
