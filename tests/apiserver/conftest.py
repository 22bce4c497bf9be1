"""etcd and the apiserver, with the CRDs and muster's webhook, and nobody who acts on workloads."""

from __future__ import annotations

import re
import uuid
from typing import TYPE_CHECKING

import pytest

from hack.testbed import Testbed, wait_for
from hack.testbed.api import Api
from hack.testbed.muster import MusterInstall, install
from tests.apiserver.calls import Calls
from tests.apiserver.desk import PATIENCE, Desk

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["bare", "desk", "webhook"]

_CRDS = {
    "volcano.sh/volcano": "config/crd/volcano/bases/scheduling.volcano.sh_{}.yaml:queues,podgroups",
    "github.com/ray-project/kuberay/ray-operator": "config/crd/bases/ray.io_{}.yaml:rayclusters",
    "github.com/kubeflow/training-operator": "manifests/base/crds/kubeflow.org_{}.yaml:pytorchjobs",
}


@pytest.fixture(scope="session")
def bare() -> Iterator[Testbed]:
    """A control plane on which workloads stay what the tests make of them."""
    with Testbed.start(parts=(), progress=print) as running:
        for module, files in _CRDS.items():
            pattern, _, kinds = files.partition(":")
            for kind in kinds.split(","):
                path = running.module_dir(module) / pattern.format(kind)
                running.kubectl("apply", "--server-side", f"--filename={path}")
        # A CRD of a moment ago has no conditions at all, which kubectl takes for an error.
        established = ("wait", "--for=condition=Established", "crd", "--all", "--timeout=60s")
        wait_for("the CRDs to be served", lambda: running.kubectl(*established), PATIENCE)
        yield running


@pytest.fixture(scope="session")
def calls(bare: Testbed) -> Iterator[Calls]:
    """Quick calls to the bare control plane."""
    calls = Calls(bare)
    yield calls
    calls.close()


@pytest.fixture(scope="session")
def bare_testbed(bare: Testbed) -> Testbed:
    """The same, for what asks nothing but Kubernetes itself."""
    return bare


@pytest.fixture(scope="session")
def webhook_of_session(bare: Testbed) -> Iterator[MusterInstall]:
    """Muster's webhook alone."""
    values = {"image.repository": "muster", "webhook.shutdownDelaySeconds": "0"}
    installed = install(bare, values=values, webhooks=1, controllers=0)
    yield installed
    installed.uninstall()


@pytest.fixture
def webhook(webhook_of_session: MusterInstall) -> MusterInstall:
    """The webhook, running, whatever the test before did to it."""
    webhook_of_session.webhooks[:] = [process for process in webhook_of_session.webhooks if process.alive()]
    if not webhook_of_session.webhooks:
        webhook_of_session.start_webhook()
    webhook_of_session.wait_ready(PATIENCE)
    return webhook_of_session


@pytest.fixture
def desk(bare: Testbed, webhook: MusterInstall, request: pytest.FixtureRequest) -> Iterator[Desk]:
    """A namespace of the test's own."""
    del webhook
    words = re.sub(r"[^a-z0-9]+", "-", request.node.name.removeprefix("test_").lower())
    namespace = f"{words[:30].strip('-')}-{uuid.uuid4().hex[:6]}"
    bare.kubectl("create", "namespace", namespace)
    api = Api(bare.server, bare.admin_token, bare.ca_file)
    account = f"/api/v1/namespaces/{namespace}/serviceaccounts/default"
    wait_for("its ServiceAccount", lambda: api.get(account), PATIENCE)
    yield Desk(bare, namespace, api)
    bare.kubectl("delete", "namespace", namespace, "--wait=false")
