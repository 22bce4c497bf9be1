"""PodGroups that `muster withdraw` makes; tests/apiserver/test_withdraw.py looks at a real cluster."""

import pytest

from muster.cli.release.pod_groups import make_missing, substitute
from muster.model.names import GANG, GROUP_NAME
from muster.model.pods import Pod
from muster.schedulers import PRODUCTS, named
from tests.support.cases import cases
from tests.support.faults.apiserver import Answer, FaultyApiserver, failure, listing, reply
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


@cases(
    "scheduler, answer, done, words",
    ("made", "volcano", reply(listing(1)), True, ""),
    ("no CRD", "volcano", failure(404, "NotFound"), False, "cannot list PodGroups"),
    ("a scheduler of another time", "strange", reply(listing(1)), False, "its PodGroup is not known"),
)
async def test_a_release_that_leaves_pods_without_a_podgroup_says_so(
    capsys: pytest.CaptureFixture[str],
    scheduler: str,
    answer: Answer,
    done: bool,
    words: str,
) -> None:
    """While every controller is dead."""
    manifest = pod("late-0", annotations={GROUP_NAME: GANG_NAME}, labels={GANG: GANG_NAME}, schedulerName=scheduler)
    async with FaultyApiserver.serving() as server, server.client() as client:
        server.on("LIST", answer)
        server.on("POST", reply({}))
        found = await make_missing(client, [made(Pod, manifest)], named("volcano"), namespace=None, dry_run=False)
        assert (found, bool(server.seen("POST"))) == (done, done)
    assert words in capsys.readouterr().err
