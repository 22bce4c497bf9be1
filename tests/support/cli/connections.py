"""The TCP connections that this process attempts, by the audit events of the interpreter."""

import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

Addresses = list[tuple[str, int]]
"""Host and port of each attempt, in order."""

_recorders: list[Addresses] = []
_installed: list[bool] = []


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "socket.connect" and arguments[0].family in {socket.AF_INET, socket.AF_INET6}:
        for recorder in _recorders:
            recorder.append(arguments[1][:2])


@contextmanager
def attempts() -> Iterator[Addresses]:
    """The attempts of the block. The interpreter keeps an audit hook for ever, so that there is one for all."""
    if not _installed:
        sys.addaudithook(_hook)
        _installed.append(True)
    recorder: Addresses = []
    _recorders.append(recorder)
    try:
        yield recorder
    finally:
        _recorders.remove(recorder)


@contextmanager
def refusing_port() -> Iterator[int]:
    """A loopback port that refuses connections: it is taken, and nobody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]


@contextmanager
def silent_port() -> Iterator[int]:
    """A loopback port that accepts connections and never says anything."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening.getsockname()[1]


def kubeconfig(port: int) -> str:
    """The text of a kubeconfig for that port."""
    return f"""
apiVersion: v1
kind: Config
clusters: [{{name: gone, cluster: {{server: "https://127.0.0.1:{port}"}}}}]
users: [{{name: nobody, user: {{token: none}}}}]
contexts: [{{name: gone, context: {{cluster: gone, user: nobody}}}}]
current-context: gone
"""


def http_kubeconfig(url: str) -> str:
    """The text of a kubeconfig for the server of a test."""
    return f"""
apiVersion: v1
kind: Config
clusters: [{{name: test, cluster: {{server: "{url}"}}}}]
contexts: [{{name: test, context: {{cluster: test, user: test}}}}]
current-context: test
users: [{{name: test, user: {{}}}}]
"""
