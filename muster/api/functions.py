"""The functions of the Python API, each also async; they answer as the commands of the same names do.

The others may be called in a notebook too, where an event loop runs already: they then do their work in a thread.
"""

import argparse
import asyncio
import os
import sys
import threading
import time
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import date
from functools import partial, wraps
from numbers import Real
from os import PathLike, fspath
from typing import Any, Literal, ParamSpec, TypeVar

from muster.api.errors import ClusterError, ManifestError, NotFoundError, WaitFailedError, WaitTimeoutError
from muster.api.values import Gang, Queues, Verdicts, gang_of_entry, queue_of_entry, verdict_of
from muster.cli.connecting import NO_ANSWER, opened
from muster.cli.explain.command import explain_each
from muster.cli.names import UnknownSubjectError, is_queue, parse_names
from muster.cli.options import CONNECT_TIMEOUT, deadline
from muster.cli.parsing import InputError
from muster.cli.plan.context import PlanContext
from muster.cli.plan.entries import plan as plan_documents
from muster.cli.plan.manifests import Document, place, read_bytes, read_manifests, read_object
from muster.cli.plan.reading import learn_cluster
from muster.cli.queues.entries import queue_entries, remarks
from muster.cli.settings import any_scheduler, settings_of
from muster.cli.snapshot import read_cluster
from muster.model.gang_states import GangState
from muster.workloads import kind_of

P = ParamSpec("P")
T = TypeVar("T")
Manifest = str | PathLike[str] | Mapping[str, Any] | object
Until = Literal["admitted", "running", "finished"] | Callable[[Gang], bool]

_ANSWER_WITHIN = 10.0
_INTERVAL = 2.0
# Seconds for which `wait` tries again when the apiserver does not answer.
_OUTAGE = 60.0
# Of these muster opens no gates: they do not come to run by waiting.
_NOT_OURS = (GangState.NOT_MANAGED, GangState.EXTERNAL)


async def plan_async(
    manifests: Manifest | Iterable[Manifest],
    *,
    namespace: str = "",
    cluster: bool = False,
    values: str | PathLike[str] | None = None,
    context: str | None = None,
    kubeconfig: str | PathLike[str] | None = None,
) -> Verdicts:
    """Return the answer of admission to each workload of the manifests, without creating anything.

    A manifest is a path, an open file, the text of YAML or JSON, a dictionary, or a model of a client with `to_dict()`;
    Queues, PriorityClasses and Namespaces among them are context. With `cluster` the context is the cluster's, too.
    `values` is a values file of muster's chart, in place of the settings of the cluster or the defaults.

    Raises ManifestError for what cannot be read, with one message for each fault, and ClusterError.
    """
    errors: list[str] = []
    documents = list(_documents(manifests, errors))
    if not documents and not errors:
        raise ManifestError(["no manifests given"])
    if namespace:
        place(documents, namespace)
    try:
        settings = settings_of(fspath(values)) if values is not None else None
        if cluster:
            arguments = _arguments(namespace, context, kubeconfig, values=settings)
            kinds = {(one.api_version, one.kind) for one in documents if kind_of(one.api_version, one.kind)}
            try:
                with _answering():
                    defaults, known = await learn_cluster(arguments, kinds)
            except InputError as error:
                raise ClusterError(str(error)) from error
        else:
            defaults = (settings or any_scheduler()).defaults
            known = PlanContext(queue_source=defaults.queue_source)
        entries = plan_documents(documents, defaults, known, errors)
    except InputError as error:
        raise ManifestError([str(error)]) from error
    if errors:
        raise ManifestError(errors)
    return Verdicts((verdict_of(one.data()) for one in entries), known.notes)


async def explain_async(
    name: str,
    *,
    namespace: str | None = None,
    context: str | None = None,
    kubeconfig: str | PathLike[str] | None = None,
) -> Gang:
    """Return the gang of a workload, such as `raycluster/demo`: its state, and when it starts.

    `namespace` is by default the one of the kubeconfig context. Raises NotFoundError and ClusterError.
    """
    return await _explained(name, _arguments(namespace, context, kubeconfig, ledger=True))


async def wait_async(
    name: str,
    until: Until = "running",
    *,
    timeout: float | None = None,  # noqa: ASYNC109 - the error names the state
    progress: bool | Callable[[Gang], object] = True,
    interval: float = _INTERVAL,
    namespace: str | None = None,
    context: str | None = None,
    kubeconfig: str | PathLike[str] | None = None,
) -> Gang:
    """Wait until the gang of a workload is admitted, runs or has finished, and return it.

    `until` may be a function of the gang, too. After `timeout` seconds (None: never) WaitTimeoutError is raised. With
    `progress` each new state is written to standard error, or a function is called with the gang. The gang is read
    every `interval` seconds; an apiserver that does not answer for a minute ends the wait.

    Raises WaitFailedError when the gang cannot come so far, because muster does not manage it or it has ended;
    NotFoundError; ClusterError.
    """
    reached = _condition(until)
    _check_times(timeout, interval)
    arguments = _arguments(namespace, context, kubeconfig)
    begun = answered = time.monotonic()
    reported: tuple[str, str] | None = None
    gang: Gang | None = None
    while True:
        try:
            gang = await _explained(name, arguments)
            answered = time.monotonic()
        except NotFoundError:
            raise
        except ClusterError:
            if gang is None or time.monotonic() - answered > _OUTAGE:
                raise
        if reported != (gang.state, gang.message):
            reported = gang.state, gang.message
            _report(gang, progress)
        if reached(gang):
            return gang
        if gang.state in _NOT_OURS or gang.finished:
            raise WaitFailedError(f"{name} does not come to be {_words(until)}: {gang.state}: {gang.message}", gang)
        left = None if timeout is None else begun + timeout - time.monotonic()
        if left is not None and left <= 0:
            raise WaitTimeoutError(
                f"{name} is not {_words(until)} after {timeout:g} s: {gang.state or 'no state yet'}: {gang.message}",
                gang,
            )
        await asyncio.sleep(interval if left is None else min(interval, left))


async def queues_async(*, context: str | None = None, kubeconfig: str | PathLike[str] | None = None) -> Queues:
    """Return the queues of the cluster with their usage, parents before their children. Raises ClusterError."""
    with _answering():
        async with opened(_arguments(None, context, kubeconfig)) as (client, settings):
            visible = await read_cluster(client, settings, client.namespace)
    entries = queue_entries(await visible.ledger_snapshot_in_slices(time.time()), whole=visible.whole)
    return Queues(map(queue_of_entry, entries), [*remarks(entries), *visible.missing])


async def _explained(name: str, arguments: argparse.Namespace) -> Gang:
    unknown: list[Exception] = []
    with _answering():
        (named,) = parse_names([name])
        if is_queue(named.kind):
            raise UnknownSubjectError(f'explain is for workloads; for queue "{named.name}": muster.queues()')
        entries = await explain_each(arguments, [named], unknown)
        if unknown:
            raise unknown[0]
    return gang_of_entry(entries[0])


@contextmanager
def _answering() -> Iterator[None]:
    """Turn errors of the client and of names into those of the API."""
    try:
        yield
    except UnknownSubjectError as error:
        raise NotFoundError(str(error)) from error
    except NO_ANSWER as error:
        if getattr(error, "not_found", False):
            raise NotFoundError(str(error)) from error
        raise ClusterError(str(error)) from error


def _condition(until: Until) -> Callable[[Gang], bool]:
    if callable(until):
        return until
    match str(until).lower():
        case "admitted":
            return lambda gang: gang.admitted
        case "running":
            return lambda gang: gang.running
        case "finished":
            return lambda gang: gang.finished
    raise ValueError(f'until: "{until}" is none of admitted, running, finished, and no function')


def _check_times(timeout: float | None, interval: float) -> None:
    if not (_is_number(interval) and interval > 0):
        raise ValueError(f"interval: {interval!r} is not a number of seconds above 0")
    if not (timeout is None or (_is_number(timeout) and timeout >= 0)):
        raise ValueError(f"timeout: {timeout!r} is neither a number of seconds, 0 or more, nor None")


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)  # Real: also those of numpy


def _words(until: Until) -> str:
    return until if isinstance(until, str) else "as the function wants it"


def _report(gang: Gang, progress: bool | Callable[[Gang], object]) -> None:  # noqa: FBT001 - of `wait`
    if callable(progress):
        progress(gang)
    elif progress:
        sys.stderr.write(f"{gang!r}\n")
        sys.stderr.flush()


def _arguments(
    namespace: str | None, context: str | None, kubeconfig: str | PathLike[str] | None, **more: object
) -> argparse.Namespace:
    """The options of a command, with those that are not given at their defaults."""
    options: dict[str, object] = {
        "command": "python",
        "namespace": namespace,
        "all_namespaces": False,
        "context": context,
        "kubeconfig": None if kubeconfig is None else fspath(kubeconfig),
        "connect_timeout": _answer_within(),
        "values": None,
        "ledger": False,
        "what_would_help": False,
    }
    return argparse.Namespace(**(options | more))


def _answer_within() -> float:
    found = os.environ.get(CONNECT_TIMEOUT)
    try:
        return deadline(found) if found is not None else _ANSWER_WITHIN
    except argparse.ArgumentTypeError as error:
        raise ClusterError(f"{CONNECT_TIMEOUT}: {error}") from error


def _documents(manifests: object, errors: list[str]) -> Iterator[Document]:
    match manifests:
        case bytes() | bytearray() | memoryview():
            yield from read_bytes("text", bytes(manifests), errors)
        case str() if "\n" in manifests or ": " in manifests or manifests.lstrip().startswith("{"):
            # What Python kept of bytes that are not UTF-8 is named as in a file.
            yield from read_bytes("text", manifests.encode(errors="surrogatepass"), errors)
        case "":
            errors.append("text: it is empty; give a path, or the text of a manifest")
        case str() | PathLike():
            yield from read_manifests([fspath(manifests)], errors)
        case _ if hasattr(manifests, "read") and not isinstance(manifests, type):
            yield from _file(manifests, errors)
        case _ if isinstance(manifests, Mapping) or _is_model(manifests):
            named = "object" if isinstance(manifests, Mapping) else type(manifests).__name__
            try:
                yield from read_object(named, _plain(manifests), errors)
            except RecursionError:
                errors.append(f"{named}: it contains itself")
        case Iterable() if not isinstance(manifests, type):
            for one in manifests:
                yield from _documents(one, errors)
        case _:
            named = f"the class {manifests.__name__}" if isinstance(manifests, type) else type(manifests).__name__
            errors.append(f"{named} is no manifest: give a path, text, a dictionary or a list of these")


def _file(file: Any, errors: list[str]) -> Iterator[Document]:  # noqa: ANN401 - any object with `read`
    source = str(getattr(file, "name", "file"))
    try:
        data = file.read()
    except (OSError, ValueError) as error:
        errors.append(f"{source}: {error}")
        return
    yield from read_bytes(source, data.encode(errors="surrogatepass") if isinstance(data, str) else data, errors)


def _is_model(value: object) -> bool:
    return not isinstance(value, type) and (hasattr(value, "attribute_map") or hasattr(value, "to_dict"))


def _plain(value: Any) -> Any:  # noqa: ANN401 - any model of a client
    """The data of a client's model under the names of the API; `to_dict` of the Kubernetes client has Python's."""
    if names := getattr(value, "attribute_map", None):
        found = {name: _plain(getattr(value, own)) for own, name in names.items()}
        return {name: one for name, one in found.items() if one is not None}
    if isinstance(value, Mapping):
        return {str(name): _plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if isinstance(value, date):
        return value.isoformat()
    return _plain(value.to_dict()) if _is_model(value) else value


def _blocking(work: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, T]:
    """The function of the same signature that does the work to its end."""

    @wraps(work)
    def blocking(*args: P.args, **kwargs: P.kwargs) -> T:
        return _run(partial(work, *args, **kwargs))

    blocking.__name__ = blocking.__qualname__ = work.__name__.removesuffix("_async")
    return blocking


def _run(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Do the work to its end: in this thread, or in one of its own where an event loop runs in this one."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work())
    results: list[T] = []
    errors: list[BaseException] = []
    interrupted = threading.Event()
    begun: list[tuple[asyncio.AbstractEventLoop, asyncio.Task[object] | None]] = []

    async def begin() -> T:
        begun.append((asyncio.get_running_loop(), asyncio.current_task()))
        if interrupted.is_set():
            raise asyncio.CancelledError
        return await work()

    def run() -> None:
        try:
            results.append(asyncio.run(begin()))
        except BaseException as error:  # noqa: BLE001 - raised in the caller's thread
            errors.append(error)

    thread = threading.Thread(target=run, name="muster", daemon=True)
    try:
        thread.start()
        thread.join()
    except BaseException:
        # The kernel of the notebook was interrupted: nothing of a wait goes on.
        interrupted.set()
        for loop, task in begun:
            if task is not None:
                loop.call_soon_threadsafe(task.cancel)
        raise
    if errors:
        raise errors[0]
    return results[0]


plan = _blocking(plan_async)
explain = _blocking(explain_async)
wait = _blocking(wait_async)
queues = _blocking(queues_async)
