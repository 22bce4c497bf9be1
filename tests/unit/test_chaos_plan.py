"""The plan of the chaos test: a function of its seed, about nothing but what it made itself."""

from tests.support.cluster.chaos_plan import CONTROLLERS, DEFAULT_SEED, PARTS, QUEUES, SHORT, plan

_SEED, _STEPS = 7, 3000


def test_the_same_seed_gives_the_same_steps_and_a_longer_plan_begins_with_the_shorter() -> None:
    assert plan(_SEED, _STEPS) == plan(_SEED, _STEPS)
    assert plan(_SEED, _STEPS)[:60] == plan(_SEED, 60)
    assert plan(_SEED, 60) != plan(_SEED + 1, 60)


def test_a_step_is_about_what_is_there_by_the_plan() -> None:
    """No gang comes twice, none goes or changes that is not there, and every choice is among what is there."""
    there: set[str] = set()
    made: set[str] = set()
    for step in plan(_SEED, _STEPS):
        name = step.gang.name if step.gang else ""
        if step.verb.endswith(" comes"):
            assert name not in made
            made.add(name)
        if step.verb == "cluster comes":
            there.add(name)
        elif step.gang and step.verb != "job comes":
            assert name in there, step
        if step.verb == "cluster goes":
            there.remove(name)
        if step.verb == "controller dies":
            assert step.index in range(CONTROLLERS)
        if step.verb == "part dies":
            assert step.part in PARTS
        if step.gang:
            assert step.gang.queue in QUEUES


def test_everything_that_may_happen_is_in_the_short_plan() -> None:
    steps = plan(DEFAULT_SEED, SHORT)
    assert {step.verb for step in steps} == {
        *("cluster comes", "job comes", "cluster goes", "cluster changes size", "pod dies"),
        *("somebody runs", "controller dies", "part dies", "way is cut"),
    }
    assert {step.part for step in steps} == {"", *PARTS}
