"""What others build on: the names that users, administrators and their programs may rely on, as the code has them."""

import argparse
import inspect
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

import muster as api
from muster.cli.commands import parser
from muster.cli.doctor.command import report as diagnosed
from muster.cli.doctor.diagnosis import Check, Diagnosis, Level
from muster.cli.explain.command import explain
from muster.cli.explain.subjects import Event, Subject
from muster.cli.plan.audit import Audit
from muster.cli.queues.entries import queue_entries
from muster.cli.report.figures import Report, first_day
from muster.cli.snapshot import ClusterSnapshot
from muster.cli.when import ExpectedStarts
from muster.gangs.accounts import Accounts, Scope
from muster.gangs.intent import Defaults
from muster.model import names
from muster.model.findings import Reason
from muster.model.gang_states import GangState
from muster.queueing.entries import Claim
from muster.queueing.ledger import EndKind, GangKey, Run
from muster.queueing.sources import GangQueue
from muster.resources.amounts import parse_resources
from muster.workloads import kind_of
from tests.support.cli.in_process import muster
from tests.support.controller.stores import filled
from tests.support.manifests.observed import made, pod_group, queue, ray_cluster, ray_owner, ray_pod, workers
from tests.support.pages.chart_values import values
from tests.support.pages.metrics import exported

_ROOT = Path(__file__).parents[3]
_CHART = _ROOT / "charts" / "muster"
_NOW = 1_800_000_000.0
# Fields with names that are others' to choose: resources, roles, keys, fields of Kubernetes.
_OPEN = frozenset(
    {"requests", "limit", "used", "needs", "holds", "from", "value", "podGroup", "spare", "free", "claim", "held"}
    | {"idle", "waited"}
)

# Fields of Volcano's Queue that a GangQueue is decoded with, and its CRD does not have.
_VOLCANOS = frozenset({"reclaimable"})


def surface() -> dict[str, Any]:
    """Every list is sorted; what stands under a name of a JSON output are the paths of its fields."""
    return {
        "names": sorted(
            {
                text
                for name in vars(names)
                if name.isupper() and isinstance(text := getattr(names, name), str) and "/" in text
            }
        ),
        "states": sorted(map(str, GangState)),
        "reasons": sorted(map(str, Reason)),
        "values": sorted(value.path for value in values((_CHART / "values.yaml").read_text()) if not value.below),
        "gangQueue": sorted({field.encode_name for field in msgspec.structs.fields(GangQueue().spec)} - _VOLCANOS),
        "metrics": {one.name: one.type for metrics in exported().values() for one in metrics},
        "commands": _commands(),
        "json": {name: sorted(set(_paths(said))) for name, said in _outputs().items()},
        "python": _python(),
    }


def gone(earlier: Any, now: Any, path: str = "") -> list[str]:  # noqa: ANN401 - YAML
    """What an earlier surface had and this one has not, or has as something else."""
    if isinstance(earlier, dict) and isinstance(now, dict):
        return [
            line
            for name, said in earlier.items()
            for line in (gone(said, now[name], f"{path}{name}: ") if name in now else [f"{path}{name}"])
        ]
    if isinstance(earlier, list) and isinstance(now, list):
        return [f"{path}{one}" for one in earlier if one not in now]
    return [] if earlier == now else [f"{path}{earlier}"]


def _commands() -> dict[str, list[str]]:
    """The options of each command, and its arguments in capitals."""
    (commands,) = (one for one in parser()._actions if isinstance(one, argparse._SubParsersAction))
    return {
        name: sorted(
            word for action in command._actions for word in (action.option_strings or [str(action.dest).upper()])
        )
        for name, command in commands.choices.items()
    }


def _python() -> dict[str, list[str]]:
    """The parameters of each function of the Python API, and the public names of each of its classes."""
    found = {name: getattr(api, name) for name in vars(api)["__all__"]}
    return {
        name: sorted(
            {word for word in (*inspect.get_annotations(one), *vars(one)) if not word.startswith("_")}
            if isinstance(one, type)
            else inspect.signature(one).parameters
        )
        for name, one in sorted(found.items())
    }


def _paths(said: Any, path: str = "") -> Iterator[str]:  # noqa: ANN401 - JSON
    """The fields: a list's are those of its items."""
    if isinstance(said, list):
        for one in said:
            yield from _paths(one, f"{path}[]")
    elif isinstance(said, dict):
        for name, below in said.items():
            yield f"{path}.{name}".lstrip(".")
            if name not in _OPEN:
                yield from _paths(below, f"{path}.{name}")


def _outputs() -> dict[str, Any]:
    """What `-o json` prints of each command, of a gang that has a reservation."""
    workload = ray_cluster()
    passed = {names.PASSED_SINCE: "2026-11-24T10:00:00Z", names.PASSED_IN: "q"}
    cluster = filled(
        workloads=[workload],
        pods=[ray_pod(f"demo-{number}", role) for number, role in enumerate(("headgroup", "workers", "workers"))],
        groups=[pod_group("ray-demo-pg", owner=ray_owner("demo"), annotations=passed)],
        queues=[queue(cpu="4")],
    )
    visible = ClusterSnapshot(cluster)
    snapshot = visible.ledger_snapshot(_NOW)
    end = Run(3600, EndKind.ENFORCED).from_(_NOW)
    snapshot.ledger.hold(Claim(GangKey("team", "runs"), "q", parse_resources({"cpu": 2}, path=""), end=end))
    kind = kind_of(workload["apiVersion"], workload["kind"])
    assert kind is not None
    starts = ExpectedStarts(snapshot.ledger, _NOW, seconds=1.0, whole=True)
    said = [Event(event_time="2026-11-24T10:00:00Z", type="Normal", reason="Admitted", note="note")]
    subject = Subject(kind, made(kind.decoded, workload), [], said)
    return {
        "explain": [explain(subject, visible, snapshot, starts, helps=True)],
        "queues": {
            "queues": queue_entries(snapshot, whole=True),
            "startError": {"gangs": 10, "halfWithin": 2.0},
            "unknown": [],
        },
        "plan": json.loads(muster("plan", "-o", "json", "-f", str(_ROOT / "docs/examples/raycluster.yaml")).stdout),
        "audit": _audited(),
        "report": _reported(),
        "doctor": diagnosed("1.36.3", None, [(next(iter(Check)), Diagnosis(Level.OK, "fine"))]),
    }


def _reported() -> dict[str, Any]:
    accounts = Accounts()
    accounts.until = _NOW
    accounts.add_end(Scope("", "q"), "succeeded", _NOW)
    return Report.of(accounts, "queue", first_day("7d", _NOW)).data


def _audited() -> dict[str, Any]:
    """Of a workload that nobody could read."""
    audit = Audit(Defaults())
    workload = ray_cluster(workers(replicas=-1))
    kind = kind_of(workload["apiVersion"], workload["kind"])
    assert kind is not None
    audit.read(kind, json.dumps(workload).encode())
    return audit.report()
