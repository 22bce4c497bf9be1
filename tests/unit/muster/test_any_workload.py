"""What holds for every workload of every kind, whatever its numbers and templates."""

import copy
from typing import Any

import jsonpatch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from muster.cli.plan.entries import plan
from muster.cli.plan.manifests import Document
from muster.gangs.intent import Defaults, Intent
from muster.gangs.pod_patch import inject, is_free, membership
from muster.gangs.roles import Gang
from muster.model.modes import GateMode
from muster.model.names import GATE
from muster.model.objects import InvalidObjectError, convert
from muster.model.pods import Pod
from muster.resources.quantity import ZERO, parse_quantity
from muster.schedulers import SCHEDULERS
from muster.validation.context import Context
from muster.validation.workload import Verdict
from muster.workloads import Workload
from tests.support.manifests.families import judged
from tests.support.manifests.generators import pods, workloads
from tests.support.manifests.observed import JSON, template

DEFAULTS = Defaults(schedulers=SCHEDULERS)
CONTEXT: list[JSON] = [
    {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": "q"}},
    {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": "small"},
        "spec": {"capability": {"cpu": "1"}},
    },
    {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 10},
    {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "low"}, "value": -1},
    {
        "apiVersion": "node.k8s.io/v1",
        "kind": "RuntimeClass",
        "metadata": {"name": "kata"},
        "overhead": {"podFixed": {"cpu": "250m"}},
    },
    {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "ClusterTrainingRuntime",
        "metadata": {"name": "torch"},
        "spec": {
            "template": {"spec": {"replicatedJobs": [{"name": "a", "template": {"spec": {"template": template()}}}]}}
        },
    },
    *(
        {
            "apiVersion": "v1",
            "kind": "LimitRange",
            "metadata": {"name": name, "namespace": "team"},
            "spec": {"limits": [{"type": "Container", "defaultRequest": {"cpu": cpu, "memory": "1Gi"}}]},
        }
        for name, cpu in (("a", "2"), ("b", "3"))
    ),
]
slow = settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large], deadline=None)


def documents(manifests: list[JSON]) -> list[Document]:
    return [Document(f"document {number}", manifest) for number, manifest in enumerate(manifests)]


def members(verdict: Verdict) -> tuple[Workload, Gang, Intent] | None:
    if verdict.workload and verdict.gang and verdict.intent:
        return verdict.workload, verdict.gang, verdict.intent
    return None


@given(workloads())
@slow
def test_a_gang_adds_up(manifest: JSON) -> None:
    """Nothing is below zero, and no role needs more than it has or the gang counts."""
    found = members(judged(manifest, Context(defaults=DEFAULTS)))
    if found is None:
        return
    _, gang, _ = found
    assert all(amount >= ZERO for amount in gang.min_resources.values())
    assert all(amount >= ZERO for role in gang.roles for amount in role.requests.values())
    assert all(0 <= role.minimum <= role.replicas for role in gang.roles)
    assert sum(gang.min_task_member.values()) <= gang.min_member
    assert gang.min_member >= 1


@given(workloads())
@slow
def test_a_plan_adds_up_and_is_the_same_each_time(manifest: JSON) -> None:
    """Also as it is printed: patches are applied and checked on the way."""
    before = copy.deepcopy(manifest)
    entry, again = (plan(documents([*CONTEXT, manifest]), DEFAULTS)[0].data() for _ in range(2))
    assert entry == again
    assert manifest == before
    group = entry["podGroup"]
    assert (group is None) == (entry["intent"] is None)
    if group is not None:
        spec = group["spec"]
        assert sum(spec.get("minTaskMember", {}).values()) <= spec["minMember"]
        assert all(parse_quantity(text) >= ZERO for text in spec["minResources"].values())
        assert all(role["minMember"] <= role["replicas"] for role in entry["roles"])


@given(
    st.lists(st.integers(0, 99), unique=True, max_size=4).flatmap(
        lambda numbers: st.tuples(*(workloads(f"w-{number}") for number in numbers))
    ),
    st.randoms(use_true_random=False),
)
@slow
def test_the_order_of_documents_does_not_matter(manifests: tuple[JSON, ...], chance: Any) -> None:  # noqa: ANN401
    """Every workload has the same entry wherever it stands, and wherever its context does."""
    ordered = [*CONTEXT, *manifests]
    shuffled = chance.sample(ordered, len(ordered))

    def entries(of: list[JSON]) -> dict[str, JSON]:
        return {entry.name: entry.data() for entry in plan(documents(of), DEFAULTS)}

    first = entries(ordered)
    assert len(first) == len(manifests)
    assert entries(shuffled) == first


@given(workloads(), pods)
@slow
def test_the_patch_of_every_role_applies_to_any_pod_and_once_is_enough(manifest: JSON, new: JSON) -> None:
    found = members(judged(manifest, Context(defaults=DEFAULTS)))
    if found is None:
        return
    _, gang, intent = found
    scheduler = SCHEDULERS[intent.scheduler]
    for role in gang.roles:
        pod = convert(new, Pod)
        if not is_free(pod, scheduler):
            continue
        member = membership(role, gang, intent, scheduler)
        patch = inject(pod, member, gate=GateMode.QUEUE)
        result = jsonpatch.apply_patch(new, patch)
        patched = convert(result, Pod)
        assert inject(patched, member, gate=GateMode.QUEUE) == []
        assert is_free(patched, scheduler)
        assert patched.gated(GATE) or not role.gated
        assert scheduler.bound_to(patched)
        assert patched.spec.scheduler_name == scheduler.name


# Anything that JSON can say, where a pod has its labels, gates and the like.
anything = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
texts = st.none() | st.dictionaries(st.text(max_size=4), st.none() | st.text(max_size=4), max_size=3)
hostile_pods = st.fixed_dictionaries(
    {
        "metadata": st.fixed_dictionaries({}, optional={"labels": texts | anything, "annotations": texts | anything}),
        "spec": st.fixed_dictionaries(
            {},
            optional={
                "containers": anything,
                "schedulerName": anything,
                "schedulingGates": st.lists(st.none() | st.just({}) | anything, max_size=3) | anything,
                "priorityClassName": anything,
                "priority": anything,
                "preemptionPolicy": anything,
            },
        ),
    }
)


@given(workloads(), hostile_pods)
@slow
def test_a_hostile_pod_is_refused_by_its_field_or_patched_like_any_other(manifest: JSON, new: JSON) -> None:
    found = members(judged(manifest, Context(defaults=DEFAULTS)))
    if found is None:
        return
    _, gang, intent = found
    scheduler = SCHEDULERS[intent.scheduler]
    try:
        pod = convert(new, Pod)
    except InvalidObjectError:
        return
    if is_free(pod, scheduler):
        member = membership(gang.roles[0], gang, intent, scheduler)
        patch = inject(pod, member, gate=GateMode.QUEUE)
        patched = convert(jsonpatch.apply_patch(new, patch), Pod)
        assert inject(patched, member, gate=GateMode.QUEUE) == []
