"""When gangs start, on the page: the next day of a queue, and the forecast that is made for those who look."""

import html
import re
from dataclasses import replace

from muster.cli.page.charts import ahead
from muster.model.times import minute_of
from muster.queueing.entries import Claim
from muster.queueing.ledger import EndKind, GangKey, Run
from tests.support.cli.page import Served, served
from tests.support.controller.stores import filled
from tests.support.faults.apiserver import eventually
from tests.support.manifests.gangs import gangs, limited

NOW = 1_800_000_000.0
WAITS = "gang?namespace=team&name=ray-wait-pg"


def reservation(starts_by: str | None) -> dict[str, str | None]:
    return {"gang": "team/large", "startsBy": starts_by}


def test_a_day_has_a_stroke_for_each_quarter_with_a_start_and_ends_with_what_is_reserved() -> None:
    drawn = ahead(NOW, reservation("2027-01-15T10:00:00Z"), [NOW, NOW + 899, NOW + 900, NOW + 86_400])
    assert (drawn.starts, drawn.reserved) == ("M0.5 0V12M1.5 0V12", 8)
    assert drawn.words == ("reserved for team/large from 2027-01-15 10:00 UTC", "3 starts expected")


def test_what_is_reserved_from_now_on_is_all_of_the_day_and_what_is_later_nothing() -> None:
    assert (ahead(NOW, reservation(None), ()).reserved, ahead(NOW, None, ()).reserved) == (0, None)
    later = ahead(NOW, reservation("2027-01-17T10:00:00Z"), ())
    assert (later.reserved, later.words) == (None, ("reserved for team/large from 2027-01-17 10:00 UTC",))


def seen(page: str) -> str:
    """What a reader sees, in single blanks."""
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", page)).split())


def in_an_hour(page: Served, kind: EndKind) -> float:
    """What runs ends in an hour, and the gang that waits has its reservation then."""
    ledger, now = page.state.snapshot.ledger, page.state.snapshot.now
    waits = ledger.candidate(GangKey("team", "ray-wait-pg"))
    assert waits is not None
    ledger.wait(replace(waits, passed_since=0.0))
    ledger.hold(Claim(GangKey("team", "ray-run-pg"), "q", waits.need, end=Run(3600.0, kind).from_(now)))
    return now + 3600.0


async def test_expected_starts_are_worked_out_for_those_who_look() -> None:
    workloads, pods, groups = gangs(["run", "wait"], state="WaitingForQuota", message="waits")
    cluster = filled(workloads=workloads, pods=pods, groups=groups, queues=[limited("q", cpu="4")])
    async with served(cluster) as page:
        start = in_an_hour(page, EndKind.SAID)
        assert page.state.starts is None
        _, first, _ = await page.get()
        await eventually(lambda: page.state.starts)
        page.state.board = type(page.state.board)(page.state.snapshot, whole=True)
        _, board, _ = await page.get()
        _, gang, _ = await page.get(WAITS)
    assert "Expected starts are being worked out." in seen(first)
    found = re.search(r"cpu 3, memory 3Gi cpu 2 (\S+ \S+ UTC) waits Expected starts are a forecast as of", seen(board))
    assert found is not None
    assert f"reserved for team/raycluster/wait from {minute_of(start)} ; 1 start expected" in seen(board)
    assert f"Planned for {minute_of(start)}, if what runs ends as it says Expected about {found[1]}, in" in seen(gang)
    assert "run times are known for 100% of what it waits for Needs cpu 3" in seen(gang)
