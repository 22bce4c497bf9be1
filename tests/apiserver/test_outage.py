"""How narrow the webhooks are: with no webhook running, only what concerns gangs is in anybody's way."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from muster.names import QUEUE_LABEL
from tests import builders
from tests.builders import pytorch_job, ray_cluster

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hack.testbed.muster import MusterInstall
    from tests.apiserver.desk import Desk, Manifest


@pytest.fixture
def down(desk: Desk, webhook: MusterInstall) -> Iterator[Manifest]:
    """A labelled RayCluster from before, and no webhook."""
    desk.create(builders.queue(desk.namespace, cpu="8"))
    cluster = desk.create(ray_cluster("ours").label(QUEUE_LABEL, desk.namespace).manifest())
    webhook.stop_webhooks()
    yield cluster
    desk.kubectl("delete", "queue", desk.namespace)


def _pod(**labels: str) -> Manifest:
    return {**builders.pod("p"), "metadata": {"name": "p", "labels": labels}}


_RAY = {"ray.io/cluster": "ours"}
_KUBEFLOW = {"training.kubeflow.org/job-name": "ours"}


@pytest.mark.parametrize(
    ("manifest", "namespace"),
    [
        pytest.param(_pod(app="web"), "", id="plain pod"),
        pytest.param(_pod(**_RAY), "kube-system", id="Ray's pod in kube-system"),
        pytest.param(_pod(**_RAY), "muster-system", id="Ray's pod in muster's namespace"),
        pytest.param(_pod(**_RAY, **{"ray.io/node-type": "redis-cleanup"}), "", id="KubeRay's clean-up pod"),
        pytest.param(ray_cluster("theirs").manifest(), "", id="RayCluster without labels"),
        pytest.param(pytorch_job("theirs").manifest(), "", id="PyTorchJob without policy"),
    ],
)
@pytest.mark.usefixtures("down")
def test_created_all_the_same(desk: Desk, manifest: Manifest, namespace: str) -> None:
    """What is none of muster's business makes no call."""
    target = {**manifest, "metadata": {**manifest["metadata"], "namespace": namespace or desk.namespace}}
    if namespace:
        desk = type(desk)(desk.testbed, namespace, desk.api)
    assert desk.create(target, "--dry-run=server")["metadata"]["name"]


@pytest.mark.parametrize(
    ("manifest", "called"),
    [
        pytest.param(_pod(**_RAY), "ray.pods.muster.dev", id="Ray's pod"),
        pytest.param(_pod(**_KUBEFLOW), "kubeflow.pods.muster.dev", id="Kubeflow's pod"),
        pytest.param(
            ray_cluster("new").label(QUEUE_LABEL, "default").manifest(),
            "workloads.muster.dev",
            id="labelled RayCluster",
        ),
        pytest.param(
            pytorch_job("new").policy(minAvailable=1).manifest(), "workloads.muster.dev", id="PyTorchJob with a policy"
        ),
    ],
)
@pytest.mark.usefixtures("down")
def test_not_created_meanwhile(desk: Desk, manifest: Manifest, called: str) -> None:
    """What might be a part of a gang waits for muster, and the answer names the webhook."""
    assert f'failed calling webhook "{called}"' in desk.refused("create", "-f-", manifest=manifest)


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(("annotate", "raycluster", "ours", "note=1"), id="annotation"),
        pytest.param(
            ("patch", "raycluster", "ours", "--type=merge", '--patch={"metadata": {"finalizers": ["example.com/f"]}}'),
            id="finalizer",
        ),
        pytest.param(
            (
                *("patch", "raycluster", "ours", "--subresource=status", "--type=merge"),
                '--patch={"status": {"state": "ready"}}',
            ),
            id="status",
        ),
        pytest.param(("delete", "raycluster", "ours", "--wait=false"), id="deletion"),
    ],
)
@pytest.mark.usefixtures("down")
def test_ours_can_be_kept_in_order(desk: Desk, change: tuple[str, ...]) -> None:
    """Updates that change neither spec nor labels, and deletion, make no call."""
    desk.kubectl(*change)
    if "finalizers" in change[-1]:
        # With a finalizer it stays for a while, and its last update makes no call either.
        desk.kubectl("delete", "raycluster", "ours", "--wait=false")
        desk.kubectl("patch", "raycluster", "ours", "--type=merge", '--patch={"metadata": {"finalizers": []}}')


@pytest.mark.usefixtures("down")
def test_spec_of_ours_waits_for_muster(desk: Desk) -> None:
    """A change of the spec is judged, or not made."""
    patch = '--patch={"spec": {"rayVersion": "2.53.0"}}'
    assert 'failed calling webhook "workloads.muster.dev"' in desk.refused(
        "patch", "raycluster", "ours", "--type=merge", patch
    )
