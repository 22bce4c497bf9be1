"""Runs the command as its users do, in this process."""

import argparse
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from tests.support.cli.in_process import muster


class Said(NamedTuple):
    """What the command answered."""

    code: int
    out: str
    err: str

    @property
    def entries(self) -> list[dict[str, Any]]:
        """The entries of `-o json`."""
        found: list[dict[str, Any]] = json.loads(self.out)
        return found

    @property
    def unplaced(self) -> list[dict[str, Any]]:
        """The same without the file and the line of each."""
        return [{key: item for key, item in entry.items() if key != "source"} for entry in self.entries]


def messages(findings: Iterable[dict[str, str]]) -> list[str]:
    """The message of each finding of `-o json`."""
    return [one["message"] for one in findings]


class Command:
    """`muster plan` over texts, each in a file of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def file(self, text: str, name: str = "input.yaml") -> str:
        """The path of a new file."""
        path = self.folder / name
        path.write_text(text)
        return str(path)

    def values(self, **values: object) -> tuple[str, str]:
        """The option for a file with these values of the chart."""
        return "--values", self.file(json.dumps(values), "values.yaml")

    def plan(self, *texts: str, output: str = "json", options: Iterable[str] = ()) -> Said:
        """Plan these texts, given in this order."""
        paths = [self.file(text, f"{number}.yaml") for number, text in enumerate(texts)]
        return self.run("plan", "-o", output, *options, *(word for path in paths for word in ("-f", path)))

    def run(self, *arguments: str) -> Said:
        """Run any command."""
        done = muster(*arguments)
        return Said(done.returncode, done.stdout, done.stderr)


def cluster_options(kubeconfig: Path | str, command: str = "plan") -> argparse.Namespace:
    """The options of a command that reads a cluster, as the parser gives them."""
    return argparse.Namespace(
        command=command,
        kubeconfig=str(kubeconfig),
        context=None,
        connect_timeout=10.0,
        values=None,
    )
