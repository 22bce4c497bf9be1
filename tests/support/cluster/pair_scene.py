"""A scene in a cluster without Volcano: PodGroups of another scheduler, and GangQueues."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from hack.testbed import Testbed, wait_for
from muster.model.objects import PodGroup, convert
from muster.model.resource import PODS, Resource
from muster.schedulers import named
from tests.support.cluster.claim_terms import GANG_QUEUES
from tests.support.cluster.objects import alive, node_of, state
from tests.support.cluster.recorder import PYTORCH_JOBS, RAY_CLUSTERS, Manifest, Recorder
from tests.support.cluster.scene import Scene, open_scene
from tests.support.cluster.steps import Meter
from tests.support.manifests import applied


class PairScene(Scene):
    """As `Scene`, with the PodGroups of the scheduler `product` and queues of muster's own."""

    def __init__(self, testbed: Testbed, namespace: str, recorder: Recorder, meter: Meter | None = None) -> None:
        super().__init__(testbed, namespace, recorder, meter)
        self.product = "coscheduling"
        self._gang_queues: list[str] = []

    def gang_queue(self, suffix: str = "", *, capability: dict[str, str] | None = None, **spec: object) -> str:
        """Make a GangQueue of this test's own and return its name."""
        name = f"{self.namespace}{suffix}"
        manifest = {
            "apiVersion": GANG_QUEUES.api_version,
            "kind": GANG_QUEUES.kind,
            "metadata": {"name": name},
            "spec": {"capability": capability or {}, **spec},
        }
        self.api.create(GANG_QUEUES.path(), manifest)
        self._gang_queues.append(name)
        return name

    def set_queue(self, name: str, **spec: object) -> None:
        """Change these fields of a GangQueue."""
        self.api.merge(GANG_QUEUES.path(name=name), {"spec": spec})

    def pod_group(self, name: str) -> Manifest:
        """Return a PodGroup as it is now, {} when there is none."""
        (scheduler,) = named(self.product).values()
        found = [
            group
            for group in self.recorder.now(scheduler.resource)
            if scheduler.gang_name(convert(group, PodGroup).metadata) == name
            and "deletionTimestamp" not in group["metadata"]
        ]
        return found[-1] if found else {"metadata": {}, "spec": {}}

    def finish(self, pod: str) -> None:
        """Let a pod succeed now."""
        patch = {"metadata": {"annotations": {applied.RUN_SECONDS: "0"}}}
        self.api("PATCH", self.path(PODS, pod), patch, patch="merge")

    def living(self, gang: str) -> list[str]:
        """Return the names of the gang's living pods."""
        return [pod["metadata"]["name"] for pod in self.pods(gang) if alive(pod)]

    def placed(self, gang: str) -> int:
        """Return how many living pods of the gang have a node."""
        return sum(bool(node_of(pod)) for pod in self.pods(gang) if alive(pod))

    def await_placed(self, gang: str, pods: int) -> None:
        """Wait until so many living pods of the gang have nodes, and muster says that it runs.

        Kubernetes' own PodGroups have no phase.
        """
        self.wait(f"{gang} to run", lambda: self.placed(gang) == pods and state(self.pod_group(gang)) == "Running")

    def close(self) -> None:
        """Delete the namespace and the queues."""
        super().close()
        for name in self._gang_queues:
            self.api.delete(GANG_QUEUES.path(name=name), missing_ok=True)


@contextmanager
def open_pair_scene(
    testbed: Testbed,
    name: str,
    product: str = "coscheduling",
    queues: str = "muster",
    *,
    kinds: Iterable[Resource] = (RAY_CLUSTERS, PYTORCH_JOBS),
    gaps: bool = False,
) -> Iterator[PairScene]:
    """Make a namespace with this name in a cluster whose gangs this scheduler places.

    `kinds` are on record, and the queues; `gaps` as of Recorder.
    """
    (scheduler,) = named(product).values()
    if queues == "muster":
        wait_for("GangQueues to be served", lambda: testbed.api()("GET", GANG_QUEUES.path()).ok)
        kinds = (*kinds, GANG_QUEUES)
    with open_scene(testbed, name, (*kinds, scheduler.resource), gaps=gaps, made=PairScene) as scene:
        assert isinstance(scene, PairScene)
        scene.product = product
        yield scene
