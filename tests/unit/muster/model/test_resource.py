import pytest

from muster.model.resource import LEASES, NAMESPACES, POD_GROUPS, PODS, QUEUES, Resource
from tests.support.cases import cases


@cases(
    "resource, where, path",
    ("core group, all namespaces", PODS, (), "/api/v1/pods"),
    ("core group, one namespace", PODS, ("ns",), "/api/v1/namespaces/ns/pods"),
    ("named group", POD_GROUPS, ("ns", "g"), "/apis/scheduling.volcano.sh/v1beta1/namespaces/ns/podgroups/g"),
    ("cluster-scoped", QUEUES, (None, "q"), "/apis/scheduling.volcano.sh/v1beta1/queues/q"),
    ("empty namespace is none", QUEUES, ("", "q"), "/apis/scheduling.volcano.sh/v1beta1/queues/q"),
    ("a namespace itself", NAMESPACES, (None, "ns"), "/api/v1/namespaces/ns"),
    ("encoded", QUEUES, (None, "a/b?c"), "/apis/scheduling.volcano.sh/v1beta1/queues/a%2Fb%3Fc"),
)
def test_path(resource: Resource, where: tuple[str | None, ...], path: str) -> None:
    """Every part of a path stands where the apiserver looks for it, and cannot become another part."""
    assert resource.path(*where) == path


@cases(
    "resource, where",
    ("a namespace too many", QUEUES, ("ns", "q")),
    ("a namespace missing", PODS, (None, "p")),
    ("a name that climbs", PODS, ("ns", "..")),
    ("an empty name, which would be the collection", PODS, ("ns", "")),
)
def test_path_refuses(resource: Resource, where: tuple[str | None, ...]) -> None:
    """A wrong place is an error here, never a request for something else."""
    with pytest.raises(ValueError, match=r"."):
        resource.path(*where)


def test_api_version() -> None:
    """The core group has no name."""
    assert (PODS.api_version, LEASES.api_version) == ("v1", "coordination.k8s.io/v1")
