"""Whatever is killed and whoever comes and goes: nothing starts in part, nothing is over its limit, nothing is stuck.

Seeded and short in CI. `MUSTER_CHAOS_SECONDS=600 MUSTER_CHAOS_SEED=7 pytest tests/e2e/test_chaos.py` for a long one.
"""

from __future__ import annotations

import os
import random
import time
from functools import partial
from typing import TYPE_CHECKING

import pytest

from hack.testbed import Nodes, TestbedError
from hack.testbed.muster import MusterInstall, install
from hack.testbed.parts import PARTS
from muster.kube.resource import POD_GROUPS, PODS
from muster.names import GANG, GATE, QUEUE_LABEL
from tests.e2e.conftest import QUICK_LEASE, VALUES
from tests.support.cluster.recorder import PYTORCH_JOBS, RAY_CLUSTERS
from tests.support.cluster.scene import admitted, alive, gates, message, node_of, open_scene, phase, state
from tests.support.faults.relay import relay_to
from tests.support.manifests.workloads import PyTorchJob, RayCluster, pytorch_job, ray_cluster

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.support.cluster.recorder import Manifest
    from tests.support.cluster.scene import Scene
    from tests.support.cluster.testbed_fixtures import OwnTestbed
    from tests.support.faults.relay import Relay

_SECONDS = float(os.environ.get("MUSTER_CHAOS_SECONDS", "60"))
_SEED = int(os.environ.get("MUSTER_CHAOS_SEED", "20261121"))
_QUEUES = {"chaos-one": {"cpu": "8"}, "chaos-two": {"cpu": "5"}}
_MOST_GANGS = 200
# What may be killed beside muster's own processes.
_PARTS = ("kube-apiserver", "volcano-scheduler", "volcano-controllers", "kuberay", "training")
# Operators begin anew when they are started, and wait for leases and caches.
_PATIENCE = 240.0

# What the steps left behind has to go through the queues: the more steps, the longer.
pytestmark = pytest.mark.timeout(4 * _SECONDS + 900)


class _World:
    """The gangs that there are, and everything that may happen to them."""

    def __init__(self, scene: Scene, muster: MusterInstall, way: Relay) -> None:
        self.scene = scene
        self.muster = muster
        self.way = way
        self.chance = random.Random(_SEED)  # noqa: S311 - the same history for the same seed
        self.clusters: dict[str, RayCluster] = {}
        self.jobs: dict[str, PyTorchJob] = {}
        self.made = 0
        self.log: list[str] = []

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
            if name in PARTS and not process.alive():
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

    def step(self) -> None:
        """One thing happens."""
        self.keep_alive()
        verbs: list[tuple[int, Callable[[], str]]] = [
            (10, self._cluster_comes),
            (8, self._job_comes),
            (6, self._cluster_goes),
            (3, self._cluster_changes_size),
            (3, self._pod_dies),
            (2, self._controller_dies),
            (1, self._part_dies),
            (1, self._way_is_cut),
        ]
        verb = self.chance.choices([verb for _, verb in verbs], [weight for weight, _ in verbs])[0]
        try:
            self.log.append(verb())
        except TestbedError as error:
            # With the apiserver or the webhook away a user is refused, and tries again later.
            self.log.append(f"{verb.__name__} failed: {str(error)[:120]}")

    def _name(self) -> str:
        self.made += 1
        return f"g{self.made:03}"

    def _cluster_comes(self) -> str:
        if len(self.clusters) + len(self.jobs) >= _MOST_GANGS:
            return "full"
        name, queue = self._name(), self.chance.choice(list(_QUEUES))
        cluster = ray_cluster(name).label(QUEUE_LABEL, queue).workers(self.chance.randrange(4))
        self.scene.apply(cluster)
        self.clusters[name] = cluster
        return f"{name} comes"

    def _job_comes(self) -> str:
        name, queue = self._name(), self.chance.choice(list(_QUEUES))
        job = pytorch_job(name).workers(self.chance.randrange(1, 4)).policy(queue=queue)
        job = job.runs(self.chance.randrange(1, 8))
        self.scene.apply(job)
        self.jobs[name] = job
        return f"{name} comes"

    def _cluster_goes(self) -> str:
        if not self.clusters:
            return "nobody goes"
        name = self.chance.choice(list(self.clusters))
        self.scene.delete(RAY_CLUSTERS, name, wait=False)
        del self.clusters[name]
        return f"{name} goes"

    def _cluster_changes_size(self) -> str:
        if not self.clusters:
            return "nobody changes"
        name = self.chance.choice(list(self.clusters))
        cluster = self.clusters[name].workers(self.chance.randrange(4))
        self.scene.apply(cluster)
        self.clusters[name] = cluster
        return f"{name} changes its size"

    def _pod_dies(self) -> str:
        running = [pod for pod in self.scene.pods() if phase(pod) == "Running" and alive(pod)]
        if not running:
            return "no pod runs"
        name = self.chance.choice(running)["metadata"]["name"]
        self.scene.delete(PODS, name, wait=False, missing_ok=True)
        return f"pod {name} dies"

    def _controller_dies(self) -> str:
        process = self.chance.choice(self.muster.controllers)
        self.muster.controllers.remove(process)
        process.kill()
        self.muster.start_controller()
        return f"{process.name} is killed"

    def _part_dies(self) -> str:
        name = self.chance.choice(_PARTS)
        self.scene.testbed.stop_part(name, kill=True)
        return f"{name} is killed"

    def _way_is_cut(self) -> str:
        return f"{self.way.cut()} connections of muster are cut"


@pytest.fixture
def world(own_testbed: OwnTestbed) -> Iterator[_World]:
    """Muster with two controllers on a testbed that may break, and two small queues."""
    testbed = own_testbed(nodes=Nodes(count=3))
    muster = install(testbed, values={**VALUES, **QUICK_LEASE}, webhooks=0, controllers=0)
    with relay_to(testbed.server) as way, open_scene(testbed, "chaos", patience=120) as scene:
        for program in muster.programs.values():
            kubeconfig = program.kubeconfig.read_text()
            assert testbed.server in kubeconfig
            program.kubeconfig.write_text(kubeconfig.replace(testbed.server, way.url))
        for start in (muster.start_webhook, muster.start_controller, muster.start_controller):
            start()
        world = _World(scene, muster, way)
        world.wait("all of muster to run", world.whole)
        for name, capability in _QUEUES.items():
            scene.apply(_queue(name, capability))
            scene.await_queue(name)
        yield world


def _queue(name: str, capability: dict[str, str]) -> Manifest:
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": name},
        "spec": {"weight": 1, "reclaimable": False, "capability": capability},
    }


def test_nothing_is_half_started_lost_or_stuck(world: _World) -> None:
    scene = world.scene
    end = time.monotonic() + _SECONDS
    while time.monotonic() < end:
        world.step()
    world.wait("everything to run again", world.whole)
    steps = "\n".join([f"seed {_SEED}, {len(world.log)} steps", *world.log])
    (scene.testbed.logs / "chaos.log").write_text(steps)

    # Whoever waits gets its turn: what runs is taken away until nobody is left.
    world.wait("every gang to have run or to say why not", lambda: _settled(scene))
    while world.clusters:
        # Jobs end by themselves; what they held is free then.
        world.wait("somebody to run", lambda: _running(world))
        for name in _running(world):
            scene.delete(RAY_CLUSTERS, name, wait=False)
            del world.clusters[name]
        world.wait("the next to have run or to say why not", lambda: _settled(scene))
    # Two small queues take hundreds of jobs one after the other: each end is waited for, not all at once.
    while (left := _unended(scene)) > 0:
        world.wait(f"one of {left} jobs to end", partial(_fewer, scene, left))

    scene.recorder.settle()
    _assert_nobody_started_in_part(scene)
    for name, capability in _QUEUES.items():
        scene.assert_never_above(capability, name)


def _running(world: _World) -> list[str]:
    return [name for name in world.clusters if state(world.scene.pod_group(f"ray-{name}-pg")) == "Running"]


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
        group = scene.pod_group(f"ray-{cluster['metadata']['name']}-pg")
        members = [pod for pod in scene.pods(f"ray-{cluster['metadata']['name']}-pg") if alive(pod)]
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
