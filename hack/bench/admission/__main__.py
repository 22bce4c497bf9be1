"""What a review costs: `python -m hack.bench.admission [--pods 5000] [--seconds 4] [--rounds 3]`.

On a control plane of its own (etcd, kube-apiserver, no operator, no scheduler that acts, no kubelet), in one run:

- reviews of an 8 KB worker pod over TLS, 16 connections: a second, and a second of a core (of the server's own CPU
  time, which other work on the machine does not change), beside an empty aiohttp server with msgspec and a minimal one
  of Go's net/http, each alone, in turn, and the medians;
- p50 and p99 at 160 reviews a second, also while the server lists 5,000 pods again and again;
- a hundred bodies of 3 MiB at once: the answers, and the server's memory at its highest;
- end to end: pods a second that the real apiserver creates where no webhook is asked, where one in Go is that answers
  with muster's patch and does nothing else, and where muster's is, in turn, and the medians. What the one in Go costs
  is the apiserver's own work for any webhook.

The load is Go (main.go), compiled into the testbed's cache. What else runs on the machine changes all but the memory.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import http.client
import json
import os
import signal
import ssl
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from hack.bench import watch
from hack.bench.admission.pods import NAMESPACES, cluster, creations, prepare, review, worker
from hack.testbed import Testbed, wait_for
from hack.testbed.muster import install
from hack.testbed.paths import cache_root
from hack.testbed.pki import Authority, write_pair
from hack.testbed.toolchain import find_go
from muster.kube.resource import PODS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hack.testbed.api import Api

_NAME = "muster-webhook.muster-system.svc"
_PATH = "/mutate/pods"
_RATE = 160
_LARGE, _AT_ONCE = 3 * 2**20, 100
_TICKS = os.sysconf("SC_CLK_TCK")
_SOURCE = Path(__file__).with_name("main.go")


@dataclass(frozen=True, slots=True)
class Server:
    """A server in a process of its own."""

    name: str
    process: subprocess.Popen[str]
    address: str

    def cpu(self) -> float:
        """Its CPU time in seconds."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS

    def memory(self, field: str) -> float:
        """Its memory in MB: VmRSS is now, VmHWM its highest."""
        for line in Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith(f"{field}:"):
                return int(line.split()[1]) / 1024
        raise AssertionError(f"no {field}")


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
    echo = median(core["echo"])
    print(f"reviews of {(load.folder / 'review.json').stat().st_size} bytes, 16 connections, TLS 1.3")
    for server in servers:
        of_core = median(core[server.name])
        print(
            f"  {server.name:<8} {median(wall[server.name]):8.0f} a second {of_core:8.0f} a second of a core"
            f" ({min(core[server.name]):.0f} to {max(core[server.name]):.0f}) {of_core / echo:6.2f} of echo"
        )


def _latency(load: Load, server: Server, what: str) -> None:
    found = load(server, "review.json", f"-rate={_RATE}", "-seconds=15", "-connections=25")
    p50, p99, longest = (found[name] * 1000 for name in ("p50", "p99", "longest"))
    print(f"  {what:<44} p50 {p50:6.2f} ms   p99 {p99:6.2f} ms   longest {longest:6.2f} ms", flush=True)


def _large(load: Load, server: Server) -> None:
    print(f"{_AT_ONCE} bodies of 3 MiB at once; the server has {server.memory('VmRSS'):.0f} MB before")
    for _ in range(3):
        found = load(server, "large.json", f"-connections={_AT_ONCE}", "-once", "-retry")
        print(
            f"  answers {found['answers']} in {found['seconds']:.1f} s;"
            f" at the highest {server.memory('VmHWM'):.0f} MB, then {server.memory('VmRSS'):.0f} MB",
            flush=True,
        )


def _go(program: Path, folder: Path) -> list[str]:
    return [str(program), "serve", f"-cert={folder / 'server.crt'}", f"-key={folder / 'server.key'}"]


def _servers(testbed: Testbed, api: Api, load: Load, folder: Path, arguments: argparse.Namespace) -> None:
    """Measure the servers alone, and write down the patch that muster answers with."""
    python = [sys.executable, "-m", "hack.bench.admission.servers"]
    with (
        _server("muster", *python, "muster", str(folder), str(testbed.kubeconfig)) as muster,
        _server("echo", *python, "echo", str(folder)) as echo,
        _server("Go", "env", "GOMAXPROCS=1", *_go(load.program, folder)) as other,
    ):
        (folder / "patch.json").write_bytes(_patch(muster, folder))
        _throughput(load, [muster, echo, other], arguments.seconds, arguments.rounds)
        print(f"{_RATE} reviews a second")
        for server in (other, echo, muster):
            _latency(load, server, server.name)
        _large(load, muster)
        _strangers(api, arguments.pods)
        print(f"{_RATE} reviews a second, and {arguments.pods} pods in the store")
        _latency(load, muster, "muster")
        muster.process.send_signal(signal.SIGUSR1)
        # The others show what the apiserver's own work for the lists takes of the machine.
        for server, listing in ((other, "Go, while muster lists them"), (echo, "echo, while muster lists them")):
            _latency(load, server, listing)
        _latency(load, muster, "muster, listing them again and again")


def _strangers(api: Api, count: int) -> None:
    """Living pods of other clusters, which came without muster."""

    def create(number: int) -> None:
        pod = watch.pod(number)
        del pod["metadata"]["labels"]["muster.dev/gang"]
        api.create(PODS.path("default"), pod)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(create, range(count)))


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
    none = median(seen["none"])
    print("pods that the apiserver creates, by the webhook that it asks")
    for namespace, rates in seen.items():
        rate = median(rates)
        print(
            f"  {namespace:<8} {rate:6.0f} a second ({min(rates):.0f} to {max(rates):.0f}) {rate / none:6.2f} of none"
        )
    print(f"  muster is {median(seen['muster']) / median(seen['go']):.2f} of Go", flush=True)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m hack.bench.admission")
    parser.add_argument("--pods", type=int, default=5000, help="pods that are listed again and again")
    parser.add_argument("--seconds", type=float, default=4.0, help="how long each server is asked in each round")
    parser.add_argument("--rounds", type=int, default=3, help="rounds, of which the median counts")
    arguments = parser.parse_args()
    program = _compiled()
    with Testbed.start(parts=(), progress=lambda _: None) as testbed, tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        authority = Authority.create("bench")
        (folder / "ca.crt").write_bytes(authority.pem()[0])
        write_pair(folder, "server", authority.issue([_NAME, "127.0.0.1"]))
        api = testbed.api()
        prepare(testbed, api)
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


if __name__ == "__main__":
    main()
