"""Reviews of workloads."""

import pytest

from muster.gangs.intent import Defaults
from muster.kube.errors import ApiError, Unreachable
from muster.model.findings import Reason, Severity, Validation
from muster.model.resource import ELASTIC_QUOTAS
from muster.schedulers import named
from tests.support.cases import cases
from tests.support.manifests.observed import (
    DEFAULTS,
    JSON,
    elastic_quota,
    limit_range,
    priority_class,
    pytorch_job,
    queue,
    ray_cluster,
    resource_quota,
    runtime_class,
    template,
    workers,
)
from tests.support.manifests.train_jobs import runtime, step, train_job
from tests.support.webhook.admission_reviews import Reader, answered, knowing, request
from webhook.reviews.cluster_reader import ClusterReader
from webhook.reviews.workloads import review_workload

SMALL = queue(cpu="4")
LARGE = ray_cluster(head=template("4"))
DELETING = {"deletionTimestamp": "2026-11-21T10:00:00Z"}


async def created(manifest: JSON, knowledge: ClusterReader | None = None, mode: Severity = Severity.DENY) -> JSON:
    defaults = Defaults(validation=Validation(mode))
    knowledge = knowledge or knowing(queues=[SMALL], defaults=defaults)
    return answered(await review_workload(request(manifest), knowledge))


async def updated(old: JSON, new: JSON, knowledge: ClusterReader | None = None) -> JSON:
    asked = request(new, old=old, operation="UPDATE")
    return answered(await review_workload(asked, knowledge or knowing(queues=[SMALL])))


async def test_what_fits_passes() -> None:
    assert await created(ray_cluster()) == {"uid": "u", "allowed": True}


async def test_what_can_never_fit_is_refused_with_numbers() -> None:
    response = await created(LARGE)
    assert not response["allowed"]
    assert response["status"]["message"] == (
        'metadata.labels[volcano.sh/queue-name]: gang "ray-demo-pg" needs cpu 6, queue "q" has capability cpu 4; '
        "lower the replicas or use a larger queue"
    )


@cases(
    "manifest",
    ("says nothing", ray_cluster(labels={}, head=template("99"))),
    ("being deleted", ray_cluster(meta=DELETING, head=template("99"))),
    ("another kind", {**LARGE, "kind": "RayShop"}),
    ("another version", {**LARGE, "apiVersion": "ray.io/v9"}),
)
async def test_what_is_not_musters_passes(manifest: JSON) -> None:
    assert (await created(manifest))["allowed"]


async def test_warnings_come_with_the_yes() -> None:
    response = await created(ray_cluster(labels={"ray.io/scheduler-name": "volcanoo"}))
    assert response["allowed"]
    assert 'scheduler "volcanoo"' in response["warnings"][0]


async def test_where_nothing_is_refused_the_same_line_is_a_warning() -> None:
    refused = (await created(LARGE))["status"]["message"]
    assert await created(LARGE, mode=Severity.WARN) == {"uid": "u", "allowed": True, "warnings": [refused]}


async def test_without_validation_nothing_is_even_read() -> None:
    """A webhook that is still called, by a configuration of before."""
    reader = Reader()
    knowledge = knowing(reader, namespaces=[], defaults=Defaults(validation=Validation(Severity.OFF)))
    assert await created(LARGE, knowledge) == {"uid": "u", "allowed": True}
    assert reader.reads == []


async def test_an_edit_that_makes_it_too_large_is_refused() -> None:
    assert not (await updated(ray_cluster(), LARGE))["allowed"]


async def test_what_was_wrong_before_stays_editable_with_a_warning() -> None:
    """Else it could never be put right in steps."""
    response = await updated(LARGE, ray_cluster(head=template("3")))
    assert response["allowed"]
    assert "needs cpu 5" in response["warnings"][0]


@cases(
    "new",
    ("another number that is none", {"minAvailable": 8}),
    ("what it hid before", {"minAvailable": 3, "minResources": {"cpu": "9"}}),
)
async def test_what_made_no_gang_is_mended_in_any_order(new: JSON) -> None:
    old = pytorch_job(policy={"queue": "q", "minAvailable": 9})
    assert not (await created(old))["allowed"]
    response = await updated(old, pytorch_job(policy={"queue": "q", **new}))
    assert (response["allowed"], len(response["warnings"])) == (True, 1)


async def test_a_second_mistake_is_refused_for_itself() -> None:
    worse = ray_cluster(head=template("4"), labels={"volcano.sh/queue-name": "q", "ray.io/priority-class-name": "hihg"})
    response = await updated(LARGE, worse)
    assert [cause["reason"] for cause in response["status"]["details"]["causes"]] == ["UnknownPriorityClass"]


async def test_an_edit_of_a_workload_that_was_not_musters_is_judged_as_new() -> None:
    assert not (await updated(ray_cluster(labels={}, head=template("4")), LARGE))["allowed"]


async def test_an_edit_that_breaks_the_numbers_is_refused() -> None:
    response = await updated(ray_cluster(), ray_cluster(workers(minReplicas=2, maxReplicas=1)))
    assert response["status"]["reason"] == "Invalid"


@cases(
    "reader, allowed", ("applied a moment before", Reader({"queues/q": SMALL}), True), ("not there", Reader(), False)
)
async def test_a_queue_that_the_watch_has_not_seen_is_read(reader: Reader, allowed: bool) -> None:
    assert (await created(ray_cluster(), knowing(reader)))["allowed"] is allowed
    assert reader.reads == ["queues/q", "podgroups/ray-demo-pg"]


@cases(
    "reader, allowed",
    ("applied a moment before", Reader({"priorityclasses/high": priority_class("high", 7)}), True),
    ("not there", Reader(), False),
)
async def test_a_priority_class_that_the_watch_has_not_seen_is_read(reader: Reader, allowed: bool) -> None:
    job = pytorch_job(policy={"queue": "q", "priorityClass": "high"})
    assert (await created(job, knowing(reader, queues=[SMALL])))["allowed"] is allowed
    assert reader.reads == ["priorityclasses/high", "podgroups/train"]


async def test_what_the_watch_knows_is_not_read() -> None:
    reader = Reader()
    job = pytorch_job(policy={"queue": "q", "priorityClass": "high"})
    await created(job, knowing(reader, queues=[SMALL], classes=[priority_class("high", 7)]))
    assert reader.reads == ["podgroups/train"]


async def test_nothing_is_read_for_what_says_nothing() -> None:
    reader = Reader()
    await created(ray_cluster(labels={}), knowing(reader))
    assert reader.reads == []


@pytest.mark.parametrize("error", [Unreachable("silent"), ApiError(429, "TooManyRequests", "later")])
async def test_a_queue_that_cannot_be_read_decides_nothing(error: ApiError) -> None:
    with pytest.raises(ApiError):
        await created(ray_cluster(), knowing(Reader({"queues/q": error})))


async def test_a_queue_whose_capability_cannot_be_read_takes_nobody() -> None:
    assert not (await created(ray_cluster(), knowing(queues=[queue(cpu="four")])))["allowed"]


@cases(
    "old, new",
    ("larger than the one that was too large", LARGE, ray_cluster(head=template("9"))),
    (
        "from one missing queue to another",
        ray_cluster(labels={"volcano.sh/queue-name": "nowhere"}),
        ray_cluster(labels={"volcano.sh/queue-name": "elsewhere"}),
    ),
)
async def test_an_edit_that_makes_a_fault_worse_is_refused(old: JSON, new: JSON) -> None:
    assert not (await updated(old, new))["allowed"]


@cases(
    "queues",
    ("root", [{**SMALL, "metadata": {"name": "root"}}]),
    (
        "root with a child",
        [{**SMALL, "metadata": {"name": "root"}}, {"metadata": {"name": "child"}, "spec": {"parent": "root"}}],
    ),
    (
        "a parent",
        [
            {**SMALL, "metadata": {"name": "upper"}},
            {"metadata": {"name": "lower"}, "spec": {"parent": "upper"}, "status": {"state": "Open"}},
        ],
    ),
)
async def test_a_queue_with_queues_below_it_takes_nobody(queues: list[JSON]) -> None:
    labels = {"volcano.sh/queue-name": queues[0]["metadata"]["name"]}
    response = await created(ray_cluster(labels=labels), knowing(queues=queues))
    assert response["status"]["reason"] == "QueueNotLeaf"


BARE = {"spec": {"containers": [{"name": "main"}], "runtimeClassName": "kata"}}


@cases("cpu, allowed", ("room", "1500m", True), ("a little less", "1499m", False))
async def test_what_the_cluster_adds_to_pods_takes_room(cpu: str, allowed: bool) -> None:
    """LimitRanges and overhead, as the apiserver will write them into the pods."""
    job = pytorch_job(policy={"queue": "q"}, replicas={"Worker": {"replicas": 2, "template": BARE}})
    knowledge = knowing(
        queues=[queue(cpu=cpu)], ranges=[limit_range(cpu="500m")], runtimes=[runtime_class("kata", cpu="250m")]
    )
    assert (await created(job, knowledge))["allowed"] is allowed


async def test_a_runtime_class_that_is_missing_is_warned_of() -> None:
    job = pytorch_job(policy={"queue": "q"}, replicas={"Worker": {"replicas": 1, "template": BARE}})
    response = await created(job, knowing(queues=[queue()], runtimes=[runtime_class("gvisor")]))
    assert 'RuntimeClass "kata" does not exist' in response["warnings"][0]


async def test_a_gang_that_a_quota_of_its_namespace_never_holds_is_refused() -> None:
    here, elsewhere = resource_quota({"cpu": "2"}), resource_quota({"cpu": "1"})
    elsewhere["metadata"]["namespace"] = "elsewhere"
    refused = await created(ray_cluster(), knowing(queues=[queue()], quotas=[here]))
    assert refused["status"]["reason"] == "ExceedsResourceQuota"
    assert (await created(ray_cluster(), knowing(queues=[queue()], quotas=[elsewhere])))["allowed"]


@cases("replicas, allowed", ("smaller", 3, True), ("larger", 6, False))
async def test_what_was_too_large_for_a_quota_may_become_smaller(replicas: int, allowed: bool) -> None:
    """The quota was lowered when it was there: it is put right in steps."""
    before, now = (ray_cluster(workers(replicas=count)) for count in (5, replicas))
    knowledge = knowing(queues=[queue(cpu="99", memory="99Gi")], quotas=[resource_quota({"cpu": "2"})])
    assert (await updated(before, now, knowledge))["allowed"] is allowed


def _limited(cpu: str, count: int = 2) -> JSON:
    """Workers that have a limit of so much, and an init container that has none."""
    asked = {"requests": {"cpu": "1"}, "limits": {"cpu": cpu}}
    of = {"spec": {"containers": [{"name": "c", "resources": asked}], "initContainers": [{"name": "i"}]}}
    return pytorch_job(replicas={"Worker": {"replicas": count, "template": of}}, policy={"queue": "q"})


@cases(
    "before, now, allowed",
    ("less", _limited("5"), _limited("4"), True),
    ("fewer", _limited("5"), _limited("5", count=1), True),
    ("more", _limited("5"), _limited("6"), False),
    ("new", _limited("1"), _limited("5"), False),
)
async def test_what_limits_were_too_much_for_a_quota_may_become_less(before: JSON, now: JSON, allowed: bool) -> None:
    given = {
        "metadata": {"name": "usual", "namespace": "team"},
        "spec": {"limits": [{"type": "Container", "default": {"cpu": "100m"}}]},
    }
    knowledge = knowing(queues=[queue()], quotas=[resource_quota({"limits.cpu": "3"})], ranges=[given])
    assert (await updated(before, now, knowledge))["allowed"] is allowed


async def test_pods_that_were_refused_before_may_be_put_right_container_by_container() -> None:
    """The first container is right now, and the line names the second."""
    knowledge = knowing(queues=[queue()], quotas=[resource_quota({"limits.cpu": "99"})])
    none = pytorch_job(policy={"queue": "q"})
    refused = await created(_limited("1"), knowledge)
    assert refused["status"]["reason"] == "RequiredByResourceQuota"
    answer = await updated(none, _limited("1"), knowledge)
    assert answer["allowed"]
    assert 'init container "i" does not set limits.cpu' in answer["warnings"][0]


def _in_waves(pods: int) -> JSON:
    """A JobSet of one pod, and of as many as said when that is ready."""
    spec = {"template": template(), "parallelism": pods, "completions": pods}
    after = {"dependsOn": [{"name": "first", "status": "Ready"}]}
    jobs = [
        {"name": "first", "template": {"spec": {"template": template()}}},
        {"name": "then", "template": {"spec": spec}, **after},
    ]
    kind = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet"}
    return {**ray_cluster(), **kind, "spec": {"replicatedJobs": jobs}}


@cases("quotas", ("queue", []), ("quota", [resource_quota({"pods": "3"})]))
@cases("pods, allowed", ("smaller", 4, True), ("larger", 6, False))
async def test_a_later_wave_that_was_too_large_may_become_smaller(pods: int, allowed: bool, quotas: list[JSON]) -> None:
    knowledge = knowing(queues=[queue(cpu="99" if quotas else "3", memory="99Gi")], quotas=quotas)
    assert (await updated(_in_waves(5), _in_waves(pods), knowledge))["allowed"] is allowed


async def test_a_gang_that_elastic_quotas_never_hold_is_refused_where_its_scheduler_heeds_them() -> None:
    coscheduling = Defaults(schedulers=named("coscheduling"), elastic_quotas=True)
    for defaults, allowed in ((coscheduling, False), (DEFAULTS, True)):
        elastic = [elastic_quota({"cpu": "2"}), elastic_quota({"cpu": "9"}, namespace="other")]
        knowledge = knowing(queues=[queue()], elastic=elastic, defaults=defaults)
        answer = answered(await review_workload(request(ray_cluster()), knowledge))
        assert answer["allowed"] is allowed
        assert allowed or answer["status"]["reason"] == "ExceedsElasticQuota"


@pytest.mark.parametrize("wanted", [False, True])
def test_elastic_quotas_are_watched_only_where_they_count(wanted: bool) -> None:
    reflectors = knowing(defaults=Defaults(elastic_quotas=wanted)).cache.reflectors()
    assert (ELASTIC_QUOTAS in [one.resource for one in reflectors]) is wanted


@cases("replicas, allowed", ("smaller", 3, True), ("larger", 6, False))
async def test_what_was_too_large_for_an_elastic_quota_may_become_smaller(replicas: int, allowed: bool) -> None:
    before, now = (ray_cluster(workers(replicas=count)) for count in (5, replicas))
    defaults = Defaults(schedulers=named("coscheduling"), elastic_quotas=True)
    knowledge = knowing(queues=[queue()], elastic=[elastic_quota({"cpu": "2"})], defaults=defaults)
    asked = request(now, old=before, operation="UPDATE")
    assert answered(await review_workload(asked, knowledge))["allowed"] is allowed


@cases(
    "replicas, where, allowed",
    ("smaller", 2, "test", True),
    ("larger", 4, "test", False),
    ("in another queue", 2, "other", False),
)
async def test_what_had_no_room_to_upgrade_may_become_smaller(replicas: int, where: str, allowed: bool) -> None:
    """Where the chart's value refuses what has none."""

    def service(count: int, name: str = "test") -> JSON:
        cluster = ray_cluster(workers(replicas=count), labels={"volcano.sh/queue-name": name})
        return {**cluster, "kind": "RayService", "spec": {"rayClusterConfig": cluster["spec"]}}

    defaults = Defaults(validation=Validation(reasons={Reason.NO_ROOM_TO_UPGRADE: Severity.DENY}))
    knowledge = knowing(queues=[queue("test", cpu="5"), queue("other", cpu="5")], defaults=defaults)
    asked = request(service(replicas, where), old=service(3), operation="UPDATE")
    answer = answered(await review_workload(asked, knowledge))
    assert answer["allowed"] is allowed
    assert allowed or answer["status"]["reason"] == "NoRoomToUpgrade"


@cases("owner, allowed", ("its own", "u-train", True), ("of a former TrainJob", "u-former", False))
async def test_a_train_job_is_changed_as_its_jobset_was_made(owner: str, *, allowed: bool) -> None:
    """The Trainer does not change that when the runtime changes, and neither does the controller count it again."""
    old, new = train_job(), train_job(labels={"volcano.sh/queue-name": "small"})
    for one in (old, new):
        one["metadata"]["uid"] = "u-train"
    maker = {"apiVersion": new["apiVersion"], "kind": "TrainJob", "name": "train", "uid": owner, "controller": True}
    meta = {"name": "train", "namespace": new["metadata"]["namespace"], "uid": "u-set", "ownerReferences": [maker]}
    job_set = {"metadata": meta, "spec": {"replicatedJobs": [step("node", "trainer", parallelism=2, completions=2)]}}
    knowledge = knowing(
        Reader({"jobsets/train": job_set}),
        workloads=[runtime(mlPolicy={"numNodes": 10, "torch": {}})],
        queues=[queue(cpu="20"), queue("small", cpu="4")],
    )
    assert (await updated(old, new, knowledge))["allowed"] is allowed
    assert not (await created(new, knowledge))["allowed"], "a new one is made of the runtime"


async def test_a_train_job_is_judged_by_the_queue_that_its_jobset_names() -> None:
    old, new = train_job(labels={}), train_job(labels={}, suspend=True)
    for one in (old, new):
        one["metadata"]["uid"] = "u-train"
    maker = {"apiVersion": new["apiVersion"], "kind": "TrainJob", "name": "train", "uid": "u-train", "controller": True}
    meta = {"name": "train", "namespace": new["metadata"]["namespace"], "uid": "u-set", "ownerReferences": [maker]}
    job_set = {
        "metadata": {**meta, "labels": {"volcano.sh/queue-name": "made"}},
        "spec": {"replicatedJobs": [step("node", "trainer", parallelism=2, completions=2)]},
    }
    knowledge = knowing(Reader({"jobsets/train": job_set}), workloads=[runtime()], queues=[queue("made", cpu="4")])
    assert await updated(old, new, knowledge) == {"uid": "u", "allowed": True}


@cases(
    "manifest, reason",
    ("a runtime that is not known", train_job(), "TrainingRuntimeNotFound"),
    ("numbers that make no gang", ray_cluster(workers(replicas=-1)), "Invalid"),
)
async def test_the_queue_of_a_workload_whose_pods_cannot_be_counted_is_read_before_it_is_judged(
    manifest: JSON, reason: str
) -> None:
    """It is there, so the only refusal is the other one; where it is not, both are told of."""
    for queues, reasons in (([queue(cpu="4")], [reason]), ([], [reason, "QueueNotFound"])):
        status = answered(await review_workload(request(manifest), knowing(queues=queues)))["status"]
        assert sorted(cause["reason"] for cause in status["details"]["causes"]) == sorted(reasons)
