"""The settings that the chart publishes, as a tenant reads them who has the role `view` in one namespace alone."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from hack.testbed import Testbed, wait_for
from hack.testbed.api import Api
from hack.testbed.muster import MusterInstall
from muster.cli.settings import read_settings, settings_of
from muster.model.resource import CONFIG_MAPS
from tests.apiserver.conftest import running
from tests.support.cli.in_process import muster
from tests.support.cluster.desk import PATIENCE, open_desk
from tests.support.cluster.grants import account, bind
from tests.support.pages.blocks import block
from tests.support.pages.walkthrough import Shell

FORBIDDEN = 403
MAP = CONFIG_MAPS.path("kube-public", "muster")


class Tenant(NamedTuple):
    """A namespace, the account that may view it, and its kubeconfig."""

    namespace: str
    name: str
    kubeconfig: Path

    def unknown(self) -> list[str]:
        """The notes of `muster queues`."""
        done = muster("queues", f"--kubeconfig={self.kubeconfig}", f"--namespace={self.namespace}", "--output=json")
        assert done.returncode == 0, done.stderr
        found: list[str] = json.loads(done.stdout)["unknown"]
        return found


@pytest.fixture(scope="module")
def tenant(bare: Testbed, calls: Api, webhook_of_session: MusterInstall) -> Iterator[Tenant]:
    """The chart is installed; nothing is granted to the tenant but `view`."""
    running(webhook_of_session)
    with open_desk(bare, calls, "settings") as desk:
        calls.create(f"/api/v1/namespaces/{desk.namespace}/serviceaccounts", {"metadata": {"name": "tenant"}})
        bind(calls, "tenant", "view", account(desk.namespace, "tenant"), namespace=desk.namespace)
        who = f"system:serviceaccount:{desk.namespace}:tenant"
        pods = f"/api/v1/namespaces/{desk.namespace}/pods"
        wait_for("RBAC to have heard of it", lambda: calls("GET", pods, user=who).ok, PATIENCE)
        yield Tenant(desk.namespace, who, bare.service_account_kubeconfig(desk.namespace, "tenant"))


def test_commands_look_where_the_installation_has_its_queues(calls: Api, tenant: Tenant) -> None:
    def about_queues() -> list[str]:
        kinds = ("cannot list queues.", "cannot list gangqueues.", "the settings of muster")
        return [note.split(":")[0] for note in tenant.unknown() if note.startswith(kinds)]

    assert about_queues() == ["cannot list queues.scheduling.volcano.sh"]
    before = calls.get(MAP)["data"]
    calls.merge(MAP, {"data": {"values.yaml": "{queues: {source: muster}, schedulers: [coscheduling]}"}})
    try:
        assert about_queues() == ["cannot list gangqueues.muster.dev"]
    finally:
        calls.merge(MAP, {"data": before})


def test_without_the_settings_one_note_says_so(calls: Api, tenant: Tenant) -> None:
    before = calls.get(MAP)
    calls.delete(MAP)
    try:
        (note,) = (note for note in tenant.unknown() if note.startswith("the settings of muster are unknown"))
        assert "ConfigMap kube-public/muster does not exist" in note
    finally:
        kept = {key: before["metadata"][key] for key in ("name", "labels", "annotations")}
        calls.create(CONFIG_MAPS.path("kube-public"), {"metadata": kept, "data": before["data"]})


def test_the_tenant_writes_them_into_a_file_as_the_page_says(
    bare: Testbed, calls: Api, tenant: Tenant, tmp_path: Path
) -> None:
    shell = Shell.on(bare, {})
    command = block("docs/cli.md", "kubectl -n kube-public get configmap muster")
    shell.obey(f"cd {tmp_path}; export KUBECONFIG={tenant.kubeconfig}\n{command}")
    published = calls.get(MAP)["data"]["values.yaml"]
    written = settings_of(str(tmp_path / "values.yaml"))
    assert written.defaults.namespaces == read_settings("published", published).defaults.namespaces
    assert "muster-system" in published


def test_nothing_else_is_open_there(calls: Api, tenant: Tenant) -> None:
    every = CONFIG_MAPS.path("kube-public")
    body = {"metadata": {"name": "muster"}, "data": {"values.yaml": "schedulers: [kai]"}}
    asked = [
        calls("GET", every, user=tenant.name),
        calls("GET", f"{every}/cluster-info", user=tenant.name),
        calls("PUT", MAP, body, user=tenant.name),
        calls("DELETE", MAP, user=tenant.name),
    ]
    assert [answer.status for answer in asked] == [FORBIDDEN] * 4
    assert calls("GET", MAP, user=tenant.name).ok
