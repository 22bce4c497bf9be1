"""The kinds, labels and annotations of the templates come from one file, which follows from muster's own modules."""

import os
import re
from pathlib import Path

import pytest

from muster.workloads import KINDS, SOURCES
from tests.support.chart.kinds import written

# Plurals that Kubernetes, Volcano and others have beside the workloads that muster knows.
_COMMON = {"jobs", "pods", "statefulsets"}
_PLURALS = {kind.plural for kind in KINDS} | {source.plural for source in SOURCES}


def test_the_file_says_what_the_modules_say(chart: Path) -> None:
    file = chart / "files" / "kinds.yaml"
    if os.environ.get("MUSTER_REWRITE"):
        file.write_text(written())
    assert file.read_text() == written(), "MUSTER_REWRITE=1 .venv/bin/pytest -n0 tests/chart/test_kinds.py writes it"


@pytest.mark.parametrize("plural", sorted(_PLURALS - _COMMON))
def test_no_template_names_a_kind_itself(chart: Path, plural: str) -> None:
    templates = (chart / "templates").iterdir()
    assert not [file.name for file in templates if re.search(rf"\b{plural}\b", file.read_text())]
