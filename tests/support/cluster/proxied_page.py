"""The page of a release in its pod, as people come to it: by the apiserver's service proxy, and by `kubectl proxy`."""

import http.client
from collections.abc import Iterator
from contextlib import contextmanager

from hack.testbed import PATIENCE, Testbed, wait_for
from hack.testbed.nodes import REAL
from hack.testbed.ports import free_port
from tests.support.cluster.helm_release import NAMESPACE, WITHIN, Release
from tests.support.pages.blocks import block
from tests.support.pages.walkthrough import Shell

SECRET = "a-secret-of-the-tests"  # noqa: S105 - of tests
SERVICE = "http:muster-page:http"
PATH = f"/api/v1/namespaces/{NAMESPACE}/services/{SERVICE}/proxy/{SECRET}/"
"""The page, at the apiserver."""
READERS = [{"apiGroups": [""], "resources": ["services/proxy"], "resourceNames": [SERVICE], "verbs": ["get"]}]
"""The rules of docs/page.md for those who may read it."""

_SECRET_NAME = "muster-page"  # noqa: S105 - the name of a Secret, as the page has it
_PROXY = "kubectl proxy"


@contextmanager
def installed(release: Release) -> Iterator[None]:
    """The release with as little as there can be, to which docs/page.md adds the page; it goes with the block."""
    commands, proxies, _ = block("docs/page.md", "kubectl --namespace muster-system create secret").partition(_PROXY)
    assert proxies
    values = (
        f"page.tolerations[0].key={REAL},page.tolerations[0].operator=Exists",
        *("webhook.replicas=1", "controller.replicas=1"),
    )
    settings = (f"--set={value}" for value in values)
    release.helm("install", *release.values, *settings, "--wait", WITHIN)
    try:
        Shell.on(release.testbed, {}).obey(commands.replace("$(openssl rand -hex 24)", SECRET))
        release.kubectl("rollout", "status", "deployment/muster-page", WITHIN)
        yield
    finally:
        release.helm("uninstall", "--wait", WITHIN)
        release.kubectl("delete", "secret", _SECRET_NAME)


@contextmanager
def proxy(testbed: Testbed) -> Iterator[int]:
    """`kubectl proxy`, as the administrator, on this port."""
    port = free_port()
    process = testbed.spawn(
        "kubectl-proxy",
        [str(testbed.program("kubectl")), *_PROXY.split()[1:], f"--port={port}"],
        env=testbed.environment(),
    )
    try:
        wait_for("kubectl proxy to serve", lambda: _status(port, "/version") == http.client.OK)
        yield port
    finally:
        process.stop(60)


def _status(port: int, path: str) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    try:
        connection.request("GET", path)
        return connection.getresponse().status
    except OSError:
        return 0
    finally:
        connection.close()


def told(port: int) -> str:
    """The first event of the page's stream, as it comes through both proxies, which must not keep it back."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    try:
        connection.request("GET", f"{PATH}events?since=0")
        answer = connection.getresponse()
        lines = [answer.readline().decode().strip() for _ in range(2)]
        return f"{answer.headers['Content-Type']} {' '.join(lines)}"
    finally:
        connection.close()
