"""The past use of queues, as `queues` and `explain` read it: the leader's own, or a note that it is unknown."""

import json
from dataclasses import replace

import pytest

from muster.cli.settings import Settings
from muster.cli.snapshot import ClusterSnapshot, load
from muster.model.names import HALF_LIFE
from muster.queueing.past_use import PastUse
from tests.support.faults.apiserver import Answer, FaultyApiserver, failure, listing, only, reply
from tests.support.manifests.observed import NAMESPACE

_QUEUES = "/apis/scheduling.volcano.sh/v1beta1/queues"
_RECORDS = "/api/v1/namespaces/system/configmaps/muster-history"


def _queue(name: str, parent: str, annotations: dict[str, str]) -> dict[str, object]:
    metadata = {"name": name, "annotations": annotations, "resourceVersion": "1"}
    spec = {"capability": {"cpu": "4"}, "parent": parent}
    return {"metadata": metadata, "spec": spec, "status": {"state": "Open"}}


def _stored() -> str:
    past = PastUse()
    for now in (0.0, 60.0):
        past.advance(now, [("a", 60.0, {"cpu": 8 * 10**9})])
    return past.text()


async def _read(answer: Answer, *, half_life: str = "1m") -> ClusterSnapshot:
    visible = ClusterSnapshot.empty(replace(Settings(), history="system/muster-history"))
    queues = [_queue("top", "root", {HALF_LIFE: half_life} if half_life else {}), _queue("a", "top", {})]
    queues.append(_queue("b", "top", {}))
    async with FaultyApiserver.serving() as server, server.client() as client:
        server.on("LIST", only(_QUEUES, reply(listing(1, *queues)), reply(listing(1))))
        server.on("GET", only(_RECORDS, answer, failure(404, "NotFound")))
        await load(client, NAMESPACE, visible)
    return visible


async def test_the_shares_of_queues_count_what_the_leader_stored() -> None:
    visible = await _read(reply({"data": {"past": _stored()}}))
    # (0 + 7 * 4) / (8 * 2): half of the 8 cpu of a minute, and a deserves 2.
    assert visible.ledger_snapshot(60.0).ledger.share("a") == pytest.approx(1.75)
    assert not any("past" in note for note in visible.missing)


async def test_who_follows_the_cluster_goes_on_from_there() -> None:
    """The page, and `watch`: `a` holds nothing, and a half-life is a minute."""
    visible = await _read(reply({"data": {"past": _stored()}}))
    shares = [visible.ledger_snapshot(now).ledger.share("a") for now in (60.0, 90.0, 120.0, 180.0)]
    assert shares == pytest.approx([1.75, 1.75, 0.875, 0.4375])


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (failure(403, "Forbidden"), "403 Forbidden"),
        (failure(404, "NotFound"), "404"),
        (reply({"data": {}}), "no leader has stored it"),
        (reply({"data": {"past": json.dumps({"until": -1})}}), "it is malformed"),
    ],
)
async def test_it_is_said_where_the_past_is_unknown(answer: Answer, why: str) -> None:
    visible = await _read(answer)
    assert visible.ledger_snapshot(60.0).ledger.share("a") == 0.0
    (note,) = [note for note in visible.missing if "past use" in note]
    assert why in note


async def test_without_a_half_life_it_is_not_asked_for() -> None:
    visible = await _read(failure(500, "InternalError"), half_life="")
    assert not any("past" in note for note in visible.missing)
