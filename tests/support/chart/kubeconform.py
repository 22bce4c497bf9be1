"""The real kubeconform, strict, with the schemas of every minor version of Kubernetes that the chart is for."""

import json
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from hack.testbed import PATIENCE
from hack.testbed.build import binaries
from hack.testbed.parts import PARTS
from hack.testbed.schemas import VERSIONS, schemas
from tests.support.chart.kept import digest, kept
from tests.support.chart.rendered import JSON


def faults(renderings: Mapping[str, Sequence[JSON]], folder: Path, versions: Sequence[str] = VERSIONS) -> list[str]:
    """What some version of Kubernetes would not take of these renderings, a line each; their names say whose it is.

    A kind of which there is no schema is a fault, too. `folder` is for the manifests, and empty. A document in which
    the same kubeconform has found nothing by the same schemas, here or in an earlier run, is not asked about again.
    """
    program = str(binaries([PARTS["kubeconform"]], print)["kubeconform"])
    places = schemas(print)
    parts = (program, str(places), *versions)
    faultless = kept("faultless", Path(__file__).read_bytes(), *(part.encode() for part in parts))
    known = dict(enumerate(renderings))
    new: list[Path] = []
    for number, name in known.items():
        texts = {faultless / digest(text.encode()): text for text in map(json.dumps, renderings[name])}
        unjudged = {place: text for place, text in texts.items() if not place.exists()}
        if unjudged:
            (folder / f"{number}.yaml").write_text("\n---\n".join(unjudged.values()))
            new += unjudged
    if not new:
        return []
    kind = "{{ .ResourceKind }}{{ .KindSuffix }}.json"
    where = (f"{places}/{{{{ .NormalizedKubernetesVersion }}}}/{kind}", f"{places}/crds/{kind}")
    found = []
    for version in versions:
        argv = [program, "-strict", "-output=json", f"-kubernetes-version={version}"]
        argv += [f"-schema-location={location}" for location in where]
        done = subprocess.run([*argv, str(folder)], capture_output=True, text=True, check=False, timeout=PATIENCE)
        for one in json.loads(done.stdout)["resources"]:
            name = known[int(one["filename"].rpartition("/")[2].partition(".")[0])]
            said = one["msg"].rpartition(".json#'")[2].strip(" -") or one["msg"]
            found.append(f"Kubernetes {version}, {name}: {one['kind']}/{one['name']}: {said}")
    if not found:
        for place in new:
            place.touch()
    return found
