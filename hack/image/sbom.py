"""What the image is made of, as a CycloneDX 1.6 document: every Debian package, every wheel, and muster."""

import json
import uuid
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

from hack.image.debian import Package
from hack.image.wheels import Wheel


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
