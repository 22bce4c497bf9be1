"""etcd and the apiserver, with the CRDs and muster's webhook, and nobody who acts on workloads."""

from __future__ import annotations

import re
import uuid
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from hack.testbed import Testbed, TestbedError, wait_for
from hack.testbed.muster import MusterInstall, install
from muster.kube.resource import POD_GROUPS, PODS
from muster.names import ADMITTED, GANG, GANG_SIZE, GATE
from tests.support.cluster.desk import PATIENCE, Desk
from tests.support.cluster.policy_actors import (
    ADMINISTRATOR,
    CONTROLLER,
    FORBIDDEN,
    GATE_AWAY,
    TENANT,
    VOLCANO,
    WEBHOOK,
    Acting,
    group,
    labelled,
)
from tests.support.manifests import workloads as builders
from tests.support.manifests.members import all_served, serve_all

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hack.testbed.api import Api

__all__ = ["EXCLUDED", "acting", "bare", "desk", "every_kind", "open_desk", "running", "webhook"]

EXCLUDED = "excluded"
"""A namespace that the chart is told to leave alone."""

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
        wait_for("the CRDs to be served", lambda: all_served(running), PATIENCE)
        yield running


@pytest.fixture(scope="session")
def every_kind(bare: Testbed) -> None:
    """The CRDs of all operators are served, from here on."""
    serve_all(bare)


@pytest.fixture(scope="session")
def calls(bare: Testbed) -> Iterator[Api]:
    """Quick calls to the bare control plane."""
    calls = bare.api()
    yield calls
    calls.close()


@pytest.fixture(scope="session")
def bare_testbed(bare: Testbed) -> Testbed:
    """The same, for what asks nothing but Kubernetes itself."""
    return bare


@pytest.fixture(scope="session")
def webhook_of_session(bare: Testbed) -> Iterator[MusterInstall]:
    """Muster's webhook alone."""
    bare.kubectl("create", "namespace", EXCLUDED)
    values = {
        "image.repository": "muster",
        "webhook.shutdownDelaySeconds": "0",
        "excludedNamespaces": f"{{{EXCLUDED}}}",
        # So that a rotation takes seconds; there is one apiserver, and it hears of a caBundle in milliseconds.
        "webhook.extraArgs": "{--trust-delay=1,--authority-overlap=2}",
        # As long as it may be, so that no busy machine makes a failure of an answer.
        "webhook.timeoutSeconds": "30",
    }
    installed = install(bare, values=values, webhooks=1, controllers=0)
    yield installed
    installed.uninstall(hooks=False)


@pytest.fixture
def webhook(webhook_of_session: MusterInstall) -> MusterInstall:
    """The webhook, running, whatever the test before did to it."""
    return running(webhook_of_session)


@pytest.fixture
def desk(bare: Testbed, webhook: MusterInstall, request: pytest.FixtureRequest) -> Iterator[Desk]:
    """A namespace of the test's own."""
    del webhook
    with open_desk(bare, request.node.name.removeprefix("test_")) as opened:
        yield opened


def running(webhook: MusterInstall) -> MusterInstall:
    """The webhook with a process that serves, an old one or a new one."""
    webhook.webhooks[:] = [process for process in webhook.webhooks if process.alive()]
    if not webhook.webhooks:
        webhook.start_webhook()
    webhook.wait_ready(PATIENCE)
    testbed = webhook.testbed
    api = testbed.api()
    wait_for("the apiserver to have heard of the webhooks", lambda: _asked(api), PATIENCE)
    return webhook


def _asked(api: Api) -> bool:
    """Whether muster is asked about a new member: the apiserver hears of its configurations by watches of its own."""
    pod = builders.pod("probe")
    pod["metadata"] |= {"labels": {GANG: "probe"}, "annotations": {GANG_SIZE: "1"}}
    try:
        made = api.create(f"{PODS.path('default')}?dryRun=All", pod)
    except TestbedError as refused:
        return "muster" in str(refused) and "failed calling" not in str(refused)
    return {"name": GATE} in made["spec"].get("schedulingGates", [])


@contextmanager
def open_desk(bare: Testbed, name: str) -> Iterator[Desk]:
    """Make a namespace of about that name, and delete it in the end."""
    words = re.sub(r"[^a-z0-9]+", "-", name.lower())
    namespace = f"{words[:30].strip('-')}-{uuid.uuid4().hex[:6]}"
    bare.kubectl("create", "namespace", namespace)
    api = bare.api()
    account = f"/api/v1/namespaces/{namespace}/serviceaccounts/default"
    wait_for("its ServiceAccount", lambda: api.get(account), PATIENCE)
    yield Desk(bare, namespace, api)
    bare.kubectl("delete", "namespace", namespace, "--wait=false")


@pytest.fixture(scope="module")
def acting(bare: Testbed, calls: Api, webhook_of_session: MusterInstall) -> Iterator[Acting]:
    """A namespace in which a tenant may do everything, and an administrator everything and release."""
    del webhook_of_session
    namespace = f"policies-{uuid.uuid4().hex[:6]}"
    bare.kubectl("create", "namespace", namespace)
    at = f"--namespace={namespace}"
    kinds = "pods,pods/status,podgroups.scheduling.volcano.sh,rayclusters.ray.io"
    bare.kubectl("create", "role", "everything", "--verb=*", f"--resource={kinds}", at)
    users = (f"--user={TENANT}", f"--user={ADMINISTRATOR}")
    bare.kubectl("create", "rolebinding", "everything", "--role=everything", *users, at)
    # As Volcano's own chart has it.
    volcano = ("--verb=get,create,patch", "--resource=pods,podgroups.scheduling.volcano.sh")
    bare.kubectl("create", "clusterrole", "volcano-of-policies", *volcano)
    bare.kubectl(
        *("create", "clusterrolebinding", "volcano-of-policies"),
        *("--clusterrole=volcano-of-policies", f"--user={VOLCANO}"),
    )
    bare.kubectl("create", "rolebinding", "release", "--clusterrole=muster-release", users[1], at)
    account = f"/api/v1/namespaces/{namespace}/serviceaccounts/default"
    wait_for("its ServiceAccount", lambda: calls("GET", account).ok, PATIENCE)
    acting = Acting(namespace, calls)
    probe = acting.member()

    def in_force() -> bool:
        pretend = "?dryRun=All"
        told = [
            acting.patch(TENANT, probe, GATE_AWAY, door=pretend),
            acting.patch(CONTROLLER, probe, labelled(a="b"), door=pretend),
        ]
        made = acting.create(POD_GROUPS, group(acting, **{ADMITTED: "probe"}), TENANT)
        hook = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/muster"
        told += [made, calls("PATCH", f"{hook}{pretend}", labelled(a="b"), patch="merge", user=WEBHOOK)]
        # And RBAC.
        may = [acting.patch(ADMINISTRATOR, probe, GATE_AWAY, door=pretend)]
        may.append(acting.patch(VOLCANO, probe, labelled(a="b"), door=pretend))
        return all(answer.status == FORBIDDEN and "muster" in answer.message for answer in told) and all(
            answer.ok for answer in may
        )

    wait_for("the policies to be in force", in_force, PATIENCE)
    yield acting
    bare.kubectl("delete", "namespace", namespace, "--wait=false")
    bare.kubectl("delete", "clusterrole,clusterrolebinding", "volcano-of-policies")
