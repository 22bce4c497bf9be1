"""GangQueues on a real apiserver: the chart's CRD takes what is one, and muster's commands read it."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hack.testbed import Testbed
from hack.testbed.api import Api
from tests.support.cluster.claim_terms import GANG_QUEUES
from tests.support.cluster.desk import Desk
from tests.support.cluster.gang_queues import serving_gang_queues
from tests.support.manifests.applied import queue

pytestmark = pytest.mark.part("commands")

INVALID = 422
ALL = GANG_QUEUES.path()


@pytest.fixture(scope="module")
def served(calls: Api) -> Iterator[Api]:
    """An apiserver that serves the chart's CRD."""
    with serving_gang_queues(calls) as api:
        yield api


@pytest.fixture
def made(served: Api) -> Iterator[Callable[..., Any]]:
    """Make a GangQueue with this specification, and give the apiserver's answer."""
    names: list[str] = []

    def make(name: str, **spec: object) -> Any:  # noqa: ANN401 - an answer
        manifest = {
            "apiVersion": GANG_QUEUES.api_version,
            "kind": GANG_QUEUES.kind,
            "metadata": {"name": name},
            "spec": spec,
        }
        answer = served("POST", f"{ALL}?fieldValidation=Strict", manifest)
        if answer.ok:
            names.append(name)
        return answer

    yield make
    for name in names:
        served.delete(GANG_QUEUES.path(name=name))


def test_every_field_is_kept(made: Callable[..., Any]) -> None:
    spec = {
        "parent": "org",
        "capability": {"cpu": 4, "memory": "8Gi"},
        "guarantee": {"resource": {"cpu": "500m"}},
        "deserved": {"cpu": "2"},
        "weight": 3,
        "closed": True,
        "namespaceSelector": {
            "matchLabels": {"team": "ml"},
            "matchExpressions": [{"key": "env", "operator": "In", "values": ["dev"]}],
        },
        "queueing": "strict",
        "patience": "1h30m",
        "reserves": "bounds",
        "drainAfter": "6h",
        "unplacedAfter": "90s",
        "preemption": "lower-priority",
        "siblings": "age",
        "bound": "nodes",
        "gate": "off",
    }
    answer = made("whole", **spec)
    assert answer.ok, answer.message
    assert answer.body["spec"] == spec


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"patience": "forever"}, "spec.patience"),
        ({"capability": {"cpu": "lots"}}, "spec.capability.cpu"),
        ({"reserves": "room"}, "spec.reserves"),
        ({"drainAfter": "never"}, "spec.drainAfter"),
        ({"closed": "yes"}, "spec.closed"),
        ({"queueing": "fair"}, "spec.queueing"),
        ({"siblings": "fair"}, "spec.siblings"),
        ({"weight": 0}, "spec.weight"),
        ({"gate": "open"}, "spec.gate"),
        ({"namespaceSelector": {"matchExpressions": [{"key": "a", "operator": "Is"}]}}, "operator"),
    ],
)
def test_what_is_no_queue_is_refused(made: Callable[..., Any], spec: dict[str, Any], field: str) -> None:
    answer = made("wrong", **spec)
    assert (answer.status, field in answer.message) == (INVALID, True), answer.message


def test_an_unknown_field_is_told(made: Callable[..., Any]) -> None:
    answer = made("slip", capabilty={"cpu": "4"})
    assert not answer.ok
    assert "capabilty" in answer.message


def test_the_commands_read_them(bare: Testbed, made: Callable[..., Any], tmp_path: Path) -> None:
    made("org", capability={"cpu": "8"})
    made("research", parent="org", capability={"cpu": "4"})
    command = [sys.executable, "-m", "muster.cli", "queues", "-A", f"--kubeconfig={bare.kubeconfig}", "-ojson"]
    values = tmp_path / "values.yaml"
    values.write_text("queues: {source: muster}")
    done = subprocess.run([*command, f"--values={values}"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    shown = {one["name"]: one for one in json.loads(done.stdout)["queues"]}
    assert {"org", "research"} <= set(shown)
    assert shown["research"]["parent"] == "org"


def test_queues_of_volcano_are_copied_and_none_is_changed(bare: Testbed, served: Api, desk: Desk) -> None:
    """Parents first; a second time nothing is left to do."""
    top, below = desk.namespace, f"{desk.namespace}-below"
    desk.create(queue(top, cpu="8"))
    desk.create({**queue(below, cpu="4"), "spec": {"parent": top, "capability": {"cpu": "4"}}})
    command = [sys.executable, "-m", "muster.cli", "migrate-queues", "--to=muster", f"--kubeconfig={bare.kubeconfig}"]
    dry = subprocess.run([*command, "--dry-run"], capture_output=True, text=True, check=False)
    assert (dry.returncode, dry.stderr) == (0, "")
    assert f"gangqueue {top}: would be made" in dry.stdout
    assert not served("GET", GANG_QUEUES.path(name=top)).ok
    done = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines.index(f"gangqueue {top}: made") < lines.index(f"gangqueue {below}: made")
    assert served.get(GANG_QUEUES.path(name=below))["spec"] == {"parent": top, "capability": {"cpu": "4"}}
    again = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    assert f"gangqueue {top}: exists already, and stays as it is" in again.stdout
    for made_now in (line.split()[1].rstrip(":") for line in lines if line.endswith(": made")):
        served.delete(GANG_QUEUES.path(name=made_now))
