"""Tokens as the kubelet mounts and rotates them, made and revoked by the real apiserver."""

import asyncio
from http import HTTPStatus
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from hack.testbed import Testbed, wait_for
from muster.kube.client import Client
from muster.model.resource import SECRETS
from tests.support.cluster.grants import account, grant
from tests.support.faults.apiserver import eventually
from tests.support.faults.things import THINGS, Things, watching


def _bound_token(things: Things, secret: str) -> str:
    """Give a token of the default ServiceAccount that is good for as long as this Secret exists."""
    path = SECRETS.path(things.namespace)
    made = things.api.done("POST", path, {"metadata": {"name": secret}})
    reference = {"apiVersion": "v1", "kind": "Secret", "name": secret, "uid": made["metadata"]["uid"]}
    request = {"spec": {"expirationSeconds": 600, "boundObjectRef": reference}}
    account = f"/api/v1/namespaces/{things.namespace}/serviceaccounts/default"
    return str(things.api.done("POST", f"{account}/token", request)["status"]["token"])


async def test_a_rotated_token_in_a_pod_costs_neither_a_list_nor_a_request(
    cluster: Testbed, things: Things, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The old token is revoked: the file is read again, the watch goes on, and calls of that moment succeed."""
    calls, name = things.api, things.namespace
    path = f"/api/v1/namespaces/{name}/serviceaccounts/default"
    await asyncio.to_thread(wait_for, "its ServiceAccount", lambda: calls("GET", path).ok)
    rules = [{"apiGroups": [THINGS.group], "resources": [THINGS.plural], "verbs": ["get", "list", "watch"]}]
    grant(calls, "reader", rules, account(name), namespace=name)
    token = tmp_path / "token"
    token.write_text(_bound_token(things, "first"))
    own = cluster.api(token.read_text())
    await asyncio.to_thread(wait_for, "RBAC to have heard of it", lambda: own("GET", THINGS.path(name)).ok)
    own.close()

    address = urlsplit(cluster.server)
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", str(address.hostname))
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", str(address.port))
    (tmp_path / "ca.crt").write_bytes(cluster.ca_file.read_bytes())
    monkeypatch.setattr("muster.kube.config.SERVICE_ACCOUNT", tmp_path)

    async with (
        await Client.connect(user_agent="muster-test") as client,
        watching(client, things, watch_seconds=2) as watched,
    ):
        things.make("a")
        await eventually(lambda: watched.sizes == {"a": 1})
        old = token.read_text()
        token.write_text(f"{_bound_token(things, 'second')}\n")
        calls.done("DELETE", SECRETS.path(name, "first"))
        # The apiserver trusts a token for ten more seconds.
        await asyncio.to_thread(cluster_refuses, cluster, things, old)
        assert await client.get(THINGS, "a", name)
        before = watched.reflector.statistics.watches
        await eventually(lambda: watched.reflector.statistics.watches > before + 1)
        things.make("b")
        await eventually(lambda: watched.sizes == {"a": 1, "b": 1})
        statistics = watched.reflector.statistics
        assert (statistics.lists, statistics.failures) == (1, 0)


def cluster_refuses(cluster: Testbed, things: Things, token: str) -> None:
    """Wait until the apiserver says 401 to this token."""
    own, path = cluster.api(token), THINGS.path(things.namespace)
    wait_for("the old token to be refused", lambda: own("GET", path).status == HTTPStatus.UNAUTHORIZED)
    own.close()
