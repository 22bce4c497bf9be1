"""Arithmetic of several resources at once."""

import pytest

from muster.resources.amounts import as_text, describe, largest, minus, times, total, within
from tests.support.cases import cases
from tests.support.manifests.observed import amounts


def test_total_adds_each_resource_by_itself() -> None:
    assert total([amounts(cpu="1", memory="1Gi"), amounts(cpu="500m", gpu="1"), {}]) == amounts(
        cpu="1500m", memory="1Gi", gpu="1"
    )


def test_times_multiplies_every_amount() -> None:
    assert times(amounts(cpu="1500m", memory="1Gi"), 4) == amounts(cpu="6", memory="4Gi")


def test_minus_never_goes_below_zero_nor_beyond_the_whole() -> None:
    assert minus(amounts(cpu="2", memory="1Gi"), amounts(cpu="3", gpu="1")) == amounts(cpu="0", memory="1Gi")


def test_largest_takes_each_resource_from_whoever_has_more() -> None:
    assert largest(amounts(cpu="1", memory="2Gi"), amounts(cpu="3", gpu="1")) == amounts(cpu="3", memory="2Gi", gpu="1")


@cases(
    "need, limit, fits",
    ("exactly", {"cpu": "2"}, {"cpu": "2"}, True),
    ("a thousandth over", {"cpu": "2001m"}, {"cpu": "2"}, False),
    ("what the limit does not name is unlimited", {"gpu": "8"}, {"cpu": "2"}, True),
    ("nothing fits into nothing", {}, {"cpu": "0"}, True),
    ("every resource must fit", {"cpu": "1", "memory": "2Gi"}, {"cpu": "1", "memory": "1Gi"}, False),
)
def test_within(need: dict[str, str], limit: dict[str, str], fits: bool) -> None:
    assert within(amounts(**need), amounts(**limit)) is fits


@pytest.mark.parametrize(
    ("resources", "words"),
    [
        ({}, "nothing"),
        ({"cpu": "3"}, "cpu 3"),
        ({"memory": "4Gi", "cpu": "3"}, "cpu 3 and memory 4Gi"),
        ({"gpu": "8", "memory": "4Gi", "cpu": "3"}, "cpu 3, memory 4Gi and nvidia.com/gpu 8"),
    ],
)
def test_describe_says_it_as_a_reader_would(resources: dict[str, str], words: str) -> None:
    assert describe(amounts(**resources)) == words


def test_text_of_a_manifest_is_canonical_and_ordered() -> None:
    assert list(as_text(amounts(gpu="1", memory="1.5Gi", cpu="1.5")).items()) == [
        ("cpu", "1500m"),
        ("memory", "1536Mi"),
        ("nvidia.com/gpu", "1"),
    ]
