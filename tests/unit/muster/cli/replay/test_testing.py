"""`muster test`: what a file expects of the waits under its load, and what is wrong with a file that cannot be read."""

import json
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from tests.support.cases import cases
from tests.support.cli.in_process import muster

ROOT = Path(__file__).parents[5]
GIVEN = """
given:
  queues:
    - {name: root, capability: {cpu: 4}}
    - {name: prod, capability: {cpu: 4}}
    - {name: fast, parent: prod, capability: {cpu: 4}}
    - kind: Queue
      metadata: {name: batch}
      spec: {capability: {cpu: 2}}
  gangs:
    - {name: first, queue: batch, runs: 1h, needs: {cpu: 2}}
    - {name: hero, queue: fast, at: 10m, runs: 1h, needs: {cpu: 4}}
    - {name: huge, queue: batch, at: 20m, runs: 1h, needs: {cpu: 3}}
"""
EXPECT = "expect:\n  - {used: 0.5}\n"


def tried(path: Path, text: str, *options: str) -> tuple[int, str, str]:
    path.write_text(text)
    done = muster("test", str(path), *options)
    return done.returncode, done.stdout, done.stderr


@cases(
    "expectation, found, passed",
    ("and what is below it", "{queue: prod, wait: {p95: 50m}}", "50m", True),
    ("too long", "{queue: fast, wait: {mean: 49m59s}}", "50m", False),
    ("one never starts", "{queue: batch, wait: {max: 10h}}", "never", False),
    ("a percentile without it", "{queue: batch, wait: {p49: 0s}}", "0s", True),
    ("gang", "{gang: hero, startsWithin: 50m}", "50m", True),
    ("gang that never starts", "{gang: huge, startsWithin: 50m}", "never", False),
    ("used", "{used: 0.99}", "77.3%", False),
)
def test_an_expectation_holds_or_the_command_fails(tmp_path: Path, expectation: str, found: str, passed: bool) -> None:
    code, out, _ = tried(tmp_path / "p.yaml", f"{GIVEN}expect:\n  - {expectation}\n", "-o", "json")
    (result,) = json.loads(out)
    assert (code, result["found"], result["passed"]) == (int(not passed), found, passed)


def test_junit_has_a_case_for_each_expectation(tmp_path: Path) -> None:
    report = tmp_path / "results.xml"
    expect = "expect:\n  - {gang: hero, startsWithin: 1h}\n  - {gang: huge, startsWithin: 1h}\n"
    code, out, _ = tried(tmp_path / "p.yaml", GIVEN + expect, "--junit", str(report))
    assert (code, out.splitlines()[1:]) == (
        1,
        ["gang hero: starts within 1h  50m    passed", "gang huge: starts within 1h  never  FAILED"],
    )
    suite = ET.fromstring(report.read_text())  # noqa: S314 - of our own
    assert (suite.get("tests"), suite.get("failures")) == ("2", "1")
    assert [(case.get("name"), [one.get("message") for one in case]) for case in suite] == [
        ("gang hero: starts within 1h", []),
        ("gang huge: starts within 1h", ["never"]),
    ]


def test_the_gangs_of_a_log_stand_in_the_queues_of_the_file(tmp_path: Path) -> None:
    job = "1 100 -1 60 4 -1 -1 4 60 -1 1 7 1 -1 -1 -1 -1 -1\n"
    (tmp_path / "log.swf").write_text(job + job.replace("1 100", "2 100", 1))
    text = "load: log.swf\nexpect: [{queue: log, wait: {max: 30s}}]\n"
    assert tried(tmp_path / "p.yaml", text)[0] == 1
    text += "given: {queues: [{name: log, capability: {cpu: 8}}]}\n"
    assert tried(tmp_path / "p.yaml", text)[0] == 0


def test_the_example_of_the_documents_keeps_its_promises() -> None:
    done = muster("test", str(ROOT / "docs/examples/queue-test.yaml"))
    assert done.returncode == 0
    assert f"```text\n{done.stdout}```" in (ROOT / "docs/cli.md").read_text()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (EXPECT, 'load: "" has no gangs; name a log, a record, or generated:1, or write given.gangs'),
        (f"load: none.swf\n{EXPECT}", "none.swf: No such file or directory"),
        (f"{GIVEN}expect: []", "expect: is empty; write at least one expectation, such as used: 0.8"),
        (f"{GIVEN}expect: [{{used: 80}}]", 'expect[0].used: "80.0" is no part; write a number above 0 and up to 1'),
        (f"{GIVEN}expect: [{{queue: prod}}]", "expect[0]: is no expectation; write queue with wait"),
        (f"{GIVEN}expect: [{{uesd: 0.8}}]", 'expect[0]: unknown field "uesd"; docs/cli.md has all'),
        (
            f"{GIVEN}expect: [{{queue: none, wait: {{max: 1h}}}}]",
            'expect[0].queue: "none" is no queue here; use one of',
        ),
        (f"{GIVEN}expect: [{{gang: none, startsWithin: 1h}}]", 'expect[0].gang: "none" is no gang of the load; add it'),
        (
            f"{GIVEN}expect: [{{queue: prod, wait: {{p95: soon}}}}]",
            'expect[0].wait.p95: "soon" is not a duration; write one such as 30s',
        ),
        (
            f"given: {{queues: [{{name: q, patiense: 5m}}]}}\n{EXPECT}",
            'given.queues[0].patiense: "5m" is no field of a queue; use bound, capability',
        ),
        (
            f"given: {{queues: [{{name: q, patience: soon}}]}}\n{EXPECT}",
            'given.queues[0]: metadata.annotations[muster.dev/patience]: "soon" is not a duration',
        ),
        (f"{GIVEN.replace('queue: fast', 'queue: none')}{EXPECT}", 'given.gangs[1].queue: "none" is no queue here'),
        (f"{GIVEN.replace('runs: 1h', 'runs: soon')}{EXPECT}", 'given.gangs[0].runs: "soon" is not a duration'),
    ],
)
def test_a_file_that_cannot_be_read_is_refused_with_its_field(tmp_path: Path, text: str, told: str) -> None:
    code, out, err = tried(tmp_path / "p.yaml", text)
    assert (code, out) == (2, "")
    assert told in err
