"""ElasticQuotas bound the gangs of a namespace by its max, and together by the sum of all min."""

from typing import Any

import pytest

from muster.model.objects import InvalidObjectError, convert
from muster.resources.amounts import as_text, parse_resources
from muster.resources.elastic_quotas import Ceiling, ElasticQuota, NamespaceLimit, NamespaceLimits, limit_of
from muster.resources.quantity import Quantity
from tests.support.cases import cases

JSON = dict[str, Any]


def amounts(**named: str) -> dict[str, Quantity]:
    return parse_resources({name.replace("gpu", "nvidia.com/gpu"): text for name, text in named.items()}, path="test")


def quota(name: str, **spec: JSON) -> ElasticQuota:
    return convert({"metadata": {"name": name, "namespace": "team-a"}, "spec": spec}, ElasticQuota)


def limit(*quotas: ElasticQuota) -> NamespaceLimit:
    found = limit_of(quotas)
    assert found is not None
    return found


def ceiling(*others: JSON, **spec: JSON) -> Ceiling:
    """Of a namespace whose quota says this; each of the others is the min of another namespace."""
    limits = NamespaceLimits()
    limits.put("team-a", limit(quota("a", **spec)))
    for index, least in enumerate(others):
        limits.put(f"other-{index}", limit(quota("other", min=least)))
    found = limits.ceiling("team-a")
    assert found is not None
    return found


def test_no_quota_is_no_limit() -> None:
    assert limit_of([]) is None


def test_of_several_quotas_the_strictest_amounts_hold() -> None:
    both = limit(
        quota("b", max={"cpu": "4", "memory": "8Gi"}, min={"cpu": "3", "memory": "1Gi"}),
        quota("a", max={"cpu": "6", "memory": "2Gi", "nvidia.com/gpu": "1"}, min={"cpu": "2"}),
    )
    assert str(both) == 'ElasticQuotas "a" and "b"'
    assert as_text(both.most) == {"cpu": "4", "memory": "2Gi", "ephemeral-storage": "0", "nvidia.com/gpu": "1"}
    assert as_text(both.least) == {"cpu": "2"}


def test_of_several_quotas_one_without_max_loosens_nothing() -> None:
    for order in (1, -1):
        both = limit(*(quota("a", max={"cpu": "4"}), quota("b"))[::order])
        assert as_text(both.most)["cpu"] == "4"


def test_a_quota_that_cannot_be_read_is_an_error() -> None:
    with pytest.raises(InvalidObjectError, match=r"^spec\.min\.cpu: "):
        limit_of([quota("a"), quota("b", min={"cpu": "much"})])


@cases(
    "need, said",
    ("all of it", {"cpu": "4", "memory": "8Gi"}, None),
    (
        "more",
        {"cpu": "5", "memory": "9Gi"},
        'needs cpu 5 and memory 9Gi, ElasticQuota "a" has max cpu 4 and memory 8Gi',
    ),
    (
        "what the max leaves out",
        {"cpu": "1", "ephemeral-storage": "1Gi"},
        'needs ephemeral-storage 1Gi, ElasticQuota "a" has max ephemeral-storage 0',
    ),
)
def test_what_is_above_the_max_never_runs(need: JSON, said: str | None) -> None:
    own = {"cpu": "4", "memory": "8Gi"}
    bound = ceiling({"cpu": "10", "ephemeral-storage": "9Gi"}, max=own, min=own)
    assert bound.never(parse_resources(need, path="test")) == said


@cases(
    "need, said",
    ("own and borrowed", {"cpu": "10"}, None),
    ("more", {"cpu": "11"}, "needs cpu 11, the ElasticQuotas of all namespaces have min cpu 10 together"),
    (
        "what no min names",
        {"gpu": "1"},
        "needs nvidia.com/gpu 1, the ElasticQuotas of all namespaces have min nvidia.com/gpu 0 together",
    ),
    ("nothing of what no min names", {"cpu": "1", "gpu": "0"}, None),
)
def test_what_is_above_the_sum_of_all_min_never_runs(need: JSON, said: str | None) -> None:
    bound = ceiling({"cpu": "4"}, {"cpu": "3"}, min={"cpu": "3"})
    assert bound.never(amounts(**need)) == said


def test_a_gang_waits_for_its_namespace() -> None:
    bound = ceiling({"cpu": "9", "memory": "9Gi"}, max={"cpu": "8", "memory": "8Gi"})
    used = amounts(cpu="4", memory="1Gi")
    assert bound.shortage(amounts(cpu="4"), used, used) is None
    said = 'ElasticQuota "a" has cpu 4 free of cpu 8'
    assert bound.shortage(amounts(cpu="5"), used, used) == said


def test_a_namespace_above_its_max_has_nothing_free() -> None:
    bound = ceiling({"cpu": "90"}, max={"cpu": "2"})
    used = amounts(cpu="6")
    assert bound.shortage(amounts(cpu="1"), used, used) == 'ElasticQuota "a" has cpu 0 free of cpu 2'


def test_a_gang_that_borrows_waits_for_what_others_use() -> None:
    bound = ceiling({"cpu": "6"}, min={"cpu": "4"})
    used, together = amounts(cpu="3"), amounts(cpu="9")
    said = "the ElasticQuotas of all namespaces have cpu 1 free of cpu 10 together"
    assert bound.shortage(amounts(cpu="2"), used, together) == said
    assert bound.shortage(amounts(cpu="2"), used, amounts(cpu="8")) is None


def test_where_not_all_quotas_are_known_their_sum_bounds_nothing() -> None:
    limits = NamespaceLimits(whole=False)
    limits.put("team-a", limit(quota("a", min={"cpu": "2"}, max={"cpu": "4"})))
    bound = limits.ceiling("team-a")
    assert bound is not None
    assert bound.never(amounts(cpu="3")) is None
    assert bound.shortage(amounts(cpu="3"), {}, amounts(cpu="9")) is None
    assert bound.never(amounts(cpu="5")) is not None


def test_a_namespace_within_its_min_waits_for_nobody() -> None:
    """What others borrowed comes back by preemption, even where everything is in use."""
    bound = ceiling({"cpu": "6"}, min={"cpu": "4"})
    assert bound.shortage(amounts(cpu="1"), amounts(cpu="3"), amounts(cpu="12")) is None
    assert bound.guarantees(amounts(cpu="1"), amounts(cpu="3"))
    assert not bound.guarantees(amounts(cpu="1", memory="1Gi"), amounts(cpu="3"))


def test_a_min_guarantees_nothing_above_the_max() -> None:
    bound = ceiling(min={"cpu": "4"}, max={"cpu": "2"})
    assert bound.shortage(amounts(cpu="1"), amounts(cpu="2"), amounts(cpu="2")) is not None


def test_limits_say_whether_anything_changed() -> None:
    limits, one, other = NamespaceLimits(), limit(quota("a", min={"cpu": "1"})), limit(quota("a", min={"cpu": "2"}))
    assert not limits
    assert limits.put("team-a", one)
    assert not limits.put("team-a", limit(quota("a", min={"cpu": "1"})))
    assert limits.put("team-a", other)
    assert "team-a" in limits
    assert limits.ceiling("team-b") is None
    assert limits.put("team-a", None)
    assert not limits.put("team-a", None)
    assert not limits


def test_the_sum_follows_the_quotas() -> None:
    limits = NamespaceLimits()
    limits.put("team-a", limit(quota("a", min={"cpu": "1"})))
    limits.put("team-b", limit(quota("b", min={"cpu": "2", "nvidia.com/gpu": "1"})))
    assert as_text(limits.together) == {"cpu": "3", "nvidia.com/gpu": "1"}
    limits.put("team-b", limit(quota("b", min={"cpu": "5"})))
    assert as_text(limits.together) == {"cpu": "6"}
    limits.put("team-a", None)
    assert as_text(limits.together) == {"cpu": "5"}
