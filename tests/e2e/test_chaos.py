"""Whatever is killed and whoever comes and goes: nothing starts in part, nothing is over its limit, nothing is stuck.

What is done, to what and in which order is a plan made of the seed alone (`tests.support.cluster.chaos_plan`), and a
step that is refused while something is down is tried until it is done. So the same seed gives the same steps. What
cannot replay is the cluster's part: which gang is admitted first, which of a gang's pods runs when one of them is to
die, how far an operator is when it is killed; all of it is in the scene's record and in chaos.log beside it.

Short in `make test`. `MUSTER_CHAOS_SEED=7 pytest tests/e2e/test_chaos.py -m long` for a long one of another seed.
"""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING

import pytest

from hack.testbed import TestbedError
from hack.testbed.muster import MusterInstall, install
from hack.testbed.parts import PARTS
from muster.kube.resource import POD_GROUPS, PODS
from muster.model.names import GANG, GATE, QUEUE_LABEL
from tests.e2e.conftest import QUICK_LEASE, VALUES
from tests.support.cluster.chaos_plan import CONTROLLERS, DEFAULT_SEED, QUEUES, SHORT, plan
from tests.support.cluster.recorder import PYTORCH_JOBS, RAY_CLUSTERS
from tests.support.cluster.scene import admitted, alive, gates, message, node_of, open_scene, phase, state
from tests.support.faults.relay import relay_to
from tests.support.manifests.applied import RayCluster, pytorch_job, ray_cluster

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from hack.testbed import Testbed
    from tests.support.cluster.chaos_plan import Planned, Step
    from tests.support.cluster.recorder import Manifest
    from tests.support.cluster.scene import Scene
    from tests.support.faults.relay import Relay

_SEED = int(os.environ.get("MUSTER_CHAOS_SEED", DEFAULT_SEED))
_LONG = 600
_QUEUES = dict(zip(QUEUES, ({"cpu": "8"}, {"cpu": "5"}), strict=True))
# One node takes no pods, so that the queues find less room than they allow.
_CORDONED = "node-3"
# Operators begin anew when they are started, and wait for leases and caches.
_PATIENCE = 240.0
# What the steps leave behind has to go through the queues.
_SECONDS_PER_STEP = 6


class _World:
    """The gangs that there are, and everything that may happen to them."""

    def __init__(self, scene: Scene, muster: MusterInstall, way: Relay) -> None:
        self.scene = scene
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
            self.muster.wait_ready(20)
        except TestbedError as error:
            self.log.append(str(error).partition("\n")[0])
            return False
        return True

    def wait(self, what: str, condition: Callable[[], object]) -> None:
        """Wait for it, and start again what ends meanwhile."""
        self.scene.wait(what, lambda: self.keep_alive() and condition(), _PATIENCE)

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
                self.scene.testbed.stop_part(step.part, kill=True)
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


def _cluster(gang: Planned) -> RayCluster:
    return ray_cluster(gang.name).label(QUEUE_LABEL, gang.queue).workers(gang.workers)


def _group(cluster: str) -> str:
    return f"ray-{cluster}-pg"


@pytest.fixture
def breakable(bare: Testbed) -> Iterator[Testbed]:
    """The session's testbed, without muster and with a node less; whoever breaks it leaves it running."""
    bare.kubectl("cordon", _CORDONED)
    yield bare
    bare.kubectl("uncordon", _CORDONED)


@pytest.fixture
def world(breakable: Testbed, request: pytest.FixtureRequest) -> Iterator[_World]:
    """Muster with two controllers on a testbed that may break, and two small queues."""
    testbed = breakable
    muster = install(testbed, values={**VALUES, **QUICK_LEASE}, webhooks=0, controllers=0)
    # The namespace of the one before may still be going.
    name = f"chaos-{request.node.callspec.params['steps']}"
    with relay_to(testbed.server) as way, open_scene(testbed, name, patience=120) as scene:
        for program in muster.programs.values():
            kubeconfig = program.kubeconfig.read_text()
            assert testbed.server in kubeconfig
            program.kubeconfig.write_text(kubeconfig.replace(testbed.server, way.url))
        for start in (muster.start_webhook, *[muster.start_controller] * CONTROLLERS):
            start()
        world = _World(scene, muster, way)
        world.wait("all of muster to run", world.whole)
        for name, capability in _QUEUES.items():
            scene.adopt_queue(name)
            scene.apply(_queue(name, capability))
            scene.await_queue(name)
        yield world
    muster.uninstall(hooks=False)


def _queue(name: str, capability: dict[str, str]) -> Manifest:
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": name},
        "spec": {"weight": 1, "reclaimable": False, "capability": capability},
    }


@pytest.mark.parametrize(
    "steps",
    [
        SHORT,
        pytest.param(_LONG, marks=[pytest.mark.long, pytest.mark.timeout(_SECONDS_PER_STEP * _LONG)]),
    ],
)
def test_nothing_is_half_started_lost_or_stuck(world: _World, steps: int) -> None:
    scene = world.scene
    for step in plan(_SEED, steps):
        world.take(step)
    world.wait("everything to run again", world.whole)
    (scene.testbed.logs / "chaos.log").write_text("\n".join([f"seed {_SEED}, {steps} steps", *world.log]))

    # Whoever waits gets its turn: what runs is taken away until nobody is left.
    world.wait("every gang to have run or to say why not", lambda: _settled(scene))
    while world.clusters:
        # Jobs end by themselves; what they held is free then.
        world.wait("somebody to run", lambda: _running(world))
        for name in _running(world):
            scene.delete(RAY_CLUSTERS, name, wait=False)
            world.clusters.remove(name)
        world.wait("the next to have run or to say why not", lambda: _settled(scene))
    # Two small queues take hundreds of jobs one after the other: each end is waited for, not all at once.
    while (left := _unended(scene)) > 0:
        world.wait(f"one of {left} jobs to end", partial(_fewer, scene, left))

    scene.recorder.settle()
    _assert_nobody_started_in_part(scene)
    for name, capability in _QUEUES.items():
        scene.assert_never_above(capability, name)


def _running(world: _World) -> list[str]:
    return [name for name in sorted(world.clusters) if state(world.scene.pod_group(_group(name))) == "Running"]


def _unended(scene: Scene) -> int:
    return sum(not _ended(job) for job in scene.recorder.now(PYTORCH_JOBS))


def _fewer(scene: Scene, than: int) -> bool:
    return _unended(scene) < than


def _ended(job: Manifest) -> bool:
    conditions = job.get("status", {}).get("conditions") or []
    return any(one["type"] in {"Succeeded", "Failed"} and one["status"] == "True" for one in conditions)


def _settled(scene: Scene) -> bool:
    """Every gang of a living cluster runs with all its pods, or waits whole and says why."""
    for cluster in scene.recorder.now(RAY_CLUSTERS):
        if "deletionTimestamp" in cluster["metadata"]:
            return False
        group = scene.pod_group(_group(cluster["metadata"]["name"]))
        members = [pod for pod in scene.pods(_group(cluster["metadata"]["name"])) if alive(pod)]
        if not group["metadata"] or not message(group):
            return False
        held = [pod for pod in members if GATE in gates(pod)]
        if admitted(group):
            least = group["spec"]["minMember"]
            if sum(phase(pod) == "Running" for pod in members) < least:
                return False
            if held and "no room yet" not in message(group):
                return False
        elif len(held) != len(members) or state(group) not in {"WaitingForQuota", "ExceedsCapability"}:
            return False
    return True


def _assert_nobody_started_in_part(scene: Scene) -> None:
    """When the first pod of a workload got a node, as many were open as its PodGroup asked for.

    Where the record has a gap, for the apiserver itself was killed, what happened in it cannot be told.
    """
    least: dict[str, list[tuple[int, int]]] = {}
    appeared_in_a_gap = set()
    for seen in scene.recorder.history(POD_GROUPS):
        owner = seen.object["metadata"]["ownerReferences"][0]["uid"]
        if seen.after_a_gap and owner not in least:
            appeared_in_a_gap.add(owner)
        least.setdefault(owner, []).append((seen.version, seen.object["spec"]["minMember"]))
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
