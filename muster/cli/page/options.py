"""The options of `muster page`; apart from the command itself, so that no other command loads the page."""

from __future__ import annotations

import argparse
from collections.abc import Callable

_HIGHEST_PORT = 65535


def add_page(
    commands: argparse._SubParsersAction[argparse.ArgumentParser],
    cluster: Callable[[argparse.ArgumentParser, str, str], None],
) -> None:
    """Add the command; `cluster` adds the options of every command that reads a cluster."""
    parser = commands.add_parser(
        "page",
        help="serve a web page of the queues and gangs on this machine, until Ctrl-C",
        description="Serve a web page on the loopback address: the queues with their limits and usage, the gangs that "
        "wait, in order and with the reason, and those that run. It reads with your permissions and changes nothing. "
        "The printed address contains a secret; whoever knows it and can reach your loopback address sees the page.",
    )
    parser.add_argument("--port", type=_port, default=0, metavar="N", help="port to listen on; default: any free port")
    cluster(
        parser,
        "namespace to read when you cannot list all namespaces",
        "read all namespaces; the default when you can list them",
    )


def _port(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text) <= _HIGHEST_PORT):
        raise argparse.ArgumentTypeError(f'"{text}" is no port between 0 and {_HIGHEST_PORT}')
    return int(text)
