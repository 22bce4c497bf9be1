"""What a kubeconfig says, as kubectl reads it; tests/unit/muster/kube/test_config.py has what becomes of it."""

import base64
import datetime as dt
import json
import stat
from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml
from cryptography.hazmat.primitives.serialization import Encoding

from muster.kube.config import ConfigError, load_connection
from muster.kube.kubeconfig import Credentials, KubeconfigError, read_kubeconfig
from muster.process.certificates import issue

V1 = "client.authentication.k8s.io/v1"
PAIR = issue(["user"], dt.datetime.now(dt.UTC))
CERTIFICATE = PAIR.secret_data()
AUTHORITY = PAIR.authorities[0].public_bytes(Encoding.PEM)


def kubeconfig(folder: Path, user: Mapping[str, object] | None = None, name: str = "config", **cluster: object) -> Path:
    """A file with one context of its own name."""
    folder.mkdir(exist_ok=True)
    path = folder / name
    content = {
        "current-context": name,
        "contexts": [{"name": name, "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": f"https://{name}:6443", **cluster}}],
        "users": [{"name": "u", "user": dict(user or {})}],
    }
    path.write_text(yaml.safe_dump(content))
    return path


def plugin(folder: Path, status: object, *, code: int = 0) -> dict[str, object]:
    """A user whose plugin counts its calls in a file, and answers with this status; None where it gives no JSON."""
    answer = json.dumps({"apiVersion": V1, "kind": "ExecCredential", "status": status}) if status else "no token"
    (folder / "answer").write_text(answer)
    script = folder / "plugin"
    script.write_text(f"#!/bin/sh\necho $1 $WHO >> {folder}/calls\necho oh no >&2\ncat {folder}/answer\nexit {code}\n")
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    # As the tools of clouds write it.
    env = [{"name": "WHO", "value": "me"}]
    return {"exec": {"apiVersion": V1, "command": str(script), "args": ["get"], "env": env, "installHint": None}}


async def header(path: Path | str) -> str | None:
    return await Credentials(read_kubeconfig(str(path))).header(rejected=False)


@pytest.mark.parametrize(
    ("user", "expected"),
    [
        pytest.param({}, None, id="anonymous"),
        pytest.param({"token": "t"}, "Bearer t", id="a token"),
        pytest.param({"token": "t", "tokenFile": "token"}, "Bearer of the file", id="a file goes first"),
        pytest.param({"username": "me", "password": 7}, "Basic bWU6Nw==", id="a password"),
        pytest.param({"auth-provider": {"name": "oidc", "config": {"id-token": "i"}}}, "Bearer i", id="OpenID Connect"),
        pytest.param({"token": None, "exec": None, "as-groups": None}, None, id="nulls"),
    ],
)
async def test_credentials(tmp_path: Path, user: dict[str, object], expected: str | None) -> None:
    (tmp_path / "token").write_text("of the file\n")
    assert await header(kubeconfig(tmp_path, user)) == expected


async def test_a_provider_that_kubectl_has_no_more_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="auth-provider gcp gives no id-token; use an exec plugin"):
        await load_connection(str(kubeconfig(tmp_path, {"auth-provider": {"name": "gcp"}})))


async def test_of_several_files_the_first_that_has_a_name_counts(tmp_path: Path) -> None:
    """And names of files are relative to the folder of the file that they stand in."""
    one = kubeconfig(tmp_path / "one", {"tokenFile": "token"}, "one")
    two = kubeconfig(tmp_path / "two", {"token": "second"}, "two")
    (tmp_path / "one" / "token").write_text("first")
    both = f"{tmp_path}/none:{one}:{two}"
    assert await header(both) == "Bearer first"
    assert read_kubeconfig(both).cluster.server == "https://one:6443"
    assert read_kubeconfig(both, "two").cluster.server == "https://one:6443", "both call their cluster c"
    assert read_kubeconfig(str(two)).cluster.server == "https://two:6443"


@pytest.mark.parametrize("inline", [True, False])
async def test_certificates_of_both_sides(tmp_path: Path, inline: bool) -> None:  # noqa: FBT001
    key = base64.b64decode(CERTIFICATE["tls.key"])
    parts = {
        "client-certificate": base64.b64decode(CERTIFICATE["tls.crt"]),
        "client-key": key,
        "certificate-authority": AUTHORITY,
    }
    for name, content in parts.items():
        (tmp_path / name).write_bytes(content)
    said = {
        f"{name}-data" if inline else name: base64.b64encode(content).decode() if inline else name
        for name, content in parts.items()
    }
    authority = {key: said.pop(key) for key in list(said) if key.startswith("certificate-authority")}
    path = kubeconfig(tmp_path, said, **authority)
    access = read_kubeconfig(str(path))
    assert key in (access.certificate() or b"")
    connection = await load_connection(str(path))
    assert connection.ssl_context is not None
    (trusted,) = connection.ssl_context.get_ca_certs()
    assert trusted["serialNumber"]
    (tmp_path / "client-key").write_bytes(b"")
    broken = kubeconfig(tmp_path, {"client-certificate": "client-certificate", "client-key": "client-key"})
    with pytest.raises(ConfigError, match="certificates for https://config:6443"):
        await load_connection(str(broken))


async def test_a_plugin_is_asked_with_its_arguments_until_its_credential_expires(tmp_path: Path) -> None:
    path = kubeconfig(tmp_path, plugin(tmp_path, {"token": "t", "expirationTimestamp": "2020-01-01T00:00:00Z"}))
    credentials = Credentials(read_kubeconfig(str(path)))
    assert [await credentials.header(rejected=False) for _ in range(2)] == ["Bearer t"] * 2
    assert (tmp_path / "calls").read_text() == "get me\n" * 2
    plugin(tmp_path, {"token": "u", "expirationTimestamp": "2999-01-01T00:00:00Z"})
    assert [await credentials.header(rejected=False) for _ in range(2)] == ["Bearer u"] * 2
    assert (tmp_path / "calls").read_text() == "get me\n" * 3


async def test_a_plugin_may_give_a_certificate(tmp_path: Path) -> None:
    certificate, key = (base64.b64decode(CERTIFICATE[name]).decode() for name in ("tls.crt", "tls.key"))
    user = plugin(tmp_path, {"clientCertificateData": certificate, "clientKeyData": key})
    credentials = Credentials(read_kubeconfig(str(kubeconfig(tmp_path, user))))
    assert await credentials.header(rejected=False) is None
    assert key.encode() in (credentials.certificate() or b"")
    assert (await load_connection(str(tmp_path / "config"))).ssl_context is not None


@pytest.mark.parametrize(
    ("status", "code", "words"),
    [
        pytest.param({"token": "t"}, 3, r"plugin returned 3: oh no", id="fails"),
        pytest.param(None, 0, "is no ExecCredential: not JSON", id="no JSON"),
        pytest.param("token", 0, "is no ExecCredential: status", id="no status"),
    ],
)
async def test_a_plugin_that_gives_no_credential_is_named(
    tmp_path: Path, status: object, code: int, words: str
) -> None:
    with pytest.raises(KubeconfigError, match=words):
        await header(kubeconfig(tmp_path, plugin(tmp_path, status, code=code)))


async def test_a_plugin_that_is_not_there_is_named(tmp_path: Path) -> None:
    user = {"exec": {"apiVersion": V1, "command": "/nowhere/login"}}
    with pytest.raises(ConfigError, match=r"No such file or directory: '/nowhere/login'"):
        await load_connection(str(kubeconfig(tmp_path, user)))


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"current-context": ""}, "current-context is not set"),
        ({"current-context": "gone"}, 'context "gone" does not exist'),
        ({"clusters": None}, 'cluster "c" of context "config" does not exist'),
    ],
)
def test_what_is_not_there_is_named(tmp_path: Path, changed: dict[str, object], words: str) -> None:
    path = kubeconfig(tmp_path)
    path.write_text(yaml.safe_dump({**yaml.safe_load(path.read_text()), **changed}))
    with pytest.raises(KubeconfigError, match=words):
        read_kubeconfig(str(path))
