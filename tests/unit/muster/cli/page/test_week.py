"""The last week of a queue on the page: from the leader's records, as far as they may be read."""

import time
from dataclasses import replace

from muster.gangs.accounts import Accounts, Scope
from tests.support.cases import cases
from tests.support.cli.page import served
from tests.support.controller.stores import filled
from tests.support.faults.apiserver import Answer, failure, only, reply
from tests.support.manifests.gangs import limited

_HOUR = 3600.0
_RECORDS = "/api/v1/namespaces/muster-system/configmaps/muster-history"


def used() -> Answer:
    accounts, now = Accounts(), time.time()
    scope = Scope("", "q", "team", "RayJob/train")
    accounts.add(scope, now - 8 * _HOUR, now, held={"cpu": 2.0, "nvidia.com/gpu": 10.0})
    accounts.add(scope, now - _HOUR, now, held={"nvidia.com/gpu": 5.0}, idle=True)
    accounts.add(scope, now - _HOUR, now, waited={"nvidia.com/gpu": 7.0})
    accounts.add_wait(scope, 600.0, now)
    accounts.add_end(scope, "failed", now)
    accounts.until = now
    return reply({"data": {"use": accounts.text()}})


@cases(
    "answer, shown",
    ("records", used(), True),
    ("no right", failure(403, "Forbidden"), False),
    ("no ConfigMap", failure(404, "NotFound"), False),
    ("nothing recorded", reply({"metadata": {}}), False),
    ("spoiled", reply({"data": {"use": "{"}}), False),
)
async def test_it_is_shown_where_it_may_be_read(answer: Answer, *, shown: bool) -> None:
    """And nothing is said of it elsewhere."""
    async with served(filled(queues=[limited("q", cpu="5"), limited("new", cpu="5")])) as page:
        page.apiserver.on("GET", only(_RECORDS, answer, failure(404, "NotFound")))
        visible = page.following.visible
        visible.settings = replace(visible.settings, history="muster-system/muster-history")
        await page.state.read_records()
        _, text, _ = await page.get()
        page.apiserver.on("GET", failure(403, "Forbidden"))
        await page.state.read_records()
        _, later, _ = await page.get()
    words = (
        "Last week",
        "85 nvidia.com/gpu-hours, 5 idle, 7 waited for",
        "half waited up to 10m, 95% up to 10m",
        "failed 1",
    )
    assert [word in text for word in words] == [shown] * 4
    assert "Last week" not in later, "the right was taken away"
