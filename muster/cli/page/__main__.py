"""The `muster-page` process: the page in a pod, behind the apiserver's service proxy.

It shows the same to all users, what its own ServiceAccount may read, and names that account. The apiserver's authorizer
decides which users may ask (`get` on `services/proxy`); `muster.cli.page.guard` has what that leaves open.
"""

import argparse
import logging
import re
import socket
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

import msgspec

import muster
from muster.cli.connecting import find_settings
from muster.cli.options import selector
from muster.cli.page.command import serving
from muster.cli.page.guard import Door
from muster.cli.page.state import page_state
from muster.cli.settings import Settings
from muster.kube.client import Client
from muster.kube.errors import ApiError
from muster.model.objects import InvalidObjectError, decode
from muster.model.resource import SELF_REVIEWS
from muster.model.selectors import Selector
from muster.process.event_loop import Turns
from muster.process.health import serve_health
from muster.process.lifecycle import add_common_arguments, defaults_of, parse_args, run, stop_signal
from muster.process.logs import configure_logging
from muster.process.metrics import LoopTurns, new_registry

logger = logging.getLogger("muster-page")

USER_AGENT = f"muster-page/{muster.__version__}"

_HINT = "the address of this page has a secret in it: ask the person who installed muster for the whole address"
# What needs no escape in an address, and is too long to be guessed.
_SECRET = re.compile(r"[A-Za-z0-9_-]{16,200}")
_ACCOUNT = re.compile(r"system:serviceaccount:([^:]+):([^:]+)")


class _User(msgspec.Struct):
    username: str = ""


class _Status(msgspec.Struct, rename="camel"):
    user_info: _User = msgspec.field(default_factory=_User)


class _SelfReview(msgspec.Struct):
    status: _Status = msgspec.field(default_factory=_Status)


def main() -> None:
    """Serve the page until SIGTERM."""
    parser = argparse.ArgumentParser(
        prog="muster-page", description="The page of muster, behind the apiserver's proxy."
    )
    add_common_arguments(parser)
    parser.add_argument("--bound", choices=["", "nodes"], default="", help="no more starts than the nodes can hold")
    parser.add_argument(
        "--namespace-selector",
        type=selector,
        default=Selector(),
        help="show only workloads in namespaces with these labels, such as team=ml,env in (dev, test)",
    )
    parser.add_argument("--bind-address", default="", help="address to serve the page on (all that there are)")
    parser.add_argument("--port", type=int, default=8081, help="port to serve the page on")
    parser.add_argument("--secret-file", type=Path, help="file with the secret that every address begins with")
    arguments = parse_args(parser)
    configure_logging(arguments.log_level, arguments.log_format)
    try:
        secret = read_secret(arguments.secret_file) if arguments.secret_file else ""
    except (OSError, ValueError) as error:
        sys.exit(f"muster-page: {error}")
    run("muster-page", partial(_run, arguments, Door(secret, proxied=True, hint=_HINT)))


def read_secret(path: Path) -> str:
    """The secret in a file. Raises OSError, and ValueError where it is none that an address can have."""
    secret = path.read_text(errors="replace").strip()
    if not _SECRET.fullmatch(secret):
        raise ValueError(f"{path}: a secret has 16 to 200 letters, digits, - and _; make one with openssl rand -hex 24")
    return secret


async def _run(arguments: argparse.Namespace, door: Door, turns: Turns) -> None:
    stop = stop_signal()
    registry = new_registry("page")
    LoopTurns(turns, registry)
    checks = {"board": "not yet"}
    async with (
        serve_health(
            arguments.health_bind_address, arguments.health_port, ready=lambda: dict(checks), registry=registry
        ),
        await Client.connect(kubeconfig=arguments.kubeconfig, user_agent=USER_AGENT) as client,
    ):
        try:
            account = await viewer(client)
            published = await find_settings(client)
            settings = replace(_settings(arguments), lease=published.lease, history=published.history)
            async with page_state(client, settings, client.namespace, account) as state:
                with listening(arguments.bind_address, arguments.port) as one:
                    async with serving(state, door, [one]):
                        checks["board"] = ""
                        logger.info("serving what %s may read", account, extra={"event": "page.serving"})
                        await stop.wait()
                        checks["board"] = "ending"
        except (ApiError, InvalidObjectError) as error:
            # The kubelet starts it again, later and later.
            sys.exit(f"muster-page: {client.server}: {error}")


def _settings(arguments: argparse.Namespace) -> Settings:
    return Settings(
        defaults_of(arguments, namespaces=arguments.namespace_selector),
        by_nodes=arguments.bound == "nodes",
    )


async def viewer(client: Client) -> str:
    """The account of these credentials, as people call it. Raises ApiError, and InvalidObjectError."""
    body = {"apiVersion": SELF_REVIEWS.api_version, "kind": SELF_REVIEWS.kind}
    user = decode(await client.create(SELF_REVIEWS, body), _SelfReview).status.user_info.username
    account = _ACCOUNT.fullmatch(user)
    return f"ServiceAccount {account[2]} of namespace {account[1]}" if account else f"user {user}"


def listening(address: str, port: int) -> socket.socket:
    """A socket on that address, or on all addresses of both families. Raises OSError."""
    if address:
        return socket.create_server((address, port), family=socket.AF_INET6 if ":" in address else socket.AF_INET)
    both = socket.has_dualstack_ipv6()
    family = socket.AF_INET6 if both else socket.AF_INET
    return socket.create_server(("", port), family=family, dualstack_ipv6=both)


if __name__ == "__main__":
    main()
