"""What is compared of a PodGroup, and muster's own as the sum of its pods, so that a rule can count them otherwise."""

from __future__ import annotations

from dataclasses import dataclass, replace

from muster.cli.plan.context import PlanContext
from muster.cli.plan.entries import plan
from muster.cli.plan.manifests import Document
from muster.gangs.intent import Defaults
from muster.model.names import MANAGED
from muster.model.objects import convert
from muster.model.pods import PodSpec
from muster.resources.amounts import Resources, as_text, parse_resources, times, total
from muster.resources.pod_requests import pod_requests
from muster.schedulers import SCHEDULERS
from muster.validation.workload import judge
from muster.workloads import kind_of
from tests.conformance.case import Case, Manifest

PRIORITIES = {"urgent": 1000, "modest": 10}
_DEFAULTS = Defaults(schedulers=SCHEDULERS)


@dataclass(frozen=True, order=True)
class Facts:
    """The fields of a PodGroup that must agree. Amounts of zero are left out: they ask for nothing."""

    name: str
    min_member: int
    min_resources: tuple[tuple[str, str], ...]
    queue: str
    priority_class: str
    topology: str


@dataclass(frozen=True)
class Pods:
    """So many pods of a role, and what each is made of; they are `late` where they come when others are ready."""

    spec: PodSpec
    count: int
    replicas: int
    late: bool = False


@dataclass(frozen=True)
class Group:
    """A PodGroup that can still be counted otherwise; `given` are the minResources that the user wrote."""

    name: str
    min_member: int
    pods: dict[str, Pods]
    given: Resources | None
    queue: str
    priority_class: str
    topology: str

    @property
    def facts(self) -> Facts:
        """What can be seen of it."""
        counted = total(times(pod_requests(pods.spec), pods.count) for pods in self.pods.values() if pods.count)
        resources = self.given if self.given is not None else counted
        return Facts(self.name, self.min_member, _visible(resources), self.queue, self.priority_class, self.topology)

    def counting(self, counts: dict[str, int]) -> Group:
        """The group with other numbers of pods."""
        return replace(
            self, pods={name: replace(pods, count=counts.get(name, pods.count)) for name, pods in self.pods.items()}
        )


def facts_of(pod_group: Manifest) -> Facts:
    """What is compared of a PodGroup, whoever wrote it."""
    spec = pod_group["spec"]
    topology = spec.get("networkTopology", {})
    return Facts(
        pod_group["metadata"]["name"],
        spec.get("minMember", 0),
        _visible(parse_resources(spec.get("minResources", {}), path="minResources")),
        spec.get("queue", ""),
        spec.get("priorityClassName", ""),
        " ".join(str(topology[name]) for name in ("mode", "highestTierAllowed") if name in topology),
    )


def muster_says(case: Case) -> Group | str:
    """The group of `muster plan`, or why there is none: its message."""
    manifest, metadata = case.manifest, case.manifest["metadata"]
    managed = {**manifest, "metadata": {**metadata, "labels": {**metadata.get("labels", {}), MANAGED: "true"}}}
    documents = [
        Document(
            "PriorityClass",
            {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "value": value}
            | {"metadata": {"name": name}},
        )
        for name, value in PRIORITIES.items()
    ]
    documents += [Document("its context", one) for one in case.context]
    entry = plan([Document("the case", managed), *documents], _DEFAULTS)[0].data()
    if entry["podGroup"] is None:
        return str(entry["verdict"]["message"])

    kind = kind_of(manifest["apiVersion"], manifest["kind"])
    assert kind is not None
    known = PlanContext()
    assert all(known.learn(document) for document in documents)
    namespaced = {**managed, "metadata": {"namespace": "default", **managed["metadata"]}}
    verdict = judge(kind, convert(namespaced, kind.decoded), known.context("default", _DEFAULTS))
    workload, gang = verdict.workload, verdict.gang
    assert workload is not None
    assert gang is not None
    facts = facts_of(entry["podGroup"])
    given = workload.policy.min_resources
    group = Group(
        name=facts.name,
        min_member=facts.min_member,
        pods={
            role.name: Pods(
                role.template.spec, counted.minimum + counted.reserved, role.replicas, late=not counted.minimum
            )
            for role in workload.roles
            if (counted := gang.role(role.name)) is not None
        },
        given=None if given is None else parse_resources(given, path="minResources"),
        queue=facts.queue,
        priority_class=facts.priority_class,
        topology=facts.topology,
    )
    assert group.facts == facts, "a plan is the sum of its pods"
    return group


def _visible(resources: Resources) -> tuple[tuple[str, str], ...]:
    return tuple((name, text) for name, text in as_text(resources).items() if text != "0")
