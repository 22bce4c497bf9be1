"""Story D: RayClusters and Volcano, with two of KubeRay's own samples in a queue for one (issue 3, 4.1; 5, 6.1).

That a raised capability lets a waiting cluster run (D5) is in test_queueing.py.
"""

import re
from dataclasses import replace
from fractions import Fraction

import pytest

from hack.testbed.operators import first_ray_sample, ray_sample
from muster.model.names import GATE, GROUP_NAME, MANAGED, PRIORITY_CLASS_LABEL, QUEUE_LABEL, SCHEDULER_LABEL
from muster.model.resource import NAMESPACES, POD_GROUPS, PODS, PRIORITY_CLASSES, QUEUES
from tests.support.cluster.propagation import await_accepted, await_said
from tests.support.cluster.recorder import RAY_CLUSTERS, Manifest
from tests.support.cluster.scene import Scene, admitted, gates, has_condition, message, node_of, phase
from tests.support.cluster.timeline import shown, timeline
from tests.support.manifests import applied
from tests.support.manifests.applied import pytorch_job, ray_cluster
from tests.support.pages.seeds import GATED, LEDGER, Point, told

_FIRST, _SECOND = "ray-test-cluster-0-pg", "ray-test-cluster-1-pg"


@pytest.fixture
def sample() -> tuple[Manifest, Manifest]:
    """KubeRay's sample: its Queue and its RayCluster."""
    return ray_sample()


def _named(cluster: Manifest, name: str) -> Manifest:
    return {**cluster, "metadata": {**cluster["metadata"], "name": name}}


def test_d3_a_cluster_that_fits_its_queue_runs_as_a_gang(scene: Scene, sample: tuple[Manifest, Manifest]) -> None:
    """D3: queue and cluster are applied at once; PodGroup, owner, phase and the queue's sums are the guide's."""
    queue, cluster = sample
    name = queue["metadata"]["name"]
    # Quoted or not, by the version of KubeRay.
    assert {name: str(amount) for name, amount in queue["spec"]["capability"].items()} == {"cpu": "4", "memory": "6Gi"}
    scene.adopt_queue(name)

    # Both at once, as users do: a queue that is a moment old refuses nobody.
    scene.apply(queue, cluster)
    scene.await_running(_FIRST, 3)
    scene.wait("Volcano's word", lambda: has_condition(scene.pod_group(_FIRST), "Scheduled"))
    group, owner = scene.pod_group(_FIRST), scene.recorder.get(RAY_CLUSTERS, "test-cluster-0")
    assert owner is not None
    holder = {
        "apiVersion": "ray.io/v1",
        "kind": "RayCluster",
        "name": "test-cluster-0",
        "uid": owner["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }
    assert group["metadata"]["ownerReferences"] == [holder]
    spec, last = group["spec"], group["status"]["conditions"][-1]
    asked = " and ".join(f"{what} {amount}" for what, amount in sorted(spec["minResources"].items()))
    scene.wait("Volcano's count of the queue", lambda: _sums(scene, name) == _WITH_ONE)
    sums = _sums(scene, name)
    scene.assert_started_together(_FIRST, 3)
    scene.delete(RAY_CLUSTERS, "test-cluster-0")
    scene.delete(QUEUES, name)
    told(
        "D3. A cluster that fits its queue",
        "KubeRay's own sample: a queue of 4 cpu and 6Gi, a head of 1 cpu and 2Gi and two workers of 1 cpu and 1Gi.",
        Point("order", "it starts, it runs, it ends", timeline(scene, {_FIRST: "it"})),
        Point(
            "PodGroup, owned by the RayCluster",
            f"{_FIRST}, minMember 3, minResources cpu 3 and memory 4Gi, queue kuberay-test-queue",
            f"{group['metadata']['name']}, minMember {spec['minMember']}, minResources {asked}, queue {spec['queue']}",
        ),
        Point(
            "its phase and last condition",
            "Running, Scheduled: tasks in gang are ready to be scheduled",
            f"{phase(group)}, {last['type']}: {last['reason']}",
        ),
        Point("status of the queue", "Open, allocated cpu 3, memory 4Gi and pods 3", sums),
    )
    scene.assert_never_open_above()


def test_d4_a_second_cluster_waits_whole_and_runs_when_the_first_is_deleted(
    scene: Scene, sample: tuple[Manifest, Manifest]
) -> None:
    """D4: one of its pods would fit and is not placed; cluster and PodGroup say why, and the pods name the PodGroup."""
    queue, cluster = sample
    scene.adopt_queue(queue["metadata"]["name"])
    scene.apply(queue, cluster)
    scene.await_running(_FIRST, 3)
    scene.apply(_named(cluster, "test-cluster-1"))
    why = scene.await_event("test-cluster-1", "WaitingForQuota")
    assert why == (
        'needs cpu 3 and memory 4Gi; queue "kuberay-test-queue" has cpu 1 and memory 2Gi free of cpu 4 and memory 6Gi; '
        "position 1 of 1 waiting"
    )
    scene.await_gated(_SECOND, 3)
    scene.wait("Volcano to look at it", lambda: phase(scene.pod_group(_SECOND)))
    group = scene.await_state(_SECOND, "WaitingForQuota")
    assert message(group) == why
    pods, waits = shown(scene, _SECOND), phase(group)
    described = scene.kubectl("describe", "pods", "--selector=ray.io/cluster=test-cluster-1").stdout
    named = sorted(set(re.findall(rf"{re.escape(GROUP_NAME)}: (\S+)", described)))
    assert why in scene.kubectl("describe", POD_GROUPS.full_name, _SECOND).stdout

    scene.delete(RAY_CLUSTERS, "test-cluster-0")
    scene.await_running(_SECOND, 3)
    scene.assert_started_together(_SECOND, 3)
    # Deleted is the RayCluster before its pods are: until then they use what they use. One of them may still run.
    scene.assert_never_above({"cpu": "4", "memory": "6Gi"})
    scene.wait("the first PodGroup to go", lambda: scene.recorder.get(POD_GROUPS, _FIRST) is None)
    scene.wait("Volcano to count its pods", lambda: _status(scene, _SECOND).startswith("Running, running 3"))
    runs = _status(scene, _SECOND)
    order = timeline(scene, {_FIRST: "cluster 0", _SECOND: "cluster 1"})
    # As the guide ends: the cluster first, and then the queue.
    scene.delete(RAY_CLUSTERS, "test-cluster-1")
    scene.wait("its pods to go", lambda: not scene.pods(_SECOND))
    scene.kubectl("delete", QUEUES.full_name, queue["metadata"]["name"])
    left = scene.kubectl("get", QUEUES.full_name, "--ignore-not-found", queue["metadata"]["name"]).stdout
    told(
        "D4. A second cluster waits as a whole",
        "Cluster 1 is the same as cluster 0. One of its pods would fit, but none is placed until cluster 0 is deleted.",
        Point(
            "order",
            "cluster 0 starts, cluster 0 runs, cluster 1 waits, cluster 0 ends, cluster 1 starts, cluster 1 runs",
            order,
        ),
        Point("pods of cluster 1 while it waits", "3 Pending", pods, GATED),
        Point("its PodGroup", "Pending", waits),
        Point(
            "its PodGroup when it runs",
            "Running, running 3, conditions Unschedulable (NotEnoughResources) and Scheduled",
            runs,
        ),
        Point("the queue, when it is deleted in the end", "gone", left or "gone"),
        Point(
            "why it waits",
            "condition of the PodGroup: 3 tasks in gang unschedulable",
            f"event on RayCluster and PodGroup: {why}",
            LEDGER,
        ),
        Point(
            "`kubectl describe pod` leads there by",
            "events of Volcano on the pod",
            f"its annotation `{GROUP_NAME}`: {' and '.join(named)}",
            "no scheduler looks at a gated pod",
        ),
    )


_WITH_ONE = "Open, allocated cpu 3, memory 4Gi and pods 3"


def _sums(scene: Scene, queue: str) -> str:
    """What Volcano says that a queue holds."""
    status = scene.api.get(QUEUES.path(name=queue))["status"]
    cpu, memory, pods = map(status.get("allocated", {}).get, ("cpu", "memory", "pods"))
    counted = "".join(f", {name} {status[name]}" for name in ("pending", "inqueue", "running") if status.get(name))
    return f"{status['state']}, allocated cpu {cpu}, memory {memory} and pods {pods}{counted}"


def _status(scene: Scene, gang: str) -> str:
    """Phase, running pods and conditions of a PodGroup."""
    status = scene.pod_group(gang)["status"]
    conditions = [
        one["type"] + (f" ({one['reason']})" if one["type"] == "Unschedulable" else "")
        for one in status.get("conditions", [])
    ]
    return f"{status['phase']}, running {status.get('running', 0)}, conditions {' and '.join(conditions)}"


_LIGHT, _HEAVY = "-light", "-heavy"


def test_d5_weights_share_a_full_cluster(scene: Scene) -> None:
    """D5: two queues of weight 1 and 3 compete for 64 cpu; muster lets all of it in, and Volcano shares it 1 to 3."""
    queues = {suffix: scene.queue(suffix) for suffix in (_LIGHT, _HEAVY)}
    scene.patch(QUEUES, queues[_HEAVY], {"spec": {"weight": 3}})
    # Pods of the cluster's own scheduler fill the four nodes until both queues wait.
    full = [{"name": "main", "image": "none", "resources": {"requests": {"cpu": "15"}}}]
    holders = [f"holder-{index}" for index in range(4)]
    scene.apply(*(applied.pod(name, containers=full) for name in holders))
    scene.wait("the cluster to be full", lambda: [phase(pod) for pod in scene.pods()] == ["Running"] * 4)
    # Two pods of 7600m find place on each node. A quarter of the cluster is 2 of them, three quarters are 6.
    jobs = {f"{suffix}-{index}".strip("-"): queue for suffix, queue in queues.items() for index in range(7)}
    scene.apply(*(pytorch_job(name).master(cpu="7600m").policy(queue=queue) for name, queue in jobs.items()))
    # After a minute without a node they are called Unschedulable.
    scene.wait("all to be admitted", lambda: all(admitted(scene.pod_group(name)) for name in jobs))
    # One node at a time: with all of them at once Volcano's overcommit plugin may reserve what is free for jobs of a
    # queue that already has its share, and start nobody.
    for emptied, holder in enumerate(holders, 1):
        scene.delete(PODS, holder)
        # Two jobs take the place of the one pod.
        _await_running(scene, len(holders) + emptied)
    counts = [
        sum(QUEUE_LABEL in labels and labels[QUEUE_LABEL] == queues[suffix] for labels in _running(scene))
        for suffix in queues
    ]
    told(
        "D5. Weights share a full cluster",
        "Two queues without capability, of weight 1 and 3, with more jobs in each than the cluster holds.",
        Point("their parts of the cluster", "1 to 3", f"1 to {Fraction(counts[1], counts[0])}"),
    )
    scene.assert_never_open_above()


def _await_running(scene: Scene, count: int) -> None:
    scene.wait(f"{count} pods to run", lambda: len(_running(scene)) == count)


def _running(scene: Scene) -> list[Manifest]:
    """The labels of all pods that run."""
    return [pod["metadata"].get("labels") or {} for pod in scene.pods() if phase(pod) == "Running"]


def test_d1_the_scheduler_label_alone_means_the_default_queue(scene: Scene) -> None:
    """D1: a RayCluster with only `ray.io/scheduler-name: volcano` runs as a gang in queue `default`."""
    scene.apply(ray_cluster("plain").label(SCHEDULER_LABEL, "volcano").workers(2))
    pods = scene.await_running("ray-plain-pg", 3)
    assert scene.pod_group("ray-plain-pg")["spec"]["queue"] == "default"
    assert "priorityClassName" not in scene.pod_group("ray-plain-pg")["spec"]
    assert {pod["spec"]["schedulerName"] for pod in pods} == {"volcano"}
    scene.assert_started_together("ray-plain-pg", 3)
    told(
        "D1. The scheduler's label alone",
        "A RayCluster of a head and two workers with the label `ray.io/scheduler-name: volcano` alone.",
        Point("order", "it starts, it runs", timeline(scene, {"ray-plain-pg": "it"})),
        Point("queue", "default", scene.pod_group("ray-plain-pg")["spec"]["queue"]),
        Point("minMember", "3", str(scene.pod_group("ray-plain-pg")["spec"]["minMember"])),
    )


def test_d1_the_first_sample_is_a_gang_where_its_namespace_is_opted_in(scene: Scene) -> None:
    """D1: step 4 of the guide; the sample has no label any more, since the operator's flag is for all clusters."""
    scene.label(NAMESPACES, scene.namespace, **{MANAGED: "true"})
    wrong = first_ray_sample()
    wrong["spec"]["headGroupSpec"]["template"]["spec"]["priorityClassName"] = "no-such"
    await_said(scene, wrong, 'PriorityClass "no-such" does not exist')
    scene.apply(first_ray_sample())
    scene.await_running(_FIRST, 1)
    spec = scene.pod_group(_FIRST)["spec"]
    told(
        "D1. The guide's first sample",
        "Step 4 of the guide: a RayCluster of a head alone, which in KubeRay 1.6.2 has no label. The namespace has the "
        'label `muster.dev/managed: "true"`.',
        Point("pods", "1 Running", shown(scene, _FIRST)),
        Point("queue and minMember of its PodGroup", "default, 1", f"{spec['queue']}, {spec['minMember']}"),
    )


def test_d1_queue_and_class_may_come_after_the_cluster_that_names_them(scene: Scene) -> None:
    """D1: "only works after you create" them: the apiserver says so in muster's words, and the same file works then."""
    name = f"late-{scene.namespace}"
    cluster = ray_cluster("early").label(QUEUE_LABEL, name).label(PRIORITY_CLASS_LABEL, name).workers(1)
    said = scene.refused(cluster)
    for missing in (f'queue "{name}" does not exist', f'PriorityClass "{name}" does not exist'):
        assert missing in said
    scene.adopt_queue(name)
    classes = {"apiVersion": PRIORITY_CLASSES.api_version, "kind": PRIORITY_CLASSES.kind, "metadata": {"name": name}}
    scene.apply(applied.queue(name, cpu="2"), {**classes, "value": 1000})
    await_accepted(scene, cluster)
    scene.apply(cluster)
    pods = scene.await_running("ray-early-pg", 2)
    spec = scene.pod_group("ray-early-pg")["spec"]
    names = [spec["queue"], spec["priorityClassName"]]
    assert names == [name, name]
    told(
        "D1. Queue and class are created after the cluster",
        "A RayCluster names a queue and a PriorityClass; both are created then, and the cluster is applied again.",
        Point(
            "before",
            "accepted",
            "refused: both do not exist",
            "muster refuses a name that nothing has; the labels work only afterwards in the guide, too",
        ),
        Point("afterwards", "runs in the queue, with the class", "runs in the queue, with the class"),
        Point("priority of its pods", "1000", " and ".join(sorted({str(pod["spec"]["priority"]) for pod in pods}))),
    )
    scene.delete(PRIORITY_CLASSES, name)


def test_d1_the_priority_label_gives_pods_class_and_value(scene: Scene, urgent: str) -> None:
    """D1: with `ray.io/priority-class-name` the pods carry class and value, the PodGroup the class."""
    cluster = ray_cluster("pressing").label(SCHEDULER_LABEL, "volcano").label(PRIORITY_CLASS_LABEL, urgent).workers(1)
    scene.apply(cluster)
    pods = scene.await_running("ray-pressing-pg", 2)
    assert scene.pod_group("ray-pressing-pg")["spec"]["priorityClassName"] == urgent
    assert [(pod["spec"]["priorityClassName"], pod["spec"]["priority"]) for pod in pods] == [(urgent, 1000)] * 2
    assert all(node_of(pod) and GATE not in gates(pod) for pod in pods)
    of_pod = pods[0]["spec"]["priorityClassName"].replace(urgent, "urgent")
    of_group = scene.pod_group("ray-pressing-pg")["spec"]["priorityClassName"].replace(urgent, "urgent")
    told(
        "D1. With the priority's label",
        "The same with `ray.io/priority-class-name`, here the class urgent of value 1000.",
        Point("class and value of its pods", "urgent, 1000", f"{of_pod}, {pods[0]['spec']['priority']}"),
        Point("class of its PodGroup", "urgent", of_group),
    )


_BEYOND = "pods beyond the minimum wait with muster's gate, and the gang runs"


def test_d2_with_autoscaling_the_gang_is_the_minimum(scene: Scene) -> None:
    """D2: autoscaling on, the gang is the head and minReplicas; off, replicas. What is beyond waits without harm."""
    # A head with its autoscaler, which KubeRay adds with 500m, and one worker fit; a second worker does not.
    queue = scene.queue(cpu="3")
    cluster = ray_cluster("scaled").label(QUEUE_LABEL, queue).workers(2, minReplicas=1)
    scene.apply(replace(cluster, spec={"enableInTreeAutoscaling": True}))
    gang = "ray-scaled-pg"
    scene.wait("word of the second worker", lambda: "no room yet for" in message(scene.pod_group(gang)))
    scene.wait("its minimum to run", lambda: sum(phase(pod) == "Running" for pod in scene.pods(gang)) == 2)
    group, beyond = scene.pod_group(gang), shown(scene, gang)
    scene.delete(RAY_CLUSTERS, "scaled")
    scene.apply(ray_cluster("fixed").label(QUEUE_LABEL, queue).workers(2, minReplicas=1))
    scene.await_running("ray-fixed-pg", 3)
    fixed = scene.pod_group("ray-fixed-pg")["spec"]
    scene.assert_never_above({"cpu": "3"})
    told(
        "D2. Autoscaling",
        "A RayCluster with a worker group of `replicas: 2` and `minReplicas: 1`, with autoscaling in a queue "
        "with room for one worker.",
        Point("minMember with autoscaling", "2", str(group["spec"]["minMember"])),
        Point("minMember without", "3", str(fixed["minMember"])),
        Point("pods with autoscaling", "2 Running, 1 Pending", beyond, _BEYOND),
    )
