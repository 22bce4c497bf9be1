"""The `muster` command. Each subcommand is imported only when it runs, so that start-up stays short."""

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module

from muster.cli.commands import parser, print_version
from muster.cli.options import CONNECT_TIMEOUT
from muster.cli.ui import UnwritableError, prepare
from muster.model.texts import printable

__all__ = ["CONNECT_TIMEOUT", "main", "parser"]

_FAILED, _INTERRUPTED = 2, 130
# The module of each command whose function `run` is not in the module of the command's name.
_MODULES = {
    "audit": "plan.audit",
    "doctor": "doctor.command",
    "explain": "explain.command",
    "gangs": "queues.gangs",
    "page": "page.command",
    "plan": "plan.command",
    "queues": "queues.entries",
    "record": "replay.record",
    "release": "release.command",
    "replay": "replay.command",
    "report": "report.command",
    "resume": "hold",
    "test": "replay.testing",
    "watch": "queues.entries",
    "withdraw": "release.withdraw",
}


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command and exit.

    The exit code is 0 on success, 1 when something is refused or a problem is found, and 2 when the input cannot be
    read or the cluster does not answer. Ctrl-C gives 130, as for kubectl in a shell.
    """
    prepare()
    commands = parser()
    words = sys.argv[1:] if argv is None else argv
    if words and (meant := _near_command(words[0], commands)):
        commands.error(f'there is no command "{words[0]}"; did you mean "{meant}"?')
    arguments = commands.parse_args(argv)
    if arguments.command == "plan":
        arguments.filename += arguments.file
    if arguments.command == "plan" and (wrong := _without(arguments)):
        commands.error(wrong)
    if arguments.command == "queues" and arguments.watch and arguments.output != "table":
        commands.error("--watch: needs the output format table")
    if arguments.command == "version":
        print_version()
    try:
        # Only its module is imported.
        module = _MODULES.get(arguments.command, arguments.command.replace("-", "_"))
        code = import_module(f"muster.cli.{module}").run(arguments)
    except KeyboardInterrupt:
        print(f"muster {arguments.command}: stopped by Ctrl-C", file=sys.stderr)
        code = _INTERRUPTED
    except UnwritableError as error:
        print(f"muster {arguments.command}: the output cannot be written: {error}", file=sys.stderr)
        code = _FAILED
    except Exception as error:
        from muster.cli.connecting import NO_ANSWER  # noqa: PLC0415 - most commands that raise them have imported it

        if not isinstance(error, NO_ANSWER):
            raise
        print(f"muster {arguments.command}: {printable(str(error))}", file=sys.stderr)
        code = _FAILED
    sys.exit(code)


def _near_command(word: str, commands: argparse.ArgumentParser) -> str:
    """The command that a misspelled one may mean; "" for a command, or if none is like it."""
    (known,) = (action.choices for action in commands._actions if isinstance(action, argparse._SubParsersAction))  # noqa: SLF001
    if word in known or word.startswith("-"):
        return ""
    from muster.model.texts import nearest  # noqa: PLC0415 - most words are spelled well

    return nearest(word, known)


def _without(arguments: argparse.Namespace) -> str:
    """The option of `plan` that needs another one, and which; "" when each has what it needs."""
    if arguments.what_if:
        return "" if arguments.cluster else "--what-if: needs --cluster"
    if any((arguments.queue, arguments.lose_node, arguments.reserves)):
        return "--queue, --lose-node and --reserves are for --what-if"
    return "" if arguments.filename else "no file: muster plan FILE, or - for standard input"
