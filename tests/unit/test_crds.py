"""The testbed's CRDs have everything but their documentation."""

from pathlib import Path

import pytest
import yaml

from hack.testbed.crds import read_crd, without_descriptions
from hack.testbed.errors import TestbedError

_CRD = """\
metadata:
  name: things.example.com
spec:
  description: >-
    Several lines,

    with an empty one, and with: a colon.
  properties:
    description:
      description: "A property of this name
        stays."
      type: string
    size:
      description: one line
      type: integer
"""


def test_only_the_documentation_goes() -> None:
    left = {"description": {"type": "string"}, "size": {"type": "integer"}}
    found = yaml.safe_load(without_descriptions(_CRD.encode()))
    assert found == {"metadata": {"name": "things.example.com"}, "spec": {"properties": left}}


def test_a_crd_is_known_by_its_name(tmp_path: Path) -> None:
    file = tmp_path / "crd.yaml"
    file.write_text(_CRD)
    assert read_crd(file)[0] == "things.example.com"


def test_what_names_nothing_is_no_crd(tmp_path: Path) -> None:
    file = tmp_path / "crd.yaml"
    file.write_text("kind: CustomResourceDefinition\n")
    with pytest.raises(TestbedError, match="names nothing"):
        read_crd(file)
