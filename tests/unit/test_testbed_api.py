"""The testbed's own requests: a busy apiserver makes them take longer, and what it refuses is said at once."""

import http.server
import json
import socket
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from hack.testbed import CommandError, Testbed, TestbedError
from hack.testbed.api import Api
from hack.testbed.pki import Authority, write_pair
from hack.testbed.site import Site
from tests.support.cases import cases

_PATH = "/api/v1/namespaces/default/pods"
_Given = tuple[int, dict[str, Any]]
_MADE: _Given = (201, {"metadata": {"name": "a"}})
_RESET: _Given = (0, {})
"""For an answer: the connection ends without one."""


class _Apiserver(http.server.ThreadingHTTPServer):
    """Gives the answers that a test has queued, and the last one from then on."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answers)
        self.answers: list[_Given] = []
        self.asked: list[str] = []

    def handle_error(self, request: object, client_address: object) -> None:
        """A client may be gone."""


class _Answers(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def _answer(self) -> None:
        server = cast("_Apiserver", self.server)
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        server.asked.append(f"{self.command} {self.path}")
        status, body = server.answers.pop(0) if len(server.answers) > 1 else server.answers[0]
        if not status:
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)
            return
        text = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    do_GET = do_POST = do_DELETE = _answer  # noqa: N815 - as http.server calls them

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def apiserver(tmp_path: Path) -> Iterator[_Apiserver]:
    authority = Authority.create("testbed")
    write_pair(tmp_path, "server", authority.issue(["127.0.0.1"]))
    (tmp_path / "ca.crt").write_bytes(authority.pem()[0])
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(tmp_path / "server.crt", tmp_path / "server.key")
    with _Apiserver() as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        serving = threading.Thread(target=server.serve_forever)
        serving.start()
        yield server
        server.shutdown()
        serving.join()


@pytest.fixture
def api(apiserver: _Apiserver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Api]:
    monkeypatch.setattr("hack.testbed.api._BUSY_SECONDS", 0.01)
    api = Api(f"https://127.0.0.1:{apiserver.server_port}", "token", tmp_path / "ca.crt")
    yield api
    api.close()


def _status(code: int, reason: str = "", message: str = "", name: str = "a") -> _Given:
    return code, {"kind": "Status", "reason": reason, "message": message, "details": {"name": name}}


_PASSING = [
    pytest.param(_status(429, "TooManyRequests"), id="429"),
    pytest.param(_status(500, "ServerTimeout"), id="the storage is initializing"),
    pytest.param(_status(500, message="etcdserver: request timed out"), id="etcd is slow"),
    pytest.param(_status(502), id="502"),
    pytest.param(_status(503, "ServiceUnavailable"), id="503"),
    pytest.param(_status(504, "Timeout", "request did not complete within requested timeout"), id="504"),
    pytest.param(_RESET, id="a broken connection"),
]


@pytest.mark.parametrize("busy", _PASSING)
def test_what_a_busy_apiserver_has_no_time_for_is_asked_again(api: Api, apiserver: _Apiserver, busy: _Given) -> None:
    apiserver.answers = [busy, busy, busy, _MADE]
    assert api.create(_PATH, {"metadata": {"name": "a"}}) == _MADE[1]


@cases(
    "refusal",
    ("403", _status(403, "Forbidden", "no")),
    ("409", _status(409, "AlreadyExists", "no")),
    ("a webhook", _status(500, "InternalError", 'failed calling webhook "ray.pods.muster.dev": no')),
)
def test_a_refusal_is_said_at_once(api: Api, apiserver: _Apiserver, refusal: _Given) -> None:
    apiserver.answers = [refusal, _MADE]
    with pytest.raises(TestbedError, match=r"no$"):
        api.create(_PATH, {"metadata": {"name": "a"}})
    assert len(apiserver.asked) == 1


def test_what_was_made_before_its_answer_was_lost_is_what_the_next_attempt_finds(
    api: Api, apiserver: _Apiserver
) -> None:
    apiserver.answers = [_status(504, "Timeout"), _status(409, "AlreadyExists"), (200, {"metadata": {"uid": "u"}})]
    assert api.create(f"{_PATH}?fieldManager=x", {"metadata": {"name": "a"}}) == {"metadata": {"uid": "u"}}
    assert apiserver.asked[-1] == f"GET {_PATH}/a"


@pytest.fixture
def kubectl(tmp_path: Path) -> Path:
    """A kubectl that fails twice, with the words of the file `words`, before it prints ok."""
    program = tmp_path / "kubectl"
    program.write_text(
        f"#!/bin/sh\ncd {tmp_path}\necho >> runs\n[ $(wc -l < runs) -gt 2 ] && echo ok && exit\ncat words >&2\nexit 1\n"
    )
    program.chmod(0o755)
    return program


def _testbed(folder: Path, kubectl: Path) -> Testbed:
    site = SimpleNamespace(
        **dict.fromkeys(("state", "logs", "ca_file"), folder),
        **dict.fromkeys(("server", "service_range", "nodes"), ""),
        kubeconfig_of=lambda _: folder / "kubeconfig",
    )
    return Testbed(cast("Site", site), {"kubectl": kubectl, "helm": kubectl})


@pytest.mark.parametrize(
    "words",
    [
        "Error from server (Timeout): error when creating: request did not complete within requested timeout",
        "Error from server (TooManyRequests): the server is currently unable to handle the request",
        "Unable to connect to the server: net/http: TLS handshake timeout",
        "Error: INSTALLATION FAILED: etcdserver: request timed out",
    ],
)
def test_kubectl_and_helm_are_run_again_where_the_apiserver_had_no_time(
    tmp_path: Path, kubectl: Path, words: str
) -> None:
    (tmp_path / "words").write_text(words)
    assert _testbed(tmp_path, kubectl).kubectl("get", "pods").stdout == "ok\n"


@pytest.mark.parametrize("words", ["Error from server (Forbidden): no", "context deadline exceeded", ""])
def test_what_kubectl_and_helm_are_refused_is_said_at_once(tmp_path: Path, kubectl: Path, words: str) -> None:
    (tmp_path / "words").write_text(words)
    with pytest.raises(CommandError):
        _testbed(tmp_path, kubectl).helm("install")
    assert (tmp_path / "runs").read_text() == "\n"
