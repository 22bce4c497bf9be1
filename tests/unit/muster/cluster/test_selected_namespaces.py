"""The controller leaves workloads alone in namespaces for which muster is not installed."""

import pytest

from muster.cluster.cluster import Cluster
from muster.model.objects import Namespace
from muster.model.selectors import parse_selector
from muster.workloads import kind_of
from tests.support.manifests.observed import made, namespace, ray_cluster


@pytest.mark.parametrize(
    ("selector", "labels", "unselected"),
    [
        ("", {}, False),
        ("muster=pilot", {"muster": "pilot"}, False),
        ("muster=pilot", {"muster": "team"}, True),
        ("muster in (pilot, team)", {"muster": "team"}, False),
        ("!legacy", {"legacy": ""}, True),
        ("kubernetes.io/metadata.name notin (team)", {}, True),
    ],
)
def test_a_namespace_is_selected_by_its_labels(selector: str, labels: dict[str, str], unselected: bool) -> None:
    cluster = Cluster(parse_selector(selector) if selector else None)
    kind = kind_of("ray.io/v1", "RayCluster")
    assert kind is not None
    cluster.namespaces.replace_all([made(Namespace, namespace(labels=labels))])
    assert cluster.scope_of(kind, made(kind.decoded, ray_cluster())).unselected is unselected
