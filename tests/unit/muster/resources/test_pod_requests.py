"""Requests of a pod agree with component-helpers/resource (PodRequests) and with what the apiserver defaults."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.model.objects import InvalidObjectError
from muster.model.pods import PodSpec, PodStatus
from muster.resources.amounts import as_text
from muster.resources.pod_requests import pod_limits, pod_requests
from muster.resources.quantity import ZERO
from tests.support.cases import cases
from tests.support.manifests.observed import JSON, made


def asks(limits: JSON | None = None, *, sidecar: bool = False, **requests: str) -> JSON:
    """A container; `gpu` is NVIDIA's."""
    named = {"nvidia.com/gpu" if name == "gpu" else name: value for name, value in requests.items()}
    always = {"restartPolicy": "Always"} if sidecar else {}
    return {"resources": {"requests": named, "limits": limits or {}}, **always}


def requests_of(**spec: Any) -> dict[str, str]:  # noqa: ANN401 - a pod's spec as in a manifest
    return as_text(pod_requests(made(PodSpec, spec)))


@cases(
    "spec, expected",
    ("nothing", {"containers": []}, {}),
    (
        "containers add up",
        {"containers": [asks(cpu="1", memory="1Gi"), asks(cpu="500m", gpu="1")]},
        {"cpu": "1500m", "memory": "1Gi", "nvidia.com/gpu": "1"},
    ),
    (
        "init containers run one after the other",
        {"containers": [asks(cpu="2")], "initContainers": [asks(cpu="5"), asks(cpu="3")]},
        {"cpu": "5"},
    ),
    (
        "the larger for each resource by itself",
        {"containers": [asks(cpu="6")], "initContainers": [asks(cpu="5", memory="1Gi")]},
        {"cpu": "6", "memory": "1Gi"},
    ),
    (
        "sidecar before init: both at once",
        {"containers": [asks(cpu="2")], "initContainers": [asks(cpu="1", sidecar=True), asks(cpu="5")]},
        {"cpu": "6"},
    ),
    (
        "init before sidecar: alone",
        {"containers": [asks(cpu="2")], "initContainers": [asks(cpu="5"), asks(cpu="1", sidecar=True)]},
        {"cpu": "5"},
    ),
    (
        "two sidecars between inits",
        {
            "containers": [asks(cpu="1")],
            "initContainers": [
                *(asks(cpu="1", sidecar=True), asks(cpu="3"), asks(cpu="2", sidecar=True), asks(cpu="3")),
            ],
        },
        {"cpu": "6"},
    ),
    (
        "a sidecar goes on beside the containers",
        {"containers": [asks(cpu="4")], "initContainers": [asks(cpu="1", sidecar=True)]},
        {"cpu": "5"},
    ),
    (
        "a limit stands in where a request is missing",
        {"containers": [asks({"cpu": "2", "nvidia.com/gpu": "1"}, cpu="1")]},
        {"cpu": "1", "nvidia.com/gpu": "1"},
    ),
    ("also in init containers", {"containers": [asks(cpu="1")], "initContainers": [asks({"cpu": "3"})]}, {"cpu": "3"}),
    (
        "overhead on top",
        {"containers": [asks(cpu="1", memory="1Gi")], "overhead": {"cpu": "250m", "memory": "64Mi"}},
        {"cpu": "1250m", "memory": "1088Mi"},
    ),
    (
        "pod level replaces cpu, gpus stay the containers'",
        {
            "containers": [asks(cpu="1", gpu="3")],
            "resources": {"requests": {"cpu": "6"}},
            "overhead": {"cpu": "250m"},
        },
        {"cpu": "6250m", "nvidia.com/gpu": "3"},
    ),
    (
        "pod level replaces, also downwards",
        {"containers": [asks(cpu="4")], "resources": {"requests": {"cpu": "1"}}},
        {"cpu": "1"},
    ),
    (
        "no gpu at pod level",
        {"containers": [asks(gpu="1")], "resources": {"requests": {"nvidia.com/gpu": "8"}}},
        {"nvidia.com/gpu": "1"},
    ),
    (
        "a pod-level limit stands in only where no container asks",
        {"containers": [asks(cpu="1")], "resources": {"limits": {"cpu": "8", "memory": "4Gi"}}},
        {"cpu": "1", "memory": "4Gi"},
    ),
    (
        "a pod-level limit stands for what all containers ask, init containers too",
        {
            "containers": [asks(cpu="1")],
            "initContainers": [asks(cpu="5")],
            "resources": {"limits": {"cpu": "6"}},
        },
        {"cpu": "5"},
    ),
    (
        "huge pages of the pod are its limit",
        {
            "containers": [asks({"hugepages-2Mi": "4Mi"})],
            "resources": {"limits": {"hugepages-2Mi": "8Mi"}},
        },
        {"hugepages-2Mi": "8Mi"},
    ),
    (
        "each amount is rounded up to milli before adding",
        {"containers": [asks(cpu="0.1m"), asks(cpu="0.1m"), asks(memory="1n")]},
        {"cpu": "2m", "memory": "1m"},
    ),
    (
        "numbers",
        {"containers": [{"resources": {"requests": {"cpu": 1, "memory": 0.5}}}]},
        {"cpu": "1", "memory": "500m"},
    ),
)
def test_golden_vectors(spec: JSON, expected: dict[str, str]) -> None:
    assert requests_of(**spec) == expected


@cases(
    "spec, line",
    (
        "container request",
        {"containers": [asks(cpu="1"), asks(cpu="one")]},
        'T.containers[1].resources.requests.cpu: "one" is not a quantity such as 500m, 2 or 1.5Gi',
    ),
    (
        "init container limit",
        {"initContainers": [asks({"memory": "1GB"})]},
        'T.initContainers[0].resources.limits.memory: "1GB" is not a quantity such as 500m, 2 or 1.5Gi',
    ),
    ("negative overhead", {"overhead": {"cpu": "-1"}}, 'T.overhead.cpu: "-1" is negative; a resource is 0 or more'),
    (
        "pod level",
        {"resources": {"requests": {"cpu": "1K"}}},
        'T.resources.requests.cpu: "1K" is not a quantity such as 500m, 2 or 1.5Gi',
    ),
)
def test_an_amount_that_is_none_is_named_with_its_field(spec: JSON, line: str) -> None:
    with pytest.raises(InvalidObjectError) as refused:
        pod_requests(made(PodSpec, spec), path="T")
    assert str(refused.value) == line


@cases(
    "spec, expected",
    ("a sum", {"containers": [asks({"cpu": "1"}), asks({"cpu": "2"}), asks(cpu="9")]}, {"cpu": "3"}),
    (
        "the largest init container",
        {"containers": [asks({"cpu": "1"})], "initContainers": [asks({"cpu": "4"}), asks({"cpu": "2"})]},
        {"cpu": "4"},
    ),
    (
        "a sidecar",
        {"containers": [asks({"cpu": "1"})], "initContainers": [asks({"cpu": "4"}, sidecar=True)]},
        {"cpu": "5"},
    ),
    ("its own", {"containers": [asks({"cpu": "1"})], "resources": {"limits": {"cpu": "8"}}}, {"cpu": "8"}),
    (
        "overhead where there is a limit",
        {"containers": [asks({"cpu": "1", "memory": "0"})], "overhead": {"cpu": "1", "memory": "1Gi"}},
        {"cpu": "2", "memory": "0"},
    ),
    ("none", {"containers": [asks(cpu="1")], "overhead": {"cpu": "1"}}, {}),
)
def test_limits_are_counted_as_quotas_count_them(spec: JSON, expected: dict[str, str]) -> None:
    assert as_text(pod_limits(made(PodSpec, spec))) == expected


def got(name: str = "c", allocated: JSON | None = None, **in_force: str) -> JSON:
    return {"name": name, "resources": {"requests": in_force}, "allocatedResources": allocated or {}}


def resize(reason: str) -> list[JSON]:
    return [{"type": "PodResizePending", "status": "True", "reason": reason}]


@cases(
    "status, cpu",
    ("the kubelet has said nothing", {}, "2"),
    ("not started", {"containerStatuses": [{"name": "c", "allocatedResources": {"cpu": "9"}}]}, "2"),
    ("growing: what is wanted", {"containerStatuses": [got(cpu="1")]}, "2"),
    ("shrinking: what is in force", {"containerStatuses": [got(cpu="3")]}, "3"),
    ("what is promised", {"containerStatuses": [got(cpu="1", allocated={"cpu": "4"})]}, "4"),
    ("another container", {"containerStatuses": [got("other", cpu="9")]}, "2"),
    ("deferred still counts", {"containerStatuses": [got(cpu="1")], "conditions": resize("Deferred")}, "2"),
    ("never to be had", {"containerStatuses": [got(cpu="1")], "conditions": resize("Infeasible")}, "1"),
    (
        "never to be had, but more is promised than in force",
        {"containerStatuses": [got(cpu="1", allocated={"cpu": "1500m"})], "conditions": resize("Infeasible")},
        "1500m",
    ),
)
def test_a_live_pod_holds_the_most_of_wanted_promised_and_in_force(status: JSON, cpu: str) -> None:
    spec = made(PodSpec, {"containers": [{"name": "c", **asks(cpu="2")}]})
    assert as_text(pod_requests(spec, status=made(PodStatus, status))) == {"cpu": cpu}


@cases("sidecar, cpu", ("sidecar", True, "6"), ("init container", False, "3"))
def test_of_the_init_containers_only_sidecars_are_resized(sidecar: bool, cpu: str) -> None:
    inits = [{"name": "i", **asks(cpu="3", sidecar=sidecar)}]
    spec = made(PodSpec, {"containers": [{"name": "c", **asks(cpu="1")}], "initContainers": inits})
    status = made(PodStatus, {"initContainerStatuses": [got("i", cpu="5")]})
    assert as_text(pod_requests(spec, status=status)) == {"cpu": cpu}


@cases(
    "status, expected",
    ("not started", {"allocatedResources": {"cpu": "9"}}, {"cpu": "4"}),
    ("in force", {"resources": {"requests": {"cpu": "5"}}}, {"cpu": "5"}),
    ("promised", {"resources": {"requests": {"cpu": "1"}}, "allocatedResources": {"cpu": "6"}}, {"cpu": "6"}),
    ("never", {"resources": {"requests": {"cpu": "1"}}, "conditions": resize("Infeasible")}, {"cpu": "1"}),
    ("never, and nothing else", {"resources": {}, "conditions": resize("Infeasible")}, {"cpu": "0"}),
    ("what the pod as a whole does not ask for", {"resources": {"requests": {"memory": "1Gi"}}}, {"cpu": "4"}),
)
def test_a_live_pod_holds_what_it_was_given_as_a_whole(status: JSON, expected: dict[str, str]) -> None:
    spec = made(PodSpec, {"containers": [asks(cpu="1")], "resources": {"requests": {"cpu": "4"}}})
    assert as_text(pod_requests(spec, status=made(PodStatus, status))) == expected


def test_an_amount_in_a_status_that_is_none_is_named_with_its_field() -> None:
    spec = made(PodSpec, {"containers": [{"name": "c"}]})
    status = made(PodStatus, {"containerStatuses": [got(allocated={"cpu": "much"})]})
    with pytest.raises(InvalidObjectError, match=r"^status\.containerStatuses\[0\]\.allocatedResources\.cpu: "):
        pod_requests(spec, status=status)


resource_lists = st.dictionaries(
    st.sampled_from(["cpu", "memory", "nvidia.com/gpu", "hugepages-2Mi"]),
    st.integers(0, 5000).map(lambda milli: f"{milli}m"),
)
containers = st.builds(
    lambda requests, limits, sidecar: {
        "resources": {"requests": requests, "limits": limits},
        **({"restartPolicy": "Always"} if sidecar else {}),
    },
    resource_lists,
    resource_lists,
    st.booleans(),
)
specs = st.fixed_dictionaries(
    {
        "containers": st.lists(containers, max_size=3),
        "initContainers": st.lists(containers, max_size=4),
        "overhead": resource_lists,
    },
)


@given(specs)
def test_never_negative_and_at_least_the_overhead(spec: JSON) -> None:
    requests = pod_requests(made(PodSpec, spec))
    overhead = pod_requests(made(PodSpec, {"overhead": spec["overhead"]}))
    assert all(amount >= overhead.get(name, ZERO) for name, amount in requests.items())
    assert set(overhead) <= set(requests)


@given(specs, containers, st.sampled_from(["containers", "initContainers"]), st.integers(0, 4))
def test_one_more_container_never_asks_for_less(spec: JSON, extra: JSON, where: str, at: int) -> None:
    """Wherever it is put: a workload cannot make itself smaller by adding to it."""
    before = pod_requests(made(PodSpec, spec))
    listed = list(spec[where])
    listed.insert(at, extra)
    after = pod_requests(made(PodSpec, {**spec, where: listed}))
    assert all(after.get(name, ZERO) >= amount for name, amount in before.items())


@given(specs)
def test_each_container_has_room_at_its_time(spec: JSON) -> None:
    """Every init container fits beside the sidecars before it, and all containers fit beside all sidecars."""
    requests = pod_requests(made(PodSpec, spec))
    inits = spec["initContainers"]
    for index, init in enumerate(inits):
        sidecars = [other for other in inits[:index] if other.get("restartPolicy") == "Always"]
        together = pod_requests(made(PodSpec, {"containers": [*sidecars, init], "overhead": spec["overhead"]}))
        assert all(requests[name] >= amount for name, amount in together.items())


@pytest.mark.timeout(60)
def test_thousands_of_sidecars_cost_one_step_for_each_amount() -> None:
    """A RayCluster of 3 MiB with a resource of its own in each once held the webhook for minutes."""
    own = [{f"example.com/{index}-{name}": "1" for name in range(100)} for index in range(600)]
    sidecars = [{"resources": {"requests": requests}, "restartPolicy": "Always"} for requests in own]
    last = {"resources": {"requests": {"example.com/0-0": "3"}}}
    found = requests_of(containers=[asks(cpu="1")], initContainers=[*sidecars, last])
    assert len(found) == 60_001
    assert (found["example.com/0-0"], found["example.com/7-7"]) == ("4", "1")
