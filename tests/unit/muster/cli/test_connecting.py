"""Without a cluster every command answers after a single attempt, in kubectl's words."""

import asyncio
import signal
import sys
from pathlib import Path

import pytest

from hack.testbed.costs import stat
from hack.testbed.waiting import PATIENCE
from muster.cli import CONNECT_TIMEOUT
from muster.cli.commands import parser
from muster.cli.connecting import NoClusterError, connected, first_answer
from muster.kube.config import Connection
from muster.model.names import GANG, GATE
from tests.support.cases import cases
from tests.support.cli.command import Command, cluster_options
from tests.support.cli.connections import attempts, kubeconfig, refusing_port, silent_port
from tests.support.faults.apiserver import (
    Answer,
    FaultyApiserver,
    eventually,
    failure,
    hang,
    html,
    listing,
    manifest,
    reply,
)

COMMANDS = {
    "plan": ("plan", "--cluster", "-f", "docs/examples/raycluster.yaml"),
    "explain": ("explain", "raycluster/demo"),
    "queues": ("queues",),
    "watch": ("watch",),
    "page": ("page",),
    "audit": ("audit",),
    "doctor": ("doctor",),
    "release": ("release", "demo"),
    "withdraw": ("withdraw",),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_refused_connection_is_one_attempt_and_one_line(command: Command, name: str) -> None:
    with refusing_port() as port, attempts() as made:
        done = command.run(*COMMANDS[name], f"--kubeconfig={command.file(kubeconfig(port))}")
    assert made == [("127.0.0.1", port)]
    assert (done.code, done.out) == (2, "")
    assert done.err == (
        f"muster {name}: The connection to the server 127.0.0.1:{port} was refused - "
        "did you specify the right host or port?\n"
    )


@pytest.mark.parametrize("name", COMMANDS)
def test_a_silent_server_is_one_attempt_and_one_deadline(command: Command, name: str) -> None:
    with silent_port() as port, attempts() as made:
        config = f"--kubeconfig={command.file(kubeconfig(port))}"
        done = command.run(*COMMANDS[name], config, "--connect-timeout=0.05")
    assert made == [("127.0.0.1", port)]
    assert (done.code, done.out) == (2, "")
    assert done.err == (
        f"muster {name}: Unable to connect to the server: no answer from https://127.0.0.1:{port} within 0.05 s; "
        "for a slow connection use --connect-timeout, or set MUSTER_CONNECT_TIMEOUT\n"
    )


def test_a_proxy_that_refuses_is_not_taken_for_the_apiserver(command: Command) -> None:
    with refusing_port() as port:
        text = kubeconfig(6443).replace("cluster: {", f'cluster: {{proxy-url: "http://127.0.0.1:{port}", ', 1)
        done = command.run("queues", f"--kubeconfig={command.file(text)}")
    assert (done.code, done.out) == (2, "")
    said = "muster queues: Unable to connect to the server: no proxy answers: https://127.0.0.1:6443: "
    assert done.err.startswith(f"{said}Cannot connect to host 127.0.0.1:{port} ")


@cases("told, within", ("option", None, "1.5"), ("environment", "0.05", "0.05"))
def test_the_deadline_comes_from_the_environment(
    command: Command, monkeypatch: pytest.MonkeyPatch, told: str | None, within: str
) -> None:
    """After a second the command says that it waits."""
    monkeypatch.delenv(CONNECT_TIMEOUT)
    if told:
        monkeypatch.setenv(CONNECT_TIMEOUT, told)
    with silent_port() as port:
        options = () if told else (f"--connect-timeout={within}",)
        done = command.run("queues", f"--kubeconfig={command.file(kubeconfig(port))}", *options)
    assert f" within {within} s;" in done.err
    waiting = f"muster: waiting for an answer from https://127.0.0.1:{port}\n"
    assert done.err.startswith(waiting) is (told is None)


@pytest.mark.parametrize("told", ["0", "-1", "nan", "inf", "soon"])
@pytest.mark.parametrize("by", ["the option", "the environment"])
def test_a_deadline_is_a_number_above_0(command: Command, monkeypatch: pytest.MonkeyPatch, told: str, by: str) -> None:
    monkeypatch.setenv(CONNECT_TIMEOUT, told if by == "the environment" else "1")
    done = command.run("queues", *([f"--connect-timeout={told}"] if by == "the option" else []))
    assert (done.code, done.err.splitlines()[-1]) == (
        2,
        f"muster queues: error: argument --connect-timeout: '{told}' is not a number of seconds above 0",
    )


@pytest.mark.parametrize("told", ["-1", "nan", "inf", "soon"])
def test_reviews_in_flight_are_waited_for_a_number_of_seconds(command: Command, told: str) -> None:
    done = command.run("withdraw", f"--settle={told}")
    assert (done.code, done.err.splitlines()[-1]) == (
        2,
        f"muster withdraw: error: argument --settle: '{told}' is not a number of seconds",
    )


@pytest.mark.parametrize("name", ["audit", "doctor", "release", "withdraw"])
def test_what_is_for_need_waits_longer(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """For the apiserver is slow then; the environment still says otherwise."""
    monkeypatch.delenv(CONNECT_TIMEOUT)
    assert parser().parse_args(COMMANDS[name]).connect_timeout == 10
    assert parser().parse_args(COMMANDS["queues"]).connect_timeout == 5
    monkeypatch.setenv(CONNECT_TIMEOUT, "3")
    assert parser().parse_args(COMMANDS[name]).connect_timeout == 3


@cases(
    "answer, words",
    ("a version", reply({"gitVersion": "v1.36.3"}), ""),
    ("403: an apiserver answers", failure(403, "Forbidden"), ""),
    ("503: an apiserver answers", failure(503, retry_after="1"), ""),
    ("401", failure(401), "You must be logged in to the server (Unauthorized)"),
    ("a web page", html(200), "Unable to connect to the server: {url}: not a Kubernetes answer: "),
)
async def test_the_probe_is_one_request(tmp_path: Path, answer: Answer, words: str) -> None:
    async with FaultyApiserver.serving() as server:
        server.on("GET", answer)
        path = tmp_path / "config"
        path.write_text(kubeconfig(0).replace("https://127.0.0.1:0", server.url))
        options = cluster_options(path)
        if words:
            with pytest.raises(NoClusterError) as raised:
                await connected(options).__aenter__()
            assert str(raised.value).startswith(words.format(url=server.url))
        else:
            async with connected(options):
                pass
        assert [(request.kind, request.path) for request in server.requests] == [("GET", "/version")]


async def test_a_pod_does_not_probe() -> None:
    """Its apiserver may be restarting while the hook of `helm uninstall` runs; every request has its own retries."""
    async with FaultyApiserver.serving() as server:
        connection = Connection(server.url)
        connection.in_cluster = True
        async with server.client(connection) as client:
            await first_answer(client, 1.0)
        assert server.requests == []


@pytest.mark.parametrize("name", ["audit", "page", "queues", "watch"])
async def test_ctrl_c_ends_the_wait_for_an_answer(tmp_path: Path, name: str) -> None:
    """With one line, also where later Ctrl-C is the way to end the command."""
    async with FaultyApiserver.serving() as server:
        server.on("GET", reply({"gitVersion": "v1.36.3"}))
        server.on("LIST", hang)
        done = await _interrupted(server, "LIST", 1, tmp_path, *COMMANDS[name])
    reading = f"muster {name}: reading {server.url}\n" if name in ("page", "watch") else ""
    assert done == (130, "", f"{reading}muster {name}: stopped by Ctrl-C\n")


async def test_a_release_that_is_stopped_says_what_it_has_opened(tmp_path: Path) -> None:
    """These pods stay released."""
    held = {"schedulingGates": [{"name": GATE}], "containers": []}
    pods = [manifest(name, 1, namespace="team", spec=held) for name in ("one", "two")]
    for pod in pods:
        pod["metadata"] |= {"labels": {GANG: "demo"}}  # type: ignore[operator]
    async with FaultyApiserver.serving() as server:
        server.on("GET", reply({"gitVersion": "v1.36.3"}))
        server.on("LIST", reply(listing(1, *pods)))
        server.on("PATCH", reply({}), hang)
        done = await _interrupted(server, "PATCH", 2, tmp_path, *COMMANDS["release"])
    assert done == (130, "team/demo: 1 pod opened\n", "muster release: stopped by Ctrl-C\n")


async def _interrupted(server: FaultyApiserver, kind: str, many: int, home: Path, *words: str) -> tuple[int, str, str]:
    """Exit code and output of a command that gets Ctrl-C after so many requests of that kind."""
    (home / "config").write_text(kubeconfig(0).replace("https://127.0.0.1:0", server.url))
    command = sys.executable, "-m", "muster.cli", *words, f"--kubeconfig={home / 'config'}"
    process = await asyncio.create_subprocess_exec(
        *command, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    try:
        await eventually(lambda: len(server.seen(kind)) >= many)
        # The answer to the first one has to arrive: then the command has nothing to do, however long it got no core.
        for _ in range(20):
            await asyncio.sleep(0.02)
            await eventually(lambda: stat(process.pid)[0] == "S")
        process.send_signal(signal.SIGINT)
        async with asyncio.timeout(PATIENCE):
            out, err = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return process.returncode or 0, out.decode(), err.decode()
