"""Several stores that are read as one."""

from muster.kube.store import Change, Stores
from muster.model.pods import Pod
from tests.support.manifests.observed import made, pod


def test_a_relist_of_one_takes_nothing_from_the_others() -> None:
    stores: Stores[Pod] = Stores(["volcano", "other"])
    stores.index("node", lambda one: (one.spec.node_name,))
    changes: list[Change[Pod]] = []
    stores.subscribe(changes.append)
    stores.of("volcano").replace_all([made(Pod, pod("a", nodeName="n"))])
    stores.of("other").replace_all([made(Pod, pod("b", nodeName="n")), made(Pod, pod("c", nodeName="m"))])
    stores.of("other").replace_all([made(Pod, pod("b", nodeName="n"))])
    assert [(change.kind, change.object.metadata.name) for change in changes] == [
        ("added", "a"),
        ("added", "b"),
        ("added", "c"),
        ("deleted", "c"),
    ]
    assert [one.metadata.name for one in stores] == ["a", "b"]
    assert [one.metadata.name for one in stores] == ["a", "b"]
    assert [one.metadata.name for one in stores.by_index("node", "n")] == ["a", "b"]
    assert stores.by_index("node", "m") == []
