"""The chart's admission policies a second time, about labels and annotations of their own."""

import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from hack.testbed.api import Api
from muster.model.resource import ADMISSION_POLICIES, ADMISSION_POLICY_BINDINGS
from tests.support.chart.templates import template

_KINDS = {one.kind: one for one in (ADMISSION_POLICIES, ADMISSION_POLICY_BINDINGS)}


@contextmanager
def other_policies(api: Api, values: Mapping[str, object]) -> Iterator[str]:
    """Have the policies of the chart with these values in force, and give what stands for `muster.dev` in them."""
    release = f"other-{uuid.uuid4().hex[:6]}"
    prefix = f"{release}.example.com"
    objects = template("policies.yaml", values, release=release, edit=lambda text: text.replace("muster.dev", prefix))
    paths = [_KINDS[one["kind"]] for one in objects]
    for resource, one in zip(paths, objects, strict=True):
        api.create(resource.path(), one)
    yield prefix
    for resource, one in zip(paths, objects, strict=True):
        api.delete(resource.path(name=one["metadata"]["name"]))
