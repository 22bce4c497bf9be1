"""Makes small changes in the rules, and looks whether a unit test notices: `make mutate`."""

import argparse
import difflib
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path

from hack.mutate.forks import Reach, reach, survives
from hack.testbed.paths import digest_of

_ROOTS = ("muster", "webhook", "controller")
# Commands and the client.
_LEFT_OUT = ("muster/cli/", "muster/kube/")
# What imports one of these is no rule; it is tested where the real thing runs.
_IO = re.compile(r"^(?:import|from) (?:asyncio|aiohttp|os|signal|socket|ssl|time)\b", re.MULTILINE)
_EXPLAINED = Path(__file__).with_name("explained.toml")


def main() -> None:
    """Exit with 0 when enough mutants were killed."""
    parser = argparse.ArgumentParser(prog="hack.mutate", description=__doc__)
    parser.add_argument("--program", default=".venv/mutate/bin/python", help="a Python that has mutmut")
    parser.add_argument("--seed", type=int, default=13, help="of the draw")
    parser.add_argument("--number", type=int, default=400, help="how many mutants are drawn")
    parser.add_argument("--least", type=float, default=95.0, help="per cent of them that must be killed")
    parser.add_argument("--only", type=int, nargs="*", help="the numbers of single mutants of the draw")
    parser.add_argument("--tests", nargs="*", default=["tests/unit"], help="the tests, as for pytest")
    parser.add_argument("--reach", type=Path, help="kept there: what tests reach, as long as no file changes")
    given = parser.parse_args()
    paths = [str(path) for root in _ROOTS for path in Path(root).rglob("*.py")]
    files = sorted(path for path in paths if not path.startswith(_LEFT_OUT))
    sources = {path: text for path in files if not _IO.search(text := Path(path).read_text())}
    asked = [
        *(given.program, "-m", "hack.mutate.mutants"),
        *("--seed", str(given.seed)),
        *("--number", str(given.number)),
    ]
    draw = subprocess.run([*asked, *sources], stdout=subprocess.PIPE, check=True, text=True)
    mutants = list(enumerate(map(json.loads, draw.stdout.splitlines())))
    print(f"{len(mutants)} mutants of {len(sources)} files, seed {given.seed}", flush=True)
    reasons = tomllib.loads(_EXPLAINED.read_text())["mutant"]
    explained = {(one["path"], one["change"]): one["why"] for one in reasons}
    with tempfile.TemporaryDirectory() as folder:
        # Failing examples of mutants are nobody else's.
        os.environ["HYPOTHESIS_STORAGE_DIRECTORY"] = folder
        report = given.reach or Path(folder, "reach.json")
        known = _known(report, list(sources), given.tests)
        chosen = [one for one in mutants if not given.only or one[0] in given.only]
        alive, started = [], time.monotonic()
        for done, (number, mutant) in enumerate(chosen, start=1):
            path, before = mutant["path"], sources[mutant["path"]]
            tests = known.tests(path, mutant["first"], mutant["last"])
            began = time.monotonic()
            survived = survives(path, mutant["source"], known, tests) if tests else True
            if survived:
                alive.append((number, path, mutant["first"], _change(before, mutant["source"]), len(tests)))
            print(
                f"{done:>4}/{len(chosen)} {'SURVIVED' if survived else 'killed':<8} {time.monotonic() - began:5.1f} s"
                f"  {number:>3} {path}:{mutant['first']}, {len(tests)} tests",
                flush=True,
            )
    for number, path, line, change, tests_run in alive:
        why = explained.get((path, change))
        print(f"\n{number}: {path}:{line} survives {tests_run} tests{': ' + why if why else ''}\n{change}", end="")
    killed = len(chosen) - len(alive)
    score = 100 * killed / len(chosen)
    unexplained = sum((path, change) not in explained for _, path, _, change, _ in alive)
    print(
        f"\n{killed} of {len(chosen)} mutants killed: {score:.2f} %; {len(alive) - unexplained} survivors explained,"
        f" {unexplained} not; {time.monotonic() - started:.0f} s"
    )
    sys.exit(f"{score:.2f} % is less than {given.least:g}" if score < given.least else 0)


def _known(report: Path, sources: list[str], tests: list[str]) -> Reach:
    """What the tests reach, as it was kept for the same files, or measured now."""
    files = sorted(path for root in (*_ROOTS, "tests") for path in Path(root).rglob("*.py"))
    of = digest_of(part for path in files for part in (str(path).encode(), path.read_bytes()))
    if report.exists() and (found := json.loads(report.read_text())).get("of") == of:
        return Reach(found)
    return reach(sources, tests, report, of)


def _change(before: str, after: str) -> str:
    """The lines that are others, as a diff has them."""
    lines = difflib.unified_diff(before.splitlines(keepends=True), after.splitlines(keepends=True), n=0)
    return "".join(line for line in list(lines)[2:] if not line.startswith("@@"))


if __name__ == "__main__":
    main()
