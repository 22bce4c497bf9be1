"""The `muster` command; each subcommand is imported only when it is called, for a quick start."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

import muster

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command and exit: 0 when all is well, 1 when something is refused, 2 when the input cannot be read."""
    parser = argparse.ArgumentParser(prog="muster", description="Gang scheduling of Ray and Kubeflow workloads.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    plan = commands.add_parser(
        "plan",
        help="show, without a cluster, what muster makes of manifests",
        description="Show the gang, the PodGroup and the pod patches of each workload in the manifests. "
        "Queues and PriorityClasses in the input are taken into account; without any Queue nothing is judged by room.",
    )
    plan.add_argument(
        "-f",
        "--filename",
        action="append",
        required=True,
        metavar="FILE",
        help="manifest, folder of manifests, or - for standard input; may be repeated",
    )
    plan.add_argument("-o", "--output", choices=["table", "yaml", "json"], default="table")
    plan.add_argument("--default-queue", default="default", help="queue of workloads that name none")
    plan.add_argument("--cluster", action="store_true", help="take queues, classes and namespaces from the cluster too")
    plan.add_argument("--kubeconfig", help="path of the kubeconfig for --cluster; else as kubectl finds it")
    commands.add_parser("version", help="print the version")
    arguments = parser.parse_args(argv)
    if arguments.command == "version":
        print(muster.__version__)
        sys.exit(0)
    from muster.cli.plan import run  # noqa: PLC0415 - `muster version` has no use for it

    sys.exit(run(arguments))
