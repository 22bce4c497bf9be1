"""The predicate of SLSA's provenance (version 1): the commit, the parts and the builder of an artefact.

cosign makes the in-toto statement of it, whose subject is the digest in the registry, and signs that.
"""

import json
from collections.abc import Iterable
from typing import Any

from hack.image.build import Built, Source
from hack.image.sbom import rfc3339

BUILD_TYPE = "tag:muster.dev,2026:make-publish"
"""A name for the meaning of the parameters (docs/releasing.md); RFC 4151: it is not an address."""
BUILDER = "tag:muster.dev,2026:by-hand"
"""The builder where no other is named: a person on a machine of their own."""


def predicate(
    source: Source, version: str, images: Iterable[Built], *, builder: str, started: float, finished: float
) -> bytes:
    """Return the predicate; times in seconds since 1970. Every Debian package and wheel is a dependency, by hash."""
    made = list(images)
    parts: dict[str, dict[str, Any]] = {}
    for one in made:
        for component in json.loads(one.sbom)["components"]:
            if component["name"] == "muster":
                continue
            digest = component["hashes"][0]["content"]
            parts[f"{component['purl']} {digest}"] = {"uri": component["purl"], "digest": {"sha256": digest}}
    content = {
        "buildDefinition": {
            "buildType": BUILD_TYPE,
            "externalParameters": {
                "version": version,
                "commit": source.commit,
                "architectures": [one.machine.debian for one in made],
            },
            "internalParameters": {"sourceDateEpoch": source.epoch},
            "resolvedDependencies": [
                {"name": "muster", "digest": {"gitCommit": source.commit}},
                *(parts[name] for name in sorted(parts)),
            ],
        },
        "runDetails": {
            "builder": {"id": builder},
            "metadata": {"startedOn": rfc3339(int(started)), "finishedOn": rfc3339(int(finished))},
        },
    }
    return json.dumps(content, indent=1).encode() + b"\n"
