"""What a cluster of watched pods takes of muster's memory, with the bytes that the real apiserver sends."""

import asyncio
import gc
import tracemalloc

from hack.bench.many import worker_pod
from hack.testbed import Testbed, wait_for
from muster.kube.client import Client
from muster.kube.reflector import Reflector, Watched
from muster.kube.store import Store
from muster.model.pods import Pod
from muster.model.resource import PODS
from tests.support.faults.things import Things

PODS_HERE, PODS_OF_THE_PROMISE, BYTES_OF_THE_PROMISE = 500, 5000, 60 * 2**20


async def test_five_thousand_pods_of_eleven_kilobytes_take_sixty_megabytes(cluster: Testbed, things: Things) -> None:
    """Five hundred real ones are measured: what each keeps, ten times as often, and a page while it is read."""
    calls, path = things.api, PODS.path(things.namespace)
    account = f"/api/v1/namespaces/{things.namespace}/serviceaccounts/default"
    await asyncio.to_thread(wait_for, "its ServiceAccount", lambda: calls("GET", account).ok)
    await asyncio.to_thread(calls.each, lambda number: calls.done("POST", path, worker_pod(number)), range(PODS_HERE))
    async with await Client.connect(kubeconfig=str(cluster.kubeconfig), user_agent="muster-test") as client:
        size = len(await client.list_page(PODS, namespace=things.namespace, limit=1))
        assert size > 11_000
        store: Store[Pod] = Store()
        reflector = Reflector(client, Watched(PODS, Pod, store, namespace=things.namespace))
        gc.collect()
        tracemalloc.start()
        try:
            running = asyncio.create_task(reflector.run())
            await reflector.wait_synced(120)
            gc.collect()
            kept, highest = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        running.cancel()
        await asyncio.wait({running})
    assert len(store) == PODS_HERE
    assert kept / PODS_HERE * PODS_OF_THE_PROMISE + (highest - kept) < BYTES_OF_THE_PROMISE
