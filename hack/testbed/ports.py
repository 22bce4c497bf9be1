"""Free loopback ports, handed out so that testbeds that start together do not pick the same ones.

Below Linux's ephemeral range (32768 and up), where an outgoing connection cannot take a port between our look and the
program's bind. The apiserver's port also names the testbed's Service range, see `service_range`.
"""

import json
import random
import socket
import time

from hack.testbed.errors import TestbedError
from hack.testbed.paths import cache_root, locked, write_atomically

_FIRST, _LAST = 28672, 32767
# A program started with a port has bound it long before this many seconds have passed.
_HELD_SECONDS = 600


def free_port() -> int:
    """Return a TCP port that is free and that no testbed was given within the last ten minutes."""
    ledger = cache_root() / "ports.json"
    with locked(cache_root() / "ports.lock"):
        try:
            given: dict[str, float] = json.loads(ledger.read_text())
        except (OSError, ValueError):
            given = {}
        given = {port: when for port, when in given.items() if when > time.time() - _HELD_SECONDS}
        candidates = [port for port in range(_FIRST, _LAST + 1) if str(port) not in given]
        random.shuffle(candidates)
        for port in candidates:
            if _is_free(port):
                write_atomically(ledger, json.dumps(given | {str(port): time.time()}))
                return port
    raise TestbedError(f"no free port on 127.0.0.1 between {_FIRST} and {_LAST}: stop other testbeds")


def check_free(port: int, user: str) -> None:
    """Raise TestbedError when the port that `user` is about to bind is taken."""
    if not _is_free(port):
        raise TestbedError(
            f"port {port} of 127.0.0.1 is taken, {user} needs it: stop what listens there, or run `down`"
        )


def service_range(port: int) -> str:
    """Return the Service range of the testbed whose apiserver listens on `port` (28672 to 61439).

    A /24 inside 127.0.0.0/8: what binds `ClusterIP:port` on the host gets the Service's traffic without kube-proxy.
    The 32768 allowed ports map to 32768 distinct ranges, so testbeds side by side never share an address.
    """
    return f"127.{64 + ((port >> 8) & 0x7F)}.{port & 0xFF}.0/24"


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
