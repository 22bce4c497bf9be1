"""The gang of a workload: how many must start together, which first, and what they need."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.gangs.gang import gang_of, priority_value, priority_values
from muster.gangs.intent import find_intent
from muster.gangs.roles import Gang
from muster.model.objects import InvalidObjectError, PriorityClass
from muster.resources.amounts import as_text, total
from muster.resources.pod_defaults import LimitRange, PodDefaults
from tests.support.cases import cases
from tests.support.manifests.observed import (
    DEFAULTS,
    JSON,
    amounts,
    gang_and_intent,
    limit_range,
    made,
    priority_class,
    pytorch_job,
    ray_cluster,
    read,
    template,
    workers,
)


def gang(manifest: JSON, **priorities: int) -> Gang:
    return gang_and_intent(manifest, priorities)[0]


def sized(master: str = "1", worker: str = "1", workers_: int = 2, **policy: object) -> JSON:
    """A PyTorchJob whose master and workers ask for that many cpu; in queue q."""
    return pytorch_job(
        policy={"queue": "q", **policy},
        replicas={
            "Master": {"replicas": 1, "template": template(cpu=master)},
            "Worker": {"replicas": workers_, "template": template(cpu=worker)},
        },
    )


def test_a_ray_cluster_of_the_story_needs_all_its_pods() -> None:
    """KubeRay's sample: a head of 1 cpu and 2Gi, two workers of 1 cpu and 1Gi."""
    found = gang(ray_cluster(head=template("1", "2Gi")))
    assert (found.name, found.min_member, as_text(found.min_resources)) == (
        "ray-demo-pg",
        3,
        {"cpu": "3", "memory": "4Gi"},
    )
    assert found.min_task_member == {"headgroup": 1, "workers": 2}


def test_with_autoscaling_only_the_least_is_needed() -> None:
    """And the autoscaler's own container in the head."""
    found = gang(ray_cluster(workers(replicas=8, minReplicas=2), enableInTreeAutoscaling=True))
    assert (found.min_member, found.min_resources) == (3, amounts(cpu="3500m", memory="3584Mi"))


def test_a_suspended_group_needs_nothing_and_has_no_minimum() -> None:
    found = gang(ray_cluster(workers("a", 2), workers("b", 5, suspend=True)))
    assert (found.min_member, found.min_task_member) == (3, {"headgroup": 1, "a": 2})
    assert found.min_resources == amounts(cpu="3", memory="3Gi")


def test_without_min_available_all_replicas_of_a_job_are_needed() -> None:
    found = gang(sized(workers_=4))
    assert (found.min_member, found.min_task_member) == (5, {"master": 1, "worker": 4})


@cases(
    "available, minimums, cpu",
    ("the master alone", 1, {"master": 1}, "8"),
    ("the master first", 2, {"master": 1, "worker": 1}, "9"),
    ("part of the workers", 4, {"master": 1, "worker": 3}, "11"),
    ("all", 5, {"master": 1, "worker": 4}, "12"),
)
def test_min_available_fills_the_roles_in_order(available: int, minimums: dict[str, int], cpu: str) -> None:
    found = gang(sized("8", "1", 4, minAvailable=available))
    assert (found.min_member, found.min_task_member) == (available, minimums)
    assert as_text(found.min_resources)["cpu"] == cpu


@cases(
    "available, line",
    ("none", 0, "spec.runPolicy.schedulingPolicy.minAvailable: 0 is below 1; a gang starts with at least one pod"),
    (
        "negative",
        -1,
        "spec.runPolicy.schedulingPolicy.minAvailable: -1 is below 1; a gang starts with at least one pod",
    ),
    (
        "more than there are",
        4,
        (
            "spec.runPolicy.schedulingPolicy.minAvailable: 4 is above the 3 pods that there are; "
            "lower it or raise the replicas"
        ),
    ),
)
def test_a_min_available_that_cannot_be_is_refused(available: int, line: str) -> None:
    with pytest.raises(InvalidObjectError) as refused:
        gang(sized(minAvailable=available))
    assert str(refused.value) == line


def test_min_resources_of_the_user_are_taken_as_they_are() -> None:
    found = gang(sized(minResources={"cpu": "10", "nvidia.com/gpu": 1}))
    assert found.min_resources == amounts(cpu="10", gpu="1")


def test_min_resources_of_nothing_are_the_users_too() -> None:
    assert gang(sized(minResources={})).min_resources == {}


def test_min_resources_that_are_no_amounts_are_refused_by_field() -> None:
    with pytest.raises(InvalidObjectError, match=r"^spec\.runPolicy\.schedulingPolicy\.minResources\.cpu: "):
        gang(sized(minResources={"cpu": "ten"}))


def test_an_amount_in_a_template_is_refused_by_field() -> None:
    with pytest.raises(InvalidObjectError) as refused:
        gang(ray_cluster(workers(template=template("1 core"))))
    assert str(refused.value).startswith(
        "spec.workerGroupSpecs[0].template.spec.containers[0].resources.requests.cpu: "
    )


def test_the_more_urgent_role_counts_first() -> None:
    """As the Training operator sorts: by the PriorityClass of the templates, before the master's lead."""
    job = pytorch_job(
        policy={"queue": "q", "minAvailable": 2},
        replicas={
            "Master": {"replicas": 1, "template": template()},
            "Worker": {"replicas": 2, "template": template(cpu="4", priorityClassName="high")},
        },
    )
    found = gang(job, high=1000)
    assert [role.name for role in found.roles] == ["worker", "master"]
    assert (found.min_task_member, as_text(found.min_resources)["cpu"]) == ({"worker": 2}, "8")


def test_the_priority_of_the_workload_counts_for_roles_without_their_own() -> None:
    job = pytorch_job(
        policy={"queue": "q", "priorityClass": "high"},
        replicas={
            "Master": {"replicas": 1, "template": template(priorityClassName="low")},
            "Worker": {"replicas": 2, "template": template()},
        },
    )
    assert [role.name for role in gang(job, high=1000, low=1).roles] == ["worker", "master"]


def test_a_gang_is_never_of_none() -> None:
    """Volcano takes a minMember of 0 for a finished group."""
    job = pytorch_job(policy={"queue": "q"}, replicas={"Worker": {"replicas": 0, "template": template()}})
    assert (gang(job).min_member, gang(job).min_task_member) == (1, {})


@cases("name, value", ("known", "high", 1000), ("no class: what the cluster gives", "", 7), ("unknown", "gone", 0))
def test_the_value_of_a_priority(name: str, value: int) -> None:
    assert priority_value(name, {"high": 1000, "": 7}) == value


@cases(
    "classes, without",
    ("no global default", [], 0),
    ("no class is the default", [("a", 5, False)], 0),
    ("one", [("a", 5, True)], 5),
    ("a negative one", [("a", -5, True)], -5),
    ("of several the lowest, as the Priority plugin takes", [("a", 5, True), ("b", 3, True)], 3),
)
def test_what_a_pod_without_a_class_gets(classes: list[tuple[str, int, bool]], without: int) -> None:
    values = priority_values(
        made(PriorityClass, priority_class(name, value, default=default)) for name, value, default in classes
    )
    assert values == {"": without} | {name: value for name, value, _ in classes}


def test_a_role_is_found_by_name() -> None:
    found = gang(ray_cluster())
    role = found.role("workers")
    assert role is not None
    assert role.replicas == 2
    assert found.role("nobody") is None


def test_a_long_name_is_hashed_for_the_label_only() -> None:
    found = replace(gang(ray_cluster()), name="x" * 80)
    assert len(found.label) == 63


jobs = st.builds(
    lambda counts, priorities, available: pytorch_job(
        policy={"queue": "q", **({} if available is None else {"minAvailable": available})},
        replicas={
            type_: {"replicas": count, "template": template(priorityClassName=priority)}
            for type_, count, priority in zip(("Master", "Worker", "Evaluator"), counts, priorities, strict=True)
        },
    ),
    st.tuples(*[st.integers(0, 5)] * 3),
    st.tuples(*[st.sampled_from(["", "high", "low"])] * 3),
    st.none() | st.integers(1, 15),
)


@given(jobs)
def test_the_minimums_of_the_roles_add_up_to_the_gangs(job: JSON) -> None:
    """Volcano ignores minTaskMember unless minMember is at least its sum, and no role needs more than it has."""
    workload = read(job)
    intent = find_intent(workload, DEFAULTS)
    assert intent is not None
    try:
        found = gang_of(workload, intent, {"high": 10, "low": 1})
    except InvalidObjectError:
        # More asked for than there are.
        return
    assert found.min_member == max(sum(found.min_task_member.values()), 1)
    assert all(0 <= role.minimum <= role.replicas for role in found.roles)
    assert {role.name for role in found.roles} == {role.name for role in workload.roles}


clusters = st.lists(
    st.builds(
        lambda replicas, least, extra, hosts, suspended: {
            "replicas": replicas,
            "minReplicas": least,
            "maxReplicas": least + extra,
            "numOfHosts": hosts,
            "suspend": suspended,
        },
        st.none() | st.integers(0, 9),
        *(st.integers(0, 4), st.integers(0, 4), st.integers(1, 3), st.booleans()),
    ),
    min_size=1,
    max_size=4,
)


@given(clusters, st.booleans())
def test_a_ray_gang_is_the_head_and_what_ray_keeps(groups: list[JSON], autoscaling: bool) -> None:
    manifest = ray_cluster(
        *(workers(f"g{index}", **group) for index, group in enumerate(groups)),
        enableInTreeAutoscaling=autoscaling,
    )
    found = gang(manifest)
    assert found.min_member == 1 + sum(role.minimum for role in found.roles if not role.leads)
    each = amounts(cpu=str(found.min_member), memory=f"{found.min_member}Gi")
    autoscaler = amounts(cpu="500m", memory="512Mi") if autoscaling else {}
    assert found.min_resources == total((each, autoscaler))
    assert all(0 <= role.minimum <= role.replicas for role in found.roles)


def test_an_amount_that_nobody_can_read_is_named_by_its_field_where_a_limit_range_completes_it() -> None:
    broken = template()
    broken["spec"]["resources"] = {"limits": {"cpu": "a lot"}}
    workload = read(ray_cluster(workers(template=broken)))
    intent = gang_and_intent(ray_cluster())[1]
    ranges = PodDefaults(ranges=(made(LimitRange, limit_range(memory="1Gi")),))
    with pytest.raises(InvalidObjectError, match=r"^spec\.workerGroupSpecs\[0\]\.template\.spec\.resources\.limits"):
        gang_of(workload, intent, {}, ranges)
