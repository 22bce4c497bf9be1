"""A testbed with a real node, on which the chart runs the image of this checkout."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from hack.image.build import CHECKOUT, build, source
from hack.testbed import Nodes, Testbed
from tests.support.cluster.helm_release import Release
from tests.support.cluster.kernel_connections import Connections

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="package")
def real() -> Iterator[Testbed]:
    """A testbed with Volcano, KubeRay, four nodes of kwok's and a real one."""
    with Testbed.start(parts=["volcano", "kuberay", "node"], nodes=Nodes(gpu=0), progress=print) as running:
        yield running


@pytest.fixture(scope="package")
def loaded(real: Testbed, tmp_path_factory: pytest.TempPathFactory) -> Release:
    """A release that is not there yet; its image is on the node."""
    image = build(source(CHECKOUT), name=Release.image, progress=print)
    real.load_image(image.write(tmp_path_factory.mktemp("image")))
    return Release(real)


@pytest.fixture(scope="package")
def connections(real: Testbed) -> Connections:
    """Who spoke with whom, since before the release was installed."""
    return Connections(real)


@pytest.fixture(scope="package")
def release(loaded: Release, connections: Connections) -> Release:  # noqa: ARG001 (it is to see the pods' first call)
    """The chart, installed with the one value that it asks for."""
    release = loaded
    release.helm("install", *Release.values, "--wait", "--timeout=300s")
    return release
