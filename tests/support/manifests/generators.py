"""Generators for "for all" promises: pods as the webhook meets them, workloads of every kind with any numbers."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

from hypothesis import strategies as st
from msgspec import structs

from muster.workloads import Kind, Workload, kind_of
from tests.support.manifests.families import FAMILIES, Family, judged
from tests.support.manifests.observed import JSON, template

# Keys that need escaping in a JSON pointer, among others.
keys = st.sampled_from(["a", "a/b", "x~y", "x~1/y", "volcano.sh/queue-name", "scheduling.k8s.io/group-name", "é"])
maps = st.none() | st.dictionaries(keys, st.text(max_size=3), max_size=4)
optional = st.fixed_dictionaries(
    {},
    optional={
        "schedulerName": st.sampled_from(["", "default-scheduler", "volcano"]),
        "schedulingGates": st.none()
        | st.lists(st.sampled_from(["a", "b", "muster.dev/gang"]), unique=True).map(
            lambda names: [{"name": name} for name in names]
        ),
        "priorityClassName": st.sampled_from(["", "high", "low"]),
        "priority": st.none() | st.integers(-5, 5),
        "preemptionPolicy": st.sampled_from(["Never", "PreemptLowerPriority"]),
    },
)
pods = st.builds(
    lambda labels, annotations, spec, drop: {
        "metadata": {
            key: value
            for key, value in {"generateName": "w-", "labels": labels, "annotations": annotations}.items()
            if not (drop and value is None)
        },
        "spec": {"containers": [{"name": "main"}], "nodeSelector": {"a": "b"}, **spec},
    },
    *(maps, maps, optional, st.booleans()),
)

_counts = st.integers(0, 5) | st.integers(-2, 2) | st.none() | st.sampled_from([10**6, 2**31 - 1, 2**63])
_templates = st.builds(
    lambda cpu, metadata, spec: {**template(cpu, **spec), "metadata": metadata},
    st.sampled_from(["", "1", "250m", "0", "1e3", "9E", "1n"]),
    st.fixed_dictionaries({}, optional={"labels": maps, "annotations": maps}),
    st.fixed_dictionaries(
        {},
        optional={
            "schedulerName": st.sampled_from(["", "default-scheduler", "volcano"]),
            "schedulingGates": st.none() | st.just([{"name": "other"}]),
            "priorityClassName": st.sampled_from(["", "high", "low"]),
            "overhead": st.just({"cpu": "10m", "memory": "1Mi"}),
            "runtimeClassName": st.sampled_from(["kata", "gone"]),
            "restartPolicy": st.just("Never"),
        },
    ),
)
_labels = st.fixed_dictionaries(
    {"volcano.sh/queue-name": st.sampled_from(["q", "small", "gone"])},
    optional={
        "ray.io/priority-class-name": st.sampled_from(["high", "gone"]),
        "ray.io/scheduler-name": st.sampled_from(["volcano", "scheduler-plugins-scheduler"]),
        "muster.dev/managed": st.just("true"),
    },
)


def _plain_job(first: JSON, second: JSON) -> JSON:
    del second
    metadata = {"labels": {"muster.dev/gang": "demo"}, "annotations": {"muster.dev/gang-size": "1"}}
    return {"parallelism": 2, "template": {**first, "metadata": metadata}}


def _stateful_set(first: JSON, second: JSON) -> JSON:
    del second
    metadata = {"labels": {"muster.dev/gang": "demo"}, "annotations": {"muster.dev/gang-size": "2"}}
    return {"replicas": 2, "podManagementPolicy": "Parallel", "template": {**first, "metadata": metadata}}


KINDS = (
    *FAMILIES,
    Family("batch/v1", "Job", _plain_job, ("spec.template.spec",) * 2),
    Family("apps/v1", "StatefulSet", _stateful_set, ("spec.template.spec",) * 2),
)
EXTRAS: dict[str, tuple[JSON, ...]] = {
    "ray.io/v1": ({}, {"enableInTreeAutoscaling": True}, {"suspend": True}),
    "kubeflow.org/v1": ({}, {"runPolicy": {"schedulingPolicy": {"minAvailable": 1}}}, {"runPolicy": {"suspend": True}}),
    "kubeflow.org/v2beta1": ({}, {"launcherCreationPolicy": "WaitForWorkersReady"}, {"runLauncherAsWorker": True}),
    "jobset.x-k8s.io/v1alpha2": ({}, {"startupPolicy": {"startupPolicyOrder": "InOrder"}}, {"suspend": True}),
    "trainer.kubeflow.org/v1alpha1": ({}, {"trainer": {"numNodes": 3}}, {"suspend": True}),
    "batch.volcano.sh/v1alpha1": ({}, {"minAvailable": 1}),
    "batch/v1": ({}, {"completions": 2}),
    "apps/v1": ({}, {"podManagementPolicy": "OrderedReady"}),
}


def recounted(value: Any, count: Callable[[], int | None]) -> Any:  # noqa: ANN401 - any JSON
    """The same with another number wherever there is one; of a family's manifest all numbers are numbers of pods."""
    match value:
        case bool():
            return value
        case int():
            return count()
        case dict():
            return {key: recounted(item, count) for key, item in value.items()}
        case list():
            return [recounted(item, count) for item in value]
        case _:
            return value


@cache
def small(kind: Kind) -> Workload:
    """The workload of the kind's family; there is none of the plain pod, which has no template of its own."""
    family = next(one for one in KINDS if kind_of(one.api_version, one.kind) is kind)
    workload = judged(family.manifest()).workload
    assert workload is not None
    return workload


def labels_of(kind: Kind, role: str, name: str = "demo") -> dict[str, str]:
    """The labels of a pod of that role, which need not be, as the operator makes it for the workload of that name."""
    workload = small(kind)
    spec = workload.role(role) or replace(workload.roles[0], name=role)
    named = replace(workload, metadata=structs.replace(workload.metadata, name=name))
    return dict(kind.pod_labels(named, spec))


@st.composite
def workloads(draw: st.DrawFn, name: str = "demo") -> JSON:
    """A workload of any kind that muster knows."""
    family = draw(st.sampled_from(KINDS))
    manifest = family.manifest(draw(_templates), draw(_templates), name=name, labels=draw(_labels))
    extra = draw(st.sampled_from(EXTRAS[family.api_version]))
    # Most numbers stay as they are, or hardly any workload would be one.
    spec = {**manifest["spec"], **extra}
    if draw(st.booleans()):
        spec = recounted(spec, lambda: draw(_counts))
    return {**manifest, "spec": spec}
