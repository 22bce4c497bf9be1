"""The first questions of the long run (`make fuzz`), and that a broken promise would be seen."""

import asyncio
import logging
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import count

import pytest

from tests.fuzz.promises import HangError, answered
from tests.fuzz.worlds import Question, World, any_question
from tests.support.cases import cases
from tests.support.examples import examples
from tests.support.manifests.observed import DEFAULTS, JSON, as_json, namespace, pod
from tests.support.webhook.admission_reviews import review
from webhook.reviews.codec import AdmissionResponse, allow
from webhook.reviews.pods import review_pod
from webhook.reviews.workloads import review_workload

# Twice as many as a quarter of a minute of one core has room for: each has its own chance, so that they are the same
# everywhere. By the time a machine is busy a test has its deadline: so there are two.
_QUESTIONS = 10_000
_ASKED = examples(_QUESTIONS)


@pytest.fixture(autouse=True)
def _silence() -> Iterator[None]:
    """What a fuzzed cluster makes muster log is of no use to anybody, and a lot."""
    logging.disable()
    yield
    logging.disable(logging.NOTSET)


@pytest.fixture
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as started:
        yield started


@pytest.mark.parametrize("first", [0, _QUESTIONS])
def test_whatever_comes_every_promise_is_kept(runner: asyncio.Runner, first: int) -> None:
    seen: Counter[str] = Counter()
    for number in range(first, first + _ASKED):
        question = any_question(number)
        try:
            seen[f"{question.review.__name__} {answered(question, runner)}"] += 1
        except Exception as error:
            raise AssertionError(f"python -m tests.fuzz --only {number}") from error
    # Questions that all get the same answer would prove nothing.
    for expected in ("allowed", "warned", "denied", "no object", "no review", "no answer"):
        assert seen[f"review_pod {expected}"] + seen[f"review_workload {expected}"] > _ASKED / 1000
    assert seen["review_pod patched"] > _ASKED / 100
    for review_ in ("review_queue", "review_pod_group", "review_named_queue"):
        for expected in ("allowed", "denied", "no object", "no review"):
            assert seen[f"{review_} {expected}"] > _ASKED / 2000, f"{review_} {expected}"
    assert seen["review_queue warned"] > _ASKED / 2000


NEW = pod("", schedulerName="default-scheduler")
_TURNS = count()
WORLD = World(DEFAULTS, (namespace(),), ())


async def _raises(*_: object) -> AdmissionResponse:
    raise KeyError("spec")


async def _hangs(*_: object) -> AdmissionResponse:
    while True:
        pass


async def _overwrites(*_: object) -> AdmissionResponse:
    return allow([{"op": "add", "path": "/spec/containers/0/image", "value": "evil"}])


async def _gates_unbound(*_: object) -> AdmissionResponse:
    return allow([{"op": "add", "path": "/spec/schedulingGates", "value": [{"name": "muster.dev/gang"}]}])


async def _adds_twice(*_: object) -> AdmissionResponse:
    return allow([{"op": "add", "path": "/metadata/labels", "value": {"a": "b"}}])


async def _denies_without_a_word(*_: object) -> AdmissionResponse:
    status: JSON = {"code": 422, "reason": "", "message": "", "details": {"causes": []}}
    return replace(allow(), allowed=False, status=status)


async def _forgets(*_: object) -> AdmissionResponse:
    return allow([{"op": "add", "path": "/metadata/labels", "value": {"a": str(next(_TURNS))}}])


@cases(
    "broken, error",
    ("raises", _raises, KeyError),
    ("hangs", _hangs, HangError),
    ("overwrites the image", _overwrites, AssertionError),
    ("holds what nobody lets go", _gates_unbound, AssertionError),
    ("is not done after one round", _adds_twice, AssertionError),
    ("denies without a reason", _denies_without_a_word, AssertionError),
    ("answers by chance", _forgets, AssertionError),
)
def test_a_broken_promise_is_seen(
    broken: object, error: type[Exception], runner: asyncio.Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.fuzz.promises.LONGEST", 0.5)
    question = Question(WORLD, broken, as_json(review(NEW)).encode())  # type: ignore[arg-type] # each a review in its way
    with pytest.raises(error):
        answered(question, runner)


@pytest.mark.parametrize("asked", [review_pod, review_workload])
def test_a_question_has_the_same_answer_when_its_number_comes_again(asked: object) -> None:
    numbers = [number for number in range(40) if any_question(number).review is asked]
    assert numbers
    assert [any_question(number) for number in numbers] == [any_question(number) for number in numbers]
