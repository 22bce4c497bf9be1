import asyncio
import datetime as dt
import json
import pwd
import re
import stat
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml
from aiohttp import web
from cryptography.hazmat.primitives.serialization import Encoding
from kubernetes_asyncio.config.exec_provider import ExecProvider

from muster.kube import config
from muster.kube.client import Client
from muster.kube.config import ConfigError, load_connection
from muster.process.certificates import issue
from tests.support.cases import cases
from tests.support.faults.apiserver import FaultyApiserver, reply


def kubeconfig(tmp_path: Path, user: Mapping[str, object], **cluster: object) -> str:
    path = tmp_path / "config"
    there = [{"name": "c", "cluster": {"server": "https://apiserver:6443/", **cluster}}]
    path.write_text(yaml.safe_dump(whole(clusters=there, users=[{"name": "u", "user": dict(user)}])))
    return str(path)


def whole(**parts: object) -> dict[str, object]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "here",
        "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": "https://apiserver:6443/"}}],
        "users": [{"name": "u", "user": {}}],
        **parts,
    }


async def test_a_token(tmp_path: Path) -> None:
    """The server's address and the Authorization header come from the file."""
    connection = await load_connection(kubeconfig(tmp_path, {"token": "secret"}))
    assert connection.server == "https://apiserver:6443"
    assert await connection.authorization() == "Bearer secret"
    assert connection.ssl_context is not None


async def test_whom_a_kubeconfig_impersonates_is_told_with_every_request(tmp_path: Path) -> None:
    """As by kubectl: else the requests would have all the rights of who has chosen to have fewer."""
    seen: list[list[tuple[str, str]]] = []

    async def version(request: web.Request) -> web.StreamResponse:
        seen.append([(name, value) for name, value in request.headers.items() if name.startswith("Impersonate-")])
        return await reply({"gitVersion": "v1.36.3"})(request)

    user = {
        "token": "t",
        "as": "viewer",
        "as-uid": 7,
        "as-groups": ["team", "ci"],
        "as-user-extra": {"example.org/why": ["a", "b"]},
    }
    async with FaultyApiserver.serving() as apiserver:
        apiserver.on("GET", version)
        path = kubeconfig(tmp_path, user, server=apiserver.url)
        async with await Client.connect(kubeconfig=path, user_agent="test") as client:
            await client.probe(deadline=5.0)
    assert seen == [
        [
            ("Impersonate-User", "viewer"),
            ("Impersonate-Uid", "7"),
            ("Impersonate-Group", "team"),
            ("Impersonate-Group", "ci"),
            ("Impersonate-Extra-example.org%2Fwhy", "a"),
            ("Impersonate-Extra-example.org%2Fwhy", "b"),
        ]
    ]


async def test_a_context_says_server_and_namespace(tmp_path: Path) -> None:
    """The current one, or the one that was asked for; without a namespace in it `default` is meant."""
    path = kubeconfig(tmp_path, {"token": "secret"})
    config = yaml.safe_load((tmp_path / "config").read_text())
    there = {"cluster": "other", "user": "u", "namespace": "team"}
    config["contexts"].append({"name": "there", "context": there})
    config["clusters"].append({"name": "other", "cluster": {"server": "https://other:6443"}})
    (tmp_path / "config").write_text(yaml.safe_dump(config))
    here, asked = await load_connection(path), await load_connection(path, "there")
    assert (here.server, here.namespace) == ("https://apiserver:6443", "default")
    assert (asked.server, asked.namespace, asked.context) == ("https://other:6443", "team", "there")
    with pytest.raises(ConfigError, match="nowhere"):
        await load_connection(path, "nowhere")


async def test_a_token_file_is_read_again(tmp_path: Path) -> None:
    """After a 401 the new token is used; a newline at its end is not part of it."""
    token = tmp_path / "token"
    token.write_text("first\n")
    connection = await load_connection(kubeconfig(tmp_path, {"tokenFile": str(token)}))
    assert await connection.authorization() == "Bearer first"
    token.write_text("second\n")
    assert await connection.authorization() == "Bearer first"
    connection.expire("Bearer first")
    assert await connection.authorization() == "Bearer second"
    token.unlink()
    connection.expire("Bearer second")
    assert await connection.authorization() == "Bearer second"


async def test_an_exec_plugin_is_asked_again_only_after_a_rejection(tmp_path: Path) -> None:
    """Its credential without an expiry is good until the apiserver says otherwise."""
    calls = tmp_path / "calls"
    plugin = tmp_path / "plugin"
    plugin.write_text(
        f"#!/bin/sh\necho x >> {calls}\n"
        'echo "{\\"apiVersion\\": \\"client.authentication.k8s.io/v1\\", \\"kind\\": \\"ExecCredential\\",'
        f' \\"status\\": {{\\"token\\": \\"t$(wc -l < {calls})\\"}}}}"\n'
    )
    plugin.chmod(plugin.stat().st_mode | stat.S_IXUSR)
    user = {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": str(plugin)}}
    connection = await load_connection(kubeconfig(tmp_path, user))
    assert [await connection.authorization() for _ in range(2)] == ["Bearer t1", "Bearer t1"]
    connection.expire("Bearer t1")
    assert await connection.authorization() == "Bearer t2"
    # Another request that was rejected at the same time as the first one.
    connection.expire("Bearer t1")
    assert await connection.authorization() == "Bearer t2"


@cases(
    "text",
    ("empty", ""),
    ("a list", "[1]"),
    ("not yaml", "{"),
    ("a user that is text", json.dumps(whole(users=[{"name": "u", "user": "me"}]))),
    ("a context that is text", json.dumps(whole(contexts=[{"name": "here", "context": "c"}]))),
    ("a number for a server", json.dumps(whole(clusters=[{"name": "c", "cluster": {"server": 5}}]))),
    ("context missing", "clusters: []\ncurrent-context: x\ncontexts: []\nusers: []"),
)
async def test_what_is_no_kubeconfig_is_named(tmp_path: Path, text: str) -> None:
    """One typed error that names the file, whatever is wrong in it, and no type of Python."""
    path = tmp_path / "config"
    path.write_text(text)
    with pytest.raises(ConfigError, match=rf"{path}: \S") as raised:
        await load_connection(str(path))
    assert not re.search(r"NoneType|indices|attribute|subscriptable", str(raised.value))


@cases(
    "context, current, words",
    ("a wrong one", "there", "here", 'no context "there"; it has here'),
    ("a wrong current one", None, "gone", 'no context "gone"; it has here'),
    ("no current one", None, "", "no current context, and none is named; it has here"),
)
async def test_a_context_that_is_not_there_is_named(
    tmp_path: Path, context: str | None, current: str, words: str
) -> None:
    """With those that are."""
    path = tmp_path / "config"
    path.write_text(json.dumps(whole() | {"current-context": current}))
    with pytest.raises(ConfigError) as raised:
        await load_connection(str(path), context)
    assert str(raised.value) == f"kubeconfig {path}: {words}"


async def test_the_line_that_is_no_yaml_is_named(tmp_path: Path) -> None:
    """In one line, as all errors."""
    path = tmp_path / "config"
    path.write_text("apiVersion: v1\ncontexts: [\n")
    with pytest.raises(ConfigError, match=rf"{path}: not YAML, line 3: [^\n]+$"):
        await load_connection(str(path))


async def test_a_plugin_that_never_ends_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may wait for a code that its user shall enter somewhere, and what it prints is not shown."""

    async def never(_: ExecProvider) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(config, "_LOGIN_SECONDS", 0.1)
    monkeypatch.setattr(ExecProvider, "run", never)
    user = {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "login"}}
    with pytest.raises(ConfigError, match=r"config: no credentials within 0\.1 s; an exec plugin"):
        await load_connection(kubeconfig(tmp_path, user))


@pytest.mark.parametrize(
    "server", ["http://127.0.0.1:99999", "https://[::1", "https://apiserver:https", "apiserver:6443", "x"]
)
async def test_a_server_that_is_no_address_is_named(tmp_path: Path, server: str) -> None:
    with pytest.raises(ConfigError, match=f'^server "{re.escape(server)}" is no address: '):
        await load_connection(kubeconfig(tmp_path, {"token": "secret"}, server=server))


async def test_a_missing_file_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Given, or from the environment."""
    with pytest.raises(ConfigError, match="no such file"):
        await load_connection(str(tmp_path / "none"))
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    with pytest.raises(ConfigError, match="no such file"):
        await load_connection()


async def test_a_scheme_is_one_in_any_letters(tmp_path: Path) -> None:
    """As for kubectl, and with the authority of the kubeconfig."""
    connection = await load_connection(kubeconfig(tmp_path, {"token": "t"}, server="HTTPS://apiserver:6443"))
    assert connection.ssl_context is not None


@pytest.fixture
def mounted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a pod's ServiceAccount, and the variables that a pod has."""
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(config, "SERVICE_ACCOUNT", tmp_path)
    (tmp_path / "token").write_text("mounted\n")
    (authority,) = issue(["apiserver"], dt.datetime.now(dt.UTC)).authorities
    (tmp_path / "ca.crt").write_bytes(authority.public_bytes(Encoding.PEM))
    return tmp_path


async def test_in_a_pod(mounted: Path) -> None:
    """By the two variables and the folder that each has; the token is read again when it was refused."""
    connection = await load_connection()
    assert (connection.server, connection.in_cluster) == ("https://10.0.0.1:443", True)
    assert connection.ssl_context is not None
    assert len(connection.ssl_context.get_ca_certs()) == 1, "nobody else is trusted"
    assert connection.namespace == "default"
    assert await connection.authorization() == "Bearer mounted"
    (mounted / "token").write_text("renewed")
    assert await connection.authorization() == "Bearer mounted"
    connection.expire("Bearer mounted")
    assert await connection.authorization() == "Bearer renewed"


async def test_in_a_pod_a_kubeconfig_of_the_user_counts_before_that_of_the_pod(mounted: Path) -> None:
    """As for kubectl, in a notebook say: who names a context never gets the cluster of the pod in its place."""
    with pytest.raises(ConfigError, match=r"\.kube/config: no such file"):
        await load_connection(context="here")
    (mounted / ".kube").mkdir()
    kubeconfig(mounted / ".kube", {"token": "own"})
    for context in (None, "here"):
        connection = await load_connection(context=context)
        assert (connection.server, connection.in_cluster) == ("https://apiserver:6443", False)


@cases("home", ("no home", None), ("no look into it", "/" + "h" * 300))
async def test_in_a_pod_whose_home_cannot_be_looked_into_its_own_account_counts(
    mounted: Path, monkeypatch: pytest.MonkeyPatch, home: str | None
) -> None:
    """As with a user that no image knows, or with the home of another one."""

    def unknown(uid: int) -> pwd.struct_passwd:
        raise KeyError(uid)

    del mounted
    monkeypatch.setattr(pwd, "getpwuid", unknown)
    if home is None:
        monkeypatch.delenv("HOME")
    else:
        monkeypatch.setenv("HOME", home)
    assert (await load_connection()).in_cluster


async def test_in_a_pod_its_own_namespace_is_meant(mounted: Path) -> None:
    """As by kubectl, where no kubeconfig says another one."""
    (mounted / "namespace").write_text("team\n")
    assert (await load_connection()).namespace == "team"


async def test_in_a_pod_of_a_cluster_of_ipv6(mounted: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    del mounted
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "fd00::1")
    assert (await load_connection()).server == "https://[fd00::1]:443"


@cases(
    "file, text, words",
    ("no token", "token", None, r"cannot read the token of the pod: .*No such file.*token"),
    ("empty token", "token", b"\n", r"the token of the pod is empty: .*token"),
    ("no text", "token", b"\xff", r"cannot read the token of the pod: .*decode"),
    ("no CA", "ca.crt", None, r"certificates for https://10\.0\.0\.1:443: .*No such file"),
    ("empty CA", "ca.crt", b"", r"certificates for https://10\.0\.0\.1:443: "),
)
async def test_what_a_pod_lacks_is_named(mounted: Path, file: str, text: bytes | None, words: str) -> None:
    """As with automountServiceAccountToken: false."""
    (mounted / file).unlink()
    if text is not None:
        (mounted / file).write_bytes(text)
    with pytest.raises(ConfigError, match=words):
        await load_connection()


async def test_in_a_pod_without_services(mounted: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    del mounted
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "")
    with pytest.raises(ConfigError, match="KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set"):
        await load_connection()


async def test_a_proxy_of_the_environment_is_used_unless_excepted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As kubectl does."""
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy:3128")
    path = kubeconfig(tmp_path, {"token": "t"})
    assert (await load_connection(path)).proxy == "http://proxy:3128"
    monkeypatch.setenv("NO_PROXY", "apiserver")
    assert (await load_connection(path)).proxy is None


@cases(
    "server, exceptions, direct",
    ("this machine", "https://127.0.0.1:6443", "", True),
    ("this machine by name", "https://localhost:6443", "", True),
    ("this machine by IPv6", "https://[::1]:6443", "", True),
    ("a network", "https://10.1.2.3:6443", "example.org, 10.0.0.0/8", True),
    ("a network of IPv6", "https://[fd00::1]:6443", "fd00::/8", True),
    ("another network", "https://11.1.2.3:6443", "10.0.0.0/8,fd00::/8", False),
    ("a port", "https://k8s.example.org:6443", "k8s.example.org:6443", True),
    ("another port", "https://k8s.example.org:6443", "k8s.example.org:443", False),
    ("the usual port", "https://k8s.example.org", "k8s.example.org:443", True),
    ("a domain", "https://k8s.example.org", ".example.org", True),
)
async def test_what_is_excepted_from_the_proxy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server: str, exceptions: str, *, direct: bool
) -> None:
    """As for kubectl: a cluster of kind is asked directly, and networks of NO_PROXY are heeded."""
    monkeypatch.setenv("HTTPS_PROXY", "proxy:3128")
    monkeypatch.setenv("NO_PROXY", exceptions)
    connection = await load_connection(kubeconfig(tmp_path, {"token": "t"}, server=server))
    assert connection.proxy == (None if direct else "http://proxy:3128")


@pytest.mark.parametrize("proxy", ["socks5://me:secret@127.0.0.1:1080", "me:secret@127.0.0.1:3128", 5])
async def test_a_proxy_of_another_kind_is_refused(tmp_path: Path, proxy: object) -> None:
    """Else the words of HTTP would go to it; and its password is not printed."""
    with pytest.raises(ConfigError, match="the proxy for https://apiserver:6443 is none of") as caught:
        await load_connection(kubeconfig(tmp_path, {"token": "t"}, **{"proxy-url": proxy}))
    assert "secret" not in str(caught.value)


def test_kubernetes_asyncio_is_imported_only_for_a_kubeconfig(mounted: Path) -> None:
    """Neither `muster plan` offline pays for it nor the processes of muster, which run in pods."""
    program = (
        "import asyncio, pathlib, sys, controller.__main__, webhook.__main__\n"
        "from muster.kube import config\n"
        f"config.SERVICE_ACCOUNT = pathlib.Path({str(mounted)!r})\n"
        "asyncio.run(config.load_connection())\n"
        "sys.exit('kubernetes_asyncio' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
