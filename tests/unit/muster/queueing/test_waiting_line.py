"""A line finds what somebody finds who looks at all who wait."""

import random

import pytest

from muster.queueing.bypassed import LineBypass
from muster.queueing.entries import EntryKey, GangKey, Order
from muster.queueing.usage import Amounts
from muster.queueing.waiting_line import WaitingLine
from tests.support.examples import examples


def order(number: int) -> Order:
    return Order(0, f"{number:05}", GangKey("team", f"g{number}"))


def of(*needs: Amounts) -> WaitingLine:
    line = WaitingLine()
    for number, need in enumerate(needs):
        line.add(order(number), need)
    return line


@pytest.mark.parametrize("seed", range(examples(10)))
def test_whoever_comes_and_goes_the_next_is_found(seed: int) -> None:
    """Of hundreds, so that there are many blocks; a gang may need one resource, the other, or both."""
    chance = random.Random(seed)  # noqa: S311 - the same history for the same seed
    line = WaitingLine()
    there: dict[Order, Amounts] = {}
    for step in range(1500):
        one = order(chance.randrange(900))
        if one in there:
            line.remove(one)
            del there[one]
        else:
            need = {"cpu": chance.randrange(1, 50), "gpu": chance.randrange(1, 9)}
            names = chance.choice([["cpu"], ["gpu"], ["cpu", "gpu"]])
            there[one] = tuple((name, need[name]) for name in names)
            line.add(one, there[one])
        if step % 10:
            continue
        in_order, after = sorted(there), chance.choice([None, order(chance.randrange(900))])
        behind = [other for other in in_order if after is None or other > after]
        most = {"cpu": chance.randrange(60), **({"gpu": chance.randrange(-1, 9)} if chance.random() < 0.7 else {})}
        within = [other for other in behind if all(amount <= most.get(name, 99) for name, amount in there[other])]
        assert list(line) == in_order
        assert bool(line) == bool(there)
        assert line.next_behind(after) == (behind[0] if behind else None)
        assert [one for one, _ in WaitingLine(there.items()).entries()] == in_order
        assert line.next_within(after, most) == ((within[0], there[within[0]]) if within else None)
        beyond = [other for other in behind if other not in within]
        assert line.next_within(after, {}, beyond=(most,)) == ((beyond[0], there[beyond[0]]) if beyond else None)
        assert line.before(order(450)) == sum(other < order(450) for other in in_order)
        if there:
            assert line.first == in_order[0]
            assert dict(line.least) == {
                name: min(dict(need)[name] for need in there.values())
                for name in ("cpu", "gpu")
                if all(name in dict(need) for need in there.values())
            }


def test_who_needs_nothing_of_a_resource_fits_where_there_is_less_than_none_of_it() -> None:
    line = of((("cpu", 5),), (("gpu", 1),))
    assert line.next_within(None, {"cpu": -1}) == (order(1), (("gpu", 1),))


def bypassed(*needs: Amounts, before: Order | None = None, gone: tuple[int, ...] = ()) -> Order | None:
    keys = {order(one).key for one in gone}
    return LineBypass([of(*needs)], {"cpu": 2}).first(before, lambda key: key not in keys)


def test_the_first_is_passed_that_waits_for_what_is_taken() -> None:
    assert bypassed(*[(("cpu", 3),)] * 3, before=order(2)) == order(0)
    assert bypassed((("cpu", 1),), (("gpu", 9),), (("cpu", 3),)) == order(2)
    assert bypassed(*[(("cpu", 3),)] * 3, gone=(0, 1)) == order(2)


def test_none_is_passed_that_does_not_stand_before() -> None:
    assert bypassed(*[(("cpu", 3),)] * 3, before=order(2), gone=(0, 1)) is None
    assert bypassed((("cpu", 1),)) is None


def test_who_is_asked_for_again_is_the_same_until_it_was_passed() -> None:
    gone: set[EntryKey] = set()
    level = LineBypass([of(*[(("cpu", 3),)] * 3)], {"cpu": 2})

    def first() -> Order | None:
        return level.first(None, lambda key: key not in gone)

    assert first() == first() == order(0)
    gone.add(order(0).key)
    assert first() == order(1)


def test_when_the_smallest_has_gone_the_next_smallest_is_the_least() -> None:
    line = of((("cpu", 1),), (("cpu", 5),), (("cpu", 9),))
    assert dict(line.least) == {"cpu": 1}
    line.remove(order(0))
    assert dict(line.least) == {"cpu": 5}
