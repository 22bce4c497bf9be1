from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.faults.apiserver import FaultyApiserver

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from muster.kube.client import Client


@pytest.fixture
async def server() -> AsyncIterator[FaultyApiserver]:
    async with FaultyApiserver.serving() as server:
        yield server


@pytest.fixture
async def client(server: FaultyApiserver) -> AsyncIterator[Client]:
    async with server.client() as client:
        yield client
