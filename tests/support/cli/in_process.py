"""The command line in this process, which has it imported already: a second less than a process of its own."""

import io
import logging
import subprocess
from contextlib import redirect_stderr, redirect_stdout

import pytest

from muster.cli import main


def muster(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run `muster` with these arguments, and give what it printed, and logged, and its exit code."""
    out, err = io.StringIO(), io.StringIO()
    # What a process prints of its log where nobody has said how.
    log = logging.StreamHandler(err)
    log.setLevel(logging.WARNING)
    logging.getLogger().addHandler(log)
    try:
        with redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as ended:
            main(arguments)
    finally:
        logging.getLogger().removeHandler(log)
    code = int(ended.value.code or 0)
    return subprocess.CompletedProcess(["muster", *arguments], code, out.getvalue(), err.getvalue())
