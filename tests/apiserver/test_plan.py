"""`muster plan --cluster` takes its context from a real apiserver, and says in a line what it cannot have."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from hack.testbed import Testbed
from muster.model.names import PRIORITY_CLASS_LABEL, QUEUE_ANNOTATION, QUEUE_LABEL
from muster.model.resource import NAMESPACES, PRIORITY_CLASSES, QUEUES, RUNTIME_CLASSES
from tests.support.cli.command import messages
from tests.support.cluster.desk import Desk
from tests.support.manifests.applied import Manifest, RayCluster, queue, ray_cluster

pytestmark = pytest.mark.part("commands")


def plan(kubeconfig: Path | str, *words: RayCluster | str, namespace: str = "") -> subprocess.CompletedProcess[str]:
    items = [word.manifest() for word in words if not isinstance(word, str)]
    return plan_of(kubeconfig, *items, namespace=namespace, options=[word for word in words if isinstance(word, str)])


def plan_of(
    kubeconfig: Path | str, *items: Manifest, namespace: str, options: Sequence[str] = ()
) -> subprocess.CompletedProcess[str]:
    for item in items:
        item["metadata"]["namespace"] = namespace
    return subprocess.run(
        [
            sys.executable,
            "-m",
            "muster.cli",
            "plan",
            "--cluster",
            f"--kubeconfig={kubeconfig}",
            "-ojson",
            "-f-",
            *options,
        ],
        input=json.dumps({"apiVersion": "v1", "kind": "List", "items": items}),
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def context(desk: Desk) -> Iterator[str]:
    """What a cluster knows, by the name of the test's own namespace: of everything one."""
    name = desk.namespace
    for manifest in (
        queue(name, cpu="4"),
        {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": 7},
        {
            "apiVersion": "node.k8s.io/v1",
            "kind": "RuntimeClass",
            "metadata": {"name": name},
            "handler": "none",
            "overhead": {"podFixed": {"cpu": "250m"}},
        },
        {
            "apiVersion": "v1",
            "kind": "LimitRange",
            "metadata": {"name": name},
            "spec": {"limits": [{"type": "Container", "defaultRequest": {"ephemeral-storage": "1Gi"}}]},
        },
    ):
        desk.create(manifest)
    desk.annotate(NAMESPACES, name, **{QUEUE_ANNOTATION: name})
    yield name
    for kind in (QUEUES, PRIORITY_CLASSES, RUNTIME_CLASSES):
        desk.delete(kind, name)


def test_queues_classes_namespaces_limits_and_overheads_are_the_clusters(bare: Testbed, context: str) -> None:
    urgent = ray_cluster("urgent").label(PRIORITY_CLASS_LABEL, context).head(cpu="1", runtimeClassName=context)
    done = plan(
        bare.kubeconfig,
        urgent,
        ray_cluster("large").label(QUEUE_LABEL, context).head(cpu="5"),
        ray_cluster("unknown").label(PRIORITY_CLASS_LABEL, f"{context}-gone"),
        ray_cluster("lost").label(QUEUE_LABEL, "gone"),
        namespace=context,
    )
    assert done.stderr == ""
    entries: list[dict[str, Any]] = json.loads(done.stdout)
    assert [entry["verdict"]["reason"] for entry in entries] == [
        "",
        "ExceedsCapability",
        "UnknownPriorityClass",
        "QueueNotFound",
    ]
    assert done.returncode == 1
    first = entries[0]
    assert first["intent"]["from"]["queue"] == f"namespace {context}: metadata.annotations[{QUEUE_ANNOTATION}]"
    assert first["podGroup"]["spec"]["minResources"] == {"cpu": "1250m", "memory": "1Gi", "ephemeral-storage": "1Gi"}
    assert first["verdict"]["message"] == ""


def test_a_field_that_the_installed_definition_does_not_know_is_told(bare: Testbed, context: str) -> None:
    """By what the apiserver publishes, of the operators' real definitions; a plain object's fields are those it has."""
    odd = ray_cluster("odd").label(QUEUE_LABEL, context)
    manifest = odd.manifest()
    manifest["spec"]["workerGroupSpec"] = []
    manifest["spec"]["headGroupSpec"]["template"]["spec"]["nodeSelecter"] = {}
    (entry,) = json.loads(plan_of(bare.kubeconfig, manifest, namespace=context).stdout)
    where = "ray.io/v1 RayCluster has no such field: kubectl apply refuses it, and other clients lose it; did you mean"
    assert [line for line in messages(entry["verdict"]["warnings"]) if "no such field" in line] == [
        (
            "spec.headGroupSpec.template.spec.nodeSelecter: Kubernetes has no such field here: kubectl apply refuses "
            "it, and other clients lose it; did you mean nodeSelector?"
        ),
        f"spec.workerGroupSpec: {where} workerGroupSpecs?",
    ]
    (fine,) = json.loads(
        plan(bare.kubeconfig, ray_cluster("fine").label(QUEUE_LABEL, context), namespace=context).stdout
    )
    assert fine["verdict"]["warnings"] == []


def test_what_the_plan_adds_is_what_the_apiserver_writes_into_the_pod(desk: Desk, bare: Testbed, context: str) -> None:
    """The pod that the operator would make, made: its overhead and defaults are those that were planned."""
    workload = ray_cluster("urgent").label(QUEUE_LABEL, context).head(cpu="1", runtimeClassName=context)
    (entry,) = json.loads(plan(bare.kubeconfig, workload, namespace=context).stdout)
    template = workload.manifest()["spec"]["headGroupSpec"]["template"]
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "head"}, "spec": template["spec"]}
    made = desk.create(pod, dry_run=True)
    assert made["spec"]["overhead"] == {"cpu": "250m"}
    asked = made["spec"]["containers"][0]["resources"]["requests"]
    assert {**asked, "cpu": "1250m"} == entry["roles"][0]["requests"]


def test_what_if_a_gang_comes_says_when_it_would_start(desk: Desk, bare: Testbed, context: str) -> None:
    """In a queue that nothing uses; other queues and gangs of this cluster are not changed by it."""
    desk.patch(QUEUES, context, {"status": {"state": "Open"}}, "status")
    small = ray_cluster("small").label(QUEUE_LABEL, context).head(cpu="1")
    done = plan(bare.kubeconfig, small, "--what-if", namespace=context)
    assert (done.returncode, done.stderr) == (0, "")
    answer = json.loads(done.stdout)
    (change,) = answer["changed"]
    assert (change["gang"], change["before"]) == (f"{context}/ray-small-pg", None)
    assert change["after"] == next(one["start"] for one in answer["after"] if one["gang"] == change["gang"])


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--queue", "gone", "--capability", "cpu=1"), '--queue: there is no queue "gone"'),
        (
            ("--lose-node", "gone"),
            "--lose-node: the nodes do not limit admission in this cluster, so that no start would change",
        ),
    ],
)
def test_what_if_something_were_gone_that_is_not_there_is_refused(
    bare: Testbed, context: str, options: tuple[str, ...], said: str
) -> None:
    done = plan(bare.kubeconfig, "--what-if", *options, namespace=context)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"muster plan: {said}\n")


def test_a_missing_right_is_named_in_one_line(desk: Desk, bare: Testbed) -> None:
    """A ServiceAccount that may nothing."""
    kubeconfig = bare.service_account_kubeconfig(desk.namespace, "default")
    done = plan(kubeconfig, ray_cluster("c"), namespace=desk.namespace)
    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch(
        r"muster plan: cannot list queues\.scheduling\.volcano\.sh of the cluster: 403 Forbidden: [^\n]*\n", done.stderr
    ), done.stderr


def test_a_kubeconfig_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    done = plan(tmp_path / "none", ray_cluster("c"))
    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch(r"muster plan: cluster: [^\n]*none[^\n]*\n", done.stderr), done.stderr
