"""A single template of the chart, rendered to be applied."""

import json
import subprocess
from collections.abc import Callable, Mapping
from typing import Any

import yaml

from hack.chart import CHART
from hack.testbed.build import binaries
from hack.testbed.parts import PARTS


def template(
    name: str,
    values: Mapping[str, object],
    *,
    release: str = "muster",
    edit: Callable[[str], str] = lambda text: text,
) -> list[dict[str, Any]]:
    """Return the objects of templates/NAME with these values, read from the text as `edit` gives it back."""
    helm = binaries([PARTS["helm"]], print)["helm"]
    command = [str(helm), "template", release, str(CHART), f"--show-only=templates/{name}", "--values=-"]
    given = json.dumps({"image": {"repository": "r"}, **values})
    done = subprocess.run(command, input=given, capture_output=True, text=True, check=True)
    return [one for one in yaml.safe_load_all(edit(done.stdout)) if one]
