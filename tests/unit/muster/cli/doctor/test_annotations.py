"""What is written on Namespaces and queues for muster, and not read, is named with what counts in its place."""

import pytest

from muster.cli.doctor.diagnosis import Severity, Unseen
from muster.cli.doctor.gangs import MOST, unread_annotations
from muster.cli.doctor.objects import QueueSeen
from muster.model.objects import Namespace, convert
from tests.support.cases import cases
from tests.support.cli.doctor_snapshots import found, levels, messages, ours

UNSEEN = Unseen("you may not look")


def namespace(said: dict[str, str], name: str = "ml") -> Namespace:
    return convert({"metadata": {"name": name, "annotations": said}}, Namespace)


def queue(said: dict[str, str]) -> QueueSeen:
    return convert({"metadata": {"name": "q", "annotations": said}}, QueueSeen)


@cases(
    "said, message",
    (
        "no gate mode",
        {"muster.dev/gate": "offf"},
        (
            'metadata.annotations[muster.dev/gate]: "offf" is not known; use queue or assemble or off; it is ignored, '
            "and the chart value `gate` counts"
        ),
    ),
    (
        "not among the admitters",
        {"muster.dev/admitter": "kueue"},
        (
            'metadata.annotations[muster.dev/admitter]: "kueue" is not known; use ledger, or add it to the chart value '
            "`admitters`; it is ignored, and ledger admits"
        ),
    ),
    (
        "no admitter",
        {"muster.dev/admitter": "kueu"},
        'metadata.annotations[muster.dev/admitter]: "kueu" is not known; use ledger; it is ignored, and ledger admits',
    ),
    (
        "no scheduler",
        {"muster.dev/scheduler": "volcanoo"},
        (
            'metadata.annotations[muster.dev/scheduler]: "volcanoo" is none of its schedulers; use volcano; muster '
            "leaves workloads alone that name no other"
        ),
    ),
    (
        "misspelled",
        {"muster.dev/gat": "off"},
        "metadata.annotations[muster.dev/gat]: muster reads no such key; did you mean muster.dev/gate?",
    ),
    (
        "a queue's",
        {"muster.dev/patience": "20m"},
        "metadata.annotations[muster.dev/patience]: muster reads no such key here; remove it",
    ),
)
def test_what_is_not_read_on_a_namespace(said: dict[str, str], message: str) -> None:
    of = found(unread_annotations, namespaces=(namespace(said), namespace({}, "other")))
    assert messages(of) == [f"namespace ml: {message}"]
    assert levels(of) == {Severity.WARNING}
    assert of[0].cure == f"correct it, or remove it: kubectl annotate namespace ml {next(iter(said))}-"


def test_what_is_not_read_on_a_queue() -> None:
    said = {"muster.dev/patienc": "20m", "muster.dev/gate": "offf", "muster.dev/hold": "true"}
    of = found(unread_annotations, queues=(queue(said),))
    where = "queues.scheduling.volcano.sh q: metadata.annotations"
    assert messages(of) == [
        f'{where}[muster.dev/gate]: "offf" is not known; use queue or assemble or off; it is ignored',
        f"{where}[muster.dev/patienc]: muster reads no such key; did you mean muster.dev/patience?",
    ]
    assert of[1].cure.endswith("kubectl annotate queues.scheduling.volcano.sh q muster.dev/patienc-")


def test_of_a_gang_queue_only_the_hold_is_an_annotation() -> None:
    deployments = (ours("webhook"), ours("controller", "--queue-source=muster"))
    said = {"muster.dev/queueing": "strict", "muster.dev/hold": "true"}
    (one,) = found(unread_annotations, deployments=deployments, queues=(queue(said),))
    where = "gangqueues.muster.dev q: metadata.annotations[muster.dev/queueing]"
    assert one.message == f"{where}: muster reads no such key here; remove it"


def test_what_is_read_is_in_order() -> None:
    """Whatever the installation lists, and whatever others write."""
    deployments = (ours("webhook"), ours("controller", "--admitters=ledger,kueue"))
    said = {
        "muster.dev/gate": "off",
        "muster.dev/admitter": "kueue",
        "scheduling.volcano.sh/queue-name": "q",
        "muster.dev/scheduler": "volcano",
        "openshift.io/requester": "me",
    }
    of = found(unread_annotations, deployments=deployments, namespaces=(namespace(said),), queues=(queue({"a": "b"}),))
    assert [one.message for one in of] == ["every annotation for muster of 1 Namespace and 1 queue is read"]


def test_of_many_only_the_first_are_named() -> None:
    many = tuple(namespace({"muster.dev/gate": "no"}, f"n{number}") for number in range(MOST + 3))
    assert messages(found(unread_annotations, namespaces=many))[MOST:] == ["3 more annotations are not read"]


@pytest.mark.parametrize("part", ["namespaces", "queues"])
def test_who_may_not_look_is_told_so(part: str) -> None:
    assert Severity.UNKNOWN in levels(found(unread_annotations, **{part: UNSEEN}))


def test_without_muster_nothing_is_said() -> None:
    assert found(unread_annotations, deployments=(), mutating=(), validating=()) == []
