"""`make test-versions`: the tests on which a promise about versions stands, with each other version in its turn.

`python -m hack.versions [PROJECT=VERSION …]` builds the programs of each version, runs its tests, and writes the date
and what came out into the table of docs/operations.md. The exit code is 0 when all have passed.
"""

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hack.testbed.build import binaries
from hack.testbed.errors import TestbedError
from hack.testbed.kubernetes import DEFAULT_KUBERNETES
from hack.testbed.modules import required
from hack.testbed.parts import DEFAULT_ADDONS, select
from hack.testbed.versions import OTHERS, VARIABLE

PAGE = Path(__file__).parents[1] / "docs" / "operations.md"
BEGIN = "<!-- other versions: written by make test-versions -->\n"
END = "<!-- end of other versions -->\n"
_HEAD = "| what | version | tried | what came out |\n|---|---|---|---|\n"
_NEVER = "not yet | |"


@dataclass(frozen=True, slots=True)
class Later:
    """A feature that earlier versions lack, and the first version that has it."""

    since: str
    what: str


_MAIN_JOB = ("tests/e2e/test_demo.py::test_the_demo_shows_what_the_readme_shows_and_leaves_nothing",)
TESTS: Mapping[str, Sequence[str]] = {
    "kubernetes": (
        *("tests/apiserver/test_chart.py", "tests/apiserver/test_policies.py"),
        *("tests/apiserver/test_policies_on_muster.py", "tests/apiserver/test_first_installation.py"),
        *("tests/apiserver/test_pod_patch.py", "tests/apiserver/test_validation.py", "tests/apiserver/test_outage.py"),
        *("tests/e2e/test_story_d_raycluster.py", *_MAIN_JOB),
    ),
    "kuberay": ("tests/e2e/test_kind_ray.py", "tests/e2e/test_story_d_raycluster.py", *_MAIN_JOB),
    "helm": ("tests/apiserver/test_first_installation.py", "tests/e2e/test_uninstall.py", *_MAIN_JOB),
}
"""Tests that run with another version of a project: chart, policies, webhooks, and the main job."""
_RAY = "tests/e2e/test_kind_ray.py::"
_OUTAGE = "tests/apiserver/test_outage.py::"
_UPGRADE = Later("1.6", "`upgradeStrategy` of a RayCluster")
LATER: Mapping[str, Mapping[str, Later]] = {
    "kubernetes": {
        f"{_OUTAGE}test_a_job_set_without_a_spec_is_created_all_the_same": Later(
            "1.32", "JobSet 0.11, whose CRD this apiserver refuses for a rule"
        ),
        f"{_OUTAGE}test_a_member_is_resized_without_a_call": Later("1.33", "resizing pods"),
    },
    "kuberay": {
        f"{_RAY}test_a_ray_job_that_keeps_its_head_gives_the_place_of_its_workers": Later(
            "1.6", "`deletionRules` of a RayJob"
        ),
        f"{_RAY}test_a_ray_cluster_that_is_recreated_keeps_its_place": _UPGRADE,
        f"{_RAY}test_a_ray_cluster_that_is_recreated_larger_queues_again_as_a_whole": _UPGRADE,
        f"{_RAY}test_the_jobs_of_a_ray_cron_job_queue_one_after_another": Later("1.6", "RayCronJobs"),
    },
}
"""Tests of what a project has, or has without being asked, since some version."""
_NAMES = {"kubernetes": "Kubernetes", "kuberay": "KubeRay", "helm": "helm"}
_FAILED = re.compile(r"^(?:FAILED|ERROR) tests/(\S+)", re.MULTILINE)
_COUNT = re.compile(r"(\d+) (passed|failed|error)")


@dataclass(frozen=True, slots=True)
class Trial:
    """One other version of one project."""

    project: str
    version: str

    @property
    def title(self) -> str:
        """The first cells of its row, up to the date."""
        other = OTHERS[self.project][self.version]
        return f"| {_NAMES[self.project]} | {required(other.family, other.package)[1]} |"

    def later(self) -> Mapping[str, str]:
        """The tests that this version is too old for, and what it lacks."""
        tests = LATER.get(self.project, {}).items()
        return {test: one.what for test, one in tests if _minor(self.version) < _minor(one.since)}

    def run(self) -> str:
        """Build the programs and run the tests; return the last cells of its row."""
        words = f"{self.project}={self.version}"
        environment = os.environ | {VARIABLE: words}
        os.environ[VARIABLE] = words
        try:
            kubernetes = self.version if self.project == "kubernetes" else DEFAULT_KUBERNETES
            binaries(select(DEFAULT_ADDONS, kubernetes), _say)
        except TestbedError as error:
            return f"{_today()} | it does not build: {str(error).partition(';')[0]} |"
        finally:
            del os.environ[VARIABLE]
        later = self.later()
        left_out = [f"--deselect={test}" for test in later]
        _say(f"{words}: {' '.join([*TESTS[self.project], *left_out])}")
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-n0", "-v", "-rfE", "--tb=short", *left_out, *TESTS[self.project]],
            cwd=PAGE.parents[1],
            env=environment,
            stdout=subprocess.PIPE,
            text=True,
            check=False,
        )
        print(done.stdout, flush=True)
        newer = f"; without {', '.join(dict.fromkeys(later.values()))}" if later else ""
        return f"{_today()} | {outcome(done.stdout, done.returncode)}{newer} |"


def outcome(printed: str, code: int) -> str:
    """The result of a pytest in the words of the table; one that broke off (`code`) has failed, too."""
    counts = {word: number for number, word in _COUNT.findall(printed.strip().rpartition("\n")[2])}
    failed = list(dict.fromkeys(name.partition("[")[0] for name in _FAILED.findall(printed)))
    if code and not failed:
        return f"the tests failed to run to their end: pytest ended with {code}"
    words = [f"{counts.get('passed', 0)} tests pass"]
    return "; ".join([*words, f"these fail: {', '.join(f'`{name}`' for name in failed)}"] if failed else words)


def trials() -> list[Trial]:
    """Every other version that there is."""
    return [Trial(project, version) for project, versions in OTHERS.items() for version in versions]


def rows(text: str) -> dict[str, str]:
    """The rows that a page has, by their first cells."""
    inside = text.partition(BEGIN)[2].partition(END)[0]
    cells = [re.match(r"(\| [^|]+ \| [^|]+ \|)(.*)", line) for line in inside.splitlines()[3:]]
    return {one[1]: one[2].strip() for one in cells if one}


def written(text: str, found: Mapping[str, str]) -> str:
    """The page with a row for each version: the outcome in `found`, else the row of the page."""
    before, _, rest = text.partition(BEGIN)
    known = {**rows(text), **found}
    lines = [f"{one.title} {known.get(one.title, _NEVER)}" for one in trials()]
    return f"{before}{BEGIN}\n{_HEAD}{chr(10).join(lines)}\n\n{END}{rest.partition(END)[2]}"


def _minor(version: str) -> list[int]:
    return [int(number) for number in version.split(".")]


def _today() -> str:
    return time.strftime("%Y-%m-%d", time.gmtime())


def _say(line: str) -> None:
    print(f"== {line}", flush=True)


def _asked(words: Sequence[str]) -> Iterator[Trial]:
    for word in words:
        project, _, version = word.partition("=")
        if version not in OTHERS.get(project, {}):
            sys.exit(f"there is no {word}: choose from {', '.join(f'{one.project}={one.version}' for one in trials())}")
        yield Trial(project, version)


def main() -> None:
    """Try the versions that are named, else all, and exit; each row is written as soon as it is known."""
    passed = True
    for trial in list(_asked(sys.argv[1:])) or trials():
        found = {trial.title: trial.run()}
        PAGE.write_text(written(PAGE.read_text(), found))
        print(f"{trial.title} {found[trial.title]}", flush=True)
        passed = passed and "fail" not in found[trial.title] and "build" not in found[trial.title]
    sys.exit(not passed)


if __name__ == "__main__":
    main()
