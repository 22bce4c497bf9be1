"""Records every state of a namespace's objects from the apiserver's own watches, so that order can be proved.

A test that looks now and then cannot tell that nobody started early. A watch misses no state, and the apiserver's
resource versions order the states of all kinds among each other, whenever they arrived here.
"""

import http.client
import json
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

from hack.testbed import PATIENCE, Testbed, TestbedError, wait_for
from muster.model.resource import EVENTS, POD_GROUPS, PODS, QUEUES, Resource

Manifest = dict[str, Any]

RAY_CLUSTERS = Resource("ray.io", "v1", "rayclusters", "RayCluster")
PYTORCH_JOBS = Resource("kubeflow.org", "v1", "pytorchjobs", "PyTorchJob")
VOLCANO_JOBS = Resource("batch.volcano.sh", "v1alpha1", "jobs", "Job")
DEPLOYMENTS = Resource("apps", "v1", "deployments", "Deployment")
JOBS = Resource("batch", "v1", "jobs", "Job")

_ALWAYS = (PODS, EVENTS)
_OF_VOLCANO = (POD_GROUPS, QUEUES)
# Seconds between two attempts.
_PAUSE = 0.2


@dataclass(frozen=True, slots=True)
class State:
    """One object as it was from `version` on; `gone` marks its deletion. `at` is seconds of the monotonic clock.

    `after_a_gap` marks what a list showed after a watch was cut: states before it may be missing.
    """

    resource: Resource
    name: str
    version: int
    at: float
    gone: bool
    object: Manifest
    after_a_gap: bool = False


class Recorder:
    """Watches one namespace, and all queues of Volcano, until closed; `history` is what happened, `now` what is there.

    Once made, it misses nothing. A watch that ends, as the apiserver does to readers that are slow for a moment, is
    resumed where it was. One that cannot be is a failure, but where there may be `gaps`: then it goes on with a list.
    """

    def __init__(self, testbed: Testbed, namespace: str, kinds: Iterable[Resource], *, gaps: bool = False) -> None:
        self.namespace = namespace
        volcano = _OF_VOLCANO if "volcano" in testbed.parts else ()
        self.kinds = tuple(dict.fromkeys((*kinds, *_ALWAYS, *volcano)))
        self._lock = threading.Lock()
        self._states: list[State] = []
        self._current: dict[tuple[str, str], Manifest] = {}
        self._watches = [_Watch(testbed, resource, namespace, self._record, gaps=gaps) for resource in self.kinds]
        for watch in self._watches:
            watch.start()
        for watch in self._watches:
            watch.await_begin()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for watch in self._watches:
            watch.close()

    def history(self, resource: Resource) -> list[State]:
        """Return all states of a kind so far, in the order of the apiserver."""
        with self._lock:
            self._complain()
            return sorted((s for s in self._states if s.resource == resource), key=lambda state: state.version)

    def everything(self) -> list[State]:
        """Return all states of all kinds so far, in the order of the apiserver."""
        with self._lock:
            self._complain()
            return sorted(self._states, key=lambda state: state.version)

    def count(self) -> int:
        """Return how many states are on record."""
        return len(self._states)

    def now(self, resource: Resource) -> list[Manifest]:
        """Return the objects of a kind that exist, by name."""
        with self._lock:
            self._complain()
            return [item for (kind, _), item in sorted(self._current.items()) if kind == resource.full_name]

    def get(self, resource: Resource, name: str) -> Manifest | None:
        """Return one object as it is now."""
        with self._lock:
            self._complain()
            return self._current.get((resource.full_name, name))

    def first(self, resource: Resource, holds: Callable[[Manifest], bool], what: str = "such a state") -> State:
        """Return the earliest recorded state that satisfies the condition; fails when there is none."""
        for state in self.history(resource):
            if not state.gone and holds(state.object):
                return state
        raise AssertionError(f"{self.namespace}: no {resource.kind} ever had {what}")

    def settle(self, timeout: float = PATIENCE) -> None:
        """Wait until the watches have shown everything that had happened when this was called."""
        for watch in self._watches:
            watch.catch_up(timeout)

    def write(self, path: Path) -> None:
        """Write the record, one JSON object per line in the order of the apiserver, to look into a failure."""
        with self._lock:
            states = sorted(self._states, key=lambda state: state.version)
        with path.open("w") as stream:
            for state in states:
                line = {
                    "version": state.version,
                    "at": round(state.at, 3),
                    "kind": state.resource.kind,
                    "name": state.name,
                    "gone": state.gone,
                    "object": state.object,
                }
                stream.write(json.dumps(line) + "\n")

    def _record(self, state: State) -> None:
        with self._lock:
            self._states.append(state)
            key = (state.resource.full_name, state.name)
            if state.gone:
                self._current.pop(key, None)
            else:
                self._current[key] = state.object

    def _complain(self) -> None:
        for watch in self._watches:
            if watch.failure:
                raise TestbedError(watch.failure)


class _Watch(threading.Thread):
    """One watch request, read line by line."""

    def __init__(
        self,
        testbed: Testbed,
        resource: Resource,
        namespace: str,
        record: Callable[[State], None],
        *,
        gaps: bool,
    ) -> None:
        super().__init__(name=f"watch-{resource.plural}", daemon=True)
        self.failure = ""
        self._resource = resource
        self._record = record
        self._gaps = gaps
        self._closed = False
        self._latest = 0
        self._path = resource.path(namespace if resource.namespaced else None)
        self._headers = {"Authorization": f"Bearer {testbed.admin_token}"}
        address = urlsplit(testbed.server)
        self._address = (address.hostname or "", address.port or 0)
        self._context = ssl.create_default_context(cafile=str(testbed.ca_file))
        self._pause = threading.Event()
        # When it was last open; at first, when it was made.
        self._open_at = time.monotonic()
        self._expired = False
        self._there: dict[str, Manifest] = {}
        self._begun = threading.Event()
        self._connection = http.client.HTTPSConnection(*self._address, context=self._context)
        self._socket: socket.socket | None = None

    def run(self) -> None:
        """Read until closed; what keeps it from going on where it was is kept in `failure`."""
        while True:
            ended = self._watch()
            if self._closed:
                return
            # A kind whose CRD is new may be refused for a while (429), and a busy apiserver may cut and refuse any.
            lost = self._expired and self._begun.is_set() and not self._gaps
            if ended and (lost or time.monotonic() >= self._open_at + PATIENCE):
                self.failure = f"{self._path}: {ended}"
                return
            self._pause.wait(_PAUSE)

    def await_begin(self) -> None:
        """Wait until whatever happens from now on is seen."""
        wait_for(f"{self.name} to begin", lambda: self.failure or self._begun.is_set(), PATIENCE)

    def _watch(self) -> str:
        """Watch once, from where it ended before, and say what cut it; "" where the apiserver ended it in order."""
        try:
            if self._expired:
                self._list_anew()
            self._ask(f"&resourceVersion={self._latest}" if self._latest else "")
        except (OSError, http.client.HTTPException, TestbedError) as error:
            return repr(error)
        return self._read()

    def _read(self) -> str:
        """Read one answer to its end, and say what that was, "" for an orderly one."""
        try:
            with self._connection.getresponse() as response:
                if response.status != http.HTTPStatus.OK:
                    self._expired = response.status == http.HTTPStatus.GONE
                    return f"{response.status} {response.read().decode(errors='replace')}"
                self._begun.set()
                try:
                    for line in response:
                        self._take(json.loads(line))
                finally:
                    self._open_at = time.monotonic()
        except (OSError, http.client.HTTPException, ValueError, AttributeError) as error:
            return repr(error)
        return ""

    def _ask(self, more: str = "") -> None:
        self._connection.close()
        path = f"{self._path}?watch=true&allowWatchBookmarks=true{more}"
        self._connection = http.client.HTTPSConnection(*self._address, context=self._context)
        self._connection.request("GET", path, headers=self._headers)
        self._socket = self._connection.sock

    def close(self) -> None:
        """End the watch."""
        self._closed = True
        self._pause.set()
        if self._socket is not None:
            with suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)
        self.join(10)
        self._connection.close()

    def catch_up(self, timeout: float) -> None:
        """Wait until everything that a fresh list shows has been seen, and what it does not show any more has gone."""
        answer = wait_for(f"a list for {self.name}", lambda: self._list(timeout), timeout)
        asked, names = int(answer["metadata"]["resourceVersion"]), {one["metadata"]["name"] for one in answer["items"]}
        newest = max((int(item["metadata"]["resourceVersion"]) for item in answer["items"]), default=0)

        def shown() -> bool:
            left = [one for name, one in list(self._there.items()) if name not in names]
            return self._latest >= newest and not any(int(one["metadata"]["resourceVersion"]) <= asked for one in left)

        wait_for(f"{self.name} to show version {asked}", lambda: self.failure or shown(), timeout)

    def _take(self, event: Manifest) -> None:
        item = event["object"]
        if event["type"] == "ERROR":
            # After a restart the apiserver knows nothing of what was before.
            self._expired = item.get("code") == http.HTTPStatus.GONE
            raise ValueError(str(item))
        version = int(item["metadata"]["resourceVersion"])
        if event["type"] != "BOOKMARK":
            self._note(item, version, gone=event["type"] == "DELETED")
        self._latest = max(self._latest, version)

    def _note(self, item: Manifest, version: int, *, gone: bool, after_a_gap: bool = False) -> None:
        name = item["metadata"]["name"]
        if gone:
            self._there.pop(name, None)
        else:
            self._there[name] = item
        self._record(State(self._resource, name, version, time.monotonic(), gone, item, after_a_gap))

    def _list(self, timeout: float) -> Manifest:
        connection = http.client.HTTPSConnection(*self._address, context=self._context, timeout=timeout)
        try:
            connection.request("GET", self._path, headers=self._headers)
            answer: Manifest = json.loads(connection.getresponse().read())
        except (http.client.HTTPException, ValueError) as error:
            raise TestbedError(f"{self._path}: {error!r}") from error
        finally:
            connection.close()
        if "items" not in answer:
            raise TestbedError(f"{self._path}: {answer}")
        return answer

    def _list_anew(self) -> None:
        answer = self._list(PATIENCE)
        version = int(answer["metadata"]["resourceVersion"])
        names = {item["metadata"]["name"] for item in answer["items"]}
        for name in [name for name in self._there if name not in names]:
            self._note(self._there[name], version, gone=True, after_a_gap=True)
        for item in answer["items"]:
            there = self._there.get(item["metadata"]["name"], {"metadata": {}})
            if there["metadata"].get("resourceVersion") != item["metadata"]["resourceVersion"]:
                self._note(item, int(item["metadata"]["resourceVersion"]), gone=False, after_a_gap=True)
        self._latest, self._expired = max(self._latest, version), False
