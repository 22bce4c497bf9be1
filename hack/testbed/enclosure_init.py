"""The first process of an enclosure: `enclosure_init.py FOLDER ADDRESS`, alone in new namespaces (see `enclosure`).

It makes the namespaces fit for a node, writes its pid, as the machine sees it, to FOLDER/pid, and stays. When it dies
the kernel kills every process of its pid namespace. Standard library only: it runs isolated.
"""

import signal
import subprocess
import sys
from pathlib import Path

# Where programs write by paths that are compiled in. Inside, these folders are empty and end with the enclosure.
_OWN = ("/run", "/var/lib", "/var/log")
# A kubelet would set these for the whole machine if it found others (k8s.io/component-helpers/node/util/sysctl).
_KERNEL = {
    "vm/overcommit_memory": 1,
    "vm/panic_on_oom": 0,
    "kernel/panic": 10,
    "kernel/panic_on_oops": 1,
    "kernel/keys/root_maxkeys": 1000000,
    "kernel/keys/root_maxbytes": 25000000,
}


def _run(*argv: str) -> None:
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"`{' '.join(argv)}`: {done.stderr.strip()}")


def _mounts(folder: Path) -> None:
    _run("mount", "-t", "proc", "proc", "/proc")
    for own in _OWN:
        _run("mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", own)
    for name, value in _KERNEL.items():
        seen = folder / "sysctl" / name.replace("/", ".")
        seen.parent.mkdir(exist_ok=True)
        seen.write_text(f"{value}\n")
        _run("mount", "--bind", str(seen), f"/proc/sys/{name}")


def _network(address: str) -> None:
    _run("ip", "link", "set", "lo", "up")
    # Both ends are inside: a node wants an address and a default route, and nothing ever leaves.
    _run("ip", "link", "add", "node0", "type", "veth", "peer", "name", "nowhere0")
    _run("ip", "address", "add", f"{address}/24", "dev", "node0")
    _run("ip", "link", "set", "nowhere0", "up")
    _run("ip", "link", "set", "node0", "up")
    _run("ip", "route", "add", "default", "dev", "node0")
    Path("/proc/sys/net/ipv4/ip_forward").write_text("1\n")


def main() -> None:
    """Set up, say so, and stay."""
    folder, address = Path(sys.argv[1]), sys.argv[2]
    # /proc is still the machine's.
    pid = str(Path("/proc/self").readlink())
    _mounts(folder)
    _network(address)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # orphans that end are gone
    partial = folder / ".pid"
    partial.write_text(pid)
    partial.rename(folder / "pid")
    while True:
        signal.pause()


if __name__ == "__main__":
    main()
