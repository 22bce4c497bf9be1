"""LimitRanges complete a pod as the LimitRanger admission plugin does; tests/apiserver asks the real one."""

from typing import Any

import pytest

from muster.model.objects import InvalidObjectError, convert
from muster.model.pods import PodSpec
from muster.resources.amounts import as_text
from muster.resources.pod_defaults import LimitRange, with_limit_ranges
from muster.resources.pod_requests import pod_requests
from tests.support.cases import cases

JSON = dict[str, Any]


def limit_range(name: str = "limits", kind: str = "Container", **item: JSON) -> LimitRange:
    return convert({"metadata": {"name": name}, "spec": {"limits": [{"type": kind, **item}]}}, LimitRange)


def asks(requests: JSON | None = None, **limits: str) -> JSON:
    return {"resources": {"requests": requests or {}, "limits": limits}}


def completed(spec: JSON, *limit_ranges: LimitRange) -> dict[str, str]:
    return as_text(pod_requests(with_limit_ranges(convert(spec, PodSpec), limit_ranges)))


@cases(
    "item, asked, expected",
    ("default request", {"defaultRequest": {"cpu": "1"}}, asks(), {"cpu": "1"}),
    ("a default limit is the request too", {"default": {"cpu": "2"}}, asks(), {"cpu": "2"}),
    ("a bound above is the limit, and so the request", {"max": {"cpu": "3"}}, asks(), {"cpu": "3"}),
    ("a bound below is the request", {"min": {"cpu": "4"}}, asks(), {"cpu": "4"}),
    ("limit over min", {"min": {"cpu": "1"}, "max": {"cpu": "9"}, "default": {"cpu": "5"}}, asks(), {"cpu": "5"}),
    ("request over limit", {"default": {"cpu": "5"}, "defaultRequest": {"cpu": "2"}}, asks(), {"cpu": "2"}),
    ("what is asked for stays", {"defaultRequest": {"cpu": "1"}}, asks({"cpu": "7"}), {"cpu": "7"}),
    ("a limit stands in before", {"defaultRequest": {"cpu": "1"}}, asks(cpu="6"), {"cpu": "6"}),
    ("zero is said", {"defaultRequest": {"cpu": "1"}}, asks({"cpu": "0"}), {"cpu": "0"}),
    ("by resource", {"defaultRequest": {"cpu": "1"}}, asks({"memory": "1Gi"}), {"cpu": "1", "memory": "1Gi"}),
)
def test_a_container_gets_what_it_does_not_say(item: JSON, asked: JSON, expected: dict[str, str]) -> None:
    assert completed({"containers": [asked]}, limit_range(**item)) == expected


def test_every_container_gets_it_init_containers_too() -> None:
    spec = {"containers": [asks(), asks()], "initContainers": [asks(), {**asks(), "restartPolicy": "Always"}]}
    assert completed(spec, limit_range(defaultRequest={"cpu": "1"})) == {"cpu": "3"}


@pytest.mark.parametrize("kind", ["Pod", "PersistentVolumeClaim"])
def test_bounds_of_other_things_give_nothing(kind: str) -> None:
    spec = convert({"containers": [asks()]}, PodSpec)
    assert with_limit_ranges(spec, [limit_range(kind=kind, max={"cpu": "4"})]) is spec


def test_the_first_by_name_gives_and_the_next_only_what_is_still_missing() -> None:
    later = limit_range("b", defaultRequest={"cpu": "9", "memory": "1Gi"})
    earlier = limit_range("a", defaultRequest={"cpu": "1"})
    assert completed({"containers": [asks()]}, later, earlier) == {"cpu": "1", "memory": "1Gi"}


def test_a_request_of_the_whole_pod_is_completed_before_its_containers_get_defaults() -> None:
    """So the pod's own limit stands in, where without LimitRanges it would be what the containers ask for."""
    spec = {"containers": [asks()], "resources": {"limits": {"cpu": "8"}}}
    assert completed(spec, limit_range(defaultRequest={"cpu": "1"})) == {"cpu": "8"}


def test_any_limit_of_the_whole_pod_completes_all_of_its_requests_before_that() -> None:
    """What its containers ask for of cpu stands in, though its own limit is one of memory."""
    spec = {"containers": [asks({"cpu": "1"}), asks()], "resources": {"limits": {"memory": "8Gi"}}}
    assert completed(spec, limit_range(defaultRequest={"cpu": "2"})) == {"cpu": "1", "memory": "8Gi"}


def test_applied_twice_is_applied_once() -> None:
    ranges = [limit_range(default={"cpu": "5"}, defaultRequest={"cpu": "2"}, min={"memory": "1Mi"})]
    spec = convert({"containers": [asks()], "resources": {"limits": {"memory": "8Gi"}}}, PodSpec)
    once = with_limit_ranges(spec, ranges)
    twice = with_limit_ranges(once, ranges)
    assert (twice.containers, pod_requests(twice)) == (once.containers, pod_requests(once))


def test_an_amount_that_is_none_is_named_with_its_field() -> None:
    spec = convert({"containers": [asks()], "resources": {"limits": {"cpu": "much"}}}, PodSpec)
    with pytest.raises(InvalidObjectError, match=r"^T\.resources\.limits\.cpu: "):
        with_limit_ranges(spec, [limit_range(defaultRequest={"cpu": "1"})], path="T")
