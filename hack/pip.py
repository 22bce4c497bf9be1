"""Installs locked requirements and prints how far it is: `python -m hack.pip FILE`, with the Python to install for.

pip's own bars need a terminal, and its lines without them are hundreds. Standard library only: nothing is there yet.
"""

import re
import subprocess
import sys
import time
from pathlib import Path

_ARGV = (*("-m", "pip", "install", "--disable-pip-version-check", "--progress-bar=off"), "--require-hashes", "-r")
_APART = 5.0  # seconds


def main() -> None:
    """Install, and exit as pip does; what it printed is shown where it fails."""
    file = Path(sys.argv[1])
    total = len(re.findall(r"^[\w.-]+==", file.read_text(), re.MULTILINE))
    printed, found, last = [], 0, time.monotonic()
    argv = [sys.executable, *_ARGV, str(file)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as pip:
        for line in pip.stdout or ():
            printed.append(line)
            found += line.startswith("Collecting ")
            if line.startswith("Installing "):
                print(f"   {total} packages are downloaded, installing them", flush=True)
            elif line.startswith("Collecting ") and time.monotonic() - last > _APART:
                last = time.monotonic()
                print(f"   {found} of {total} packages", flush=True)
    if pip.returncode:
        sys.exit("".join(printed[-20:]))


if __name__ == "__main__":
    main()
