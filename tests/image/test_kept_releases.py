"""A version that is kept as `make keep-release` does: its chart, and an image of the very same code."""

from pathlib import Path

import pytest

import muster
from hack.chart import CHART
from hack.image.build import CHECKOUT, Built
from hack.image.errors import ImageError
from hack.image.tree import Tree
from hack.image.wheels import SITE
from hack.release.kept import keep, kept
from hack.release.programs import Programs, packed_chart
from hack.testbed.build import binaries
from hack.testbed.parts import PARTS
from muster.process.revision import COMMIT_FILE
from tests.support.image.container import files

_KEPT = 1_000_000


@pytest.fixture(scope="module")
def tools() -> Programs:
    """Helm alone: what signs is not needed."""
    return Programs(binaries([PARTS["helm"]], print))


@pytest.fixture(scope="module")
def releases(tools: Programs, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which this version is kept."""
    folder = tmp_path_factory.mktemp("releases")
    keep(tools, folder)
    return folder


@pytest.mark.long
def test_the_image_of_a_kept_version_has_the_same_code(releases: Path, image: Built, image_tree: Tree) -> None:
    """Beside the commit, of which only the version's tag is known, and what says so."""
    (one,) = kept(releases)
    assert one.version == muster.__version__
    again = one.image("muster")
    there = files(again)
    code = {path for path in image_tree.entries if path.startswith(SITE) and path != f"{SITE}/muster/{COMMIT_FILE}"}
    assert len(code) > 1000
    changed = {path for path in code if there.entries[path] != image_tree.entries[path]}
    assert changed == set()
    assert [layer.digest for layer in again.layers[:2]] == [layer.digest for layer in image.layers[:2]]


def test_the_chart_is_kept_as_it_is_published(releases: Path, tools: Programs, tmp_path: Path) -> None:
    (one,) = kept(releases)
    assert one.chart.read_bytes() == packed_chart(CHART, tmp_path, tools).read_bytes()
    assert (one.folder / "requirements/runtime.txt").read_text() == (CHECKOUT / "requirements/runtime.txt").read_text()


def test_what_is_kept_of_a_version_is_small(releases: Path) -> None:
    """As docs/releasing.md says: the repository has it for ever."""
    assert sum(path.stat().st_size for path in releases.rglob("*") if path.is_file()) < _KEPT


def test_a_version_is_kept_once(releases: Path, tools: Programs) -> None:
    with pytest.raises(ImageError, match=r"is there already: a version is released once; remove it if this one never"):
        keep(tools, releases)


def test_versions_are_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    for version in ("0.10.0", "0.9.1", "0.9.0"):
        (tmp_path / version).mkdir()
        (tmp_path / version / f"muster-{version}-py3-none-any.whl").touch()
    assert [one.version for one in kept(tmp_path)] == ["0.9.0", "0.9.1", "0.10.0"]
    assert kept(tmp_path)[0].chart.name == "muster-0.9.0.tgz"
