"""The controller through any history of gangs that come and go, writes that fail and leaders that die."""

import asyncio
import contextlib

from hypothesis import example, given, settings
from hypothesis import strategies as st

from controller.apiserver import NotLeaderError
from muster.kube.errors import ApiError, Unreachable
from muster.model.names import ADMITTED
from muster.workloads.ray import RAY_CLUSTER, RayCluster
from tests.support.controller.harness import Harness
from tests.support.controller.stores import workload_store
from tests.support.examples import examples
from tests.support.manifests.observed import JSON, made, queue, ray_cluster, ray_pod, workers

CAPABILITY = 7
NAMES = ["a", "b", "c"]
SIZES = {"a": 1, "b": 3, "c": 6}  # workers beside the head, 1 cpu each
FAILURES = [Unreachable("silent"), ApiError(500, "", "broken"), ApiError(409, "Conflict", ""), NotLeaderError("lost")]


class World:
    """Three gangs of 2, 4 and 7 cpu in a queue of 7; lives are numbered."""

    def __init__(self) -> None:
        self.harness = Harness(queues=[queue(cpu=str(CAPABILITY))])
        self.lives: dict[str, int] = {}
        self.born = 0

    def comes(self, name: str) -> None:
        """A workload is applied, or made anew; its operator makes the pods."""
        if name in self.lives:
            return
        self.born += 1
        self.lives[name] = self.born
        manifest = ray_cluster(workers(replicas=SIZES[name]), name=name, uid=f"uid-{self.born}")
        workload_store(self.harness.cluster, RAY_CLUSTER).apply("added", made(RayCluster, manifest))
        self.pod(name, "headgroup")
        for _ in range(SIZES[name]):
            self.pod(name, "workers")

    def pod(self, name: str, role: str) -> None:
        """The operator makes a pod, held as the webhook makes it."""
        self.born += 1
        pod = ray_pod(f"{name}-{self.born}", role, cluster=name, owner_uid=f"uid-{self.lives[name]}")
        self.harness.client.pods[pod["metadata"]["name"]] = pod

    def goes(self, name: str) -> None:
        """The workload is deleted and its pods with it; its PodGroup stays behind for a while."""
        if self.lives.pop(name, None) is None:
            return
        store = workload_store(self.harness.cluster, RAY_CLUSTER)
        found = store.get("team", name)
        assert found is not None
        store.apply("deleted", found)
        for pod in [pod for pod in self.harness.client.pods if pod.startswith(f"{name}-")]:
            del self.harness.client.pods[pod]

    def living(self, name: str) -> list[str]:
        """Its pods that are not being deleted."""
        pods = self.harness.client.pods.items()
        return [pod for pod, found in pods if pod.startswith(f"{name}-") and not _dying(found)]

    def crashes(self, name: str) -> None:
        """A member dies and the operator makes another."""
        pods = self.living(name)
        if pods:
            role = self.harness.client.pods.pop(pods[-1])["metadata"]["labels"]["ray.io/group"]
            self.pod(name, role)

    def placed(self, name: str) -> None:
        """The scheduler gives its open pods nodes."""
        for pod in {*self.living(name)} & {*self.harness.open_pods()}:
            self.harness.client.pods[pod]["spec"]["nodeName"] = "node"

    def dies(self, name: str) -> None:
        """A member is deleted, which takes as long as its grace period, and the operator makes another."""
        for pod in self.living(name):
            found = self.harness.client.pods[pod]
            if "nodeName" in found["spec"]:
                found["metadata"]["deletionTimestamp"] = "2026-11-21T10:10:00Z"
                self.pod(name, found["metadata"]["labels"]["ray.io/group"])
                return

    def ends(self, name: str) -> None:
        """Grace periods are over."""
        pods = self.harness.client.pods
        for pod in [pod for pod, found in pods.items() if pod.startswith(f"{name}-") and _dying(found)]:
            del pods[pod]

    def grows(self, name: str) -> None:
        """An autoscaler adds a worker."""
        if name in self.lives:
            self.pod(name, "workers")

    def swept(self, name: str) -> None:
        """The garbage collector takes the PodGroup of a workload that is gone."""
        if name not in self.lives:
            self.harness.client.groups.pop(f"ray-{name}-pg", None)
            self.harness.client.applied.pop(f"ray-{name}-pg", None)

    async def fails(self, number: int, *, effect: bool) -> None:
        """The next write fails, and with some failures the leader is another one; `effect`: it was carried out."""
        client = self.harness.client
        client.took_effect = effect
        error = FAILURES[number % len(FAILURES)]
        client.fails[""] = [error]
        with contextlib.suppress(ApiError, NotLeaderError):
            await self.harness.work()
        client.fails.clear()
        client.took_effect = False
        self.harness.watch()
        if isinstance(error, NotLeaderError):
            self.harness.restart()
        for key in self.harness.cluster.gangs():
            self.harness.queue.add(key)

    async def settle(self) -> None:
        """Until nothing is left to do; a PodGroup that only the last list showed is believed in for five seconds."""
        await self.harness.settle()
        if any(f"ray-{name}-pg" not in self.harness.client.groups for name in self.lives):
            self.harness.now += 5.0
            for key in self.harness.cluster.gangs():
                self.harness.queue.add(key)
            await self.harness.settle()

    def check(self) -> None:
        """No more is open than the queue has, and no gang in part; what is being deleted is replaced already."""
        living = {name: {*self.living(name)} & {*self.harness.open_pods()} for name in NAMES}
        assert sum(map(len, living.values())) <= CAPABILITY
        for name, life in self.lives.items():
            opened = living[name]
            marked = self.harness.annotations(f"ray-{name}-pg").get(ADMITTED)
            assert marked in (None, f"uid-{life}")
            assert (marked is None) is (not opened)
            assert not opened or len(opened) > SIZES[name]


def _dying(pod: JSON) -> bool:
    return "deletionTimestamp" in pod["metadata"]


steps = st.lists(
    st.tuples(
        st.sampled_from(
            [
                *("comes", "comes", "goes", "crashes", "grows", "placed", "dies", "ends", "swept", "restart", "fails"),
                *("settle", "settle"),
            ]
        ),
        st.sampled_from(NAMES),
        st.integers(0, len(FAILURES) - 1),
        st.booleans(),
    ),
    max_size=25,
)


def _of(name: str, *named: str) -> list[tuple[str, str, int, bool]]:
    return [(step, name, 0, False) for step in named]


@settings(max_examples=examples(150))
@example(_of("c", "comes", "settle", "placed", "grows", "settle", "dies", "settle", "ends", "settle"))
@example(_of("c", "comes", "settle", "goes", "restart", "swept", "comes"))
@example([("comes", "c", 0, False), ("fails", "a", 0, True), ("comes", "a", 0, False), ("fails", "a", 2, True)])
@given(steps)
def test_no_history_opens_more_than_there_is_room_for_or_a_gang_in_part(
    history: list[tuple[str, str, int, bool]],
) -> None:
    async def live() -> None:
        world = World()
        for step, name, number, effect in history:
            if step == "restart":
                world.harness.restart()
            elif step == "fails":
                await world.fails(number, effect=effect)
            elif step == "settle":
                await world.settle()
                world.check()
            else:
                getattr(world, step)(name)
                world.harness.watch()
        await world.settle()
        world.check()

    asyncio.run(live())
