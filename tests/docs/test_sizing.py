"""docs/operations.md, Sizing: what to plan for covers what was measured, and the chart's values cover both."""

import gc
import json
import random
import re
import tracemalloc
from collections.abc import Callable

from hack.bench.many import worker_pod
from hack.bench.memory import SHAPES, measured
from muster.kube.store import Store
from muster.model.objects import decode
from muster.model.pods import Pod
from muster.queueing.entries import Claim
from muster.queueing.ledger import Candidate, GangKey, Ledger
from muster.queueing.queue_view import QueueView
from muster.resources.amounts import parse_resources
from tests.support.cases import cases
from tests.support.pages.numbers import amount, found, prose

_PODS, _GANGS, _QUEUES = 500, 10_000, 200


def _says(pattern: str) -> list[float]:
    """The numbers in the groups of what docs/operations.md says."""
    match = re.search(pattern, prose("docs/operations.md"))
    assert match is not None, pattern
    return [amount(group) for group in match.groups()]


_NUMBER = r"([\d.,]+ ?[kM]?B?)"


def _controller() -> tuple[float, float, float]:
    """Bytes to plan for: of the process, of each pod of a gang, of each gang."""
    whole, each_pod, each_gang = _says(
        rf"\*\*Controller\*\*: plan for {_NUMBER}, {_NUMBER} for each pod of a gang and {_NUMBER} for each gang"
    )
    return whole, each_pod, each_gang


def _webhook() -> tuple[float, float, float]:
    """Bytes to plan for: of the process, for giant objects, of each pod that came without muster."""
    whole, giant, each_pod = _says(
        rf"\*\*Webhook\*\*: plan for {_NUMBER}, {_NUMBER} for giant objects, and {_NUMBER} for each pod"
    )
    return whole, giant, each_pod


def test_what_to_plan_for_covers_what_was_measured() -> None:
    """Each row of the table, with the pods and gangs that it had."""
    whole, each_pod, each_gang = _controller()
    of_webhook, giant, _ = _webhook()
    webhook, controller = _says(rf"just installed \| {_NUMBER}, {_NUMBER} of memory")
    assert controller <= whole
    assert webhook <= of_webhook
    (more,) = _says(rf"a hundred reviews of 3 MiB at once \| {_NUMBER} more")
    assert more <= giant
    gangs, pods, memory = _says(rf"\| ([\d,]+) gangs of five, .*? for ([\d,]+) pods, {_NUMBER} \|")
    assert memory <= whole + pods * each_pod + gangs * each_gang
    pods, memory = _says(rf"\| ([\d,]+) gated pods that wait \| [\d.]+ % of a core, {_NUMBER} \|")
    assert memory <= whole + pods * each_pod
    pods, memory, relisted = _says(rf"\| ([\d,]+) watched pods of [\d.]+ kB \| {_NUMBER}, {_NUMBER} while they are")
    assert memory < relisted <= pods * each_pod
    gangs, memory = _says(rf"\| ([\d,]+) gangs in 1,000 queues of three levels \| {_NUMBER},")
    assert memory <= gangs * each_gang


def test_the_chart_gives_what_is_planned_for() -> None:
    """The limits hold it, the requests what is just installed; `docs` and values name the same numbers."""
    whole, each_pod, _ = _controller()
    (pods,) = _says(r"So ([\d,]+) pods take a bit more than half of the limit")
    assert 0.5 < (whole + pods * each_pod) / found("values:controller.resources.limits.memory") < 0.6
    of_webhook, giant, _ = _webhook()
    readme = re.search(r"a hundred at once, stay below (\d+Mi)", prose("charts/muster/values.yaml"))
    assert readme is not None
    assert of_webhook + giant < amount(readme[1]) < found("values:webhook.resources.limits.memory")
    webhook, controller = _says(rf"just installed \| {_NUMBER}, {_NUMBER} of memory")
    assert webhook < found("values:webhook.resources.requests.memory")
    assert controller < found("values:controller.resources.requests.memory")


def test_a_core_answers_thousands_of_usual_pods_a_second() -> None:
    """The chart says so of the reviews that docs/operations.md has measured."""
    (microseconds,) = _says(r"a review of a usual pod \| (\d+) microseconds of a core")
    assert 1e6 / microseconds >= 2_000
    assert "A core answers thousands of reviews of usual pods a second" in prose("charts/muster/values.yaml")


def _pods() -> object:
    store: Store[Pod] = Store()
    for number in range(_PODS):
        manifest = worker_pod(number)
        owner = {"apiVersion": "ray.io/v1", "kind": "RayCluster", "name": "c", "uid": f"{number // 50:036}"}
        manifest["metadata"] |= {
            "namespace": "default",
            "uid": f"{number:036}",
            "resourceVersion": str(10**6 + number),
            "creationTimestamp": "2026-11-01T10:00:00Z",
            "ownerReferences": [{**owner, "controller": True}],
        }
        store.apply("added", decode(json.dumps({**manifest, "status": {"phase": "Pending"}}).encode(), Pod))
    return store


def _gangs() -> object:
    chance = random.Random(1)  # noqa: S311 - the same in every run
    sizes = [parse_resources({"cpu": str(cpu), "memory": f"{cpu}Gi"}, path="") for cpu in (2, 4, 8)]
    ledger = Ledger()
    for number in range(_QUEUES):
        ledger.set_queue(QueueView(f"team-{number}", "Open", parse_resources({"cpu": "500"}, path="")))
    for number in range(_GANGS):
        key = GangKey(f"team-{number % 97}", f"gang-{number}")
        candidate = Candidate(key, f"team-{number % _QUEUES}", 0, "2026-11-01T10:00:00Z", chance.choice(sizes))
        if number % 2:
            ledger.wait(candidate)
        else:
            ledger.hold(Claim(candidate.key, candidate.queue, candidate.need, since=candidate.since))
    return ledger


@cases(
    "make, count, row",
    ("a watched pod", _pods, _PODS, r"\| ([\d,]+) watched pods of [\d.]+ kB \| ([\d.]+ MB), "),
    ("a gang", _gangs, _GANGS, r"\| ([\d,]+) gangs in 1,000 queues of three levels \| ([\d.]+ MB),"),
)
def test_what_is_stored_takes_what_the_table_says(make: Callable[[], object], count: int, row: str) -> None:
    """Bytes that Python gives out for each, counted: the same on every machine, and not above the table's."""
    many, memory = _says(row)
    make()
    gc.collect()
    gc.freeze()
    tracemalloc.start()
    try:
        kept = make()
        gc.collect()
        used, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    del kept
    assert 0.6 * memory / many < used / count <= memory / many


def test_what_is_kept_of_a_large_workload_is_what_the_table_says() -> None:
    """With the answers to its pods, which a webhook keeps in addition."""
    size, few, many, templates = _says(
        rf"a workload of {_NUMBER}, in each webhook \| {_NUMBER} with few templates, {_NUMBER} with ([\d,]+)"
    )
    shapes = {title: shape(int(size)) for title, shape in SHAPES.items()}
    workers = shapes["many templates"]["spec"]["workerGroupSpecs"]
    assert len(workers) > templates
    del workers[int(templates) :]
    kept = {title: measured(shape) for title, shape in shapes.items()}
    for title, said in {"four large templates": few, "many templates": many}.items():
        # What ran before in the process makes some hundred bytes.
        assert 0.8 * said < kept[title].kept + kept[title].answers <= 1.05 * said + 800, title
