"""Other versions of what the tests run: which programs a testbed then has, and the table of what came out."""

import pytest

from hack.testbed.kubernetes import DEFAULT_KUBERNETES, FORMER, KUBERNETES
from hack.testbed.modules import _family_of, required
from hack.testbed.parts import select
from hack.testbed.versions import OTHERS, VARIABLE
from hack.versions import BEGIN, END, LATER, PAGE, TESTS, outcome, rows, trials, written

_SAID = """
tests/apiserver/test_chart.py::test_one PASSED
=========================== short test summary info ============================
FAILED tests/apiserver/test_policies.py::test_two[a] - AssertionError
FAILED tests/apiserver/test_policies.py::test_two[b] - AssertionError
ERROR tests/e2e/test_demo.py::test_three - TestbedError: no
============= 2 failed, 31 passed, 1 error in 90.10s (0:01:30) =============
"""


def test_only_what_was_asked_for_is_another_version(monkeypatch: pytest.MonkeyPatch) -> None:
    usual = {part.name: part for part in select(["kuberay", "volcano"])}
    monkeypatch.setenv(VARIABLE, "kuberay=1.4,helm=3")
    other = {part.name: part for part in select(["kuberay", "volcano"])}
    changed = {name for name, part in other.items() if part != usual[name]}
    assert changed == {"kuberay", "helm"}
    assert (other["kuberay"].family, other["helm"].package) == ("kuberay-1.4", "helm.sh/helm/v3/cmd/helm")


def test_another_kubernetes_is_the_one_that_its_modules_name() -> None:
    """Every minor version from the first that the chart takes to the one after the tests' own."""
    names = {minor: required(one.family, one.package)[1] for minor, one in OTHERS["kubernetes"].items()}
    assert names == {minor: f"v{KUBERNETES[minor].version}" for minor in OTHERS["kubernetes"]}
    own = int(DEFAULT_KUBERNETES.partition(".")[2])
    minors = [version for version in names if version.count(".") == 1]
    assert [int(minor.partition(".")[2]) for minor in minors] == [*range(30, own), own + 1]
    assert [*FORMER] == [*names][:-1]


def test_a_module_that_another_version_has_none_of_is_the_usual_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """The stages of kwok, where the apiserver is another; the CRDs of another KubeRay are its own."""
    monkeypatch.setenv(VARIABLE, "kubernetes=1.31,kuberay=1.4")
    families = [
        _family_of(module).name for module in ("sigs.k8s.io/kwok", "github.com/ray-project/kuberay/ray-operator")
    ]
    assert families == ["kubernetes", "kuberay-1.4"]


def test_what_came_out_is_said_in_a_line() -> None:
    assert outcome(_SAID, 1) == (
        "31 tests pass; these fail: `apiserver/test_policies.py::test_two`, `e2e/test_demo.py::test_three`"
    )
    assert outcome("===== 12 passed in 3.20s =====\n", 0) == "12 tests pass"


@pytest.mark.parametrize(
    ("said", "code"),
    [
        ("ERROR: file or directory not found: tests/x.py\n\nno tests ran in 0.01s\n", 4),
        ("INTERNALERROR> no\n", 3),
        ("", -9),
    ],
)
def test_tests_that_broke_off_have_not_passed(said: str, code: int) -> None:
    assert outcome(said, code) == f"the tests failed to run to their end: pytest ended with {code}"


def test_a_row_that_was_not_tried_now_stays_as_it_was() -> None:
    first, second, *others = (trial.title for trial in trials())
    once = written(f"before\n{BEGIN}{END}after\n", {first: "2026-11-25 | 12 tests pass |"})
    page = written(once, {second: "2026-11-26 | 3 tests pass |"})
    assert rows(page) == {
        first: "2026-11-25 | 12 tests pass |",
        second: "2026-11-26 | 3 tests pass |",
        **dict.fromkeys(others, "not yet | |"),
    }
    assert (page.startswith("before\n"), page.endswith("after\n")) == (True, True)


def test_every_project_has_its_tests() -> None:
    assert TESTS.keys() == OTHERS.keys()


def test_a_version_is_not_tried_with_what_came_after_it() -> None:
    lacks = {trial.title: list(dict.fromkeys(trial.later().values())) for trial in trials()}
    resize, job_sets = "resizing pods", "JobSet 0.11, whose CRD this apiserver refuses for a rule"
    assert [lacks[title] for title in lacks if "Kubernetes" in title] == [
        [job_sets, resize],
        [job_sets, resize],
        [resize],
        *[[]] * 5,
    ]
    assert [len(lacks[title]) for title in lacks if "KubeRay" in title] == [3, 3, 3]


def test_what_came_later_has_tests_that_exist() -> None:
    """A test under another name would run, and fail."""
    for project, tests in LATER.items():
        for file, _, name in (test.partition("::") for test in tests):
            assert file in TESTS[project]
            assert f"def {name}(" in (PAGE.parents[1] / file).read_text()
