"""The kinds, labels and annotations of the templates come from one file, which follows from muster's own modules."""

import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import yaml

from muster.model.names import (
    ADMITTED,
    ADMITTED_AT,
    ADMITTED_FOR,
    ADMITTER,
    BOUND,
    DRAIN_AFTER,
    GANG,
    GANG_ENABLED,
    GANG_SPEC,
    GANG_TIME_LIMIT,
    GATE_MODE,
    GROUP_NAME,
    HALF_LIFE,
    HOLD,
    MANAGED,
    MESSAGE,
    MIN_RUNTIME,
    NAMESPACE_SELECTOR,
    PASSED_IN,
    PASSED_SINCE,
    PATIENCE,
    POD_GROUP_LABEL,
    PREEMPTION,
    PRIORITY_CLASS_LABEL,
    QUEUE_LABEL,
    QUEUEING,
    RECLAIM,
    REQUEUED_AT,
    RESERVES,
    RUNS_ABOUT,
    SCHEDULER_LABEL,
    SIBLINGS,
    STATE,
    TASK_SPEC,
    UNPLACED_AFTER,
    WORKLOAD,
)
from muster.schedulers import PRODUCTS
from muster.workloads import KINDS, MAKERS, SOURCES, WATCHED_KINDS

_HEAD = """\
# The lists of the templates: kinds, labels and annotations. Written from muster/workloads and muster/model/names.py:
# MUSTER_REWRITE=1 .venv/bin/pytest -n0 tests/chart/test_kinds.py
"""
_WORKLOADS = """\
Workloads by API group: the pods of `gangs` start together, `parents` make such workloads, and some are made
# from `sources`."""
_NAMES: dict[str, tuple[str, list[str]]] = {
    "intentLabels": (
        "Labels by which a workload asks for gang scheduling.",
        [SCHEDULER_LABEL, QUEUE_LABEL, PRIORITY_CLASS_LABEL, MANAGED, GANG_ENABLED],
    ),
    "memberLabels": ("Labels that bind a pod to its gang.", [GANG, QUEUE_LABEL, POD_GROUP_LABEL]),
    "memberAnnotations": (
        "Annotations that bind a pod to its gang.",
        [GROUP_NAME, TASK_SPEC, WORKLOAD, GANG_TIME_LIMIT],
    ),
    "queueAnnotations": (
        "Annotations of a Queue that muster reads.",
        [
            GATE_MODE,
            QUEUEING,
            PATIENCE,
            PREEMPTION,
            SIBLINGS,
            HALF_LIFE,
            RECLAIM,
            BOUND,
            NAMESPACE_SELECTOR,
            RESERVES,
            DRAIN_AFTER,
            UNPLACED_AFTER,
            MIN_RUNTIME,
            HOLD,
        ],
    ),
    "marks": (
        "Annotations of a PodGroup that say what muster has decided.",
        [
            ADMITTED,
            ADMITTED_AT,
            ADMITTED_FOR,
            ADMITTER,
            GANG_SPEC,
            STATE,
            MESSAGE,
            PASSED_SINCE,
            PASSED_IN,
            DRAIN_AFTER,
            REQUEUED_AT,
            RUNS_ABOUT,
        ],
    ),
}


def _unique(values: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(values))


def _workloads() -> dict[str, dict[str, list[str]]]:
    """For each API group the first version of its kinds, and their plurals by what they are to a gang."""
    found: dict[str, dict[str, list[str]]] = {}
    for group in _unique(kind.group for kind in WATCHED_KINDS):
        kinds = [kind for kind in WATCHED_KINDS if kind.group == group]
        lists = {
            "versions": _unique(kind.versions[0] for kind in kinds),
            "gangs": _unique(kind.plural for kind in kinds if kind.owns_gang),
            "parents": _unique(kind.plural for kind in kinds if not kind.owns_gang),
            "sources": _unique(source.resource.plural for source in SOURCES if source.resource.group == group),
        }
        found[group] = {name: plurals for name, plurals in lists.items() if plurals}
    return found


def _scaled() -> dict[str, dict[str, list[str]]]:
    scaled = [kind for kind in KINDS if kind.scaled]
    return {
        group: {
            "versions": _unique(kind.versions[0] for kind in scaled if kind.group == group),
            "resources": [f"{kind.plural}/scale" for kind in scaled if kind.group == group],
        }
        for group in _unique(kind.group for kind in scaled)
    }


def _makers() -> list[dict[str, str]]:
    """The label of each maker's pods, by the name of the webhook that sees them."""
    return [{"name": maker.lower(), "label": label} for label, maker in MAKERS.items()]


def _schedulers() -> dict[str, dict[str, Any]]:
    return {
        product: {"group": one.group, "versions": [*(one.versions or [one.version])], "name": one.usual_name}
        for product, one in PRODUCTS.items()
        if one.runs
    }


def written() -> str:
    """Return the whole file."""
    parts: list[tuple[str, dict[str, Any]]] = [
        (_WORKLOADS, {"workloads": _workloads()}),
        ("Kinds with a scale subresource.", {"scaled": _scaled()}),
        ("The label that each operator puts on the pods of a gang.", {"makers": _makers()}),
        (
            "The PodGroups of the gang schedulers, and the usual schedulerName of their pods.",
            {"schedulers": _schedulers()},
        ),
        *((comment, {name: names}) for name, (comment, names) in _NAMES.items()),
    ]
    return _HEAD + "".join(f"\n# {comment}\n{_text(part)}" for comment, part in parts)


def _text(part: dict[str, Any]) -> str:
    return yaml.safe_dump(part, sort_keys=False, default_flow_style=None, width=88)


# Plurals that Kubernetes, Volcano and others have beside the workloads that muster knows.
_COMMON = {"jobs", "pods", "statefulsets"}
_PLURALS = {kind.plural for kind in KINDS} | {source.resource.plural for source in SOURCES}


def test_the_file_says_what_the_modules_say(chart: Path) -> None:
    file = chart / "files" / "kinds.yaml"
    if os.environ.get("MUSTER_REWRITE"):
        file.write_text(written())
    assert file.read_text() == written(), "MUSTER_REWRITE=1 .venv/bin/pytest -n0 tests/chart/test_kinds.py writes it"


@pytest.mark.parametrize("plural", sorted(_PLURALS - _COMMON))
def test_no_template_names_a_kind_itself(chart: Path, plural: str) -> None:
    templates = (chart / "templates").iterdir()
    assert not [file.name for file in templates if re.search(rf"\b{plural}\b", file.read_text())]
