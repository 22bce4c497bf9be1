"""A tenant who may write PodGroups, and gangs of each gang scheduler that muster writes PodGroups for."""

import json

from muster.model.names import GANG, GANG_SIZE, GANG_SPEC, GATE, GROUP_NAME, POD_GROUP_LABEL, QUEUE_LABEL
from muster.schedulers import SCHEDULERS
from tests.support.controller.bypass_queue import gang
from tests.support.controller.harness import Harness
from tests.support.manifests.observed import JSON, NAMESPACE, pod, queue

PRODUCTS = ("volcano", "scheduler-plugins-scheduler", "default-scheduler")
MEMORY = "64Gi"
LATER = "2027-01-01T00:00:00Z"


class Tenancy(Harness):
    """Queues q and p of 4 cpu each, and what a tenant does there; a gang of n cpu has n pods."""

    def __init__(self, product: str, *names: str) -> None:
        self.scheduler = SCHEDULERS[product]
        found = [self.gang(name) for name in names]
        super().__init__(
            workloads=[workload for workload, _ in found],
            pods=[one for _, pods in found for one in pods],
            queues=[queue(name, cpu="4", memory=MEMORY) for name in ("q", "p")],
        )

    def gang(self, name: str, cpus: int = 4, *, created: str = "", queue_name: str = "q") -> tuple[JSON, list[JSON]]:
        """A RayCluster and its pods, bound as the webhook binds them."""
        workload, pods = gang(name, cpus, created=created, labels={QUEUE_LABEL: queue_name})
        for one in pods:
            one["spec"]["schedulerName"] = self.scheduler.name
            one["metadata"]["labels"] |= {QUEUE_LABEL: queue_name, POD_GROUP_LABEL: f"ray-{name}-pg"}
            one["spec"]["schedulingGroup"] = {"podGroupName": self.group_name(name)}
        return workload, pods

    def group_name(self, name: str) -> str:
        """The name of the PodGroup of a gang."""
        return self.scheduler.group_name(f"ray-{name}-pg", f"uid-{name}")

    def group(self, name: str) -> JSON:
        """The PodGroup of a gang, to be written by the tenant."""
        return self.client.groups[self.group_name(name)]

    def by_hand(self, name: str, queue_name: str, called: str = "", **metadata: object) -> None:
        """Delete the PodGroup of a gang, and make one of the same name; `called` is that name of a plain gang's."""
        gang_name, called = called or f"ray-{name}-pg", called or self.group_name(name)
        self.client.groups.pop(called, None)
        self.client.applied.pop(called, None)
        meta = {
            "name": called,
            "namespace": NAMESPACE,
            "uid": f"hand-{called}",
            "creationTimestamp": LATER,
        }
        said = {"annotations": {GROUP_NAME: gang_name, GANG_SPEC: json.dumps({"queue": queue_name})}}
        rest = {} if self.scheduler.keeps_room else said
        spec = {"minMember": 1, "queue": queue_name}
        self.client.groups[called] = {"metadata": meta | rest | metadata, "spec": spec, "status": {}}

    def names_queue(self, name: str, queue_name: str) -> None:
        """The tenant names another queue in the PodGroup."""
        group = self.group(name)
        group["spec"]["queue"] = queue_name
        said = group["metadata"]["annotations"]
        if GANG_SPEC in said:
            said[GANG_SPEC] = json.dumps(json.loads(said[GANG_SPEC]) | {"queue": queue_name})

    async def apply(self, name: str, cpus: int = 4, *, created: str = "", queue_name: str = "q") -> None:
        """A new gang."""
        workload, pods = self.gang(name, cpus, created=created, queue_name=queue_name)
        self.set_workload(workload)
        self.client.pods |= {one["metadata"]["name"]: one for one in pods}
        await self.seen()

    async def apply_plain(self, name: str, number: int) -> None:
        """A gang of so many pods of one cpu in q, which nothing owns."""
        for count in range(number):
            labels = {GANG: name, QUEUE_LABEL: "q", POD_GROUP_LABEL: name}
            said = {GANG_SIZE: str(number), GROUP_NAME: name}
            one = pod(f"{name}-{count}", labels=labels, annotations=said, schedulingGates=[{"name": GATE}])
            one["metadata"]["creationTimestamp"] = "2026-11-21T10:00:00Z"
            one["spec"] |= {"schedulerName": self.scheduler.name, "schedulingGroup": {"podGroupName": name}}
            self.client.pods[one["metadata"]["name"]] = one
        await self.seen()

    async def seen(self) -> None:
        """The watches show what there is, and open pods get nodes."""
        self.watch()
        await self.settle()
        for name in self.open_pods():
            self.client.pods[name]["spec"]["nodeName"] = "node"
            self.client.pods[name]["status"]["phase"] = "Running"
        self.watch()
        await self.settle()

    async def later(self) -> None:
        """What was put off is due."""
        self.now += 3600
        for key in self.cluster.gangs():
            self.queue.add(key)
        await self.settle()

    def open_of(self, *names: str) -> set[str]:
        """Which of these gangs have open pods."""
        return {name for name in names if any(pod.startswith(f"{name}-") for pod in self.open_pods())}

    def used(self, queue_name: str) -> str:
        """The cpu that counts in a queue."""
        return str(self.term.ledger.used(queue_name).get("cpu", 0))
