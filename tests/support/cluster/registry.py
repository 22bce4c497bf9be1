"""A real registry on loopback (distribution): what is published there, and what a node pulls from it."""

import json
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hack.testbed import Testbed, wait_for
from hack.testbed.build import binaries
from hack.testbed.enclosure import enter_argv
from hack.testbed.parts import PARTS
from hack.testbed.ports import free_port
from hack.testbed.site import Site
from tests.support.cluster.scene import PATIENCE

USER, PASSWORD = "releaser", "of a test"
"""Who may use a registry that asks for a login."""
# The password as bcrypt has it, which is all that such a registry takes.
_HASHED = "$2b$05$abcdefghijklmnopqrstuukVMZtEjGAG9chmPkoyer671ltVYBcDG"


@dataclass(frozen=True, slots=True)
class Registry:
    """Where it answers, and the folder with what it has."""

    address: str
    storage: Path


@contextmanager
def serving(folder: Path, *, login: bool = False) -> Iterator[Registry]:
    """Serve an empty registry from an existing folder, on a free port of loopback; with `login` to `USER` alone."""
    address = f"127.0.0.1:{free_port()}"
    command = _command(address, folder, login=login)
    with (folder / "log").open("wb") as log, subprocess.Popen(command, stdout=log, stderr=log) as process:
        try:
            wait_for("the registry", lambda: _listens(address), PATIENCE)
            yield Registry(address, folder)
        finally:
            process.terminate()


@contextmanager
def serving_inside(testbed: Testbed, registry: Registry) -> Iterator[None]:
    """Serve the same content at the same address where a testbed's real node sees it: on that node's own loopback."""
    inside = enter_argv(Site.load(testbed.state), wholly=False)
    process = testbed.spawn("registry", [*inside, *_command(registry.address, registry.storage)])
    try:
        yield
    finally:
        process.stop()


def _command(address: str, folder: Path, *, login: bool = False) -> list[str]:
    config = folder / "config.json"
    facts: dict[str, Any] = {
        "version": 0.1,
        "log": {"accesslog": {"disabled": True}},
        "storage": {"filesystem": {"rootdirectory": str(folder / "content")}},
        "http": {"addr": address},
    }
    if login:
        (folder / "htpasswd").write_text(f"{USER}:{_HASHED}\n")
        facts["auth"] = {"htpasswd": {"realm": "muster", "path": str(folder / "htpasswd")}}
    config.write_text(json.dumps(facts))
    return [str(binaries([PARTS["registry"]], print)["registry"]), "serve", str(config)]


def _listens(address: str) -> bool:
    host, _, port = address.partition(":")
    with suppress(OSError), socket.create_connection((host, int(port)), timeout=1):
        return True
    return False
