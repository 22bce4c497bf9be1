"""`muster migrate-queues` where the queue `root` says something only by an annotation."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

import pytest

from muster.model.names import HOLD
from tests.support.cli.in_process import muster
from tests.support.faults.apiserver import FaultyApiserver, listing, reply

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("annotations", "said"),
    [
        pytest.param({HOLD: "true"}, "gangqueue root: would be made\n", id="on hold"),
        pytest.param({}, "", id="says nothing"),
    ],
)
async def test_root_is_copied_where_it_says_something(tmp_path: Path, annotations: dict[str, str], said: str) -> None:
    root = {"metadata": {"name": "root", "resourceVersion": "1", "annotations": annotations}, "spec": {"weight": 1}}
    async with FaultyApiserver.serving() as apiserver:
        apiserver.on("GET", reply({"gitVersion": "v1.36.3"}))
        apiserver.on("LIST", reply(listing(1, root)))
        apiserver.on("POST", reply({}))
        context = {"name": "c", "context": {"cluster": "c", "user": "u"}}
        cluster, user = {"name": "c", "cluster": {"server": apiserver.url}}, {"name": "u", "user": {"token": "t"}}
        config = {"current-context": "c", "contexts": [context], "clusters": [cluster], "users": [user]}
        (tmp_path / "config").write_text(json.dumps(config))
        words = (f"--kubeconfig={tmp_path / 'config'}", "--to=muster", "--dry-run")
        done = await asyncio.to_thread(muster, "migrate-queues", *words)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"{said}nothing was changed (dry run)\n"
