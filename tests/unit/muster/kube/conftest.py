from collections.abc import AsyncIterator

import pytest

from muster.kube.client import Client
from tests.support.faults.apiserver import FaultyApiserver


@pytest.fixture
async def server() -> AsyncIterator[FaultyApiserver]:
    async with FaultyApiserver.serving() as server:
        yield server


@pytest.fixture
async def client(server: FaultyApiserver) -> AsyncIterator[Client]:
    async with server.client() as client:
        yield client
