"""What holds gangs back, and who says so."""

import pytest

from muster.admitters import Admitter, gate_by
from muster.model.modes import GateMode, gate_mode, read_gate_mode
from muster.model.names import GATE_MODE
from muster.model.objects import Queue
from muster.queueing.queue_view import read_queue
from tests.support.cases import cases
from tests.support.manifests.observed import made, queue

QUEUE, ASSEMBLE, OFF = GateMode.QUEUE, GateMode.ASSEMBLE, GateMode.OFF


@cases(
    "of_queue, of_namespace, default, expected",
    ("the installation's", None, "", ASSEMBLE, ASSEMBLE),
    ("the namespace goes before the installation", None, "off", QUEUE, OFF),
    ("the queue goes before both", QUEUE, "off", ASSEMBLE, QUEUE),
    ("what is not known says nothing", None, "sometimes", ASSEMBLE, ASSEMBLE),
)
def test_the_queue_goes_before_the_namespace_and_that_before_the_installation(
    of_queue: GateMode | None, of_namespace: str, default: GateMode, expected: GateMode
) -> None:
    mode = gate_mode({GATE_MODE: of_namespace}, default)
    assert gate_by(Admitter.LEDGER, of_queue, mode) is expected


@pytest.mark.parametrize("mode", list(GateMode))
def test_every_mode_is_read_by_its_name(mode: GateMode) -> None:
    assert read_gate_mode({GATE_MODE: str(mode)}) is mode
    assert read_queue(made(Queue, queue(annotations={GATE_MODE: str(mode)}))).gate is mode


def test_a_mode_that_a_queue_misspells_is_a_problem_and_counts_for_nothing() -> None:
    view = read_queue(made(Queue, queue(annotations={GATE_MODE: "none"})))
    assert view.gate is None
    assert tuple(map(str, view.problems)) == (
        'metadata.annotations[muster.dev/gate]: "none" is not known; use queue or assemble or off',
    )
