"""The chart's admission policies a second time, about labels and annotations of their own."""

from __future__ import annotations

import json
import subprocess
import uuid
from contextlib import contextmanager
from typing import TYPE_CHECKING

import yaml

from hack.chart import CHART
from hack.testbed.build import binaries
from hack.testbed.parts import PARTS
from muster.kube.resource import ADMISSION_POLICIES, ADMISSION_POLICY_BINDINGS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from hack.testbed.api import Api

__all__ = ["other_policies"]

_KINDS = {one.kind: one for one in (ADMISSION_POLICIES, ADMISSION_POLICY_BINDINGS)}


@contextmanager
def other_policies(api: Api, values: Mapping[str, object]) -> Iterator[str]:
    """Have the policies of the chart with these values in force, and give what stands for `muster.dev` in them."""
    release = f"other-{uuid.uuid4().hex[:6]}"
    prefix = f"{release}.example.com"
    helm = binaries([PARTS["helm"]], print)["helm"]
    command = [str(helm), "template", release, str(CHART), "--show-only=templates/policies.yaml", "--values=-"]
    given = json.dumps({"image": {"repository": "r"}, **values})
    done = subprocess.run(command, input=given, capture_output=True, text=True, check=True)
    objects = [one for one in yaml.safe_load_all(done.stdout.replace("muster.dev", prefix)) if one]
    paths = [_KINDS[one["kind"]] for one in objects]
    for resource, one in zip(paths, objects, strict=True):
        api.create(resource.path(), one)
    yield prefix
    for resource, one in zip(paths, objects, strict=True):
        api.delete(resource.path(name=one["metadata"]["name"]))
