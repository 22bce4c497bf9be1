"""`make lint`: the hooks of .pre-commit-config.yaml, side by side, on the whole repository."""

import shlex
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

import yaml

CONFIGURATION = Path(__file__).parents[1] / ".pre-commit-config.yaml"


def checks() -> dict[str, Sequence[str]]:
    """The command of each hook; without files it looks at the whole repository."""
    (repository,) = yaml.safe_load(CONFIGURATION.read_text())["repos"]
    return {hook["id"]: shlex.split(hook["entry"]) for hook in repository["hooks"]}


def lint(commands: Mapping[str, Sequence[str]]) -> bool:
    """Run these commands, print what each found when it ends, and return true when all found nothing."""

    def run(name: str) -> tuple[str, subprocess.CompletedProcess[str], float]:
        started = time.monotonic()
        done = subprocess.run(
            commands[name],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            cwd=CONFIGURATION.parent,
        )
        return name, done, time.monotonic() - started

    clean = True
    with ThreadPoolExecutor(len(commands)) as pool:
        for ended in as_completed([pool.submit(run, name) for name in commands]):
            name, done, seconds = ended.result()
            if done.returncode:
                print(done.stdout.rstrip())
            last = next(iter(reversed(done.stdout.split("\n\n")[-1].strip().splitlines())), "")
            print(f"{name:<13}| {'FAILED: ' if done.returncode else ''}{last.strip()} ({seconds:.1f} s)", flush=True)
            clean = clean and not done.returncode
    return clean


if __name__ == "__main__":
    sys.exit(not lint(checks()))
