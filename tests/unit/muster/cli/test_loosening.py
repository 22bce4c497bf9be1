"""PodGroups that `muster withdraw` makes; tests/apiserver/test_withdraw.py looks at a real cluster."""

import pytest

from muster.cli.release.pod_groups import substitute
from muster.model.names import GROUP_NAME
from muster.model.pods import Pod
from muster.schedulers import PRODUCTS
from tests.support.manifests.observed import NAMESPACE, made, pod

GANG_NAME = "train"


@pytest.mark.parametrize("product", ["volcano", "coscheduling", "kubernetes"])
@pytest.mark.parametrize("owner", [{"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "9" * 8}, None])
def test_the_missing_podgroup_has_the_name_that_its_pods_are_bound_to(
    product: str, owner: dict[str, str] | None
) -> None:
    """Those of plain gangs are bound without the UID of an owner."""
    scheduler = PRODUCTS[product]()
    name = scheduler.group_name(GANG_NAME, "")
    manifest = pod(
        "train-0",
        owner={**owner, "controller": True} if owner else None,
        labels={"scheduling.x-k8s.io/pod-group": name},
        annotations={GROUP_NAME: GANG_NAME},
        schedulerName=scheduler.name,
        schedulingGroup={"podGroupName": name},
    )
    made_for = substitute(scheduler, NAMESPACE, GANG_NAME, [made(Pod, manifest)])
    assert made_for["metadata"]["name"] == name == GANG_NAME
