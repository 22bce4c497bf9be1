"""`muster record`: writes down which gangs come, start and end, for `muster replay` and `muster test`.

All names are hashed with a salt that is written nowhere, so that a record can be shown to others. The hashes of queues
are printed at the end, for policies that name them.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import hashlib
import json
import secrets
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, TextIO, cast

import msgspec

from muster.cli.connecting import NO_ANSWER, opened
from muster.cli.snapshot import ClusterSnapshot, LedgerSnapshot, followed
from muster.cli.ui import print_line
from muster.model.names import RECLAIM
from muster.model.objects import ObjectMeta, Queue, QueueStatus
from muster.planning.candidate import lineage
from muster.process.lifecycle import stop_signal, tune_gc
from muster.queueing.entries import EndKind, EntryKey
from muster.queueing.queue_view import ROOT
from muster.queueing.sources import FIELDS
from muster.resources.amounts import Resources, as_text

_CANNOT = 2
# Seconds between two looks at what has changed: a gang that comes and ends in between is not seen.
_EVERY = 2.0


def run(arguments: argparse.Namespace) -> int:
    """The exit code of `muster record`, which ends with Ctrl-C; 2 when the cluster does not answer."""
    try:
        with gzip.open(arguments.out, "xt") as out:
            recorder = Recorder(cast("TextIO", out))
            asyncio.run(_record(arguments, recorder))
    except NO_ANSWER:
        Path(arguments.out).unlink()
        raise
    except OSError as error:
        print(f"muster record: {arguments.out}: {error.strerror}", file=sys.stderr)
        return _CANNOT
    for name, hashed in recorder.queues.items():
        print_line(f"queue {name} is {hashed} in the record")
    return 0


async def _record(arguments: argparse.Namespace, recorder: Recorder) -> None:
    async with opened(arguments) as (client, settings):
        visible = ClusterSnapshot.empty(settings)
        async with followed(client, visible, arguments.namespace or client.namespace) as following:
            tune_gc()
            stop = stop_signal()
            while not stop.is_set():
                following.changed.clear()
                snapshot = await visible.ledger_snapshot_in_slices(time.time())
                recorder.look(list(visible.cluster.queues), snapshot)
                try:
                    async with asyncio.timeout(_EVERY):
                        await stop.wait()
                except TimeoutError:
                    pass
            recorder.finish(time.time())


class _RecordedGang(NamedTuple):
    values: dict[str, Any]
    holds: bool


class Recorder:
    """Writes a line for each queue, and for each gang that comes, starts or ends."""

    def __init__(self, out: TextIO) -> None:
        self.queues: dict[str, str] = {}
        """The hashes of the queues, by name."""
        self._out = out
        self._salt = secrets.token_bytes(16)
        self._written: dict[str, Any] = {}
        self._state: dict[EntryKey, bool] = {}

    def look(self, queues: list[Queue], snapshot: LedgerSnapshot) -> None:
        """Write down what has changed since the last look."""
        # What the nodes can give is known only here.
        tree = snapshot.ledger.tree
        most = as_text(tree.limit(ROOT)) if tree.nodes is not None else None
        if most and all(queue.metadata.name != ROOT for queue in queues):
            queues = [*queues, Queue(metadata=ObjectMeta(name=ROOT), status=QueueStatus(state="Open"))]
        for queue in queues:
            self._queue(queue, most if queue.metadata.name == ROOT else None)
        now, there = snapshot.now, dict(self._gangs(snapshot))
        for key, gang in there.items():
            before = self._state.get(key)
            if before is None:
                self._write(now, "comes", key, gang.values)
            if gang.holds and not before:
                self._write(now, "starts", key)
        for key, held in self._state.items():
            if key not in there or (held and not there[key].holds):
                self._write(now, "ends" if held else "goes", key)
                if key in there:
                    # It has given its place back, and waits again.
                    self._write(now, "comes", key, there[key].values)
        self._state = {key: gang.holds for key, gang in there.items()}
        self._out.flush()

    def finish(self, now: float) -> None:
        """Write down until when what runs has run."""
        print(json.dumps({"at": round(now, 1)}), file=self._out)

    def _gangs(self, snapshot: LedgerSnapshot) -> Iterator[tuple[EntryKey, _RecordedGang]]:
        """The gangs that wait or hold, each once; what a gang that holds also waits for is left out."""
        ledger = snapshot.ledger
        for queue in ledger.queues_in_use():
            for key in ledger.waiting(queue):
                waits = ledger.candidate(key)
                if waits is not None and key == key.gang:
                    limit = waits.run.seconds if waits.run is not None and waits.run.kind < EndKind.ABOUT else None
                    values = self._values_of(key, queue, waits.priority, waits.need, limit)
                    yield key, _RecordedGang(values | self._lineage(snapshot, key), holds=False)
            for key, claim in ledger.claims(queue).items():
                if key == key.gang:
                    limit = claim.end.seconds if claim.end is not None and claim.end.kind < EndKind.ABOUT else None
                    priority = claim.priority
                    values = self._values_of(key, queue, priority, claim.whole, limit)
                    yield key, _RecordedGang(values | self._lineage(snapshot, key), holds=True)

    def _values_of(
        self, key: EntryKey, queue: str, priority: int, need: Resources, limit: float | None
    ) -> dict[str, Any]:
        namespace = self._named(f"namespace {key.namespace}")
        values = {"namespace": namespace, "queue": self._named(queue), "priority": priority, "need": as_text(need)}
        return values if limit is None else {**values, "limit": limit}

    def _lineage(self, snapshot: LedgerSnapshot, key: EntryKey) -> dict[str, str]:
        """The lineage that it shares with former runs, by which its own run is estimated."""
        view = snapshot.views.get(key.gang)
        return {"lineage": self._named(f"lineage {lineage(view).name}")} if view is not None else {}

    def _queue(self, queue: Queue, most: dict[str, str] | None) -> None:
        name = queue.metadata.name
        values = {key: text for key, text in queue.metadata.annotations.items() if key in FIELDS or key == RECLAIM}
        spec = {key: value for key, value in msgspec.to_builtins(queue.spec).items() if value not in ("", {}, None)}
        # It has names of namespaces.
        spec.pop("namespaceSelector", None)
        if most:
            spec["capability"] = most
        if parent := spec.get("parent"):
            spec["parent"] = self._named(parent)
        self.queues[name] = self._named(name)
        manifest = {
            "metadata": {"name": self.queues[name], "annotations": values},
            "spec": spec,
            "status": {"state": queue.status.state},
        }
        if self._written.get(name) != manifest:
            self._written[name] = manifest
            print(json.dumps({"queue": manifest}), file=self._out)

    def _write(self, now: float, event: str, key: EntryKey, more: dict[str, Any] | None = None) -> None:
        name = self._named(f"gang {key}")
        print(json.dumps({"at": round(now, 1), event: name, **(more or {})}), file=self._out)

    def _named(self, name: str) -> str:
        # The root has the same name everywhere, and is no one's.
        return name if name == ROOT else hashlib.blake2b(name.encode(), key=self._salt, digest_size=6).hexdigest()
