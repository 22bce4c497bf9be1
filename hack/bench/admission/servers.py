"""The webhook's own server, alone in its process.

`python -m hack.bench.admission.servers FOLDER KUBECONFIG` serves what `muster-webhook` serves, with a certificate of
the folder instead of the Secret's, and prints the port. SIGUSR1 has it list all pods of its watches again and again,
until the next.
"""

import asyncio
import signal
import ssl
import sys
from pathlib import Path

from prometheus_client import CollectorRegistry

from muster.gangs.intent import Defaults
from muster.kube.client import Client
from muster.kube.reflector import Reflector
from muster.model.keep import Keep
from muster.model.resource import PODS
from muster.process.lifecycle import tune_gc
from webhook.metrics import ReviewMetrics
from webhook.reviews.cluster_cache import ClusterCache
from webhook.server.app import make_handler
from webhook.server.limits import Limits, ReviewLimits
from webhook.server.listener import Listener

_SECONDS = 120.0


async def _serve(context: ssl.SSLContext, kubeconfig: str) -> None:
    tune_gc()
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
        handler = make_handler(cache, ReviewMetrics(CollectorRegistry()), ReviewLimits(Limits()))
        listener = Listener(handler, lambda: context)
        _, port = await listener.start("127.0.0.1", 0)
        print(port, flush=True)
        while True:
            await relisting.wait()
            for watched in cache.common(Keep.READ):
                if watched.resource is PODS and len(watched.store):
                    await _list_again(Reflector(client, watched))


async def _list_again(reflector: Reflector) -> None:
    running = asyncio.create_task(reflector.run())
    await reflector.wait_synced(_SECONDS)
    running.cancel()
    await asyncio.wait({running})


def main(folder: str, kubeconfig: str) -> None:
    """Serve until killed."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(Path(folder, "server.crt"), Path(folder, "server.key"))
    asyncio.run(_serve(context, kubeconfig))


if __name__ == "__main__":
    main(*sys.argv[1:])
