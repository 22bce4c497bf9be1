"""A testbed with a real node, on which the chart runs the image of this checkout, or of a former version."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, NamedTuple

import pytest

from hack.image.build import CHECKOUT, build, source
from hack.testbed import Nodes, Testbed
from tests.support.cluster.former_versions import former_versions
from tests.support.cluster.helm_release import CHART, Release
from tests.support.cluster.kernel_connections import Connections

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from hack.release.kept import Kept


class Archives(NamedTuple):
    """The images, of this checkout and of former versions, built one after the other while other things go on."""

    own: Future[Path]
    former: Future[list[tuple[Kept, Path]]]


@pytest.fixture(scope="package")
def archives(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Archives]:
    """Their archives, which are being built."""
    copy, *folders = (tmp_path_factory.mktemp(name) for name in ("checkout", "own", "former"))

    def own() -> Path:
        return build(source(CHECKOUT), name=Release.image, progress=print).write(folders[0])

    def former() -> list[tuple[Kept, Path]]:
        versions = former_versions(copy).values()
        return [(one, one.image(Release.image).write(folders[1] / one.version)) for one in versions]

    with ThreadPoolExecutor(1) as pool:
        yield Archives(pool.submit(own), pool.submit(former))


@pytest.fixture(scope="package")
def real(archives: Archives) -> Iterator[Testbed]:  # noqa: ARG001 (they are built meanwhile)
    """A testbed with Volcano, KubeRay, four nodes of kwok's and a real one."""
    with Testbed.start(parts=["volcano", "kuberay", "node"], nodes=Nodes(gpu=0), progress=print) as running:
        yield running


@pytest.fixture(scope="package")
def loaded(real: Testbed, archives: Archives) -> Release:
    """A release that is not there yet; its image is on the node."""
    real.load_image(archives.own.result())
    return Release(real)


@pytest.fixture(scope="package")
def former_loaded(real: Testbed, archives: Archives) -> dict[str, Kept]:
    """The former versions; their images are on the node, too."""
    for _, archive in archives.former.result():
        real.load_image(archive)
    return {one.version: one for one, _ in archives.former.result()}


@pytest.fixture(scope="package")
def connections(real: Testbed) -> Connections:
    """Who spoke with whom, since before the release was installed."""
    return Connections(real)


@pytest.fixture(scope="package")
def release(loaded: Release, connections: Connections) -> Release:  # noqa: ARG001 (it is to see the pods' first call)
    """The chart, installed with little more than the one value that it asks for."""
    release = loaded
    release.helm("install", *Release.values, "--wait", "--timeout=300s")
    return release


@pytest.fixture
def absent(loaded: Release) -> Iterator[Release]:
    """The release, not installed, whoever was here before; in the end it is not there either."""
    loaded.helm("uninstall", "--no-hooks", "--ignore-not-found", "--wait", "--timeout=300s")
    yield loaded
    loaded.chart = CHART
    loaded.helm("uninstall", "--no-hooks", "--ignore-not-found", "--wait")
