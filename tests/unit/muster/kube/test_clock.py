"""The apiserver's time."""

import datetime as dt

import pytest

from muster.kube.client import Client
from muster.kube.clock import ServerClock
from muster.model.resource import PODS
from tests.support.faults.apiserver import FaultyApiserver, reply

SECOND = dt.timedelta(seconds=1)


@pytest.mark.parametrize("date", [None, "", "soon", "Mon, 99 Foo 2026 00:00:00 GMT"])
def test_without_a_date_it_is_this_machine_s(date: str | None) -> None:
    clock = ServerClock()
    clock.note_date(date)
    assert abs(clock.now() - dt.datetime.now(dt.UTC)) < SECOND


def test_what_was_heard_last_goes_on() -> None:
    clock = ServerClock()
    clock.note_date("Thu, 01 Jan 1998 00:00:00 GMT")
    clock.note_date("Fri, 02 Jan 1998 00:00:00 GMT")
    clock.note_date(None)
    assert dt.timedelta(0) <= clock.now() - dt.datetime(1998, 1, 2, tzinfo=dt.UTC) < SECOND


async def test_every_answer_tells_the_time(server: FaultyApiserver, client: Client) -> None:
    server.on("GET", reply({}, 200, Date="Thu, 01 Jan 2099 00:00:00 GMT"))
    assert client.now().year < 2099
    await client.get(PODS, "p", "ns")
    assert client.now().year == 2099
