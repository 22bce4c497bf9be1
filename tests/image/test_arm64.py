"""The image for arm64, which an amd64 machine builds: its programs run under qemu's emulation of that processor."""

import json
import re
import shutil
import subprocess
import sys

import pytest

import muster
from hack.image.build import CHECKOUT, SBOM_IN_IMAGE, Built, build
from hack.image.machine import MACHINES
from hack.image.tree import Tree
from hack.testbed.debian import Debian
from tests.support.image.container import Container, files, unpacked

# It is built, and emulated.
pytestmark = [pytest.mark.long, pytest.mark.timeout(1800)]

_AARCH64 = 183
_QEMU = "qemu-aarch64-static"
_EXAMPLE = CHECKOUT / "docs" / "examples" / "raycluster.yaml"


@pytest.fixture(scope="module")
def foreign(image: Built) -> Built:
    """The image for arm64, of the same source."""
    return build(image.source, name="muster", progress=print, machine=MACHINES["arm64"])


@pytest.fixture(scope="module")
def foreign_tree(foreign: Built) -> Tree:
    return files(foreign)


@pytest.fixture(scope="module")
def emulated(foreign: Built, foreign_tree: Tree, tmp_path_factory: pytest.TempPathFactory) -> Container:
    """Its files in a folder, with the emulator beside them."""
    qemu = Debian(("qemu-user-static",))
    qemu.ensure(print)
    root = tmp_path_factory.mktemp("arm64") / "root"
    root.parent.chmod(0o755)
    container = unpacked(foreign, foreign_tree, root)
    shutil.copy(qemu.program(_QEMU), root / _QEMU)
    return container


def python(container: Container, *words: str, text: str = "") -> str:
    return container.run(f"/{_QEMU}", "/usr/bin/python3.11", *words, text=text).stdout


def test_every_program_and_library_is_for_that_processor(foreign_tree: Tree) -> None:
    """ELF says it in its header, by the number 183."""
    programs = {path: data for path, data in foreign_tree.files() if data.startswith(b"\x7fELF")}
    assert len(programs) > 40
    assert {path for path, data in programs.items() if int.from_bytes(data[18:20], "little") != _AARCH64} == set()


def test_it_says_for_which_machine_it_is(foreign: Built) -> None:
    config = foreign.image.config
    assert (config["os"], config["architecture"]) == ("linux", "arm64")
    debian = [one for one in json.loads(foreign.sbom)["components"] if one["purl"].startswith("pkg:deb/")]
    assert {re.search(r"arch=(\w+)", one["purl"])[1] for one in debian} <= {"arm64", "all"}  # type: ignore[index]


def test_muster_itself_is_the_same_on_every_machine(image: Built, foreign: Built) -> None:
    """Its compiled modules too, which this machine made."""
    here, there = (dict(one.layers[2].tree().files()) for one in (image, foreign))
    assert here.pop(SBOM_IN_IMAGE) != there.pop(SBOM_IN_IMAGE)
    assert here == there


def test_it_runs_there(emulated: Container, foreign: Built) -> None:
    said = python(emulated, "-c", "import platform; print(platform.machine())")
    assert said == "aarch64\n"
    expected = f"{muster.__version__} (commit {foreign.source.commit})\n"
    assert python(emulated, "/usr/local/bin/muster", "version") == expected


def test_every_module_of_both_processes_can_be_imported_there(emulated: Container) -> None:
    """Those in C too: TLS, keys, HTTP, JSON, YAML."""
    walk = (
        "import importlib, pkgutil\n"
        "for top in ('muster', 'webhook', 'controller'):\n"
        "    package = importlib.import_module(top)\n"
        "    for module in pkgutil.walk_packages(package.__path__, f'{top}.'):\n"
        "        try: importlib.import_module(module.name)\n"
        "        except ModuleNotFoundError as error: assert error.name in ('jinja2', 'rich'), error\n"
        "print(sorted({'cryptography', 'aiohttp', 'msgspec', 'yaml', 'ssl'} & __import__('sys').modules.keys()))\n"
    )
    assert python(emulated, "-c", walk) == "['aiohttp', 'cryptography', 'msgspec', 'ssl', 'yaml']\n"


def test_it_plans_there_as_here(emulated: Container) -> None:
    manifests = _EXAMPLE.read_text()
    here = subprocess.run(
        [sys.executable, "-m", "muster.cli", "plan", "-f", "-"],
        cwd=CHECKOUT, input=manifests, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert python(emulated, "/usr/local/bin/muster", "plan", "-f", "-", text=manifests) == here.stdout
