"""The `muster-controller` process: several may run, one works."""

from __future__ import annotations

import argparse
import asyncio
import logging
import sys
import time
import uuid
from typing import TYPE_CHECKING

import muster
from controller.cluster import Cluster
from controller.reconciler import Reconciler
from controller.writer import Writer
from muster.intent import Defaults
from muster.kube.client import Client
from muster.kube.lease import LeaseElector, LeaseLost, LeaseTiming
from muster.kube.workqueue import WorkQueue, work
from muster.process import add_common_arguments, configure_logging, identity, run, serve_health, stop_signal

if TYPE_CHECKING:
    from muster.ledger import GangKey

logger = logging.getLogger("controller")

USER_AGENT = f"muster-controller/{muster.__version__}"
_WORKERS = 16
# A gang that failed is looked at again within this many seconds at the latest.
_LONGEST_RETRY = 30.0


def main() -> None:
    """Work as the leader, or wait to become it, until SIGTERM."""
    parser = argparse.ArgumentParser(prog="muster-controller", description="Controller of muster.")
    add_common_arguments(parser)
    parser.add_argument("--lease", default="muster-controller", help="name of the Lease that decides who works")
    parser.add_argument("--lease-duration", type=float, default=15.0, help="seconds until a silent leader is replaced")
    parser.add_argument("--renew-deadline", type=float, default=10.0, help="seconds until a leader gives up renewing")
    parser.add_argument("--retry-period", type=float, default=2.0, help="seconds between attempts at the lease")
    arguments = parser.parse_args()
    configure_logging(arguments.log_level)
    try:
        run("muster-controller", _run(arguments))
    except* LeaseLost as lost:
        # The kubelet starts a fresh process with a fresh picture; that is the safest way back.
        sys.exit(f"muster-controller: {lost.exceptions[0]}")


async def _run(arguments: argparse.Namespace) -> None:
    own = identity()
    stop = stop_signal()
    async with await Client.connect(kubeconfig=arguments.kubeconfig, user_agent=USER_AGENT) as client:
        cluster = Cluster()
        timing = LeaseTiming(
            lease=arguments.lease_duration,
            renew=arguments.renew_deadline,
            retry=arguments.retry_period,
        )
        elector = LeaseElector(
            client,
            namespace=own.namespace,
            name=arguments.lease,
            identity=f"{own.name}_{uuid.uuid4()}",
            timing=timing,
        )

        async def lead() -> None:
            logger.info("leading")
            queue: WorkQueue[GangKey] = WorkQueue(cap=_LONGEST_RETRY)
            reconciler = Reconciler(
                # Until its lease has run out nobody else may have begun, even when it cannot be renewed any more.
                Writer(client, lambda: elector.remaining() + timing.margin if elector.is_valid() else 0.0),
                cluster,
                queue,
                Defaults(queue=arguments.default_queue),
                instance=own.name,
                clock=time.monotonic,
            )
            cluster.subscribe(gang=queue.add, queue=reconciler.queue_changed)
            reconciler.prime(await cluster.list_pod_groups(client))
            await work(queue, reconciler.reconcile, _WORKERS)

        async def take_part() -> None:
            await cluster.wait_synced()
            logger.info("all stores synced; standing for leader")
            await elector.run(lead)

        async with (
            serve_health(
                arguments.health_bind_address,
                arguments.health_port,
                ready=lambda: {"stores": cluster.synced, "running": not stop.is_set()},
            ),
            asyncio.TaskGroup() as group,
        ):
            tasks = [group.create_task(reflector.run()) for reflector in cluster.reflectors(client)]
            tasks.append(group.create_task(take_part()))
            await stop.wait()
            logger.info("stopping")
            for task in reversed(tasks):
                task.cancel()


if __name__ == "__main__":
    main()
