"""`muster release` with nothing but an apiserver: no webhook, no controller, no Volcano."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from hack.testbed import Testbed, wait_for
from hack.testbed.api import Api
from hack.testbed.muster import MusterInstall
from muster.model.names import GANG, GATE, GROUP_NAME, QUEUE_LABEL, TASK_SPEC, label_value
from muster.model.resource import ADMISSION_POLICIES, ADMISSION_POLICY_BINDINGS, POD_GROUPS, PODS
from tests.apiserver.conftest import running
from tests.support.cases import cases
from tests.support.cli.in_process import muster
from tests.support.cli.terminal import on_terminal
from tests.support.cluster.desk import PATIENCE, Desk, open_desk
from tests.support.cluster.grants import account, bind, grant, on
from tests.support.manifests import applied

pytestmark = pytest.mark.part("commands")

OTHERS = "example.com/budget"


@pytest.fixture(scope="module")
def nobody(webhook_of_session: MusterInstall) -> None:
    """Nobody at work but the apiserver, which has heard of the chart."""
    running(webhook_of_session).stop_webhooks()


@pytest.fixture
def desk(bare: Testbed, calls: Api, nobody: None, request: pytest.FixtureRequest) -> Iterator[Desk]:
    """A namespace of the test's own, without the webhook."""
    del nobody
    with open_desk(bare, calls, request.node.name.removeprefix("test_")) as opened:
        yield opened


def held(desk: Desk, gang: str, *names: str, gates: tuple[str, ...] = (GATE,)) -> None:
    """Pods of a gang as the webhook left them before it went down."""
    for name in names:
        pod = applied.pod(name, schedulerName="volcano", schedulingGates=[{"name": gate} for gate in gates])
        desk.create(pod)
        # The webhook, which is asked about new pods, is not asked about this.
        desk.label(PODS, name, **{GANG: gang})


def bound(desk: Desk, gang: str, role: str, *names: str) -> None:
    """Held pods that are bound to a PodGroup, as the webhook leaves them."""
    held(desk, gang, *names)
    for name in names:
        annotations = {GROUP_NAME: gang, TASK_SPEC: role}
        desk.patch(PODS, name, {"metadata": {"annotations": annotations, "labels": {QUEUE_LABEL: "research"}}})


def group(desk: Desk, name: str, **roles: int) -> None:
    desk.create(
        {
            "apiVersion": POD_GROUPS.api_version,
            "kind": POD_GROUPS.kind,
            "metadata": {"name": name},
            "spec": {
                "minMember": sum(roles.values()),
                "minTaskMember": roles,
                "minResources": {"cpu": "2"},
                "queue": "research",
            },
        }
    )


def gates(desk: Desk) -> dict[str, list[str]]:
    """The gates of every pod of the namespace."""
    return {
        pod["metadata"]["name"]: [gate["name"] for gate in pod["spec"].get("schedulingGates", [])]
        for pod in desk.list(PODS)
    }


def release(desk: Desk, *arguments: str, kubeconfig: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run the command as an administrator, or as who owns this kubeconfig."""
    return muster("release", f"--kubeconfig={kubeconfig or desk.testbed.kubeconfig}", *arguments)


def test_the_named_gangs_are_opened_and_no_others(desk: Desk) -> None:
    held(desk, "one", "one-0", "one-1")
    held(desk, "two", "two-0")
    held(desk, "three", "three-0")
    done = release(desk, "-n", desk.namespace, "one", "three")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"{desk.namespace}/one: 2 pods opened\n{desk.namespace}/three: 1 pod opened\n"
    assert gates(desk) == {"one-0": [], "one-1": [], "two-0": [GATE], "three-0": []}


def test_all_means_every_gang_everywhere_or_in_the_namespace(desk: Desk) -> None:
    held(desk, "one", "one-0")
    held(desk, "two", "two-0")
    assert release(desk, "--all", "-n", "default").stdout == "no pods are held by muster\n"
    assert gates(desk) == {"one-0": [GATE], "two-0": [GATE]}
    done = release(desk, "--all")
    assert done.returncode == 0
    assert f"{desk.namespace}/one: 1 pod opened" in done.stdout
    assert gates(desk) == {"one-0": [], "two-0": []}


def test_a_gang_with_a_long_name_is_found_by_it(desk: Desk) -> None:
    """Its label holds the head of the name and a hash."""
    name = "a-very-long-name-of-a-gang-that-goes-on-and-on-until-no-label-can-hold-it-any-more"
    held(desk, label_value(name), "long-0")
    assert release(desk, "-n", desk.namespace, name).returncode == 0
    assert gates(desk) == {"long-0": []}


def test_gates_of_others_stay_and_are_named(desk: Desk) -> None:
    held(desk, "one", "one-0", gates=(OTHERS, GATE))
    done = release(desk, "-n", desk.namespace, "one")
    assert done.stdout == f"{desk.namespace}/one: 1 pod opened; still held by other gates: {OTHERS}\n"
    assert gates(desk) == {"one-0": [OTHERS]}


def test_a_dry_run_opens_nothing(desk: Desk) -> None:
    held(desk, "one", "one-0")
    done = release(desk, "-n", desk.namespace, "--dry-run", "one")
    assert (done.returncode, done.stdout) == (0, f"{desk.namespace}/one: 1 pod would be opened\n")
    assert gates(desk) == {"one-0": [GATE]}


@cases("typed, code, left", ("no", "n\n", 1, [GATE]), ("nothing", "\n", 1, [GATE]), ("yes", "y\n", 0, []))
def test_on_a_terminal_it_asks_first(desk: Desk, typed: str, code: int, left: list[str]) -> None:
    held(desk, "one", "one-0")
    shown = on_terminal("release", f"--kubeconfig={desk.testbed.kubeconfig}", "-n", desk.namespace, "one", typed=typed)
    assert shown.code == code
    assert "Open the gates of 1 gang (1 pod) at https://" in shown.text
    assert gates(desk) == {"one-0": left}


def test_it_does_not_ask_who_says_yes(desk: Desk) -> None:
    held(desk, "one", "one-0")
    shown = on_terminal("release", f"--kubeconfig={desk.testbed.kubeconfig}", "-n", desk.namespace, "--yes", "one")
    assert (shown.code, shown.text) == (0, f"{desk.namespace}/one: 1 pod opened\n")


def test_a_gang_is_found_in_all_namespaces(desk: Desk) -> None:
    name = f"gang-of-{desk.namespace}"
    held(desk, label_value(name), "one-0")
    assert release(desk, "-A", name).returncode == 0
    assert gates(desk) == {"one-0": []}


def test_pods_whose_podgroup_nobody_made_have_one(desk: Desk) -> None:
    """They came while no controller ran, and Volcano passes over them: also those that were opened before."""
    bound(desk, "late", "worker", "late-0", "late-1")
    done = release(desk, "-n", desk.namespace, "--dry-run", "late")
    would = f"{desk.namespace}/late: the missing PodGroup of its pods would be created\n"
    assert (done.returncode, done.stderr, done.stdout.splitlines(keepends=True)[1:]) == (0, "", [would])
    desk.patch(PODS, "late-0", {"spec": {"schedulingGates": []}})
    done = release(desk, "--all", "-n", desk.namespace)
    assert (done.returncode, done.stderr) == (0, "")
    made = f"{desk.namespace}/late: created the missing PodGroup of its pods\n"
    assert done.stdout == f"{desk.namespace}/late: 1 pod opened\n{made}"
    group_of = desk.get(POD_GROUPS, "late")
    assert (group_of["spec"]["minMember"], group_of["spec"]["queue"]) == (1, "research")
    assert release(desk, "--all", "-n", desk.namespace).stdout == "no pods are held by muster\n"


def test_a_gang_that_its_scheduler_holds_back_is_said_and_left_as_it_is(desk: Desk) -> None:
    """The rest of its pods may come: their gang is complete then."""
    bound(desk, "half", "worker", "half-0", "half-1")
    group(desk, "half", head=1, worker=2)
    done = release(desk, "-n", desk.namespace, "half")
    assert (done.returncode, done.stderr) == (0, "")
    waits = f"{desk.namespace}/half: its scheduler waits for the rest of its pods: 2 of 3 are there\n"
    assert done.stdout == f"{desk.namespace}/half: 2 pods opened\n{waits}"
    assert desk.get(POD_GROUPS, "half")["spec"]["minMember"] == 3


def test_who_may_make_no_podgroup_hears_what_that_means(desk: Desk) -> None:
    bound(desk, "late", "worker", "late-0")
    rules = [on(PODS, "list", "patch"), {"apiGroups": ["muster.dev"], "resources": ["gangs"], "verbs": ["release"]}]
    grant(desk.api, "opener", rules, account(desk.namespace), namespace=desk.namespace)
    kubeconfig = desk.testbed.service_account_kubeconfig(desk.namespace, "default")
    wait_for(
        "the role to count",
        lambda: release(desk, "-n", desk.namespace, "late", kubeconfig=kubeconfig).returncode == 1,
        PATIENCE,
    )
    done = release(desk, "-n", desk.namespace, "late", kubeconfig=kubeconfig)
    assert done.stderr.startswith("muster release: cannot list PodGroups: 403 Forbidden: ")
    assert done.stderr.endswith("pods keep waiting that lack theirs, or a part of their gang\n")
    assert gates(desk) == {"late-0": []}
    bind(desk.api, "releaser", "muster-release", account(desk.namespace), namespace=desk.namespace)
    wait_for(
        "the cluster role to count",
        lambda: release(desk, "-n", desk.namespace, "late", kubeconfig=kubeconfig).returncode == 0,
        PATIENCE,
    )
    assert desk.get(POD_GROUPS, "late")["spec"]["minMember"] == 1


def test_what_is_open_already_is_no_failure(desk: Desk) -> None:
    held(desk, "one", "one-0")
    release(desk, "-n", desk.namespace, "one")
    done = release(desk, "-n", desk.namespace, "one")
    assert (done.returncode, done.stdout) == (0, "no pods are held by muster\n")


def test_a_misspelt_gang_is_said(desk: Desk) -> None:
    held(desk, "one", "one-0")
    done = release(desk, "-n", desk.namespace, "one", "oen")
    assert done.returncode == 1
    assert done.stderr == f"muster release: {desk.namespace}/oen: no pods of a gang with this name\n"
    assert gates(desk) == {"one-0": []}


@pytest.fixture
def stubborn(desk: Desk) -> Iterator[str]:
    """A pod of which the apiserver refuses every change."""
    held(desk, "one", "one-1")
    name = f"stubborn-{desk.namespace}"
    policy = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": name},
        "spec": {
            "matchConstraints": {
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": desk.namespace}},
                "resourceRules": [
                    {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": ["UPDATE"]}
                ],
            },
            "validations": [{"expression": "object.metadata.name != 'one-1'", "message": "not this one"}],
        },
    }
    binding = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": name},
        "spec": {"policyName": name, "validationActions": ["Deny"]},
    }
    for manifest in (policy, binding):
        desk.create(manifest)
    probe, change = f"{desk.path(PODS, 'one-1')}?dryRun=All", {"metadata": {"labels": {"probe": "1"}}}
    wait_for(
        "the policy to be in force",
        lambda: "not this one" in desk.api("PATCH", probe, change, patch="merge").message,
        PATIENCE,
    )
    yield "one-1"
    desk.delete(ADMISSION_POLICY_BINDINGS, name)
    desk.delete(ADMISSION_POLICIES, name)


def test_one_failure_keeps_nobody_else_waiting(desk: Desk, stubborn: str) -> None:
    held(desk, "one", "one-0", "one-2")
    done = release(desk, "-n", desk.namespace, "one")
    assert done.returncode == 1
    assert done.stdout == f"{desk.namespace}/one: 2 pods opened\n"
    assert f"{desk.namespace}/one: pod {stubborn}: 422" in done.stderr
    assert "not this one" in done.stderr
    assert gates(desk) == {"one-0": [], stubborn: [GATE], "one-2": []}


def test_the_charts_cluster_role_is_all_that_it_needs(desk: Desk) -> None:
    """Bound in one namespace; without any right it cannot ask, and who may patch pods may not open them."""
    held(desk, "one", "one-0")
    kubeconfig = desk.testbed.service_account_kubeconfig(desk.namespace, "default")
    done = release(desk, "-n", desk.namespace, "one", kubeconfig=kubeconfig)
    assert done.returncode == 2
    assert done.stderr.startswith("muster release: 403 Forbidden: pods is forbidden")
    rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["list", "patch"]}]
    grant(desk.api, "patcher", rules, account(desk.namespace), namespace=desk.namespace)
    wait_for(
        "the role to count",
        lambda: release(desk, "-n", desk.namespace, "one", kubeconfig=kubeconfig).returncode == 1,
        PATIENCE,
    )
    done = release(desk, "-n", desk.namespace, "one", kubeconfig=kubeconfig)
    assert "who holds the verb release on gangs.muster.dev (ClusterRole muster-release), may do that" in done.stderr
    assert gates(desk) == {"one-0": [GATE]}
    bind(desk.api, "releaser", "muster-release", account(desk.namespace), namespace=desk.namespace)
    wait_for(
        "the cluster role to count",
        lambda: release(desk, "-n", desk.namespace, "one", kubeconfig=kubeconfig).returncode == 0,
        PATIENCE,
    )
    assert gates(desk) == {"one-0": []}


@cases(
    "arguments, said",
    ("neither gangs nor --all", [], "name at least one gang, or use --all"),
    ("both", ["one", "--all"], "name gangs or use --all, not both"),
)
def test_it_is_said_what_is_to_be_released(desk: Desk, arguments: list[str], said: str) -> None:
    done = release(desk, *arguments)
    assert (done.returncode, done.stderr) == (2, f"muster release: {said}\n")
