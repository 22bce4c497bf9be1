import logging
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.kube.store import Change, ChangeKind, Store
from muster.model.objects import ObjectMeta


@dataclass(frozen=True)
class Thing:
    """An object with an owner to be found by."""

    metadata: ObjectMeta
    owner: str = ""


def thing(name: str, version: int = 1, uid: str = "", owner: str = "") -> Thing:
    return Thing(ObjectMeta(name=name, namespace="ns", uid=uid or name, resource_version=str(version)), owner)


def recorded(store: Store[Thing]) -> list[Change[Thing]]:
    changes: list[Change[Thing]] = []
    store.subscribe(changes.append)
    return changes


def test_a_relist_tells_what_nobody_saw() -> None:
    """Deletions, changes and additions of the time without a watch are all heard, and what is equal is not."""
    store: Store[Thing] = Store()
    store.replace_all([thing("stays"), thing("changes"), thing("goes")])
    changes = recorded(store)
    store.replace_all([thing("stays"), thing("changes", 2), thing("comes")])
    assert [(change.kind, change.object.metadata.name) for change in changes] == [
        ("deleted", "goes"),
        ("modified", "changes"),
        ("added", "comes"),
    ]


def test_a_relist_in_parts_changes_nothing_before_its_end() -> None:
    """Between its parts others look at the store, and may even change it."""
    store: Store[Thing] = Store()
    store.replace_all([thing("stays"), thing("goes"), thing("changes")])
    changes = recorded(store)
    relist = store.relist()
    relist.extend([thing("stays"), thing("changes", 2)])
    relist.extend([thing("comes")])
    assert not changes
    assert {item.metadata.name for item in store} == {"stays", "goes", "changes"}
    relist.end()
    assert [(change.kind, change.object.metadata.name) for change in changes] == [
        ("deleted", "goes"),
        ("modified", "changes"),
        ("added", "comes"),
    ]


class Uncomparable(Thing):
    """A large object, which a relist has no time to compare."""

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        raise AssertionError("compared")


def test_of_a_known_version_nothing_is_compared() -> None:
    """A relist of thousands of objects, nearly all unchanged, holds up what else the process does."""
    store: Store[Thing] = Store()
    first = Uncomparable(ObjectMeta(name="a", namespace="ns", uid="a", resource_version="7"))
    store.replace_all([first])
    changes = recorded(store)
    store.replace_all([Uncomparable(first.metadata)])
    store.apply("modified", Uncomparable(first.metadata))
    assert store.get("ns", "a") is first
    assert not changes


def test_recreated_under_the_same_name_is_a_deletion_and_an_addition() -> None:
    """Two lives of one name are two objects, also when the deletion itself was never seen."""
    store: Store[Thing] = Store()
    store.replace_all([thing("a", 1, uid="first")])
    changes = recorded(store)
    store.apply("modified", thing("a", 5, uid="second"))
    assert [(change.kind, change.object.metadata.uid) for change in changes] == [
        ("deleted", "first"),
        ("added", "second"),
    ]


def test_a_first_list_fills_the_store_step_by_step() -> None:
    """A hundred thousand pods take seconds, in which others have their turn; until the end nobody believes it."""
    store: Store[Thing] = Store()
    changes = recorded(store)
    relist = store.relist()
    relist.extend([thing(name) for name in "abc"])
    seen = [(len(changes), len(store), store.synced) for _ in relist.steps()]
    assert seen == [(1, 1, False), (2, 2, False), (3, 3, False)]
    assert store.synced


def test_a_later_list_changes_the_store_at_once_and_is_told_step_by_step() -> None:
    """Else a gang whose pods have others in their places would look, for a moment, as if it had none."""
    store: Store[Thing] = Store()
    store.replace_all([thing("old"), thing("older"), thing("stays")])
    changes = recorded(store)
    relist = store.relist()
    relist.extend([thing("stays"), thing("new"), thing("newer")])
    seen = [(len(changes), sorted(item.metadata.name for item in store)) for _ in relist.steps()]
    assert seen == [(count, ["new", "newer", "stays"]) for count in (1, 2, 3, 4)]
    assert [change.kind for change in changes] == ["deleted", "deleted", "added", "added"]


def test_synced_only_after_the_first_list() -> None:
    """An empty list is an answer; no list is none."""
    store: Store[Thing] = Store()
    assert not store.synced
    store.replace_all([])
    assert store.synced


def test_repeated_events_are_no_changes() -> None:
    """A resumed watch may say again what was known."""
    store: Store[Thing] = Store()
    changes = recorded(store)
    store.apply("added", thing("a"))
    store.apply("added", thing("a"))
    store.apply("deleted", thing("b"))
    assert [change.kind for change in changes] == ["added"]


def test_handlers_see_the_new_state() -> None:
    """A handler that looks into the store finds what it is told of."""
    store: Store[Thing] = Store()
    store.index("owner", lambda item: [item.owner])
    found: list[tuple[Thing | None, list[Thing]]] = []
    store.subscribe(lambda change: found.append((store.get("ns", "a"), store.by_index("owner", change.object.owner))))
    new = thing("a", owner="o")
    store.apply("added", new)
    store.apply("deleted", new)
    assert found == [(new, [new]), (None, [])]


def test_a_failing_handler_does_not_silence_the_others(caplog: pytest.LogCaptureFixture) -> None:
    """It is logged and counted."""
    store: Store[Thing] = Store()

    def broken(_: Change[Thing]) -> None:
        raise RuntimeError("broken handler")

    store.subscribe(broken)
    changes = recorded(store)
    with caplog.at_level(logging.ERROR):
        store.apply("added", thing("a"))
    assert len(changes) == 1
    assert store.handler_errors == 1
    assert "broken handler" in caplog.text


def test_an_index_over_what_is_there_already() -> None:
    """Registered late, it knows the earlier objects."""
    store: Store[Thing] = Store()
    store.apply("added", thing("a", owner="o"))
    store.index("owner", lambda item: [item.owner])
    assert [item.metadata.name for item in store.by_index("owner", "o")] == ["a"]


THINGS = st.builds(
    thing,
    name=st.sampled_from("abcd"),
    version=st.integers(1, 5),
    uid=st.sampled_from(["", "u1", "u2"]),
    owner=st.sampled_from(["x", "y", "z"]),
)
STEPS = st.one_of(
    st.tuples(st.sampled_from(["added", "modified", "deleted"]), THINGS),
    st.tuples(st.just("relist"), st.lists(THINGS, max_size=4)),
)


@given(steps=st.lists(STEPS, max_size=40))
def test_any_history_leaves_one_truth(steps: list[tuple[ChangeKind, Thing] | tuple[str, list[Thing]]]) -> None:
    """The store, a replay of its changes, and its indices agree after every step of any history."""
    store: Store[Thing] = Store()
    store.index("owner", lambda item: [item.owner])
    replay: dict[str, Thing] = {}

    def follow(change: Change[Thing]) -> None:
        name = change.object.metadata.name
        assert replay.get(name) == change.old, "a change begins where the last one ended"
        if change.new is None:
            del replay[name]
        else:
            replay[name] = change.new

    store.subscribe(follow)
    model: dict[str, tuple[str, str]] = {}
    for kind, what in steps:
        if isinstance(what, list):
            store.replace_all(what)
            model = {item.metadata.name: _identity(item) for item in what}
        elif kind == "deleted":
            store.apply("deleted", what)
            model.pop(what.metadata.name, None)
        else:
            store.apply("added" if kind == "added" else "modified", what)
            model[what.metadata.name] = _identity(what)
        assert {item.metadata.name: _identity(item) for item in store} == model
        assert {item.metadata.name: item for item in store} == replay
        for owner in "xyz":
            by_scan = {item.metadata.name for item in store if item.owner == owner}
            assert {item.metadata.name for item in store.by_index("owner", owner)} == by_scan
    assert store.handler_errors == 0


def _identity(item: Thing) -> tuple[str, str]:
    return item.metadata.uid, item.metadata.resource_version
