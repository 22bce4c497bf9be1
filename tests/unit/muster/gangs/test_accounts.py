"""What the accounts count, keep and give back."""

import itertools
import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.gangs.accounts import OUTCOMES, RETENTION_DAYS, Accounts, Scope, Totals, wait_quantile
from muster.model.objects import InvalidObjectError
from tests.support.cases import cases

DAY = 86400.0
NOON = 20_000 * DAY + DAY / 2
TRAIN = Scope("", "q", "team", "PyTorchJob/train", ("ml",))


def again(accounts: Accounts) -> Accounts:
    """The accounts as another process reads them."""
    read = Accounts()
    read.read(accounts.text())
    return read


def sums(accounts: Accounts, of: str = "held") -> Counter[str]:
    """The sums of all rows."""
    whole = Totals()
    for _, totals in accounts.rows():
        whole.add(totals)
    return Counter(getattr(whole, of))


def test_amounts_count_on_the_days_on_which_they_were_held() -> None:
    accounts = Accounts(["team"])
    accounts.add(TRAIN, NOON, NOON + DAY, held={"cpu": 2.0}, idle=True)
    accounts.add(TRAIN, NOON, NOON + 60, waited={"nvidia.com/gpu": 8.0})
    rows = dict(again(accounts).rows())
    assert [(scope.day, scope[1:]) for scope in rows] == [("2024-10-04", TRAIN[1:]), ("2024-10-05", TRAIN[1:])]
    first, second = rows.values()
    assert (first.held, first.idle, first.waited) == ({"cpu": DAY}, {"cpu": DAY}, {"nvidia.com/gpu": 480.0})
    assert (second.held, second.waited) == ({"cpu": DAY}, {})


def test_ends_and_waits_are_counted() -> None:
    accounts = Accounts()
    for outcome in OUTCOMES:
        accounts.add_end(TRAIN, outcome, NOON)  # type: ignore[arg-type]
    accounts.add_wait(TRAIN, 0.3, NOON)
    accounts.add_wait(TRAIN, 3600, NOON)
    (_, totals), *more = again(accounts).rows()
    assert (totals.ends, more) == (dict.fromkeys(OUTCOMES, 1), [])
    assert wait_quantile(totals.waits, 0.5) == 0
    assert wait_quantile(totals.waits, 0.95) == pytest.approx(3600, rel=0.1)
    assert wait_quantile({}, 0.5) == 0


@given(st.lists(st.floats(1, 5e7), min_size=1), st.sampled_from([0.5, 0.95]))
def test_a_quantile_is_within_a_tenth(waits: list[float], q: float) -> None:
    accounts = Accounts()
    for one in waits:
        accounts.add_wait(TRAIN, one, NOON)
    (_, totals), *_ = accounts.rows()
    rank = next(rank for rank in range(1, len(waits) + 1) if rank >= q * len(waits))
    assert wait_quantile(totals.waits, q) == pytest.approx(sorted(waits)[rank - 1], rel=0.1)


def test_days_go_after_the_retention() -> None:
    accounts = Accounts()
    for day in range(50):
        accounts.add(TRAIN, NOON + day * DAY, NOON + day * DAY + 1, held={"cpu": 1})
    assert len(list(accounts.rows())) == RETENTION_DAYS


@cases(
    "many",
    ("owners", lambda n: Scope("", "q", "team", f"Job/{n}", ("ml",))),
    ("owners of long names", lambda n: Scope("", "q" * 200, "team", f"{n:0200}", ("ml" * 90,) * 4)),
    ("labels", lambda n: Scope("", "q", "team", "Job/a", (str(n),))),
    ("namespaces", lambda n: Scope("", "q", str(n), "", ())),
    ("queues", lambda n: Scope("", str(n), "", "", ())),
)
def test_the_accounts_are_bounded_and_lose_no_sums(many: object) -> None:
    accounts = Accounts(["team"])
    for n in range(20_000):
        at = NOON + n % 30 * DAY
        accounts.add(many(n), at, at + 1, held={"cpu": 1.0, "memory": 2.0**30})  # type: ignore[operator]
        accounts.add_end(many(n), "failed", at)  # type: ignore[operator]
    text = accounts.text()
    assert len(list(accounts.rows())) <= 2500
    assert len(text) < 452_000
    assert sums(accounts) == sums(again(accounts)) == {"cpu": 20_000.0, "memory": 20_000 * 2.0**30}
    assert sums(accounts, "ends") == {"failed": 20_000}


def test_a_tenant_that_writes_names_without_end_hides_nobody_who_uses_much() -> None:
    """Of ten thousand names on one day, most of which hold next to nothing; all days keep those that hold much."""
    accounts = Accounts(["team"])
    for day in range(30):
        for n in range(20):
            large = TRAIN._replace(owner=f"Job/large-{n}")
            accounts.add(large, NOON + day * DAY, NOON + day * DAY + 3600, held={"cpu": 8.0, "nvidia.com/gpu": 8.0})
    for n in range(10_000):
        scope = Scope("", "q", "tenant", f"Job/{n}", (f"team-{n}",))
        accounts.add(scope, NOON + 29 * DAY, NOON + 29 * DAY + 60, held={"cpu": 0.1}, waited={f"example.com/{n}": 1.0})
        accounts.add_end(scope, "failed", NOON + 29 * DAY)
    owners = Counter(scope.day for scope, _ in again(accounts).rows() if "large" in scope.owner)
    assert list(owners.values()) == [20] * 30
    found = sums(accounts)
    assert found["cpu"] == pytest.approx(30 * 20 * 8 * 3600 + 10_000 * 6)
    assert found["nvidia.com/gpu"] == pytest.approx(30 * 20 * 8 * 3600)
    assert sums(accounts, "ends") == {"failed": 10_000}


def test_rows_are_merged_a_few_at_a_time_and_may_come_in_between() -> None:
    """However many there are, a step of the event loop stays short."""
    accounts = Accounts(["team"])
    steps: list[int] = []

    def add(n: int) -> None:
        before = len(list(accounts.rows()))
        accounts.add(Scope("", f"q-{n % 50}", f"{n % 300}", f"Job/{n}", (f"{n % 7}",)), NOON, NOON + 1, held=held)
        steps.append(before - len(list(accounts.rows())))

    held = {f"example.com/{n}": 1.5 for n in range(14)} | {"cpu": 1.0}
    for n in range(4000):
        add(n)
    rows = [len(list(accounts.rows()))]
    for n, _ in enumerate(accounts.encode()):
        rows.append(len(list(accounts.rows())))
        if n % 50 == 0:
            add(4000 + n)
            rows.append(len(list(accounts.rows())))
    assert (max(rows) < 3000, max(steps) <= 100) == (True, True)
    assert max(before - after for before, after in itertools.pairwise(rows)) <= 100
    assert len(accounts.text()) < 452_000
    assert len(list(accounts.rows())) <= 2500
    assert sums(again(accounts))["cpu"] == len(steps)


def test_of_three_thousand_queues_in_a_day_the_large_ones_keep_their_names() -> None:
    accounts = Accounts()
    for n in range(3000):
        for namespace in "ab":
            accounts.add(Scope("", f"q-{n}", namespace, f"Job/{n}"), NOON, NOON + 60, held={"cpu": 1.0 + n})
    found: Counter[str] = Counter()
    for scope, totals in again(accounts).rows():
        found[scope.queue] += totals.held["cpu"]  # type: ignore[assignment]
    assert len(found) > 2000
    assert {f"q-{n}" for n in range(2000, 3000)} <= found.keys()
    assert sum(found.values()) == 120 * sum(range(1, 3001))


def test_many_resources_do_not_hide_cpu_and_memory() -> None:
    accounts = Accounts()
    for n in range(50):
        accounts.add(TRAIN, NOON, NOON + 60, held={f"a.example.com/{n}": 1.0, "cpu": 1.0, "memory": 1.0})
    found = sums(again(accounts))
    assert (len(found) <= 16, found["cpu"], found["memory"]) == (True, 3000, 3000)


def test_amounts_without_bounds_can_be_read_again() -> None:
    accounts = Accounts()
    accounts.add(TRAIN, NOON, NOON + DAY, held={"memory": 1e29, "cpu": 1.0})
    assert sums(again(accounts)) == {"memory": 1e30, "cpu": DAY}


@given(st.randoms(use_true_random=False), st.integers(1, 6))
def test_what_is_stored_and_read_between_counts_once(seed: random.Random, parts: int) -> None:
    """However often another process goes on."""
    whole, accounts = Accounts(["team"]), Accounts(["team"])
    for _ in range(parts):
        for _ in range(seed.randint(0, 5)):
            scope = TRAIN._replace(queue=seed.choice("ab"), owner=seed.choice(["", "Job/a"]))
            start = NOON + seed.randint(0, 10) * DAY
            for one in (whole, accounts):
                one.add(scope, start, start + 90, held={"cpu": 1.5}, waited={"cpu": 0.5}, idle=True)
        accounts = again(accounts)
    expected, found = dict(whole.rows()), dict(accounts.rows())
    assert expected.keys() == found.keys()
    for scope, totals in found.items():
        for part in ("held", "idle", "waited"):
            assert getattr(totals, part) == pytest.approx(getattr(expected[scope], part))


def test_stored_accounts_are_added_to_what_was_counted_since() -> None:
    stored, since = Accounts(["team", "old"]), Accounts(["new", "team"])
    stored.until = NOON
    stored.add_end(TRAIN._replace(labels=("ml", "x")), "failed", NOON)
    since.add_end(TRAIN._replace(labels=("y", "ml")), "failed", NOON)
    since.read(stored.text())
    assert {scope.labels: totals.ends for scope, totals in since.rows()} == {
        ("", "ml"): {"failed": 1},
        ("y", "ml"): {"failed": 1},
    }
    assert (since.until, again(stored).label_keys) == (NOON, ("team", "old"))


@cases(
    "text",
    ("cut off", "{"),
    (
        "a negative amount",
        '{"until":0,"labels":[],"days":{"2026-11-01":[["q","","",[],{"cpu":-1},{},{},{},{}]]}}',
    ),
    (
        "no count",
        '{"until":0,"labels":[],"days":{"2026-11-01":[["q","","",[],{},{},{},{},{"x":-1}]]}}',
    ),
    ("no day", '{"until":0,"labels":[],"days":{"today":[]}}'),
    (
        "no bucket",
        '{"until":0,"labels":[],"days":{"2026-11-01":[["q","","",[],{},{},{},{"100":1},{}]]}}',
    ),
)
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(InvalidObjectError):
        Accounts().read(text)


def test_what_another_version_counts_as_well_costs_nothing_of_the_rest() -> None:
    row = '["q","","",[],{"cpu":60},{},{},{},{"preempted":1}]'
    accounts = Accounts()
    accounts.read(f'{{"until":0,"labels":[],"form":2,"days":{{"2026-11-01":[{row}]}}}}')
    ((_, totals),) = again(accounts).rows()
    assert (totals.held, totals.ends) == ({"cpu": 60}, {"preempted": 1})


def test_days_are_encoded_again_when_anything_is_added() -> None:
    accounts = Accounts()
    for day in range(2):
        accounts.add_end(TRAIN, "failed", NOON + day * 86400)
    assert len(list(accounts.encode())) == 2
    accounts.add_end(TRAIN, "failed", NOON)
    assert sorted(totals.ends["failed"] for _, totals in again(accounts).rows()) == [1, 2]


def test_a_day_that_no_calendar_has_is_left_out() -> None:
    accounts = Accounts()
    accounts.read('{"until":0,"labels":[],"days":{"2026-13-41":[["q","","",[],{"cpu":1},{},{},{},{}]]}}')
    assert list(accounts.rows()) == []
