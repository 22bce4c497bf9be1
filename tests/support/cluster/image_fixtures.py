"""The image as it was built, and its files in a folder, whose programs are run as a container runtime would."""

import os

import pytest

from hack.image.build import CHECKOUT, Built, build, source
from hack.image.container import Container, files, unpacked
from hack.image.tree import Tree


@pytest.fixture(scope="session")
def image() -> Built:
    """The image of this checkout."""
    return build(source(CHECKOUT), name="muster", progress=print)


@pytest.fixture(scope="session")
def image_tree(image: Built) -> Tree:
    """All its files, layer over layer."""
    return files(image)


@pytest.fixture(scope="session")
def container(image: Built, image_tree: Tree, tmp_path_factory: pytest.TempPathFactory) -> Container:
    """The image on disk. Mounting and entering it needs root."""
    if os.geteuid() != 0:
        pytest.fail("running the image needs root, for mount and chroot: run these tests as root")
    root = tmp_path_factory.mktemp("image") / "root"
    root.parent.chmod(0o755)
    return unpacked(image, image_tree, root)
