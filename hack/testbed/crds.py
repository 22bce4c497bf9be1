"""CRDs as the testbed installs them: without their documentation, two thirds of most of them.

The apiserver parses it, merges it into its OpenAPI documents and keeps it, at each start, for nobody.
"""

import re
from collections.abc import Iterable
from pathlib import Path

from hack.testbed.errors import TestbedError
from hack.testbed.modules import module_dir
from hack.testbed.part import Part

_NAME = re.compile(rb"^  name: (\S+)$", re.MULTILINE)
_DESCRIPTION = re.compile(rb" *description: \S")


def crd_files(parts: Iterable[Part]) -> list[Path]:
    """Return the files of these parts' CRDs. Raises TestbedError where a pattern of a part finds none."""
    files = []
    for part in parts:
        for pattern in part.crds:
            matching = sorted(module_dir(part.module).glob(pattern))
            if not matching:
                raise TestbedError(f"{part.module} has no {pattern}: correct the row of {part.name} in parts.py")
            files += matching
    return files


def read_crd(path: Path) -> tuple[str, bytes]:
    """Return the name and the content of a file with one CRD. Raises TestbedError where it names nothing."""
    content = path.read_bytes()
    # PyYAML is slow; the name is at the start of each, two spaces in.
    found = _NAME.search(content)
    if found is None:
        raise TestbedError(f"{path} is no CRD: it names nothing")
    return found[1].decode(), without_descriptions(content)


def without_descriptions(content: bytes) -> bytes:
    """Return a CRD without its descriptions.

    A property of the schema that is called so has nothing on its own line, and stays.
    """
    kept, skipped = [], None
    for line in content.splitlines(keepends=True):
        indent = len(line) - len(line.lstrip())
        if skipped is not None and (indent > skipped or not line.strip()):
            continue
        skipped = indent if _DESCRIPTION.match(line) else None
        if skipped is None:
            kept.append(line)
    return b"".join(kept)
