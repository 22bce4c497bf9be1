import pytest

from muster.model.resource import LEASES, NAMESPACES, POD_GROUPS, PODS, QUEUES, Resource


@pytest.mark.parametrize(
    ("resource", "where", "path"),
    [
        pytest.param(PODS, (), "/api/v1/pods", id="core group, all namespaces"),
        pytest.param(PODS, ("ns",), "/api/v1/namespaces/ns/pods", id="core group, one namespace"),
        pytest.param(PODS, ("ns", "p", "status"), "/api/v1/namespaces/ns/pods/p/status", id="subresource"),
        pytest.param(
            POD_GROUPS, ("ns", "g"), "/apis/scheduling.volcano.sh/v1beta1/namespaces/ns/podgroups/g", id="named group"
        ),
        pytest.param(QUEUES, (None, "q"), "/apis/scheduling.volcano.sh/v1beta1/queues/q", id="cluster-scoped"),
        pytest.param(QUEUES, ("", "q"), "/apis/scheduling.volcano.sh/v1beta1/queues/q", id="empty namespace is none"),
        pytest.param(NAMESPACES, (None, "ns"), "/api/v1/namespaces/ns", id="a namespace itself"),
        pytest.param(QUEUES, (None, "a/b?c"), "/apis/scheduling.volcano.sh/v1beta1/queues/a%2Fb%3Fc", id="encoded"),
    ],
)
def test_path(resource: Resource, where: tuple[str | None, ...], path: str) -> None:
    """Every part of a path stands where the apiserver looks for it, and cannot become another part."""
    assert resource.path(*where) == path


@pytest.mark.parametrize(
    ("resource", "where"),
    [
        pytest.param(QUEUES, ("ns", "q"), id="a namespace too many"),
        pytest.param(PODS, (None, "p"), id="a namespace missing"),
        pytest.param(PODS, ("ns", ".."), id="a name that climbs"),
        pytest.param(PODS, ("ns", ""), id="an empty name, which would be the collection"),
        pytest.param(PODS, ("ns", None, "status"), id="a subresource of nothing"),
    ],
)
def test_path_refuses(resource: Resource, where: tuple[str | None, ...]) -> None:
    """A wrong place is an error here, never a request for something else."""
    with pytest.raises(ValueError, match=r"."):
        resource.path(*where)


def test_api_version() -> None:
    """The core group has no name."""
    assert (PODS.api_version, LEASES.api_version) == ("v1", "coordination.k8s.io/v1")
