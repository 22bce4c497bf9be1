"""The webhook's own server, and an empty one of the same parts, each alone in its process.

`python -m hack.bench.admission.servers muster FOLDER KUBECONFIG` is what `muster-webhook` serves, with a certificate of
the folder instead of the Secret's; SIGUSR1 has it list all pods of its watches again and again, until the next.
`... echo FOLDER` reads a review with msgspec and allows it. Both print the port.
"""

import asyncio
import signal
import ssl
import sys
from pathlib import Path

import msgspec
from aiohttp import web
from prometheus_client import CollectorRegistry

from muster.gangs.intent import Defaults
from muster.kube.client import Client
from muster.kube.reflector import Reflector
from muster.kube.resource import PODS
from muster.model.keep import Keep
from muster.model.objects import Pod
from muster.process.lifecycle import spare_collector
from webhook.metrics import Metrics
from webhook.reviews.cluster_cache import ClusterCache
from webhook.server.app import make_handler
from webhook.server.limits import Limits, ReviewLimits
from webhook.server.listener import Listener

_SECONDS = 120.0


class _Request(msgspec.Struct):
    uid: str
    object: msgspec.Raw


class _Review(msgspec.Struct, rename="camel"):
    api_version: str
    kind: str
    request: _Request


async def _echo(http: web.Request) -> web.Response:
    review = msgspec.json.decode(await http.read(), type=_Review)
    answer = {
        "apiVersion": review.api_version,
        "kind": review.kind,
        "response": {"uid": review.request.uid, "allowed": True},
    }
    return web.Response(body=msgspec.json.encode(answer), content_type="application/json")


async def _serve_echo(context: ssl.SSLContext) -> None:
    app = web.Application(client_max_size=7 * 2**20)
    app.add_routes([web.post("/mutate/pods", _echo)])
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
    print(runner.addresses[0][1], flush=True)
    await asyncio.Event().wait()


async def _serve_muster(context: ssl.SSLContext, kubeconfig: str) -> None:
    spare_collector()
    relisting = asyncio.Event()

    def toggle() -> None:
        if relisting.is_set():
            relisting.clear()
        else:
            relisting.set()

    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, toggle)
    async with (
        await Client.connect(kubeconfig=kubeconfig, user_agent="muster-bench") as client,
        asyncio.TaskGroup() as group,
    ):
        cache = ClusterCache(client, Defaults())
        reflectors = cache.reflectors()
        for reflector in reflectors:
            group.create_task(reflector.run())
        for reflector in reflectors:
            await reflector.wait_synced(_SECONDS)
        handler = make_handler(cache, Metrics(CollectorRegistry()), ReviewLimits(Limits()))
        listener = Listener(handler, lambda: context)
        _, port = await listener.start("127.0.0.1", 0)
        print(port, flush=True)
        while True:
            await relisting.wait()
            for watched in cache.common(Keep.READ):
                if watched.resource is PODS and len(watched.store):
                    await _list_again(watched.reflector(client))


async def _list_again(reflector: Reflector[Pod]) -> None:
    running = asyncio.create_task(reflector.run())
    await reflector.wait_synced(_SECONDS)
    running.cancel()
    await asyncio.wait({running})


def main(kind: str, folder: str, *rest: str) -> None:
    """Serve until killed."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(Path(folder, "server.crt"), Path(folder, "server.key"))
    asyncio.run(_serve_echo(context) if kind == "echo" else _serve_muster(context, *rest))


if __name__ == "__main__":
    main(*sys.argv[1:])
