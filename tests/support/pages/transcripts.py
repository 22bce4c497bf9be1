"""Commands and what they printed, as a page or the demo shows them, apart from what differs each time."""

import re
from typing import NamedTuple

_NEITHER = re.compile(r"^(=== .*|\(waiting for .*\)|)$")
# Of a pod's name what the apiserver adds, and an age.
_RANDOM, _AGE = re.compile(r"-[a-z0-9]{5}\b(?=\s|$)"), re.compile(r"(?<=\s)(\d+m)?\d+s(?=\s|$)|^(\d+m)?\d+s(?=\s)")


class Shown(NamedTuple):
    """One command and the lines after it: names without their random end, any age as AGE, columns one space apart."""

    command: str
    lines: tuple[str, ...]


def shown(text: str) -> list[Shown]:
    """Every command of a transcript, in order; one that printed nothing has no lines."""
    found: list[tuple[str, list[str]]] = []
    listens = False
    for line in text.splitlines():
        if line.startswith("$ "):
            found.append((line.removeprefix("$ "), []))
            listens = True
        elif _NEITHER.match(line):
            listens = False
        elif listens:
            found[-1][1].append(alike(line))
    return [Shown(command, tuple(lines)) for command, lines in found]


def consoles(page: str) -> list[str]:
    """The text of every ```console block of a page."""
    return re.findall(r"```console\n(.*?)```", page, re.DOTALL)


def alike(line: str) -> str:
    """The line as any run prints it: names without their random end, any age as AGE, columns one space apart."""
    return " ".join(_AGE.sub("AGE", _RANDOM.sub("-*", line)).split())
