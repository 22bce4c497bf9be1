"""The image's bill of materials, a CycloneDX 1.6 document: every Debian package, every wheel, and muster.

The licence of a Debian package is the one that its copyright file names or, where that is free text, the one that was
read there. That counts only while the words by which it was recognised still stand there. It is the licence of what the
image takes of a package, as a whole; parts under terms of their own are named in the same file, which is in the image.
"""

import json
import re
import uuid
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

from hack.image.debian import Package
from hack.image.wheels import Wheel

_FIELD = re.compile(r"^License:[ \t]*(\S[^\n]*)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Read:
    """An SPDX expression, and the words of the copyright file that say so, with any white space between them."""

    expression: str
    words: str


_PYTHON = Read("Python-2.0", "PYTHON SOFTWARE FOUNDATION LICENSE VERSION 2")
_GCC = Read("GPL-3.0-or-later WITH GCC-exception-3.1", "with version 3.1 of the GCC Runtime Library Exception")
READ = {
    "base-files": Read("GPL-2.0-or-later", "either version 2 of the License, or (at your option) any later version"),
    "python3.11-minimal": _PYTHON,
    "libpython3.11-minimal": _PYTHON,
    "libpython3.11-stdlib": _PYTHON,
    # Its utilities, under another licence, are not taken.
    "libc6": Read("LGPL-2.1-or-later", "either version 2.1 of the License, or (at your option) any later version"),
    "gcc-12-base": _GCC,
    "libgcc-s1": _GCC,
    "libstdc++6": _GCC,
}
"""The packages whose copyright file no machine can read."""


def licences(package: str, text: bytes) -> list[dict[str, Any]]:
    """Return CycloneDX's `licenses` of a package with this copyright file; none for a text that was not read.

    Names that Debian gives in a machine-readable file are not always SPDX's.
    """
    content = text.decode(errors="replace")
    if content.startswith("Format:"):
        return [{"license": {"name": name}} for name in sorted({name.strip() for name in _FIELD.findall(content)})]
    read = READ.get(package)
    if read is None or read.words not in " ".join(content.split()):
        return []
    return [{"expression": read.expression, "acknowledgement": "concluded"}]


def rfc3339(epoch: int) -> str:
    """Return a time as OCI and CycloneDX write it."""
    return datetime.fromtimestamp(epoch, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def debian_component(package: Package, licences: list[dict[str, Any]]) -> dict[str, Any]:
    """Return a Debian package, with its licences as CycloneDX writes them."""
    name, version = (quote(text, safe="") for text in (package.name, package.version))
    purl = f"pkg:deb/debian/{name}@{version}?arch={package.architecture}&distro=debian-12"
    one = _component(package.name, package.version, purl, package.sha256)
    if licences:
        one["licenses"] = licences
    return one


def python_component(wheel: Wheel) -> dict[str, Any]:
    """Return a wheel, with its SPDX expression or what it calls its licence."""
    name = wheel.name.lower().replace("_", "-")
    one = _component(wheel.name, wheel.version, f"pkg:pypi/{name}@{quote(wheel.version, safe='')}", wheel.sha256)
    if wheel.licence:
        spdx = " " not in wheel.licence or " OR " in wheel.licence or " AND " in wheel.licence
        one["licenses"] = [{"expression": wheel.licence} if spdx else {"license": {"name": wheel.licence}}]
    return one


def document(components: list[dict[str, Any]], version: str, commit: str, epoch: int) -> bytes:
    """Return the document; its serial number follows from what it lists."""
    image = {
        "type": "container",
        "bom-ref": "image",
        "name": "muster",
        "version": version,
        "properties": [{"name": "org.opencontainers.image.revision", "value": commit}],
    }
    serial = uuid.uuid5(uuid.NAMESPACE_OID, json.dumps([components, image], sort_keys=True))
    content = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{serial}",
        "version": 1,
        "metadata": {"timestamp": rfc3339(epoch), "component": image},
        "components": components,
        "dependencies": [{"ref": "image", "dependsOn": sorted(one["bom-ref"] for one in components)}],
    }
    return json.dumps(content, indent=1).encode() + b"\n"


def _component(name: str, version: str, purl: str, sha256: str) -> dict[str, Any]:
    return {
        "type": "library",
        "bom-ref": purl,
        "name": name,
        "version": version,
        "purl": purl,
        "hashes": [{"alg": "SHA-256", "content": sha256}],
    }
