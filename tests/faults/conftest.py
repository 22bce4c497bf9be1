"""A control plane of its own, which these tests stop, restore and overload; kinds that nobody else acts on."""

from collections.abc import AsyncIterator, Iterator

import pytest

from hack.testbed import Testbed, wait_for
from hack.testbed.api import Api
from muster.model.resource import NAMESPACES
from tests.support.cluster.verbs import own_name
from tests.support.faults.apiserver import FaultyApiserver
from tests.support.faults.things import THINGS, Things, crd, watched_from_now_on
from tests.support.manifests.members import DEFINITIONS


@pytest.fixture(scope="session")
def cluster_of_session() -> Iterator[Testbed]:
    """The control plane that is broken and mended."""
    with Testbed.start(parts=(), progress=print) as running:
        yield running


@pytest.fixture
def cluster(cluster_of_session: Testbed) -> Testbed:
    """The same, running, whatever the test before did to it."""
    processes = cluster_of_session.processes()
    for part in ("etcd", "kube-apiserver"):
        if not processes[part].alive():
            cluster_of_session.start_part(part)
    return cluster_of_session


@pytest.fixture
def calls(cluster: Testbed) -> Iterator[Api]:
    """The administrator's own calls, past every proxy."""
    calls = cluster.api()
    yield calls
    calls.close()


@pytest.fixture
def things(cluster: Testbed, calls: Api, request: pytest.FixtureRequest) -> Iterator[Things]:
    """A namespace of the test's own, in an apiserver that serves Things."""
    del cluster
    if calls("GET", f"{DEFINITIONS}/{THINGS.full_name}").status == 404:
        calls.done("POST", DEFINITIONS, crd(THINGS))
    wait_for("Things to be served", lambda: watched_from_now_on(calls))
    name = own_name(request.node.name.removeprefix("test_"))
    # No ServiceAccount is waited for: what makes them may still be looking for its apiserver.
    calls.create(NAMESPACES.path(), {"metadata": {"name": name}})
    yield Things(calls, name)
    calls("DELETE", NAMESPACES.path(name=name))


@pytest.fixture
async def proxy(cluster: Testbed) -> AsyncIterator[FaultyApiserver]:
    """What stands between the client and the real apiserver."""
    async with FaultyApiserver.in_front_of(cluster) as proxy:
        yield proxy
