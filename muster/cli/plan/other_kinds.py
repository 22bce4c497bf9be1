"""Documents of kinds that muster does not run: workloads in their templates, a way to opt in, or a count."""

import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from typing import Any

from muster.cli.plan.manifests import Document, objects_in
from muster.model.names import GANG
from muster.validation.not_managed import KEYS_OF_GANGS, OPT_IN, keys, of_others

_AS_PLAIN_PODS = f"give its pods {OPT_IN}"
# Kinds whose pods start together in other systems, by API group and kind, each with what to do here.
_GANGS = {
    ("leaderworkerset.x-k8s.io", "LeaderWorkerSet"): (
        f"{_AS_PLAIN_PODS} in leaderTemplate and workerTemplate, with startupPolicy LeaderCreated"
    ),
    ("sparkoperator.k8s.io", "SparkApplication"): (
        f"{_AS_PLAIN_PODS} in spec.executor, without the driver, which creates them"
    ),
    ("sparkoperator.k8s.io", "ScheduledSparkApplication"): (
        f"{_AS_PLAIN_PODS} in spec.template.executor, without the driver, which creates them"
    ),
}
_WRAPPERS = {
    ("batch", "CronJob"),
    ("kubeflow.org", "Experiment"),
    ("workload.codeflare.dev", "AppWrapper"),
}
# Kinds of Kubernetes whose pods come from a template, and the fields of other kinds that hold one.
_MAKERS = {"Deployment", "ReplicaSet", "DaemonSet", "ReplicationController"}
_TEMPLATES = {"containers", "podTemplate", "template"}
# What Katib fills in for each trial.
_OF_KATIB = re.compile(r"\$\{trialParameters\.[^}\"]*\}")
_MOST_KINDS = 10


def with_templates(documents: Iterable[Document]) -> Iterator[Document]:
    """Yield the documents, but in place of a CronJob, an AppWrapper or a Katib Experiment what it creates."""
    for document in documents:
        inner = [*_templates_in(document)] if _kind(document) in _WRAPPERS else []
        if inner:
            yield from with_templates(inner)
        else:
            yield document


def _templates_in(document: Document) -> Iterator[Document]:
    spec = _mapping(document.manifest.get("spec"))
    found: list[tuple[str, object]]
    match document.kind:
        case "CronJob":
            template = _mapping(spec.get("jobTemplate"))
            found = [("spec.jobTemplate", {**template, "apiVersion": "batch/v1", "kind": "Job"})]
        case "Experiment":
            trial = json.dumps(_mapping(spec.get("trialTemplate")).get("trialSpec"))
            found = [("spec.trialTemplate.trialSpec", json.loads(_OF_KATIB.sub("1", trial)))]
        case _:
            parts = spec.get("components")
            found = [
                (f"spec.components[{number}].template", _mapping(one).get("template"))
                for number, one in enumerate(parts if isinstance(parts, list) else ())
            ]
    meta = _mapping(document.manifest.get("metadata"))
    for path, manifest in found:
        if not (
            isinstance(manifest, dict) and all(isinstance(manifest.get(key), str) for key in ("apiVersion", "kind"))
        ):
            continue
        own = _mapping(manifest.get("metadata"))
        name = str(meta.get("name") or "")
        made = f"{name}-" if name else str(meta.get("generateName") or "")
        inner = {**manifest, "metadata": {"namespace": meta.get("namespace"), "generateName": made, **own}}
        within = f"{path} of {document.kind} {name}".rstrip()
        asked = keys(
            "metadata", _mapping(meta.get("labels")), _mapping(meta.get("annotations")), f" of {document.kind} {name}"
        )
        outer = (*document.outer, *asked)
        yield replace(document, source=f"{document.source}, {path}", manifest=inner, within=within, outer=outer)


def why_not_run(document: Document, schedulers: Collection[str]) -> str:
    """The reason why muster does not run a gang of this kind, with what to do; "" if it looks like none.

    :param schedulers: those that muster is configured for.
    """
    if _kind(document) in _WRAPPERS:
        return f"this {document.kind} has no template of a workload"
    cure = _GANGS.get(_kind(document))
    # Common labels of a kustomization are on every object.
    if not (
        cure or document.kind in _MAKERS or any(_TEMPLATES & one.keys() for _, one in objects_in(document.manifest))
    ):
        return ""
    together = f"to start its pods together, {cure or _AS_PLAIN_PODS}"
    found, named = _asked(document)
    path, meaning, admits = of_others(found, named, schedulers)
    if path:
        return f"{path}: {meaning}; {together}{admits or ' (docs/gangs.md)'}"
    for path, key in found:
        if key in (*KEYS_OF_GANGS, GANG):
            kind = document.kind[:80]
            return f"{path}: it is not read on a {kind}, which muster does not run; {together} (docs/gangs.md)"
    return f"muster runs no {document.kind}; {together} (docs/gangs.md)" if cure else ""


def _asked(document: Document) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """The keys of an object, of what is around it and of its pod templates, and the schedulers of these, with paths."""
    found: list[tuple[str, str]] = []
    named: list[tuple[str, str]] = []
    for path, one in objects_in(document.manifest):
        spec, meta, within = _mapping(one.get("spec")), _mapping(one.get("metadata")), f"{path}." if path else ""
        if not path or "containers" in spec:
            found += keys(f"{within}metadata", _mapping(meta.get("labels")), _mapping(meta.get("annotations")))
            named.append((f"{within}spec.schedulerName", str(spec.get("schedulerName"))))
    return [*found, *document.outer], named


def gang_of_pods(document: Document) -> str:
    """The gang that pod templates of the document name themselves; "" for none."""
    below = {key: item for key, item in document.manifest.items() if key != "metadata"}
    labels = (_mapping(one.get("labels")) for _, one in objects_in(below))
    return next((str(one[GANG])[:80] for one in labels if GANG in one), "")


def skipped(documents: Iterable[Document]) -> str:
    """A line on all documents that do not concern muster, with the number of each kind; "" for none."""
    counts = Counter(one.kind[:80] for one in documents)
    if not counts:
        return ""
    most = [f"{number} {kind}" for kind, number in counts.most_common(_MOST_KINDS)]
    more = f" and {len(counts) - _MOST_KINDS} more kinds" if len(counts) > _MOST_KINDS else ""
    number = counts.total()
    return f"skipping {number} object{'s' * (number != 1)} of other kinds: {', '.join(most)}{more}"


def _kind(document: Document) -> tuple[str, str]:
    return document.api_version.rpartition("/")[0], document.kind


def _mapping(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
