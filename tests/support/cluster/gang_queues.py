"""The chart's CRD of GangQueues, on a testbed whose muster was installed without it."""

from __future__ import annotations

import subprocess
from contextlib import contextmanager
from typing import TYPE_CHECKING

import yaml

from hack.chart import CHART
from hack.testbed import wait_for
from hack.testbed.build import binaries
from hack.testbed.parts import PARTS
from tests.support.cluster.claim_terms import GANG_QUEUES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hack.testbed.api import Api

__all__ = ["serving_gang_queues"]

_SETTINGS = ("--set=image.repository=r", "--set=queues.source=muster", "--set=schedulers={coscheduling}")
_CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_PATIENCE = 100.0


@contextmanager
def serving_gang_queues(api: Api) -> Iterator[Api]:
    """Have the apiserver serve GangQueues, and give it."""
    helm = binaries([PARTS["helm"]], print)["helm"]
    command = [str(helm), "template", "muster", str(CHART), "--show-only=templates/crd.yaml", *_SETTINGS]
    rendered = yaml.safe_load(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    api.create(_CRDS, rendered)
    wait_for("the apiserver to serve GangQueues", lambda: api("GET", GANG_QUEUES.path()).ok, _PATIENCE)
    yield api
    api.delete(f"{_CRDS}/{rendered['metadata']['name']}")
    wait_for("GangQueues to be gone", lambda: not api("GET", GANG_QUEUES.path()).ok, _PATIENCE)
