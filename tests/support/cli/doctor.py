"""`muster doctor` as tests run it, and ways to break what it looks at."""

import copy
import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from hack.testbed import Testbed, wait_for
from hack.testbed.api import Api
from hack.testbed.muster import MusterInstall
from muster.cli import main
from muster.model.resource import LEASES
from tests.support.cluster.desk import PATIENCE
from tests.support.manifests.applied import queue

_VOLCANO = ("volcano-scheduler", "volcano-controllers")
_IMAGE = re.compile(r"(/vc-[a-z-]+:)v[0-9.]+")
SOUND_VOLCANO = "v1.14.2"
_OURS = ("muster-system/muster-webhook", "muster-system/muster-controller")
LEASE = LEASES.path("muster-system", "muster-controller")


@dataclass(frozen=True)
class Doctor:
    """The command, run in this process."""

    testbed: Testbed
    capsys: pytest.CaptureFixture[str]

    def run(self, *arguments: str, kubeconfig: Path | None = None) -> tuple[int, str, str]:
        """Exit code, output and errors."""
        with pytest.raises(SystemExit) as ended:
            main(["doctor", f"--kubeconfig={kubeconfig or self.testbed.kubeconfig}", *arguments])
        said = self.capsys.readouterr()
        return int(ended.value.code or 0), said.out, said.err

    def found(self, *arguments: str, kubeconfig: Path | None = None) -> dict[str, list[str]]:
        """What is not in order: `level check` with its messages. The exit code is what it must be for that."""
        code, out, err = self.run("-ojson", *arguments, kubeconfig=kubeconfig)
        report = json.loads(out)
        assert (code, err) == (1 if report["problems"] else 2 if report["unknown"] else 0, "")
        said: dict[str, list[str]] = {}
        for one in report["diagnoses"]:
            if one["level"] != "ok":
                assert one["cure"], one
                said.setdefault(f"{one['level']} {one['check']}", []).append(one["message"])
        return said


@contextmanager
def in_order(bare: Testbed, installed: MusterInstall, calls: Api) -> Iterator[None]:
    """A controller that leads, and Volcano's Deployments, accounts and roles as its installer has them.

    The Deployments name a release without published vulnerabilities, unlike the tests' own.
    """
    bare.kubectl("create", "namespace", "volcano-system")
    installer = bare.module_dir("volcano.sh/volcano") / "installer/volcano-development.yaml"
    mine = [one for one in yaml.load_all(installer.read_bytes(), yaml.CSafeLoader) if one and _is_volcanos(one)]
    manifests = _IMAGE.sub(rf"\1{SOUND_VOLCANO}", "\n---\n".join(map(json.dumps, mine)))
    bare.kubectl("apply", "--server-side", "-f-", input=manifests)
    calls.done("POST", "/apis/scheduling.volcano.sh/v1beta1/queues", queue("default"))
    opened = {"status": {"state": "Open"}}
    calls.done("PATCH", "/apis/scheduling.volcano.sh/v1beta1/queues/default/status", opened, patch="merge")
    lead(installed, calls)
    for deployment in (*(f"volcano-system/{name}" for name in _VOLCANO), *_OURS):
        namespace, _, name = deployment.partition("/")
        at = (f"--namespace={namespace}", f"deployment/{name}", f"--timeout={PATIENCE:g}s")
        bare.kubectl("rollout", "status", *at)
    yield
    stand_down(installed)
    bare.kubectl("delete", "-f-", "--wait=false", input=manifests)
    bare.kubectl("delete", "namespace", "volcano-system", "--wait=false")
    bare.kubectl("delete", "queue/default")


def _is_volcanos(manifest: dict[str, Any]) -> bool:
    kinds = ("ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Deployment")
    return manifest["kind"] in kinds and manifest["metadata"]["name"].removesuffix("-role") in _VOLCANO


def lead(installed: MusterInstall, calls: Api) -> None:
    """Start a controller and wait until it leads."""
    installed.start_controller()
    wait_for("a leader", lambda: calls("GET", LEASE).body.get("spec", {}).get("holderIdentity"), PATIENCE)


def stand_down(installed: MusterInstall) -> None:
    """End the controllers, which give the Lease back."""
    while installed.controllers:
        installed.controllers.pop().stop(grace=PATIENCE)


@contextmanager
def edited(calls: Api, path: str, edit: Callable[[dict[str, Any]], object]) -> Iterator[None]:
    """Overwrite an object, and in the end put back what it was."""
    before = calls.done("GET", path)
    changed = copy.deepcopy(before)
    edit(changed)
    calls.done("PUT", path, changed)
    try:
        yield
    finally:
        before["metadata"]["resourceVersion"] = calls.done("GET", path)["metadata"]["resourceVersion"]
        calls.done("PUT", path, before)


def everywhere(configuration: dict[str, Any], **fields: object) -> None:
    """Set fields of all entries, or of their clientConfig."""
    for entry in configuration["webhooks"]:
        for name, value in fields.items():
            (entry["clientConfig"] if name == "caBundle" else entry)[name] = value
