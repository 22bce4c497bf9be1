"""The `muster-webhook` process."""

import argparse
import asyncio
import datetime as dt
import logging
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import muster
from muster.cluster.served import choose_versions
from muster.kube.client import Client
from muster.model.findings import Severity, Validation, read_validation
from muster.process.certificates import Lives
from muster.process.event_loop import Turns
from muster.process.health import serve_health
from muster.process.lifecycle import Identity, add_common_arguments, defaults_of, identity, parse_args, run, stop_signal
from muster.process.logs import configure_logging
from muster.process.metrics import LoopTurns, Watches, new_registry, unread
from webhook.certificates.authority import CertificateManager, RotationTiming
from webhook.certificates.bundles import CertificateEvents
from webhook.certificates.source import CertificateSource, MountedCertificates
from webhook.metrics import CertificateDates, ReviewMetrics, show_load
from webhook.reviews.cluster_cache import ClusterCache
from webhook.server.app import make_handler
from webhook.server.limits import Limits, ReviewLimits
from webhook.server.listener import Listener

logger = logging.getLogger("webhook")

USER_AGENT = f"muster-webhook/{muster.__version__}"

# Seconds after the shutdown delay and the apiserver's timeout; the chart grants 10 seconds more than both.
_DRAIN_SECONDS = 3.0
# Shares of the apiserver's timeout: for a decision, and for one read within it.
_DECISION_SHARE, _READ_SHARE = 0.8, 0.4
_SHORTEST_DAYS = 1.0
# An authority is renewed when a third of its life is left; a certificate that it signs then must not outlive it.
_AUTHORITY_FACTOR = 3


def main() -> None:
    """Serve admission reviews until SIGTERM."""
    parser = argparse.ArgumentParser(prog="muster-webhook", description="Admission webhook of muster.")
    add_common_arguments(parser)
    parser.add_argument("--bind-address", default="", help="address to serve reviews on (default: all)")
    parser.add_argument("--port", type=int, default=9443, help="port to serve reviews on")
    add_certificate_arguments(parser)
    parser.add_argument(
        "--shutdown-delay",
        type=float,
        default=5.0,
        help="seconds to continue after SIGTERM, until no more calls are routed here",
    )
    parser.add_argument(
        "--timeout",
        type=float,
        default=5.0,
        help="the apiserver's timeout in seconds, as in the webhook configurations; a decision takes less",
    )
    parser.add_argument(
        "--validation",
        default=Severity.DENY,
        help="deny, warn (a fault is a warning and no refusal) or off",
    )
    parser.add_argument(
        "--validation-reason",
        action="append",
        default=[],
        metavar="REASON=SEVERITY",
        help="deny, warn or off for one reason of docs/denials.md; may be repeated",
    )
    arguments = parse_args(parser)
    try:
        validation = read_validation(arguments.validation, arguments.validation_reason)
    except ValueError as error:
        parser.error(str(error))
    configure_logging(arguments.log_level, arguments.log_format)
    run("muster-webhook", partial(_run, arguments, validation))


def add_certificate_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options for certificates."""
    parser.add_argument("--secret", default="muster-webhook-tls", help="Secret that holds the certificates")
    parser.add_argument("--service", default="muster-webhook", help="Service by which the apiserver calls")
    parser.add_argument("--configuration", default="muster", help="name of both webhook configurations")
    parser.add_argument(
        "--certificate-directory",
        type=Path,
        help="serve tls.crt and tls.key of this folder, which another program renews; no caBundle is written then",
    )
    parser.add_argument(
        "--certificate-days", type=_days, default=90.0, help="life of muster's own serving certificates"
    )
    parser.add_argument("--authority-days", type=_days, default=365.0, help="life of muster's own authority")
    parser.add_argument(
        "--trust-delay",
        type=_seconds,
        default=30.0,
        help="seconds that a new authority is in every caBundle before it signs a certificate",
    )
    parser.add_argument(
        "--authority-overlap",
        type=_seconds,
        default=3600.0,
        help="seconds that an authority stays in the caBundles after its last certificate was replaced",
    )


def certificate_source(arguments: argparse.Namespace, client: Client, own: Identity) -> CertificateSource:
    """The source of certificates that the options name. Raises ValueError if they contradict each other."""
    if arguments.authority_days < _AUTHORITY_FACTOR * arguments.certificate_days:
        raise ValueError(
            f"--authority-days {arguments.authority_days:g} is too short for --certificate-days "
            f"{arguments.certificate_days:g}: an authority lives at least {_AUTHORITY_FACTOR} times as long"
        )
    service = arguments.service
    names = [f"{service}.{own.namespace}.svc", f"{service}.{own.namespace}", service]
    events = CertificateEvents(client, own.namespace, arguments.secret, own.name)
    if arguments.certificate_directory is not None:
        directory = arguments.certificate_directory
        return MountedCertificates(client, events, arguments.configuration, directory=directory, names=names[:1])
    lives = Lives(dt.timedelta(days=arguments.certificate_days), dt.timedelta(days=arguments.authority_days))
    return CertificateManager(
        client,
        events,
        arguments.configuration,
        names=names,
        timing=RotationTiming(lives, arguments.trust_delay, arguments.authority_overlap),
    )


def _days(text: str) -> float:
    days = float(text)
    if not _SHORTEST_DAYS <= days <= 36500:  # noqa: PLR2004 - a century
        raise argparse.ArgumentTypeError(f"{text} days: use 1 to 36500")
    return days


def _seconds(text: str) -> float:
    seconds = float(text)
    if not 0 <= seconds < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} seconds: use 0 or more")
    return seconds


async def _run(arguments: argparse.Namespace, validation: Validation, turns: Turns) -> None:
    own = identity()
    defaults = defaults_of(arguments, validation=validation)
    stop = stop_signal()
    async with await Client.connect(kubeconfig=arguments.kubeconfig, user_agent=USER_AGENT) as client:
        await choose_versions(client, defaults.schedulers.values())
        cache = ClusterCache(client, defaults, arguments.timeout * _READ_SHARE)
        try:
            certificates = certificate_source(arguments, client, own)
        except ValueError as error:
            sys.exit(f"muster-webhook: {error}")
        registry = new_registry("webhook")
        LoopTurns(turns, registry)
        stores = cache.reflectors()
        reflectors = [*stores, *certificates.reflectors()]
        Watches(reflectors, registry)
        CertificateDates(certificates, registry)
        limits = ReviewLimits(Limits(decision_seconds=arguments.timeout * _DECISION_SHARE, share=_DECISION_SHARE))
        handler = make_handler(cache, ReviewMetrics(registry), limits)
        listener = Listener(handler, lambda: certificates.context)
        show_load(lambda: limits.reviews, lambda: listener.connections, registry)

        def ready() -> dict[str, str]:
            return {
                "certificate": _certificate(certificates),
                "stores": unread(stores),
                "serving": "ending" if stop.is_set() else "" if listener.serving else "not yet",
            }

        async with (
            serve_health(arguments.health_bind_address, arguments.health_port, ready=ready, registry=registry),
            asyncio.TaskGroup() as group,
        ):
            background = [group.create_task(reflector.run()) for reflector in reflectors]
            background.append(group.create_task(certificates.run()))
            await _serve(arguments, listener, certificates, stop, lambda: not unread(stores))
            for task in background:
                task.cancel()


def _certificate(certificates: CertificateSource) -> str:
    """Why the apiserver does not accept the certificate; "" if it does."""
    if not certificates.loaded.is_set():
        return "not yet"
    return "" if certificates.ready else "not valid now"


async def _serve(
    arguments: argparse.Namespace,
    listener: Listener,
    certificates: CertificateSource,
    stop: asyncio.Event,
    synced: Callable[[], bool],
) -> None:
    """Serve until some time after `stop`, when all connections have been closed in order.

    It begins with the first certificate, and after all stores were listed once: before that an unknown queue may only
    be unread, and so may the unmanaged pods of a workload.
    """

    async def begin() -> None:
        await certificates.loaded.wait()
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
    certificates.ending = True
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
