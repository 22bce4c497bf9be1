"""JSON schemas by which kubeconform checks manifests: of each minor version of Kubernetes, and of two projects' CRDs.

They are made from what the released Go modules carry (`api/openapi-spec/swagger.json`, CRDs), such that a field that a
version does not have is an error. The modules, 120 MB, are downloaded into a folder that is removed again; the
schemas are kept below a name that is a digest of their sources.
"""

import hashlib
import json
import re
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from hack.testbed.errors import TestbedError
from hack.testbed.paths import cache_root, locked
from hack.testbed.toolchain import find_go

JSON = dict[str, Any]

_KUBERNETES = "k8s.io/kubernetes"
# The sum that `go mod download` prints for each, so that nothing else is ever read.
_MODULES = {
    (_KUBERNETES, "v1.30.14"): "h1:MrlKXh9uhLIJpyxOeXhcndzRVSvwiV9iJ8NgH8nqPsg=",
    (_KUBERNETES, "v1.31.14"): "h1:UtjLfqvXLuSVDdJ4+NpQCIfFkKkLnAAVmxAEMsnkhjk=",
    (_KUBERNETES, "v1.32.13"): "h1:5TGYdZ6YZqdp6h/Rp1vX/4TIoybMPdgv97LCZCtPuNQ=",
    (_KUBERNETES, "v1.33.13"): "h1:bmH31xUdSzeA5vk0wZAK9MZp11mdLuzUSeKk0qN3hPQ=",
    (_KUBERNETES, "v1.34.4"): "h1:Yy6R4QB8C9kJPp25GFqEvX5XQwY5qzKeqD0Xx6oAcmk=",
    (_KUBERNETES, "v1.35.4"): "h1:o/8dBC/pHVpYoGV4OAIytAlNPZbdYVTXJHoYvXC4qzM=",
    (_KUBERNETES, "v1.36.3"): "h1:qDQdoMiluAE2Eab6Fa52YV+WjiGz9mZFFoagEA6cI+o=",
    ("github.com/cert-manager/cert-manager", "v1.21.2"): "h1:UWgoYM+KLNtRlqmoWOKjKBOBUPVHeepQ6/ac3ERJW68=",
    (
        "github.com/prometheus-operator/prometheus-operator",
        "v0.85.0",
    ): "h1:M5xLCLEoaW2IJfnuCwFzzpL+jSVQu3KGT84Pye+fW8s=",
}
# Those of kinds that the chart can render.
_CRDS = (
    "deploy/crds/cert-manager.io_certificates.yaml",
    "deploy/crds/cert-manager.io_issuers.yaml",
    "example/prometheus-operator-crd/monitoring.coreos.com_podmonitors.yaml",
    "example/prometheus-operator-crd/monitoring.coreos.com_prometheusrules.yaml",
    "example/prometheus-operator-crd/monitoring.coreos.com_servicemonitors.yaml",
)

VERSIONS = tuple(version.removeprefix("v") for module, version in _MODULES if module == _KUBERNETES)
"""The versions of Kubernetes whose schemas there are, oldest first: the newest release to be had of each minor."""

# Types that are written in another form than their schema has.
_SPECIAL: dict[str, JSON] = {
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": {"type": ["string", "integer"]},
    "io.k8s.apimachinery.pkg.api.resource.Quantity": {"type": ["string", "number"]},
    "io.k8s.apimachinery.pkg.runtime.RawExtension": {},
}


def schemas(progress: Callable[[str], None]) -> Path:
    """Return the folder of all schemas, `vVERSION/KIND-GROUP-VERSION.json` and `crds/…`, made when they are not there.

    Raises TestbedError when a module cannot be downloaded, or is not the one that it was.
    """
    folder = cache_root() / "schemas" / hashlib.sha256(Path(__file__).read_bytes()).hexdigest()[:16]
    if folder.exists():
        return folder
    with locked(cache_root() / "schemas.lock"):
        if not folder.exists():
            progress(f"making schemas of Kubernetes {VERSIONS[0]} to {VERSIONS[-1]}")
            folder.parent.mkdir(exist_ok=True)
            with tempfile.TemporaryDirectory(dir=folder.parent) as work:
                made = Path(work) / "made"
                for (module, version), source in _download(work).items():
                    if module == _KUBERNETES:
                        _write(made / version, _of_kubernetes(source))
                    else:
                        _write(made / "crds", _of_crds(source))
                made.rename(folder)
    return folder


def strict(schema: JSON) -> JSON:
    """Return a schema of OpenAPI as JSON schema in which no property passes that is not named.

    An object without properties of its own, such as `metadata` in CRDs, may have any.
    """
    if schema.get("x-kubernetes-int-or-string"):
        return {"type": ["string", "integer"]}
    kept = {key: value for key, value in schema.items() if key in {"type", "required", "enum", "pattern"}}
    if "$ref" in schema:
        return {"$ref": schema["$ref"]}
    if "properties" in schema:
        kept["properties"] = {name: strict(part) for name, part in schema["properties"].items()}
    if isinstance(schema.get("additionalProperties"), dict):
        kept["additionalProperties"] = strict(schema["additionalProperties"])
    elif "properties" in schema and not schema.get("x-kubernetes-preserve-unknown-fields"):
        kept["additionalProperties"] = False
    if "items" in schema:
        kept["items"] = strict(schema["items"])
    return kept


def _download(work: str) -> dict[tuple[str, str], Path]:
    """Return where the modules are, in a cache of their own that goes with `work`. All at once takes half the time."""
    go = find_go()
    go.ensure(print)
    # Read only, as Go leaves its cache, it could not be removed.
    environment = go.environment() | {"GOMODCACHE": f"{work}/modules", "GOFLAGS": "-modcacherw"}
    argv = [str(go.command), "mod", "download", "-json", *(f"{module}@{version}" for module, version in _MODULES)]
    done = subprocess.run(argv, cwd=work, env=environment, capture_output=True, text=True, check=False)
    found = {}
    for answer in _values(done.stdout):
        known = (answer["Path"], answer["Version"])
        if answer.get("Sum") != _MODULES[known]:
            reason = answer.get("Error") or f"its sum is {answer['Sum']}, not {_MODULES[known]}"
            raise TestbedError(f"no schemas of {known[0]} {known[1]}: {reason}")
        found[known] = Path(answer["Dir"])
    if found.keys() != _MODULES.keys():
        raise TestbedError(f"no schemas of Kubernetes: {done.stderr.strip()}")
    return found


def _values(text: str) -> Iterator[JSON]:
    """The JSON values that follow each other in a text."""
    decoder, at = json.JSONDecoder(), 0
    while text[at:].strip():
        value, length = decoder.raw_decode(text[at:].lstrip())
        at = len(text) - len(text[at:].lstrip()) + length
        yield value


def _of_kubernetes(source: Path) -> Iterator[tuple[str, JSON]]:
    """A schema of each kind, with the definitions that it needs: kubeconform looks through all that is in a file."""
    swagger = json.loads((source / "api/openapi-spec/swagger.json").read_text())
    definitions = {name: _SPECIAL.get(name, strict(one)) for name, one in swagger["definitions"].items()}
    for name, one in swagger["definitions"].items():
        for known in one.get("x-kubernetes-group-version-kind", ()):
            needed = {below: definitions[below] for below in _reachable(name, definitions)}
            schema = {"$ref": f"#/definitions/{name}", "definitions": needed}
            yield _file(known["group"], known["version"], known["kind"]), schema


def _reachable(name: str, definitions: Mapping[str, JSON]) -> set[str]:
    found: set[str] = set()
    ahead = [name]
    while ahead:
        if (name := ahead.pop()) not in found:
            found.add(name)
            ahead += re.findall(r'"#/definitions/([^"]+)"', json.dumps(definitions[name]))
    return found


def _of_crds(source: Path) -> Iterator[tuple[str, JSON]]:
    for path in (source / name for name in _CRDS):
        if not path.exists():  # the other project's
            continue
        crd: JSON = yaml.safe_load(path.read_text())["spec"]
        for version in crd["versions"]:
            schema = strict(version["schema"]["openAPIV3Schema"])
            yield _file(crd["group"], version["name"], crd["names"]["kind"]), schema


def _file(group: str, version: str, kind: str) -> str:
    """The file name that kubeconform asks for: of the group only its first word."""
    return "-".join(part for part in (kind, group.partition(".")[0], version) if part).lower() + ".json"


def _write(folder: Path, files: Iterator[tuple[str, JSON]]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files:
        (folder / name).write_text(json.dumps(content))
