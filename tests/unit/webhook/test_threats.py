"""What somebody may send who means harm; docs/security.md has the whole list, of which these are the webhook's own."""

import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

import jsonpatch
import pytest
from prometheus_client import CollectorRegistry

from muster.model.names import NAMESPACE_SELECTOR
from muster.model.objects import InvalidObjectError
from muster.schedulers import SCHEDULERS, named
from tests.support.cases import cases
from tests.support.manifests.observed import (
    DEFAULTS,
    JSON,
    as_json,
    namespace,
    pod,
    pytorch_job,
    queue,
    ray_cluster,
    ray_owner,
    template,
)
from tests.support.webhook.admission_reviews import Reader, answered, knowing, patch_of, request, review
from webhook.metrics import ReviewMetrics
from webhook.reviews.cluster_reader import ClusterReader
from webhook.reviews.codec import AdmissionRequest, AdmissionResponse, decode_review
from webhook.reviews.pods import review_pod
from webhook.reviews.workloads import review_workload

OWNER = ray_owner(controller=True)
LABELS = {"ray.io/cluster": "demo", "ray.io/group": "workers"}
# What is large has so many times the size of what it is compared with. Both are a part of the 3 MiB that the apiserver
# takes: steps are counted, and it is their number that grows.
_PARTS = 4


def member(**owner: object) -> JSON:
    return pod("", owner={**OWNER, **owner}, labels=LABELS, schedulerName="default-scheduler")


@pytest.mark.parametrize(
    "name", ["..", ".", "", "../../secrets/x", "demo/status", "demo?watch=1", "d\u0435mo", "DEMO", "x" * 5000, "a\nb"]
)
async def test_a_name_that_no_object_has_is_never_asked_for(name: str) -> None:
    """An owner reference comes from whoever makes the pod; it is put into no path but as a name."""
    reader = Reader()
    assert not (await review_pod(request(member(name=name)), knowing(reader))).patch
    labelled = ray_cluster(labels={"volcano.sh/queue-name": name or "q", "ray.io/priority-class-name": name})
    await review_workload(request(labelled), knowing(reader, queues=[queue()]))
    # Of the workload, which has a name.
    assert set(reader.reads) <= {"podgroups/ray-demo-pg"}


async def test_an_owner_is_looked_for_in_the_pods_own_namespace_only() -> None:
    """Whoever knows name and UID of another tenant's workload still joins nothing of theirs."""
    theirs = ray_cluster(meta={"namespace": "other"})
    assert not (await review_pod(request(member()), knowing(workloads=[theirs]))).patch


@pytest.mark.parametrize(
    "forged", [{"uid": "guessed"}, {"controller": False}, {"kind": "RayJob"}, {"apiVersion": "v1"}]
)
async def test_a_forged_owner_makes_no_member(forged: JSON) -> None:
    knowledge = knowing(Reader({"rayclusters/demo": ray_cluster()}), workloads=[ray_cluster()])
    assert not (await review_pod(request(member(**forged)), knowledge)).patch


@pytest.mark.parametrize("claimed", ['{"kind": "RayCluster", "name": "theirs", "uid": "uid-theirs"}', "no JSON"])
async def test_what_a_pod_claims_of_its_gang_is_written_over(claimed: str) -> None:
    """Its controller decides whose it is, not what a template says; the controller would believe these."""
    new = member()
    new["metadata"]["labels"] |= {"muster.dev/gang": "theirs", "volcano.sh/queue-name": "theirs"}
    new["metadata"]["annotations"] = {"muster.dev/workload": claimed, "volcano.sh/task-spec": "theirs", "a": "b"}
    patch = patch_of(await review_pod(request(new), knowing(workloads=[ray_cluster()])))
    patched = jsonpatch.apply_patch(new, patch)
    assert "theirs" not in as_json(patched)
    assert patched["metadata"]["annotations"] == {
        "a": "b",
        "scheduling.k8s.io/group-name": "ray-demo-pg",
        "volcano.sh/task-spec": "workers",
    }


async def test_who_asks_changes_no_answer() -> None:
    """Of a forged review anybody may be the user."""

    async def answer(user: JSON) -> JSON:
        asked = review(ray_cluster())
        asked["request"]["userInfo"] = user
        return answered(await review_workload(decode_review(as_json(asked).encode()), knowing()))

    assert await answer({"username": "kubernetes-admin", "groups": ["system:masters"]}) == await answer({})


async def test_a_look_alike_of_a_queues_name_is_no_name() -> None:
    """Its first letter is Cyrillic; no object can be called so."""
    labels = {"volcano.sh/queue-name": "\u0440rod"}
    answer = answered(await review_workload(request(ray_cluster(labels=labels)), knowing()))
    assert answer["status"]["reason"] == "Invalid"


async def test_what_a_message_quotes_stays_on_its_line() -> None:
    """Or it would write lines of its own into whatever shows it, or colours and worse into a terminal."""
    job = pytorch_job(policy={"queue": "q\n\x1b[2Jkubectl: all is well"})
    status = answered(await review_workload(request(job), knowing()))["status"]
    texts = [status["message"], *(cause["message"] for cause in status["details"]["causes"])]
    assert all(text.isprintable() for text in texts)
    assert "q\\n\\x1b[2Jkubectl" in status["message"]
    other = pod("", owner=OWNER, labels=LABELS, schedulerName="a\nb")
    (warning,) = answered(await review_pod(request(other), knowing(workloads=[ray_cluster()])))["warnings"]
    assert "a\\nb" in warning


async def test_a_refusal_does_not_give_back_all_that_it_was_given() -> None:
    large = pod("p", labels={"muster.dev/gang": "g"}, annotations={"muster.dev/gang-size": "9" * 200_000})
    status = answered(await review_pod(request(large), knowing()))["status"]
    assert len(as_json(status)) < 20_000


@cases("new", ("none", {"metadata": member()["metadata"]}), ("null", {**member(), "spec": None}))
async def test_a_pod_without_a_specification_is_left_to_the_apiserver(new: JSON) -> None:
    assert not (await review_pod(request(new), knowing(workloads=[ray_cluster()]))).patch


async def test_a_plain_pod_that_a_later_webhook_gave_to_another_scheduler_is_let_go() -> None:
    """It opts in by itself, so that its scheduler seems to be what its user asked for; nobody would open its gate."""
    new = pod("p", labels={"muster.dev/gang": "g"}, annotations={"muster.dev/gang-size": "1"}, schedulerName="")
    once = jsonpatch.apply_patch(new, patch_of(await review_pod(request(new), knowing())))
    once["spec"]["schedulerName"] = "mine"
    result = jsonpatch.apply_patch(once, patch_of(await review_pod(request(once), knowing())))
    assert result["spec"]["schedulingGates"] == []


async def test_a_plain_pod_that_names_its_gang_scheduler_itself_is_done_after_one_round() -> None:
    both = replace(DEFAULTS, schedulers=SCHEDULERS)
    for name in SCHEDULERS:
        new = pod("p", labels={"muster.dev/gang": "g"}, annotations={"muster.dev/gang-size": "1"}, schedulerName=name)
        once = jsonpatch.apply_patch(new, patch_of(await review_pod(request(new), knowing(defaults=both))))
        assert once["spec"]["schedulingGates"] == [{"name": "muster.dev/gang"}]
        assert not (await review_pod(request(once), knowing(defaults=both))).patch


async def test_a_plain_pod_of_a_gang_is_in_no_other_group_of_kube_schedulers() -> None:
    """Held by its gate it would hold up every pod of that one; the second round leaves it as it is."""
    mine = replace(DEFAULTS, schedulers=named("kubernetes"))
    new = pod("p", labels={"muster.dev/gang": "g"}, annotations={"muster.dev/gang-size": "1"}, schedulerName="")
    new["spec"]["schedulingGroup"] = {"podGroupName": "another"}
    once = jsonpatch.apply_patch(new, patch_of(await review_pod(request(new), knowing(defaults=mine))))
    assert once["spec"]["schedulingGroup"] == {"podGroupName": "g"}
    assert not (await review_pod(request(once), knowing(defaults=mine))).patch


def _numbered(many: int) -> dict[str, str]:
    return {f"key-{number}": "value" for number in range(many)}


def _with_pod(change: Callable[[JSON], object]) -> JSON:
    new = member()
    change(new)
    return new


async def _steps(
    asked: Callable[[AdmissionRequest, ClusterReader], Awaitable[AdmissionResponse]], manifest: JSON
) -> int:
    """How many functions are called from the bytes to the answer: a measure that no busy machine changes."""
    body = as_json(review(manifest)).encode()
    knowledge = knowing(workloads=[ray_cluster()], queues=[queue("default"), queue(cpu="4")])
    calls = 0

    def count(_frame: object, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        await asked(decode_review(body), knowledge)
    finally:
        sys.setprofile(None)
    return calls


def _in_proportion(whole: int, part: int) -> bool:
    """A little more than in proportion (sorting), and far from the square of the size."""
    return whole <= 1.5 * _PARTS * part


@cases(
    "most, make",
    ("labels", 120_000, lambda n: _with_pod(lambda new: new["metadata"]["labels"].update(_numbered(n)))),
    ("annotations", 120_000, lambda n: _with_pod(lambda new: new["metadata"].update(annotations=_numbered(n)))),
    ("owners", 700_000, lambda n: _with_pod(lambda new: new["metadata"]["ownerReferences"].extend([{}] * n))),
    ("containers", 700_000, lambda n: _with_pod(lambda new: new["spec"].update(containers=[{}] * n))),
    (
        "scheduling gates",
        180_000,
        lambda n: _with_pod(lambda new: new["spec"].update(schedulingGates=[{"name": "a"}] * n)),
    ),
    ("what nobody knows", 500_000, lambda n: _with_pod(lambda new: new["spec"].update(x=[None] * n))),
    (
        "labels and a null",
        120_000,
        lambda n: _with_pod(lambda new: new["metadata"]["labels"].update(_numbered(n), none=None)),
    ),
)
async def test_a_pod_of_three_mebibytes_takes_time_in_proportion(most: int, make: Callable[[int], JSON]) -> None:
    assert len(as_json(make(most))) > 2 * 2**20
    part = await _steps(review_pod, make(most // _PARTS**2))
    assert _in_proportion(await _steps(review_pod, make(most // _PARTS)), part)


def _groups(many: int) -> list[JSON]:
    return [{"groupName": f"g-{number}", "template": {"spec": {"containers": [{}]}}} for number in range(many)]


@cases(
    "most, make",
    ("worker groups", 30_000, lambda n: ray_cluster(*_groups(n))),
    (
        "containers",
        40_000,
        lambda n: ray_cluster(head={"spec": {"containers": [template()["spec"]["containers"][0]] * n}}),
    ),
    ("resources", 150_000, lambda n: pytorch_job(policy={"minResources": {f"r-{i}": "1" for i in range(n)}})),
    (
        "long quantities",
        20_000,
        lambda n: pytorch_job(policy={"minResources": {f"r-{i}": "9" * 120 for i in range(n)}}),
    ),
    ("an exponent", 10**6, lambda n: pytorch_job(policy={"minResources": {"cpu": f"1e{n}"}})),
    ("a long number", 3 * 10**6, lambda n: pytorch_job(policy={"minResources": {"cpu": "9" * n}})),
    ("a name that nearly is one", 10**6, lambda n: pytorch_job(policy={"queue": "a-" * n + "!"})),
    ("a duration", 10**6, lambda n: ray_cluster(annotations={"muster.dev/requeue-after": "1h" * n + "!"})),
)
async def test_a_workload_of_three_mebibytes_takes_time_in_proportion(most: int, make: Callable[[int], JSON]) -> None:
    part = await _steps(review_workload, make(most // _PARTS**2))
    assert _in_proportion(await _steps(review_workload, make(most // _PARTS)), part)


async def test_an_answer_says_nothing_of_other_tenants() -> None:
    """Whoever reaches the webhook's port may ask, in anybody's name: there is nothing to be learned that way."""
    theirs = ray_cluster(name="hidden", uid="uid-hidden", labels={"volcano.sh/queue-name": "hidden-queue"})
    knowledge = knowing(
        workloads=[theirs],
        queues=[queue("hidden-queue", cpu="7"), queue(cpu="1")],
        classes=[],
        pods=[pod("hidden-pod")],
    )
    for asked in (ray_cluster(), ray_cluster(labels={"volcano.sh/queue-name": "gone"}), pytorch_job(policy={})):
        answer = await review_workload(request(asked), knowledge)
        assert "hidden" not in as_json(answered(answer))
    asking = member(name="hidden", uid="guessed")
    assert answered(await review_pod(request(asking), knowledge)) == {"uid": "u", "allowed": True}


def _lane(name: str = "q", parent: str = "", *, closed: bool = False) -> JSON:
    """A queue of 40 cpu."""
    made = queue(name, cpu="40", annotations={NAMESPACE_SELECTOR: "team=ml"} if closed else {})
    return {**made, "spec": {**made["spec"], "parent": parent}}


@cases(
    "queues, told",
    ("a closed queue", [_lane(closed=True)], False),
    ("below one", [_lane(parent="top"), _lane("top", closed=True)], False),
    ("beside one", [_lane(parent="top"), _lane("top"), _lane("theirs", "top", closed=True)], True),
    ("an open one", [_lane()], True),
)
async def test_nobody_learns_what_a_closed_queue_uses(queues: list[JSON], told: bool) -> None:
    """A forged namespace opens it to a question, and a yes or no to every size would tell the number."""
    answers = []
    for used in ("0", "39"):
        seen = [{**one, "status": {"state": "Open", "allocated": {"cpu": used}}} for one in queues]
        knowledge = knowing(queues=seen, namespaces=[namespace(labels={"team": "ml"})])
        answers.append(answered(await review_workload(request(ray_cluster()), knowledge)))
    assert (answers[0] != answers[1]) is told
    assert "39" not in as_json(answers)


async def test_no_caller_can_make_up_a_label_of_a_metric() -> None:
    """Each would be a series of its own in memory, for ever."""
    registry = CollectorRegistry()
    reviews = ReviewMetrics(registry).of("workloads")

    async def series_after(names: list[str]) -> int:
        for name in names:
            labelled = ray_cluster(name=name, labels={"volcano.sh/queue-name": name}, meta={"namespace": name})
            reviews.answered(await review_workload(request(labelled), knowing()), 0.001)
        return sum(len(metric.samples) for metric in registry.collect())

    assert await series_after(["a"]) == await series_after([f"name-{number}" for number in range(50)])


def _nested(depth: int) -> Any:  # noqa: ANN401 - any JSON
    value: Any = {}
    for _ in range(depth):
        value = {"x": value}
    return value


@pytest.mark.parametrize("depth", [100, 800])
async def test_an_object_of_any_depth_is_answered_or_refused(depth: int) -> None:
    """Also where a null among what is read makes the slower reader look at all of it."""
    deep = {**member(), "x": _nested(depth)}
    deep["spec"]["priorityClassName"] = None
    asked = review_pod(request(deep), knowing(workloads=[ray_cluster()]))
    with suppress(InvalidObjectError):
        assert (await asked).allowed
