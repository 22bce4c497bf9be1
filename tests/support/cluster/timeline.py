"""The order of what happened to gangs, in words, from a scene's record."""

from collections.abc import Callable, Iterable, Iterator, Mapping

from muster.model.names import GANG
from muster.model.resource import EVENTS, POD_GROUPS, PODS
from tests.support.cluster.objects import gang_of, has_condition, node_of, phase, state
from tests.support.cluster.recorder import Manifest, State
from tests.support.cluster.scene import Scene

# The table that the apiserver makes for `kubectl get`.
_AS_KUBECTL_GETS = "application/json;as=Table;v=v1;g=meta.k8s.io"


def timeline(scene: Scene, names: Mapping[str, str], marks: Iterable[tuple[int, str]] = ()) -> str:
    """Say in which order the gangs, called by these names, did what for the first time: "J1 starts, J1 runs, J2 waits".

    A gang *waits* when muster says so, *starts* with the first pod that gets a node, *runs* when so many pods as it
    cannot do without have run, and *ends* when its workload has succeeded or is gone. `marks` say what else
    happened, at which resource version. The order is that of the apiserver's resource versions.
    """
    scene.recorder.settle()
    moments = [*marks]
    for gang, name in names.items():
        moments += [(version, f"{name} {does}") for does, version in _moments(scene, gang)]
    return ", ".join(text for _, text in sorted(moments))


def shown(scene: Scene, gang: str) -> str:
    """Count the pods of a gang by what `kubectl get pods` says of them: "3 Running"."""
    listed = scene.api.get(f"{PODS.path(scene.namespace)}?labelSelector={GANG}%3D{gang}", _AS_KUBECTL_GETS)
    status = [column["name"] for column in listed["columnDefinitions"]].index("Status")
    words = [row["cells"][status] for row in listed["rows"]]
    return ", ".join(f"{words.count(word)} {word}" for word in sorted(set(words)))


def _moments(scene: Scene, gang: str) -> Iterator[tuple[str, int]]:
    groups = [seen for seen in scene.recorder.history(POD_GROUPS) if seen.name == gang and not seen.gone]
    pods = [seen for seen in scene.recorder.history(PODS) if _is_of(seen, gang)]
    yield from _first("waits", groups, lambda group: state(group) == "WaitingForQuota")
    yield from _first("starts", pods, lambda pod: bool(node_of(pod)))
    ran: dict[str, int] = {}
    for seen in pods:
        if phase(seen.object) == "Running":
            ran.setdefault(seen.object["metadata"]["uid"], seen.version)
    needed = groups[0].object["spec"]["minMember"] if groups else 1
    if len(ran) >= needed:
        yield "runs", sorted(ran.values())[needed - 1]
    owners = {owner["uid"] for seen in groups for owner in seen.object["metadata"].get("ownerReferences", [])}
    lives = [
        seen
        for kind in scene.recorder.kinds
        if kind not in (PODS, POD_GROUPS, EVENTS)
        for seen in scene.recorder.history(kind)
        if seen.object["metadata"]["uid"] in owners
    ]
    ends = [seen.version for seen in lives if seen.gone or has_condition(seen.object, "Succeeded")]
    if ends:
        yield "ends", min(ends)


def _first(does: str, history: list[State], holds: Callable[[Manifest], bool]) -> Iterator[tuple[str, int]]:
    yield from [(does, seen.version) for seen in history if not seen.gone and holds(seen.object)][:1]


def _is_of(seen: State, gang: str) -> bool:
    return gang_of(seen.object) == gang
