"""A bare control plane for what only Kubernetes itself can answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from hack.testbed import Nodes, Testbed
from tests.apiserver.calls import Calls

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def bare_testbed() -> Iterator[Testbed]:
    """The apiserver, the controllers and the scheduler, without any add-on; one ordinary node keeps kwok busy."""
    with Testbed.start(parts=[], nodes=Nodes(count=1), progress=print) as running:
        yield running


@pytest.fixture(scope="session")
def calls(bare_testbed: Testbed) -> Iterator[Calls]:
    """Quick calls to the bare control plane."""
    calls = Calls(bare_testbed)
    yield calls
    calls.close()
