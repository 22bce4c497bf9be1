"""CRDs as the testbed installs them: without their documentation, and as an apiserver stored them before.

The apiserver would parse the documentation, two thirds of most CRDs, merge it into its OpenAPI documents and keep it.
And an apiserver that is given CRDs one by one writes each several times, and works out what all of them mean each time:
that was half of the processor time of a start. So what etcd had of them is kept outside the checkout, by what they are
made of, and the next testbed has it in etcd before its apiserver starts.
"""

import base64
import json
import re
import urllib.request
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from hack.testbed.enclosure import inside
from hack.testbed.errors import TestbedError
from hack.testbed.modules import module_dir, required
from hack.testbed.part import Part
from hack.testbed.paths import cache_root, digest_of, write_atomically
from hack.testbed.site import Site
from hack.testbed.waiting import PATIENCE

_NAME = re.compile(rb"^  name: (\S+)$", re.MULTILINE)
_DESCRIPTION = re.compile(rb" *description: \S")


def crd_files(parts: Iterable[Part]) -> list[Path]:
    """Return the files of these parts' CRDs. Raises TestbedError where a pattern of a part finds none."""
    files = []
    for part in parts:
        for pattern in part.crds:
            module, _ = required(part.family, part.package)
            matching = sorted(module_dir(module).glob(pattern))
            if not matching:
                raise TestbedError(f"{module} has no {pattern}: correct the row of {part.name} in parts.py")
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


_KEYS = "/registry/apiextensions.k8s.io/customresourcedefinitions/"


class Stored:
    """CRDs as this program, an apiserver, stored them. `present` are the ones that etcd was given."""

    def __init__(self, site: Site, apiserver: Path) -> None:
        self._site = site
        self._apiserver = apiserver
        self.present: dict[Path, str] = {}

    def put(self, files: Iterable[Path]) -> None:
        """Give etcd the CRDs of these files, as far as they are kept. The apiserver must not run yet."""

        def put_all() -> None:
            for path in files:
                try:
                    name, value = _kept(path, self._apiserver).read_text().splitlines()
                except FileNotFoundError:
                    continue
                _etcd(self._site, "put", {"key": _key(name), "value": value})
                self.present[path] = name

        inside(self._site, put_all)

    def keep(self, files: Mapping[Path, str]) -> None:
        """Keep what etcd has of these files' CRDs, by their names. They must be served and unchanged."""

        def keep_all() -> None:
            for path, name in files.items():
                found = _etcd(self._site, "range", {"key": _key(name)}).get("kvs")
                if not found:
                    raise TestbedError(f"etcd has no {_KEYS}{name}, whose kind is served")
                kept = _kept(path, self._apiserver)
                kept.parent.mkdir(parents=True, exist_ok=True)
                write_atomically(kept, f"{name}\n{found[0]['value']}\n")

        inside(self._site, keep_all)


def _kept(path: Path, apiserver: Path) -> Path:
    """Return where the CRD of a file is kept as a program stored it: its name, and in base64 what etcd had of it."""
    program = apiserver.stat()
    stripped_by = Path(__file__).read_bytes()
    stored_by = f"{apiserver} {program.st_size} {program.st_mtime_ns}".encode()
    return cache_root() / "crds" / digest_of((path.read_bytes(), stripped_by, stored_by))[:32]


def _etcd(site: Site, verb: str, request: dict[str, str]) -> dict[str, Any]:
    """Call etcd's gateway, which takes keys and values in base64."""
    url = f"http://127.0.0.1:{site.port_of('etcd')}/v3/kv/{verb}"
    with urllib.request.urlopen(url, json.dumps(request).encode(), timeout=PATIENCE) as response:
        answer: dict[str, Any] = json.load(response)
    return answer


def _key(name: str) -> str:
    return base64.b64encode((_KEYS + name).encode()).decode()
