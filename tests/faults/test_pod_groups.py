"""PodGroups of Kubernetes' own in version v1, which no Kubernetes that can be built serves: a CRD stands in for it.

An apiserver serves no CRD in a version of its own API. So the CRD has another group, and the proxy in front of the real
apiserver has it as the one of Kubernetes 1.38.
"""

import asyncio

import pytest

from hack.testbed import Testbed, wait_for
from hack.testbed.api import Api
from muster.cluster.served import choose_versions
from muster.kube.reflector import Reflector, Watched
from muster.kube.store import Store
from muster.model.objects import PodGroup
from muster.model.resource import Resource
from muster.schedulers import gang_name, named
from muster.schedulers.kubernetes import Kubernetes
from tests.support.faults.apiserver import FaultyApiserver, eventually
from tests.support.faults.things import Things, crd, through
from tests.support.manifests.members import DEFINITIONS

_STUB = Resource("stub.example.com", "v1", "podgroups", "PodGroup")


async def test_pod_groups_are_written_and_watched_in_v1_where_that_is_served(
    cluster: Testbed, proxy: FaultyApiserver, things: Things, calls: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Kubernetes, "version", Kubernetes.version)
    (scheduler,) = named("kubernetes").values()
    async with through(proxy, cluster) as client:
        await choose_versions(client, [scheduler])
        assert scheduler.version == "v1beta1", "no version is served"
        calls.done("POST", DEFINITIONS, crd(_STUB))
        wait_for("PodGroups to be served", lambda: calls("GET", f"/apis/{_STUB.api_version}/podgroups").ok)
        proxy.renamed = {f"{Kubernetes.group}/v1": _STUB.api_version}
        await choose_versions(client, [scheduler])
        assert scheduler.version == "v1"
        metadata = {"name": "gang", "namespace": things.namespace}
        group = scheduler.relaxed_pod_group("q", metadata)
        await client.create(scheduler.resource, group, things.namespace, deadline=60)
        store: Store[PodGroup] = Store()
        watching = asyncio.create_task(
            Reflector(client, Watched(scheduler.resource, scheduler.pod_groups, store)).run()
        )
        try:
            await eventually(lambda: [gang_name(one) for one in store] == ["gang"])
            assert [(one.spec.queue, one.spec.min_member) for one in store] == [("q", 1)]
            await client.delete(scheduler.resource, "gang", things.namespace)
            await eventually(lambda: store.synced and not len(store))
        finally:
            watching.cancel()
            await asyncio.wait({watching})
    assert not [one.path for one in proxy.requests if "/v1beta1/podgroups" in one.path]
