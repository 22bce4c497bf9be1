"""What a command prints, and who reads it."""

import asyncio
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from muster.cli.parsing import parse
from muster.cli.ui import print_data
from muster.model.names import GANG, GATE
from tests.support.cases import cases
from tests.support.cli.in_process import muster
from tests.support.faults.apiserver import FaultyApiserver, failure, listing, manifest, reply

_PROGRAM = """
import sys
from muster.cli.ui import as_long_as_read
with as_long_as_read():
    for _ in range({lines}):
        print("a line")
sys.exit(3)
"""


@cases("lines", ("kept until the end", 1), ("more than is kept", 100_000))
def test_who_stops_reading_gets_the_exit_code_and_no_traceback(lines: int) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", _PROGRAM.format(lines=lines)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout
        assert process.stderr
        process.stdout.close()
        assert (process.stderr.read(), process.wait()) == (b"", 3)


def test_yaml_has_quotes_where_kubectl_would_read_something_else_than_text() -> None:
    """A namespace may be called 08, and a queue 1e3."""
    out = io.StringIO()
    said = {"y": ["08", "1e3", "n", "yes", "1", "4Gi", "500m", "a", "two\nlines", ".inf"]}
    assert print_data(said, "yaml", out)
    assert [one.value for one in parse("said", out.getvalue())] == [said]
    assert out.getvalue().startswith("'y':\n- '08'\n- '1e3'\n- 'n'\n- 'yes'\n- '1'\n- 4Gi\n- 500m\n- a\n")


@pytest.mark.parametrize("words", [("version",), ("--version",), ("completion", "bash")])
async def test_what_needs_no_cluster_is_read_as_far_as_somebody_likes(words: tuple[str, ...]) -> None:
    assert await _unread(*words) == (0, "")


@cases(
    "words, changes",
    ("migrate-queues", ("migrate-queues", "--to=muster"), ["POST", "POST"]),
    ("withdraw", ("withdraw", "--settle=0"), ["DELETE", "DELETE", "DELETE"]),
)
async def test_a_command_that_changes_a_cluster_ends_its_work_unread(
    tmp_path: Path, words: tuple[str, ...], changes: list[str]
) -> None:
    queues = [{"metadata": {"name": name}, "spec": {"weight": 1}} for name in ("a", "b")]
    async with FaultyApiserver.serving() as apiserver:
        apiserver.on("GET", reply({"gitVersion": "v1.36.3"}))
        apiserver.on("LIST", reply(listing(1, *(queues if words[0] == "migrate-queues" else []))))
        apiserver.on("POST", reply({}), failure(409, "AlreadyExists"))
        apiserver.on("DELETE", reply({}))
        assert await _unread(*words, _kubeconfig(tmp_path, apiserver.url)) == (0, "")
        assert [one.kind for one in apiserver.requests if one.kind in {"POST", "DELETE"}] == changes


async def test_a_command_that_changes_a_cluster_ends_its_work_on_a_full_disk(tmp_path: Path) -> None:
    """Else the webhooks would be gone, and the gates still closed."""
    held = {"schedulingGates": [{"name": GATE}], "containers": []}
    pod = manifest("one", 1, namespace="team", spec=held)
    pod["metadata"] |= {"labels": {GANG: "demo"}}  # type: ignore[operator]
    async with FaultyApiserver.serving() as apiserver:
        apiserver.on("GET", reply({"gitVersion": "v1.36.3"}))
        apiserver.on("LIST", reply(listing(1, pod)), reply(listing(1)))
        apiserver.on("DELETE", reply({}))
        apiserver.on("PATCH", reply({}))
        done = await _on_a_full_disk("withdraw", "--settle=0", _kubeconfig(tmp_path, apiserver.url))
        assert [one.kind for one in apiserver.requests if one.kind in {"DELETE", "PATCH"}] == [*["DELETE"] * 3, "PATCH"]
    assert done == (0, "muster: what is done cannot be written any more: No space left on device\n")


@cases("options", ("in earnest", ()), ("dry run", ("--dry-run",)))
async def test_a_withdrawal_that_is_refused_says_what_is_done(tmp_path: Path, options: tuple[str, ...]) -> None:
    async with FaultyApiserver.serving() as apiserver:
        apiserver.on("GET", reply({"gitVersion": "v1.36.3"}))
        apiserver.on("DELETE", reply({}), failure(403, "Forbidden"))
        done = await asyncio.to_thread(muster, "withdraw", *options, _kubeconfig(tmp_path, apiserver.url))
    words = "mutatingwebhookconfiguration muster: deleted; no new pod is held; the rest stays as it is\n"
    assert (done.returncode, done.stdout) == (2, "" if options else words)
    assert done.stderr == "muster withdraw: 403 Forbidden: no\n"


async def test_an_answer_that_cannot_be_written_is_no_answer(tmp_path: Path) -> None:
    """Neither 0 nor the 1 of a refusal."""
    (tmp_path / "pod.yaml").write_text("apiVersion: v1\nkind: Pod\nmetadata: {name: p}\n")
    done = await _on_a_full_disk("plan", "-f", str(tmp_path / "pod.yaml"))
    assert done == (2, "muster plan: the output cannot be written: No space left on device\n")


@pytest.mark.parametrize("encoding", ["latin-1", "ascii", "utf-8"])
def test_a_file_has_utf_8_whatever_the_locale(tmp_path: Path, encoding: str) -> None:
    """As from kubectl; a name in another script would else be a traceback."""
    (tmp_path / "input.yaml").write_text("apiVersion: ray.io/v1\nkind: Raycluster\nmetadata: {name: \u65e5\u672c}\n")
    argv = (sys.executable, "-m", "muster.cli", "plan", "-f", str(tmp_path / "input.yaml"))
    done = subprocess.run(argv, capture_output=True, check=True, env={**os.environ, "PYTHONIOENCODING": encoding})
    assert done.stdout.decode().startswith("Raycluster default/\u65e5\u672c\n")


def test_a_command_without_standard_streams_says_nothing_and_ends(tmp_path: Path) -> None:
    (tmp_path / "input.yaml").write_text("apiVersion: v1\nkind: Pod\nmetadata: {name: p}\n")
    words = f"{sys.executable} -m muster.cli plan -f {tmp_path / 'input.yaml'} <&- >&- 2>&-"
    assert subprocess.run(["sh", "-c", words], check=False).returncode == 0


@pytest.mark.parametrize(
    "words", [("queues",), ("release", "demo"), ("migrate-queues", "--to=muster"), ("withdraw", "--dry-run")]
)
async def test_what_an_apiserver_says_moves_no_cursor(tmp_path: Path, words: tuple[str, ...]) -> None:
    no = failure(400, "BadRequest", "no\x1b[2J\nyes")
    async with FaultyApiserver.serving() as apiserver:
        apiserver.on("GET", reply({"gitVersion": "v1.36.3"}))
        apiserver.on("LIST", no)
        apiserver.on("DELETE", no)
        done = await asyncio.to_thread(muster, *words, _kubeconfig(tmp_path, apiserver.url))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"muster {words[0]}: 400 BadRequest: no\\x1b[2J\\nyes\n"


def _kubeconfig(folder: Path, server: str) -> str:
    context = {"name": "c", "context": {"cluster": "c", "user": "u"}}
    cluster, user = {"name": "c", "cluster": {"server": server}}, {"name": "u", "user": {"token": "t"}}
    config = {"current-context": "c", "contexts": [context], "clusters": [cluster], "users": [user]}
    (folder / "config").write_text(json.dumps(config))
    return f"--kubeconfig={folder / 'config'}"


async def _on_a_full_disk(*words: str) -> tuple[int | None, str]:
    """Exit code and errors of the command whose output is written nowhere."""
    argv = (sys.executable, "-m", "muster.cli", *words)
    full = os.open("/dev/full", os.O_WRONLY)
    told = {**os.environ, "MUSTER_CONNECT_TIMEOUT": "60"}
    process = await asyncio.create_subprocess_exec(*argv, stdout=full, stderr=subprocess.PIPE, env=told)
    os.close(full)
    _, said = await process.communicate()
    return process.returncode, said.decode()


async def _unread(*words: str) -> tuple[int | None, str]:
    """Exit code and errors of the command whose output nobody reads, and which keeps nothing of it back."""
    read, write = os.pipe()
    os.close(read)
    told = {**os.environ, "PYTHONUNBUFFERED": "1", "MUSTER_CONNECT_TIMEOUT": "60"}
    argv = (sys.executable, "-m", "muster.cli", *words)
    process = await asyncio.create_subprocess_exec(*argv, stdout=write, stderr=subprocess.PIPE, env=told)
    os.close(write)
    _, said = await process.communicate()
    return process.returncode, said.decode()
