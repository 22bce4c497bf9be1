"""Pods that the apiserver refuses for ever are refused with their workload: by ResourceQuotas, and by LimitRanges.

tests/apiserver/test_refused_pods.py asks the real apiserver about many pods.
"""

from muster.model.findings import Finding, Reason
from muster.resources.pod_defaults import LimitRange, PodDefaults
from muster.resources.resource_quotas import ResourceQuota
from muster.validation.context import Context
from tests.support.cases import cases
from tests.support.manifests.families import judged
from tests.support.manifests.observed import JSON, made, pytorch_job, ray_cluster, resource_quota, workers


def limit_range(kind: str = "Container", name: str = "range", **item: JSON) -> JSON:
    return {"metadata": {"name": name}, "spec": {"limits": [{"type": kind, **item}]}}


def container(name: str = "main", requests: JSON | None = None, limits: JSON | None = None) -> JSON:
    return {"name": name, "resources": {"requests": requests or {}, "limits": limits or {}}}


def pods(*containers: JSON, **spec: object) -> JSON:
    return {"spec": {"containers": list(containers), **spec}}


def job(of: JSON, replicas: int = 2, **policy: object) -> JSON:
    """Workers alone, to whose pods no operator adds anything."""
    found = pytorch_job(replicas={"Worker": {"replicas": replicas, "template": of}}, policy={"queue": "q", **policy})
    assert isinstance(found, dict)
    return found


def scoped(hard: JSON, *scopes: str, **selector: object) -> JSON:
    """A quota with scopes, or with a selector of PriorityClasses."""
    quota = resource_quota(hard)
    expressions = [{"scopeName": "PriorityClass", **selector}] if selector else []
    return {**quota, "spec": {"hard": hard, "scopes": scopes, "scopeSelector": {"matchExpressions": expressions}}}


def found(manifest: JSON, *quotas: JSON, ranges: tuple[JSON, ...] = ()) -> tuple[Finding, ...]:
    known = PodDefaults([made(LimitRange, one) for one in ranges], None, [made(ResourceQuota, one) for one in quotas])
    return judged(manifest, Context(pod_defaults=known)).refusals


def reasons(manifest: JSON, *quotas: JSON, ranges: tuple[JSON, ...] = ()) -> set[str]:
    return {str(one.reason) for one in found(manifest, *quotas, ranges=ranges)}


MISSING, RANGE, TOO_MUCH = "RequiredByResourceQuota", "OutsideLimitRange", "ExceedsResourceQuota"
CPU_AND_MEMORY = {"cpu": "1", "memory": "1Gi"}


@cases(
    "key, of",
    ("limits.cpu", "limits.cpu", container(requests=CPU_AND_MEMORY)),
    ("limits.memory", "limits.memory", container(requests=CPU_AND_MEMORY, limits={"cpu": "1"})),
    ("requests.memory", "requests.memory", container(requests={"cpu": "1"})),
    ("cpu", "cpu", container(limits={"memory": "1Gi"})),
)
def test_a_container_that_does_not_say_what_a_quota_demands_is_named_with_the_key(key: str, of: JSON) -> None:
    (one,) = found(
        job(pods(container("a", CPU_AND_MEMORY, CPU_AND_MEMORY), {**of, "name": "b"})), resource_quota({key: "99Gi"})
    )
    path = "spec.pytorchReplicaSpecs.Worker.template.spec.containers"
    assert (one.reason, one.field) == (Reason.REQUIRED_BY_RESOURCE_QUOTA, path)
    assert one.message == (
        f'{path}: container "b" does not set {key}, which ResourceQuota "quota" demands of every container; '
        "write them, or have a LimitRange give them"
    )


@cases(
    "quota, of, ranges",
    ("it says so", {"limits.cpu": "99"}, pods(container(limits={"cpu": "1"})), ()),
    ("a limit stands in for the request", {"cpu": "99"}, pods(container(limits={"cpu": "0"})), ()),
    ("a LimitRange gives it", {"limits.cpu": "99"}, pods(container()), (limit_range(default={"cpu": "1"}),)),
    ("a max gives it", {"limits.cpu": "99"}, pods(container()), (limit_range(max={"cpu": "1"}),)),
    ("only cpu and memory are demanded", {"requests.nvidia.com/gpu": "9"}, pods(container()), ()),
    ("nor is storage", {"limits.ephemeral-storage": "9"}, pods(container()), ()),
    ("nor a number of pods", {"pods": "9"}, pods(container()), ()),
)
def test_what_is_said_or_given_or_not_demanded_is_no_fault(quota: JSON, of: JSON, ranges: tuple[JSON, ...]) -> None:
    assert found(job(of), resource_quota(quota), ranges=ranges) == ()


def test_init_containers_must_say_it_too() -> None:
    of = pods(container(limits={"cpu": "1"}), initContainers=[container("prepare")])
    (one,) = found(job(of), resource_quota({"limits.cpu": "9"}))
    assert 'init container "prepare" does not set limits.cpu' in one.message


def test_what_the_pod_as_a_whole_asks_for_stands_in_for_its_containers() -> None:
    """JobSet's CRD has pod-level resources."""
    of = pods(container(), resources={"limits": {"cpu": "1"}}, restartPolicy="Never")
    spec = {"replicatedJobs": [{"name": "w", "template": {"spec": {"template": of}}}]}
    jobset = {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": "s", "namespace": "team", "labels": {"volcano.sh/queue-name": "q"}},
        "spec": spec,
    }
    assert found(jobset, resource_quota({"limits.memory": "9Gi", "limits.cpu": "1"})) == ()
    assert reasons(jobset, resource_quota({"limits.cpu": "900m"})) == {TOO_MUCH}


def test_the_containers_that_operators_add_say_what_the_operators_write() -> None:
    """KubeRay's init container and autoscaler have limits."""
    group = workers(template=pods(container(limits=CPU_AND_MEMORY)), minReplicas=2, maxReplicas=2)
    cluster = ray_cluster(group, head=pods(container(limits=CPU_AND_MEMORY)), enableInTreeAutoscaling=True)
    assert found(cluster, resource_quota({"limits.cpu": "99", "limits.memory": "99Gi"})) == ()


def test_limits_are_counted_together() -> None:
    of = pods(container(requests={"cpu": "1"}, limits={"cpu": "4"}))
    (one,) = found(job(of, replicas=4), resource_quota({"limits.cpu": "8"}))
    assert "needs limits.cpu 16, " in one.message
    assert found(job(of, replicas=4), resource_quota({"limits.cpu": "16", "cpu": "4"})) == ()


def test_a_single_pod_that_never_fits_is_refused_whatever_the_gang_starts_with() -> None:
    """Of a role without which the gang starts, no pod is ever made."""
    replicas = {
        "Master": {"replicas": 1, "template": pods(container(requests={"cpu": "1"}))},
        "Worker": {"replicas": 1, "template": pods(container(requests={"cpu": "9"}))},
    }
    elastic = pytorch_job(replicas=replicas, policy={"queue": "q", "minAvailable": 1})
    (one,) = found(elastic, resource_quota({"cpu": "8"}))
    assert 'each pod of "worker" needs cpu 9' in one.message


@cases(
    "spec, quota, counted",
    ("best effort", {}, scoped({"pods": "1"}, "BestEffort"), True),
    ("no other", {}, scoped({"pods": "1"}, "NotBestEffort"), False),
    ("burstable", {"cpu": "1"}, scoped({"pods": "1"}, "BestEffort"), False),
    ("counted as such", {"cpu": "1"}, scoped({"pods": "1"}, "NotBestEffort"), True),
    ("zero is best effort", {"cpu": "0"}, scoped({"pods": "1"}, "BestEffort"), True),
    ("terminating", {"activeDeadlineSeconds": 60}, scoped({"pods": "1"}, "Terminating"), True),
    ("so not endless", {"activeDeadlineSeconds": 60}, scoped({"pods": "1"}, "NotTerminating"), False),
    ("endless", {}, scoped({"pods": "1"}, "Terminating"), False),
    ("counted as endless", {}, scoped({"pods": "1"}, "NotTerminating"), True),
    ("all scopes must match", {}, scoped({"pods": "1"}, "NotTerminating", "NotBestEffort"), False),
    ("class", {"priorityClassName": "high"}, scoped({"pods": "1"}, operator="In", values=["high"]), True),
    ("another class", {"priorityClassName": "low"}, scoped({"pods": "1"}, operator="In", values=["high"]), False),
    ("not in", {"priorityClassName": "low"}, scoped({"pods": "1"}, operator="NotIn", values=["high"]), True),
    ("any class", {"priorityClassName": "low"}, scoped({"pods": "1"}, "PriorityClass"), True),
    ("no class", {"priorityClassName": "low"}, scoped({"pods": "1"}, operator="DoesNotExist"), False),
    ("a class may be the default", {}, scoped({"pods": "1"}, operator="DoesNotExist"), False),
    ("no affinity", {}, scoped({"pods": "1"}, "CrossNamespacePodAffinity"), False),
    (
        "affinity across namespaces",
        {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"namespaces": ["a"]}]}}},
        scoped({"pods": "1"}, "CrossNamespacePodAffinity"),
        True,
    ),
    ("a scope of something else", {}, scoped({"pods": "1"}, "VolumeAttributesClass"), False),
)
def test_a_quota_with_scopes_counts_the_pods_that_are_certainly_in_them(
    spec: JSON, quota: JSON, *, counted: bool
) -> None:
    requests = {key: spec[key] for key in spec if key == "cpu"}
    of = pods(container(requests=requests), **{key: one for key, one in spec.items() if key != "cpu"})
    assert reasons(job(of), quota) == ({TOO_MUCH} if counted else set())


def test_pods_get_the_class_that_their_workload_names() -> None:
    quota = scoped({"pods": "1"}, operator="In", values=["high"])
    assert reasons(job(pods(container()), priorityClass="high"), quota) == {TOO_MUCH}
    assert reasons(job(pods(container(), priorityClassName="low"), priorityClass="high"), quota) == set()


def test_a_line_names_the_roles_that_a_quota_counts() -> None:
    head = pods(container(requests={"cpu": "1"}), activeDeadlineSeconds=60)
    (one,) = found(ray_cluster(head=head), scoped({"pods": "1"}, "NotTerminating"))
    assert 'spec: what it counts of gang "ray-demo-pg" (workers) needs pods 2' in one.message


def ray_job(**spec: object) -> JSON:
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayJob",
        "metadata": {"name": "job", "namespace": "team", "labels": {"volcano.sh/queue-name": "q"}},
        "spec": {"entrypoint": "x", "rayClusterSpec": ray_cluster()["spec"], **spec},
    }


def test_the_submitter_of_a_ray_job_is_charged_beside_its_cluster() -> None:
    quota = resource_quota({"pods": "3"})
    (one,) = found(ray_job(), quota)
    assert 'gang "ray-job-xxxxx-pg" with its submitter needs pods 4' in one.message
    assert found(ray_job(submissionMode="HTTPMode"), quota) == ()
    assert found(ray_job(), resource_quota({"pods": "4"})) == ()


def test_the_submitter_must_say_what_a_quota_demands() -> None:
    cluster = ray_cluster(
        workers(template=pods(container(limits=CPU_AND_MEMORY))), head=pods(container(limits=CPU_AND_MEMORY))
    )
    asking = {"rayClusterSpec": cluster["spec"]}
    quota = resource_quota({"limits.cpu": "99"})
    assert found(ray_job(**asking), quota) == (), "KubeRay's own says so"
    (one,) = found(ray_job(**asking, submitterPodTemplate=pods(container("submit"))), quota)
    assert one.message.startswith(
        'spec.submitterPodTemplate.spec.containers: container "submit" does not set limits.cpu'
    )


def test_what_is_used_of_a_quota_is_not_looked_at() -> None:
    """It may be free by the time."""
    quota = resource_quota({"cpu": "2", "pods": "2"}, used={"cpu": "2", "pods": "2"})
    assert found(job(pods(container(requests={"cpu": "1"}))), quota) == ()


@cases(
    "item, of, words",
    (
        "max",
        {"max": {"cpu": "2"}},
        pods(container(limits={"cpu": "4"})),
        'container "main" has limit cpu 4, above the max 2 of LimitRange "range"',
    ),
    (
        "max of a request",
        {"max": {"cpu": "2"}},
        pods(container(requests={"cpu": "4"})),
        'container "main" requests cpu 4, and gets limit 2 from a LimitRange; it needs a limit of its own',
    ),
    (
        "a default limit below the request",
        {"default": {"cpu": "2"}},
        pods(container(requests={"cpu": "4"})),
        'container "main" requests cpu 4, and gets limit 2 from a LimitRange; it needs a limit of its own',
    ),
    (
        "min",
        {"min": {"memory": "1Gi"}},
        pods(container(requests={"memory": "1Mi"})),
        'container "main" requests memory 1Mi, below the min 1Gi of LimitRange "range"',
    ),
    (
        "ratio",
        {"maxLimitRequestRatio": {"cpu": "2"}},
        pods(container(requests={"cpu": "1"}, limits={"cpu": "3"})),
        'container "main" has limit cpu 3 with request 1, above the maxLimitRequestRatio 2 of LimitRange "range"',
    ),
    (
        "no ratio",
        {"maxLimitRequestRatio": {"cpu": "2"}},
        pods(container(requests={"cpu": "1"})),
        'container "main" has no limit of cpu, whose ratio LimitRange "range" bounds (2)',
    ),
    (
        "an init container",
        {"max": {"cpu": "1"}},
        pods(container(limits={"cpu": "1"}), initContainers=[container("prepare", limits={"cpu": "2"})]),
        'init container "prepare" has limit cpu 2, above the max 1 of LimitRange "range"',
    ),
)
def test_a_container_outside_a_limit_range_is_named_with_the_bound(item: JSON, of: JSON, words: str) -> None:
    (one,) = found(job(of), ranges=(limit_range(**item),))
    path = "spec.pytorchReplicaSpecs.Worker.template.spec.containers"
    assert (one.reason, one.field) == (Reason.OUTSIDE_LIMIT_RANGE, path)
    assert one.message.startswith(f"{path}: {words}")
    assert one.message.endswith("; the apiserver refuses such pods, change the amounts or change the LimitRange")


@cases(
    "item, of, words",
    (
        "all containers together",
        {"max": {"cpu": "3"}},
        pods(container("a", limits={"cpu": "2"}), container("b", limits={"cpu": "2"})),
        'has limit cpu 4, above the max 3 of LimitRange "range"',
    ),
    ("no limit", {"max": {"cpu": "3"}}, pods(container()), 'has no limit of cpu, and LimitRange "range" has max cpu 3'),
    ("no request", {"min": {"cpu": "1"}}, pods(container()), 'requests no cpu, and LimitRange "range" has min cpu 1'),
)
def test_a_pod_outside_a_limit_range_is_named_as_a_whole(item: JSON, of: JSON, words: str) -> None:
    (one,) = found(job(of), ranges=(limit_range("Pod", **item),))
    path = "spec.pytorchReplicaSpecs.Worker.template.spec"
    assert (one.reason, one.field) == (Reason.OUTSIDE_LIMIT_RANGE, path)
    assert one.message.startswith(f"{path}: the pod as a whole {words}")


@cases(
    "item, of",
    ("as much as it may", {"max": {"cpu": "2"}}, pods(container(limits={"cpu": "2"}))),
    ("a limit that is given", {"max": {"cpu": "2"}}, pods(container())),
    ("a request that is given", {"min": {"cpu": "2"}}, pods(container())),
    (
        "the ratio to the letter",
        {"maxLimitRequestRatio": {"cpu": "1.1"}},
        pods(container(requests={"cpu": "1"}, limits={"cpu": "1100m"})),
    ),
)
def test_what_is_within_a_limit_range_is_taken(item: JSON, of: JSON) -> None:
    assert found(job(of), ranges=(limit_range(**item),)) == ()


def test_where_two_limit_ranges_give_other_defaults_a_pod_may_get_either() -> None:
    ranges = limit_range(name="a", default={"cpu": "1"}), limit_range(name="b", default={"cpu": "8"})
    assert found(job(pods(container(requests={"cpu": "4"}))), ranges=ranges) == ()
    assert reasons(job(pods(container(requests={"cpu": "9"}))), ranges=ranges) == {RANGE}


def test_a_role_of_which_no_pod_is_made_is_not_judged() -> None:
    of = pods(container(limits={"cpu": "4"}))
    few = ray_cluster(workers(template=of, replicas=0, minReplicas=0, maxReplicas=3))
    assert found(few, ranges=(limit_range(max={"cpu": "2"}),)) == ()
    growing = ray_cluster(workers(template=of, replicas=0, minReplicas=0, maxReplicas=3), enableInTreeAutoscaling=True)
    assert reasons(growing, ranges=(limit_range(max={"cpu": "2"}),)) == {RANGE}
