"""The `muster-controller` process: several replicas may run, and one leads."""

import argparse
import asyncio
import logging
import sys
import uuid
from dataclasses import dataclass
from functools import partial

import muster
from controller.apiserver import LiveReader, Writer
from controller.delays import Clock
from controller.events import Announcer
from controller.history import HistoryStore, Part
from controller.metrics import RESOURCES, Metrics, TermMetrics
from controller.reconciler import Reconciler
from controller.term import Term
from muster.admitters.kueue import KueueTimeouts
from muster.cluster.cluster import Cluster
from muster.cluster.nodes import NodeWatch
from muster.cluster.served import choose_versions
from muster.gangs.accounts import Accounts
from muster.gangs.history import History
from muster.gangs.intent import Defaults
from muster.kube.client import Client
from muster.kube.concurrency import in_slices
from muster.kube.lease import LeaseElector, LeaseLost, LeaseTiming
from muster.kube.workqueue import WorkQueue, work
from muster.model.names import read_key
from muster.model.selectors import InvalidSelectorError, Selector, parse_selector
from muster.model.times import duration_of
from muster.process.event_loop import Turns
from muster.process.health import serve_health
from muster.process.lifecycle import add_common_arguments, defaults_of, identity, parse_args, run, stop_signal
from muster.process.logs import configure_logging
from muster.process.metrics import LoopTurns, Watches, new_registry, unread
from muster.queueing.ledger import GangKey
from muster.queueing.past_use import PastUse

logger = logging.getLogger("controller")

USER_AGENT = f"muster-controller/{muster.__version__}"
_WORKERS = 16
# A reconcile that failed is repeated within this many seconds at the latest.
_LONGEST_RETRY = 30.0
# The seconds between two counts of the nodes, and two refreshes of the messages of waiting gangs.
_TICK = 1.0
# The seconds for which ready gangs are still reconciled after the signal to end.
_DRAIN = 3.0
# A series each for every queue and number.
_MOST_RESOURCES = 16


def main() -> None:
    """Work as the leader, or wait to become the leader, until SIGTERM."""
    parser = argparse.ArgumentParser(prog="muster-controller", description="Controller of muster.")
    add_common_arguments(parser)
    parser.add_argument("--bound", choices=["", "nodes"], default="", help="no more starts than the nodes can hold")
    parser.add_argument(
        "--kueue-timeout",
        type=_duration,
        default=_duration("30m"),
        help="Kueue's waitForPodsReady.timeout, such as 30m; 0s where Kueue waits for ever",
    )
    parser.add_argument(
        "--kueue-unscheduled-timeout",
        type=_duration,
        default=_duration("0s"),
        help="Kueue's waitForPodsReady.unscheduledTimeout (Kueue 0.20), such as 10m; 0s where it is not set",
    )
    parser.add_argument(
        "--namespace-selector",
        type=_selector,
        default=Selector(),
        help="manage only workloads in namespaces with these labels, such as team=ml,env in (dev, test)",
    )
    parser.add_argument(
        "--metrics-resources",
        type=_names,
        default=RESOURCES,
        help="resources in the metrics of queues, such as cpu,memory; at most 16",
    )
    parser.add_argument("--history", default="", help="name of the ConfigMap for run times and use")
    parser.add_argument("--history-labels", type=_names, default=(), help="labels by which use is counted; at most 4")
    parser.add_argument(
        "--lease", default="muster-controller", help="name of the Lease that decides which replica leads"
    )
    parser.add_argument("--lease-duration", type=float, default=15.0, help="seconds until a silent leader is replaced")
    parser.add_argument("--renew-deadline", type=float, default=10.0, help="seconds until a leader gives up renewing")
    parser.add_argument("--retry-period", type=float, default=2.0, help="seconds between attempts at the lease")
    arguments = parse_args(parser)
    configure_logging(arguments.log_level, arguments.log_format)
    try:
        run("muster-controller", partial(_run, arguments))
    except* LeaseLost as lost:
        # The kubelet starts a fresh process with a fresh picture; that is the safest way back.
        sys.exit(f"muster-controller: {lost.exceptions[0]}")


def _duration(text: str) -> float:
    seconds = duration_of(text)
    if seconds is None:
        raise argparse.ArgumentTypeError(f'"{text[:80]}" is not a duration such as 30s, 10m or 1h30m')
    return seconds


def _names(text: str) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(name for name in text.split(",") if name))
    if len(names) > _MOST_RESOURCES:
        raise argparse.ArgumentTypeError(f"{len(names)} resources; name at most {_MOST_RESOURCES}")
    return names


def _selector(text: str) -> Selector:
    try:
        # The chart writes every excluded namespace into it.
        return parse_selector(text, bounded=False) if text else Selector()
    except InvalidSelectorError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


@dataclass(frozen=True, slots=True)
class _Parts:
    """The parts that last as long as the process, leading or not; `instance` names it in events.

    `history` is the name of the ConfigMaps for run times in `namespace`, "" where none are kept.
    """

    client: Client
    cluster: Cluster
    queue: WorkQueue[GangKey]
    elector: LeaseElector
    metrics: Metrics
    term_metrics: TermMetrics
    instance: str
    namespace: str
    history: str
    history_labels: tuple[str, ...]
    defaults: Defaults
    bound_by_nodes: bool


async def _run(arguments: argparse.Namespace, turns: Turns) -> None:
    own = identity()
    stop = stop_signal()
    async with await Client.connect(kubeconfig=arguments.kubeconfig, user_agent=USER_AGENT) as client:
        await choose_versions(client, arguments.schedulers.values())
        kueue = KueueTimeouts(arguments.kueue_timeout, arguments.kueue_unscheduled_timeout)
        defaults = defaults_of(arguments, kueue=kueue)
        cluster = Cluster(
            arguments.namespace_selector,
            defaults.schedulers.values(),
            defaults.queue_source,
            defaults.admitters,
            elastic_quotas=defaults.elastic_quotas,
        )
        registry = new_registry("controller")
        LoopTurns(turns, registry)
        elector = LeaseElector(
            client,
            namespace=own.namespace,
            name=arguments.lease,
            identity=f"{own.name}_{uuid.uuid4()}",
            timing=LeaseTiming(
                lease=arguments.lease_duration,
                renew=arguments.renew_deadline,
                retry=arguments.retry_period,
            ),
        )
        metrics = Metrics(registry, arguments.metrics_resources, elector.is_valid)
        parts = _Parts(
            client,
            cluster,
            WorkQueue(cap=_LONGEST_RETRY, waited=metrics.queue_wait.observe),
            elector,
            metrics,
            TermMetrics(cluster, arguments.lease, elector.is_valid, registry),
            own.name,
            own.namespace,
            arguments.history,
            tuple(map(read_key, arguments.history_labels)),
            defaults,
            arguments.bound == "nodes",
        )
        reflectors = cluster.reflectors(client)
        Watches(reflectors, registry)

        def ready() -> dict[str, str]:
            return {"stores": unread(reflectors), "running": "ending" if stop.is_set() else ""}

        async with (
            serve_health(arguments.health_bind_address, arguments.health_port, ready=ready, registry=registry),
            asyncio.TaskGroup() as group,
        ):
            tasks = [group.create_task(reflector.run()) for reflector in reflectors]
            taking_part = group.create_task(_take_part(parts))
            tasks.append(taking_part)
            await stop.wait()
            logger.info("shutting down", extra={"event": "controller.stopping"})
            parts.queue.shut_down()
            if elector.is_valid():
                # What was begun is finished, and the lease given back, before the stores end.
                await asyncio.wait({taking_part}, timeout=_DRAIN)
            for task in reversed(tasks):
                task.cancel()


async def _take_part(parts: _Parts) -> None:
    await parts.cluster.wait_synced()
    logger.info("caches synced; attempting to acquire the lease", extra={"event": "controller.synced"})
    await parts.elector.run(partial(_lead, parts))


async def _lead(parts: _Parts) -> None:
    """Work as the leader until the lease is lost, or the queue is shut down and drained."""
    logger.info("started leading", extra={"event": "controller.leading"})
    cluster = parts.cluster
    writer = Writer(parts.client, parts.elector.alone_for)
    reads = LiveReader(parts.client)
    announcer = Announcer(writer, reads, parts.instance)
    history = History() if parts.history else None
    accounts = Accounts(parts.history_labels) if parts.history else None
    past = PastUse()
    kept: dict[str, Part] = {}
    if history is not None and accounts is not None:
        kept = {"runs": history, "use": accounts, "past": past}
    starts = parts.metrics.start_errors
    store = HistoryStore(parts.client, writer, namespace=parts.namespace, name=parts.history, parts=kept, starts=starts)
    await store.read()
    term = Term(
        cluster,
        parts.queue,
        writer,
        reads,
        announcer,
        parts.metrics,
        Clock(),
        parts.defaults,
        history,
        accounts,
        past,
    )
    reconciler = Reconciler(term)
    counted = reconciler.kept, term.reporter.groupless
    parts.term_metrics.begins(parts.queue, announcer, *counted, reserved=reconciler.reserved, held=reconciler.held)
    reconciler.subscribe()
    await in_slices(reconciler.prime(await cluster.list_pod_groups(parts.client)))
    nodes = NodeWatch(parts.client, cluster)
    try:
        # Nothing is decided before it is known how much there is.
        await _bound(reconciler, nodes, always=parts.bound_by_nodes)
        reconciler.count_others()
        async with asyncio.TaskGroup() as tasks:
            running = [
                tasks.create_task(_tick(reconciler)),
                tasks.create_task(_follow(reconciler, nodes, always=parts.bound_by_nodes)),
                tasks.create_task(announcer.run()),
                tasks.create_task(term.sweeps.run()),
                tasks.create_task(store.run(term.accounting)),
            ]
            await work(parts.queue, parts.metrics.measured(reconciler.reconcile), _WORKERS)
            for task in running:
                task.cancel()
            await store.account(term.accounting, last=True)
    finally:
        await nodes.stop()


async def _bound(reconciler: Reconciler, nodes: NodeWatch, *, always: bool) -> None:
    reconciler.bound(await nodes.room(wanted=always or reconciler.bound_by_nodes))


async def _follow(reconciler: Reconciler, nodes: NodeWatch, *, always: bool) -> None:
    """Keep the bound as the nodes are; where they begin to bound, a list comes first, which may take long, or fail."""
    while True:
        await asyncio.sleep(_TICK)
        await _bound(reconciler, nodes, always=always)


async def _tick(reconciler: Reconciler) -> None:
    while True:
        await asyncio.sleep(_TICK)
        reconciler.tick()


if __name__ == "__main__":
    main()
