"""etcd and the apiserver, with the CRDs and muster's webhook, and nobody who acts on workloads."""

from collections.abc import Iterator

import pytest

from hack.testbed import Testbed, TestbedError, wait_for
from hack.testbed.api import Api
from hack.testbed.muster import MusterInstall, gates_of_a_new_pod, install
from muster.model.names import ADMITTED, GATE
from muster.model.resource import NAMESPACES
from tests.support.cluster.desk import PATIENCE, Desk, open_desk
from tests.support.cluster.grants import bind, grant, revoke, user
from tests.support.cluster.policy_actors import (
    ADMINISTRATOR,
    CONTROLLER,
    CONTROLLER_MANAGER,
    FORBIDDEN,
    GATE_AWAY,
    TENANT,
    VOLCANO,
    WEBHOOK,
    Acting,
    group,
    labelled,
)
from tests.support.cluster.verbs import make_namespace, own_name
from tests.support.manifests import applied
from tests.support.manifests.members import serve, serve_all

EXCLUDED = "excluded"
"""A namespace that the chart is told to leave alone."""

_VOLCANOS = "volcano-of-policies"
_CRDS = (
    ("volcano.sh/volcano", "config/crd/volcano/bases/scheduling.volcano.sh_queues.yaml"),
    ("volcano.sh/volcano", "config/crd/volcano/bases/scheduling.volcano.sh_podgroups.yaml"),
    ("github.com/ray-project/kuberay/ray-operator", "config/crd/bases/ray.io_rayclusters.yaml"),
    ("github.com/kubeflow/training-operator", "manifests/base/crds/kubeflow.org_pytorchjobs.yaml"),
)


@pytest.fixture(scope="session")
def bare() -> Iterator[Testbed]:
    """A control plane on which workloads stay what the tests make of them."""
    with Testbed.start(parts=(), progress=print) as running:
        serve(running, [running.module_dir(module) / path for module, path in _CRDS])
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
def webhook_of_session(bare: Testbed, calls: Api) -> Iterator[MusterInstall]:
    """Muster's webhook alone."""
    make_namespace(calls, EXCLUDED)
    values = {
        "image.repository": "muster",
        "webhook.shutdownDelaySeconds": "0",
        "excludedNamespaces": f"{{{EXCLUDED}}}",
        # Its objects alone: nothing runs here but what a test starts.
        "page.enabled": "true",
        "page.existingSecret": "page-address",
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
def desk(bare: Testbed, calls: Api, webhook: MusterInstall, request: pytest.FixtureRequest) -> Iterator[Desk]:
    """A namespace of the test's own."""
    del webhook
    with open_desk(bare, calls, request.node.name.removeprefix("test_")) as opened:
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
    try:
        return GATE in gates_of_a_new_pod(api, gang=True)
    except TestbedError as refused:
        return "muster" in str(refused) and "failed calling" not in str(refused)


@pytest.fixture(scope="module")
def acting(calls: Api, webhook_of_session: MusterInstall) -> Iterator[Acting]:
    """A namespace in which a tenant may do everything, and an administrator everything and release."""
    del webhook_of_session
    namespace = own_name("policies")
    make_namespace(calls, namespace)
    everything = [
        {"apiGroups": [""], "resources": ["pods", "pods/status"], "verbs": ["*"]},
        {"apiGroups": ["scheduling.volcano.sh"], "resources": ["podgroups"], "verbs": ["*"]},
        {"apiGroups": ["ray.io"], "resources": ["rayclusters"], "verbs": ["*"]},
    ]
    grant(calls, "everything", everything, user(TENANT), user(ADMINISTRATOR), namespace=namespace)
    bind(calls, "release", "muster-release", user(ADMINISTRATOR), namespace=namespace)
    # As Volcano's own chart has it.
    own = [
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "create", "patch"]},
        {
            "apiGroups": ["scheduling.volcano.sh"],
            "resources": ["podgroups"],
            "verbs": ["get", "create", "patch", "update"],
        },
    ]
    grant(calls, _VOLCANOS, own, user(VOLCANO), user(CONTROLLER_MANAGER))
    acting = Acting(calls, namespace)
    acting.apply(applied.queue("ours"), applied.queue("theirs"))
    probe = acting.member()

    def in_force() -> bool:
        pretend = "?dryRun=All"
        told = [
            acting.change(TENANT, probe, GATE_AWAY, door=pretend),
            acting.change(CONTROLLER, probe, labelled(a="b"), door=pretend),
        ]
        made = acting.ask(group(acting, **{ADMITTED: "probe"}), user=TENANT)
        hook = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/muster"
        told += [made, calls("PATCH", f"{hook}{pretend}", labelled(a="b"), patch="merge", user=WEBHOOK)]
        # And RBAC.
        may = [acting.change(ADMINISTRATOR, probe, GATE_AWAY, door=pretend)]
        may.append(acting.change(VOLCANO, probe, labelled(a="b"), door=pretend))
        return all(answer.status == FORBIDDEN and "muster" in answer.message for answer in told) and all(
            answer.ok for answer in may
        )

    wait_for("the policies to be in force", in_force, PATIENCE)
    yield acting
    calls.delete(NAMESPACES.path(name=namespace))
    revoke(calls, _VOLCANOS)
