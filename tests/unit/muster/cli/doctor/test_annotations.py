"""What is written on Namespaces for muster, and not read, is named with what counts in its place."""

from muster.cli.doctor.diagnosis import MOST, Level, Unseen
from muster.cli.doctor.gangs import unread_annotations
from muster.model.objects import Namespace, convert
from tests.support.cases import cases
from tests.support.cli.doctor_snapshots import found, levels, messages, ours

UNSEEN = Unseen("you may not look")


def namespace(said: dict[str, str], name: str = "ml") -> Namespace:
    return convert({"metadata": {"name": name, "annotations": said}}, Namespace)


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
        "metadata.annotations[muster.dev/gat]: unknown annotation; did you mean muster.dev/gate?",
    ),
    (
        "a queue's",
        {"muster.dev/patience": "20m"},
        "metadata.annotations[muster.dev/patience]: unknown annotation; remove it",
    ),
)
def test_what_is_not_read_on_a_namespace(said: dict[str, str], message: str) -> None:
    of = found(unread_annotations, namespaces=(namespace(said), namespace({}, "other")))
    assert messages(of) == [f"namespace ml: {message}"]
    assert levels(of) == {Level.WARNING}
    assert of[0].command == f"kubectl annotate namespace ml {next(iter(said))}-"


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
    of = found(unread_annotations, deployments=deployments, namespaces=(namespace(said),))
    assert [one.message for one in of] == ["every annotation for muster of 1 Namespace is read"]


def test_of_many_only_the_first_are_named() -> None:
    many = tuple(namespace({"muster.dev/gate": "no"}, f"n{number}") for number in range(MOST + 3))
    assert messages(found(unread_annotations, namespaces=many))[MOST:] == ["3 more annotations are not read"]


def test_who_may_not_look_is_told_so() -> None:
    assert levels(found(unread_annotations, namespaces=UNSEEN)) == {Level.UNKNOWN}


def test_without_muster_nothing_is_said() -> None:
    assert found(unread_annotations, deployments=(), mutating=(), validating=()) == []
