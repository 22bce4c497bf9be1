"""Where a hold does nothing, its writer is told so."""

import pytest

from muster.admitters import Admitter
from muster.gangs.intent import Defaults, IntentScope
from muster.model.findings import Reason
from muster.model.modes import GateMode
from muster.model.names import ADMITTER, GATE_MODE, HOLD, MIN_RUNTIME
from muster.model.objects import ObjectMeta, Queue
from muster.queueing.queue_tree import QueueTree
from muster.queueing.queue_view import QueueView, read_queue
from muster.queueing.sources import GangQueue
from muster.validation.context import Context
from muster.validation.queue import faults
from tests.support.cases import cases
from tests.support.manifests.families import Family, each, judged
from tests.support.manifests.observed import QUEUE_LABELS, made, queue, ray_cluster

FIELD = f"metadata.annotations[{HOLD}]"
_LABELS = {**QUEUE_LABELS, "kueue.x-k8s.io/queue-name": "team"}


def told(value: str, view: QueueView | None = None, namespace: dict[str, str] | None = None) -> list[str]:
    """What is said of a RayCluster with that annotation, in a namespace with these annotations."""
    scope = IntentScope(namespace=ObjectMeta(name="ns", annotations=namespace or {}))
    tree = QueueTree([view or QueueView("q", "Open", {})])
    context = Context(tree.place, {"": 0}, Defaults(admitters=tuple(Admitter)), scope)
    warnings = judged(ray_cluster(labels=_LABELS, annotations={HOLD: value}), context).warnings
    return [one.message.removeprefix(f"{FIELD}: ") for one in warnings if one.field == FIELD]


@pytest.mark.parametrize("value", ["true", "false"])
def test_a_hold_that_works_is_taken_without_a_word(value: str) -> None:
    assert told(value) == []


def test_another_value_is_ignored() -> None:
    assert told("yes") == ['"yes" is neither "true" nor "false"; it is ignored']


def test_who_else_admits_is_to_be_told() -> None:
    (kueue,) = told("true", namespace={ADMITTER: "kueue"})
    assert kueue.endswith("set spec.active: false in its Workload")
    (nobody,) = told("true", namespace={ADMITTER: "none"})
    assert nobody.endswith("they start when they are whole")


@pytest.mark.parametrize("place", ["namespace", "queue"])
def test_without_a_gate_nothing_is_held(place: str) -> None:
    view = QueueView("q", "Open", {}, gate=GateMode.OFF if place == "queue" else None)
    (said,) = told("true", view, {GATE_MODE: "off"} if place == "namespace" else {})
    assert said == "it is ignored, for the gate is off here (muster.dev/gate): no pod is held"


@each()
def test_only_kinds_whose_gangs_muster_holds_can_be_on_hold(family: Family) -> None:
    """The annotation of a Job or a StatefulSet is not read: muster knows their gangs by the pods."""
    context = Context(QueueTree([QueueView("q", "Open", {})]).place, {"": 0})
    found = [one for one in judged(family.manifest(annotations={HOLD: "true"}), context).warnings if one.field == FIELD]
    ignored = family.kind in ("Job", "StatefulSet")
    assert [one.reason for one in found] == [Reason.VALUE_IGNORED] * ignored


@pytest.mark.parametrize(
    ("annotations", "admitters", "rest"),
    [
        ({}, ("ledger", "kueue"), None),
        (
            {GATE_MODE: "off"},
            ("ledger",),
            "it is ignored, for the gate of the queue is off (muster.dev/gate): no pod is held",
        ),
        ({}, ("kueue", "none"), "it is ignored, for no gang waits for a queue here: the admitter is kueue or none"),
    ],
)
def test_a_queue_on_hold(annotations: dict[str, str], admitters: tuple[str, ...], rest: str | None) -> None:
    read = made(Queue, queue(annotations={HOLD: "true", **annotations}))
    found = faults(read, QueueTree(), tuple(Admitter(one) for one in admitters))
    assert [one.message for one in found] == ([f"{FIELD}: {rest}"] if rest else [])


def test_what_cannot_be_read_is_refused_of_a_queue() -> None:
    (found,) = faults(made(Queue, queue(annotations={HOLD: "yes"})), QueueTree())
    assert (found.reason, found.message) == (Reason.INVALID, f'{FIELD}: "yes" is not known; use true or false')


def test_whoever_sets_a_min_runtime_hears_that_volcano_alone_keeps_to_it() -> None:
    (found,) = faults(made(Queue, queue(annotations={MIN_RUNTIME: "30m"})), QueueTree())
    assert found.reason is Reason.VALUE_IGNORED
    assert "Volcano alone keeps to it, with its plugin cdp" in found.message


def test_whoever_sets_a_min_runtime_where_there_is_no_volcano_hears_the_same() -> None:
    gang_queue = made(GangQueue, {"metadata": {"name": "q", "annotations": {MIN_RUNTIME: "30m"}}})
    (found,) = faults(gang_queue, QueueTree())
    assert "with other schedulers it is ignored" in found.message


def test_whoever_sets_a_min_runtime_on_a_parent_hears_that_it_is_ignored() -> None:
    tree = QueueTree([QueueView("child", "Open", {}, parent="q")])
    (found,) = faults(made(Queue, queue(annotations={MIN_RUNTIME: "30m"})), tree)
    assert "it is ignored, for gangs are in the queues below this one, which do not inherit it" in found.message


@cases(
    "text, wrong",
    ("negative", "-30m", "a duration such as 30s, 10m or 1h30m"),
    ("words", "half an hour", "a duration such as 30s, 10m or 1h30m"),
    ("a number", "30", "a duration such as 30s, 10m or 1h30m"),
    ("more than Volcano reads", "9999999999999h", "between 0s and 8760h"),
    ("not even a number of seconds", "9" * 400 + "h", "a duration such as 30s, 10m or 1h30m"),
)
def test_a_min_runtime_that_cannot_be_read_is_refused_and_counts_as_none(text: str, wrong: str) -> None:
    unreadable = made(Queue, queue(annotations={MIN_RUNTIME: text}))
    (found,) = faults(unreadable, QueueTree())
    assert found.reason is Reason.INVALID
    assert found.message == f'metadata.annotations[{MIN_RUNTIME}]: "{text[:80]}" is not {wrong}'
    assert read_queue(unreadable).min_runtime == 0
