"""`Testbed`: one local Kubernetes, as tests, the demo and the command line hold it."""

import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from hack.testbed import kueue, lifecycle, volcano
from hack.testbed.api import Api
from hack.testbed.archive import import_image
from hack.testbed.build import binaries
from hack.testbed.enclosure import check_machine, remove_cgroups
from hack.testbed.errors import CommandError, TestbedError
from hack.testbed.kubernetes import AS_RELEASED, DEFAULT_KUBERNETES
from hack.testbed.modules import module_dir
from hack.testbed.nodes import Nodes
from hack.testbed.parts import DEFAULT_ADDONS, PARTS, select
from hack.testbed.paths import cache_root, locked
from hack.testbed.process import LAZY_COLLECTOR, Process, recorded, spawn
from hack.testbed.site import ADMIN, FILE, NODE_ADDON, Site, kubeconfig_text
from hack.testbed.versions import chosen as chosen_version
from hack.testbed.waiting import PATIENCE

# What kubectl and helm print when the apiserver or etcd is overloaded.
_BUSY = re.compile(
    r"\((Timeout|ServerTimeout|TooManyRequests|ServiceUnavailable)\)|TLS handshake timeout|etcdserver: "
    r"|unable to return a response in the time allotted|client connection lost|connection reset by peer"
)
_NO_ENVIRONMENT: Mapping[str, str] = {}


def _silent(_line: str) -> None:
    pass


class Testbed:
    """A running testbed. Make one with `start` or `attach`; it is a context manager that stops what it holds."""

    __test__ = False  # pytest takes every Test* class for a test

    def __init__(self, site: Site, programs: Mapping[str, Path]) -> None:
        self._site = site
        self._programs = programs
        self.state = site.state
        self.logs = site.logs
        self.kubeconfig = site.kubeconfig_of(ADMIN)
        self.server = site.server
        self.ca_file = site.ca_file
        self.service_range = site.service_range
        self.nodes = site.nodes

    @classmethod
    def start(
        cls,
        *,
        parts: Sequence[str] = DEFAULT_ADDONS,
        nodes: Nodes = Nodes(),  # noqa: B008 (frozen)
        kubernetes: str = DEFAULT_KUBERNETES,
        state: Path | None = None,
        detached: bool = False,
        many_pods: bool = False,
        progress: Callable[[str], None] = _silent,
    ) -> Self:
        """Build what is missing and start a control plane with these add-ons (`parts.ADDONS`), ready to use.

        `kubernetes` is its version, and how much of native PodGroups is turned on (`kubernetes.KUBERNETES`). In place
        of the default version, and of those of add-ons, the environment may ask for others (`versions`).

        Attached, all of it dies with this process, and it must be called from the main thread; detached, it runs until
        `stop` or `python -m hack.testbed down`. `state` defaults to a fresh folder. With `many_pods` etcd and
        the apiserver have room for tens of thousands. Raises TestbedError, and leaves nothing running.
        """
        if kubernetes == DEFAULT_KUBERNETES:
            wished = chosen_version("kubernetes") or kubernetes
            kubernetes = AS_RELEASED.get(wished, wished)
        chosen = select(parts, kubernetes)
        state = _fresh_state() if state is None else state.absolute()
        if NODE_ADDON in parts:
            check_machine(state)
        programs = binaries(chosen, progress)
        with locked(cache_root() / "state.lock"):
            if (state / FILE).exists():
                raise TestbedError(
                    f"a testbed is already up in {state}: use it, or stop it with `down --state {state}`"
                )
            lifecycle.take_down(state)
            shutil.rmtree(state / "logs", ignore_errors=True)
            site = Site.create(
                *(state, list(parts), nodes, lifecycle.users()),
                detached=detached,
                version=kubernetes,
                many_pods=many_pods,
            )
        try:
            lifecycle.bring_up(site, chosen, programs, progress)
        except BaseException:
            lifecycle.take_down(state)
            raise
        return cls(site, programs)

    @classmethod
    def attach(cls, state: Path) -> Self:
        """Return the testbed that runs in this state folder. Raises TestbedError when there is none."""
        site = Site.load(state.absolute())
        return cls(site, binaries(select(site.parts, site.version), _silent))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """Stop every process and remove the state; the logs stay. Nothing happens the second time."""
        lifecycle.take_down(self.state)

    @property
    def admin_token(self) -> str:
        """A bearer token of the group system:masters."""
        return self._site.admin_token

    def api(self, token: str = "") -> Api:
        """Return a client of this testbed's apiserver, as the administrator or as the token's holder."""
        return Api(self.server, token or self.admin_token, self.ca_file)

    @property
    def parts(self) -> tuple[str, ...]:
        """The add-ons with which it was started."""
        return self._site.parts

    @property
    def volcano_conf(self) -> Path:
        """Volcano's scheduler configuration; it watches the file, `restart_part` makes sure."""
        return volcano.scheduler_conf(self._site)

    @property
    def kueue_conf(self) -> Path:
        """Kueue's configuration, in JSON; it reads the file when it starts (`restart_part`)."""
        return kueue.configuration(self._site)

    def environment(self) -> dict[str, str]:
        """Return KUBECONFIG, and a PATH on which this testbed's kubectl and helm come first."""
        folders = dict.fromkeys(str(self._programs[tool].parent) for tool in ("kubectl", "helm"))
        return {
            "KUBECONFIG": str(self.kubeconfig),
            "PATH": ":".join([*folders, os.environ.get("PATH", "/usr/bin:/bin")]),
        }

    def program(self, name: str) -> Path:
        """Return the path of a part's program, `kubectl` and `helm` among them."""
        if name not in self._programs:
            raise TestbedError(f"this testbed has no {name}: start it with the part that brings it")
        return self._programs[name]

    def kubectl(
        self,
        *args: str,
        input: str | None = None,  # noqa: A002 (as subprocess names it)
        check: bool = True,
        timeout: float = 2 * PATIENCE,
    ) -> subprocess.CompletedProcess[str]:
        """Run kubectl as the administrator. Raises CommandError when it fails (if `check`) or takes too long.

        A call that the apiserver was too busy for is repeated, within PATIENCE.
        """
        return self._run("kubectl", args, input, timeout, check=check)

    def helm(
        self,
        *args: str,
        input: str | None = None,  # noqa: A002 (as subprocess names it)
        check: bool = True,
        timeout: float = 2 * PATIENCE,
    ) -> subprocess.CompletedProcess[str]:
        """Run helm as the administrator. Raises CommandError as `kubectl` does."""
        return self._run("helm", args, input, timeout, check=check)

    def processes(self) -> dict[str, Process]:
        """Return what was started for this testbed, by name, dead or alive."""
        return recorded(self.state)

    def stop_part(self, name: str, *, kill: bool = False) -> None:
        """Stop one part (or anything spawned), with SIGTERM, or with SIGKILL if `kill`."""
        process = self.processes().get(name)
        if process is None:
            raise TestbedError(f"{name} was never started here: choose from {', '.join(self.processes())}")
        if kill:
            process.kill()
        else:
            process.stop()

    def start_part(self, name: str, *, extra_args: Sequence[str] = ()) -> None:
        """Start a part that is stopped, or was never here, and wait until it is ready.

        `extra_args` come last, where they override.
        """
        own = {part.name: part for part in select(self._site.parts, self._site.version)}
        part = own.get(name) or PARTS.get(name)
        if part is None:
            raise TestbedError(f"no part is called {name}: choose from {', '.join(PARTS)}")
        if (process := self.processes().get(name)) is not None and process.alive():
            raise TestbedError(f"{name} runs already: stop it first")
        if process is None:
            self._programs = {**self._programs, **binaries([part], _silent)}
            lifecycle.create_objects(self._site, [part])
        lifecycle.await_ready(
            self._site, part, *lifecycle.start_process(self._site, part, self.program(name), extra_args)
        )
        lifecycle.await_settled(self._site, part)

    def restart_part(self, name: str, *, extra_args: Sequence[str] = (), kill: bool = False) -> None:
        """Stop a part and start it again, perhaps with other arguments."""
        self.stop_part(name, kill=kill)
        self.start_part(name, extra_args=extra_args)

    def spawn(self, name: str, argv: Sequence[str], *, env: Mapping[str, str] = _NO_ENVIRONMENT) -> Process:
        """Start any further process of this testbed: logged to `logs/NAME.log`, stopped with it."""
        return spawn(name, argv, state=self.state, env=env, tied=not self._site.detached)

    def load_image(self, archive: Path) -> None:
        """Give the real node the images of an archive (docker-archive or OCI layout in a tar file)."""
        import_image(self._site, archive)

    def port(self, purpose: str) -> int:
        """Return this testbed's loopback port for a purpose, the same one every time."""
        return self._site.port_of(purpose)

    @staticmethod
    def module_dir(module: str) -> Path:
        """Return the sources of a Go module that a part is built from: its samples, its manifests."""
        return module_dir(module)

    def service_account_token(self, namespace: str, name: str) -> str:
        """Return a token of this ServiceAccount, good for a day."""
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token"
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest"}
        made = self._site.api.create(path, {**request, "spec": {"expirationSeconds": 24 * 60 * 60}})
        return str(made["status"]["token"])

    def service_account_kubeconfig(self, namespace: str, name: str) -> Path:
        """Return a kubeconfig with a day's token of this ServiceAccount and nothing more."""
        path = self._site.kubeconfig_of(f"{namespace}.{name}")
        path.touch(mode=0o600)
        path.write_text(kubeconfig_text(self.server, self.ca_file, self.service_account_token(namespace, name)))
        return path

    def service_account_folder(self, namespace: str, name: str) -> Path:
        """Return what the kubelet would mount for this ServiceAccount: a day's token, the CA, the namespace."""
        folder = self.state / "accounts" / f"{namespace}.{name}"
        # Other users of this machine are kept out by the outer folder; a container, another user, is shown the inner.
        folder.parent.mkdir(mode=0o700, exist_ok=True)
        folder.mkdir(exist_ok=True)
        token, authority = self.service_account_token(namespace, name), self.ca_file.read_text()
        for file, text in (("token", token), ("ca.crt", authority), ("namespace", namespace)):
            (folder / file).write_text(text)
            (folder / file).chmod(0o644)
        folder.chmod(0o755)
        return folder

    def _run(
        self, tool: str, args: Sequence[str], text: str | None, timeout: float, *, check: bool
    ) -> subprocess.CompletedProcess[str]:
        argv = [str(self.program(tool)), *args]
        environment = os.environ | LAZY_COLLECTOR | self.environment()
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                done = subprocess.run(
                    argv, input=text, capture_output=True, text=True, timeout=timeout, env=environment, check=False
                )
            except subprocess.TimeoutExpired as error:
                stderr = error.stderr.decode() if isinstance(error.stderr, bytes) else ""
                raise CommandError([tool, *args], None, f"{stderr} (after {timeout:g} s)") from error
            if not (done.returncode and _BUSY.search(done.stderr) and time.monotonic() < deadline):
                break
        if check and done.returncode:
            raise CommandError([tool, *args], done.returncode, done.stderr)
        return done


def _fresh_state() -> Path:
    parent = cache_root() / "state"
    parent.mkdir(parents=True, exist_ok=True)
    with suppress(OSError, TestbedError):
        _forget_old(parent)
    return type(parent)(tempfile.mkdtemp(prefix="run-", dir=parent))


def forget_killed() -> None:
    """Remove the cgroups of runs with a real node that were killed; nothing else of them is left but files."""
    for folder in _stopped(cache_root() / "state"):
        remove_cgroups(folder)


def _stopped(parent: Path) -> list[Path]:
    return [
        folder for folder in parent.glob("run-*") if not any(process.alive() for process in recorded(folder).values())
    ]


def _forget_old(parent: Path, keep: int = 20) -> None:
    """Remove the leftovers of all but the last runs: logs, and the state of killed runs."""
    stopped = _stopped(parent)
    for folder in sorted(stopped, key=lambda folder: folder.stat().st_mtime)[:-keep]:
        remove_cgroups(folder)
        shutil.rmtree(folder, ignore_errors=True)
