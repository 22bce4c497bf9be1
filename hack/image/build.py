"""From a checkout to an image: three layers, each kept by what went into it, and a bill of materials."""

import hashlib
import json
import os
import shutil
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from hack.image.bytecode import Interpreter, add_bytecode
from hack.image.debian import Package, debian_tree, resolved
from hack.image.errors import ImageError, run
from hack.image.machine import Machine, this_machine
from hack.image.oci import Image, Layer, image, layer
from hack.image.places import appearing, forget_all_but_newest, image_cache, key_of
from hack.image.sbom import debian_component, document, licences, python_component, rfc3339
from hack.image.tree import EPOCH, Tree
from hack.image.wheels import BARE, SITE, Wheel, downloaded, muster_wheel, read_wheel, requirements_tree, unpack
from hack.testbed.paths import locked
from muster.process.revision import COMMIT_FILE, UNKNOWN, in_checkout

CHECKOUT = Path(__file__).parents[2]
SBOM_IN_IMAGE = "usr/share/doc/muster/sbom.cdx.json"


@dataclass(frozen=True, slots=True)
class Source:
    """The source of a build: a checkout, its commit, and the time of the image (seconds since 1970).

    With a `wheel` muster is that one, and the checkout only has the requirements: so a released version is built again.
    """

    checkout: Path
    commit: str
    epoch: int
    wheel: Path | None = None


@dataclass(frozen=True, slots=True)
class Built:
    """An image with its bill of materials."""

    source: Source
    image: Image
    layers: tuple[Layer, ...]
    sbom: bytes
    version: str
    machine: Machine

    def write(self, output: Path) -> Path:
        """Write archive, layout, bill of materials and digest over former ones; return the archive."""
        shutil.rmtree(output / "oci", ignore_errors=True)
        output.mkdir(parents=True, exist_ok=True)
        for old in output.glob("muster-*.tar"):
            old.unlink()
        self.image.tree().write(output / "oci")
        (output / "sbom.cdx.json").write_bytes(self.sbom)
        (output / "digest").write_text(f"{self.image.digest}\n")
        archive = output / f"muster-{self.version}.tar"
        archive.write_bytes(self.image.archive())
        return archive


@dataclass(frozen=True, slots=True)
class _Kept:
    """A layer with its part of the bill of materials."""

    layer: Layer
    components: list[dict[str, Any]]


def source(checkout: Path, commit: str = "") -> Source:
    """Return the source in a checkout by git; `commit` and the environment's SOURCE_DATE_EPOCH override it.

    Without any time it is the first second of 1980.
    """
    known = commit or in_checkout(checkout)
    stated = os.environ.get("SOURCE_DATE_EPOCH", "")
    if stated and not stated.isdecimal():
        raise ImageError(f"SOURCE_DATE_EPOCH is {stated!r}: set it to seconds since 1970 or unset it")
    if stated:
        return Source(checkout, known, int(stated))
    if (checkout / ".git").exists() and known != UNKNOWN:
        return Source(checkout, known, int(run(["git", "-C", checkout, "log", "-1", "--format=%ct"])))
    return Source(checkout, known, EPOCH)


def build(what: Source, *, name: str, progress: Callable[[str], None], machine: Machine | None = None) -> Built:
    """Return the image for `machine`, else for this one, known as `name:VERSION`.

    Raises ImageError with the reason in one line.
    """
    host = this_machine()
    machine = machine or host
    with locked(image_cache() / "build.lock"):
        progress("asking apt for Debian's packages")
        packages = resolved(machine)
        interpreter = _interpreter(packages if machine == host else resolved(host), host)
        base_key = key_of("debian", [asdict(one) for one in packages], interpreter.home.name)
        base = _kept(base_key, lambda: _debian(packages, interpreter, machine, progress))
        requirements = what.checkout / "requirements" / "runtime.txt"
        key = key_of("requirements", base_key, requirements.read_text())
        python = _kept(key, lambda: _requirements(requirements, interpreter, machine, progress))
        progress("building muster's wheel")
        wheel = read_wheel(what.wheel.read_bytes()) if what.wheel else muster_wheel(what.checkout)
        sbom = document(
            [*base.components, *python.components, python_component(wheel)], wheel.version, what.commit, what.epoch
        )
        own = _muster(wheel, what.commit, sbom, interpreter)
        for folder in ("interpreters", "layers"):
            forget_all_but_newest(image_cache() / folder)
    layers = (base.layer, python.layer, own)
    made = image(
        layers, machine, created=rfc3339(what.epoch), name=name, tag=wheel.version, labels=_labels(wheel, what)
    )
    return Built(what, made, layers, sbom, wheel.version, machine)


def _labels(wheel: Wheel, what: Source) -> dict[str, str]:
    labels = {
        "title": "muster",
        "description": wheel.summary,
        "licenses": wheel.licence,
        "version": wheel.version,
        "created": rfc3339(what.epoch),
        "revision": what.commit,
        # Only where the project's own metadata names an address.
        "source": wheel.source,
    }
    return {f"org.opencontainers.image.{name}": value for name, value in labels.items() if value}


def _muster(wheel: Wheel, commit: str, sbom: bytes, interpreter: Interpreter) -> Layer:
    tree = Tree()
    unpack(wheel, tree, commands=True)
    add_bytecode(tree, interpreter)
    tree.file(f"{SITE}/muster/{COMMIT_FILE}", f"{commit}\n")
    tree.file(SBOM_IN_IMAGE, sbom)
    return layer(tree, f"muster {wheel.version}, commit {commit}")


def _debian(
    packages: list[Package], interpreter: Interpreter, machine: Machine, progress: Callable[[str], None]
) -> _Kept:
    progress("making the layer of Debian's Python")
    tree, copyrights = debian_tree(packages, machine)
    add_bytecode(tree, interpreter)
    components = [debian_component(package, licences(package.name, copyrights[package.name])) for package in packages]
    versions = " ".join(f"{one.name}={one.version}" for one in packages)
    return _Kept(layer(tree, f"files of Debian packages: {versions}"), components)


def _requirements(
    requirements: Path, interpreter: Interpreter, machine: Machine, progress: Callable[[str], None]
) -> _Kept:
    progress("making the layer of the locked requirements")
    wheels = downloaded(requirements, machine)
    tree = requirements_tree(wheels)
    add_bytecode(tree, interpreter, bare=BARE)
    return _Kept(layer(tree, "requirements/runtime.txt"), [python_component(wheel) for wheel in wheels])


def _interpreter(packages: list[Package], machine: Machine) -> Interpreter:
    """The files of Debian's layer on disk, where its interpreter can be run to compile modules."""
    home = image_cache() / "interpreters" / key_of("debian", [asdict(one) for one in packages], _own_code())
    if not home.exists():
        with appearing(home) as folder:
            debian_tree(packages, machine)[0].write(folder)
    return Interpreter(home, machine)


def _kept(key: str, make: Callable[[], _Kept]) -> _Kept:
    """The layer that was made of the same before, or a new one."""
    home = image_cache() / "layers" / key
    if not home.exists():
        made = make()
        facts = {
            "diff_id": made.layer.diff_id,
            "size": made.layer.size,
            "made_by": made.layer.made_by,
            "digest": made.layer.digest,
            "components": made.components,
        }
        with appearing(home) as folder:
            (folder / "layer.tar.gz").write_bytes(made.layer.data)
            (folder / "facts.json").write_text(json.dumps(facts))
    facts = json.loads((home / "facts.json").read_text())
    kept = Layer((home / "layer.tar.gz").read_bytes(), facts["diff_id"], facts["size"], facts["made_by"])
    if kept.digest != facts["digest"]:
        raise ImageError(f"{home} is not as it was written: remove it and build again")
    os.utime(home)
    return _Kept(kept, facts["components"])


def _own_code() -> str:
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()
