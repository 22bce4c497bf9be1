"""The variants of each operator's samples: what is changed, by a name that docs/conformance.md shows."""

from tests.conformance.case import Manifest
from tests.conformance.edits import (
    Edit,
    in_cluster,
    in_group,
    in_role,
    in_spec,
    in_turn,
    labels,
    meta,
    pods,
    policy,
    second_group,
    suspend,
    without,
    worker_pods,
)

_QUEUE_LABEL, _PRIORITY_LABEL = "volcano.sh/queue-name", "ray.io/priority-class-name"
_QUEUE_ANNOTATION = "scheduling.volcano.sh/queue-name"
_INIT: Manifest = {
    "name": "load",
    "image": "none",
    "resources": {"requests": {"cpu": "9", "memory": "9Gi", "ephemeral-storage": "1Gi"}},
}
_SIDECAR: Manifest = {
    "name": "proxy",
    "image": "none",
    "restartPolicy": "Always",
    "resources": {"requests": {"cpu": "250m"}},
}
_LIMITS_ONLY = {"limits": {"cpu": "2", "memory": "3Gi"}}
_GPU_IN_LIMITS = {"requests": {"cpu": "1"}, "limits": {"cpu": "4", "nvidia.com/gpu": "1"}}

_SHAPES: dict[str, Edit] = {
    "limits only": pods(resources_=_LIMITS_ONLY),
    "GPU in limits next to requests": pods(resources_=_GPU_IN_LIMITS),
    "nothing asked for": pods(resources_={}),
    "a large init container": pods(initContainers=[_INIT]),
    "a sidecar among the init containers": pods(initContainers=[_SIDECAR]),
    "pod overhead": pods(overhead={"cpu": "100m", "memory": "64Mi"}),
    "pod-level requests": pods(resources={"requests": {"cpu": "12", "memory": "12Gi"}}),
    "a priority class in every template": pods(priorityClassName="urgent"),
    "another scheduler in the templates": pods(schedulerName="my-scheduler"),
}
_AUTOSCALING = in_cluster(enableInTreeAutoscaling=True)
_RAY_CLUSTER: dict[str, Edit] = {
    "replicas between bounds": in_group(replicas=3, minReplicas=1, maxReplicas=5),
    "replicas above maxReplicas": in_group(replicas=10, minReplicas=1, maxReplicas=3),
    "replicas below minReplicas": in_group(replicas=1, minReplicas=3, maxReplicas=5),
    "replicas and minReplicas left out": in_group(replicas=None, minReplicas=None),
    "replicas left out": in_group(replicas=None, minReplicas=2),
    "minReplicas above maxReplicas": in_group(replicas=2, minReplicas=4, maxReplicas=3),
    "no replica": in_group(replicas=0, minReplicas=0),
    "numOfHosts": in_group(replicas=2, numOfHosts=4),
    "numOfHosts above bounds": in_group(replicas=9, maxReplicas=2, numOfHosts=4),
    "numOfHosts of none": in_group(replicas=2, numOfHosts=0),
    "two groups": second_group,
    "a suspended group": in_turn(second_group, in_group(suspend=True)),
    "suspended": in_spec(suspend=True),
    "no worker group": in_cluster(workerGroupSpecs=None),
    "autoscaling": in_turn(in_group(replicas=3, minReplicas=1), _AUTOSCALING),
    "autoscaling from none": in_turn(in_group(replicas=3, minReplicas=0), _AUTOSCALING),
    "autoscaling, two groups": in_turn(second_group, _AUTOSCALING),
    "autoscaling, own resources": in_turn(
        _AUTOSCALING,
        in_cluster(autoscalerOptions={"resources": {"requests": {"cpu": "2"}, "limits": {"memory": "1Gi"}}}),
    ),
    "queue": labels({_QUEUE_LABEL: "team-a"}),
    "queue in Volcano's annotation": meta("annotations", **{_QUEUE_ANNOTATION: "team-a"}),
    "priority": labels({_PRIORITY_LABEL: "urgent"}),
    "network topology": labels(
        {"volcano.sh/network-topology-mode": "hard", "volcano.sh/network-topology-highest-tier-allowed": "2"}
    ),
    "for another scheduler": labels({"ray.io/scheduler-name": "yunikorn"}),
    "a large init container of the workers, two of them": in_turn(
        in_group(replicas=2), worker_pods(initContainers=[_INIT])
    ),
    **_SHAPES,
}
_RAY_JOB: dict[str, Edit] = {
    "queue and priority": labels({_QUEUE_LABEL: "team-a", _PRIORITY_LABEL: "urgent"}),
    "HTTPMode": in_spec(submissionMode="HTTPMode"),
    "suspended": in_spec(suspend=True, shutdownAfterJobFinishes=True),
    "own submitter": in_spec(
        submitterPodTemplate={
            "spec": {
                "restartPolicy": "Never",
                "containers": [{"name": "submit", "image": "none", "resources": _LIMITS_ONLY}],
            }
        }
    ),
    "autoscaling": in_turn(in_group(replicas=3, minReplicas=1), _AUTOSCALING),
    "replicas above maxReplicas": in_group(replicas=10, minReplicas=1, maxReplicas=3),
    "retried": in_spec(backoffLimit=3),
}
_RAY_SERVICE: dict[str, Edit] = {
    "queue and priority": labels({_QUEUE_LABEL: "team-a", _PRIORITY_LABEL: "urgent"}),
    "autoscaling": in_turn(in_group(replicas=3, minReplicas=1), _AUTOSCALING),
    "its cluster suspended": in_cluster(suspend=True),
}
_ANY_JOB: dict[str, Edit] = {
    "suspended": suspend,
    "queue": policy(queue="team-a"),
    "queue by label": labels({_QUEUE_LABEL: "team-a"}),
    "queue by label and by policy": in_turn(labels({_QUEUE_LABEL: "team-a"}), policy(queue="team-b")),
    "queue in Volcano's annotation": meta("annotations", **{_QUEUE_ANNOTATION: "team-a"}),
    "priority": policy(priorityClass="urgent"),
    "priority by label": labels({_PRIORITY_LABEL: "urgent"}),
    "minResources": policy(minResources={"cpu": "3", "memory": "5Gi"}),
    "minResources and minAvailable": policy(minResources={"cpu": "3"}, minAvailable=1),
    "scheduleTimeoutSeconds": policy(scheduleTimeoutSeconds=30),
    **_SHAPES,
}
_BIG, _SMALL = (
    {"requests": {"cpu": "4", "memory": "8Gi"}},
    {"requests": {"cpu": "1", "memory": "1Gi"}},
)


def _two_shapes(leader: str) -> Edit:
    return in_turn(pods(leader, resources_=_BIG), pods("Worker", resources_=_SMALL))


def _parts(leader: str) -> dict[str, Edit]:
    """Variants in which a part of the pods is enough, so that it matters which of them count."""
    shapes = in_turn(_two_shapes(leader), in_role("Worker", replicas=4))
    return {
        "minAvailable of equal pods": in_turn(
            pods(resources_=_SMALL), in_role("Worker", replicas=4), policy(minAvailable=3)
        ),
        "minAvailable of unequal pods": in_turn(shapes, policy(minAvailable=3)),
        "minAvailable of all": in_turn(shapes, policy(minAvailable=5)),
        "minAvailable of one": in_turn(shapes, policy(minAvailable=1)),
        "minAvailable above all": in_turn(shapes, policy(minAvailable=9)),
        "minAvailable 0": in_turn(shapes, policy(minAvailable=0)),
        "minAvailable, workers first": in_turn(
            shapes, pods("Worker", priorityClassName="urgent"), policy(minAvailable=3)
        ),
        f"minAvailable, {leader.lower()} first": in_turn(
            shapes, pods(leader, priorityClassName="urgent"), policy(minAvailable=3)
        ),
        "minAvailable, both urgent, differently": in_turn(
            shapes,
            pods("Worker", priorityClassName="modest"),
            pods(leader, priorityClassName="urgent"),
            policy(minAvailable=2),
        ),
    }


# Not together with others: they take away what those change, or are refused in company.
ALONE = frozenset(
    {
        "suspended",
        "a suspended group",
        "autoscaling, two groups",
        "no worker group",
        "minReplicas above maxReplicas",
        "no worker",
        "no replica of the workers",
        "replicas of the workers left out",
        "launcher works alone",
        "WaitForWorkersReady, no worker",
        "numOfHosts of none",
    }
)
_WAITING = in_spec(launcherCreationPolicy="WaitForWorkersReady")
VARIANTS: dict[str, dict[str, dict[str, Edit]]] = {
    "kuberay": {
        "ray-cluster.sample.yaml": _RAY_CLUSTER,
        "ray-cluster.complete.yaml": {
            name: _RAY_CLUSTER[name]
            for name in (
                "replicas above maxReplicas",
                "autoscaling, two groups",
                "a suspended group",
                "a large init container of the workers, two of them",
            )
        },
        "ray-job.sample.yaml": _RAY_JOB,
        "ray-job.sidecar-mode.yaml": {"autoscaling": _RAY_JOB["autoscaling"]},
        "ray-service.sample.yaml": _RAY_SERVICE,
    },
    "training-mpi": {
        "pytorch/simple.yaml": {
            **_ANY_JOB,
            **_parts("Master"),
            "replicas left out": in_role("Worker", replicas=None),
            "no worker": in_role("Worker", replicas=0),
            "many workers": in_turn(pods(resources_=_SMALL), in_role("Worker", replicas=40)),
        },
        "pytorch/elastic/echo/echo.yaml": {
            "more than the least": in_turn(pods(resources_=_SMALL), in_role("Worker", replicas=2)),
            "minAvailable": in_turn(pods(resources_=_SMALL), policy(minAvailable=1)),
        },
        "tensorflow/dist-mnist/tf_job_mnist.yaml": {
            "three shapes": in_turn(_two_shapes("Chief"), pods("PS", resources_=_LIMITS_ONLY)),
            "three shapes, minAvailable": in_turn(
                _two_shapes("Chief"), pods("PS", resources_=_LIMITS_ONLY), policy(minAvailable=2)
            ),
            "three urgencies, minAvailable": in_turn(
                _two_shapes("Chief"),
                pods("PS", resources_=_LIMITS_ONLY, priorityClassName="urgent"),
                pods("Worker", priorityClassName="modest"),
                policy(minAvailable=2),
            ),
        },
        "xgboost/xgboostjob.yaml": {"a large init container": _SHAPES["a large init container"]},
        "paddlepaddle/simple-gpu.yaml": {
            "GPU in limits next to requests": _SHAPES["GPU in limits next to requests"],
        },
        "jax/cpu-demo/demo.yaml": {"limits only": _SHAPES["limits only"]},
        "mpi/tensorflow-mnist.yaml": {
            "replicas of the workers left out": in_role("Worker", replicas=None),
            "launcher asks for little": pods("Launcher", resources_={"requests": {"cpu": "10m", "memory": "10Mi"}}),
            "minAvailable of unequal pods": in_turn(_two_shapes("Launcher"), policy(minAvailable=2)),
            "suspended": suspend,
        },
    },
    "mpi": {
        "v2beta1/pi/pi.yaml": {
            **_ANY_JOB,
            **_parts("Launcher"),
            "replicas of the launcher left out": in_role("Launcher", replicas=None),
            "replicas of the workers left out": in_role("Worker", replicas=None),
            "no replica of the workers": in_role("Worker", replicas=0),
            "no worker": without("Worker"),
            "launcher works": in_spec(runLauncherAsWorker=True),
            "launcher works alone": in_turn(in_spec(runLauncherAsWorker=True), without("Worker")),
            "WaitForWorkersReady": in_turn(_two_shapes("Launcher"), _WAITING),
            "WaitForWorkersReady, minAvailable": in_turn(
                _two_shapes("Launcher"), in_role("Worker", replicas=4), _WAITING, policy(minAvailable=3)
            ),
            "WaitForWorkersReady, minResources": in_turn(_WAITING, policy(minResources={"cpu": "3"})),
            "WaitForWorkersReady, no worker": in_turn(_WAITING, without("Worker")),
            "priority class of the workers": pods("Worker", priorityClassName="modest"),
            "priority classes that differ": in_turn(
                pods("Worker", priorityClassName="urgent"), pods("Launcher", priorityClassName="modest")
            ),
        },
    },
}
