"""Kubeconfig files, merged as kubectl merges them; the cluster and the user of one context count.

A library for this loads a class for each kind of Kubernetes with it: 0.3 s of CPU at the start of each command.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import yaml

from muster.model.objects import InvalidObjectError, LocalObject, convert, decode
from muster.model.times import seconds_of

# libyaml, when PyYAML has it, is ten times as fast.
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_Text = str | int


class _Part(msgspec.Struct, rename="kebab", frozen=True, kw_only=True):
    """A part of a kubeconfig; unknown fields are ignored."""


class Cluster(_Part, frozen=True):
    """The address of an apiserver, and the CA to verify it with."""

    server: str = ""
    certificate_authority: str = ""
    certificate_authority_data: str = ""
    insecure_skip_tls_verify: bool = False
    tls_server_name: str | None = None
    proxy_url: _Text | None = None


class _Variable(LocalObject, frozen=True):
    name: str
    value: str = ""


class _Exec(LocalObject, frozen=True):
    command: str
    api_version: str
    args: tuple[str, ...] = ()
    env: tuple[_Variable, ...] = ()


class _Provider(_Part, frozen=True):
    name: str = ""
    config: Mapping[str, str] = {}


class User(_Part, frozen=True):
    """The credentials of a user, and whom the requests impersonate."""

    token: str = ""
    token_file: str = msgspec.field(name="tokenFile", default="")
    username: _Text = ""
    password: _Text = ""
    client_certificate: str = ""
    client_certificate_data: str = ""
    client_key: str = ""
    client_key_data: str = ""
    exec: _Exec | None = None
    auth_provider: _Provider | None = None
    as_: _Text = msgspec.field(name="as", default="")
    as_uid: _Text = ""
    as_groups: tuple[str, ...] = ()
    as_user_extra: Mapping[str, tuple[_Text, ...]] = {}


class _Context(_Part, frozen=True):
    cluster: str = ""
    user: str = ""
    namespace: str = ""


class _NamedCluster(_Part, frozen=True):
    name: str
    cluster: Cluster


class _NamedUser(_Part, frozen=True):
    name: str
    user: User


class _NamedContext(_Part, frozen=True):
    name: str
    context: _Context


class _File(_Part, frozen=True):
    current_context: str = ""
    contexts: tuple[_NamedContext, ...] = ()
    clusters: tuple[_NamedCluster, ...] = ()
    users: tuple[_NamedUser, ...] = ()


class _Status(LocalObject, frozen=True):
    token: str = ""
    client_certificate_data: str = ""
    client_key_data: str = ""
    expiration_timestamp: str = ""


class _Credential(LocalObject, frozen=True):
    api_version: str
    status: _Status


class KubeconfigError(ValueError):
    """A kubeconfig cannot be used; the message gives the reason."""


@dataclass(frozen=True, slots=True)
class Access:
    """The cluster and the user of a context; the files that they name are relative to these folders."""

    cluster: Cluster
    user: User
    namespace: str
    cluster_folder: Path
    user_folder: Path

    @property
    def authority(self) -> Path | None:
        """The file with the CA; None without one, or when the kubeconfig contains the CA."""
        name = self.cluster.certificate_authority
        return None if self.cluster.certificate_authority_data or not name else self.cluster_folder / name

    @property
    def authority_text(self) -> str | None:
        """The CA that the kubeconfig contains, in PEM. Raises ValueError when it is not base64."""
        data = self.cluster.certificate_authority_data
        return b64decode(data).decode() if data else None

    def certificate(self) -> bytes | None:
        """The user's certificate and key, in PEM. Raises OSError and ValueError."""
        user = self.user
        parts = [
            b64decode(data) if data else (self.user_folder / name).read_bytes()
            for data, name in (
                (user.client_certificate_data, user.client_certificate),
                (user.client_key_data, user.client_key),
            )
            if data or name
        ]
        return b"\n".join(parts) or None


def read_kubeconfig(paths: str, context: str | None = None) -> Access:
    """The access by this context, else the current one, of files between `os.pathsep`; missing ones are skipped.

    As for kubectl, the first file that has a name counts. Raises OSError, yaml.YAMLError and ValueError.
    """
    contexts: dict[str, _Context] = {}
    clusters: dict[str, tuple[Cluster, Path]] = {}
    users: dict[str, tuple[User, Path]] = {}
    current = context or ""
    for path in map(Path.expanduser, map(Path, filter(None, paths.split(os.pathsep)))):
        if not path.is_file():
            continue
        file, folder = _file(path), path.absolute().parent
        current = current or file.current_context
        for one in file.contexts:
            contexts.setdefault(one.name, one.context)
        for there in file.clusters:
            clusters.setdefault(there.name, (there.cluster, folder))
        for entry in file.users:
            users.setdefault(entry.name, (entry.user, folder))
    if not current:
        raise KubeconfigError("current-context is not set")
    if current not in contexts:
        raise KubeconfigError(f'context "{current}" does not exist')
    chosen = contexts[current]
    if chosen.cluster not in clusters:
        raise KubeconfigError(f'cluster "{chosen.cluster}" of context "{current}" does not exist')
    (cluster, cluster_folder), (user, user_folder) = clusters[chosen.cluster], users.get(chosen.user, (User(), Path()))
    return Access(cluster, user, chosen.namespace, cluster_folder, user_folder)


def _file(path: Path) -> _File:
    found = yaml.load(path.read_text(), _LOADER)  # noqa: S506 - it is a safe loader
    if not isinstance(found, dict):
        raise KubeconfigError("not a kubeconfig")
    return convert(found, _File)


@dataclass(slots=True)
class Credentials:
    """The credentials of a user, renewed where they can be.

    :ivar access: the cluster and the user
    :ivar status: the last answer of the exec plugin; None before, and without a plugin
    """

    access: Access
    status: _Status | None = field(default=None, init=False)

    async def header(self, *, rejected: bool) -> str | None:
        """The Authorization header, or None for a certificate or no credentials.

        Without an expiry the credential of an exec plugin is good until it is `rejected`, as for kubectl. Raises
        OSError and ValueError.
        """
        user = self.access.user
        if user.exec is not None:
            if rejected or self.status is None or self._expired(self.status):
                self.status = await _run(user.exec)
            return f"Bearer {self.status.token}" if self.status.token else None
        if user.auth_provider is not None:
            return f"Bearer {_id_token(user.auth_provider)}"
        token = (self.access.user_folder / user.token_file).read_text().strip() if user.token_file else user.token
        if token:
            return f"Bearer {token}"
        return f"Basic {b64encode(f'{user.username}:{user.password}'.encode()).decode()}" if user.username else None

    @staticmethod
    def _expired(status: _Status) -> bool:
        end = seconds_of(status.expiration_timestamp)
        return end is not None and end <= time.time()

    def certificate(self) -> bytes | None:
        """The certificate and the key in PEM: the plugin's, else the user's. Raises OSError and ValueError."""
        if self.status is not None and self.status.client_certificate_data:
            return f"{self.status.client_certificate_data}\n{self.status.client_key_data}".encode()
        return self.access.certificate()


def _id_token(provider: _Provider) -> str:
    """The token that kubectl renews in the kubeconfig."""
    if provider.name != "oidc" or "id-token" not in provider.config:
        raise KubeconfigError(f"auth-provider {provider.name} gives no id-token; use an exec plugin")
    return provider.config["id-token"]


async def _run(plugin: _Exec) -> _Status:
    """The credential of an exec plugin, which may talk to its user. Raises OSError and KubeconfigError."""
    info = {
        "apiVersion": plugin.api_version,
        "kind": "ExecCredential",
        "spec": {"interactive": sys.stdin is not None and sys.stdin.isatty()},
    }
    environment = os.environ | {one.name: one.value for one in plugin.env} | {"KUBERNETES_EXEC_INFO": json.dumps(info)}
    process = await asyncio.create_subprocess_exec(
        plugin.command,
        *plugin.args,
        env=environment,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        out, err = await process.communicate()
    finally:
        if process.returncode is None:  # the caller waits no longer
            process.kill()
    if process.returncode:
        output = err.decode(errors="replace").strip()
        raise KubeconfigError(f"exec: {plugin.command} returned {process.returncode}: {output}")
    try:
        found = decode(out, _Credential)
    except InvalidObjectError as error:
        raise KubeconfigError(f"exec: the answer of {plugin.command} is no ExecCredential: {error}") from error
    if found.api_version != plugin.api_version:
        raise KubeconfigError(f"exec: {plugin.command} answers with {found.api_version}, not {plugin.api_version}")
    return found.status
