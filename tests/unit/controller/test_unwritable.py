"""Gangs for which the apiserver does not take what is written: they stand aside, say so, and come back."""

from contextlib import suppress
from typing import SupportsIndex

import pytest

from muster.kube.errors import ApiError, Unreachable
from muster.model.names import ADMITTED, MESSAGE, STATE
from tests.support.cases import cases
from tests.support.controller.bypass_queue import LARGE, SMALL, gang, harness
from tests.support.controller.harness import Harness
from tests.support.manifests.observed import GROUP, old_pod, queue, ray_cluster, ray_pod

ELDER, YOUNGER = "2026-11-21T10:00:00Z", "2026-11-21T11:00:00Z"
DENIED = ApiError(403, "Forbidden", 'admission webhook "validate.kyverno.svc-fail" denied the request: tag latest')
NO_DRY_RUN = ApiError(400, "BadRequest", 'admission webhook "side.example" does not support dry run')
TOO_LARGE = ApiError(500, "InternalError", "etcdserver: request is too large")
AWAY = ApiError(503, "ServiceUnavailable", "the server is currently unable to handle the request")


class Always(list[Exception]):
    """An error that comes again each time."""

    def pop(self, index: SupportsIndex = -1) -> Exception:
        """The error, which stays."""
        return self[index]


def two(cpu: str = "4") -> Harness:
    """The elder needs 3 cpu, the younger 2, in a queue of 4."""
    return harness(gang("large", 3, created=ELDER), gang("small", 2, created=YOUNGER), cpu=cpu)


async def goes_on(world: Harness, seconds: float, rounds: int = 10) -> None:
    """Look at all gangs so often while this time passes, as the work queue does after failures."""
    for _ in range(rounds):
        for _ in range(5):
            for key in list(world.cluster.gangs()):
                world.queue.add(key)
            with suppress(ApiError):
                await world.settle()
                break
        world.now += seconds / rounds


def warned(world: Harness) -> list[str]:
    return [note for kind, reason, note in world.events() if (kind, reason) == ("Warning", "Invalid")]


def opened(name: str, *numbers: int) -> list[str]:
    return [f"{name}-{number}" for number in numbers]


@pytest.mark.parametrize(
    ("write", "error", "words"),
    [
        ("muster", DENIED, f'PodGroup "{LARGE}" was refused: {DENIED.message}'),
        ("muster", TOO_LARGE, f'PodGroup "{LARGE}" cannot be written: {TOO_LARGE.message}'),
        ("muster", ApiError(409, "Conflict", "try again"), f'PodGroup "{LARGE}" was refused: try again'),
        ("muster", ApiError(413, "", "Request entity too large"), f'PodGroup "{LARGE}" was refused: Request entity'),
        ("mark", TOO_LARGE, f"its admission cannot be written on its PodGroup: {TOO_LARGE.message}"),
        ("mark", ApiError(422, "Invalid", "Too long"), "its admission cannot be written on its PodGroup: Too long"),
        ("mark", ApiError(409, "Conflict", "try again"), "its admission cannot be written on its PodGroup: try again"),
        ("mark", Unreachable("no answer"), "its admission cannot be written on its PodGroup: no answer"),
    ],
)
async def test_what_cannot_be_written_keeps_nothing_from_the_gangs_behind_it(
    write: str, error: ApiError, words: str
) -> None:
    world = two()
    world.client.fails = {f"{write} {LARGE}": Always([error])}
    await goes_on(world, 120)
    assert world.open_pods() == opened("small", 0, 1)
    assert any(words in one and one.endswith("; others start before it") for one in warned(world))


@pytest.mark.parametrize("write", ["muster", "mark", "patch large-1"])
async def test_it_starts_by_itself_when_the_write_is_taken(write: str) -> None:
    world = two("5")
    fails = Always([DENIED])
    world.client.fails = {write if " " in write else f"{write} {LARGE}": fails}
    await goes_on(world, 600)
    assert world.open_pods() == opened("small", 0, 1)
    fails.clear()
    await goes_on(world, 121)
    assert world.open_pods() == [*opened("large", 0, 1, 2), *opened("small", 0, 1)]
    assert world.annotations(LARGE)[STATE] == "Admitted"


@cases("pod", ("the head's role", "large-0"), ("the workers' role", "large-1"))
async def test_a_policy_that_refuses_the_pods_of_one_role_lets_no_part_of_the_gang_start(pod: str) -> None:
    world = two()
    world.client.fails = {f"patch {pod}": Always([DENIED])}
    await goes_on(world, 60)
    assert world.open_pods() == opened("small", 0, 1)
    assert ADMITTED not in world.annotations(LARGE)
    words = f"the gate of pod {pod} cannot be taken off: {DENIED.message}; others start before it"
    assert (world.annotations(LARGE)[STATE], world.annotations(LARGE)[MESSAGE]) == ("Invalid", words)
    assert warned(world) == [words]


async def test_a_gang_of_which_one_pod_is_refused_holds_what_is_open_and_says_which_is_not() -> None:
    """The dry run met another pod of its role."""
    world = harness(gang("large", 3, created=ELDER), gang("small", 2, created=YOUNGER))
    world.client.fails = {"patch large-2": Always([DENIED])}
    await goes_on(world, 60)
    assert world.open_pods() == [*opened("large", 0, 1), *opened("small", 0, 1)]
    words = f"the gate of pod large-2 cannot be taken off: {DENIED.message}; "
    words += "what is open keeps its room, and others may take the rest"
    assert (world.annotations(LARGE)[STATE], world.annotations(LARGE)[MESSAGE]) == ("Invalid", words)
    assert warned(world) == [words]


async def test_what_was_given_back_is_not_taken_again_without_room() -> None:
    world = harness(gang("large", 3, created=ELDER), gang("small", 2, created=YOUNGER))
    world.client.fails = {"patch large-2": Always([DENIED])}
    await goes_on(world, 60)
    world.client.fails.clear()
    await goes_on(world, 130)
    assert world.open_pods() == [*opened("large", 0, 1), *opened("small", 0, 1)]
    assert "no room yet for cpu 1 and memory 1Gi more (large-2)" in world.annotations(LARGE)[MESSAGE]
    world.set_queue(queue(cpu="5"))
    await goes_on(world, 10)
    assert world.open_pods() == [*opened("large", 0, 1, 2), *opened("small", 0, 1)]
    assert world.annotations(LARGE)[STATE] == "Admitted"


async def test_a_replacement_that_is_refused_leaves_the_rest_of_the_gang_as_it_is() -> None:
    """The policy came after the gang was admitted."""
    world = two()
    await goes_on(world, 10)
    assert world.open_pods() == opened("large", 0, 1, 2)
    (_, pods) = gang("large", 4, created=ELDER)
    del world.client.pods["large-2"]
    world.client.pods["large-3"] = pods[3]
    world.client.fails = {"patch large-3": Always([DENIED])}
    world.watch()
    await goes_on(world, 60)
    assert world.open_pods() == [*opened("large", 0, 1), *opened("small", 0, 1)]
    assert world.annotations(LARGE)[STATE] == "Invalid"
    assert "large-3" in world.annotations(LARGE)[MESSAGE]
    assert DENIED.message in world.annotations(LARGE)[MESSAGE]


async def test_it_is_tried_at_once_when_the_refused_pod_is_replaced() -> None:
    world = two()
    world.client.fails = {"patch large-1": Always([DENIED])}
    await goes_on(world, 0)
    (_, pods) = gang("large", 4, created=ELDER)
    world.set_queue(queue(cpu="5"))
    del world.client.pods["large-1"]
    world.client.pods["large-3"] = pods[3]
    world.watch()
    await goes_on(world, 0)
    assert world.open_pods() == [*opened("large", 0, 2, 3), *opened("small", 0, 1)]


async def test_a_webhook_without_dry_run_keeps_no_gang_from_starting() -> None:
    world = two()
    patch = world.client.strategic_merge_patch

    async def strict(*args: object, dry_run: bool = False, **rest: object) -> bytes:
        if dry_run:
            raise NO_DRY_RUN
        return await patch(*args, **rest)  # type: ignore[arg-type]

    world.client.strategic_merge_patch = strict  # type: ignore[method-assign]
    await goes_on(world, 10)
    assert world.open_pods() == opened("large", 0, 1, 2)


async def test_a_gang_of_which_every_gate_is_refused_after_its_mark_gives_the_mark_back() -> None:
    """The policy says nothing to a dry run."""
    world = two()
    fails = {f"patch large-{number}": Always([DENIED]) for number in range(3)}
    patch = world.client.strategic_merge_patch

    async def silent(*args: object, dry_run: bool = False, **rest: object) -> bytes:
        return b"{}" if dry_run else await patch(*args, **rest)  # type: ignore[arg-type]

    world.client.strategic_merge_patch = silent  # type: ignore[method-assign]
    world.client.fails = {**fails}
    await goes_on(world, 29)
    assert world.open_pods() == opened("small", 0, 1)
    assert ADMITTED not in world.annotations(LARGE)
    assert world.annotations(LARGE)[STATE] == "Invalid"
    assert "the gates of pods large-0, large-1, large-2 cannot be taken off" in world.annotations(LARGE)[MESSAGE]


async def test_gates_that_fail_for_ever_give_the_room_back() -> None:
    world = two()
    world.client.fails = {f"patch large-{number}": Always([AWAY]) for number in range(3)}
    await goes_on(world, 120)
    assert world.open_pods() == opened("small", 0, 1)
    assert ADMITTED not in world.annotations(LARGE)


async def test_a_failure_that_ends_soon_costs_no_place() -> None:
    world = two()
    for write in (f"muster {LARGE}", f"mark {LARGE}", "patch large-0", "patch large-1"):
        world.client.fails[write] = [AWAY, AWAY]
    await goes_on(world, 0)
    assert world.open_pods() == opened("large", 0, 1, 2)
    assert warned(world) == []


@pytest.mark.parametrize("seconds", [5, 60, 3600])
async def test_after_an_outage_all_come_back_in_their_order(seconds: float) -> None:
    world = two()
    world.client.fails = {write: Always([AWAY]) for write in ("muster", "mark", "patch", "create", "annotate")}
    await goes_on(world, seconds)
    assert world.open_pods() == []
    world.client.fails.clear()
    world.now += 120
    await goes_on(world, 10)
    assert world.open_pods() == opened("large", 0, 1, 2)
    assert world.annotations(SMALL)[STATE] == "WaitingForQuota"


async def test_a_held_pod_of_a_workload_that_is_left_alone_says_why_it_stays_held_and_goes_later() -> None:
    """It is no gang, and keeps no room from one."""
    old = [old_pod("demo-head", "headgroup"), ray_pod("demo-w-0")]
    world = Harness(workloads=[ray_cluster()], pods=old, queues=[queue(cpu="2")])
    world.client.fails = {"patch demo-w-0": (fails := Always([DENIED]))}
    await goes_on(world, 10)
    assert world.annotations(GROUP)[STATE] == "NotManaged"
    assert f"the gate of pod demo-w-0 cannot be taken off: {DENIED.message}" in world.annotations(GROUP)[MESSAGE]
    workload, pods = gang("small", 2, created=YOUNGER)
    world.set_workload(workload)
    world.client.pods |= {pod["metadata"]["name"]: pod for pod in pods}
    world.watch()
    await goes_on(world, 10)
    assert world.open_pods() == ["demo-head", *opened("small", 0, 1)]
    fails.clear()
    world.set_queue(queue(cpu="3"))
    await goes_on(world, 40)
    assert world.open_pods() == ["demo-head", "demo-w-0", *opened("small", 0, 1)]
    assert "cannot be taken off" not in world.annotations(GROUP)[MESSAGE]
