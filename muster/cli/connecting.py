"""Connects a command to its cluster, with one probe first: a missing cluster is reported at once, in kubectl's words.

Every later request has its own deadline and retries, which add up to a minute when no apiserver answers.
"""

import argparse
import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from urllib.parse import urlsplit

from muster.cli.options import CONNECT_TIMEOUT
from muster.cli.parsing import InputError
from muster.cli.settings import Settings, read_settings
from muster.cli.ui import CommandError, lasting
from muster.cluster.served import choose_versions
from muster.gangs.start_errors import StartError, StartErrors
from muster.kube.client import Client
from muster.kube.config import ConfigError
from muster.kube.errors import ApiError, Unreachable
from muster.model.objects import ConfigMap, InvalidObjectError, Lease, LeaseSpec, decode
from muster.model.resource import CONFIG_MAPS, LEASES, BadNameError
from muster.model.texts import printable
from muster.model.times import seconds_of

PATIENCE = 15.0
"""Seconds for one request; a user is waiting at a terminal."""
_UNAUTHORIZED = 401
_SUCCESS = 200
_VERSION = "/version"
# Seconds after which a command says that it waits for the first answer.
_SILENT = 1.0
# Kubernetes' own namespace for what all users of a cluster may know.
_PUBLIC, _SETTINGS = "kube-public", "muster"
_VALUES, _STARTS, _LEASE, _HISTORY = "values.yaml", "starts", "lease", "history"


class NoClusterError(CommandError):
    """No apiserver answers there, or it rejects the credentials."""


NO_CONTROLLER = "no controller of muster"
"""The beginning of the sentence that no controller is alive."""
NO_ANSWER = (ApiError, BadNameError, CommandError, ConfigError)
"""The errors that end a command with one line and exit code 2: no answer, or an answer that ends it."""


@asynccontextmanager
async def connected(arguments: argparse.Namespace) -> AsyncIterator[Client]:
    """A client to a cluster that answers, by the options of the command.

    Raises NoClusterError, and ConfigError when there is no usable configuration.
    """
    async with await _client(arguments) as client:
        await first_answer(client, arguments.connect_timeout)
        yield client


@asynccontextmanager
async def opened(
    arguments: argparse.Namespace, assumed: Settings | None = None
) -> AsyncIterator[tuple[Client, Settings]]:
    """As `connected`, with the settings of the installation, which the first request asks for.

    Those of `--values` replace the published ones; see `find_settings`. Raises ApiError, too.
    """
    async with await _client(arguments) as client:
        path = CONFIG_MAPS.path(_PUBLIC, _SETTINGS) if arguments.values is None else _VERSION
        answer = await first_answer(client, arguments.connect_timeout, path)
        settings = arguments.values or await find_settings(client, assumed, answer)
        await choose_versions(client, settings.defaults.schedulers.values())
        yield client, settings


async def _client(arguments: argparse.Namespace) -> Client:
    agent = f"muster-{arguments.command}"
    return await Client.connect(kubeconfig=arguments.kubeconfig, context=arguments.context, user_agent=agent)


async def first_answer(client: Client, seconds: float, path: str = _VERSION) -> bytes | ApiError | None:
    """Make one request. Any answer of an apiserver will do, even 403 or 503: the command deals with it.

    A pod skips it and gets None: its apiserver may be restarting, no user waits at a terminal, and every request has
    its own retries. Raises NoClusterError.
    """
    if client.in_cluster:
        return None
    waiting = asyncio.get_running_loop().call_later(_SILENT, _say_waiting, client.server)
    try:
        return await client.probe(path, deadline=seconds)
    except Unreachable as error:
        if error.connection_refused:
            host = urlsplit(client.server).netloc
            raise NoClusterError(
                f"The connection to the server {host} was refused - did you specify the right host or port?"
            ) from error
        why = error.message
        if error.timed_out:
            cure = f"for a slow connection use --connect-timeout, or set {CONNECT_TIMEOUT}"
            why = f"no answer from {client.server} within {seconds:g} s; {cure}"
        raise NoClusterError(f"Unable to connect to the server: {why}") from error
    except ApiError as error:
        if error.status == _UNAUTHORIZED:
            raise NoClusterError("You must be logged in to the server (Unauthorized)") from error
        if error.status == _SUCCESS:
            raise NoClusterError(f"Unable to connect to the server: {client.server}: {error.message}") from error
        return error
    finally:
        waiting.cancel()


def _say_waiting(server: str) -> None:
    print(f"muster: waiting for an answer from {printable(server)}", file=sys.stderr, flush=True)


def reading(command: str, client: Client) -> None:
    """Print on standard error that the cluster is being read: of a large or slow one that takes a while."""
    print(f"muster {command}: reading {printable(client.server)}", file=sys.stderr, flush=True)


async def find_settings(
    client: Client, assumed: Settings | None = None, answer: bytes | ApiError | None = None
) -> Settings:
    """The settings that the cluster publishes; `answer` is what an earlier request for them got, if there was one.

    Without the ConfigMap, or when it cannot be used, `assumed` (the chart's defaults) with a note. Raises
    ApiError when the apiserver does not answer.
    """
    where = f"ConfigMap {_PUBLIC}/{_SETTINGS}"
    try:
        if isinstance(answer, ApiError) and (answer.not_found or answer.forbidden):
            raise answer
        raw = answer if isinstance(answer, bytes) else await client.get(CONFIG_MAPS, _SETTINGS, _PUBLIC)
        data = decode(raw, ConfigMap).data
        starts, lease, history = (data.get(key, "") for key in (_STARTS, _LEASE, _HISTORY))
        return replace(read_settings(where, data.get(_VALUES, "")), starts=starts, lease=lease, history=history)
    except ApiError as error:
        if not (error.not_found or error.forbidden):
            raise
        why = f"{where} {'does not exist' if error.not_found else 'may not be read'}"
    except (InputError, InvalidObjectError) as error:
        why = str(error)
    note = f"the settings of muster are unknown ({why}): assuming the defaults of its chart; --values FILE names others"
    return replace(assumed or Settings(), note=note)


async def start_error(client: Client, settings: Settings, now: float) -> StartError | None:
    """The error of the planned starts of the last week; None when it is not known, or cannot be read."""
    namespace, _, name = settings.starts.partition("/")
    errors = StartErrors()
    if not name:
        return None
    try:
        errors.read(decode(await client.get(CONFIG_MAPS, name, namespace), ConfigMap).data.get(_STARTS, "{}"))
    except (ApiError, BadNameError, InvalidObjectError):
        return None
    return errors.last_week(now)


async def silence(client: Client, settings: Settings) -> str:
    """A sentence if no controller is alive, by its Lease; "" if one is, or if the Lease cannot be read."""
    namespace, _, name = settings.lease.partition("/")
    if not name:
        return ""
    try:
        spec = decode(await client.get(LEASES, name, namespace), Lease).spec
    except ApiError as error:
        if not error.not_found:
            return ""
        spec = LeaseSpec()
    except (BadNameError, InvalidObjectError):
        return ""
    since = client.now().timestamp() - (seconds_of(spec.renew_time) or 0.0)
    if spec.holder_identity and since <= spec.lease_duration_seconds:
        return ""
    how = f"has renewed its lease for {lasting(since)}" if spec.holder_identity else "holds the lease"
    return f"{NO_CONTROLLER} {how}: states may be old, and no waiting gang starts"
