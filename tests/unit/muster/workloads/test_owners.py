"""One walk up the owners."""

from muster.model.objects import OwnerReference
from muster.workloads import MOST_OWNERS, OwnerWalk


def reference(name: str) -> OwnerReference:
    return OwnerReference("batch.volcano.sh/v1alpha1", "Job", name, f"uid-{name}", controller=True)


def walked(of: OwnerWalk, controllers: dict[str, str]) -> list[str]:
    names = []
    for owner in of:
        names.append(owner.name)
        if owner.name in controllers:
            of.step_to(reference(controllers[owner.name]) if controllers[owner.name] else None)
    return names


def test_it_goes_from_each_owner_that_was_found_to_its_controller() -> None:
    assert walked(OwnerWalk(reference("a")), {"a": "b", "b": ""}) == ["a", "b"]


def test_it_ends_at_an_owner_that_was_not_found() -> None:
    assert walked(OwnerWalk(reference("a")), {}) == ["a"]


def test_nothing_is_above_an_object_that_nothing_controls() -> None:
    assert walked(OwnerWalk(None), {}) == []


def test_owners_that_make_a_ring_are_looked_up_so_often_and_no_more() -> None:
    assert walked(OwnerWalk(reference("a")), {"a": "b", "b": "a"}) == ["a", "b"] * (MOST_OWNERS // 2)
