"""The layer of Debian's CPython: which packages, which of their files, and where they come from.

No package is installed: their files are taken as they are, and nothing of Debian's runs. So there is no shell, no
package manager and no script of theirs in the image. Packages come through the machine's own apt, which checks
signatures, also those of another architecture.
"""

import hashlib
import io
import re
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from hack.apt import apt
from hack.image.errors import ImageError, run
from hack.image.machine import PYTHON, Machine, this_machine
from hack.image.places import image_cache
from hack.image.tree import Tree

PACKAGES = {
    "base-files": "what the system is called (os-release), and the texts of the common licences",
    f"python{PYTHON}-minimal": "the interpreter",
    f"libpython{PYTHON}-minimal": "the modules that it cannot do without",
    f"libpython{PYTHON}-stdlib": "asyncio, json, logging and the rest of the standard library",
    "libc6": "for everything",
    "gcc-12-base": "the licence of libgcc-s1",
    "libexpat1": "the interpreter is linked with it",
    "libffi8": "ctypes",
    "libgcc-s1": "cryptography's library is linked with it",
    "libssl3": "ssl and hashlib",
    "libstdc++6": "frozenlist is linked with it",
    "zlib1g": "the interpreter is linked with it",
}

# The files that are taken. Nothing here reads the rest (manuals, character set converters, engines, terminal data).
_KEPT = (
    "etc/debian_version",
    "etc/os-release",
    "usr/lib/os-release",
    f"usr/bin/python{PYTHON}",
    "usr/lib64/ld-linux-*.so.*",
    "usr/lib/ld-linux-*.so.*",
    "usr/share/common-licenses/*",
    "usr/share/doc/*/copyright",
)
# Of the C library: what profiles, debugs or vectorises, and name services that no cluster has.
_UNUSED_LIBRARIES = re.compile(
    r"lib(BrokenLocale|anl|c_malloc_debug|expatw|memusage|mvec|nsl|nss_compat|nss_hesiod|pcprofile|thread_db)[.-]?.*\.so"
)
_STDLIB = f"usr/lib/python{PYTHON}/"
# Of the standard library: tests and tools, sound, twins in Python of modules in C, East Asian character sets, and
# modules whose libraries would have to come with them.
_FOLDERS = "test idlelib lib2to3 tkinter ensurepip distutils pydoc_data curses sqlite3 dbm unittest venv xmlrpc"
_MODULES = "turtle this sitecustomize _pydecimal _pyio _aix_support _osx_support pdb doctest aifc sunau wave"
_COMPILED = "_bz2 _crypt _curses _curses_panel _dbm _lzma _sqlite3 _uuid _multibytecodec audioop nis readline"
_LEFT_OUT = re.compile(
    r"(" + _FOLDERS.replace(" ", "|") + r"|__pycache__)/|(" + _MODULES.replace(" ", "|") + r")\.py$"
    r"|lib-dynload/(" + _COMPILED.replace(" ", "|") + r"|_codecs_\w+|_test\w*|_ctypes_test|ossaudiodev|_?xx\w*)\."
)
# Debian's folders of old are links to those below usr.
_MERGED = ("bin", "lib", "lib64", "sbin")


@dataclass(frozen=True, slots=True, order=True)
class Package:
    """One Debian package as apt would download it now."""

    name: str
    version: str
    architecture: str
    sha256: str


def resolved(machine: Machine) -> list[Package]:
    """Return the packages for `machine` in the versions that this machine's apt offers now, fetched and kept.

    Raises ImageError: no apt, no such packages (another release of Debian), or nothing to be had from its mirrors.
    """
    own = machine == this_machine()
    lists = _Lists(
        image_cache() / "apt" / ("lists" if own else f"lists-{machine.debian}"), "" if own else machine.debian
    )
    known = [lists, _Lists(Path("/var/lib/apt/lists"))] if own else [lists]
    for one in sorted((one for one in known if one.folder.is_dir()), key=_Lists.age):
        try:
            return _fetch_all(_candidates(one), one)
        except ImageError:
            # Old lists name what a mirror has no more, and a fresh machine has none: both are cured by new lists.
            continue
    lists.apt("apt-get", "update")
    return _fetch_all(_candidates(lists), lists)


def fetched(package: Package) -> Path:
    """Return where the package's file is kept."""
    return image_cache() / "debs" / f"{package.sha256}.deb"


def debian_tree(packages: list[Package], machine: Machine) -> tuple[Tree, dict[str, bytes]]:
    """Return the layer's files, without bytecode, and each package's copyright file, which may be another's."""
    tree = Tree()
    copyrights: dict[str, bytes] = {}
    for package in packages:
        deb = fetched(package)
        with tarfile.open(fileobj=io.BytesIO(run(["dpkg-deb", "--fsys-tarfile", deb]))) as archive:
            for member in archive:
                _take(tree, archive, member, machine)
        # Where scanners of images look for packages that no dpkg installed.
        tree.file(f"var/lib/dpkg/status.d/{package.name}", run(["dpkg-deb", "--field", deb]))
    for package in packages:
        copyrights[package.name] = _copyright(tree, package.name)
    _furnish(tree)
    return tree, copyrights


def _furnish(tree: Tree) -> None:
    for name in _MERGED:
        tree.folder(f"usr/{name}")
        tree.link(name, f"usr/{name}")
    tree.folder("tmp", 0o1777)
    tree.file("etc/passwd", "root:x:0:0:root:/:/usr/sbin/nologin\nmuster:x:65532:65532:muster:/:/usr/sbin/nologin\n")
    tree.file("etc/group", "root:x:0:\nmuster:x:65532:\n")
    tree.file("etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files dns\n")


def _take(tree: Tree, archive: tarfile.TarFile, member: tarfile.TarInfo, machine: Machine) -> None:
    path = str(PurePosixPath(member.name))
    if path.split("/", 1)[0] in _MERGED:
        path = f"usr/{path}"
    # Some packages have their copyright file in the folder of another.
    shared = member.issym() and str(PurePosixPath(path).parent) == "usr/share/doc"
    if not (shared or _is_kept(path, machine)):
        return
    if member.issym():
        tree.link(path, member.linkname)
    elif member.isreg():
        content = archive.extractfile(member)
        # Modules that are scripts as well are no programs here.
        program = bool(member.mode & 0o100) and not path.endswith(".py")
        tree.file(path, content.read() if content else b"", executable=program)
    elif not member.isdir():
        raise ImageError(f"{path} is neither file nor link: teach it to hack/image/debian.py")


def _is_kept(path: str, machine: Machine) -> bool:
    if path.startswith(_STDLIB):
        return not _LEFT_OUT.match(path, len(_STDLIB))
    pure = PurePosixPath(path)
    if str(pure.parent) == machine.libraries:
        return ".so" in pure.name and not _UNUSED_LIBRARIES.match(pure.name)
    return any(len(pure.parts) == kept.count("/") + 1 and pure.match(kept) for kept in _KEPT)


def _copyright(tree: Tree, name: str) -> bytes:
    """The copyright file of a package, which may be another's. Raises ImageError when it is not in the image."""
    folder = f"usr/share/doc/{name}"
    if folder in tree.entries:
        folder = f"usr/share/doc/{tree.entries[folder].target}"
    entry = tree.entries.get(f"{folder}/copyright")
    if entry is None or entry.data is None:
        raise ImageError(f"{name} comes without its copyright file: name the package that has it in PACKAGES")
    return entry.data


@dataclass(frozen=True, slots=True)
class _Lists:
    """A folder with apt's lists of packages; `architecture` is empty for the machine's own."""

    folder: Path
    architecture: str = ""

    def apt(self, program: str, *words: str, cwd: Path | None = None) -> bytes:
        """Return the output of apt when nothing counts as installed, so that every package is fetched."""
        home = image_cache() / "apt"
        command = apt(program, home, lists=self.folder, installed=False, architecture=self.architecture)
        return run([*command, *words], cwd=cwd)

    def age(self) -> float:
        """Sorts the newest first."""
        return -self.folder.stat().st_mtime


def _candidates(lists: _Lists) -> list[Package]:
    shown = lists.apt("apt-cache", "show", "--no-all-versions", *PACKAGES).decode()
    found: dict[str, Package] = {}
    for paragraph in shown.strip().split("\n\n"):
        fields = dict(line.split(": ", 1) for line in paragraph.splitlines() if re.match(r"[A-Za-z0-9-]+: ", line))
        try:
            one = Package(fields["Package"], fields["Version"], fields["Architecture"], fields["SHA256"])
        except KeyError as error:
            raise ImageError(f"apt-cache shows no {error.args[0]} of {fields.get('Package')}") from error
        found.setdefault(one.name, one)
    missing = sorted(PACKAGES.keys() - found.keys())
    if missing:
        raise ImageError(f"apt here has no {', '.join(missing)}: the image is made of Debian 12's packages")
    return sorted(found.values())


def _fetch_all(packages: list[Package], lists: _Lists) -> list[Package]:
    missing = [package for package in packages if not fetched(package).exists()]
    if missing:
        home = image_cache() / "debs"
        home.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=home) as folder:
            wanted = [f"{package.name}={package.version}" for package in missing]
            lists.apt("apt-get", "download", *wanted, cwd=Path(folder))
            for deb in Path(folder).glob("*.deb"):
                deb.rename(home / f"{hashlib.sha256(deb.read_bytes()).hexdigest()}.deb")
    strangers = [package.name for package in missing if not fetched(package).exists()]
    if strangers:
        raise ImageError(f"what apt downloaded for {', '.join(strangers)} has not the SHA-256 that its lists say")
    return packages
