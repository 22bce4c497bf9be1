"""The command in processes of its own with bounded memory and time, forked from one that has imported it already.

Each of them is as new as a started one, and costs hundredths of a second instead of tenths: most of a short command
is the start of Python.
"""

import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

Run = Callable[..., subprocess.CompletedProcess[str]]

_CHECKOUT = Path(__file__).parents[3]


@contextmanager
def forks(folder: Path, *, memory: int, seconds: int) -> Iterator[Run]:
    """Give what runs `muster` with some arguments in a child that gets so many bytes and seconds of the processor.

    `folder` is for what the children print, which is returned with the exit code: negative for the signal that ended
    one.
    """
    argv = [sys.executable, "-m", "tests.support.cli.forked", str(memory), str(seconds)]
    with subprocess.Popen(argv, cwd=_CHECKOUT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdin
        assert parent.stdout
        asked, answers = parent.stdin, parent.stdout

        def run(*arguments: str) -> subprocess.CompletedProcess[str]:
            out, err = folder / "out", folder / "err"
            print(json.dumps([str(out), str(err), *arguments]), file=asked, flush=True)
            code = int(answers.readline())
            return subprocess.CompletedProcess(arguments, code, out.read_text(), err.read_text())

        yield run


def _fork_each(memory: int, seconds: int) -> None:
    """Fork for each line of the standard input, and say how the child ended."""
    import muster.cli.plan.command  # noqa: F401, PLC0415 (for the children)
    from muster.cli import main  # noqa: PLC0415

    for line in sys.stdin:
        out, err, *arguments = json.loads(line)
        if not (child := os.fork()):
            for descriptor, path in ((1, out), (2, err)):
                os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), descriptor)
            resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
            resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
            main(arguments)
        _, status = os.waitpid(child, 0)
        sys.stdout.write(f"{os.waitstatus_to_exitcode(status)}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    _fork_each(*map(int, sys.argv[1:]))
