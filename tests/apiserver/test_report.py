"""`muster report` of records that a leader has written, with the rights of those who may read them and of others."""

import asyncio
import json
import time
from pathlib import Path

import pytest

from controller.apiserver import Writer
from controller.history import HistoryStore
from hack.testbed.api import Api
from hack.testbed.muster import MusterInstall
from muster.gangs.accounts import Accounts, Scope
from muster.gangs.start_errors import StartErrors
from muster.kube.client import Client
from muster.model.resource import CONFIG_MAPS
from tests.support.cli.in_process import muster
from tests.support.cluster.desk import Desk
from tests.support.cluster.grants import account, grant

pytestmark = pytest.mark.part("commands")

HOUR = 3600.0
_NAME = "muster-history"


def used(hours: float, now: float) -> Accounts:
    """One queue that held 8 GPUs for so long, until now."""
    accounts = Accounts(["team"])
    scope = Scope("", "q", "vision", "RayJob/train", ("blue",))
    accounts.add(scope, now - hours * HOUR, now, held={"cpu": 1.0, "nvidia.com/gpu": 8.0})
    accounts.add_end(scope, "succeeded", now)
    accounts.until = now
    return accounts


async def written(install: MusterInstall, folder: Path, accounts: Accounts) -> None:
    """Write records as a leader does, by its token."""
    kubeconfig = install.through("controller", install.testbed.server, folder).partition("=")[2]
    async with await Client.connect(kubeconfig=kubeconfig, user_agent="muster-test") as client:
        writer = Writer(client, lambda: 60.0)
        parts, starts = {"use": accounts}, StartErrors()
        store = HistoryStore(client, writer, namespace=install.namespace, name=_NAME, parts=parts, starts=starts)
        await store.write()


def test_it_sums_what_a_leader_has_written_for_those_who_may_read_it(
    desk: Desk, calls: Api, webhook_of_session: MusterInstall, tmp_path: Path
) -> None:
    install = webhook_of_session
    for name in ("auditor", "tenant"):
        calls.create(f"/api/v1/namespaces/{desk.namespace}/serviceaccounts", {"metadata": {"name": name}})
    rule = {"apiGroups": [""], "resources": ["configmaps"], "resourceNames": [_NAME], "verbs": ["get"]}
    grant(calls, "reads-use", [rule], account(desk.namespace, "auditor"), namespace=install.namespace)
    auditor, tenant = (
        f"--kubeconfig={desk.testbed.service_account_kubeconfig(desk.namespace, name)}"
        for name in ("auditor", "tenant")
    )
    # Controllers of other tests may have written some.
    calls.merge(CONFIG_MAPS.path(install.namespace, _NAME), {"data": {"use": None}})
    before = muster("report", f"--kubeconfig={desk.testbed.kubeconfig}")
    assert (before.returncode, "nothing is recorded yet" in before.stderr) == (2, True)
    asyncio.run(written(install, tmp_path, used(5.0, time.time())))
    for by, row in (("queue", "q"), ("namespace", "vision"), ("owner", "vision/RayJob/train"), ("label=team", "blue")):
        done = muster("report", auditor, "--by", by, "-o", "json")
        assert done.returncode == 0, done.stderr
        report = json.loads(done.stdout)
        assert [one["name"] for one in report["rows"]] == [row]
        assert report["total"]["held"] == pytest.approx({"cpu": 5 * HOUR, "nvidia.com/gpu": 40 * HOUR})
        assert report["total"]["ended"]["succeeded"] == 1
    refused = muster("report", tenant)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr == (
        f"muster report: the records need the right to get ConfigMap {_NAME} of namespace {install.namespace}, "
        "which you do not have\n"
    )
