"""The `muster-webhook` process."""

from __future__ import annotations

import argparse
import asyncio
import logging
import sys
from collections.abc import Callable
from functools import partial

import muster
from muster.gangs.intent import Defaults
from muster.kube.client import Client
from muster.model.findings import Severity
from muster.model.strictness import Validation, read_validation
from muster.process.event_loop import Turns
from muster.process.health import serve_health
from muster.process.lifecycle import add_common_arguments, identity, parsed, run, stop_signal
from muster.process.logs import configure_logging
from muster.process.metrics import LoopTurns, Watches, new_registry, unread
from muster.queueing.sources import QUEUE_SOURCES
from webhook.certificates.options import add_certificate_arguments, trust_of
from webhook.certificates.serving import CertificateSource
from webhook.metrics import CertificateDates, Metrics, show_load
from webhook.reviews.knowledge import Knowledge
from webhook.server.app import make_handler
from webhook.server.intake import Intake, Limits
from webhook.server.listener import Listener

logger = logging.getLogger("webhook")

USER_AGENT = f"muster-webhook/{muster.__version__}"

# After the shutdown delay and what the apiserver waits for an answer; the chart grants 10 seconds more than both.
_DRAIN_SECONDS = 3.0
# Of the time that the apiserver waits: a decision, and within it one read.
_DECISION_SHARE, _READ_SHARE = 0.8, 0.4


def main() -> None:
    """Serve admission reviews until SIGTERM."""
    parser = argparse.ArgumentParser(prog="muster-webhook", description="Admission webhook of muster.")
    add_common_arguments(parser)
    parser.add_argument("--bind-address", default="", help="address to serve reviews on (all that there are)")
    parser.add_argument("--port", type=int, default=9443, help="port to serve reviews on")
    add_certificate_arguments(parser)
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
    parser.add_argument(
        "--validation",
        default=Severity.DENY,
        help="deny, warn (nothing is refused: what would be is warned of) or off",
    )
    parser.add_argument(
        "--validation-reason",
        action="append",
        default=[],
        metavar="REASON=SEVERITY",
        help="what comes of one reason of docs/denials.md: deny, warn or off; may be repeated",
    )
    arguments = parsed(parser)
    try:
        validation = read_validation(arguments.validation, arguments.validation_reason)
    except ValueError as error:
        parser.error(str(error))
    configure_logging(arguments.log_level, arguments.log_format)
    run("muster-webhook", partial(_run, arguments, validation))


async def _run(arguments: argparse.Namespace, validation: Validation, turns: Turns) -> None:
    own = identity()
    defaults = Defaults(
        queue=arguments.default_queue,
        schedulers=arguments.schedulers,
        admitters=arguments.admitters,
        gate=arguments.gate,
        queue_source=QUEUE_SOURCES[arguments.queue_source],
        elastic_quotas=arguments.elastic_quotas,
        validation=validation,
    )
    stop = stop_signal()
    async with await Client.connect(kubeconfig=arguments.kubeconfig, user_agent=USER_AGENT) as client:
        knowledge = Knowledge(client, defaults, arguments.timeout * _READ_SHARE)
        try:
            trust = trust_of(arguments, client, own)
        except ValueError as error:
            sys.exit(f"muster-webhook: {error}")
        registry = new_registry("webhook")
        LoopTurns(turns, registry)
        stores = knowledge.reflectors()
        reflectors = [*stores, *trust.reflectors()]
        Watches(reflectors, registry)
        CertificateDates(trust, registry)
        intake = Intake(Limits(decision_seconds=arguments.timeout * _DECISION_SHARE, share=_DECISION_SHARE))
        handler = make_handler(knowledge, defaults, Metrics(registry), intake)
        listener = Listener(handler, intake, lambda: trust.context)
        show_load(lambda: intake.reviews, lambda: listener.connections, registry)

        def ready() -> dict[str, str]:
            return {
                "certificate": _certificate(trust),
                "stores": unread(stores),
                "serving": "ending" if stop.is_set() else "" if listener.serving else "not yet",
            }

        async with (
            serve_health(arguments.health_bind_address, arguments.health_port, ready=ready, registry=registry),
            asyncio.TaskGroup() as group,
        ):
            background = [group.create_task(reflector.run()) for reflector in reflectors]
            background.append(group.create_task(trust.run()))
            await _serve(arguments, listener, trust, stop, lambda: not unread(stores))
            for task in background:
                task.cancel()


def _certificate(trust: CertificateSource) -> str:
    """What keeps the apiserver from accepting the certificate; "" when nothing does."""
    if not trust.loaded.is_set():
        return "not yet"
    return "" if trust.ready else "not valid now"


async def _serve(
    arguments: argparse.Namespace,
    listener: Listener,
    trust: CertificateSource,
    stop: asyncio.Event,
    synced: Callable[[], bool],
) -> None:
    """Serve until some time after `stop`; its connections end in order.

    It serves from the first certificate on, and after everything was listed once: before that an unknown queue may only
    be unread, and so may pods for which a workload is left alone.
    """

    async def begin() -> None:
        await trust.loaded.wait()
        while not synced():  # noqa: ASYNC110 - some stores, once in the life of the process
            await asyncio.sleep(0.05)

    loaded = asyncio.ensure_future(begin())
    stopped = asyncio.ensure_future(stop.wait())
    await asyncio.wait({loaded, stopped}, return_when=asyncio.FIRST_COMPLETED)
    if stopped.done():
        loaded.cancel()
        return
    address, port = await listener.start(arguments.bind_address, arguments.port)
    logger.info("serving reviews on %s, port %d", address, port, extra={"event": "webhook.serving"})
    await stopped
    trust.ending = True
    logger.info(
        "shutting down in %g s, with %d connections",
        arguments.shutdown_delay,
        listener.connections,
        extra={"event": "webhook.stopping"},
    )
    await listener.drain(arguments.timeout + _DRAIN_SECONDS, after=arguments.shutdown_delay)
    logger.info("stopped", extra={"event": "webhook.stopped"})


if __name__ == "__main__":
    main()
