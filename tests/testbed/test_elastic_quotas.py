"""What muster says of ElasticQuotas, and what the scheduler of scheduler-plugins makes of them, are the same."""

from collections.abc import Iterator
from contextlib import ExitStack
from itertools import count
from typing import Any

import pytest

from hack.testbed import Nodes, Testbed
from muster.model.objects import convert
from muster.model.resource import ELASTIC_QUOTAS, PODS
from muster.resources.amounts import parse_resources
from muster.resources.elastic_quotas import ElasticQuota, NamespaceLimits, limit_of
from tests.support.cases import cases
from tests.support.cluster.backends import cluster, elastic_quota, scheduled
from tests.support.cluster.objects import node_of
from tests.support.cluster.scene import Scene, open_scene

JSON = dict[str, Any]

pytestmark = pytest.mark.long

_PLENTY = {"cpu": "9", "memory": "9Gi", "ephemeral-storage": "9Gi", "nvidia.com/gpu": "9"}
_OPEN: JSON = {"min": _PLENTY}
_CLOSED: JSON = {"min": _PLENTY, "max": {"cpu": "0"}}


class Namespaces:
    """Two namespaces with a quota each, and pods in the first."""

    def __init__(self, first: Scene, other: Scene) -> None:
        self._first, self._other = first, other
        self._names = count()
        for scene in (first, other):
            scene.create(elastic_quota("quota", cpu="1"))

    def set(self, own: JSON, others: JSON) -> None:
        """Let the quotas say this and nothing else."""
        for scene, spec in ((self._first, own), (self._other, others)):
            scene.patch(ELASTIC_QUOTAS, "quota", {"spec": None})
            scene.patch(ELASTIC_QUOTAS, "quota", {"spec": spec})

    def refuses(self, requests: JSON) -> bool:
        """Whether a quota keeps a pod of these requests from a node; no other pod is there."""
        name = f"pod-{next(self._names)}"
        container = {"name": "main", "image": "none", "resources": {"requests": requests, "limits": _gpus(requests)}}
        spec = {"containers": [container], "schedulerName": "scheduler-plugins-scheduler"}
        self._first.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec})
        said: list[str] = []

        def told() -> bool:
            said[:] = [scheduled(pod) for pod in self._first.pods() if node_of(pod) or "Unsched" in scheduled(pod)]
            return bool(said)

        self._first.wait("the scheduler's word", told)
        self._first.delete(PODS, name)
        self._first.wait("the pod to be gone", lambda: not self._first.pods())
        return "ElasticQuota" in said[0]

    def settle(self, requests: JSON, *, refused: bool) -> None:
        """Wait until a quota refuses such pods, or none does: the scheduler hears of quotas a moment later."""
        self._first.wait(
            f"pods of {requests} to be {'refused' if refused else 'let through'}",
            lambda: [self.refuses(requests), self.refuses(requests)] == [refused, refused],
        )


def _gpus(requests: JSON) -> JSON:
    return {name: amount for name, amount in requests.items() if "/" in name}


@pytest.fixture(scope="module")
def namespaces() -> Iterator[Namespaces]:
    """One testbed for this file, with room for all of its pods but for GPUs."""
    asked = cluster("coscheduling", operators=())
    with ExitStack() as stack:
        testbed = stack.enter_context(Testbed.start(**asked, nodes=Nodes(count=2, gpu=0), progress=print))
        scenes = [stack.enter_context(open_scene(testbed, name, [ELASTIC_QUOTAS])) for name in ("team-a", "team-b")]
        yield Namespaces(*scenes)


@cases(
    "own, others, requests, refused",
    ("max", {"max": {"cpu": "2", "memory": "2Gi"}, **_OPEN}, {}, {"cpu": "2", "memory": "2Gi"}, False),
    ("more", {"max": {"cpu": "2", "memory": "2Gi"}, **_OPEN}, {}, {"cpu": "2", "memory": "3Gi"}, True),
    ("a max of cpu alone, for cpu alone", {"max": {"cpu": "2"}, **_OPEN}, {}, {"cpu": "1"}, False),
    ("memory that max leaves out", {"max": {"cpu": "2"}, **_OPEN}, {}, {"memory": "1Mi"}, True),
    ("storage that max leaves out", {"max": {"cpu": "2"}, **_OPEN}, {}, {"ephemeral-storage": "1Mi"}, True),
    ("a GPU that max leaves out", {"max": {"cpu": "2"}, **_OPEN}, {}, {"nvidia.com/gpu": "1"}, False),
    ("an empty max", {"max": {}, **_OPEN}, {}, {"cpu": "1"}, True),
    ("no max", _OPEN, {}, {"cpu": "3", "memory": "3Gi"}, False),
    ("what others are guaranteed", {"min": {"cpu": "1"}}, {"min": {"cpu": "2"}}, {"cpu": "3"}, False),
    ("more than all are guaranteed", {"min": {"cpu": "1"}}, {"min": {"cpu": "1"}}, {"cpu": "3"}, True),
    ("a GPU that no min names", {"min": {"cpu": "2"}}, {}, {"nvidia.com/gpu": "1"}, True),
    ("memory that no min names", {"min": {"cpu": "2"}}, {}, {"cpu": "1", "memory": "1Mi"}, True),
)
def test_what_muster_says_never_runs_the_scheduler_refuses_and_nothing_else(
    namespaces: Namespaces, own: JSON, others: JSON, requests: JSON, refused: bool
) -> None:
    """First the scheduler says the opposite, so that its word is of these quotas."""
    limits = NamespaceLimits()
    for name, spec in (("team-a", own), ("team-b", others)):
        limit = limit_of([convert({"metadata": {"name": "quota", "namespace": name}, "spec": spec}, ElasticQuota)])
        assert limit is not None
        limits.put(name, limit)
    ceiling = limits.ceiling("team-a")
    assert ceiling is not None
    assert bool(ceiling.never(parse_resources(requests, path="requests"))) is refused
    namespaces.set(_OPEN if refused else _CLOSED, _OPEN)
    namespaces.settle(requests if refused else {"cpu": "1"}, refused=not refused)
    namespaces.set(own, others)
    namespaces.settle(requests, refused=refused)
