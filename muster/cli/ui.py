"""Output of all commands: streams, colours, columns, amounts, durations, questions, and data for programs."""

import errno
import io
import json
import os
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TextIO

from muster.model.texts import printable

_MINUTE, _HOUR, _DAY = 60, 3600, 86400
# A unit is used from two of it on: `90 minutes`, then `2 hours`.
_FEW = 2
WIDTH = 80
"""Columns where there is no terminal."""
RED, GREEN, YELLOW = "\x1b[31m", "\x1b[32m", "\x1b[33m"
_NARROWEST = 40
_PLAIN = "\x1b[0m"
# No count of devices or cpus is as large; bytes are.
_LARGE = 2**20
_UNITS = ("Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_YES = {"y", "yes"}
_FULL = (errno.EDQUOT, errno.EFBIG, errno.EIO, errno.ENOSPC)


class UnwritableError(Exception):
    """The output cannot be written; the message is the reason."""


class CommandError(Exception):
    """The command cannot go on; the message is for the user."""


def prepare() -> None:
    """Set up the output as kubectl writes it: in UTF-8, but for a terminal with another encoding.

    A standard stream that is closed takes everything, and gives nothing.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115, PTH123 - until the process ends
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding=None if sys.stdout.isatty() else "utf-8", errors="backslashreplace")


def lasting(seconds: float) -> str:
    """A duration in one unit: `3 days`."""
    for length, unit in ((_DAY, "days"), (_HOUR, "hours"), (_MINUTE, "minutes")):
        if abs(seconds) >= _FEW * length:
            return f"{abs(seconds) / length:.0f} {unit}"
    return counted(round(abs(seconds)), "second")


def age(seconds: float) -> str:
    """An age as kubectl prints it: `47s`, `5m`, `3h`, `2d`."""
    whole = max(0, round(seconds))
    for unit, size in (("d", _DAY), ("h", _HOUR), ("m", _MINUTE)):
        if whole >= _FEW * size:
            return f"{whole // size}{unit}"
    return f"{whole}s"


def ago(seconds: float) -> str:
    """`3 days ago`; `in 3 days` for a negative number; `just now` for less than half a second."""
    if round(seconds) == 0:
        return "just now"
    return f"in {lasting(seconds)}" if seconds < 0 else f"{lasting(seconds)} ago"


def counted(number: int, noun: str) -> str:
    """`1 pod`, `2 pods`."""
    return f"{number} {noun}{'s' * (number != 1)}"


def colours(out: TextIO) -> bool:
    """True if `out` shows colours: a terminal that is not dumb, unless `NO_COLOR` is set (https://no-color.org)."""
    return clears(out) and not os.environ.get("NO_COLOR")


def draws(out: TextIO) -> bool:
    """True if `out` shows box and block characters: a terminal with colours whose text is UTF-8."""
    return colours(out) and (out.encoding or "").lower().replace("-", "") == "utf8"


def clears(out: TextIO) -> bool:
    """True if `out` is a terminal that understands escape sequences."""
    return out.isatty() and os.environ.get("TERM") != "dumb"


def width(out: TextIO) -> int:
    """The columns of the terminal, at least 40; 80 without a terminal."""
    if not out.isatty():
        return WIDTH
    try:
        columns = os.get_terminal_size(out.fileno()).columns
    except OSError:
        return WIDTH
    return max(_NARROWEST, columns) if columns else WIDTH


def painted(text: str, paint: str, *, colour: bool) -> str:
    """The text in a colour, when colours are on."""
    return f"{paint}{text}{_PLAIN}" if colour and text else text


def elided(text: str, width: int) -> str:
    """The text in at most so many columns, shortened in the middle: names often differ at their ends."""
    if len(text) <= width:
        return text
    tail = (width - 1) // 2
    return f"{text[: width - 1 - tail]}…{text[len(text) - tail :]}" if width > 1 else "…"[:width]


def wrapped(line: str, indent: int, columns: int) -> Iterator[str]:
    """The line, wrapped after a comma, else between words; continuation lines are indented."""
    pad, start = "", 0
    while len(pad) + len(line) - start > columns > indent:
        first, end = start or indent, start + columns - len(pad) + 1
        comma, blank = (line.rfind(mark, first, end) for mark in (", ", " "))
        # A comma keeps amounts together, unless it leaves half of the line empty.
        at = comma + 1 if comma > end - columns // 2 else blank if blank >= 0 else line.find(" ", end)
        if at < 0:
            break
        yield (pad + line[start:at]).rstrip()
        pad, start = " " * indent, at + 1
    yield pad + line[start:]


def print_wrapped(line: str, indent: int, out: TextIO, paint: str = "", painted_part: int = 0) -> None:
    """Print a line, wrapped as wide as `out` is, with so many of its first characters in a colour."""
    first, *more = wrapped(line, indent, width(out))
    print(painted(first[:painted_part], paint, colour=colours(out)) + first[painted_part:], file=out)
    for rest in more:
        print(rest, file=out)


def aligned(head: Sequence[str], rows: Sequence[Sequence[str]], *, right: Collection[int] = ()) -> list[str]:
    """The rows below their header, each column as wide as its longest cell; columns in `right` are right-aligned."""
    table = [list(head), *([printable(cell) for cell in row] for row in rows)]
    widths = [max(len(row[column]) for row in table) for column in range(len(head))]
    return [
        "  ".join(
            cell.rjust(width) if column in right else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in table
    ]


def placement(scheduling: Mapping[str, Any]) -> Iterator[str]:
    """Lines on the scheduler, the queue and the priority of a gang, each with what sets it; and on its admitter."""
    for title, field in (("scheduler", "scheduler"), ("queue", "queue"), ("priority", "priorityClassName")):
        where = scheduling["from"].get(field, "default")
        yield f"  {title:<10} {scheduling[field] or '-'}" + (f"  ({where})" if scheduling[field] else "")
    if scheduling["admitter"] != "ledger":
        yield f"  {'admitter':<10} {scheduling['admitter']}"


def amounts(resources: Mapping[str, str | int | float]) -> str:
    """The quantities on one line; bytes rounded to three digits or so, which `-o yaml` and `-o json` do not do."""
    return ", ".join(f"{name} {rounded(str(amount))}" for name, amount in resources.items()) or "nothing"


def rounded(amount: str) -> str:
    """A large number without a unit, such as 3536870912, in binary units: 3.3Gi."""
    if not amount.isdecimal() or int(amount) < _LARGE:
        return amount
    power = min((int(amount).bit_length() - 1) // 10, len(_UNITS))
    return f"{int(amount) / 1024**power:.1f}".removesuffix(".0") + _UNITS[power - 1]


def complain(command: str, *texts: object) -> None:
    """Print each text on standard error, as a line of the command."""
    for text in texts:
        print(f"muster {command}: {printable(str(text))}", file=sys.stderr)


def asks(*, yes: bool, dry_run: bool) -> bool:
    """True if there is a user to ask, by the options `--yes` and `--dry-run`."""
    return not (yes or dry_run) and sys.stdin.isatty() and (sys.stderr.isatty() or sys.stdout.isatty())


def confirmed(command: str, question: str) -> bool:
    """True if the user agrees; else a line that nothing was changed."""
    # Where errors go to a file, the question would not be seen there.
    shown = sys.stderr if sys.stderr.isatty() else sys.stdout
    print(f"muster {command}: {question} [y/N] ", end="", file=shown, flush=True)
    if sys.stdin.readline().strip().lower() in _YES:
        return True
    complain(command, "canceled; nothing was changed")
    return False


@contextmanager
def as_long_as_read() -> Iterator[None]:
    """Ignore a closed pipe (`| head`) in the block, so that it does not change the exit code.

    Raises UnwritableError where it cannot be written for another reason.
    """
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        _give_up()
    except OSError as error:
        if error.errno not in _FULL:
            raise
        _give_up()
        raise UnwritableError(error.strerror) from error


def _give_up() -> None:
    # Python flushes its buffer at exit, which must not fail again.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def print_line(text: str) -> None:
    """Print a line at once; a command that changes a cluster goes on when its output is not read."""
    try:
        with as_long_as_read():
            print(text)
    except UnwritableError as error:
        print(f"muster: what is done cannot be written any more: {error}", file=sys.stderr)


def _as_yaml(data: Any) -> str:  # noqa: ANN401
    """YAML without anchors, in which kubectl reads text as text."""
    import yaml  # noqa: PLC0415 - of little use to a command that prints a table, and slow to import

    from muster.cli.parsing import stays_text  # noqa: PLC0415 - it imports yaml

    class Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]
        def ignore_aliases(self, data: object) -> bool:
            del data
            return True

    def text(dumper: Dumper, text: str) -> yaml.Node:
        # PyYAML knows by itself what it would take for something else, which is less than what kubectl does.
        style = None if "\n" in text or stays_text(text) else "'"
        node: yaml.Node = dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)
        return node

    Dumper.add_representer(str, text)
    return str(yaml.dump(data, Dumper=Dumper, sort_keys=False, allow_unicode=True))


def print_data(data: Any, form: str, out: TextIO) -> bool:  # noqa: ANN401
    """Print the data in order as `json` or `yaml`; False for any other form, which the command prints itself."""
    if form == "json":
        print(json.dumps(data, indent=2), file=out)
    elif form == "yaml":
        print(_as_yaml(data), end="", file=out)
    else:
        return False
    return True
