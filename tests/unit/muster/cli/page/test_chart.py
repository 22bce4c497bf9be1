"""The last hour of a queue: what is kept of it, and how it is drawn and told."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.cli.page.charts import HEIGHT, chart
from muster.cli.page.samples import SLOT, SLOTS, Sample, Samples
from tests.support.cli.page import served
from tests.support.controller.stores import filled
from tests.support.manifests.gangs import gangs, limited
from tests.support.manifests.observed import queue

values = st.lists(st.none() | st.integers(0, 300), min_size=1, max_size=SLOTS)


def test_a_slot_keeps_its_peak_and_an_hour_passes() -> None:
    samples = Samples(0.0)
    samples.note(0.0, {"q": Sample(10, 0)})
    samples.note(SLOT - 1, {"q": Sample(60, 2)})
    samples.note(SLOT - 0.5, {"q": Sample(20, 1)})
    samples.note(SLOT, {"q": Sample(20, 1)})
    assert (samples.hour("q")[0][-2:], samples.hour("q")[1][-2:]) == ([60, 20], [2, 1])
    samples.note(SLOT * SLOTS, {"q": Sample(None, 0)})
    assert samples.hour("q")[0] == [20, *[None] * (SLOTS - 1)]
    assert samples.hour("q")[1] == [1, *[None] * (SLOTS - 2), 0]


def test_what_nobody_saw_is_unknown() -> None:
    samples = Samples(0.0)
    samples.note(0.0, {"q": Sample(10, 3)})
    samples.pass_to(SLOT * 2)
    samples.note(SLOT * 4, {"q": Sample(10, 3)})
    assert samples.hour("q")[0][-6:] == [None, 10, None, None, None, 10]


@pytest.mark.parametrize("slots", [SLOTS, SLOTS + 1, 1_000_000])
def test_a_machine_that_slept_for_an_hour_knows_nothing_of_it(slots: int) -> None:
    samples = Samples(0.0)
    samples.note(0.0, {"q": Sample(10, 3)})
    samples.pass_to(SLOT * slots)
    assert set(samples.hour("q")[0]) == {None}


def test_a_clock_that_goes_back_counts_as_the_last_slot() -> None:
    samples = Samples(SLOT * 100)
    samples.note(SLOT * 100, {"q": Sample(10, 3)})
    samples.note(0.0, {"q": Sample(70, 3)})
    assert samples.hour("q")[0][-2:] == [None, 70]


def test_only_queues_that_are_there_are_kept() -> None:
    samples = Samples(0.0)
    samples.note(0.0, {f"q-{number}": Sample(1, 1) for number in range(100)})
    samples.note(1.0, {"q-7": Sample(1, 1), "new": Sample(100_000, 100_000)})
    assert len(samples) == 2
    assert (samples.hour("new")[0][-1], samples.hour("gone")[1]) == (65534, [None] * SLOTS)


def test_a_queue_is_drawn_in_steps_and_told() -> None:
    drawn = chart([None, 50, 50, 100, None, 0], [None, 0, 2, 2, None, 1])
    assert drawn.used == "M1 40V20H3V1H4V40ZM5 40V39H6V40Z"
    assert drawn.waiting == "M1 39H2V1H4M5 20H6"
    assert drawn.words == ("used 0 to 100%, now 0%", "waiting 0 to 2, now 1")


def test_a_queue_without_a_limit_of_which_nobody_waits_is_told() -> None:
    drawn = chart([None, None], [0, 0])
    assert (drawn.used, drawn.waiting, drawn.words) == ("", "", ("waiting 0, now 0",))
    assert chart([None], [None]).words == ()
    assert chart([7, None], [None, None]).words == ("used 7%, now unknown",)


@given(values, values)
def test_nothing_is_drawn_outside(percents: list[int | None], waiting: list[int | None]) -> None:
    drawn = chart(percents, waiting)
    for path in (drawn.used, drawn.waiting):
        assert re.fullmatch(r"[MHVZ0-9. ]*", path)
        heights = [float(one) for one in re.findall(r"V([\d.]+)|M\d+ ([\d.]+)", path) for one in one if one]
        widths = [int(one) for one in re.findall(r"[HM](\d+)", path)]
        assert all(0 <= one <= HEIGHT for one in heights)
        assert all(0 <= one <= drawn.width for one in widths) or len(waiting) > len(percents)


async def test_the_board_draws_each_queue_and_says_since_when() -> None:
    workloads, pods, groups = gangs(["run-0", "wait"])
    cluster = filled(workloads=workloads, pods=pods, groups=groups, queues=[queue("root"), limited("q", cpu="5")])
    async with served(cluster) as page:
        began = page.state.samples.began
        page.state.sampled(began + SLOT)
        _, text, _ = await page.get()
        revision = page.state.revision
    assert "used 60%, now 60%" in text
    assert "waiting 1, now 1" in text
    assert "watched since" in text
    assert revision == 2


async def test_while_the_apiserver_is_away_nobody_knows_how_the_queues_stand(monkeypatch: pytest.MonkeyPatch) -> None:
    async with served(filled(queues=[limited("q", cpu="5")])) as page:
        began = page.state.samples.began
        monkeypatch.setattr(page.state, "_unanswered", "away")
        page.state.sampled(began + SLOT)
        _, text, _ = await page.get()
    assert "now unknown" in text


async def test_a_hundred_queues_of_an_hour_are_no_large_page() -> None:
    queues = [queue("root"), *(limited(f"q-{number}", cpu="5") for number in range(200))]
    async with served(filled(queues=queues)) as page:
        samples = page.state.samples
        for slot in range(SLOTS):
            samples.note(samples.began + slot * SLOT, {f"q-{n}": Sample(slot * n % 101, slot % 7) for n in range(200)})
        _, text, _ = await page.get()
    assert text.count('class="chart"') == 99
    assert len(text) < 500_000
