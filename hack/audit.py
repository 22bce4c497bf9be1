"""Looks the locked requirements up in a list of known vulnerabilities: `make audit-dependencies`.

pip-audit asks PyPI or OSV. It counts what the list does not know as passed over, and ends well; here that is a failure,
for where no list is reached there is no good news.
"""

import argparse
import json
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_REQUIREMENTS = (Path("requirements/runtime.txt"), Path("requirements/dev.txt"))
_PIN = re.compile(r"^([A-Za-z0-9._-]+)==([^\s;\\]+)", re.MULTILINE)
_QUOTED = 300  # characters


def pins(text: str) -> dict[str, str]:
    """The version of every package of a locked requirements file."""
    return dict(_PIN.findall(text))


def judge(report: Mapping[str, Any], pinned: Mapping[str, str]) -> tuple[list[str], list[str]]:
    """Known vulnerabilities in pip-audit's JSON, and packages that the list does not know."""
    found = {one["name"]: one for one in report["dependencies"]}
    vulnerable = [
        f"{name} {one['version']}: {flaw['id']}, mended in {', '.join(flaw['fix_versions']) or 'no version yet'}"
        for name, one in sorted(found.items())
        for flaw in one.get("vulns", ())
    ]
    looked_up = {name for name, one in found.items() if one.get("version") == pinned.get(name)}
    return vulnerable, sorted(set(pinned) - looked_up)


def main() -> None:
    """Exit with 0 when every package was looked up and none is known to be vulnerable."""
    parser = argparse.ArgumentParser(prog="hack.audit", description="Known vulnerabilities of the locked requirements.")
    parser.add_argument("--program", default="pip-audit", help="pip-audit")
    parser.add_argument("--service", default="pypi", choices=("pypi", "osv"), help="whose list is asked")
    given = parser.parse_args()
    files = [part for path in _REQUIREMENTS for part in ("--requirement", str(path))]
    done = subprocess.run(
        [
            *(given.program, "--vulnerability-service", given.service, "--format", "json"),
            *("--progress-spinner", "off", "--disable-pip", "--require-hashes", *files),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    try:
        report = json.loads(done.stdout)
    except ValueError:
        last = (done.stderr.strip().splitlines() or ["no output"])[-1]
        sys.exit(f"no audit was made: {given.service} was not asked: {last[:_QUOTED]}")
    pinned = {name: version for path in _REQUIREMENTS for name, version in pins(path.read_text()).items()}
    vulnerable, unknown = judge(report, pinned)
    for line in vulnerable:
        print(line)
    if unknown:
        sys.exit(
            f"no audit was made of {len(unknown)} of {len(pinned)} packages, which {given.service} does not know here"
        )
    if vulnerable:
        sys.exit(f"{len(vulnerable)} known vulnerabilities in {len(pinned)} packages")
    print(f"none known in {len(pinned)} packages")


if __name__ == "__main__":
    main()
