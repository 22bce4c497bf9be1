"""The controller's process before an apiserver that does not say everything at once."""

import asyncio
import sys
from pathlib import Path

from aiohttp import web

from hack.testbed import Testbed
from hack.testbed.api import answers
from hack.testbed.site import kubeconfig_text
from muster.cluster.cluster import Cluster
from muster.model.resource import LEASES, NODES, PODS
from tests.support.faults.apiserver import FaultyApiserver, eventually, only
from tests.support.faults.things import Things

_CHECKOUT = Path(__file__).parents[2]


async def test_is_not_ready_and_does_not_lead_before_it_knows_everything(
    cluster: Testbed, proxy: FaultyApiserver, things: Things, tmp_path: Path
) -> None:
    """While one list is missing the probe says so and nobody stands for leader; then both, and SIGTERM ends both."""
    release = asyncio.Event()

    async def held(request: web.Request) -> web.StreamResponse:
        await release.wait()
        return await proxy.forward(request)

    proxy.on("LIST", only(PODS.path(), held, proxy.forward))
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(kubeconfig_text(proxy.url, cluster.ca_file, cluster.admin_token))
    port = cluster.port(things.namespace)
    argv = [sys.executable, "-m", "controller", f"--kubeconfig={kubeconfig}", f"--health-port={port}"]
    process = cluster.spawn(
        f"controller-{things.namespace}",
        [*argv, "--health-bind-address=127.0.0.1", "--lease=faults"],
        env={"PYTHONPATH": str(_CHECKOUT), "POD_NAME": "faults", "POD_NAMESPACE": things.namespace},
    )
    lease = LEASES.path(things.namespace, "faults")

    async def answers_on(path: str) -> bool:
        return await asyncio.to_thread(answers, f"http://127.0.0.1:{port}/{path}", cluster.ca_file)

    def holder() -> str:
        answer = things.api("GET", lease)
        return str(answer.body.get("spec", {}).get("holderIdentity", "")) if answer.ok else ""

    try:
        paths = {NODES.path(), *(watched.resource.path() for watched in Cluster().watched())}
        await eventually(lambda: {request.path for request in proxy.seen("LIST")} == paths)
        await eventually(lambda: len(proxy.statuses) >= len(paths) - 1)
        while not await answers_on("healthz"):
            pass
        assert not await answers_on("readyz")
        assert things.api("GET", lease).status == 404
        release.set()
        while not await answers_on("readyz"):
            pass
        await eventually(lambda: holder().startswith("faults_"))
        process.signal(15)
        await eventually(lambda: not process.alive())
        assert holder() == ""
    finally:
        process.kill()
