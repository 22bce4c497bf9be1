"""Who made a workload is told why its gang waits: that is the object that its user wrote."""

from collections import Counter
from collections.abc import Mapping

import pytest

from controller.apiserver import Writer
from controller.events import Announcer, Budgets
from muster.kube.errors import ApiError
from muster.kube.events import Regarding
from muster.model.objects import OwnerReference
from tests.support.cases import cases
from tests.support.controller.harness import Harness, Makers
from tests.support.controller.recording_client import RecordingClient
from tests.support.controller.two_gangs import demo, members
from tests.support.manifests.observed import JSON, NAMESPACE, as_client, pod, queue, ray_cluster
from tests.support.manifests.owner_chains import owned

SHORT = {"queues": [queue(cpu="2")]}
NOTE = 'needs cpu 3, queue "q" has capability cpu 2'


def maker(kind: str, name: str, group: str = "ray.io/v1", **spec: object) -> JSON:
    meta = {"name": name, "namespace": NAMESPACE, "uid": f"uid-{name}"}
    return {"apiVersion": group, "kind": kind, "metadata": meta, "spec": spec}


def told(harness: Harness) -> dict[str, list[str]]:
    """What was said, by kind and name of the object; PodGroups say what their workloads do."""
    notes: dict[str, list[str]] = {}
    for write in harness.client.writes:
        if write.verb == "create" and write.body["regarding"]["kind"] != "PodGroup":
            about = write.body["regarding"]
            notes.setdefault(f"{about['kind']} {about['name']}", []).append(write.body["note"])
    return notes


@pytest.mark.parametrize("kind", ["RayJob", "RayService"])
async def test_who_wrote_a_ray_job_or_service_reads_there_why_it_waits(kind: str) -> None:
    """`kubectl describe` asks for the UID, and the RayCluster that waits has another name."""
    above = maker(kind, "mine")
    harness = demo(workloads=[owned(ray_cluster(), above), above], **SHORT)
    await harness.settle()
    assert told(harness) == {"RayCluster demo": [NOTE], f"{kind} mine": [f'RayCluster "demo": {NOTE}']}
    (event,) = harness.events_on(kind)
    assert event["regarding"] == {
        "apiVersion": "ray.io/v1",
        "kind": kind,
        "namespace": NAMESPACE,
        "name": "mine",
        "uid": "uid-mine",
    }
    assert (event["reason"], event["type"]) == ("ExceedsCapability", "Warning")


async def test_the_whole_chain_is_told_and_above_it_one_of_any_kind() -> None:
    """A RayCronJob makes RayJobs, and a workflow may make RayCronJobs."""
    flow = maker("Workflow", "flow", "argoproj.io/v1alpha1")
    cron = owned(maker("RayCronJob", "nightly"), flow)
    job = owned(maker("RayJob", "nightly-1"), cron)
    harness = demo(workloads=[owned(ray_cluster(), job), job, cron], **SHORT)
    await harness.settle()
    assert list(told(harness)) == ["RayCluster demo", "RayJob nightly-1", "RayCronJob nightly", "Workflow flow"]


@cases(
    "reference",
    ("a name that no object has", {"name": "No Name"}),
    ("a long kind", {"kind": "x" * 64}),
    ("a long apiVersion", {"apiVersion": "x" * 318}),
    ("a long UID", {"uid": "x" * 129}),
    ("a RayJob that is not there", {"kind": "RayJob", "apiVersion": "ray.io/v1"}),
)
async def test_a_forged_owner_is_not_repeated_in_events(reference: Mapping[str, str]) -> None:
    forged = owned(ray_cluster(), maker("Workflow", "flow", "argoproj.io/v1alpha1"))
    forged["metadata"]["ownerReferences"][0] |= reference
    harness = demo(workloads=[forged], **SHORT)
    await harness.settle()
    assert list(told(harness)) == ["RayCluster demo"]


def plain(name: str, owner: JSON) -> JSON:
    member = pod(
        name,
        labels={"muster.dev/gang": "pair", "volcano.sh/queue-name": "q"},
        annotations={"muster.dev/gang-size": "2", "scheduling.k8s.io/group-name": "pair"},
        schedulingGates=[{"name": "muster.dev/gang"}],
    )
    return owned(member, owner)


async def test_the_makers_of_plain_pods_are_told_and_the_cron_job_above_a_job() -> None:
    """A Job for each role; of a Job that a CronJob made the cluster knows."""
    jobs = [maker("Job", name, "batch/v1") for name in ("leader", "worker")]
    harness = Harness(pods=[plain("a", jobs[0]), plain("b", jobs[1])], queues=[queue(cpu="1")])
    harness.makers["worker"] = OwnerReference(
        api_version="batch/v1", kind="CronJob", name="nightly", uid="uid-nightly", controller=True
    )
    await harness.settle()
    notes = told(harness)
    assert notes.pop("Pod a")
    assert sorted(notes) == ["CronJob nightly", "Job leader", "Job worker"]
    assert all(note.startswith('gang "pair": ') for said in notes.values() for note in said)


async def test_who_made_many_workloads_has_one_budget_for_them_all() -> None:
    """A hundred clusters of one maker are a hundred gangs, and each has its own to say."""
    flow = maker("Workflow", "flow", "argoproj.io/v1alpha1")
    names = [f"c{number}" for number in range(30)]
    harness = Harness(
        workloads=[owned(ray_cluster(name=name, uid=f"uid-{name}"), flow) for name in names],
        pods=[pod for name in names for pod in members(name)],
        **SHORT,
    )
    await harness.settle()
    assert Counter(kind.partition(" ")[0] for kind in told(harness)) == {"RayCluster": 30, "Workflow": 1}
    assert len(told(harness)["Workflow flow"]) == 10


JOB = Regarding("batch/v1", "Job", NAMESPACE, "job", "uid-job")


async def test_jobs_that_claim_to_have_made_each_other_are_told_once() -> None:
    client = RecordingClient()

    async def another(job: Regarding) -> OwnerReference:
        return OwnerReference(api_version="batch/v1", kind="Job", name=f"{job.name}-x", uid=f"{job.uid}-x")

    events = Announcer(Writer(as_client(client), lambda: 60.0), Makers(another), "c")
    events.add_for_maker(JOB, "Admitted", "note", warning=False)
    await events.flush()
    assert [write.body["regarding"]["name"] for write in client.writes] == ["job", "job-x"]


async def test_a_job_that_cannot_be_read_is_told_all_the_same() -> None:
    client = RecordingClient()

    async def unreadable(job: Regarding) -> None:
        raise ApiError(403, "Forbidden", f"no {job.kind} here")

    events = Announcer(Writer(as_client(client), lambda: 60.0), Makers(unreadable), "c")
    for note in ("first", "second"):
        events.add_for_maker(JOB, "Admitted", note, warning=False)
    await events.flush()
    assert [write.body["note"] for write in client.writes] == ["first", "second"]


def test_makers_of_whom_nothing_was_said_for_long_are_forgotten() -> None:
    """What is remembered does not grow with the jobs of a year."""
    budgets = Budgets()
    for number in range(5000):
        assert budgets.take(f"uid-{number}", now=100.0 * number)
    assert len(budgets._budgets) <= 1000
