"""`muster withdraw` with nothing but an apiserver; of a release that is not there, so that the session's goes on.

tests/e2e/test_uninstall.py and tests/node/test_order.py take away one that is.
"""

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hack.testbed import Testbed, wait_for
from hack.testbed.api import Api
from muster.cli.release.pod_groups import loosen
from muster.kube.client import Client
from muster.kube.listing import list_objects
from muster.model.names import GATE
from muster.model.objects import PodGroup
from muster.model.pods import Pod
from muster.model.resource import (
    CLUSTER_ROLE_BINDINGS,
    CONFIG_MAPS,
    MUTATING_WEBHOOKS,
    NAMESPACES,
    POD_GROUPS,
    PODS,
    VALIDATING_WEBHOOKS,
)
from muster.schedulers import SCHEDULERS
from tests.apiserver.test_release import bound, desk, gates, group, held, nobody, stubborn
from tests.support.cli.in_process import muster
from tests.support.cli.terminal import on_terminal
from tests.support.cluster.desk import PATIENCE, Desk, Manifest, open_desk
from tests.support.cluster.grants import account, grant, on, revoke

pytestmark = pytest.mark.part("commands")

__all__ = ["desk", "nobody", "stubborn"]


Withdraw = Callable[..., "subprocess.CompletedProcess[str]"]
# Those of the chart's hook, for a release of any name. It may not look for others.
RIGHTS = [
    on(MUTATING_WEBHOOKS, "delete"),
    on(VALIDATING_WEBHOOKS, "delete"),
    on(CLUSTER_ROLE_BINDINGS, "delete"),
    {"apiGroups": ["muster.dev"], "resources": ["gangs"], "verbs": ["release"]},
    on(PODS, "list", "patch"),
    on(POD_GROUPS, "list", "create", "patch"),
]


@pytest.fixture(scope="module")
def withdraw(bare: Testbed, calls: Api) -> Iterator[Withdraw]:
    """Run the command with the rights of the hook, or as who owns a kubeconfig, for a release that is not there."""
    with open_desk(bare, calls, "withdrawing") as opened:
        grant(calls, opened.namespace, RIGHTS, account(opened.namespace))
        who = f"system:serviceaccount:{opened.namespace}:default"
        wait_for("its rights", lambda: calls("GET", POD_GROUPS.path(), user=who).ok, PATIENCE)
        own = bare.service_account_kubeconfig(opened.namespace, "default")

        def run(*arguments: str, kubeconfig: Path = own) -> subprocess.CompletedProcess[str]:
            return muster("withdraw", f"--kubeconfig={kubeconfig}", "--name=not-there", "--settle=0", *arguments)

        yield run
        revoke(calls, opened.namespace)


def spec(desk: Desk, name: str) -> Manifest:
    found: Manifest = desk.get(POD_GROUPS, name)
    return dict(found["spec"])


def test_gates_are_opened_and_what_is_not_there_is_no_failure(desk: Desk, withdraw: Withdraw) -> None:
    held(desk, "one", "one-0", "one-1")
    done = withdraw()
    assert (done.returncode, done.stderr) == (0, "")
    assert "webhook configurations not-there: not found" in done.stdout
    assert "clusterrolebinding not-there-controller: not found" in done.stdout
    assert f"{desk.namespace}/one: 2 pods opened\n" in done.stdout
    assert done.stdout.endswith("no pods are held by muster\n")
    assert gates(desk) == {"one-0": [], "one-1": []}


def test_a_name_that_no_muster_has_is_a_mistake(desk: Desk, withdraw: Withdraw) -> None:
    """Whoever may see the other one is told its name; nothing is opened that its webhook would hold again."""
    held(desk, "one", "one-0")
    for more in ((), ("--dry-run",)):
        done = withdraw(*more, kubeconfig=desk.testbed.kubeconfig)
        assert (done.returncode, done.stdout) == (2, "")
        words = 'no muster is called "not-there" here, and nothing was changed; did you mean --name=muster?'
        assert done.stderr == f"muster withdraw: {words}\n"
    assert gates(desk) == {"one-0": [GATE]}


def test_a_dry_run_changes_nothing(desk: Desk) -> None:
    """Not even of the release that is there: the session's own."""
    held(desk, "one", "one-0")
    before = [desk.get(kind, "muster") for kind in (MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS)]
    done = muster("withdraw", f"--kubeconfig={desk.testbed.kubeconfig}", "--dry-run")
    assert (done.returncode, done.stderr) == (0, "")
    assert "webhook configurations muster: would be deleted" in done.stdout
    assert f"{desk.namespace}/one: 1 pod would be opened\n" in done.stdout
    assert done.stdout.endswith("nothing was changed (dry run)\n")
    assert gates(desk) == {"one-0": [GATE]}
    after = [desk.get(kind, "muster") for kind in (MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS)]
    assert [one["metadata"]["uid"] for one in after] == [one["metadata"]["uid"] for one in before]


def test_on_a_terminal_it_asks_first(desk: Desk) -> None:
    held(desk, "one", "one-0")
    shown = on_terminal("withdraw", f"--kubeconfig={desk.testbed.kubeconfig}", "--name=not-there", typed="n\n")
    assert shown.code == 1
    assert "Remove muster (not-there) from https://" in shown.text
    assert gates(desk) == {"one-0": [GATE]}


def test_a_gang_that_is_not_whole_starts_with_what_is_there(desk: Desk, withdraw: Withdraw) -> None:
    """The rest of its pods come without muster, and never to this PodGroup."""
    bound(desk, "whole", "worker", "whole-0", "whole-1")
    group(desk, "whole", worker=2)
    bound(desk, "half", "worker", "half-0", "half-1")
    group(desk, "half", head=1, worker=1)
    done = withdraw()
    assert (done.returncode, done.stderr) == (0, "")
    assert spec(desk, "whole") == {
        "minMember": 2,
        "minTaskMember": {"worker": 2},
        "minResources": {"cpu": "2"},
        "queue": "research",
    }
    assert spec(desk, "half") == {"minMember": 1, "queue": "research"}
    assert f"{desk.namespace}/half: some of its pods are missing; it starts with the existing ones\n" in done.stdout


def test_pods_whose_podgroup_nobody_made_have_one(desk: Desk, withdraw: Withdraw) -> None:
    """It goes with them: with their workload, or else with the pods."""
    bound(desk, "orphan", "worker", "orphan-0", "orphan-1")
    done = withdraw()
    assert (done.returncode, done.stderr) == (0, "")
    made = desk.get(POD_GROUPS, "orphan")
    assert (made["spec"]["minMember"], made["spec"]["queue"]) == (1, "research")
    owners = {(owner["kind"], owner["uid"]) for owner in made["metadata"]["ownerReferences"]}
    assert owners == {("Pod", pod["metadata"]["uid"]) for pod in desk.list(PODS)}


async def test_a_namespace_that_ends_meanwhile_is_no_failure(desk: Desk, capsys: pytest.CaptureFixture[str]) -> None:
    """Its pods were listed before it was deleted, and end with it."""
    bound(desk, "late", "worker", "late-0")
    kept = {"metadata": {"name": "kept", "finalizers": ["tests.muster.dev/kept"]}}
    desk.api.create(CONFIG_MAPS.path(desk.namespace), kept)
    async with await Client.connect(kubeconfig=str(desk.testbed.kubeconfig), user_agent="test") as client:
        pods = await list_objects(client, PODS, Pod, namespace=desk.namespace)
        desk.api.delete(NAMESPACES.path(name=desk.namespace))
        await loosen(client, pods, SCHEDULERS)
    desk.patch(CONFIG_MAPS, "kept", {"metadata": {"finalizers": None}})
    assert capsys.readouterr() == ("", "")


async def test_a_namespace_that_is_gone_by_then_is_none_either(desk: Desk, capsys: pytest.CaptureFixture[str]) -> None:
    """As long as anybody deletes namespaces, one may have been there for the list of pods alone."""
    bound(desk, "late", "worker", "late-0")
    async with await Client.connect(kubeconfig=str(desk.testbed.kubeconfig), user_agent="test") as client:
        pods = await list_objects(client, PODS, Pod, namespace=desk.namespace)
        desk.api.delete(NAMESPACES.path(name=desk.namespace))
        wait_for("its end", lambda: not desk.api("GET", NAMESPACES.path(name=desk.namespace)).ok, PATIENCE)
        await loosen(client, pods, SCHEDULERS)
    assert capsys.readouterr() == ("", "")


async def test_a_podgroup_that_is_deleted_meanwhile_is_made_again(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its pods name it, and no scheduler starts them without it."""
    bound(desk, "half", "worker", "half-0")
    group(desk, "half", worker=2)
    volcano = {"volcano": SCHEDULERS["volcano"]}
    async with await Client.connect(kubeconfig=str(desk.testbed.kubeconfig), user_agent="test") as client:
        pods = await list_objects(client, PODS, Pod, namespace=desk.namespace)
        listed = await list_objects(client, POD_GROUPS, PodGroup, namespace=desk.namespace)
        desk.delete(POD_GROUPS, "half")

        async def before(*_: object) -> list[PodGroup]:
            return listed

        monkeypatch.setattr("muster.cli.release.pod_groups.list_objects", before)
        await loosen(client, pods, volcano)
    assert capsys.readouterr() == (f"{desk.namespace}/half: created the missing PodGroup of its pods\n", "")
    assert spec(desk, "half")["minMember"] == 1


def test_what_runs_keeps_its_podgroup(desk: Desk, withdraw: Withdraw) -> None:
    """One that has lost a member included: the others have nodes, and nothing is to be let through."""
    bound(desk, "running", "worker", "running-0")
    group(desk, "running", worker=2)
    withdraw()
    before = spec(desk, "running")
    desk.delete(POD_GROUPS, "running")
    group(desk, "running", worker=2)
    desk.api.create(
        f"/api/v1/namespaces/{desk.namespace}/pods/running-0/binding",
        {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "running-0"}, "target": {"name": "somewhere"}},
    )
    assert withdraw().returncode == 0
    assert before["minMember"] == 1
    assert spec(desk, "running")["minMember"] == 2


def test_a_pod_that_stays_held_is_named_once(desk: Desk, stubborn: str, withdraw: Withdraw) -> None:
    held(desk, "one", "one-0")
    done = withdraw("--settle=1")
    assert done.returncode == 1
    assert gates(desk) == {"one-0": [], stubborn: [GATE]}
    line = done.stderr
    assert line.startswith(f"muster withdraw: {desk.namespace}/one: pod {stubborn}: 422")
    assert "not this one" in line
    assert line.count("\n") == 1, line


def test_without_the_right_to_stop_the_webhook_nothing_is_opened(desk: Desk, withdraw: Withdraw) -> None:
    """What is opened would be held again."""
    held(desk, "one", "one-0")
    done = withdraw(kubeconfig=desk.testbed.service_account_kubeconfig(desk.namespace, "default"))
    assert done.returncode == 2
    assert done.stderr.startswith("muster withdraw: 403 Forbidden: mutatingwebhookconfigurations")
    assert gates(desk) == {"one-0": [GATE]}


def test_gangs_that_stay_undone_are_a_failure(desk: Desk, calls: Api, withdraw: Withdraw) -> None:
    """Helm tries its hook again, and removes nothing meanwhile."""
    bound(desk, "part", "worker", "part-0")
    calls.create(f"/api/v1/namespaces/{desk.namespace}/serviceaccounts", {"metadata": {"name": "almost"}})
    grant(calls, f"{desk.namespace}-almost", RIGHTS[:-1], account(desk.namespace, "almost"))
    try:
        kubeconfig = desk.testbed.service_account_kubeconfig(desk.namespace, "almost")
        who = f"system:serviceaccount:{desk.namespace}:almost"
        wait_for("its rights", lambda: calls("GET", PODS.path(), user=who).ok, PATIENCE)
        done = withdraw(kubeconfig=kubeconfig)
    finally:
        revoke(calls, f"{desk.namespace}-almost")
    assert done.returncode == 1
    assert done.stderr.startswith("muster withdraw: cannot list PodGroups: 403 Forbidden: podgroups")
    assert "no pods are held" not in done.stdout
    assert gates(desk) == {"part-0": []}
