"""What a cluster adds to pods counts in their gang; tests/apiserver asks the real admission plugins."""

from typing import Any

from muster.model.objects import convert
from muster.model.pods import PodSpec
from muster.resources.amounts import as_text
from muster.resources.pod_defaults import LimitRange, PodDefaults, RuntimeClass
from muster.validation.context import Context
from muster.validation.workload import judge
from muster.workloads.ray import RAY_CLUSTER, RayCluster
from tests.support.cases import cases
from tests.support.manifests.observed import JSON, lines, made, ray_cluster, template, workers


def runtime(name: str = "kata", **pod_fixed: str) -> RuntimeClass:
    return convert({"metadata": {"name": name}, "overhead": {"podFixed": pod_fixed}}, RuntimeClass)


KATA = {"kata": runtime(cpu="250m", memory="160Mi"), "bare": runtime("bare")}
PATH = "spec.workerGroupSpecs[0].template.spec"


def verdict_of(pod_defaults: PodDefaults, group: JSON) -> tuple[Any, tuple[str, ...]]:
    """The gang of a head and that worker group, and the warnings."""
    said = judge(RAY_CLUSTER, made(RayCluster, ray_cluster(group)), Context(pod_defaults=pod_defaults))
    assert said.allowed
    assert said.gang is not None
    return said.gang, lines(said.warnings)


def test_the_overhead_of_the_runtime_class_is_in_the_role_and_in_the_gang() -> None:
    gang, warnings = verdict_of(PodDefaults(runtimes=KATA), workers(template=template(runtimeClassName="kata")))
    assert as_text(gang.roles[1].requests) == {"cpu": "1250m", "memory": "1184Mi"}
    assert as_text(gang.min_resources) == {"cpu": "3500m", "memory": "3392Mi"}
    assert warnings == ()


def test_limit_ranges_and_overhead_are_both_added() -> None:
    limits = convert({"spec": {"limits": [{"type": "Container", "defaultRequest": {"cpu": "2"}}]}}, LimitRange)
    gang, _ = verdict_of(PodDefaults([limits], KATA), workers(template=template(cpu="", runtimeClassName="kata")))
    # 256Mi are of the container with which KubeRay lets workers wait.
    assert as_text(gang.roles[1].requests) == {"cpu": "2250m", "memory": "416Mi"}


@cases(
    "runtimes, spec, cpu, warning",
    ("no class named", KATA, {}, "1", ""),
    ("null", KATA, {"runtimeClassName": None}, "1", ""),
    ("a class without overhead", KATA, {"runtimeClassName": "bare"}, "1", ""),
    ("no class is known: none is missing", None, {"runtimeClassName": "gone"}, "1", ""),
    ("nor is any overhead wrong", None, {"runtimeClassName": "kata", "overhead": {"cpu": "1"}}, "2", ""),
    (
        "a class that is missing",
        KATA,
        {"runtimeClassName": "gone"},
        "1",
        (
            f'{PATH}.runtimeClassName: RuntimeClass "gone" does not exist; the apiserver refuses such pods, '
            "name an existing class or create it first"
        ),
    ),
    (
        "the same overhead, in other words",
        KATA,
        {"runtimeClassName": "kata", "overhead": {"cpu": "0.25", "memory": "163840Ki"}},
        "1250m",
        "",
    ),
    (
        "another overhead",
        KATA,
        {"runtimeClassName": "kata", "overhead": {"cpu": "1"}},
        "2",
        (
            f'{PATH}.overhead: found cpu 1, RuntimeClass "kata" has cpu 250m and memory 160Mi; '
            "the apiserver refuses such pods, leave the overhead to the RuntimeClass"
        ),
    ),
    (
        "an overhead that the class has not",
        KATA,
        {"runtimeClassName": "bare", "overhead": {"cpu": "1"}},
        "2",
        (
            f'{PATH}.overhead: found cpu 1, RuntimeClass "bare" has nothing; '
            "the apiserver refuses such pods, leave the overhead to the RuntimeClass"
        ),
    ),
    (
        "an overhead without a class",
        KATA,
        {"overhead": {"cpu": "1"}},
        "2",
        (
            f"{PATH}.overhead: found cpu 1, there is no runtimeClassName; "
            "the apiserver refuses such pods, leave the overhead to the RuntimeClass"
        ),
    ),
)
def test_what_the_apiserver_will_refuse_is_warned_about(
    runtimes: dict[str, RuntimeClass] | None, spec: JSON, cpu: str, warning: str
) -> None:
    """The workload is taken: the class may come later, and it is the pods that are refused until then."""
    gang, warnings = verdict_of(PodDefaults(runtimes=runtimes), workers(template=template(**spec)))
    assert as_text(gang.roles[1].requests)["cpu"] == cpu
    assert warnings == ((warning,) if warning else ())


def test_pods_that_there_will_not_be_are_not_warned_about() -> None:
    group = workers(replicas=0, template=template(runtimeClassName="gone"))
    assert verdict_of(PodDefaults(runtimes=KATA), group)[1] == ()


def test_completed_twice_is_completed_once() -> None:
    pod_defaults = PodDefaults(runtimes=KATA)
    once = pod_defaults.completed(convert(template(runtimeClassName="kata")["spec"], PodSpec))
    assert once.overhead
    assert pod_defaults.completed(once) == once
