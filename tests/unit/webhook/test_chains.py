"""A pod at the end of every chain of owners is its gang's: the ways up that webhook and controller know."""

from typing import Any

import jsonpatch
import pytest

from muster.cluster.stores import UnmanagedPods
from muster.model.names import GANG, GATE, QUEUE_LABEL, TASK_SPEC
from muster.model.pods import Pod
from muster.workloads import WATCHED_KINDS, Kind, kind_of
from tests.support.controller.stores import fill_outsiders
from tests.support.manifests.members import MPI_JOB_V1, TEMPLATE, WITH_WORKLOAD, Chain, Member
from tests.support.manifests.observed import JSON, NAMESPACE, made
from tests.support.webhook.admission_reviews import Reader, knowing, patch_of, request
from webhook.reviews.pods import review_pod

_CHAINS = (*WITH_WORKLOAD, MPI_JOB_V1)
_EACH = pytest.mark.parametrize("chain", _CHAINS, ids=lambda one: str(one.title))
_KNOWN = "{}: {}, but muster knows pods only of the kinds of KINDS, directly or by a batch Job (`pods_of_jobs`)"


def _made(chain: Chain) -> tuple[Member, list[JSON]]:
    """A pod's description, and the objects above it as the apiserver has them."""
    there: list[JSON] = []

    def create(manifest: JSON) -> JSON:
        named = {"namespace": NAMESPACE, "uid": f"uid-{len(there)}", **manifest["metadata"]}
        there.append({**manifest, "metadata": named})
        return there[-1]

    return chain.made(create, "demo", {QUEUE_LABEL: "q"}), there


def _kind(manifest: JSON) -> Kind | None:
    found = kind_of(manifest["apiVersion"], manifest["kind"])
    return found if found in WATCHED_KINDS else None


def test_every_kind_has_a_chain() -> None:
    tops = {_kind(chain.owners("demo", TEMPLATE)[0]) for chain in _CHAINS}
    missing = [f"{kind.kind} {kind.versions[0]}" for kind in WATCHED_KINDS if kind not in tops]
    assert missing == [], "who controls their pods? say so in WITH_WORKLOAD of tests/support/manifests/members.py"


@_EACH
async def test_a_pod_at_the_end_of_its_chain_is_held(chain: Chain) -> None:
    """Of its owners the watches have shown the workloads; what else stands between is read."""
    member, above = _made(chain)
    reads: dict[str, Any] = {f"{one['kind'].lower()}s/{one['metadata']['name']}": one for one in above}
    seen = [one for one in above if _kind(one) or kind_of(one["apiVersion"], one["kind"]) is None]
    knowledge = knowing(Reader(reads), workloads=seen)
    new = member.pod()
    answer = await review_pod(request(new), knowledge)
    owners = " over ".join(one["kind"] for one in above)
    assert answer.patch, _KNOWN.format(chain.title, f"{owners} over the pod")
    patched = jsonpatch.apply_patch(new, patch_of(answer))
    assert patched["spec"]["schedulingGates"] == [{"name": GATE}]
    assert patched["metadata"]["labels"][GANG] == member.group
    assert patched["metadata"]["annotations"][TASK_SPEC] == chain.role


@_EACH
def test_a_pod_that_came_without_muster_is_known_for_its_workloads(chain: Chain) -> None:
    """By its labels where a Job stands between: as long as it lives, its workload is left alone."""
    member, above = _made(chain)
    gang = next(one for one in above if (kind := _kind(one)) is not None and kind.owns_gang)
    kind = kind_of(gang["apiVersion"], gang["kind"])
    assert kind is not None
    unmanaged_pods = UnmanagedPods()
    new = member.pod()
    new["metadata"] |= {"name": "before", "namespace": NAMESPACE}
    fill_outsiders(unmanaged_pods, [made(Pod, new)])
    found = unmanaged_pods.of(kind, made(kind.decoded, gang).metadata)
    assert [pod.metadata.name for pod in found] == ["before"], _KNOWN.format(chain.title, f"not of {kind.kind}")
