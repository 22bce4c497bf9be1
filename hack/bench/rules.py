"""What the rules cost for one workload, and `muster plan` for a thousand.

Prints, for a RayCluster of five worker groups: decoding it, deciding it (intent, gang, verdict), and patching one of
its pods, in microseconds, best of several rounds, and beside each the ratio to decoding the same text into plain dicts
with the standard library in the same run. Then the seconds that `muster plan` takes to start, and for a thousand
manifests, as YAML in blocks and as JSON: of the size of the operators' samples (the median of KubeRay's and Kubeflow's
is 2.2 kB), and of that above. Beside each stands its ratio to what PyYAML alone takes to load the same file.
"""

import json
import subprocess
import sys
import tempfile
import timeit
from collections.abc import Callable, Sequence
from pathlib import Path

import yaml

from hack.bench.harness import Table, options
from muster.gangs.gang import gang_of
from muster.gangs.intent import Defaults, find_intent
from muster.gangs.pod_patch import inject, membership
from muster.model.modes import GateMode
from muster.model.objects import Pod, decode
from muster.queueing.queue_tree import QueueTree
from muster.queueing.queue_view import QueueView
from muster.resources.amounts import parse_resources
from muster.validation.workload import Context, judge
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


def _seconds(argv: list[str]) -> float:
    def run() -> None:
        subprocess.run(argv, check=True, stdout=subprocess.DEVNULL)

    return min(timeit.repeat(run, number=1, repeat=3))


def main(argv: Sequence[str]) -> None:
    """Measure and print."""
    given = options(argv, __doc__, manifests=1000)
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
    table = Table("muster plan", "kB each", "s", "of PyYAML")
    with tempfile.TemporaryDirectory() as folder:
        one = Path(folder, "one.yaml")
        one.write_text(text)
        table.row("one manifest", len(text) / 1000, _seconds(_plan(one)), "")
        for size, shape in {"typical": {"groups": 2, "variables": 5}, "large": {}}.items():
            manifests = [_cluster(f"c{number}", **shape) for number in range(given.manifests)]
            for form, texts in {
                "YAML": [yaml.dump(manifest, Dumper=_Dumper) for manifest in manifests],
                "JSON": [json.dumps(manifest) for manifest in manifests],
            }.items():
                path = Path(folder, f"{size}-{form}.yaml")
                path.write_text("\n---\n".join(texts))
                loading = f"import yaml; list(yaml.load_all(open({str(path)!r}), yaml.CSafeLoader))"
                seconds, loaded = _seconds(_plan(path)), _seconds([sys.executable, "-c", loading])
                kilobytes = path.stat().st_size / len(texts) / 1000
                table.row(f"{len(texts):,} {size} manifests in {form}", kilobytes, seconds, seconds / loaded)


def _plan(path: Path) -> list[str]:
    return [sys.executable, "-m", "muster.cli", "plan", "-o", "json", "-f", str(path)]


class _Dumper(yaml.CSafeDumper):
    def ignore_aliases(self, data: object) -> bool:
        del data
        return True
