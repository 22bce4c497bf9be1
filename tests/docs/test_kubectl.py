"""docs/kubectl.md shows each state and each refusal as kubectl did; tests on clusters hold the records."""

import os
from subprocess import CompletedProcess
from typing import cast

import pytest

from muster.model.findings import Reason
from muster.model.gang_states import GangState
from tests.support.cases import cases
from tests.support.cluster.scene import Scene
from tests.support.pages.recorded import (
    MORE,
    PAGE,
    STATES,
    alike,
    keep_state,
    page,
    recorded,
    refusal,
    refusing,
    told,
)

_EVENT = """\
Events:
  Type     Reason           Age   From                   Message
  ----     ------           ----  ----                   -------
  Normal   Created          2s    raycluster-controller  Created head pod
  Normal   WaitingForQuota  1s    muster.dev/controller  needs cpu 3, queue "q" has cpu 1 free
  Warning  QueueClosed      1s (x2 over 9s)  muster.dev/controller  RayCluster "bert-x7k2p": queue "q" is Closed
"""


@pytest.mark.parametrize("state", GangState)
def test_every_state_has_a_transcript_with_its_event(state: GangState) -> None:
    assert state in STATES, f"tests/support/pages/recorded.py does not say how {state} came to be"
    assert state in {reason for _, reason, _ in told(recorded(state))}, f"no test has recorded {state}"


def test_every_refusal_has_a_transcript() -> None:
    # What is Invalid kubectl tells in words of its own.
    words = dict.fromkeys(refusing(), "denied the request: ") | {Reason.INVALID: " is invalid: "}
    assert [one for one in words if words[one] not in refusal(one)] == [], "no test has recorded these"


def test_what_users_write_themselves_tells_the_story() -> None:
    """A RayJob, a RayService, a TrainJob and a PyTorchJob, not only what is made of them."""
    records = [recorded(name) for name in (*STATES, *MORE)]
    for kind in ("rayjob", "rayservice", "trainjob", "pytorchjob", "raycluster"):
        assert any(told(text) for text in records if text.startswith(f"$ kubectl describe {kind}/")), kind


def test_the_page_is_made_of_the_records() -> None:
    if os.environ.get("MUSTER_REWRITE"):
        PAGE.write_text(page())
    assert PAGE.read_text() == page(), "MUSTER_REWRITE=1 pytest tests/docs/test_kubectl.py writes docs/kubectl.md"


def test_events_are_read_as_kubectl_aligns_them() -> None:
    assert told(_EVENT) == {
        ("Normal", "WaitingForQuota", 'needs cpu #, queue "q" has cpu # free'),
        ("Warning", "QueueClosed", 'RayCluster "bert-*": queue "q" is Closed'),
    }


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ('RayCluster "bert-x7k2p" of 3', 'RayCluster "bert-99bcd"  of 12', True),
        # Every fifth random end is of letters alone.
        ('RayCluster "bert-x7k2p" of 3', 'RayCluster "bert-bsbrm" of 3', True),
        ('queue "team-large"', 'queue "team-small"', False),
        ("needs cpu 1", "needs memory 1", False),
    ],
)
def test_numbers_and_random_ends_are_all_that_may_differ(one: str, other: str, same: bool) -> None:
    assert (alike(one) == alike(other)) is same


class _Prints:
    """A scene whose kubectl prints a record, with something changed."""

    def __init__(self, name: str, former: str, now: str) -> None:
        text = recorded(name)
        assert former in text
        self._described, _, self._listed = text.replace(former, now).partition("$ kubectl get podgroups")

    def kubectl(self, *args: str, **_: bool) -> CompletedProcess[str]:
        text = self._described if args[0] == "describe" else self._listed.partition("\n")[2]
        return CompletedProcess(args, 0, text, "")


@cases(
    "former, now, complaint",
    ("a number of another run", "has cpu 1 free", "has cpu 3 free", ""),
    ("other words", "takes no new work", "is shut", "out of date"),
    ("another type", "Warning  QueueClosed", "Normal  QueueClosed", "out of date"),
    ("a label that is lacking", "QueueClosed\n", "Pending\n", "out of date"),
    ("another reason", "QueueClosed       ", "Closed       ", "Closed"),
)
def test_what_kubectl_prints_no_more_is_told(
    former: str, now: str, complaint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MUSTER_REWRITE", raising=False)
    scene = cast("Scene", _Prints("QueueClosed", former, now))
    if not complaint:
        keep_state(scene, GangState.QUEUE_CLOSED, "raycluster/bert")
        return
    with pytest.raises(AssertionError, match=complaint):
        keep_state(scene, GangState.QUEUE_CLOSED, "raycluster/bert")
