"""The `muster-webhook` process."""

from __future__ import annotations

import argparse
import asyncio
import logging

from aiohttp import web

import muster
from muster.intent import Defaults
from muster.kube.client import Client
from muster.process import add_common_arguments, configure_logging, identity, run, serve_health, stop_signal
from webhook.knowledge import Knowledge
from webhook.server import make_app
from webhook.trust import Trust

logger = logging.getLogger("webhook")

USER_AGENT = f"muster-webhook/{muster.__version__}"

# The apiserver keeps idle connections for 90 s; closing ours earlier would fail a call now and then.
_KEEP_ALIVE_SECONDS = 120.0
_DRAIN_SECONDS = 8.0
# Of the time that the apiserver waits: a decision, and within it one read.
_DECISION_SHARE, _READ_SHARE = 0.8, 0.4


def main() -> None:
    """Serve admission reviews until SIGTERM."""
    parser = argparse.ArgumentParser(prog="muster-webhook", description="Admission webhook of muster.")
    add_common_arguments(parser)
    parser.add_argument("--bind-address", default="0.0.0.0", help="address to serve reviews on")  # noqa: S104
    parser.add_argument("--port", type=int, default=9443, help="port to serve reviews on")
    parser.add_argument("--secret", default="muster-webhook-tls", help="Secret that holds the certificates")
    parser.add_argument("--service", default="muster-webhook", help="Service by which the apiserver calls")
    parser.add_argument("--configuration", default="muster", help="name of both webhook configurations")
    parser.add_argument(
        "--shutdown-delay",
        type=float,
        default=5.0,
        help="seconds to go on serving after SIGTERM, until no more calls are routed here",
    )
    parser.add_argument(
        "--timeout",
        type=float,
        default=5.0,
        help="seconds that the apiserver waits, as in the webhook configurations; decisions stay below it",
    )
    arguments = parser.parse_args()
    configure_logging(arguments.log_level)
    run("muster-webhook", _run(arguments))


async def _run(arguments: argparse.Namespace) -> None:
    own = identity()
    defaults = Defaults(queue=arguments.default_queue)
    stop = stop_signal()
    async with await Client.connect(kubeconfig=arguments.kubeconfig, user_agent=USER_AGENT) as client:
        knowledge = Knowledge(client, defaults, arguments.timeout * _READ_SHARE)
        trust = Trust(
            client,
            namespace=own.namespace,
            secret=arguments.secret,
            service=arguments.service,
            configuration=arguments.configuration,
        )

        def ready() -> dict[str, bool]:
            return {"certificate": trust.ready, "stores": knowledge.synced, "serving": not stop.is_set()}

        async with (
            serve_health(arguments.health_bind_address, arguments.health_port, ready=ready),
            asyncio.TaskGroup() as group,
        ):
            background = [group.create_task(reflector.run()) for reflector in knowledge.reflectors()]
            background.append(group.create_task(trust.run()))
            await _serve(arguments, knowledge, trust, defaults, stop)
            for task in background:
                task.cancel()


async def _serve(
    arguments: argparse.Namespace,
    knowledge: Knowledge,
    trust: Trust,
    defaults: Defaults,
    stop: asyncio.Event,
) -> None:
    loaded = asyncio.ensure_future(trust.loaded.wait())
    stopped = asyncio.ensure_future(stop.wait())
    await asyncio.wait({loaded, stopped}, return_when=asyncio.FIRST_COMPLETED)
    if stopped.done():
        loaded.cancel()
        return
    runner = web.AppRunner(
        make_app(knowledge, defaults, arguments.timeout * _DECISION_SHARE),
        access_log=None,
        handle_signals=False,
        keepalive_timeout=_KEEP_ALIVE_SECONDS,
        shutdown_timeout=_DRAIN_SECONDS,
    )
    await runner.setup()
    site = web.TCPSite(
        runner,
        arguments.bind_address,
        arguments.port,
        ssl_context=trust.context,
        # Replicas on one host (the testbed) share the Service's address.
        reuse_port=True,
    )
    await site.start()
    logger.info("serving reviews on %s:%d", arguments.bind_address, arguments.port)
    await stopped
    await asyncio.sleep(arguments.shutdown_delay)
    await runner.cleanup()


if __name__ == "__main__":
    main()
