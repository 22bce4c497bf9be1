"""Every rendering of the chart that a test looks at: `renderings.json`, which kubeconform judges as a whole.

Whoever renders with other values adds them: `MUSTER_REWRITE=1 pytest -n0 tests/chart`.
"""

import json
import os
from functools import cache
from pathlib import Path
from typing import NamedTuple

import yaml

from hack.testbed.build import binaries
from hack.testbed.parts import PARTS
from hack.testbed.paths import write_atomically
from tests.support.chart.kept import digest, kept
from tests.support.chart.rendered import Program, Rendered

CHART = Path(__file__).parents[3] / "charts" / "muster"
_LIST = Path(__file__).with_suffix(".json")


class Rendering(NamedTuple):
    """What `helm template` is asked for; the values are those of `--set`."""

    release: str
    namespace: str
    values: tuple[str, ...]

    def __str__(self) -> str:
        """Name it in a complaint."""
        return f"{self.namespace}/{self.release} with {' '.join(self.values) or 'the default values'}"


def listed() -> list[Rendering]:
    """Return all of the list."""
    return [
        Rendering(release, namespace, tuple(values)) for release, namespace, values in json.loads(_LIST.read_text())
    ]


def add(rendering: Rendering) -> None:
    """Make sure that the list has this; without MUSTER_REWRITE=1 a rendering that it lacks fails the test."""
    known = listed()
    if rendering in known:
        return
    assert os.environ.get("MUSTER_REWRITE"), (
        f"{_LIST.name} lacks {rendering}, which kubeconform would not see: MUSTER_REWRITE=1 pytest -n0 tests/chart"
    )
    lines = ",\n".join(json.dumps(one) for one in sorted([*known, rendering]))
    _LIST.write_text(f"[\n{lines}\n]\n")


def rendered(helm: Program, rendering: Rendering) -> Rendered:
    """Render the chart, or take what the same helm has made of the same chart before, here or in an earlier run."""
    file = _kept() / digest(repr(tuple(rendering)).encode())
    if not file.exists():
        settings = [part for value in ("image.repository=own/muster", *rendering.values) for part in ("--set", value)]
        done = helm("template", rendering.release, str(CHART), "--namespace", rendering.namespace, *settings)
        assert not done.returncode, done.stderr
        documents = [document for document in yaml.load_all(done.stdout, yaml.CSafeLoader) if document]
        write_atomically(file, json.dumps(documents))
    return Rendered(json.loads(file.read_bytes()))


@cache
def _kept() -> Path:
    """A folder for what this helm makes of this chart, as this module asks it."""
    program = binaries([PARTS["helm"]], print)["helm"]
    files = sorted(path for path in CHART.rglob("*") if path.is_file())
    contents = [part for path in files for part in (str(path.relative_to(CHART)).encode(), path.read_bytes())]
    return kept("renderings", str(program).encode(), Path(__file__).read_bytes(), *contents)
