"""A page of commands with their output: each is run as it stands there, and what it prints is what the page shows.

With MUSTER_REWRITE=1 the page gets what was printed. Ages and the random ends of names differ each time, and so do the
order and the words of others' events in `muster explain`: they are no difference. What only reads is run until it shows
what the page shows, for a while, as a reader would who is faster than the cluster.
"""

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Self

from hack.testbed import PATIENCE, Testbed
from tests.support.pages.transcripts import alike, consoles

_CHECKOUT = Path(__file__).parents[3]
_FAILED = "-- the block has failed --"
_READS = re.compile(r"(kubectl (get|events)|muster (explain|queues)) ")
_COMMAND = re.compile(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)


class Shell:
    """Runs commands one after the other as a reader does: what one exports, the next one has."""

    def __init__(self, checkout: Path, environment: Mapping[str, str], words: Mapping[str, str]) -> None:
        """Commands run in the checkout. `words` are what the reader puts in, by what stands for it on the page."""
        self._checkout = checkout
        self._environment = {**environment, "COLUMNS": "80", "NO_COLOR": "1"}
        self._words = words

    @classmethod
    def on(cls, testbed: Testbed, words: Mapping[str, str]) -> Self:
        """The shell of an administrator of this testbed, with kubectl, helm and muster at hand."""
        told = testbed.environment()
        told["PATH"] = f"{Path(sys.executable).parent}:{told['PATH']}"
        return cls(_CHECKOUT, {**os.environ, **told, "PYTHONPATH": str(_CHECKOUT)}, words)

    def obey(self, block: str) -> str:
        """What a block prints, run as it stands there up to the first command that fails, at which the test fails."""
        said = self.run(f'(set -e -o pipefail\n{block.rstrip()}\n)\n[ $? = 0 ] || echo "{_FAILED}"')
        assert _FAILED not in said, f"{block}\n{said}"
        return said

    def run(self, command: str) -> str:
        """What a terminal shows after it: both streams; what the reader put in is as on the page again.

        A command may fail, as what is refused does: its words say so.
        """
        for word, own in self._words.items():
            command = re.sub(rf"\b{word}\b", own, command)
        reading, writing = os.pipe()
        with open(reading, "rb") as after, open(writing, "wb") as left:  # noqa: PTH123 - the ends of a pipe
            done = subprocess.run(
                ["bash", "-c", f"{command}\nenv -0 >&{writing}"],
                cwd=self._checkout,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=PATIENCE,
                check=False,
                pass_fds=(writing,),
            )
            left.close()
            exported = after.read().decode().split("\0")
        self._environment = dict(entry.split("=", 1) for entry in exported if "=" in entry)
        said = done.stdout
        for word, own in self._words.items():
            said = said.replace(own, word)
        return said


def commands(page: str) -> list[str]:
    """Every command of the page's ```console blocks, in order."""
    return [command for block in consoles(page) for command, _ in _COMMAND.findall(block)]


def follow(page: Path, run: Callable[[str], str | None]) -> list[str]:
    """Run the page's commands in their order; return what differs, a text for each command.

    Where `run` says None the command was not run, and its output stays. With MUSTER_REWRITE in the environment the page
    is written, and nothing differs.
    """
    text, rewrite = page.read_text(), bool(os.environ.get("MUSTER_REWRITE"))
    wrong: list[str] = []

    def again(block: re.Match[str]) -> str:
        return "```console\n" + "".join(map(after, _COMMAND.findall(block[1]))) + "```"

    def after(piece: tuple[str, str]) -> str:
        command, lines = piece
        said = run(command)
        if said is None:
            return f"$ {command}\n{lines}"
        deadline = time.monotonic() + PATIENCE
        while _differ(said, lines) and _READS.match(f"{command} ") and not rewrite and time.monotonic() < deadline:
            said = run(command) or ""
        said = f"{said.rstrip()}\n" if said.strip() else ""
        if _differ(said, lines):
            wrong.append(f"$ {command}\n{said}\nand not\n{lines}")
        return f"$ {command}\n{said}"

    written = re.sub(r"```console\n(.*?)```", again, text, flags=re.DOTALL)
    if rewrite:
        page.write_text(written)
        return []
    return wrong


def _differ(said: str, shows: str) -> bool:
    return _alike(said) != _alike(shows)


def _alike(text: str) -> list[str]:
    """The lines without what differs each time; of the table of events those of muster alone."""
    told = [alike(line) for line in text.splitlines() if line.strip()]
    events = next((place for place, line in enumerate(told) if line.startswith("LAST SEEN")), len(told))
    return [line for place, line in enumerate(told) if place <= events or " muster.dev " in line]
