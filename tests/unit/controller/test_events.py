"""What is said as events: on whom, how often, and that nothing waits for it."""

import asyncio

from controller.apiserver import NotLeaderError, Writer
from controller.events import Announcer
from muster.kube.errors import ApiError, Unreachable
from muster.kube.events import Regarding
from muster.model.names import MESSAGE
from muster.model.resource import POD_GROUPS, Resource
from tests.support.cases import cases
from tests.support.controller.harness import Harness, Makers
from tests.support.controller.recording_client import RecordingClient
from tests.support.controller.two_gangs import demo
from tests.support.manifests.observed import GROUP, JSON, as_client, pod_group, queue


def too_large(**objects: list[JSON]) -> Harness:
    """A gang of 3 cpu in a queue of 2."""
    return demo(**{"queues": [queue(cpu="2")], **objects})


def notes(harness: Harness) -> list[str]:
    return [note for _, _, note in harness.events()]


async def numbers_change(harness: Harness, cpu: str) -> None:
    harness.set_queue(queue(cpu=cpu))
    await harness.settle()


async def test_the_workload_and_its_pod_group_get_the_same_event() -> None:
    """Whoever looks at either finds it; `kubectl describe` asks for the UID."""
    harness = await too_large().settled()
    of_workload, of_group = harness.events_on("RayCluster"), harness.events_on("PodGroup")
    assert [event["note"] for event in of_workload] == [event["note"] for event in of_group] == notes(harness)
    assert of_workload[0]["regarding"] == {
        "apiVersion": "ray.io/v1",
        "kind": "RayCluster",
        "namespace": "team",
        "name": "demo",
        "uid": "uid-demo",
    }
    assert of_group[0]["regarding"] == {
        "apiVersion": POD_GROUPS.api_version,
        "kind": "PodGroup",
        "namespace": "team",
        "name": GROUP,
        "uid": harness.client.groups[GROUP]["metadata"]["uid"],
    }


async def test_somebody_elses_pod_group_gets_no_event() -> None:
    harness = await too_large(groups=[pod_group(ours=False)]).settled()
    assert len(harness.events_on("RayCluster")) == 1
    assert harness.events_on("PodGroup") == []


async def test_the_same_state_with_other_numbers_is_said_less_and_less_often() -> None:
    """A gang that waits for a day must not leave thousands of events; the annotation has every number."""
    harness = await too_large().settled()
    said_at = []
    start = harness.now
    for second in range(0, 3600, 10):
        harness.now = start + second
        before = len(notes(harness))
        await numbers_change(harness, f"{1000 + second % 1000}m")
        said_at += [second] * (len(notes(harness)) - before)
    assert said_at == [30, 90, 210, 450, 930, 1530, 2130, 2730, 3330]
    assert harness.annotations(GROUP)[MESSAGE] == 'needs cpu 3, queue "q" has capability cpu 1590m'


async def test_a_gang_that_goes_to_and_fro_has_a_budget() -> None:
    harness = await too_large().settled()
    for _ in range(30):
        harness.drop_queue(queue())
        await harness.settle()
        await numbers_change(harness, "2")
    assert len(notes(harness)) == 10
    harness.now += 61
    await numbers_change(harness, "1")
    assert notes(harness)[10:] == ['needs cpu 3, queue "q" has capability cpu 1']


class SilentClient(RecordingClient):
    """An apiserver that never answers to an event."""

    async def create(self, resource: Resource, body: JSON, namespace: str, *, deadline: float) -> bytes:
        """Wait for ever."""
        del resource, body, namespace, deadline
        await asyncio.Event().wait()
        raise AssertionError("nobody sets it")


ABOUT = Regarding("ray.io/v1", "RayCluster", "team", "demo", "uid-demo")


def announcer(client: RecordingClient) -> Announcer:
    return Announcer(Writer(as_client(client), lambda: 60.0), Makers(), "muster-controller-0")


async def test_an_apiserver_that_takes_no_events_holds_nobody_up() -> None:
    """What cannot be written is kept within bounds; the oldest go first."""
    silent = announcer(SilentClient())
    running = asyncio.create_task(silent.run())
    for number in range(5000):
        silent.add(ABOUT, "Admitted", f"note {number}", warning=False)
        if number % 1000 == 0:
            await asyncio.sleep(0)
    assert silent.dropped == 5000 - 2000 - 1
    running.cancel()


@cases(
    "error",
    ("refused", ApiError(403, "Forbidden", "no events here")),
    ("unreachable", Unreachable("no route")),
    ("no lease", NotLeaderError("the lease is gone")),
)
async def test_what_cannot_be_written_is_given_up_and_the_next_is_tried(error: Exception) -> None:
    client = RecordingClient(fails={"create Event": [error]})
    events = announcer(client)
    for note in ("first", "second"):
        events.add(ABOUT, "Admitted", note, warning=False)
    await events.flush()
    assert [write.body["note"] for write in client.writes] == ["first", "second"]
    assert (events.written, events.dropped) == (1, 1)


async def test_a_note_is_no_longer_than_the_apiserver_takes() -> None:
    client = RecordingClient()
    events = announcer(client)
    events.add(ABOUT, "Admitted", "é" * 1000, warning=False)
    await events.flush()
    note = client.writes[0].body["note"]
    assert note == "é" * 512


async def test_a_refused_event_does_not_hinder_scheduling() -> None:
    harness = demo()
    harness.client.fails["create Event"] = [ApiError(403, "Forbidden", "no events here")] * 9
    await harness.settle()
    assert len(harness.open_pods()) == 3


async def test_the_same_words_are_said_once_and_other_numbers_not_at_once() -> None:
    harness = await too_large().settled()
    harness.set_queue(queue(cpu="1"))
    await harness.settle()
    assert [note for _, _, note in harness.events()] == ['needs cpu 3, queue "q" has capability cpu 2']
    assert harness.annotations(GROUP)[MESSAGE] == 'needs cpu 3, queue "q" has capability cpu 1'
    harness.now += 31
    harness.set_queue(queue(cpu="2500m"))
    await harness.settle()
    assert [note for _, _, note in harness.events()][1:] == ['needs cpu 3, queue "q" has capability cpu 2500m']


async def test_a_new_leader_does_not_repeat_what_was_said() -> None:
    harness = await too_large().settled()
    harness.restart()
    assert await harness.settle() == []


async def test_a_new_leader_does_not_repeat_a_state_for_other_numbers() -> None:
    """Of thousands that wait each would be an event more when a leader ends."""
    harness = await too_large().settled()
    harness.restart()
    harness.set_queue(queue(cpu="1"))
    await harness.settle()
    assert harness.annotations(GROUP)[MESSAGE] == 'needs cpu 3, queue "q" has capability cpu 1'
    assert [note for _, _, note in harness.events()] == ['needs cpu 3, queue "q" has capability cpu 2']
    harness.now += 31
    harness.set_queue(queue(cpu="2500m"))
    await harness.settle()
    assert len(harness.events()) == 2


async def test_an_event_names_this_process() -> None:
    harness = await demo().settled()
    event = next(write.body for write in harness.client.writes if write.verb == "create")
    assert (event["reportingController"], event["reportingInstance"]) == (
        "muster.dev/controller",
        "muster-controller-0",
    )


class Counting(Announcer):
    """Counts how often it looks for events."""

    flushes = 0

    async def flush(self) -> None:
        """Count, and write."""
        self.flushes += 1
        assert self.flushes < 9, "it never rests"
        await super().flush()


async def test_who_has_nothing_left_to_write_rests() -> None:
    """Until something is said again."""
    events = Counting(Writer(as_client(RecordingClient()), lambda: 60.0), Makers(), "muster-controller-0")
    running = asyncio.create_task(events.run())
    for said in (1, 2):
        events.add(ABOUT, "Admitted", f"note {said}", warning=False)
        for _ in range(20):
            await asyncio.sleep(0)
        assert (events.written, events.flushes) == (said, said)
    running.cancel()


async def test_a_namespace_of_which_much_is_said_keeps_no_other_from_being_told() -> None:
    client = RecordingClient()
    events = announcer(client)
    for number in range(100):
        events.add(Regarding("v1", "Pod", "many", f"p{number}", f"u{number}"), "Admitted", "much", warning=False)
    events.add(Regarding("v1", "Pod", "few", "p", "u"), "Admitted", "little", warning=False)
    await events.flush()
    assert [write.body["note"] for write in client.writes].index("little") <= 1


async def test_of_too_much_that_waits_the_namespace_that_has_most_loses() -> None:
    client = RecordingClient()
    events = announcer(client)
    events.add(Regarding("v1", "Pod", "few", "p", "u"), "Admitted", "little", warning=False)
    for number in range(3_000):
        events.add(Regarding("v1", "Pod", "many", f"p{number}", f"u{number}"), "Admitted", "much", warning=False)
    assert events.dropped == 1_001
    writing = asyncio.create_task(events.flush())
    for _ in range(20):
        await asyncio.sleep(0)
    writing.cancel()
    assert [write.body["note"] for write in client.writes][:1] == ["little"]
