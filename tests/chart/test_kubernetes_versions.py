"""What is rendered is taken by every version of Kubernetes that the chart is for, in the eyes of the real kubeconform.

It sees every rendering of every test of this folder, by their list; the other tests show that it sees mistakes.
"""

import copy
import json
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
import yaml

from hack.testbed import PATIENCE
from hack.testbed.build import binaries
from hack.testbed.parts import PARTS
from hack.testbed.schemas import VERSIONS, schemas
from tests.support.cases import cases
from tests.support.chart.kept import digest, kept
from tests.support.chart.rendered import JSON, Program, Render
from tests.support.chart.renderings import listed, rendered


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


@pytest.fixture(scope="module")
def documents(render: Render) -> list[JSON]:
    """Something of everything that the chart can render."""
    parts = ("networkPolicy", "podMonitor", "prometheusRule", "grafanaDashboard", "certManager")
    return render(*(f"{part}.enabled=true" for part in parts)).documents


def test_every_version_from_the_charts_first_to_the_testbeds_is_asked(chart: Path) -> None:
    first = yaml.safe_load((chart / "Chart.yaml").read_text())["kubeVersion"]
    minors = [int(version.split(".")[1]) for version in VERSIONS]
    assert first == f">=1.{minors[0]}.0-0"
    assert minors == list(range(30, 37))


def test_every_rendering_of_every_test_is_taken(helm: Program, tmp_path: Path) -> None:
    """Each document once, under the name of the first rendering that has it."""
    renderings: dict[str, list[JSON]] = {}
    seen: set[str] = set()
    for rendering in listed():
        for document in rendered(helm, rendering).documents:
            text = json.dumps(document)
            if text not in seen:
                seen.add(text)
                renderings.setdefault(str(rendering), []).append(document)
    assert len(seen) > 2 * len(renderings)
    assert faults(renderings, tmp_path) == []


def test_a_rendering_that_is_not_on_the_list_fails_its_test(render: Render, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MUSTER_REWRITE", raising=False)
    with pytest.raises(AssertionError, match=r"muster-system/muster with webhook\.replicas=77, which kubeconform"):
        render("webhook.replicas=77")


@cases(
    "kind, path, said",
    ("a Deployment", "Deployment", ("spec", "replica"), "additional properties 'replica'"),
    ("a webhook", "ValidatingWebhookConfiguration", ("webhooks", 0, "rule"), "additional properties 'rule'"),
    ("cert-manager's", "Certificate", ("spec", "dnsName"), "additional properties 'dnsName'"),
    ("Prometheus operator's", "PodMonitor", ("spec", "selector", "x"), "additional properties 'x'"),
    ("a version that is not there", "Service", ("apiVersion",), "could not find schema for Service"),
)
def test_a_mistake_is_seen(
    documents: list[JSON], tmp_path: Path, kind: str, path: tuple[str | int, ...], said: str
) -> None:
    """In each version, once."""
    wrong = copy.deepcopy(next(one for one in documents if one["kind"] == kind))
    *way, last = path
    part = wrong
    for step in way:
        part = part[step]  # type: ignore[index]
    part[last] = "v9"  # type: ignore[index]
    found = faults({"mistyped": [wrong]}, tmp_path)
    assert len(found) == len(VERSIONS)
    assert all(said in line for line in found)


def test_a_field_that_came_later_is_refused_by_the_versions_before(documents: list[JSON], tmp_path: Path) -> None:
    """So the schemas are each version's own."""
    newer = copy.deepcopy(next(one for one in documents if one["kind"] == "Deployment"))
    newer["spec"]["template"]["spec"]["containers"][0]["restartPolicyRules"] = []
    refused = [line.split()[1] for line in faults({"newer": [newer]}, tmp_path)]
    assert refused == [f"{version}," for version in VERSIONS if int(version.split(".")[1]) < 34]
