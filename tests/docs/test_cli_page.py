"""docs/cli.md shows large clusters, and faults: what the commands print of them, without a cluster that has them."""

import io
import json
from typing import Any

from muster.cli.doctor.command import diagnose, print_report, report
from muster.cli.plan.audit import Audit, print_audit
from muster.cli.plan.manifests import Document
from muster.cli.queues.gangs import GangEntry, gang_lines
from muster.cli.queues.table import ASCII, queue_lines
from muster.gangs.intent import Defaults
from muster.model.names import MANAGED_BY
from muster.model.objects import Lease
from muster.model.resource import QUEUES
from muster.queueing.ledger import GangKey
from muster.queueing.queue_tree import QueueTree
from muster.queueing.queue_view import QueueView
from muster.queueing.shares import Shares, percent
from muster.queueing.usage import amounts_of
from muster.schedulers import PRODUCTS
from muster.workloads import kind_of
from tests.support.cli.doctor_snapshots import deployment, healthy
from tests.support.manifests.observed import JSON, amounts, made, pod_group, pytorch_job, queue, ray_cluster
from tests.support.pages.blocks import block

_GPU = "nvidia.com/gpu"
_QUEUES = ("default", "inference", "org", "sandbox", "training", "vision")


def _entry(name: str, depth: int, limit: dict[str, str], used: dict[str, str], **gangs: int) -> JSON:
    entry = {"name": name, "depth": depth, "state": "Open", "limit": limit, "used": used}
    return {**entry, "gangs": 0, "waiting": 0, **gangs}


def _with_shares(tree: list[JSON]) -> list[JSON]:
    """The entries, each with the part of its share that the queue has."""
    above: list[str] = []
    views = []
    for entry in tree:
        above[entry["depth"] :] = [entry["name"]]
        limit = amounts(**entry["limit"])
        views.append(QueueView(entry["name"], "Open", limit, parent="".join(above[-2:-1])))
    shares = Shares(QueueTree(views))
    used = {entry["name"]: dict(amounts_of(amounts(**entry["used"]))) for entry in tree}
    part = {name: percent(shares.of(name, held)) for name, held in used.items() if shares.competes(name)}
    return [{**entry, "share": part.get(entry["name"])} for entry in tree]


def test_the_tree_of_queues_is_drawn_so() -> None:
    tree = [
        _entry("root", 0, {"cpu": "96"}, {"cpu": "52", _GPU: "8"}),
        _entry("org", 1, {"cpu": "64", _GPU: "8"}, {"cpu": "52", _GPU: "8"}),
        _entry("inference", 2, {"cpu": "16"}, {"cpu": "12"}, gangs=3),
        _entry("training", 2, {"cpu": "48", _GPU: "8"}, {"cpu": "40", _GPU: "8"}, gangs=2, waiting=4),
        _entry("sandbox", 1, {"cpu": "8"}, {}),
    ]
    _, *shown = block("docs/cli.md", "$ muster queues").splitlines()
    assert queue_lines(_with_shares(tree), ASCII, 88) == shown


def test_the_list_of_gangs_reads_so() -> None:
    now, waits, queue_name = 1_800_000_000.0, "WaitingForQuota", "training"

    def gang(workload: str, state: str, priority: int, age: float, **more: Any) -> GangEntry:  # noqa: ANN401
        return GangEntry(GangKey("team", workload), workload, queue_name, state, "", priority, now - age, **more)

    entries = [
        gang("raycluster/llm", waits, 100, 10_800, position=1, needs=amounts(cpu="32", memory="128Gi")),
        gang("rayjob/nightly", waits, 0, 2_400, position=2, needs=amounts(cpu="3", memory="3Gi")),
        gang("raycluster/half", "Assembling", 0, 120),
    ]
    _, *shown = block("docs/cli.md", "$ muster gangs --waiting").splitlines()
    assert gang_lines(entries, now) == shown


def test_an_audit_reads_so() -> None:
    audit = Audit(Defaults())
    queues = [queue(name) for name in _QUEUES]
    for one in queues:
        audit.known.learn(Document("", {"apiVersion": QUEUES.api_version, "kind": "Queue", **one}))
    runs = {**_in("team-a", pod_group("ray-llm-pg", queue="vision")), "status": {"phase": "Running"}}
    for group in (runs, *(_others(name) for name in ("bert", "gpt", "t5"))):
        audit.read_pod_group(PRODUCTS["volcano"](), json.dumps(group).encode())
    for one in queues:
        audit.read_queue(json.dumps(one).encode())
    lost = _in("team-a", ray_cluster(name="llm", labels={"volcano.sh/queue-name": "old"}))
    timed = _in("team-b", pytorch_job(policy={"queue": "vision"}, activeDeadlineSeconds=3600))
    others = [pytorch_job(name=f"job-{number}", policy={"queue": "vision"}) for number in range(40)]
    for manifest in (lost, timed, *others):
        kind = kind_of(manifest["apiVersion"], manifest["kind"])
        assert kind is not None
        audit.read(kind, json.dumps(manifest).encode())
    out = io.StringIO()
    print_audit(audit, "table", out)
    _, shown = block("docs/cli.md", "$ muster audit").split("\n", 1)
    assert out.getvalue() == shown


def _others(name: str) -> JSON:
    """A PodGroup that muster has not made."""
    group = pod_group(name, queue="vision")
    del group["metadata"]["labels"][MANAGED_BY]
    return group


def _in(namespace: str, manifest: dict[str, Any]) -> dict[str, Any]:
    manifest["metadata"]["namespace"] = namespace
    return manifest


def test_the_findings_of_the_doctor_read_so() -> None:
    """Two of them, and what is in order between them."""
    flagged = deployment("kuberay-operator", "kuberay/operator:v1", "--batch-scheduler=volcano", namespace="ray-system")
    others = healthy().deployments
    assert isinstance(others, tuple)
    sight = healthy(lease=made(Lease, {}), deployments=(*others, flagged))
    out = io.StringIO()
    print_report(report("v1.36.3", None, diagnose(sight)), "table", out)
    _, *shown = block("docs/cli.md", "$ muster doctor\n...").split("...\n")
    assert len(shown) == 2
    assert [text for text in shown if text not in out.getvalue()] == [], out.getvalue()
