"""`muster migrate-queues` where a queue is not as others: called `root`, malformed, or there already."""

import asyncio
import json
import subprocess
from pathlib import Path

from muster.model.names import HOLD
from tests.support.cases import cases
from tests.support.cli.in_process import muster
from tests.support.faults.apiserver import Answer, FaultyApiserver, failure, listing, reply


@cases("annotations, said", ("on hold", {HOLD: "true"}, "gangqueue root: would be made\n"), ("says nothing", {}, ""))
async def test_root_is_copied_where_it_says_something(tmp_path: Path, annotations: dict[str, str], said: str) -> None:
    root = {"metadata": {"name": "root", "resourceVersion": "1", "annotations": annotations}, "spec": {"weight": 1}}
    async with FaultyApiserver.serving() as apiserver:
        apiserver.on("LIST", reply(listing(1, root)))
        apiserver.on("POST", reply({}))
        done = await _tried(apiserver, tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"{said}nothing was changed (dry run)\n"


async def test_a_malformed_queue_is_named_and_the_others_are_copied(tmp_path: Path) -> None:
    weights: dict[str, object] = {"a": "x", "b": 1}
    queues = [{"metadata": {"name": name}, "spec": {"weight": weight}} for name, weight in weights.items()]
    async with FaultyApiserver.serving() as apiserver:
        apiserver.on("LIST", reply(listing(1, *queues)))
        apiserver.on("POST", reply({}))
        done = await _tried(apiserver, tmp_path)
    assert (done.returncode, done.stdout) == (1, "gangqueue b: would be made\nnothing was changed (dry run)\n")
    assert (
        done.stderr
        == "muster migrate-queues: skipping a malformed Queue: spec.weight: expected an integer, found a string\n"
    )


@cases(
    "answer, said",
    ("there", reply({}), "exists already, and stays as it is"),
    ("not there", failure(404), "would be made"),
    ("nobody says", failure(403, "Forbidden"), "would be made"),
)
async def test_a_dry_run_looks_for_a_queue_whose_parent_is_not_there_yet(
    tmp_path: Path, answer: Answer, said: str
) -> None:
    """It cannot be tried out: it would be refused."""
    specs = {"p": {"weight": 1}, "c": {"parent": "p"}}
    queues: list[dict[str, object]] = [{"metadata": {"name": name}, "spec": spec} for name, spec in specs.items()]
    async with FaultyApiserver.serving() as apiserver:
        apiserver.on("LIST", reply(listing(1, *queues)))
        apiserver.on("POST", reply({}))
        done = await _tried(apiserver, tmp_path, answer)
        path = apiserver.seen("GET")[-1].path
        assert (path.rpartition("/")[2], len(apiserver.seen("POST"))) == ("c", 1)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"gangqueue p: would be made\ngangqueue c: {said}\nnothing was changed (dry run)\n"


async def _tried(apiserver: FaultyApiserver, folder: Path, *gets: Answer) -> subprocess.CompletedProcess[str]:
    """A dry run; `gets` are the answers to what is asked for by name."""
    apiserver.on("GET", reply({"gitVersion": "v1.36.3"}), *gets)
    context = {"name": "c", "context": {"cluster": "c", "user": "u"}}
    cluster, user = {"name": "c", "cluster": {"server": apiserver.url}}, {"name": "u", "user": {"token": "t"}}
    config = {"current-context": "c", "contexts": [context], "clusters": [cluster], "users": [user]}
    (folder / "config").write_text(json.dumps(config))
    words = (f"--kubeconfig={folder / 'config'}", "--to=muster", "--dry-run")
    return await asyncio.to_thread(muster, "migrate-queues", *words)
