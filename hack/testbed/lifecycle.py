"""Brings a testbed up, as much at once as the order of things allows, and takes it down again."""

import os
import re
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

from hack.testbed.api import answers
from hack.testbed.costs import START, note, note_process
from hack.testbed.crds import Stored, crd_files, read_crd
from hack.testbed.enclosure import ENCLOSURE, enter_argv, inside, open_enclosure, remove_cgroups
from hack.testbed.errors import TestbedError, log_tail
from hack.testbed.part import Launch, Part
from hack.testbed.parts import PARTS
from hack.testbed.ports import check_free
from hack.testbed.process import LAZY_COLLECTOR, Process, marked, recorded, spawn, stop_all
from hack.testbed.site import ADMIN, NODE_ADDON, Site
from hack.testbed.waiting import PATIENCE, wait_for

_STOP_SECONDS = 3
_CHECKOUT = Path(__file__).parents[2]
_CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_DISCOVERY = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
_DISCOVERED = dict[str, Any]


def bring_up(site: Site, parts: Sequence[Part], binaries: Mapping[str, Path], progress: Callable[[str], None]) -> None:
    """Start the parts in waves, each when what it needs is ready, and wait until all of it has settled.

    Raises TestbedError naming the log file of what failed; the caller takes down what had been started.
    """
    note(START)
    progress(f"starting at {site.server}, state in {site.state}")
    if site.real_node:
        open_enclosure(site)
        progress("a place for the real node is enclosed")
    stored = Stored(site, binaries["kube-apiserver"])
    waiting = [part for part in parts if part.launch]
    while waiting:
        names = {part.name for part in waiting}
        wave = [part for part in waiting if names.isdisjoint(part.needs)]
        waiting = [part for part in waiting if part not in wave]
        # A part without objects of its own starts while the objects of the others are made.
        early = [part for part in wave if not (part.namespace or part.prepare or part.after_crds)]
        late = [part for part in wave if part not in early]
        started = {part.name: start_process(site, part, binaries[part.name]) for part in early}
        if late:
            create_objects(site, late, stored)
            started |= {part.name: start_process(site, part, binaries[part.name]) for part in late}
        for part in wave:
            await_ready(site, part, *started[part.name])
            if part.ready:
                part.ready(site)
            progress(f"{part.name} is ready")
        if "etcd" in started:
            stored.put(crd_files(parts))
    for part in parts:
        await_settled(site, part)


def start_process(site: Site, part: Part, binary: Path, extra_args: Sequence[str] = ()) -> tuple[Process, Launch]:
    """Start one part; `extra_args` come last, where they override. Raises TestbedError for a port that is taken."""
    if part.launch is None:
        raise TestbedError(f"{part.name} is a tool, not a process")
    if part.addon == NODE_ADDON and not site.real_node:
        raise TestbedError(f"{part.name} never runs on the machine itself: start a testbed with `--node`")
    launch = part.launch(site)
    # Clients that watch pods keep them: if each grew to five times that, 23 GB would not hold 150,000 pods.
    collector = {} if site.many_pods else LAZY_COLLECTOR
    environment = {"TMPDIR": str(site.state / "tmp"), **collector, **launch.environment}
    argv = [str(binary), *launch.arguments, *extra_args]
    if part.restarts:
        argv = [sys.executable, "-m", "hack.testbed.again", *argv]
        environment["PYTHONPATH"] = str(_CHECKOUT)
    if site.real_node:
        argv = [*enter_argv(site, wholly=part.enclosed), *argv]
    else:
        check_free(int(re.findall(r":(\d+)/", launch.health)[-1]), part.name)
    return spawn(part.name, argv, state=site.state, env=environment, tied=not site.detached), launch


def await_ready(site: Site, part: Part, process: Process, launch: Launch) -> None:
    """Wait until a started part answers on its health endpoint, or raise TestbedError with the end of its log."""

    def ready() -> bool:
        return not process.alive() or inside(site, lambda: answers(launch.health, site.ca_file))

    try:
        wait_for(f"{part.name} to be ready", ready)
    except TestbedError as error:
        raise TestbedError(f"{part.name} does not get ready within {PATIENCE:g} s; {log_tail(process.log)}") from error
    if not process.alive():
        raise TestbedError(f"{part.name} ended before it was ready; {log_tail(process.log)}")


def take_down(state: Path) -> None:
    """Stop every process of this state folder, clients before servers, and remove the folder but for its logs."""
    with suppress(FileNotFoundError):
        # Who starts another testbed removes the oldest folders in which nothing runs: this one is the newest.
        os.utime(state)
    processes = recorded(state)
    if ENCLOSURE in processes:
        # With it goes everything inside, containers too.
        for name, process in processes.items():
            if name != ENCLOSURE and process.alive():
                note_process(name, process.pid)
        processes[ENCLOSURE].kill()
    later = [processes[name] for name in ("kube-apiserver", "etcd") if name in processes]
    own = [process for name, process in processes.items() if name not in PARTS]
    operators = [process for process in processes.values() if process not in [*later, *own]]
    for group in (own, operators, *([process] for process in later)):
        stop_all(group, _STOP_SECONDS)
    for process in marked(state):
        process.kill()
    remove_cgroups(state)
    for entry in state.iterdir() if state.exists() else ():
        if entry.name == "logs":
            continue
        if entry.is_dir():
            shutil.rmtree(entry)
        else:
            entry.unlink()


def create_objects(site: Site, parts: Sequence[Part], stored: Stored | None = None) -> None:
    """Create namespaces and CRDs, wait until the CRDs are served, then create what else the parts ask for.

    CRDs that are `stored` are there already; the others are kept for the next time.
    """
    present = dict(stored.present) if stored else {}
    applied = {}
    with ThreadPoolExecutor(max_workers=6) as pool:
        jobs: list[Future[object]] = []
        for namespace in dict.fromkeys(part.namespace for part in parts if part.namespace):
            manifest = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
            jobs.append(pool.submit(site.api.apply, f"/api/v1/namespaces/{namespace}", manifest))
        files = crd_files(parts)
        for path in files:
            if path not in present:
                applied[path], content = read_crd(path)
                jobs.append(pool.submit(site.api.apply, f"{_CRDS}/{applied[path]}", content))
        for job in jobs:
            job.result()
    names = {(present | applied)[path] for path in files}
    wait_for("the CRDs to be served", lambda: names <= _served(site))
    if stored:
        stored.keep(applied)
    for part in parts:
        if part.prepare:
            part.prepare(site)


def _served(site: Site) -> set[str]:
    groups: list[_DISCOVERED] = site.api.get("/apis", accept=_DISCOVERY)["items"]
    return {
        f"{resource['resource']}.{group['metadata']['name']}"
        for group in groups
        for version in group.get("versions", [])
        for resource in version.get("resources", [])
    }


def await_settled(site: Site, part: Part) -> None:
    """Wait for what must be true of a part beyond its health, or raise TestbedError with the end of its log."""
    settled = part.settled
    if settled is None:
        return
    log = site.logs / f"{part.name}.log"
    try:
        wait_for(f"{part.name} to have settled", lambda: settled(site))
    except TestbedError as error:
        raise TestbedError(f"{error}; {log_tail(log)}") from error


def users() -> dict[str, str]:
    """Return the apiserver's name of every part that has a kubeconfig."""
    return {part.name: part.user for part in PARTS.values() if part.user and part.name != ADMIN}
