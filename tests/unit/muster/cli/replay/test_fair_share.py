"""Twenty teams share by weight over a week with floods and lulls: `muster.dev/half-life`, by the ledger of a replay."""

from functools import cache

import pytest

from hack.bench.share import LONGEST, Team, generated_week, targets, week
from muster.cli.replay.engine import Replayed, parse_policy, replay
from muster.cli.replay.load import Load
from tests.support.examples import examples

SHARED = "half-life=24h"
pytestmark = pytest.mark.parametrize("seed", range(1, 1 + examples(4)))


@cache
def replayed(seed: int, policy: str) -> tuple[Load, Replayed]:
    load = generated_week(seed)
    return load, replay(load, parse_policy(policy), lambda _: None)


def teams(seed: int, policy: str = SHARED) -> dict[str, Team]:
    return week(*replayed(seed, policy))


def used(seed: int, policy: str = SHARED) -> float:
    return sum(team.used for team in teams(seed, policy).values())


def test_teams_that_always_wait_use_as_much_as_their_weights_within_five_percent(seed: int) -> None:
    always = [team for team in teams(seed).values() if team.waits > 0.95]
    level = sum(team.used for team in always) / sum(team.weight for team in always)
    assert len(always) >= 8
    assert [team.used / team.weight / level for team in always] == pytest.approx([1.0] * len(always), abs=0.05)


def test_all_use_what_they_ask_for_or_their_weight_within_five_percent(seed: int) -> None:
    """Also those that have lulls: what they did not use then they have before the week ends."""
    had = teams(seed)
    assert {name: team.used for name, team in had.items()} == pytest.approx(targets(had), rel=0.05)


def test_without_a_half_life_they_do_not(seed: int) -> None:
    had = teams(seed, "")
    assert {name: team.used for name, team in had.items()} != pytest.approx(targets(had), rel=0.1)


def test_no_less_is_used_than_without_within_half_a_percent(seed: int) -> None:
    assert used(seed) >= 0.995 * used(seed, "")


def test_no_gang_starves(seed: int) -> None:
    """Each starts; and those of teams that ask for less than their shares do so soon.

    When such a gang has waited for the longest run, all that ran when it came have ended, and a gang of a team beyond
    its share has passed it; it has a reservation once its patience is over, which the longest run brings.
    """
    load, result = replayed(seed, SHARED)
    assert result.never == []
    had = teams(seed)
    level = used(seed) / sum(team.weight for team in had.values())
    below = {name for name, team in had.items() if team.asks < team.weight * level / 2}
    assert len(below) == 6
    waited = [one.waited for one in result.started if one.gang.queue in below]
    assert max(waited) <= load.queues[0].patience + 2 * LONGEST
