"""CPU time of the rules for one workload, a RayCluster of five worker groups.

Decoding it, deciding it (intent, gang, verdict), and patching one of its pods, in microseconds, best of several rounds;
and the ratio to decoding the same text into plain dicts with the standard library in the same run.
"""

import json
import timeit
from collections.abc import Callable, Sequence

from hack.bench.harness import Table, options
from muster.gangs.gang import gang_of
from muster.gangs.intent import Defaults, find_intent
from muster.gangs.pod_patch import inject, membership
from muster.model.modes import GateMode
from muster.model.objects import decode
from muster.model.pods import Pod
from muster.queueing.queue_tree import QueueTree
from muster.queueing.queue_view import QueueView
from muster.resources.amounts import parse_resources
from muster.validation.context import Context
from muster.validation.workload import judge
from muster.workloads.ray import RAY_CLUSTER, RayCluster

_ROUNDS = 7


def _template(cpu: str, variables: int) -> dict[str, object]:
    container = {
        "name": "ray",
        "image": "rayproject/ray:2.52.0",
        "env": [{"name": f"VARIABLE_{number}", "value": "x" * 40} for number in range(variables)],
        "resources": {"requests": {"cpu": cpu, "memory": "2Gi"}, "limits": {"cpu": cpu, "memory": "2Gi"}},
    }
    return {"metadata": {"labels": {"app": "bench"}}, "spec": {"containers": [container]}}


def _cluster(name: str, *, groups: int = 5, variables: int = 20) -> dict[str, object]:
    worker = _template("1500m", variables)
    workers = [
        {"groupName": f"g{index}", "replicas": 3, "minReplicas": 1, "maxReplicas": 9, "template": worker}
        for index in range(groups)
    ]
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayCluster",
        "metadata": {"name": name, "namespace": "default", "uid": "u", "labels": {"volcano.sh/queue-name": "bench"}},
        "spec": {"headGroupSpec": {"template": _template("2", variables)}, "workerGroupSpecs": workers},
    }


def _microseconds(statement: Callable[[], object]) -> float:
    number = 200
    return min(timeit.repeat(statement, number=number, repeat=_ROUNDS)) / number * 1e6


def main(argv: Sequence[str]) -> None:
    """Measure and print."""
    options(argv, __doc__)
    text = json.dumps(_cluster("bench"))
    limit = parse_resources({"cpu": "100", "memory": "100Gi"}, path="")
    view = QueueView("bench", "Open", limit)
    context = Context(queue=QueueTree([view]).place, priorities={"": 0})
    decoded = decode(text, RayCluster)
    workload = RAY_CLUSTER.read(decoded)
    intent = find_intent(workload, Defaults())
    if intent is None:
        raise AssertionError("the cluster of the benchmark asks for nothing")
    gang = gang_of(workload, intent, {})
    role = workload.roles[1]
    pod = Pod(spec=role.template.spec)
    member = membership(gang.roles[1], gang, intent, intent.gang_scheduler)

    plain = _microseconds(lambda: json.loads(text))
    figures = {
        "standard library: decode into dicts": plain,
        "decode into projections": _microseconds(lambda: decode(text, RayCluster)),
        "decide (intent, gang, verdict)": _microseconds(lambda: judge(RAY_CLUSTER, decoded, context)),
        "patch of one pod": _microseconds(lambda: inject(pod, member, gate=GateMode.QUEUE)),
    }
    table = Table(f"a RayCluster of five groups, {len(text):,} bytes", "us", "of the first")
    for name, microseconds in figures.items():
        table.row(name, microseconds, microseconds / plain)
