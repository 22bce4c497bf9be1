"""A place of its own for a real node: namespaces of network, mounts and processes, and a cgroup.

A kubelet and what it starts write interfaces, routes, rules, mounts, sysctls and cgroups. Here they do it where the
machine does not see it, and where it ends with one process: when the enclosure's first process dies, however that
happens, the kernel kills every process inside, containers too, and what they had mounted and linked goes with them.
Only empty cgroups stay behind, below one folder whose name comes from the state folder; `remove_cgroups` takes them.
"""

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from hack.testbed.errors import TestbedError, log_tail
from hack.testbed.netns import run_inside
from hack.testbed.ports import check_free
from hack.testbed.process import spawn
from hack.testbed.site import Site, cgroup_name
from hack.testbed.waiting import wait_for

_T = TypeVar("_T")
ENCLOSURE, DOOR = "enclosure", "door"
_INIT = Path(__file__).with_name("enclosure_init.py")
_TOOLS = ("unshare", "nsenter", "setpriv", "mount", "ip")
_HIDDEN = ("/run", "/var/lib", "/var/log")  # as in enclosure_init
_FILESYSTEMS = Path("/proc/filesystems")


def check_machine(state: Path) -> None:
    """Raise TestbedError with the one reason for which this machine cannot run a real node."""
    if os.geteuid() != 0:
        raise TestbedError("a real node needs root: run as root, or leave it out (CONTRIBUTING.md, A real node)")
    for tool in _TOOLS:
        if shutil.which(tool) is None:
            raise TestbedError(f"a real node needs `{tool}`: install util-linux, mount and iproute2")
    for folder in _HIDDEN:
        if state.resolve().is_relative_to(folder):
            raise TestbedError(f"a real node hides {folder} from itself: take a state folder elsewhere than {state}")
    if "\toverlay\n" not in _FILESYSTEMS.read_text():
        raise TestbedError("a real node needs overlayfs, and this kernel has none: load its module `overlay`")
    probe = ["unshare", "--net", "--", "ip", "link", "add", "probe0", "type"]
    for kind in ("bridge", "veth"):
        done = subprocess.run([*probe, kind], capture_output=True, text=True, check=False)
        if done.returncode:
            raise TestbedError(f"a real node needs a network namespace with a {kind}: {done.stderr.strip()}")
    if not cgroup_roots():
        raise TestbedError("a real node needs cgroups, and none are mounted below /sys/fs/cgroup")


def open_enclosure(site: Site) -> None:
    """Start the enclosure of a testbed, and the door to its apiserver. Raises TestbedError with the reason."""
    folder = site.node_folder
    folder.mkdir(parents=True, exist_ok=True)
    argv = [
        *("unshare", "--net", "--mount", "--pid", "--fork", "--kill-child=KILL", "--"),
        *(sys.executable, "-I", "-S", str(_INIT), str(folder), site.node_address),
    ]
    tied = not site.detached
    process = spawn(ENCLOSURE, argv, state=site.state, env={}, tied=tied)
    # Not before: cgroups whose testbed has no living process are taken for leftovers.
    for root in cgroup_roots():
        (root / site.cgroup).mkdir(exist_ok=True)
    wait_for("the enclosure", lambda: (folder / "pid").exists() or not process.alive())
    if not process.alive():
        raise TestbedError(f"this machine does not let a node be enclosed; {log_tail(process.log, 2)}")
    check_free(site.port, DOOR)
    argv = [sys.executable, "-m", "hack.testbed.door", str(site.port), str(network_of(site))]
    door = spawn(DOOR, argv, state=site.state, env={"PYTHONPATH": str(Path(__file__).parents[2])}, tied=tied)
    wait_for("the door", lambda: _listens(site.port) or not door.alive())
    if not door.alive():
        raise TestbedError(f"the door to the enclosure does not open; {log_tail(door.log, 2)}")


def _listens(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False


def network_of(site: Site) -> Path:
    """Return the file of the enclosure's network namespace."""
    return Path(f"/proc/{_first_pid(site)}/ns/net")


def inside(site: Site, work: Callable[[], _T]) -> _T:
    """Return what `work` returns, or raise what it raises, when its sockets are where the control plane listens."""
    return run_inside(network_of(site), work) if site.real_node else work()


def enter_argv(site: Site, *, wholly: bool) -> list[str]:
    """Return what to put before a command so that it runs in the enclosure's network, or `wholly` inside.

    A process that is wholly inside is a child of the process that enters, and is killed with it.
    """
    if not wholly:
        return ["nsenter", f"--net={network_of(site)}", "--"]
    inside = ["nsenter", f"--target={_first_pid(site)}", "--net", "--mount", "--pid", "--"]
    return [*inside, "setpriv", "--pdeathsig", "KILL", "--"]


def remove_cgroups(state: Path) -> None:
    """Remove the cgroups of a testbed whose enclosure has ended. Raises TestbedError when one stays in use."""
    tops = [root / cgroup_name(state) for root in cgroup_roots()]

    def removed() -> bool:
        for top in tops:
            _remove_empty(top)
        return not any(top.exists() for top in tops)

    if any(top.exists() for top in tops):
        wait_for("the node's cgroups to be empty", removed)


def _remove_empty(top: Path) -> None:
    for folder, _, _ in os.walk(top, topdown=False):
        try:
            Path(folder).rmdir()
        except OSError:  # in use, or just gone
            continue


def _first_pid(site: Site) -> int:
    try:
        return int((site.node_folder / "pid").read_text())
    except FileNotFoundError:
        raise TestbedError(f"no node is enclosed in {site.state}: start the testbed with `--node`") from None


def cgroup_roots() -> list[Path]:
    """Return every mounted hierarchy of cgroups: one of version 2, or one for each controller of version 1."""
    return list(_mounted(Path("/proc/self/mounts").read_text().splitlines()))


def _mounted(lines: Iterable[str]) -> Iterable[Path]:
    for line in lines:
        _, point, kind, *_ = line.split()
        if kind in {"cgroup", "cgroup2"} and point.startswith("/sys/fs/cgroup"):
            yield Path(point)
