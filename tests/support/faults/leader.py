"""A process that leads and writes, as fast as it can, through the controller's own Writer: `python -m …leader`.

Arguments: kubeconfig, namespace, name of the lease, identity, and the three times of the lease. Each write is an apply
to one of a hundred ConfigMaps of that lease and leaves the identity in it, so that the apiserver's own watch says who
wrote what and in which order.
"""

import asyncio
import itertools
import logging
import sys

from controller.apiserver import NotLeaderError, Writer
from muster.kube.client import Client
from muster.kube.errors import ApiError
from muster.kube.lease import LeaseElector, LeaseLost, LeaseTiming
from muster.kube.workqueue import WorkQueue, work
from muster.model.resource import Resource
from muster.process.lifecycle import stop_signal

logger = logging.getLogger("leader")

CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")
_KEYS, _WORKERS = 100, 8


async def main(kubeconfig: str, namespace: str, lease: str, identity: str, *times: str) -> None:
    """Lead until SIGTERM, or until the lease is lost."""
    stop = stop_signal()
    timing = LeaseTiming(*map(float, times))
    async with await Client.connect(kubeconfig=kubeconfig, user_agent=identity) as client:
        elector = LeaseElector(client, namespace=namespace, name=lease, identity=identity, timing=timing)
        writer = Writer(client, elector.alone_for)
        count = itertools.count()

        async def lead() -> None:
            queue: WorkQueue[int] = WorkQueue()

            async def write(key: int) -> None:
                metadata = {"name": f"{lease}-{key}", "namespace": namespace}
                data = {"by": identity, "number": str(next(count))}
                body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}
                try:
                    await writer.apply(CONFIG_MAPS, body, field_manager=identity)
                except NotLeaderError as error:
                    logger.info("%s", error)
                    return
                except ApiError as error:
                    logger.info("%s", error)
                queue.add(key)

            for key in range(_KEYS):
                queue.add(key)
            await work(queue, write, _WORKERS)

        leading = asyncio.create_task(elector.run(lead))
        stopping = asyncio.create_task(stop.wait())
        await asyncio.wait({leading, stopping}, return_when=asyncio.FIRST_COMPLETED)
        leading.cancel()
        try:
            await leading
        except LeaseLost as lost:
            sys.exit(str(lost))
        except asyncio.CancelledError:
            return


if __name__ == "__main__":
    logging.basicConfig(level="INFO", stream=sys.stderr, format="%(asctime)s %(message)s")
    asyncio.run(main(*sys.argv[1:]))
