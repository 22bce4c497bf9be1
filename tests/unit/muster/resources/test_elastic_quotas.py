"""What an ElasticQuota lets its namespace use, and what it guarantees, as scheduler-plugins reads it."""

from typing import Any

import pytest

from muster.model.objects import InvalidObjectError, convert
from muster.resources.amounts import as_text
from muster.resources.elastic_quotas import ElasticQuota, guaranteed, largest_use, used
from tests.support.cases import cases

JSON = dict[str, Any]


def quota(spec: JSON) -> ElasticQuota:
    return convert({"metadata": {"name": "quota", "namespace": "team-a"}, "spec": spec}, ElasticQuota)


@cases(
    "spec, expected",
    ("no max limits nothing", {}, {}),
    ("a min alone limits nothing", {"min": {"cpu": "1"}}, {}),
    ("null is absent", {"max": None}, {}),
    ("an empty one allows nothing", {"max": {}}, {"cpu": "0", "memory": "0", "ephemeral-storage": "0"}),
    (
        "as it says",
        {"max": {"cpu": 4, "memory": "8Gi", "ephemeral-storage": "1Ti"}},
        {"cpu": "4", "memory": "8Gi", "ephemeral-storage": "1Ti"},
    ),
    (
        "what it leaves out is 0 of the three plain resources",
        {"max": {"nvidia.com/gpu": "2", "memory": "1Gi"}},
        {"cpu": "0", "memory": "1Gi", "ephemeral-storage": "0", "nvidia.com/gpu": "2"},
    ),
)
def test_the_largest_use(spec: JSON, expected: dict[str, str]) -> None:
    assert as_text(largest_use(quota(spec))) == expected


@cases(
    "spec, expected",
    ("no min", {}, {}),
    ("a max guarantees nothing", {"max": {"cpu": "4"}}, {}),
    ("min", {"min": {"cpu": "1500m", "nvidia.com/gpu": 1}}, {"cpu": "1500m", "nvidia.com/gpu": "1"}),
)
def test_what_is_guaranteed(spec: JSON, expected: dict[str, str]) -> None:
    assert as_text(guaranteed(quota(spec))) == expected


def test_what_is_no_quantity_is_named_with_its_field() -> None:
    with pytest.raises(InvalidObjectError, match=r"^spec\.max\.cpu: .*many"):
        largest_use(quota({"max": {"cpu": "many"}}))
    with pytest.raises(InvalidObjectError, match=r"^spec\.min\.memory: .*-1Gi.* is negative"):
        guaranteed(quota({"min": {"memory": "-1Gi"}}))


def test_what_is_used_stands_in_the_status() -> None:
    counted = convert({"status": {"used": {"cpu": "1500m", "memory": "0"}}}, ElasticQuota)
    assert as_text(used(counted)) == {"cpu": "1500m", "memory": "0"}
    assert used(quota({})) == {}
