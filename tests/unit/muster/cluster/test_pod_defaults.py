"""What the cluster adds to pods, as the watches show it."""

from muster.cluster.stores import Added
from muster.resources.pod_defaults import NOTHING_ADDED, LimitRange, RuntimeClass
from tests.support.controller.stores import fill_added
from tests.support.manifests.observed import limit_range, made, runtime_class

_KATA = runtime_class("kata", cpu="250m")


def _added(*ranges: dict[str, object], runtimes: tuple[dict[str, object], ...] = ()) -> Added:
    added = Added()
    fill_added(added, ranges, runtimes)
    return added


def test_a_namespace_gets_what_its_own_limit_ranges_give() -> None:
    added = _added(limit_range(cpu="1"), limit_range(namespace="other", cpu="2"), runtimes=(_KATA,))
    found = added.of("other")
    assert [one.metadata.namespace for one in found.ranges] == ["other"]
    assert found.runtimes == {"kata": made(RuntimeClass, _KATA)}
    assert not added.of("third").ranges


def test_without_any_nothing_is_added_and_no_class_is_missing() -> None:
    assert _added().of("team") is NOTHING_ADDED
    assert _added(limit_range()).of("team").runtimes is None


def test_a_change_is_told_of_its_namespace_and_a_class_of_all() -> None:
    added = _added()
    told: list[str | None] = []
    added.subscribe(told.append)
    added.ranges.apply("added", made(LimitRange, limit_range(namespace="other")))
    added.runtimes.apply("added", made(RuntimeClass, _KATA))
    assert told == ["other", None]
