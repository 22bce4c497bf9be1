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
from tests.support.manifests.observed import JSON, made


def asks(limits: JSON | None = None, *, sidecar: bool = False, **requests: str) -> JSON:
    """A container; `gpu` is NVIDIA's."""
    named = {"nvidia.com/gpu" if name == "gpu" else name: value for name, value in requests.items()}
    always = {"restartPolicy": "Always"} if sidecar else {}
    return {"resources": {"requests": named, "limits": limits or {}}, **always}


def requests_of(**spec: Any) -> dict[str, str]:  # noqa: ANN401 - a pod's spec as in a manifest
    return as_text(pod_requests(made(PodSpec, spec)))


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({"containers": []}, {}, id="nothing"),
        pytest.param(
            {"containers": [asks(cpu="1", memory="1Gi"), asks(cpu="500m", gpu="1")]},
            {"cpu": "1500m", "memory": "1Gi", "nvidia.com/gpu": "1"},
            id="containers add up",
        ),
        pytest.param(
            {"containers": [asks(cpu="2")], "initContainers": [asks(cpu="5"), asks(cpu="3")]},
            {"cpu": "5"},
            id="init containers run one after the other",
        ),
        pytest.param(
            {"containers": [asks(cpu="6")], "initContainers": [asks(cpu="5", memory="1Gi")]},
            {"cpu": "6", "memory": "1Gi"},
            id="the larger for each resource by itself",
        ),
        pytest.param(
            {"containers": [asks(cpu="2")], "initContainers": [asks(cpu="1", sidecar=True), asks(cpu="5")]},
            {"cpu": "6"},
            id="sidecar before init: both at once",
        ),
        pytest.param(
            {"containers": [asks(cpu="2")], "initContainers": [asks(cpu="5"), asks(cpu="1", sidecar=True)]},
            {"cpu": "5"},
            id="init before sidecar: alone",
        ),
        pytest.param(
            {
                "containers": [asks(cpu="1")],
                "initContainers": [
                    *(asks(cpu="1", sidecar=True), asks(cpu="3"), asks(cpu="2", sidecar=True), asks(cpu="3")),
                ],
            },
            {"cpu": "6"},
            id="two sidecars between inits",
        ),
        pytest.param(
            {"containers": [asks(cpu="4")], "initContainers": [asks(cpu="1", sidecar=True)]},
            {"cpu": "5"},
            id="a sidecar goes on beside the containers",
        ),
        pytest.param(
            {"containers": [asks({"cpu": "2", "nvidia.com/gpu": "1"}, cpu="1")]},
            {"cpu": "1", "nvidia.com/gpu": "1"},
            id="a limit stands in where a request is missing",
        ),
        pytest.param(
            {"containers": [asks(cpu="1")], "initContainers": [asks({"cpu": "3"})]},
            {"cpu": "3"},
            id="also in init containers",
        ),
        pytest.param(
            {"containers": [asks(cpu="1", memory="1Gi")], "overhead": {"cpu": "250m", "memory": "64Mi"}},
            {"cpu": "1250m", "memory": "1088Mi"},
            id="overhead on top",
        ),
        pytest.param(
            {
                "containers": [asks(cpu="1", gpu="3")],
                "resources": {"requests": {"cpu": "6"}},
                "overhead": {"cpu": "250m"},
            },
            {"cpu": "6250m", "nvidia.com/gpu": "3"},
            id="pod level replaces cpu, gpus stay the containers'",
        ),
        pytest.param(
            {"containers": [asks(cpu="4")], "resources": {"requests": {"cpu": "1"}}},
            {"cpu": "1"},
            id="pod level replaces, also downwards",
        ),
        pytest.param(
            {"containers": [asks(gpu="1")], "resources": {"requests": {"nvidia.com/gpu": "8"}}},
            {"nvidia.com/gpu": "1"},
            id="no gpu at pod level",
        ),
        pytest.param(
            {"containers": [asks(cpu="1")], "resources": {"limits": {"cpu": "8", "memory": "4Gi"}}},
            {"cpu": "1", "memory": "4Gi"},
            id="a pod-level limit stands in only where no container asks",
        ),
        pytest.param(
            {
                "containers": [asks(cpu="1")],
                "initContainers": [asks(cpu="5")],
                "resources": {"limits": {"cpu": "6"}},
            },
            {"cpu": "5"},
            id="a pod-level limit stands for what all containers ask, init containers too",
        ),
        pytest.param(
            {
                "containers": [asks({"hugepages-2Mi": "4Mi"})],
                "resources": {"limits": {"hugepages-2Mi": "8Mi"}},
            },
            {"hugepages-2Mi": "8Mi"},
            id="huge pages of the pod are its limit",
        ),
        pytest.param(
            {"containers": [asks(cpu="0.1m"), asks(cpu="0.1m"), asks(memory="1n")]},
            {"cpu": "2m", "memory": "1m"},
            id="each amount is rounded up to milli before adding",
        ),
        pytest.param(
            {"containers": [{"resources": {"requests": {"cpu": 1, "memory": 0.5}}}]},
            {"cpu": "1", "memory": "500m"},
            id="numbers",
        ),
    ],
)
def test_golden_vectors(spec: JSON, expected: dict[str, str]) -> None:
    assert requests_of(**spec) == expected


@pytest.mark.parametrize(
    ("spec", "line"),
    [
        pytest.param(
            {"containers": [asks(cpu="1"), asks(cpu="one")]},
            'T.containers[1].resources.requests.cpu: "one" is not a quantity such as 500m, 2 or 1.5Gi',
            id="container request",
        ),
        pytest.param(
            {"initContainers": [asks({"memory": "1GB"})]},
            'T.initContainers[0].resources.limits.memory: "1GB" is not a quantity such as 500m, 2 or 1.5Gi',
            id="init container limit",
        ),
        pytest.param(
            {"overhead": {"cpu": "-1"}},
            'T.overhead.cpu: "-1" is negative; a resource is 0 or more',
            id="negative overhead",
        ),
        pytest.param(
            {"resources": {"requests": {"cpu": "1K"}}},
            'T.resources.requests.cpu: "1K" is not a quantity such as 500m, 2 or 1.5Gi',
            id="pod level",
        ),
    ],
)
def test_an_amount_that_is_none_is_named_with_its_field(spec: JSON, line: str) -> None:
    with pytest.raises(InvalidObjectError) as refused:
        pod_requests(made(PodSpec, spec), path="T")
    assert str(refused.value) == line


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({"containers": [asks({"cpu": "1"}), asks({"cpu": "2"}), asks(cpu="9")]}, {"cpu": "3"}, id="a sum"),
        pytest.param(
            {"containers": [asks({"cpu": "1"})], "initContainers": [asks({"cpu": "4"}), asks({"cpu": "2"})]},
            {"cpu": "4"},
            id="the largest init container",
        ),
        pytest.param(
            {"containers": [asks({"cpu": "1"})], "initContainers": [asks({"cpu": "4"}, sidecar=True)]},
            {"cpu": "5"},
            id="a sidecar",
        ),
        pytest.param(
            {"containers": [asks({"cpu": "1"})], "resources": {"limits": {"cpu": "8"}}}, {"cpu": "8"}, id="its own"
        ),
        pytest.param(
            {"containers": [asks({"cpu": "1", "memory": "0"})], "overhead": {"cpu": "1", "memory": "1Gi"}},
            {"cpu": "2", "memory": "0"},
            id="overhead where there is a limit",
        ),
        pytest.param({"containers": [asks(cpu="1")], "overhead": {"cpu": "1"}}, {}, id="none"),
    ],
)
def test_limits_are_counted_as_quotas_count_them(spec: JSON, expected: dict[str, str]) -> None:
    assert as_text(pod_limits(made(PodSpec, spec))) == expected


def got(name: str = "c", allocated: JSON | None = None, **in_force: str) -> JSON:
    return {"name": name, "resources": {"requests": in_force}, "allocatedResources": allocated or {}}


def resize(reason: str) -> list[JSON]:
    return [{"type": "PodResizePending", "status": "True", "reason": reason}]


@pytest.mark.parametrize(
    ("status", "cpu"),
    [
        pytest.param({}, "2", id="the kubelet has said nothing"),
        pytest.param({"containerStatuses": [{"name": "c", "allocatedResources": {"cpu": "9"}}]}, "2", id="not started"),
        pytest.param({"containerStatuses": [got(cpu="1")]}, "2", id="growing: what is wanted"),
        pytest.param({"containerStatuses": [got(cpu="3")]}, "3", id="shrinking: what is in force"),
        pytest.param({"containerStatuses": [got(cpu="1", allocated={"cpu": "4"})]}, "4", id="what is promised"),
        pytest.param({"containerStatuses": [got("other", cpu="9")]}, "2", id="another container"),
        pytest.param(
            {"containerStatuses": [got(cpu="1")], "conditions": resize("Deferred")}, "2", id="deferred still counts"
        ),
        pytest.param(
            {"containerStatuses": [got(cpu="1")], "conditions": resize("Infeasible")}, "1", id="never to be had"
        ),
        pytest.param(
            {"containerStatuses": [got(cpu="1", allocated={"cpu": "1500m"})], "conditions": resize("Infeasible")},
            "1500m",
            id="never to be had, but more is promised than in force",
        ),
    ],
)
def test_a_live_pod_holds_the_most_of_wanted_promised_and_in_force(status: JSON, cpu: str) -> None:
    spec = made(PodSpec, {"containers": [{"name": "c", **asks(cpu="2")}]})
    assert as_text(pod_requests(spec, status=made(PodStatus, status))) == {"cpu": cpu}


@pytest.mark.parametrize(
    ("sidecar", "cpu"), [pytest.param(True, "6", id="sidecar"), pytest.param(False, "3", id="init container")]
)
def test_of_the_init_containers_only_sidecars_are_resized(sidecar: bool, cpu: str) -> None:  # noqa: FBT001
    inits = [{"name": "i", **asks(cpu="3", sidecar=sidecar)}]
    spec = made(PodSpec, {"containers": [{"name": "c", **asks(cpu="1")}], "initContainers": inits})
    status = made(PodStatus, {"initContainerStatuses": [got("i", cpu="5")]})
    assert as_text(pod_requests(spec, status=status)) == {"cpu": cpu}


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        pytest.param({"allocatedResources": {"cpu": "9"}}, {"cpu": "4"}, id="not started"),
        pytest.param({"resources": {"requests": {"cpu": "5"}}}, {"cpu": "5"}, id="in force"),
        pytest.param(
            {"resources": {"requests": {"cpu": "1"}}, "allocatedResources": {"cpu": "6"}}, {"cpu": "6"}, id="promised"
        ),
        pytest.param(
            {"resources": {"requests": {"cpu": "1"}}, "conditions": resize("Infeasible")}, {"cpu": "1"}, id="never"
        ),
        pytest.param({"resources": {}, "conditions": resize("Infeasible")}, {"cpu": "0"}, id="never, and nothing else"),
        pytest.param(
            {"resources": {"requests": {"memory": "1Gi"}}}, {"cpu": "4"}, id="what the pod as a whole does not ask for"
        ),
    ],
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
