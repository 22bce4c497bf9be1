"""The `muster` command; each subcommand is imported only when it is called, for a quick start."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

import muster

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command and exit: 0 when all is well, 1 when something is refused, 2 for want of answer or input."""
    parser = argparse.ArgumentParser(prog="muster", description="Gang scheduling of Ray and Kubeflow workloads.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    _plan(commands)
    _release(commands)
    _withdraw(commands)
    _explain(commands)
    _queues(commands)
    _audit(commands)
    _doctor(commands)
    commands.add_parser("version", help="print the version and the commit")
    arguments = parser.parse_args(argv)
    if arguments.command == "version":
        from muster.process.revision import revision  # noqa: PLC0415

        print(f"{muster.__version__} (commit {revision()})")
        sys.exit(0)
    sys.exit(_runner(arguments.command)(arguments))


def _runner(command: str) -> Callable[[argparse.Namespace], int]:
    """What runs a command; `muster version` has no use for any of them, nor one for the others."""
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
        case "doctor":
            from muster.cli.doctor.command import run  # noqa: PLC0415
        case "release":
            from muster.cli.release import run  # noqa: PLC0415
        case _:
            from muster.cli.plan import run  # noqa: PLC0415
    return run


def _plan(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "plan",
        help="show, without a cluster, what muster makes of manifests",
        description="Show the gang, the PodGroup and the pod patches of each workload in the manifests. "
        "Queues, PriorityClasses, Namespaces, LimitRanges, ResourceQuotas, RuntimeClasses and the TrainJobs' "
        "runtimes in the input are taken into account; without any Queue nothing is judged by room.",
    )
    parser.add_argument(
        "-f",
        "--filename",
        action="append",
        required=True,
        metavar="FILE",
        help="manifest, folder of manifests, or - for standard input; may be repeated",
    )
    parser.add_argument("-o", "--output", choices=["table", "yaml", "json"], default="table")
    _installed(parser)
    parser.add_argument(
        "--dra",
        choices=["deny", "warn"],
        default="warn",
        help="as the chart's value dra, for ResourceClaims",
    )
    parser.add_argument(
        "--strict",
        action="store_true",
        help="exit with 3 where a workload is not managed, or something looks misspelled",
    )
    parser.add_argument("--cluster", action="store_true", help="take these from the cluster too")
    parser.add_argument("--kubeconfig", help="path of the kubeconfig for --cluster; else as kubectl finds it")


def _release(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "release",
        help="emergency: open muster's gates, whatever the queues say",
        description="Take muster's scheduling gate off the pods of gangs, so that the scheduler may place them. "
        "Needs nothing but the apiserver and the rights to list and patch pods, no process of muster or Volcano.",
    )
    parser.add_argument("gang", nargs="*", metavar="GANG", help="name of a gang's PodGroup")
    parser.add_argument("--all", action="store_true", help="every gang, of the namespace given or of all of them")
    parser.add_argument("-n", "--namespace", help='of the gangs; else "default", and with --all everywhere')
    parser.add_argument("--dry-run", action="store_true", help="have everything checked and nothing changed")
    parser.add_argument("--kubeconfig", help="path of the kubeconfig; else as kubectl finds it")


def _withdraw(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "withdraw",
        help="take muster out of the cluster: its webhooks first, then every gate; `helm uninstall` does",
        description="Take muster's webhook configurations away, and its controller's rights, and open every gate until "
        "none is left; `helm upgrade` brings the first two back. Needs nothing but the apiserver.",
    )
    parser.add_argument(
        "--name", default="muster", help="what the chart names everything by: the release, with muster in it"
    )
    parser.add_argument(
        "--settle",
        type=float,
        default=6.0,
        metavar="SECONDS",
        help="how long a review may have been under way: more than the chart's value webhook.timeoutSeconds",
    )
    parser.add_argument("--kubeconfig", help="path of the kubeconfig; else as kubectl finds it")


def _explain(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "explain",
        help="say why a workload waits, runs, or is not muster's",
        description="Say of a workload where its gang stands and why: what it needs, what its queue has free, who "
        "holds the rest, and which of its pods are there. It only reads, with the rights that you have, and says which "
        "are missing.",
    )
    parser.add_argument(
        "workload", nargs="+", metavar="KIND/NAME", help="such as raycluster/demo; or a pod, or PodGroup"
    )
    parser.add_argument("-o", "--output", choices=["table", "yaml", "json"], default="table")
    _cluster(parser, "of the workload")


def _queues(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    queues = commands.add_parser(
        "queues",
        help="show the queues: what they may hold, what they hold, and who waits",
        description="Show every queue in its tree, with what it may hold and holds, and how many gangs hold and wait.",
    )
    queues.add_argument("-o", "--output", choices=["table", "yaml", "json"], default="table")
    watch = commands.add_parser(
        "watch",
        help="show queues and gangs, and every change, until Ctrl-C",
        description="Show the queues and all gangs that hold or wait, and draw them anew when anything changes.",
    )
    for parser in (queues, watch):
        _cluster(parser, "to look at where you may not see all of them")


def _audit(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "audit",
        help="list what is there and would be refused, or warned of",
        description="Judge every workload, Queue and PodGroup that is there as if it were applied now, by the "
        "webhook's own rules: before the chart is upgraded, or its value validation goes from warn to deny. It changes "
        "nothing, and what runs goes on.",
    )
    parser.add_argument("-o", "--output", choices=["table", "yaml", "json"], default="table")
    parser.add_argument("-n", "--namespace", help="look in this namespace only; else in all of them")
    parser.add_argument(
        "--validation", choices=["deny", "warn", "off"], default="deny", help="as the chart's value validation will be"
    )
    parser.add_argument(
        "--validation-reason",
        action="append",
        default=[],
        metavar="REASON=SEVERITY",
        help="as one of the chart's value validationReasons will be; may be repeated",
    )
    parser.add_argument(
        "--excluded-namespace",
        action="append",
        default=[],
        metavar="NAMESPACE",
        help="as one of the chart's value excludedNamespaces, or its own; may be repeated",
    )
    _connection(parser)
    _installed(parser)


def _doctor(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "doctor",
        help="check muster and what it stands on, and say what to do",
        description="Check a cluster: muster's pods, webhooks, certificates, rights and lease, Volcano, gangs that "
        "have been held for long, and operators that make gangs themselves. Each finding comes with its cure. A pod "
        "and a Job are created as dry runs; nothing is changed. The exit code is 1 when there is a problem, else 2 "
        "when not everything could be looked at.",
    )
    parser.add_argument("-o", "--output", choices=["table", "yaml", "json"], default="table")
    parser.add_argument("-n", "--namespace", help="of the dry runs; else that of the kubeconfig's context")
    parser.add_argument(
        "--held-for", default="1h", metavar="DURATION", help="name gangs that are held for longer; 1h if not said"
    )
    _connection(parser)


def _connection(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--kubeconfig", help="path of the kubeconfig; else as kubectl finds it")
    parser.add_argument("--context", help="the kubeconfig's context to use; else its current one")


def _cluster(parser: argparse.ArgumentParser, namespace: str) -> None:
    parser.add_argument("-n", "--namespace", help=f"{namespace}; else that of the kubeconfig's context")
    _connection(parser)
    _installed(parser)
    parser.add_argument("--bound", choices=["", "nodes"], default="", help="as the chart's value bound")


def _installed(parser: argparse.ArgumentParser) -> None:
    """What the processes are told by the chart, and nobody who is no administrator can read in the cluster."""
    parser.add_argument("--default-queue", default="default", help="as the chart's value defaultQueue")
    parser.add_argument("--gate", choices=["queue", "assemble", "off"], default="queue", help="as the chart's value")
