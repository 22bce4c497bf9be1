"""`python -m hack.testbed build | up | down | status | env | clean | kubectl … | helm …`."""

import argparse
import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from hack.testbed import lifecycle
from hack.testbed.build import binaries
from hack.testbed.cluster import Testbed, forget_killed
from hack.testbed.errors import TestbedError
from hack.testbed.kubernetes import DEFAULT_KUBERNETES, KUBERNETES
from hack.testbed.nodes import Nodes
from hack.testbed.parts import ADDONS, DEFAULT_ADDONS, select
from hack.testbed.paths import cache_root, default_state
from hack.testbed.process import recorded
from hack.testbed.site import NODE_ADDON, Site
from hack.testbed.toolchain import find_go

# So many nodes hold tens of thousands of pods.
_MANY_NODES = 100


def main(argv: list[str] | None = None) -> int:
    """Run one command; 0 when it did what was asked, 1 with one line on stderr when it could not."""
    options = _parser().parse_args(argv)
    options.state = options.state.absolute()
    started = time.monotonic()

    def progress(line: str) -> None:
        print(f"[{time.monotonic() - started:5.1f} s] {line}", flush=True)

    try:
        match options.command:
            case "build":
                binaries(select(options.parts, options.kubernetes), progress)
                progress("everything is built")
            case "up":
                parts = [*options.parts, NODE_ADDON] if options.node else options.parts
                nodes = Nodes(options.nodes, options.cpu, options.memory, options.gpu)
                Testbed.start(
                    parts=parts,
                    nodes=nodes,
                    kubernetes=options.kubernetes,
                    state=options.state,
                    detached=True,
                    many_pods=options.nodes > _MANY_NODES,
                    progress=progress,
                )
                progress(f"ready: try `python -m hack.testbed kubectl --state {options.state} get nodes`")
            case "down":
                lifecycle.take_down(options.state)
                forget_killed()
                progress(f"nothing runs any more; logs stay in {options.state / 'logs'}")
            case "status":
                return _status(options.state)
            case "env":
                environment = Testbed.attach(options.state).environment()
                print("\n".join(f"export {name}={shlex.quote(value)}" for name, value in environment.items()))
            case "clean":
                _clean(progress, go=options.go)
            case tool:
                testbed = Testbed.attach(options.state)
                program = testbed.program(tool)
                os.execve(program, [tool, *options.rest], os.environ | testbed.environment())  # noqa: S606
    except TestbedError as error:
        print(f"testbed: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("testbed: interrupted", file=sys.stderr)
        return 130
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m hack.testbed", description="A local Kubernetes of real programs.")
    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument("--state", type=Path, default=default_state(), help="its folder (default: %(default)s)")
    chosen = argparse.ArgumentParser(add_help=False)
    default = ",".join(DEFAULT_ADDONS)
    equal = Nodes()
    chosen.add_argument(
        "--with",
        dest="parts",
        metavar="PARTS",
        type=lambda text: [part for part in text.split(",") if part],
        default=list(DEFAULT_ADDONS),
        help=f"any of {', '.join(ADDONS)}, with commas (default: {default})",
    )
    chosen.add_argument(
        "--kubernetes",
        choices=list(KUBERNETES),
        default=DEFAULT_KUBERNETES,
        help="the version of its apiserver, scheduler and controllers (default: %(default)s)",
    )
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("build", parents=[shared, chosen], help="compile the missing programs")
    up = commands.add_parser("up", parents=[shared, chosen], help="start one that outlives this command")
    up.add_argument("--node", action="store_true", help="and one real node, with a kubelet (root only)")
    up.add_argument("--nodes", type=int, default=equal.count, help="how many (default: %(default)s)")
    up.add_argument("--cpu", default=equal.cpu, help="of each node (default: %(default)s)")
    up.add_argument("--memory", default=equal.memory, help="of each node (default: %(default)s)")
    up.add_argument("--gpu", type=int, default=equal.gpu, help="nvidia.com/gpu of each node (default: %(default)s)")
    commands.add_parser("down", parents=[shared], help="stop everything; the logs stay")
    commands.add_parser("status", parents=[shared], help="list its processes")
    commands.add_parser("env", parents=[shared], help="print KUBECONFIG and PATH for `eval`")
    clean = commands.add_parser(
        "clean", parents=[shared], help="remove all programs, states, layers and packages that are cached"
    )
    clean.add_argument("--go", action="store_true", help="and all of Go's own caches, which other projects share")
    for tool in ("kubectl", "helm"):
        command = commands.add_parser(tool, parents=[shared], help=f"{tool} against it", add_help=False)
        command.add_argument("rest", nargs=argparse.REMAINDER)
    return parser


def _status(state: Path) -> int:
    site = Site.load(state)
    print(f"apiserver {site.server}, Services {site.service_range}, state {state}")
    processes = recorded(state).values()
    for process in processes:
        print(f"{'runs ' if process.alive() else 'ended'} {process.pid:>8} {process.name:<24} {process.log}")
    return 0 if all(process.alive() for process in processes) else 1


def _clean(progress: Callable[[str], None], *, go: bool) -> None:
    """Remove the cache's folders. Raises TestbedError while a testbed runs."""
    root = cache_root()
    for state in (root / "state").glob("*"):
        if any(process.alive() for process in recorded(state).values()):
            raise TestbedError(f"a testbed runs in {state}: end it with `python -m hack.testbed down --state {state}`")
    own = find_go()
    if go and own.command.exists():
        subprocess.run([own.command, "clean", "-cache", "-modcache"], env=own.environment(), check=True)
        progress("emptied the caches of Go")
    for folder in (root, root.parent / "image", root.parent / "results", root.parent / "packages"):
        if folder.exists():
            shutil.rmtree(folder)
            progress(f"removed {folder}")
    if not go:
        progress("Go's own caches stay (`go env GOMODCACHE GOCACHE`): other projects share them; --go empties them")


if __name__ == "__main__":
    sys.exit(main())
