"""`muster replay`: gangs of small logs start when each policy lets them, to the second."""

import gzip
import json
from pathlib import Path
from typing import Any

from muster.cli.replay.engine import parse_policy, replay
from muster.cli.replay.load import generated, read_load
from tests.support.cases import cases
from tests.support.cli.in_process import muster

# Number, submission, run time, processors, time limit, user; ten processors.
FULL = (1, 0, 1000, 8, 1200, 1)
LARGE = (2, 10, 500, 10, 600, 2)
SHORT = (3, 20, 100, 2, 200, 3)
LONG = (4, 30, 3000, 2, 4000, 4)
LATE = (5, 200, 100, 1, 200, 5)


def log(path: Path, *jobs: tuple[int, ...], head: str = "; MaxProcs: 10\n") -> str:
    lines = (
        f"{number} {at} -1 {runs} {size} -1 -1 {size} {limit} -1 1 {user} 1 -1 -1 -1 -1 -1"
        for number, at, runs, size, limit, user in jobs
    )
    path.write_bytes(gzip.compress((head + "\n".join(lines)).encode()))
    return str(path)


@cases(
    "policy, starts",
    ("strict: in order", "queueing=strict", [0, 1000, 1500, 1500, 1500]),
    ("endless: who fits passes", "patience=100h", [0, 3120, 20, 120, 1000]),
    ("no ends: it drains", "patience=0s,reserves=bounds,bounds=0", [0, 1000, 20, 1500, 1500]),
    ("ends: who is gone by then passes", "patience=0s,reserves=bounds", [0, 1000, 20, 1500, 200]),
)
def test_each_gang_starts_when_its_policy_lets_it(tmp_path: Path, policy: str, starts: list[int]) -> None:
    load = read_load(log(tmp_path / "log.swf.gz", FULL, LARGE, SHORT, LONG, LATE))
    started = replay(load, parse_policy(policy), lambda _: None).started
    assert {int(one.gang.name): one.at for one in started} == dict(enumerate(starts, 1))


def test_the_table_has_waits_in_minutes_and_what_was_used_while_any_gang_waited(tmp_path: Path) -> None:
    path = log(tmp_path / "log.swf.gz", FULL, LARGE, SHORT, LONG, LATE)
    done = muster("replay", path, "--policy", "patience=0s,reserves=bounds", "--plot", str(tmp_path / "waits.svg"))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        "5 gangs, 2 of them large; waits in minutes; USED: cpu",
        "",
        "POLICY                       MEAN  P95  MAX  SLOWDOWN  LARGE MEAN  P95  MAX    USED",
        "patience=0s,reserves=bounds   8.2   24   24       1.5         8.2   16   16  88.7 %",
    ]
    assert (tmp_path / "waits.svg").read_text().startswith("<svg ")


def test_without_a_policy_five_are_compared(tmp_path: Path) -> None:
    done = muster("replay", log(tmp_path / "log.swf.gz", FULL, LARGE, SHORT), "-o", "json")
    rows: list[dict[str, Any]] = json.loads(done.stdout)["policies"]
    waited = {row["policy"]: row["wait"]["max"] for row in rows}
    assert waited == {
        "strict": 1480.0,
        "no reservations": 990.0,
        "drain at patience": 990.0,
        "bounds": 990.0,
        "estimates": 990.0,
    }


def test_a_forecast_when_a_gang_comes_is_compared_with_its_start(tmp_path: Path) -> None:
    done = muster("replay", log(tmp_path / "log.swf.gz", FULL, LARGE), "--policy", "reserves=bounds", "--expected")
    assert done.stdout.splitlines()[-2:] == [
        "EXPECTED STARTS  ASKED  WITHIN X2  ERROR  BIAS  LATER  WAIT",
        "reserves=bounds      1      100 %    4.6  -4.6    0 %    16",
    ]


def test_estimates_come_from_former_runs_of_the_same_user(tmp_path: Path) -> None:
    """Three runs of 300 s are known of each of the two users who come behind a large gang; one runs longer then."""
    former = [(n, 400 * n, 300, 1, -1, user) for user in (1, 2) for n in range(3 * user - 2, 3 * user + 1)]
    path = log(
        tmp_path / "log.swf.gz",
        *former,
        (10, 4000, 300, 8, -1, 1),
        (11, 4001, 90, 10, -1, 9),
        (12, 4010, 300, 1, -1, 2),
    )
    load = read_load(path)
    started = replay(load, parse_policy("patience=0s,drain-after=72h"), lambda _: None).started
    assert {int(one.gang.name): one.at for one in started if one.gang.at >= 4000} == {10: 4000, 11: 4310, 12: 4010}


def test_a_log_without_a_head_is_of_a_machine_that_its_largest_job_fills(tmp_path: Path) -> None:
    load = read_load(log(tmp_path / "log.swf.gz", FULL, LARGE, head=""))
    assert (load.counted, load.left_out) == (("cpu", 10 * 10**9), 0)


def test_entries_that_are_no_gangs_are_left_out_and_counted(tmp_path: Path) -> None:
    path = log(tmp_path / "log.swf.gz", FULL, (2, 10, 0, 4, 60, 1), (3, 10, 60, 11, 60, 1))
    assert muster("replay", path).stdout.startswith("1 gangs, 1 of them large, 2 entries left out; ")


@cases(
    "arguments, said",
    ("no file", ["none.swf"], "none.swf: No such file or directory"),
    ("no seed", ["generated:x"], '"x" is no seed; use a number, as in generated:1'),
    (
        "no policy",
        ["generated:1", "--policy", "bounds=2"],
        (
            '"bounds=2" is no setting of a policy; use queueing=strict, patience=10m, reserves=estimates or bounds, '
            "drain-after=72h, half-life=24h, bounds=0.3"
        ),
    ),
)
def test_what_cannot_be_read_is_said(arguments: list[str], said: str) -> None:
    done = muster("replay", *arguments)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"muster replay: {said}\n")


def test_a_line_that_is_no_entry_is_named(tmp_path: Path) -> None:
    path = tmp_path / "log.swf"
    path.write_text("; MaxProcs: 4\n1 2 three\n")
    said = f"{path}:2: is no line of the Standard Workload Format, which has 18 numbers"
    assert muster("replay", str(path)).stderr == f"muster replay: {said}\n"


def test_the_same_seed_generates_the_same_day() -> None:
    assert generated(1) == generated(1)
    assert generated(1).arrivals != generated(2).arrivals
