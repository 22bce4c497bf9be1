"""The common lifecycle of both processes: their arguments, their identity, and an orderly end."""

import argparse
import asyncio
import gc
import logging
import os
import signal
import sys
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

import muster
from muster.admitters import Admitter, listed
from muster.gangs.intent import Defaults
from muster.kube.config import ConfigError
from muster.kube.errors import ApiError
from muster.model.modes import GateMode
from muster.process.event_loop import Turns, run_measured
from muster.process.logs import FORMATS, LEVELS
from muster.queueing.sources import QUEUE_SOURCES
from muster.schedulers import GangScheduler, named

logger = logging.getLogger(__name__)

# The collector runs after this many more allocations than deallocations; Python's own threshold is 700. With 100,000
# one run took up to 94 ms.
_COLLECTED_AFTER = 20_000


@dataclass(frozen=True, slots=True)
class Identity:
    """The pod of this process; the chart sets POD_NAME and POD_NAMESPACE from the downward API."""

    name: str
    namespace: str


def identity() -> Identity:
    """Return the identity of this process; exits with a clear line when it is not in the environment."""
    missing = [name for name in ("POD_NAME", "POD_NAMESPACE") if not os.environ.get(name)]
    if missing:
        sys.exit(f"muster: {' and '.join(missing)} must be set; the chart takes them from the pod's own metadata")
    return Identity(os.environ["POD_NAME"], os.environ["POD_NAMESPACE"])


def add_common_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags that both processes take."""
    parser.add_argument("--kubeconfig", help="path of a kubeconfig; without it the pod's own ServiceAccount is used")
    parser.add_argument("--health-bind-address", default="", help="address of probes and metrics (all that there are)")
    parser.add_argument("--health-port", type=int, default=8080, help="port of probes and metrics")
    parser.add_argument("--log-level", default="info", choices=LEVELS, help="least level that is written")
    parser.add_argument("--log-format", default="console", choices=list(FORMATS), help="for people, or for machines")
    parser.add_argument("--default-queue", default="default", help="queue of workloads that name none")
    parser.add_argument(
        "--schedulers",
        type=chosen,
        default=chosen("volcano"),
        metavar="LIST",
        help="gang schedulers of the cluster, such as volcano,coscheduling=NAME; the first is the default",
    )
    parser.add_argument(
        "--queue-source",
        choices=list(QUEUE_SOURCES),
        default="volcano",
        help="whose queues count: Volcano's Queues, or muster's own GangQueues",
    )
    parser.add_argument(
        "--admitters",
        type=admitting,
        default=(Admitter.LEDGER,),
        metavar="LIST",
        help="the admitters of gangs: ledger, kueue, none; the first is that of namespaces that name none",
    )
    parser.add_argument(
        "--elastic-quotas",
        action="store_true",
        help="enforce the ElasticQuotas of scheduler-plugins for gangs of the scheduler coscheduling",
    )
    parser.add_argument(
        "--gate",
        type=GateMode,
        choices=list(GateMode),
        default=GateMode.QUEUE,
        help="what holds gangs back where neither their queue nor their namespace sets it",
    )
    parser.add_argument("--version", action="version", version=muster.__version__)


def parse_args(parser: argparse.ArgumentParser) -> argparse.Namespace:
    """Return the arguments of a process; exits with a clear line if they contradict each other."""
    arguments = parser.parse_args()
    if arguments.elastic_quotas and not any(one.elastic_quotas for one in arguments.schedulers.values()):
        parser.error(
            "--elastic-quotas: no scheduler of --schedulers enforces ElasticQuotas; name coscheduling there, or leave "
            "--elastic-quotas out"
        )
    return arguments


def defaults_of(arguments: argparse.Namespace, **more: Any) -> Defaults:  # noqa: ANN401 - other fields of Defaults
    """Return the settings of the installation by the common flags, and `more` of them."""
    return Defaults(
        queue=arguments.default_queue,
        schedulers=arguments.schedulers,
        gate=arguments.gate,
        admitters=arguments.admitters,
        queue_source=QUEUE_SOURCES[arguments.queue_source],
        elastic_quotas=arguments.elastic_quotas,
        **more,
    )


def chosen(text: str) -> dict[str, GangScheduler]:
    """Return the gang schedulers that an argument lists, by name; raises ArgumentTypeError."""
    try:
        schedulers = named(*text.split(","))
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
    if planned := [one.product for one in schedulers.values() if not one.runs]:
        raise argparse.ArgumentTypeError(f"{planned[0]} is for `muster plan` alone; muster does not run its gangs")
    return schedulers


def admitting(text: str) -> tuple[Admitter, ...]:
    """Return the admitters that an argument lists; raises ArgumentTypeError."""
    try:
        return listed(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def tune_gc() -> None:
    """Make the cycle collector run seldom, scan each object once, and never the objects that exist by now.

    With Python's thresholds it scans a hundred thousand objects of loaded modules and a whole store every few pages of
    a list, and all tasks wait for it: a second scan of the objects of fifty thousand gangs took 1.4 s. Objects that
    these processes drop are freed by their reference count at once.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(_COLLECTED_AFTER)
    if _freeze_survivors not in gc.callbacks:
        gc.callbacks.append(_freeze_survivors)


def _freeze_survivors(phase: str, _: dict[str, int]) -> None:
    if phase == "stop":
        gc.freeze()


def run(name: str, process: Callable[[Turns], Coroutine[Any, Any, None]]) -> None:
    """Run a process to its end; without a usable configuration, or an answer to it, it exits with one clear line.

    `process` gets the turns of its event loop.
    """
    tune_gc()
    try:
        run_measured(process)
    except (ApiError, ConfigError) as error:
        sys.exit(f"{name}: {error}")


def stop_signal() -> asyncio.Event:
    """Return an event that SIGTERM or SIGINT sets; a second one ends the process at once, as Kubernetes' own do."""
    stop = asyncio.Event()

    def on_signal(number: signal.Signals) -> None:
        if stop.is_set():
            logger.warning("second signal received; exiting immediately", extra={"event": "process.killed"})
            os._exit(128 + number)
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, on_signal, number)
    return stop
