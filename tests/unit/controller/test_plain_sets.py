"""Plain gangs of StatefulSets, which replace their pods one by one when they are edited."""

from muster.model.names import GANG_SIZE, STATE
from tests.support.controller.harness import Harness
from tests.support.manifests.observed import JSON, pod, queue, template


def of_set(name: str, *, second: int = 0, size: str = "4", queue_: str = "q", maker: str = "web") -> JSON:
    """A held pod of a StatefulSet, as the webhook makes it, created in that second."""
    return pod(
        name,
        uid=f"uid-{name}-{second}",
        owner={
            "apiVersion": "apps/v1",
            "kind": "StatefulSet",
            "name": maker,
            "uid": f"uid-{maker}",
            "controller": True,
        },
        labels={"muster.dev/gang": "web", "volcano.sh/queue-name": queue_},
        annotations={GANG_SIZE: size, "scheduling.k8s.io/group-name": "web"},
        meta={"creationTimestamp": f"2026-11-21T10:00:{second:02}Z"},
        schedulingGates=[{"name": "muster.dev/gang"}],
        **template("1")["spec"],
    )


async def waiting() -> Harness:
    """A gang that its queue can never hold."""
    harness = await Harness(
        pods=[of_set(f"web-{n}") for n in range(4)], queues=[queue(cpu="3"), queue("large", cpu="9")]
    ).settled()
    assert harness.annotations("web")[STATE] == "ExceedsCapability"
    return harness


async def test_a_waiting_stateful_set_that_is_made_smaller_starts() -> None:
    """Its first pod is replaced when the one after it is ready, which waits for the first."""
    harness = await waiting()
    for name in ("web-1", "web-2", "web-3"):
        del harness.client.pods[name]
    harness.client.pods["web-1"] = of_set("web-1", second=40, size="2")
    await harness.catch_up()
    assert harness.open_pods() == ["web-0", "web-1"]
    assert harness.client.groups["web"]["spec"]["minMember"] == 2
    harness.restart()
    await harness.settle()
    assert harness.client.groups["web"]["spec"]["minMember"] == 2


async def test_a_waiting_stateful_set_that_is_given_to_another_queue_waits_there() -> None:
    harness = await waiting()
    harness.client.pods["web-3"] = of_set("web-3", second=40, queue_="large")
    await harness.catch_up()
    assert harness.open_pods() == ["web-0", "web-1", "web-2", "web-3"]
    assert harness.client.groups["web"]["spec"]["queue"] == "large"


async def test_a_pod_of_another_maker_does_not_make_a_gang_smaller() -> None:
    harness = await waiting()
    for name in ("web-2", "web-3"):
        del harness.client.pods[name]
    harness.client.pods["other"] = of_set("other", second=40, size="2", maker="other")
    await harness.catch_up()
    assert harness.open_pods() == []
