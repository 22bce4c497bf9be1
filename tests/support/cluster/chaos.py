"""Chaos: a plan's steps are taken in a cluster, and in the end nothing is half started, lost or stuck.

The plan is `tests.support.cluster.chaos_plan`. What cannot replay is the cluster's part: which gang is admitted first,
which of a gang's pods runs when one of them is to die, how far an operator is when it is killed; all of it is in the
scene's record and in chaos.log beside it.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from functools import partial

from hack.testbed import PATIENCE, Testbed, TestbedError
from hack.testbed.muster import MusterInstall, install
from hack.testbed.parts import PARTS
from muster.model.names import GANG, GATE, QUEUE_LABEL
from muster.model.objects import convert
from muster.model.resource import PODS
from muster.schedulers import GangScheduler
from tests.support.cluster.chaos_plan import CONTROLLERS, Planned, Step, plan
from tests.support.cluster.recorder import PYTORCH_JOBS, RAY_CLUSTERS, Manifest
from tests.support.cluster.scene import Scene, admitted, alive, gates, message, node_of, phase, state
from tests.support.faults.relay import Relay, relay_to
from tests.support.manifests.applied import RayCluster, pytorch_job, ray_cluster

# What is killed where the plan kills a program of Volcano's.
_INSTEAD = {
    "coscheduling": {
        "volcano-scheduler": "scheduler-plugins-scheduler",
        "volcano-controllers": "scheduler-plugins-controller",
    },
    "kubernetes": {"volcano-scheduler": "kube-scheduler", "volcano-controllers": "kube-controller-manager"},
}


class World:
    """The gangs that there are, and everything that may happen to them."""

    def __init__(self, scene: Scene, muster: MusterInstall, way: Relay, scheduler: GangScheduler) -> None:
        self.scene = scene
        self.scheduler = scheduler
        self.parts = _INSTEAD.get(scheduler.product, {})
        self.muster = muster
        self.way = way
        self.clusters: set[str] = set()
        self.log: list[str] = []
        self._parts = {name for name, process in scene.testbed.processes().items() if name in PARTS and process.alive()}

    def keep_alive(self) -> bool:
        """Start again what has died, as a kubelet would; whether all runs now."""
        muster = self.muster
        for started, start in ((muster.controllers, muster.start_controller), (muster.webhooks, muster.start_webhook)):
            for dead in [process for process in started if not process.alive()]:
                self.log.append(f"{dead.name} has ended")
                started.remove(dead)
                start()
        testbed = self.scene.testbed
        for name, process in testbed.processes().items():
            if name in self._parts and not process.alive():
                self.log.append(f"{name} has ended")
                try:
                    testbed.start_part(name)
                except TestbedError as error:
                    self.log.append(f"{name} does not start yet: {str(error)[:120]}")
                    return False
        return True

    def whole(self) -> bool:
        """Whether all of muster is ready; on a full machine a leader loses its lease, and ends, even now."""
        try:
            self.muster.wait_ready(PATIENCE / 10)
        except TestbedError as error:
            self.log.append(str(error).partition("\n")[0])
            return False
        return True

    def wait(self, what: str, condition: Callable[[], object]) -> None:
        """Wait for it, and start again what ends meanwhile."""
        self.scene.wait(what, lambda: self.keep_alive() and condition())

    def take(self, step: Step) -> None:
        """Have this happen. With the apiserver or the webhook away a user is refused, and tries again until it is done.

        What takes something away happens once: what was killed is started again by the next step.
        """
        self.log.append(str(step))
        gang = step.gang
        match step.verb:
            case "controller dies":
                self._kill_controller(step.index)
            case "part dies":
                self.keep_alive()
                self.scene.testbed.stop_part(self.parts.get(step.part, step.part), kill=True)
            case "way is cut":
                self.log.append(f"{self.way.cut()} connections of muster are cut")
            case "cluster comes" | "cluster changes size" if gang:
                self.clusters.add(gang.name)
                self._insist(step, lambda: self.scene.apply(_cluster(gang)))
            case "job comes" if gang:
                job = pytorch_job(gang.name).workers(gang.workers).policy(queue=gang.queue).runs(gang.seconds)
                self._insist(step, lambda: self.scene.apply(job))
            case "cluster goes" if gang:
                self.clusters.remove(gang.name)
                self._insist(step, lambda: self.scene.delete(RAY_CLUSTERS, gang.name, wait=False, missing_ok=True))
            case "pod dies" if gang:
                self._insist(step, lambda: self._kill_pod(_group(gang.name), step.index))
            case "somebody runs":
                # So that there is something to die, and to be in the way.
                self.wait("somebody to run", lambda: any(phase(pod) == "Running" for pod in self.scene.pods()))
            case verb:
                raise AssertionError(f"nobody knows how {verb!r} happens")

    def _insist(self, step: Step, act: Callable[[], object]) -> None:
        def done() -> bool:
            try:
                act()
            except TestbedError as error:
                self.log.append(f"{step.verb} failed: {str(error)[:120]}")
                return False
            return True

        self.wait(f"this to be done: {step}", done)

    def _kill_pod(self, gang: str, index: int) -> None:
        running = [pod["metadata"]["name"] for pod in self.scene.pods(gang) if phase(pod) == "Running" and alive(pod)]
        if not running:
            self.log.append(f"no pod of {gang} runs")
            return
        name = sorted(running)[index % len(running)]
        self.scene.delete(PODS, name, wait=False, missing_ok=True)
        self.log.append(f"pod {name} dies")

    def _kill_controller(self, index: int) -> None:
        self.keep_alive()
        process = self.muster.controllers.pop(index)
        process.kill()
        self.muster.start_controller()

    def survive(self, seed: int, steps: int, queues: Mapping[str, Mapping[str, str]]) -> None:
        """Take so many steps of a seed, then let every gang have its turn, and judge what was on record.

        `queues` are those of the plan, with their capability.
        """
        scene = self.scene
        for step in plan(seed, steps):
            self.take(step)
        self.wait("everything to run again", self.whole)
        (scene.testbed.logs / "chaos.log").write_text("\n".join([f"seed {seed}, {steps} steps", *self.log]))

        # Whoever waits gets its turn: what runs is taken away until nobody is left.
        self.wait("every gang to have run or to say why not", self._settled)
        while self.clusters:
            # Jobs end by themselves; what they held is free then.
            self.wait("somebody to run", self._running)
            for name in self._running():
                scene.delete(RAY_CLUSTERS, name, wait=False)
                self.clusters.remove(name)
            self.wait("the next to have run or to say why not", self._settled)
        # Two small queues take hundreds of jobs one after the other: each end is waited for, not all at once.
        while (left := self._unended()) > 0:
            self.wait(f"one of {left} jobs to end", partial(self._fewer, left))

        scene.recorder.settle()
        _assert_nobody_started_in_part(scene, self.scheduler)
        for name, capability in queues.items():
            scene.assert_never_above(dict(capability), name)

    def _running(self) -> list[str]:
        groups = {name: self.scene.pod_group(_group(name)) for name in sorted(self.clusters)}
        return [name for name, group in groups.items() if state(group) == "Running"]

    def _unended(self) -> int:
        return sum(not _ended(job) for job in self.scene.recorder.now(PYTORCH_JOBS))

    def _fewer(self, than: int) -> bool:
        return self._unended() < than

    def _settled(self) -> bool:
        """Every gang of a living cluster runs with all its pods, or waits whole and says why."""
        scene = self.scene
        for cluster in scene.recorder.now(RAY_CLUSTERS):
            if "deletionTimestamp" in cluster["metadata"]:
                return False
            group = scene.pod_group(_group(cluster["metadata"]["name"]))
            members = [pod for pod in scene.pods(_group(cluster["metadata"]["name"])) if alive(pod)]
            if not group["metadata"] or not message(group):
                return False
            held = [pod for pod in members if GATE in gates(pod)]
            if admitted(group):
                least = _least(group, self.scheduler)
                if sum(phase(pod) == "Running" for pod in members) < least:
                    return False
                if held and "no room yet" not in message(group):
                    return False
            elif len(held) != len(members) or state(group) not in {"WaitingForQuota", "ExceedsCapability"}:
                return False
        return True


@contextmanager
def open_world(
    testbed: Testbed,
    scenes: AbstractContextManager[Scene],
    scheduler: GangScheduler,
    values: Mapping[str, str],
) -> Iterator[World]:
    """Install muster with two controllers, which reach the apiserver by a way that can be cut; then take it away."""
    muster = install(testbed, values=dict(values), webhooks=0, controllers=0)
    with relay_to(testbed.server) as way, scenes as scene:
        muster.server = way.url
        for start in (muster.start_webhook, *[muster.start_controller] * CONTROLLERS):
            start()
        world = World(scene, muster, way, scheduler)
        world.wait("all of muster to run", world.whole)
        yield world
    muster.uninstall(hooks=False)


def _cluster(gang: Planned) -> RayCluster:
    return ray_cluster(gang.name).label(QUEUE_LABEL, gang.queue).workers(gang.workers)


def _group(cluster: str) -> str:
    return f"ray-{cluster}-pg"


def _ended(job: Manifest) -> bool:
    conditions = job.get("status", {}).get("conditions") or []
    return any(one["type"] in {"Succeeded", "Failed"} and one["status"] == "True" for one in conditions)


def _least(group: Manifest, scheduler: GangScheduler) -> int:
    return convert(group, scheduler.pod_groups).spec.min_member


def _assert_nobody_started_in_part(scene: Scene, scheduler: GangScheduler) -> None:
    """When the first pod of a workload got a node, as many were open as its PodGroup asked for.

    Where the record has a gap, for the apiserver itself was killed, what happened in it cannot be told.
    """
    least: dict[str, list[tuple[int, int]]] = {}
    appeared_in_a_gap = set()
    for seen in scene.recorder.history(scheduler.resource):
        owner = seen.object["metadata"]["ownerReferences"][0]["uid"]
        if seen.after_a_gap and owner not in least:
            appeared_in_a_gap.add(owner)
        least.setdefault(owner, []).append((seen.version, _least(seen.object, scheduler)))
    opened: dict[str, set[str]] = {}
    placed: set[str] = set()
    judged = 0
    for seen in scene.recorder.history(PODS):
        meta = seen.object["metadata"]
        if GANG not in (meta.get("labels") or {}) or not meta.get("ownerReferences"):
            continue
        owner = meta["ownerReferences"][0]["uid"]
        if seen.after_a_gap:
            placed.add(owner)
        if GATE not in gates(seen.object):
            opened.setdefault(owner, set()).add(meta["uid"])
        if node_of(seen.object) and owner not in placed:
            placed.add(owner)
            known = [number for version, number in least.get(owner, []) if version < seen.version]
            if not known and owner in appeared_in_a_gap:
                continue
            judged += 1
            asked = known[-1]
            assert len(opened[owner]) >= asked, f"{meta['name']}: {len(opened[owner])} of {asked} were open"
    assert judged, "nothing ever ran"
