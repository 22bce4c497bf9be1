"""A testbed with a real node, on which the chart runs the image of this checkout, or of a former version."""

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from hack.image.build import CHECKOUT, build, source
from hack.release.kept import Kept
from hack.testbed import Nodes, Testbed
from tests.support.cluster.former_versions import former_versions
from tests.support.cluster.helm_release import CHART, WITHIN, Release
from tests.support.cluster.kernel_connections import Connections


@pytest.fixture(scope="package")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Future[Path]]:
    """The archive of this checkout's image, which is being built while other things go on."""
    folder = tmp_path_factory.mktemp("own")
    with ThreadPoolExecutor(1) as pool:
        yield pool.submit(lambda: build(source(CHECKOUT), name=Release.image, progress=print).write(folder))


@pytest.fixture(scope="package")
def real(archive: Future[Path]) -> Iterator[Testbed]:  # noqa: ARG001 (it is built meanwhile)
    """A testbed with Volcano, KubeRay, four nodes of kwok's and a real one."""
    with Testbed.start(parts=["volcano", "kuberay", "node"], nodes=Nodes(gpu=0), progress=print) as running:
        yield running


@pytest.fixture(scope="package")
def loaded(real: Testbed, archive: Future[Path]) -> Release:
    """A release that is not there yet; its image is on the node."""
    real.load_image(archive.result())
    return Release(real)


@pytest.fixture(scope="package")
def former_loaded(real: Testbed, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Kept]:
    """The former versions; their images, built from what is kept of them, are on the node, too."""
    versions = former_versions(tmp_path_factory.mktemp("checkout"))
    for one in versions.values():
        real.load_image(one.image(Release.image).write(tmp_path_factory.mktemp("former") / one.version))
    return versions


@pytest.fixture(scope="package")
def connections(real: Testbed) -> Connections:
    """Who spoke with whom, since before the release was installed."""
    return Connections(real)


@pytest.fixture(scope="package")
def release(loaded: Release, connections: Connections) -> Release:  # noqa: ARG001 (it is to see the pods' first call)
    """The chart, installed with little more than the one value that it asks for."""
    release = loaded
    release.helm("install", *Release.values, "--wait", WITHIN)
    return release


@pytest.fixture
def absent(loaded: Release) -> Iterator[Release]:
    """The release, not installed, whoever was here before; in the end it is not there either."""
    loaded.helm("uninstall", "--no-hooks", "--ignore-not-found", "--wait", WITHIN)
    yield loaded
    loaded.chart = CHART
    loaded.helm("uninstall", "--no-hooks", "--ignore-not-found", "--wait")
