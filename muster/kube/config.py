"""The address of the apiserver, and the credentials for it.

The only module that uses kubernetes-asyncio, which knows kubeconfig files and exec plugins. It is imported when a
kubeconfig is loaded, not before: it has a class for each kind of Kubernetes, which costs 0.25 s and 37 MB. Neither
`muster plan` nor a pod needs that: a pod has two variables and two files.
"""

import asyncio
import ipaddress
import logging
import os
import ssl
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit
from urllib.request import getproxies, proxy_bypass

import yaml

logger = logging.getLogger(__name__)

# Mounted tokens are renewed by the kubelet at 80 % of their life, at least 10 minutes: a minute is soon enough.
_REFRESH_SECONDS = 60.0
# An exec plugin may ask a cloud; a hanging one must not hold up requests for ever.
_LOGIN_SECONDS = 30.0
# Characters of a header's name other than letters, digits and those never escaped; without the % of an escape.
_HEADER = "!#$&'*+^`|"
SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""The folder in which the kubelet mounts a pod's token, which it renews, and the apiserver's CA."""


class ConfigError(Exception):
    """No usable configuration; the message names the places that were searched."""


class Connection:
    """An apiserver's address, trust and credentials.

    `server` is the base URL, `server_hostname` the name to verify instead of the URL's, `proxy` an HTTP proxy's URL,
    `namespace` the default one, `context` the name of the kubeconfig's context, `in_cluster` is True for the connection
    of a pod, `impersonation` has the headers that ask for the rights of another user. `login` returns the current value
    of the Authorization header; it is called again every minute, and after `expire` with True, because the last one was
    rejected.
    """

    def __init__(
        self,
        server: str,
        *,
        ssl_context: ssl.SSLContext | None = None,
        ca_file: str | None = None,
        server_hostname: str | None = None,
        proxy: str | None = None,
        login: Callable[[bool], Awaitable[str | None]] | None = None,
    ) -> None:
        self.server = server.rstrip("/")
        self.ssl_context = ssl_context
        self.server_hostname = server_hostname
        self.proxy = proxy
        self.namespace = "default"
        self.context = ""
        self.in_cluster = False
        self.impersonation: tuple[tuple[str, str], ...] = ()
        self._ca_file = ca_file
        self._login = login
        self._lock = asyncio.Lock()
        self._header: str | None = None
        self._asked_at: float | None = None
        self._rejected = False

    async def authorization(self) -> str | None:
        """Return the Authorization header's value, or None for anonymous or certificate access.

        When renewing fails the last value is returned again, and the failure is logged: the apiserver rejects it once
        it has expired. Raises ConfigError when there never was one.
        """
        if self._login is None or self._fresh():
            return self._header
        async with self._lock:
            if self._fresh():
                return self._header
            try:
                async with asyncio.timeout(_LOGIN_SECONDS):
                    # A newline at a token file's end would make an illegal header.
                    self._header = ((await self._login(self._rejected)) or "").strip() or None
            except (ConfigError, OSError) as error:
                why = _problem(error)
                if self._asked_at is None:
                    raise ConfigError(f"no credentials: {why}") from error
                logger.warning(
                    "cannot renew credentials; using the last ones: %s", why, extra={"event": "credentials.stale"}
                )
            self._asked_at = time.monotonic()
            self._rejected = False
        return self._header

    def expire(self, header: str | None) -> None:
        """Forget the credentials if they are still these: the apiserver answered 401.

        If many requests are rejected at the same time, one renews them for all.
        """
        if header == self._header:
            self._rejected = True

    def reload_trust(self) -> None:
        """Read the CA file again, for new connections, when the server's certificate was not trusted."""
        if self.ssl_context is not None and self._ca_file is not None:
            try:
                self.ssl_context.load_verify_locations(cafile=self._ca_file)
            except (OSError, ssl.SSLError) as error:
                logger.warning(
                    "cannot read the apiserver's CA %s: %s", self._ca_file, error, extra={"event": "credentials.ca"}
                )

    def _fresh(self) -> bool:
        if self._rejected or self._asked_at is None:
            return False
        return time.monotonic() < self._asked_at + _REFRESH_SECONDS


async def load_connection(kubeconfig: str | None = None, context: str | None = None) -> Connection:
    """Load the given kubeconfig, else `$KUBECONFIG`, else `~/.kube/config`, else the pod's own service account.

    `context` is one of the kubeconfig's, else its current one counts: with a context the cluster of the pod is never
    meant. Raises ConfigError.
    """
    path = kubeconfig or os.environ.get("KUBECONFIG") or _default(context)
    return await (_from_kubeconfig(path, context) if path else _in_cluster())


def _default(context: str | None) -> str:
    """Return the kubeconfig to use when none is named, "" for the service account of the pod.

    As for kubectl: people work in pods as well, in a notebook or a job of CI, with a kubeconfig for other clusters.
    """
    home = os.path.expanduser("~/.kube/config")  # noqa: PTH111 - Path.home() raises where there is no home
    return home if context or "KUBERNETES_SERVICE_HOST" not in os.environ or _exists(home) else ""


async def _in_cluster() -> Connection:
    host, port = (os.environ.get(f"KUBERNETES_SERVICE_{part}", "") for part in ("HOST", "PORT"))
    if not host or not port:
        raise ConfigError("in-cluster configuration: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set")
    token = SERVICE_ACCOUNT / "token"

    async def login(_rejected: bool) -> str:  # noqa: FBT001 - the signature of a login
        try:
            text = token.read_text().strip()
        except (OSError, ValueError) as error:
            raise ConfigError(f"in-cluster configuration: cannot read the token of the pod: {error}") from error
        if not text:
            raise ConfigError(f"in-cluster configuration: the token of the pod is empty: {token}")
        return f"Bearer {text}"

    await login(False)
    server = f"https://{f'[{host}]' if ':' in host else host}:{port}"
    connection = _connection(server, login, ca_file=str(SERVICE_ACCOUNT / "ca.crt"))
    connection.in_cluster = True
    with suppress(OSError, ValueError):  # as kubectl, which means the pod's own namespace there
        connection.namespace = (SERVICE_ACCOUNT / "namespace").read_text().strip() or connection.namespace
    return connection


async def _from_kubeconfig(path: str, context: str | None) -> Connection:
    from kubernetes_asyncio.client import Configuration  # noqa: PLC0415
    from kubernetes_asyncio.config import ConfigException, load_kube_config  # noqa: PLC0415
    from kubernetes_asyncio.config.kube_config import KubeConfigMerger  # noqa: PLC0415

    # kubernetes-asyncio only warns of a missing file, and then fails with a TypeError.
    if not _exists(path):
        raise ConfigError(f"kubeconfig {path}: no such file")
    configuration = Configuration()
    # Its error for a file that is no kubeconfig depends on the fault in the file.
    wrong_types = (AssertionError, AttributeError, KeyError, TypeError, ValueError)
    mistakes = (ConfigException, OSError, yaml.YAMLError, *wrong_types)
    try:
        async with asyncio.timeout(_LOGIN_SECONDS):
            loader = await load_kube_config(path, context, configuration)
        impersonation = tuple(_impersonation(loader._user.value if loader._user else {}))  # noqa: SLF001
    except mistakes as error:
        problem = _problem(error)
        if isinstance(error, ConfigException):
            with suppress(*mistakes):
                if merged := KubeConfigMerger(path).config:
                    problem = _missing_context(merged.value, context) or problem
        raise ConfigError(f"kubeconfig {path}: {problem}") from error
    # As client-go: without an expiry an exec plugin's credential is good until a 401, not to be asked for each minute.
    until_rejected = "exec" in (loader._user or ()) and not hasattr(loader, "exec_plugin_expiry")  # noqa: SLF001

    async def login(rejected: bool) -> str | None:  # noqa: FBT001
        if rejected and hasattr(loader, "exec_plugin_expiry"):
            del loader.exec_plugin_expiry  # else the plugin is not asked before its credential's own expiry
        if rejected or not until_rejected:
            try:
                await loader.load_and_set(configuration)
            except mistakes as error:
                raise ConfigError(f"kubeconfig {path}: {_problem(error)}") from error
        return configuration.api_key.get("BearerToken")

    connection = _connection(
        str(configuration.host),
        login,
        ca_file=configuration.ssl_ca_cert,
        certificate=(configuration.cert_file, configuration.key_file) if configuration.cert_file else None,
        verify=configuration.verify_ssl,
        server_hostname=configuration.tls_server_name,
        proxy=configuration.proxy,
    )
    connection.context = (loader.current_context or {}).get("name", "")
    connection.namespace = (loader.current_context or {}).get("context", {}).get("namespace") or connection.namespace
    connection.impersonation = impersonation
    return connection


def _problem(error: Exception) -> str:
    """Return the error in words; some have none."""
    if isinstance(error, TimeoutError):
        return f"no credentials within {_LOGIN_SECONDS:g} s; an exec plugin that asks its user cannot do so here"
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark:
        return f"not YAML, line {error.problem_mark.line + 1}: {error.problem}"
    if isinstance(error, AttributeError | TypeError):  # of kubernetes-asyncio, which checks no types
        return "not a kubeconfig, or a part of it has the wrong type"
    return str(error) or "not a kubeconfig"


def _missing_context(merged: Mapping[str, Any], context: str | None) -> str:
    """Return what is wrong if the kubeconfig lacks the context, or names none; "" if it has it."""
    names = [str(one["name"]) for one in merged.get("contexts") or ()]
    wanted = context or merged.get("current-context")
    if wanted in names:
        return ""
    has = f"it has {', '.join(names)}" if names else "it has none"
    return f'no context "{wanted}"; {has}' if wanted else f"no current context, and none is named; {has}"


def _impersonation(user: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the headers for the fields of a kubeconfig's user that kubernetes-asyncio does not read.

    Without them, a user who has chosen to work with fewer rights would work with all of their own.
    """
    for field, header in (("as", "User"), ("as-uid", "Uid")):
        if user.get(field):
            yield f"Impersonate-{header}", str(user[field])
    for group in user.get("as-groups") or ():
        yield "Impersonate-Group", str(group)
    for key, values in (user.get("as-user-extra") or {}).items():
        for value in values:
            # Names of headers are narrower than keys; `/` is the usual one that has to be written otherwise.
            yield f"Impersonate-Extra-{quote(str(key), safe=_HEADER)}", str(value)


def _exists(paths: str) -> bool:
    # pathlib would raise where there is no home, or where the folder is another user's.
    parts = (os.path.expanduser(part) for part in paths.split(os.pathsep) if part)  # noqa: PTH111
    return any(map(os.path.isfile, parts))


def _connection(
    server: str,
    login: Callable[[bool], Awaitable[str | None]],
    *,
    ca_file: str | None,
    certificate: tuple[str, str | None] | None = None,
    verify: bool = True,
    server_hostname: str | None = None,
    proxy: str | None = None,
) -> Connection:
    """Return a connection; the key of a certificate is in the second file, or in the same."""
    if not server.lower().startswith(("https://", "http://")):
        raise ConfigError(f'server "{server}" is no address: it does not begin with https://')
    try:
        _ = urlsplit(server).port
    except ValueError as error:
        raise ConfigError(f'server "{server}" is no address: {error}') from error
    proxy = proxy or _environment_proxy(server)
    if proxy and not str(proxy).lower().startswith(("http://", "https://")):
        # Without its address, which may contain a password.
        raise ConfigError(f"the proxy for {server} is none of http:// or https://, and no other is supported")
    context = None
    if server.lower().startswith("https"):
        try:
            context = ssl.create_default_context(cafile=ca_file)
            if certificate:
                context.load_cert_chain(*certificate)
        except OSError as error:  # ssl.SSLError is one
            raise ConfigError(f"certificates for {server}: {error}") from error
        if not verify:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        # Python 3.13 demands extensions that Go does not, and that the CAs of some distributions lack.
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return Connection(
        server,
        ssl_context=context,
        ca_file=ca_file,
        server_hostname=server_hostname,
        proxy=proxy,
        login=login,
    )


def _environment_proxy(server: str) -> str | None:
    # As client-go. aiohttp's trust_env would do it too, but also send ~/.netrc passwords in place of our token.
    url = urlsplit(server)
    if not url.hostname or _direct(url.hostname, url.port or (443 if url.scheme == "https" else 80)):
        return None
    proxy = getproxies().get(url.scheme)
    return proxy if not proxy or "://" in proxy else f"http://{proxy}"


def _direct(host: str, port: int) -> bool:
    """True if the environment has no proxy for a host.

    As Go's programs have none for the machine itself, nor for the networks of NO_PROXY, which Python does not know.
    """
    if host == "localhost" or proxy_bypass(f"{host}:{port}"):
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    return address.is_loopback or any(address in network for network in _networks(getproxies().get("no", "")))


def _networks(texts: str) -> Iterator[ipaddress.IPv4Network | ipaddress.IPv6Network]:
    for text in texts.split(","):
        with suppress(ValueError):  # the name of a host
            yield ipaddress.ip_network(text.strip(), strict=False)
