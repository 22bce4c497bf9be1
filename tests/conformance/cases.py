"""What is compared: every sample of the operators' modules of a kind that muster knows, and variants of some."""

import copy
import random
from collections.abc import Iterator, Mapping

import yaml

from hack.testbed.modules import module_dir
from muster.workloads import kind_of
from tests.conformance.case import TRAINER, Case, Manifest, Operator
from tests.conformance.prediction import predict
from tests.conformance.trainer_cases import trainer_cases
from tests.conformance.variants import ALONE, VARIANTS

# Made by a schedule only, and only with a feature gate: there is no group to compare until a minute begins.
_NOT_RUN = frozenset({"RayCronJob"})
_GENERATED = 40


def cases(operator: Operator) -> list[Case]:
    """All cases of an operator: samples, variants, and several variants at once; always the same, in one order."""
    if operator is TRAINER:
        return trainer_cases()
    samples = list(_samples(operator))
    by_source = {sample.source: sample for sample in samples}
    made = []
    for source, edits in VARIANTS[operator.part].items():
        for variant, edit in edits.items():
            manifest = copy.deepcopy(by_source[source].manifest)
            edit(manifest)
            made.append(Case(operator, source, variant, manifest))
    return samples + made + list(_together(operator, by_source))


def one_of_each(operator: Operator) -> list[Case]:
    """The samples as they are, and of the variants the first to which a rule applies that none before it has shown."""
    chosen: list[Case] = []
    shown: set[str] = set()
    # Samples come first.
    for case in cases(operator):
        rules = set(predict(case).rules)
        if not case.variant or rules - shown:
            chosen.append(case)
            shown |= rules
    return chosen


def _together(operator: Operator, by_source: Mapping[str, Case]) -> Iterator[Case]:
    """Three variants of a sample at once, chosen by chance that is the same every time."""
    chance = random.Random(operator.part)  # noqa: S311 (no secret)
    source = next(iter(VARIANTS[operator.part]))
    edits = {name: edit for name, edit in VARIANTS[operator.part][source].items() if name not in ALONE}
    for _ in range(_GENERATED):
        manifest = copy.deepcopy(by_source[source].manifest)
        names = chance.sample(sorted(edits), 3)
        for name in names:
            edits[name](manifest)
        yield Case(operator, source, " + ".join(names), manifest, generated=True)


def _samples(operator: Operator) -> Iterator[Case]:
    root = module_dir(operator.module) / operator.folder
    for path in sorted(root.rglob("*.y*ml")):
        documents = [one for one in yaml.load_all(path.read_bytes(), yaml.CSafeLoader) if isinstance(one, dict)]
        ours = [one for one in documents if _is_workload(one, operator)]
        for manifest in ours:
            manifest["metadata"].pop("namespace", None)
            source = str(path.relative_to(root))
            yield Case(operator, f"{source} {manifest['metadata'].get('name')}" if ours[1:] else source, "", manifest)


def _is_workload(manifest: Manifest, operator: Operator) -> bool:
    api_version, kind = str(manifest.get("apiVersion", "")), str(manifest.get("kind", ""))
    return api_version in operator.groups and kind not in _NOT_RUN and kind_of(api_version, kind) is not None
