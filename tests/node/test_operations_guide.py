"""Every command of the pages for operators, as it stands there, on a cluster in which a kubelet runs muster's pods."""

from collections.abc import Iterator

import pytest

from hack.testbed import Testbed
from tests.support.cluster.helm_release import Release
from tests.support.cluster.operations_guide import STEPS, Cluster, Step

# A page, step by step; what its commands do is tested where each of them is.
pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def cluster(real: Testbed, release: Release) -> Iterator[Cluster]:  # noqa: ARG001 (it is installed)
    """With muster installed, as the tests before this one have left it."""
    yield Cluster(real)
    for left in ("namespace/team-a", "clusterrolebinding/oncall-release"):
        real.kubectl("delete", left, "--ignore-not-found", "--wait=false")


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.begins)
def test_the_command_does_what_the_page_says(cluster: Cluster, step: Step) -> None:
    step.before(cluster)
    step.holds(cluster, cluster.run(step.text))
