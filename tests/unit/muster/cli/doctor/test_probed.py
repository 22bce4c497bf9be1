"""What the probe of kube-scheduler shows; tests/pairs/test_probe.py runs it against real ones."""

from typing import Any

import pytest

from muster.cli.doctor.diagnosis import Unseen
from muster.cli.doctor.probe import kubernetes, verdict
from muster.cli.doctor.sight import GangProbe
from tests.support.cases import cases
from tests.support.cli.command import Command
from tests.support.cli.doctor_snapshots import found, levels, messages, ours

_NATIVE = ("--schedulers=kubernetes", "--queue-source=muster")
_DEPLOYMENTS = (ours("webhook", *_NATIVE), ours("controller", *_NATIVE))


def said(**changes: Any) -> tuple[str, str, str]:  # noqa: ANN401
    """Level, message and cure of a probe in which both pods were created, but for this."""
    (one,) = verdict(GangProbe("default-scheduler", "default", **changes))
    return str(one.level), one.message, one.cure


def test_the_open_pod_waits_and_the_plain_one_runs() -> None:
    level, message, cure = said(plain_placed=True)
    assert (level, cure) == ("ok", "")
    assert message.startswith("kube-scheduler (default-scheduler) holds a pod of a gang")


@cases("plain", ("after it the plain one", True), ("alone", False))
def test_an_open_pod_with_a_node_is_a_gang_in_pieces(plain: bool) -> None:
    level, message, cure = said(open_placed=True, plain_placed=plain)
    assert level == "problem"
    assert message.endswith("it places the pods of gangs one by one")
    assert cure == "start kube-scheduler with --feature-gates=GenericWorkload=true"


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("", "within 30 seconds: the scheduler has said nothing"),
        ("0/3 nodes are available: 3 Insufficient cpu.", "within 30 seconds: 0/3 nodes are available"),
    ],
)
def test_a_scheduler_that_places_nothing_proves_nothing(reason: str, words: str) -> None:
    level, message, _ = said(plain_reason=reason)
    assert level == "unknown"
    assert words in message


def test_room_for_one_pod_alone_proves_nothing() -> None:
    level, message, _ = said(plain_placed=True, open_reason="0/3 nodes are available: 3 Insufficient memory.")
    assert level == "unknown"
    assert "had room for one pod alone: 0/3 nodes are available" in message


def test_what_a_scheduler_may_say_of_a_gang_that_it_holds_is_no_lack_of_room() -> None:
    assert said(plain_placed=True, open_reason="waiting for the gated pods of its group")[0] == "ok"


@pytest.mark.parametrize(
    ("served", "kept", "words", "cure"),
    [
        (False, True, "places no pod at all, not even plain ones", "start kube-apiserver with --runtime-config="),
        (False, False, "drops spec.schedulingGroup of pods, and does not serve", "GenericWorkload=true and --runtime"),
        (True, False, "drops spec.schedulingGroup of pods, and serves", "GenericWorkload=true and --runtime"),
    ],
)
def test_an_apiserver_that_knows_half_of_it(served: bool, kept: bool, words: str, cure: str) -> None:
    """What the scheduler did is not asked then."""
    level, message, said_cure = said(served=served, kept=kept, plain_placed=True)
    assert level == "problem"
    assert words in message
    assert cure in said_cure


def test_what_could_not_be_deleted_is_named() -> None:
    _, left = verdict(GangProbe("default-scheduler", "team-a", plain_placed=True, left=("pods/x-open",)))
    assert left.level == "warning"
    assert left.message == "the probe could not delete pods/x-open in namespace team-a"
    assert left.command == "kubectl -n team-a delete pods,podgroups.scheduling.k8s.io -l muster.dev/probe"


def test_a_refusal_is_no_verdict() -> None:
    (one,) = verdict(Unseen("an object of the probe is refused", "ask for it"))
    assert (one.level, one.cure) == ("unknown", "ask for it")
    assert one.message.endswith("holds gangs together: an object of the probe is refused")


def test_without_being_asked_nothing_is_probed() -> None:
    """And where kube-scheduler places gangs, the report says so."""
    assert list(found(kubernetes)) == []
    (one,) = found(kubernetes, deployments=_DEPLOYMENTS)
    assert (one.level, one.message.partition(":")[0]) == ("ok", "not tested without --probe")


def test_without_such_a_scheduler_there_is_nothing_to_probe() -> None:
    (one,) = found(kubernetes, probes=())
    assert one.message == "nothing to probe: kubernetes is not in the chart value schedulers"


def test_every_probe_is_told() -> None:
    probes = (GangProbe("one", "default", plain_placed=True), GangProbe("two", "default", open_placed=True))
    told = found(kubernetes, deployments=_DEPLOYMENTS, probes=probes)
    assert levels(told) == {"ok", "problem"}
    assert [message.partition(" has ")[0] for message in messages(told)] == ["kube-scheduler (two)"]


def test_a_probe_alone_needs_an_image(command: Command) -> None:
    done = command.run("doctor", "--probe=only", "--kubeconfig=none")
    assert (done.code, done.out) == (2, "")
    assert done.err == (
        "muster doctor: --probe=only does not look for muster: name an image for the pods with --image\n"
    )
