"""CPU time and latency of a review by the webhook, compared with a minimal server of Go.

On a control plane of its own (etcd, kube-apiserver, no operator, no scheduler that acts, no kubelet), in one run:

- reviews of an 8 KB worker pod over TLS, 16 connections: a second, and a second of a core (of the server's own CPU
  time, which other work on the machine does not change), in turn with a minimal server of Go's net/http, each alone,
  in turn, and the medians;
- p50 and p99 at 160 reviews a second, also while the server lists 5,000 pods again and again;
- a hundred bodies of 3 MiB at once: the answers, and the server's memory at its highest;
- end to end: pods a second that the real apiserver creates where no webhook is asked, where one in Go is that answers
  with muster's patch and does nothing else, and where muster's is, in turn, and the medians. The cost of the one in
  Go is the apiserver's own work for any webhook.

The load is Go (main.go), compiled into the testbed's cache. Other programs change all figures but the memory.
"""

import argparse
import asyncio
import base64
import http.client
import json
import signal
import ssl
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from hack.bench.admission.pods import NAMESPACES, cluster, creations, prepare, review, worker
from hack.bench.harness import Table, options
from hack.bench.many import worker_pod
from hack.testbed import Testbed, wait_for
from hack.testbed.api import Api
from hack.testbed.costs import resident, spent, stat
from hack.testbed.muster import install
from hack.testbed.paths import cache_root
from hack.testbed.pki import Authority, write_pair
from hack.testbed.toolchain import find_go
from muster.model.resource import PODS, QUEUES

_NAME = "muster-webhook.muster-system.svc"
_PATH = "/mutate/pods"
_RATE = 160
_LARGE, _AT_ONCE = 3 * 2**20, 100
_SOURCE = Path(__file__).with_name("main.go")


@dataclass(frozen=True, slots=True)
class Server:
    """A server in a process of its own."""

    name: str
    process: subprocess.Popen[str]
    address: str

    def cpu(self) -> float:
        """Its CPU time in seconds."""
        return spent(stat(self.process.pid))


class Load:
    """Asks servers, from a process of its own."""

    def __init__(self, program: Path, folder: Path) -> None:
        self.program = program
        self.folder = folder

    def __call__(self, server: Server, body: str, *options: str) -> dict[str, Any]:
        """Run it, and return what it saw; a failure ends the bench."""
        argv = [
            *(str(self.program), "load", f"-url=https://{server.address}{_PATH}?timeout=5s", f"-name={_NAME}"),
            *(f"-ca={self.folder / 'ca.crt'}", f"-body={self.folder / body}", *options),
        ]
        done = subprocess.run(argv, check=True, capture_output=True, text=True)
        found: dict[str, Any] = json.loads(done.stdout)
        if found["failures"]:
            raise AssertionError(f"{server.name}: {len(found['failures'])} failed: {found['failures'][0]}")
        return found


@contextmanager
def _server(name: str, *argv: str) -> Iterator[Server]:
    process = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
    try:
        line = (process.stdout.readline() if process.stdout else "").strip()
        if not line:
            raise SystemExit(f"{name} did not start")
        yield Server(name, process, line if ":" in line else f"127.0.0.1:{line}")
    finally:
        process.kill()
        process.wait()
        if process.stdout:
            process.stdout.close()


def _compiled() -> Path:
    go = find_go()
    go.ensure(print)
    program = cache_root() / "bench" / "admission"
    program.parent.mkdir(parents=True, exist_ok=True)
    argv = [str(go.command), "build", "-trimpath", "-o", str(program), str(_SOURCE)]
    subprocess.run(argv, check=True, env=go.environment())
    return program


def _throughput(load: Load, servers: list[Server], seconds: float, rounds: int) -> None:
    """Reviews a second, and a second of the server's own CPU time."""
    wall: dict[str, list[float]] = {server.name: [] for server in servers}
    core: dict[str, list[float]] = {server.name: [] for server in servers}
    for _ in range(rounds):
        for server in servers:
            before = server.cpu()
            found = load(server, "review.json", f"-seconds={seconds}")
            if set(found["answers"]) != {"200"}:
                raise AssertionError(f"{server.name}: {found['answers']}")
            count = found["answers"]["200"]
            wall[server.name].append(count / found["seconds"])
            core[server.name].append(count / (server.cpu() - before))
    size = (load.folder / "review.json").stat().st_size
    table = Table(f"reviews of {size:,} bytes, TLS 1.3", "a second", "of a core", "least", "most", "of Go")
    for server in servers:
        rates = core[server.name]
        figures = median(wall[server.name]), median(rates), min(rates), max(rates)
        table.row(server.name, *figures, median(rates) / median(core["Go"]))


def _latency(table: Table, load: Load, server: Server, what: str) -> None:
    found = load(server, "review.json", f"-rate={_RATE}", "-seconds=15", "-connections=25")
    table.row(what, *(found[name] * 1000 for name in ("p50", "p99", "longest")))


def _large(load: Load, server: Server) -> None:
    pid = server.process.pid
    table = Table(f"{_AT_ONCE} bodies of 3 MiB at once", "s", "MB before", "MB at most", "MB after")
    for _ in range(3):
        before = resident(pid)
        found = load(server, "large.json", f"-connections={_AT_ONCE}", "-once", "-retry")
        table.row(f"answers {found['answers']}", found["seconds"], before, resident(pid, "VmHWM"), resident(pid))


def _go(program: Path, folder: Path) -> list[str]:
    return [str(program), "serve", f"-cert={folder / 'server.crt'}", f"-key={folder / 'server.key'}"]


def _servers(testbed: Testbed, api: Api, load: Load, folder: Path, arguments: argparse.Namespace) -> None:
    """Measure the servers alone, and write down the patch that muster answers with."""
    python = [sys.executable, "-m", "hack.bench.admission.servers"]
    with (
        _server("muster", *python, str(folder), str(testbed.kubeconfig)) as muster,
        _server("Go", "env", "GOMAXPROCS=1", *_go(load.program, folder)) as other,
    ):
        (folder / "patch.json").write_bytes(_patch(muster, folder))
        _throughput(load, [muster, other], arguments.seconds, arguments.rounds)
        table = Table(f"{_RATE} reviews a second, in ms", "p50", "p99", "longest")
        for server in (other, muster):
            _latency(table, load, server, server.name)
        _large(load, muster)
        api.each(lambda number: api.create(PODS.path("default"), _unmanaged(number)), range(arguments.pods))
        table = Table(f"{_RATE} reviews a second, {arguments.pods:,} pods known", "p50", "p99", "longest")
        _latency(table, load, muster, "muster")
        muster.process.send_signal(signal.SIGUSR1)
        # The other shows what the apiserver's own work for the lists takes of the machine.
        _latency(table, load, other, "Go, while muster lists them")
        _latency(table, load, muster, "muster, listing them again and again")


def _unmanaged(number: int) -> dict[str, Any]:
    """A pod of another cluster, which came without muster."""
    pod = worker_pod(number)
    del pod["metadata"]["labels"]["muster.dev/gang"]
    return pod


def _patch(server: Server, folder: Path) -> bytes:
    """The patch that muster answers with."""
    host, _, port = server.address.partition(":")
    context = ssl.create_default_context(cafile=str(folder / "ca.crt"))
    connection = http.client.HTTPSConnection(host, int(port), timeout=10, context=context)
    with closing(connection):
        headers = {"Content-Type": "application/json"}
        connection.request("POST", _PATH, (folder / "review.json").read_bytes(), headers)
        return base64.b64decode(json.load(connection.getresponse())["response"]["patch"])


def _ask_instead(api: Api, server: Server, folder: Path) -> None:
    """Have the apiserver ask a server about the pods of one namespace, by an entry that is otherwise muster's."""
    path = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
    entry = next(one for one in api.get(f"{path}/muster")["webhooks"] if one["name"].startswith("ray."))
    authority = base64.b64encode((folder / "ca.crt").read_bytes()).decode()
    entry |= {
        "name": "go.bench.dev",
        "clientConfig": {"url": f"https://{server.address}{_PATH}", "caBundle": authority},
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "go"}},
    }
    manifest = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration"}
    api.create(path, {**manifest, "metadata": {"name": "bench"}, "webhooks": [entry]})


def _wait_patched(api: Api, owner: dict[str, Any]) -> None:
    """Wait until the apiserver has a webhook patch the pods of this cluster."""
    path = f"{PODS.path(owner['metadata']['namespace'])}?dryRun=All"
    wait_for("the webhook to be asked", lambda: "schedulingGates" in api.create(path, worker(owner, 0))["spec"], 60)


async def _end_to_end(testbed: Testbed, rounds: int) -> None:
    """Pods a second with and without a webhook."""
    seen: dict[str, list[float]] = {namespace: [] for namespace in NAMESPACES}
    for _ in range(rounds):
        for namespace, rates in seen.items():
            rates.append(await creations(testbed, namespace))
    table = Table("pods created a second, by webhook", "median", "least", "most", "of none", "of Go")
    for namespace, rates in seen.items():
        of = (median(rates) / median(seen[other]) for other in ("none", "go"))
        table.row(namespace, median(rates), min(rates), max(rates), *of)


def main(argv: Sequence[str]) -> None:
    """Measure and print."""
    arguments = options(argv, __doc__, pods=5000, seconds=4.0, rounds=3)
    program = _compiled()
    with Testbed.start(parts=(), progress=lambda _: None) as testbed, tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        authority = Authority.create("bench")
        (folder / "ca.crt").write_bytes(authority.pem()[0])
        write_pair(folder, "server", authority.issue([_NAME, "127.0.0.1"]))
        api = testbed.api()
        prepare(testbed)
        api.create(
            QUEUES.path(),
            {"apiVersion": QUEUES.api_version, "kind": "Queue", "metadata": {"name": "default"}, "spec": {}},
        )
        owners = {namespace: cluster(api, namespace) for namespace in NAMESPACES}
        (folder / "review.json").write_bytes(review(worker(owners["muster"], 0)))
        (folder / "large.json").write_bytes(review(worker(owners["muster"], 0, size=_LARGE)))
        _servers(testbed, api, Load(program, folder), folder, arguments)
        others = {f"excludedNamespaces[{index}]": name for index, name in enumerate(("none", "go"))}
        muster = install(testbed, values=others, controllers=0)
        muster.wait_ready()
        with _server("Go", *_go(program, folder), f"-patch={folder / 'patch.json'}") as go:
            _ask_instead(api, go, folder)
            for namespace in ("go", "muster"):
                _wait_patched(api, owners[namespace])
            asyncio.run(_end_to_end(testbed, arguments.rounds))
        muster.uninstall()
