"""Who admits in a namespace, and what holds gangs there."""

import pytest

from muster.admitters import Admitter, chosen_admitter, gate_by, listed
from muster.model.modes import GateMode
from muster.model.names import ADMITTER
from tests.support.cases import cases

LEDGER, KUEUE, NONE = Admitter


@cases(
    "said, admitters, expected",
    ("the first where the namespace says nothing", "", (LEDGER, KUEUE), LEDGER),
    ("whom it names", "kueue", (LEDGER, KUEUE), KUEUE),
    ("nobody who is not configured", "kueue", (LEDGER,), LEDGER),
    ("Kueue everywhere else", "", (KUEUE, LEDGER), KUEUE),
    ("nobody whose name is misspelled", "Kueue", (LEDGER, KUEUE), LEDGER),
)
def test_the_namespace_chooses_among_the_configured(
    said: str, admitters: tuple[Admitter, ...], expected: Admitter
) -> None:
    assert chosen_admitter({ADMITTER: said}, admitters) is expected


@pytest.mark.parametrize(
    ("admitter", "of_queue", "otherwise", "expected"),
    [
        (LEDGER, None, GateMode.QUEUE, GateMode.QUEUE),
        (LEDGER, GateMode.OFF, GateMode.QUEUE, GateMode.OFF),
        # What a queue says is for gangs that wait for room in it.
        (KUEUE, GateMode.OFF, GateMode.QUEUE, GateMode.ASSEMBLE),
        (KUEUE, GateMode.QUEUE, GateMode.OFF, GateMode.OFF),
        (NONE, GateMode.QUEUE, GateMode.QUEUE, GateMode.ASSEMBLE),
    ],
)
def test_room_in_a_queue_is_waited_for_where_the_ledger_admits(
    admitter: Admitter, of_queue: GateMode | None, otherwise: GateMode, expected: GateMode
) -> None:
    assert gate_by(admitter, of_queue, otherwise) is expected


def test_a_list_of_admitters_is_read_and_a_wrong_one_says_what_there_is() -> None:
    assert listed("ledger,kueue") == (LEDGER, KUEUE)
    with pytest.raises(ValueError, match='"ledger;kueue" names an unknown admitter; use ledger, kueue, none'):
        listed("ledger;kueue")
