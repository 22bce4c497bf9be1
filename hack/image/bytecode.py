"""Compiled modules for the image, made by the image's own interpreter, so that it starts quickly on a read-only root.

They are bound to no time and never checked against their sources (PEP 552, unchecked): the same source gives the same
bytes. All are compiled one after the other by one process, for what `marshal` writes depends on what else is alive.
"""

import json
import tempfile
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from hack.image.errors import ImageError, run
from hack.image.machine import PYTHON, Machine
from hack.image.tree import Tree

# Runs under the image's interpreter: sources of a list of [source, name in tracebacks, compiled, optimisation].
_COMPILER = """
import json, py_compile, sys
unchecked = py_compile.PycInvalidationMode.UNCHECKED_HASH
for source, name, compiled, level in json.load(open(sys.argv[1])):
    py_compile.compile(source, compiled, name, doraise=True, optimize=level, invalidation_mode=unchecked)
"""


@dataclass(frozen=True, slots=True)
class Interpreter:
    """The files of Debian's layer in a folder, for `machine`, which is this one; it compiles for all of them."""

    home: Path
    machine: Machine


def add_bytecode(tree: Tree, interpreter: Interpreter, *, bare: str = "") -> None:
    """Add to each module its compiled form; those below `bare` lose their source and their docstrings for it.

    Raises ImageError where a module does not compile.
    """
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        jobs: list[tuple[str, str, str, int]] = []
        targets: dict[str, tuple[str, Path]] = {}
        for number, (path, data) in enumerate(item for item in tree.files() if item[0].endswith(".py")):
            source, compiled = work / f"{number}.py", work / f"{number}.pyc"
            source.write_bytes(data)
            alone = bool(bare) and path.startswith(bare)
            jobs.append((str(source), f"/{path}", str(compiled), 2 if alone else 0))
            targets[path] = (_alone(path) if alone else _cached(path), compiled)
        script, listed = work / "compile_all.py", work / "jobs.json"
        script.write_text(_COMPILER)
        listed.write_text(json.dumps(jobs))
        run([*_command(interpreter), script, listed], env=_environment(interpreter))
        for path, (target, compiled) in targets.items():
            tree.file(target, compiled.read_bytes())
            if target == _alone(path):
                del tree.entries[path]


def _command(interpreter: Interpreter) -> list[str | Path]:
    """The command that runs the image's interpreter without entering the image: with its own loader and libraries."""
    home = interpreter.home
    libraries = home / interpreter.machine.libraries
    loaders = sorted(libraries.glob("ld-linux-*.so.*"))
    if not loaders:
        raise ImageError(f"{libraries} has no loader")
    return [loaders[0], "--library-path", libraries, home / "usr" / "bin" / f"python{PYTHON}", "-S", "-s", "-B"]


def _environment(interpreter: Interpreter) -> dict[str, str]:
    return {"PYTHONHOME": str(interpreter.home / "usr"), "PYTHONHASHSEED": "0"}


def _cached(path: str) -> str:
    pure = PurePosixPath(path)
    return str(pure.parent / "__pycache__" / f"{pure.stem}.cpython-{PYTHON.replace('.', '')}.pyc")


def _alone(path: str) -> str:
    return f"{path}c"
