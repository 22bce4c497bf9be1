"""Gangs for which the apiserver takes no write, by a policy of others: other gangs start, and their users hear why."""

from muster.model.names import GATE, QUEUE_LABEL
from tests.support.cases import cases
from tests.support.cluster.recorder import RAY_CLUSTERS
from tests.support.cluster.scene import Scene, admitted, gates, message, node_of, state
from tests.support.faults.refused_writes import BURST, GROUP, MARK, WORKERS_OF_BURST, refuse
from tests.support.manifests.applied import ray_cluster

_GANG = "ray-elder-pg"


@cases(
    "point, name, words",
    ("PodGroup", GROUP, _GANG, f'PodGroup "{_GANG}" was refused: '),
    ("mark", MARK, _GANG, "it may start, but its admission cannot be written on its PodGroup: "),
    ("gates of one role", WORKERS_OF_BURST, "", "the gate of pod elder-worker-"),
)
def test_what_is_refused_keeps_its_gang_whole_and_no_other_from_starting(
    scene: Scene, point: tuple[str, str], name: str, words: str
) -> None:
    """And its gang starts by itself when the policy is gone."""
    queue = scene.queue(cpu="3")
    with refuse(scene, point, name):
        scene.apply(ray_cluster("elder").label(QUEUE_LABEL, queue).workers(2))
        said = scene.await_event("elder", "Invalid")
        assert said.startswith(words)
        assert "refused by a test" in said
        assert said.endswith("; others start before it")
        # A head alone, which no policy here is about.
        scene.apply(ray_cluster("younger").label(QUEUE_LABEL, queue))
        scene.await_running("ray-younger-pg", 1)
        assert [gates(pod) for pod in scene.pods(_GANG)] == [[GATE]] * 3
        assert not admitted(scene.pod_group(_GANG))
        if name != _GANG:
            assert (state(scene.pod_group(_GANG)), message(scene.pod_group(_GANG))) == ("Invalid", said)
    scene.delete(RAY_CLUSTERS, "younger")
    scene.await_running(_GANG, 3)
    scene.assert_started_together(_GANG, 3)
    scene.assert_never_above({"cpu": "3"})


def test_a_refused_replacement_is_said_and_the_rest_of_its_gang_runs_on(scene: Scene) -> None:
    queue = scene.queue(cpu="3")
    scene.apply(ray_cluster("elder").label(QUEUE_LABEL, queue).workers(2))
    ran = scene.await_running(_GANG, 3)
    with refuse(scene, BURST):
        lost = next(pod["metadata"]["name"] for pod in ran if "worker" in pod["metadata"]["name"])
        scene.kubectl("delete", "pod", lost)
        said = scene.await_event("elder", "Invalid")
        assert said.startswith("the gate of pod elder-worker-")
        assert said.endswith("refused by a test; what is open keeps its room, and others may take the rest")
        scene.await_state(_GANG, "Invalid")
        assert sum(bool(node_of(pod)) for pod in scene.pods(_GANG)) == 2
    scene.await_running(_GANG, 3)
