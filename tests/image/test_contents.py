"""What is in the image, and what is not."""

import json
import re
from pathlib import PurePosixPath
from typing import Any

import pytest

import muster
from hack.image.build import CHECKOUT, SBOM_IN_IMAGE, Built, source
from hack.image.debian import PACKAGES
from hack.image.sbom import READ, licences
from hack.image.tree import Tree
from hack.image.wheels import SITE
from tests.support.image.container import Container

_UNPACKED, _PACKED = 92_000_000, 30_000_000
_STATUS = "var/lib/dpkg/status.d"


def test_it_is_small(image: Built) -> None:
    """A promise of docs/image.md, unpacked and packed."""
    assert image.image.size < _UNPACKED
    assert sum(len(layer.data) for layer in image.layers) < _PACKED


def test_the_only_programs_are_python_and_musters(image_tree: Tree) -> None:
    """No shell, no compiler, no package manager: nothing else that could be executed by its name."""
    executables = {
        path
        for path, entry in image_tree.entries.items()
        if entry.data is not None and (entry.mode & 0o111 or "/bin/" in path or "/sbin/" in path)
    }
    programs = {path for path in executables if ".so" not in path}
    commands = {
        f"usr/local/bin/{name}"
        for name in ("muster", "kubectl-muster", "muster-webhook", "muster-controller", "muster-page")
    }
    assert programs == {"usr/bin/python3.11", *commands}


def test_nothing_gives_privileges_or_can_be_written(image_tree: Tree) -> None:
    """No setuid, no setgid, and only /tmp is for everybody, as everywhere."""
    modes = {path: entry.mode for path, entry in image_tree.entries.items() if entry.target is None}
    assert modes.pop("tmp") == 0o1777
    assert {path for path, mode in modes.items() if mode & 0o7022} == set()


def test_links_lead_to_files_of_the_image(container: Container) -> None:
    walk = (
        "import os\n"
        "for folder, _, names in os.walk('/'):\n"
        "    for name in names:\n"
        "        path = os.path.join(folder, name)\n"
        "        if not os.path.exists(path) and not path.startswith('/proc'):\n"
        "            print(path, os.readlink(path))\n"
    )
    assert container.run("python3.11", "-c", walk).stdout == ""


def test_every_module_is_compiled_and_never_checked_against_a_time(image_tree: Tree) -> None:
    """PEP 552: bit 0 says that it is bound to a hash, bit 1 that the hash is to be checked."""
    compiled = {path: data for path, data in image_tree.files() if path.endswith(".pyc")}
    assert {path for path, data in compiled.items() if int.from_bytes(data[4:8], "little") != 1} == set()
    sources = [PurePosixPath(path) for path, _ in image_tree.files() if path.endswith(".py")]
    expected = {str(path.parent / "__pycache__" / f"{path.stem}.cpython-311.pyc") for path in sources}
    assert expected <= compiled.keys()


def test_libraries_find_all_that_they_are_linked_with(container: Container, image_tree: Tree) -> None:
    """Packages are not installed, so nobody else has looked whether their dependencies came along."""
    libraries = [f"/{path}" for path, data in image_tree.files() if ".so" in path and data.startswith(b"\x7fELF")]
    loader = next(path for path in libraries if "/ld-linux" in path)
    ask = (
        "import subprocess, sys\n"
        "for one in sys.argv[2:]:\n"
        "    said = subprocess.run([sys.argv[1], '--list', one], capture_output=True, text=True)\n"
        "    if said.returncode or 'not found' in said.stdout:\n"
        "        print(one, said.stdout, said.stderr)\n"
    )
    assert container.run("python3.11", "-c", ask, loader, *libraries).stdout == ""


def test_every_module_of_muster_can_be_imported(container: Container) -> None:
    """What was left out of Debian's packages and of the wheels is missed by none but those that need an extra."""
    walk = (
        "import importlib, pkgutil\n"
        "for top in ('muster', 'webhook', 'controller'):\n"
        "    package = importlib.import_module(top)\n"
        "    for module in pkgutil.walk_packages(package.__path__, f'{top}.'):\n"
        "        try: importlib.import_module(module.name)\n"
        "        except ModuleNotFoundError as error: print(module.name, error.name)\n"
        "import kubernetes_asyncio.client, kubernetes_asyncio.config, zoneinfo\n"
        "print(zoneinfo.ZoneInfo('Europe/Berlin'), kubernetes_asyncio.client.V1Pod(kind='Pod').kind)\n"
    )
    without = ["muster.cli.queues.screen rich"]
    assert container.run("python3.11", "-W", "error", "-c", walk).stdout.splitlines() == [*without, "Europe/Berlin Pod"]


def test_public_authorities_are_trusted_as_certifi_says(container: Container) -> None:
    count = "import ssl; print(len(ssl.create_default_context().get_ca_certs()))"
    assert int(container.run("python3.11", "-c", count).stdout) > 100


@pytest.fixture(scope="module")
def sbom(image: Built) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(image.sbom)
    return content


def test_the_bill_of_materials_lists_exactly_what_is_inside(sbom: dict[str, Any], image_tree: Tree) -> None:
    """Read back from the packages' own files in the image, in both directions."""
    inside = set()
    for path, data in image_tree.files():
        if path.startswith(f"{_STATUS}/"):
            fields = dict(re.findall(r"^(Package|Version): (.*)$", data.decode(), re.MULTILINE))
            inside.add(("deb", fields["Package"], fields["Version"]))
        elif path.startswith(SITE) and path.endswith(".dist-info/METADATA"):
            fields = dict(re.findall(r"^(Name|Version): (.*)$", data.decode().split("\n\n")[0], re.MULTILINE))
            inside.add(("pypi", fields["Name"], fields["Version"]))
    listed = [(one["purl"][4:].split("/")[0], one["name"], one["version"]) for one in sbom["components"]]
    assert sorted(listed) == sorted(inside)


def test_the_bill_of_materials_is_the_locked_requirements_and_debians_packages(sbom: dict[str, Any]) -> None:
    locked = set(re.findall(r"^([\w.-]+)==([\w.]+)", (CHECKOUT / "requirements/runtime.txt").read_text(), re.MULTILINE))
    python = {
        (re.sub(r"[-_.]+", "-", one["name"]).lower(), one["version"])
        for one in sbom["components"]
        if one["purl"].startswith("pkg:pypi/")
    }
    assert python == locked | {("muster", muster.__version__)}
    assert {one["name"] for one in sbom["components"] if one["purl"].startswith("pkg:deb/")} == set(PACKAGES)


def test_every_part_has_its_licence(sbom: dict[str, Any], image_tree: Tree) -> None:
    """As it says itself, or as it was read where that is free text; the texts are in the image."""
    assert [one["name"] for one in sbom["components"] if "licenses" not in one] == []
    concluded = {one["name"] for one in sbom["components"] if "acknowledgement" in one["licenses"][0]}
    assert concluded == READ.keys()
    wheels = {path.split("/")[-2] for path in image_tree.entries if path.endswith(".dist-info/METADATA")}
    texts = {part for path in image_tree.entries for part in path.split("/") if part.endswith(".dist-info")}
    assert wheels == texts


def test_a_copyright_file_that_says_something_else_by_now_says_nothing() -> None:
    said = READ["libc6"].words.replace(" ", "\n    ").encode()
    assert licences("libc6", said) == [{"expression": "LGPL-2.1-or-later", "acknowledgement": "concluded"}]
    assert licences("libc6", said.replace(b"2.1", b"3")) == []
    assert licences("unknown", said) == []
    assert licences("libc6", b"Format: x\nLicense: B\n text\nLicense: A\n") == [
        {"license": {"name": "A"}},
        {"license": {"name": "B"}},
    ]


def test_the_bill_of_materials_is_in_the_image(image: Built, image_tree: Tree) -> None:
    assert image_tree.entries[SBOM_IN_IMAGE].data == image.sbom


def test_labels_say_which_muster_it_is(image: Built) -> None:
    """And no address: the repository names none."""
    labels = image.image.config["config"]["Labels"]
    assert labels["org.opencontainers.image.version"] == muster.__version__
    assert labels["org.opencontainers.image.revision"] == source(CHECKOUT).commit
    assert "org.opencontainers.image.source" not in labels
    assert not any("://" in value for value in labels.values())


def test_the_user_is_nobody_of_the_nodes(image: Built, image_tree: Tree) -> None:
    """Numeric, so that a kubelet can see by itself that it is not root."""
    assert image.image.config["config"]["User"] == "65532:65532"
    assert b"65532:65532" in (image_tree.entries["etc/passwd"].data or b"")
