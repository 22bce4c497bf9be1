"""The `muster` command. Each subcommand is imported only when it runs, so that start-up stays short."""

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING, NoReturn

import muster

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from muster.admitters import Admitter
    from muster.model.selectors import Selector
    from muster.schedulers import GangScheduler

__all__ = ["CONNECT_TIMEOUT", "main", "parser"]

CONNECT_TIMEOUT = "MUSTER_CONNECT_TIMEOUT"
"""The environment variable with the default of --connect-timeout."""
# Together with the start of the command less than 2 seconds; enough for five round trips of 200 ms.
_CONNECT_SECONDS = 1.0


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command and exit.

    The exit code is 0 on success, 1 when something is refused or a problem is found, and 2 when the input cannot be
    read or the cluster does not answer.
    """
    commands = parser()
    arguments = commands.parse_args(argv)
    if getattr(arguments, "elastic_quotas", False) and not _heeded(arguments.schedulers or {}):
        commands.error("--elastic-quotas: no scheduler of --schedulers heeds ElasticQuotas; name coscheduling there")
    if arguments.command == "version":
        _print_version()
    sys.exit(_runner(arguments.command)(arguments))


def parser() -> argparse.ArgumentParser:
    """The commands and their options."""
    parser = argparse.ArgumentParser(prog="muster", description="Gang scheduling of Ray and Kubeflow workloads.")
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version and the commit")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    _plan(commands)
    _release(commands)
    _withdraw(commands)
    _explain(commands)
    _queues(commands)
    _audit(commands)
    _doctor(commands)
    _migrate_queues(commands)
    completion = commands.add_parser(
        "completion",
        help="print the completion script of a shell",
        description="Print the completion script of a shell. For bash: source <(muster completion bash)",
    )
    completion.add_argument("shell", choices=["bash", "zsh", "fish"])
    commands.add_parser("version", help="print the version and the commit")
    return parser


def _heeded(schedulers: Mapping[str, GangScheduler]) -> bool:
    """Whether any of the schedulers heeds ElasticQuotas; the default does not."""
    return any(one.elastic_quotas for one in schedulers.values())


class _Version(argparse.Action):
    """`--version`."""

    def __call__(self, *_: object) -> None:
        """Print the version and exit."""
        _print_version()


def _print_version() -> NoReturn:
    from muster.process.revision import revision  # noqa: PLC0415

    print(f"{muster.__version__} (commit {revision()})")
    sys.exit(0)


def _runner(command: str) -> Callable[[argparse.Namespace], int]:
    """The function that runs a command; only its module is imported."""
    match command:
        case "explain":
            from muster.cli.explain import run  # noqa: PLC0415
        case "queues":
            from muster.cli.queues import run  # noqa: PLC0415
        case "watch":
            from muster.cli.queues import watch as run  # noqa: PLC0415
        case "audit":
            from muster.cli.audit import run  # noqa: PLC0415
        case "withdraw":
            from muster.cli.withdraw import run  # noqa: PLC0415
        case "migrate-queues":
            from muster.cli.migrate_queues import run  # noqa: PLC0415
        case "doctor":
            from muster.cli.doctor.command import run  # noqa: PLC0415
        case "completion":
            from muster.cli.completion import run  # noqa: PLC0415
        case "release":
            from muster.cli.release import run  # noqa: PLC0415
        case _:
            from muster.cli.plan import run  # noqa: PLC0415
    return run


def _plan(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "plan",
        help="show what muster would do with manifests; needs no cluster",
        description="Show the gang, the PodGroup and the pod patches of each workload in the manifests. "
        "Queues, PriorityClasses, Namespaces, LimitRanges, ResourceQuotas, ElasticQuotas, RuntimeClasses and training "
        "runtimes in the input are taken into account. Without a Queue in the input, queue limits are not checked.",
    )
    parser.add_argument(
        "-f",
        "--filename",
        action="append",
        required=True,
        metavar="FILE",
        help="manifest file, directory of manifests, or - for standard input; can be repeated",
    )
    parser.add_argument("-o", "--output", choices=["table", "wide", "yaml", "json", "junit"], default="table")
    parser.add_argument(
        "-n", "--namespace", default="", help='namespace of the objects that name none; default: "default"'
    )
    parser.add_argument("--patches", action="store_true", help="also show the patches of the pods in the table")
    _installed(parser)
    parser.add_argument(
        "--dra",
        choices=["deny", "warn"],
        default="warn",
        help="what to do with ResourceClaims; must match the chart value `dra`",
    )
    parser.add_argument(
        "--strict",
        action="store_true",
        help="exit with 3 when a workload is not managed, or something looks misspelled",
    )
    parser.add_argument(
        "--cluster", action="store_true", help="also read queues and the other context from the cluster"
    )
    _connection(parser)


def _release(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "release",
        help="emergency: open muster's gates regardless of the queues",
        description="Remove muster's scheduling gate from the pods of gangs, so that the scheduler can place them. "
        "It needs only the apiserver and permission to list and patch pods; muster and Volcano may be down.",
    )
    parser.add_argument("gang", nargs="*", metavar="GANG", help="name of the gang's PodGroup")
    parser.add_argument("--all", action="store_true", help="every gang; without -n in all namespaces")
    _scope(
        parser,
        "namespace of the gangs; default: the namespace of the kubeconfig context",
        "find the gangs in all namespaces",
    )
    _caution(parser)
    _connection(parser)


def _withdraw(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "withdraw",
        help="remove muster from the cluster: its webhooks, then every gate; `helm uninstall` runs this",
        description="Delete muster's webhook configurations and the permissions of its controller, then open every "
        "gate. `helm upgrade` restores the first two. It needs only the apiserver.",
    )
    parser.add_argument(
        "--name",
        default="muster",
        help="prefix of all object names of the release, as the chart computes it; default: muster",
    )
    parser.add_argument(
        "--settle",
        type=float,
        default=6.0,
        metavar="SECONDS",
        help="how long to wait for reviews in flight; must exceed the chart value `webhook.timeoutSeconds`",
    )
    _chosen_schedulers(parser)
    _caution(parser)
    _connection(parser)


def _migrate_queues(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "migrate-queues",
        help="copy Volcano's Queues into GangQueues, or back",
        description="Make a queue of the other source for each queue of the one. A queue that exists already stays as "
        "it is. The chart value `queues.source` chooses which of them count.",
    )
    parser.add_argument("--to", choices=["muster", "volcano"], required=True, help="the source that gets the queues")
    _caution(parser)
    _connection(parser)


def _explain(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "explain",
        help="show why a workload waits, runs, or is not managed by muster",
        description="Show the state of a workload's gang and the reason: what the gang needs, what its queue "
        "has free, which gangs hold the rest, and which of its pods exist. It only reads, with your permissions, and "
        "names the permissions that are missing.",
    )
    parser.add_argument(
        "workload",
        nargs="+",
        metavar="KIND/NAME",
        help="workload, pod or PodGroup, for example raycluster/demo, or raycluster demo; can be repeated",
    )
    parser.add_argument("-o", "--output", choices=["table", "yaml", "json"], default="table")
    _cluster(parser, "namespace of the workloads", "find the workloads in all namespaces")


def _queues(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    queues = commands.add_parser(
        "queues",
        help="show the queues: limits, usage, and how many gangs wait",
        description="Show the queue tree with the limit and the usage of each queue, and the number of gangs that hold "
        "a claim or wait.",
    )
    queues.add_argument("-o", "--output", choices=["table", "yaml", "json"], default="table")
    watch = commands.add_parser(
        "watch",
        help="show queues and gangs, updated on every change, until Ctrl-C",
        description="Show the queues and all gangs that hold a claim or wait, and redraw when anything changes.",
    )
    for parser in (queues, watch):
        _cluster(
            parser,
            "namespace to read when you cannot list all namespaces",
            "read all namespaces; the default when you can list them",
        )


def _audit(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "audit",
        help="list existing objects that admission would reject or warn about",
        description="Check every existing workload, Queue and PodGroup against the rules of the webhook, as if it were "
        "applied now. Run it before you upgrade the chart or change the chart value `validation` from warn to deny. "
        "It changes nothing, and running workloads keep running.",
    )
    parser.add_argument("-o", "--output", choices=["table", "yaml", "json"], default="table")
    _scope(parser, "check only this namespace, and no Queues", "check all namespaces; the default")
    parser.add_argument(
        "--validation", choices=["deny", "warn", "off"], default="deny", help="the future chart value `validation`"
    )
    parser.add_argument(
        "--validation-reason",
        action="append",
        default=[],
        metavar="REASON=SEVERITY",
        help="one entry of the future chart value `validationReasons`; can be repeated",
    )
    parser.add_argument(
        "--excluded-namespace",
        action="append",
        default=[],
        metavar="NAMESPACE",
        help="one entry of the chart value `excludedNamespaces`, or the namespace of muster; can be repeated",
    )
    _connection(parser)
    _installed(parser)


def _doctor(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "doctor",
        help="check muster and its dependencies, and suggest fixes",
        description="Check a cluster: muster's pods, webhooks, certificates, permissions and lease, Volcano, gangs "
        "that are held for a long time, and operators that create gangs themselves. Each finding comes with a fix. A "
        "pod and a Job are created as dry runs; nothing is changed without --probe. The exit code is 1 when there is a "
        "problem, and 2 when there is none but some checks could not run.",
    )
    parser.add_argument("-o", "--output", choices=["table", "yaml", "json"], default="table")
    _scope(
        parser,
        "namespace of the dry runs and the probe; default: the namespace of the kubeconfig context",
        "read all namespaces; always done",
    )
    parser.add_argument(
        "--held-for",
        default="1h",
        metavar="DURATION",
        help="report gangs that are held for longer than this; default: 1h",
    )
    parser.add_argument(
        "--probe",
        nargs="?",
        const="all",
        choices=["all", "only"],
        help="also test whether kube-scheduler holds gangs together, with a PodGroup and three small pods that are "
        "deleted afterwards; only: make no other check",
    )
    parser.add_argument("--image", default="", help="image of the pods of --probe; default: muster's own")
    _chosen_schedulers(parser, "with --probe=only: the chart value `schedulers`; default: kubernetes")
    _connection(parser)


def _caution(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--dry-run", action="store_true", help="check everything and change nothing")
    parser.add_argument("-y", "--yes", action="store_true", help="do not ask for confirmation on a terminal")


def _scope(parser: argparse.ArgumentParser, namespace: str, everywhere: str) -> None:
    scope = parser.add_mutually_exclusive_group()
    scope.add_argument("-n", "--namespace", help=namespace)
    scope.add_argument("-A", "--all-namespaces", action="store_true", help=everywhere)


def _connection(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--kubeconfig", help="path to the kubeconfig; default: as for kubectl")
    parser.add_argument("--context", help="kubeconfig context to use; default: the current context")
    parser.add_argument(
        "--connect-timeout",
        type=float,
        default=os.environ.get(CONNECT_TIMEOUT, _CONNECT_SECONDS),
        metavar="SECONDS",
        help=f"how long to wait for the first answer of the apiserver; default: ${CONNECT_TIMEOUT}, else "
        f"{_CONNECT_SECONDS:g}",
    )


def _cluster(parser: argparse.ArgumentParser, namespace: str, everywhere: str) -> None:
    _scope(parser, f"{namespace}; default: the namespace of the kubeconfig context", everywhere)
    _connection(parser)
    _installed(parser)
    parser.add_argument("--bound", choices=["", "nodes"], default="", help="must match the chart value `bound`")


def _installed(parser: argparse.ArgumentParser) -> None:
    """Settings of the installation that only administrators can read from the cluster."""
    parser.add_argument("--default-queue", default="default", help="must match the chart value `defaultQueue`")
    _chosen_schedulers(parser)
    parser.add_argument(
        "--queue-source",
        choices=["volcano", "muster"],
        default="volcano",
        help="must match the chart value `queues.source`",
    )
    parser.add_argument(
        "--admitters",
        type=_admitters,
        default="ledger",
        metavar="LIST",
        help="must match the chart value `admitters`, such as ledger,kueue",
    )
    parser.add_argument("--elastic-quotas", action="store_true", help="must match the chart value `elasticQuotas`")
    parser.add_argument(
        "--gate", choices=["queue", "assemble", "off"], default="queue", help="must match the chart value `gate`"
    )
    parser.add_argument(
        "--namespace-selector",
        type=_selector,
        metavar="SELECTOR",
        help="must match the chart value `namespaceSelector`, such as muster=pilot,env in (dev, test)",
    )


def _chosen_schedulers(
    parser: argparse.ArgumentParser,
    text: str = "must match the chart value `schedulers`, such as volcano,coscheduling=NAME",
) -> None:
    parser.add_argument(
        "--schedulers",
        type=_schedulers,
        metavar="LIST",
        help=text,
    )


def _admitters(text: str) -> tuple[Admitter, ...]:
    from muster.admitters import listed  # noqa: PLC0415 - as below

    try:
        return listed(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _schedulers(text: str) -> dict[str, GangScheduler]:
    from muster.schedulers import named  # noqa: PLC0415 - as below

    try:
        return named(*text.split(","))
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _selector(text: str) -> Selector:
    # Most commands get none, and start without the module.
    from muster.model.selectors import InvalidSelectorError, parse_selector  # noqa: PLC0415

    try:
        return parse_selector(text)
    except InvalidSelectorError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
