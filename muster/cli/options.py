"""Options that several commands share, each described once."""

from __future__ import annotations

import argparse
import math
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from muster.cli.settings import Settings
    from muster.model.selectors import Selector


CONNECT_TIMEOUT = "MUSTER_CONNECT_TIMEOUT"
"""The environment variable with the default of --connect-timeout."""
# Enough for a VPN and a busy control plane; after one second the command says that it waits.
_CONNECT_SECONDS = 5.0
# Of commands that administrators need most when the apiserver is slow.
_CONNECT_SECONDS_IN_NEED = 10.0


def output(parser: argparse.ArgumentParser, *formats: str) -> None:
    """The option for the format of the result; without `formats` as a table, or for a program."""
    parser.add_argument(
        "-o",
        "--output",
        choices=formats or ("table", "yaml", "json"),
        default="table",
        help="format of the result; default: table",
    )


def caution(parser: argparse.ArgumentParser) -> None:
    """The options of a command that changes the cluster."""
    flag(parser, "--dry-run", "check everything and change nothing")
    parser.add_argument("-y", "--yes", action="store_true", help="do not ask for confirmation on a terminal")


def scope(parser: argparse.ArgumentParser, namespace: str, everywhere: str, *, wide: bool = False) -> None:
    """The options for one namespace, or for all; a `wide` command may mean all without any of them."""
    scope = parser.add_mutually_exclusive_group()
    scope.add_argument("-n", "--namespace", type=_named if wide else str, help=namespace)
    scope.add_argument("-A", "--all-namespaces", action="store_true", help=everywhere)


def connection(parser: argparse.ArgumentParser, *, in_need: bool = False) -> None:
    """The options for the cluster, and for how long it may take to answer: longer for a command of emergencies."""
    usual = _CONNECT_SECONDS_IN_NEED if in_need else _CONNECT_SECONDS
    parser.add_argument("--kubeconfig", help="path to the kubeconfig; default: as for kubectl")
    parser.add_argument("--context", help="kubeconfig context to use; default: the current context")
    parser.add_argument(
        "--connect-timeout",
        type=deadline,
        default=os.environ.get(CONNECT_TIMEOUT, usual),
        metavar="SECONDS",
        help=f"how long to wait for the first answer of the apiserver; default: ${CONNECT_TIMEOUT}, else {usual:g}",
    )


def flag(parser: argparse._ActionsContainer, name: str, text: str) -> None:
    """An option without a value, and its help."""
    parser.add_argument(name, action="store_true", help=text)


def cluster(
    parser: argparse.ArgumentParser,
    namespace: str = "namespace to read when you cannot list all namespaces",
    everywhere: str = "read all namespaces; the default when you can list them",
) -> None:
    """The options of a command that reads a cluster as the controller does."""
    scope(parser, f"{namespace}; default: the namespace of the kubeconfig context", everywhere)
    connection(parser)
    settings(parser)


def settings(parser: argparse.ArgumentParser, otherwise: str = "the settings that the cluster publishes") -> None:
    """The option for settings of the installation other than the published ones."""
    parser.add_argument(
        "--values", type=_settings, metavar="FILE", help=f"values file of muster's chart; default: {otherwise}"
    )


def _named(text: str) -> str:
    # A variable of a script that is not set must not mean all namespaces.
    if not text:
        raise argparse.ArgumentTypeError("is empty; leave it out to mean no namespace in particular")
    return text


def queue_name(text: str) -> str:
    """The name of a queue; raises ArgumentTypeError for an empty one, as of a variable that is not set."""
    if not text:
        raise argparse.ArgumentTypeError("is empty; leave it out to mean every queue")
    return text


def seconds(text: str) -> float:
    """The value of an option in seconds; 0 is one, infinity is none."""
    found = _number(text)
    if not 0 <= found < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds")
    return found


def deadline(text: str) -> float:
    """The value of an option in seconds, above 0."""
    found = _number(text)
    if not 0 < found < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds above 0")
    return found


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def _settings(path: str) -> Settings:
    from muster.cli.parsing import InputError  # noqa: PLC0415 - as below
    from muster.cli.settings import settings_of  # noqa: PLC0415

    try:
        return settings_of(path)
    except InputError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def selector(text: str) -> Selector:
    """The label selector that an argument has; raises ArgumentTypeError."""
    # Most commands get none, and start without the module.
    from muster.model.selectors import InvalidSelectorError, parse_selector  # noqa: PLC0415

    try:
        return parse_selector(text, bounded=False)
    except InvalidSelectorError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
