"""Verifies a release in a registry: each part is signed, and so is each statement about it."""

import base64
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from hack.image.errors import ImageError
from hack.release.programs import Programs

SLSA, CYCLONEDX = "slsaprovenance1", "cyclonedx"
"""The types of the two statements, in cosign's words."""


@dataclass(frozen=True, slots=True)
class Published:
    """A release in a registry. `digests` are those of `image` (the index), of each architecture, and of `chart`."""

    registry: str
    version: str
    commit: str
    digests: Mapping[str, str]

    def name(self, what: str) -> str:
        """Return the name of a part by its digest, which cannot be moved."""
        repository = "charts/muster" if what == "chart" else "muster"
        return f"{self.registry}/{repository}@{self.digests[what]}"

    def text(self) -> str:
        """Return it as JSON."""
        return json.dumps(asdict(self), indent=1) + "\n"


def found(registry: str, version: str, tools: Programs) -> Published:
    """Return what a registry has of a version. Raises ImageError when a part is not there."""
    name, chart = f"{registry}/muster:{version}", f"{registry}/charts/muster:{version}"
    manifests = json.loads(tools.crane("manifest", name)).get("manifests")
    if not manifests:
        raise ImageError(f"{name} is no index of images for several architectures, as `make publish` pushes it")
    digests = {"image": tools.crane("digest", name).strip()}
    digests |= {one["platform"]["architecture"]: one["digest"] for one in manifests}
    digests["chart"] = tools.crane("digest", chart).strip()
    return Published(registry, version, "", digests)


def verify(published: Published, key: str, tools: Programs, progress: Callable[[str], None]) -> None:
    """Raise ImageError unless each part is signed by `key`, with provenance, and each image with what is in it.

    A signature names the publisher; the provenance must be of the version and the commit, too.
    """
    how = (f"--key={key}", "--insecure-ignore-tlog=true")
    for what in published.digests:
        name = published.name(what)
        progress(f"verifying {name}")
        tools.cosign("verify", *how, name)
        provenance = _predicate(tools.cosign("verify-attestation", *how, f"--type={SLSA}", name))
        made = provenance["buildDefinition"]["externalParameters"]
        if made["version"] != published.version or published.commit not in {"", made["commit"]}:
            raise ImageError(f"{name} has the provenance of muster {made['version']}, commit {made['commit']}")
        if what not in {"image", "chart"}:
            sbom = _predicate(tools.cosign("verify-attestation", *how, f"--type={CYCLONEDX}", name))
            if sbom["metadata"]["component"]["version"] != published.version:
                raise ImageError(f"{name} has the bill of materials of another version")


def _predicate(printed: str) -> dict[str, Any]:
    """Read the last statement that cosign has verified: one signed again stands after the former."""
    statement = json.loads(base64.b64decode(json.loads(printed.strip().splitlines()[-1])["payload"]))
    predicate: dict[str, Any] = statement["predicate"]
    return predicate
