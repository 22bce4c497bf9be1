"""A workload is refused for quotas and LimitRanges where the real apiserver refuses its pods, and nowhere else."""

from collections.abc import Iterator
from contextlib import suppress
from itertools import product
from typing import Any, NamedTuple

import pytest

from hack.testbed import TestbedError, wait_for
from hack.testbed.api import Answer, Api
from muster.model.findings import Reason
from muster.resources.pod_defaults import LimitRange, PodDefaults
from muster.resources.resource_quotas import ResourceQuota
from muster.validation.context import Context
from tests.support.cases import cases
from tests.support.cluster.desk import PATIENCE, wait_for_class
from tests.support.cluster.verbs import make_namespace, own_name
from tests.support.examples import examples
from tests.support.manifests.families import judged
from tests.support.manifests.observed import made
from tests.support.manifests.pod_shapes import shapes

JSON = dict[str, Any]

_REFUSED = (403, 422)
_OURS = {Reason.EXCEEDS_RESOURCE_QUOTA, Reason.REQUIRED_BY_RESOURCE_QUOTA, Reason.OUTSIDE_LIMIT_RANGE}
_EMPTY: JSON = {"requests": {}, "limits": {}}
_BOTH = {"cpu": "1", "memory": "1Gi"}


def _quota(hard: JSON, *scopes: str, **of_class: object) -> JSON:
    expressions = [{"scopeName": "PriorityClass", **of_class}] if of_class else []
    selector = {"scopeSelector": {"matchExpressions": expressions}} if expressions else {}
    return {"hard": hard, **({"scopes": list(scopes)} if scopes else {}), **selector}


def _range(kind: str = "Container", **item: JSON) -> JSON:
    return {"type": kind, **item}


_ALL = "99"
_QUOTAS: dict[str, list[JSON]] = {
    "cpu": [_quota({"cpu": _ALL})],
    "requests-memory": [_quota({"requests.memory": "99Gi"})],
    "limits": [_quota({"limits.cpu": _ALL, "limits.memory": "99Gi"})],
    "little-cpu": [_quota({"cpu": "1500m"})],
    "little-limit": [_quota({"limits.cpu": "1500m"})],
    "little-memory": [_quota({"limits.memory": "1Gi"})],
    "storage": [_quota({"requests.ephemeral-storage": "1Gi", "limits.ephemeral-storage": "2Gi"})],
    "gpu": [_quota({"requests.nvidia.com/gpu": "1"})],
    "no-pods": [_quota({"pods": "0"})],
    "no-objects": [_quota({"count/pods": "0"})],
    "terminating": [_quota({"pods": "0"}, "Terminating")],
    "endless": [_quota({"pods": "0"}, "NotTerminating")],
    "endless-limits": [_quota({"limits.cpu": "2"}, "NotTerminating")],
    "best-effort": [_quota({"pods": "0"}, "BestEffort")],
    "not-best-effort": [_quota({"cpu": "1"}, "NotBestEffort")],
    "class-in": [_quota({"pods": "0"}, operator="In", values=["refused-high"])],
    "class": [_quota({"cpu": "1"}, operator="Exists")],
    "affinity": [_quota({"pods": "0"}, "CrossNamespacePodAffinity")],
    "two": [_quota({"pods": "0"}, "Terminating"), _quota({"limits.memory": "1Gi"})],
}
_RANGES: dict[str, list[list[JSON]]] = {
    "max": [[_range(max={"cpu": "2"})]],
    "max-storage": [[_range(max={"ephemeral-storage": "1Gi"})]],
    "min": [[_range(min={"cpu": "200m", "memory": "64Mi"})]],
    "ratio": [[_range(maxLimitRequestRatio={"cpu": "1.1"})]],
    "ratio-given": [[_range(maxLimitRequestRatio={"memory": "2"}, default={"memory": "1Gi"})]],
    "default": [[_range(default=_BOTH)]],
    "request": [[_range(defaultRequest=_BOTH)]],
    "pod-max": [[_range("Pod", max={"cpu": "2"})]],
    "pod-min": [[_range("Pod", min={"memory": "1Gi"})]],
    "pod-ratio": [[_range("Pod", maxLimitRequestRatio={"cpu": "3"})]],
    "both": [
        [_range(default=_BOTH), _range("Pod", max={"cpu": "3"}), _range("PersistentVolumeClaim", max={"storage": "1"})]
    ],
    "three": [
        [_range(defaultRequest={"cpu": "100m"})],
        [_range(max={"memory": "1Gi"})],
        [_range("Pod", min={"cpu": "1"})],
    ],
}


def _container(name: str = "c", requests: JSON | None = None, limits: JSON | None = None, **more: object) -> JSON:
    return {"name": name, "image": "none", "resources": {"requests": requests or {}, "limits": limits or {}}, **more}


def _pod(*containers: JSON, **spec: object) -> JSON:
    return {"containers": list(containers), **spec}


def _near(**term: object) -> JSON:
    one = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {}, **term}
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [one]}}


_PODS = [
    _pod(_container()),
    _pod(_container(requests={"cpu": "1"})),
    _pod(_container(requests={"cpu": "0"})),
    _pod(_container(limits={"cpu": "1"})),
    _pod(_container(requests={"cpu": "1"}, limits={"cpu": "4"})),
    _pod(_container(requests={"cpu": "4"})),
    _pod(_container(requests={"cpu": "1"}, limits={"cpu": "1100m"})),
    _pod(_container(requests={"cpu": "1"}, limits={"cpu": "1101m"})),
    _pod(_container(limits=_BOTH)),
    _pod(_container(requests=_BOTH)),
    _pod(_container(requests={"memory": "1Mi"}, limits={"memory": "3Gi"})),
    _pod(_container(requests={"ephemeral-storage": "2Gi"})),
    _pod(_container(limits={"ephemeral-storage": "3Gi", "nvidia.com/gpu": "2"})),
    _pod(_container("a", limits=_BOTH), _container("b")),
    _pod(_container("a", limits=_BOTH), _container("b", limits=_BOTH)),
    _pod(_container(limits=_BOTH), initContainers=[_container("i")]),
    _pod(_container(limits=_BOTH), initContainers=[_container("i", limits={"cpu": "3", "memory": "1Gi"})]),
    _pod(_container(limits=_BOTH), initContainers=[_container("i", limits=_BOTH, restartPolicy="Always")]),
    _pod(_container(), resources={"requests": {"cpu": "1"}}),
    _pod(_container(), resources={"limits": _BOTH}),
    _pod(_container(requests={"cpu": "1"}), resources={"limits": {"cpu": "2", "memory": "2Gi"}}),
    _pod(_container(limits=_BOTH), activeDeadlineSeconds=60),
    _pod(_container(), activeDeadlineSeconds=60),
    _pod(_container(), priorityClassName="refused-high"),
    _pod(_container(limits=_BOTH), priorityClassName="refused-low"),
    _pod(_container(requests={"cpu": "2"}), priorityClassName="refused-low"),
    _pod(_container(), affinity=_near(namespaces=["default"])),
    _pod(_container(), affinity=_near(namespaceSelector={})),
    _pod(_container(), affinity=_near()),
]


class Place(NamedTuple):
    """A namespace, its quotas and its LimitRanges."""

    name: str
    quotas: list[JSON]
    ranges: list[list[JSON]]

    def objects(self) -> Iterator[tuple[str, JSON]]:
        """Its quotas and LimitRanges, each with its resource."""
        for number, quota in enumerate(self.quotas):
            yield "resourcequotas", {"metadata": {"name": f"quota-{number}"}, "spec": quota}
        for number, items in enumerate(self.ranges):
            yield "limitranges", {"metadata": {"name": f"range-{number}"}, "spec": {"limits": items}}

    def defaults(self) -> PodDefaults:
        """What muster knows of it."""
        objects = list(self.objects())
        quotas = [made(ResourceQuota, one) for kind, one in objects if kind == "resourcequotas"]
        return PodDefaults([made(LimitRange, one) for kind, one in objects if kind == "limitranges"], None, quotas)


def _places(prefix: str) -> list[Place]:
    alone = [("", _RANGES[name], f"r-{name}") for name in _RANGES]
    named = [Place(f"{prefix}-{name}", [], ranges) for _, ranges, name in alone]
    named += [Place(f"{prefix}-q-{name}", quotas, []) for name, quotas in _QUOTAS.items()]
    both = product(_QUOTAS, ("default", "max", "pod-max"))
    return named + [Place(f"{prefix}-{quota}-{one}", _QUOTAS[quota], _RANGES[one]) for quota, one in both]


def _refused(place: Place, pod: JSON, count: int = 1) -> bool:
    """Whether muster refuses a workload of so many of these pods there."""
    job = {"name": "w", "template": {"spec": {"parallelism": count, "completions": count, "template": {"spec": pod}}}}
    workload = {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": "set", "namespace": place.name, "labels": {"volcano.sh/queue-name": "q"}},
        "spec": {"replicatedJobs": [job]},
    }
    refusals = judged(workload, Context(pod_defaults=place.defaults())).refusals
    assert {one.reason for one in refusals} <= _OURS, refusals
    return bool(refusals)


def _create(calls: Api, place: Place, pod: JSON, name: str = "pod", *, dry_run: bool = True) -> Answer:
    manifest = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {**pod, "automountServiceAccountToken": False},
    }
    pretend = "?dryRun=All" if dry_run else ""
    answer = calls("POST", f"/api/v1/namespaces/{place.name}/pods{pretend}", manifest)
    assert answer.ok or answer.status in _REFUSED, answer
    return answer


@pytest.fixture(scope="module")
def known(calls: Api) -> None:
    """PriorityClasses that pods name."""
    for name in ("refused-high", "refused-low"):
        calls.done("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": name}, "value": 1})
        wait_for_class(calls, name)


def _made(calls: Api, *places: Place) -> None:
    """Make the namespaces with what is in them, and wait until quotas count."""
    calls.each(lambda place: make_namespace(calls, place.name), places)
    things = [(place, kind, one) for place in places for kind, one in place.objects()]
    calls.each(lambda one: calls.done("POST", f"/api/v1/namespaces/{one[0].name}/{one[1]}", one[2]), things)

    def counted() -> bool:
        quotas = calls.done("GET", "/api/v1/resourcequotas")["items"]
        return all(one.get("status", {}).get("hard") == one["spec"].get("hard") for one in quotas)

    wait_for("quotas to count", counted, PATIENCE)


def _without_idle(pod: JSON) -> JSON:
    """The pod without a class and without an empty `resources`: with that any pod is best effort to the apiserver."""
    return {key: value for key, value in pod.items() if key not in ("runtimeClassName", "overhead") and value != _EMPTY}


@pytest.mark.usefixtures("known")
def test_muster_refuses_a_pod_where_the_apiserver_does_and_nowhere_else(calls: Api) -> None:
    """Every pod in every namespace: quotas alone, LimitRanges alone, and both."""
    prefix = own_name("judged")
    free, places = Place(f"{prefix}-free", [], []), _places(prefix)
    _made(calls, free, *places)
    drawn = [_without_idle(one.spec) for one in shapes(seed=48, count=examples(120))]
    taken = calls.each(lambda pod: _create(calls, free, pod).ok, drawn)
    pods = [*_PODS, *(pod for pod, ok in zip(drawn, taken, strict=True) if ok)]
    cases = [(place, pod, _refused(place, pod)) for place, pod in product(places, pods)]
    wrong = [*cases]
    said: list[str] = []

    def as_judged() -> bool:
        """The apiserver hears of quotas and LimitRanges by watches of its own: what differs is asked again."""
        answers = calls.each(lambda case: _create(calls, case[0], case[1]), wrong)
        differing = [(case, one) for case, one in zip(wrong, answers, strict=True) if one.ok is case[2]]
        wrong[:] = [case for case, _ in differing]
        said[:] = [f"{case[0]}: {case[1]}: muster {case[2]}, {one.message}" for case, one in differing]
        return not wrong

    assert sum(refused for _, _, refused in cases) > len(cases) // 10
    with suppress(TestbedError):
        wait_for("the apiserver to judge as muster does", as_judged, PATIENCE / 4)
    assert said == []


_THREE = _pod(_container(requests={"cpu": "1"}, limits={"cpu": "2"}))


@cases(
    "quota, ranges",
    ("limits that are enough", _quota({"limits.cpu": "6"}), []),
    ("limits", _quota({"limits.cpu": "5"}), []),
    ("requests that are enough", _quota({"requests.cpu": "3", "pods": "3"}), []),
    ("requests", _quota({"cpu": "2"}), []),
    ("a number of pods", _quota({"count/pods": "2"}), []),
    ("what is given", _quota({"limits.memory": "2Gi"}, "NotBestEffort"), [[_range(default=_BOTH)]]),
    ("of other pods", _quota({"limits.cpu": "2"}, "Terminating"), []),
)
def test_three_pods_are_made_where_muster_takes_the_gang(calls: Api, quota: JSON, ranges: list[list[JSON]]) -> None:
    place = Place(own_name("three"), [quota], ranges)
    _made(calls, place)
    takes = not _refused(place, _THREE, 3)

    def as_judged() -> bool:
        made_ = [_create(calls, place, _THREE, f"pod-{n}", dry_run=False).ok for n in range(3)]
        for n in range(3):
            calls("DELETE", f"/api/v1/namespaces/{place.name}/pods/pod-{n}?gracePeriodSeconds=0")
        return all(made_) is takes

    wait_for("the apiserver to judge as muster does", as_judged, PATIENCE)
