"""The chart's CRD of GangQueues, on a testbed whose muster was installed without it."""

from collections.abc import Iterator
from contextlib import contextmanager

from hack.testbed import wait_for
from hack.testbed.api import Api
from tests.support.chart.templates import template
from tests.support.cluster.claim_terms import GANG_QUEUES

_CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


@contextmanager
def serving_gang_queues(api: Api) -> Iterator[Api]:
    """Have the apiserver serve GangQueues, and give it."""
    (rendered,) = template("crd.yaml", {"queues": {"source": "muster"}, "schedulers": ["coscheduling"]})
    api.create(_CRDS, rendered)
    wait_for("the apiserver to serve GangQueues", lambda: api("GET", GANG_QUEUES.path()).ok)
    yield api
    api.delete(f"{_CRDS}/{rendered['metadata']['name']}")
    wait_for("GangQueues to be gone", lambda: not api("GET", GANG_QUEUES.path()).ok)
