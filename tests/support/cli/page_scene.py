"""A cluster for eyes: queues of two teams in which gangs run, wait and assemble, and what the apiserver adds."""

import time
from collections.abc import Iterable

from muster.cli.page.samples import SLOT, SLOTS, Level, Samples
from muster.model.names import ADMITTED_AT, PASSED_IN, PASSED_SINCE, RUNS_AT_MOST
from muster.model.times import text_of
from muster.observe.cluster import Cluster
from tests.support.cli.page import Served
from tests.support.controller.bypass_queue import OF_A_JOB
from tests.support.controller.stores import filled
from tests.support.faults.apiserver import listing, only, reply
from tests.support.manifests.gangs import gangs, limited
from tests.support.manifests.observed import JSON, queue

WAITS = "gang?namespace=team&name=ray-bert-large-pg"
"""The address of a gang that waits."""
RUNS = "gang?namespace=team&name=ray-run-llama-8b-pg"
"""The address of one that runs."""

_DAY = "2026-11-24T"
_EVENTS = "/apis/events.k8s.io/v1/namespaces/team/events"
_WAITING = 'needs cpu 3 and memory 3Gi; queue "nlp" has cpu 2 free of cpu 8; position {} of 2 waiting'


def scene() -> Cluster:
    """Two gangs run in `nlp` for two hours, two wait there, one runs in `vision`, and one lacks pods."""
    whole: tuple[list[JSON], list[JSON], list[JSON]] = ([], [], [])
    parts = (
        gangs(["run-llama-8b", "run-mistral-finetune"], "nlp", state="Running", message='holds cpu 3 of queue "nlp"'),
        gangs(["bert-large"], "nlp", state="WaitingForQuota", message=_WAITING.format(1)),
        gangs(["tokenizer-sweep-with-a-rather-long-name"], "nlp", state="WaitingForQuota", message=_WAITING.format(2)),
        gangs(["run-resnet"], "vision", state="Running", message='holds cpu 3 of queue "vision"'),
        gangs(["detector"], "vision", state="Assembling", message="waiting for its pods: workers 0 of 2"),
    )
    for part in parts:
        for all_of_them, some in zip(whole, part, strict=True):
            all_of_them.extend(some)
    workloads, pods, groups = whole
    _limit_runs(workloads, groups)
    pods = [one for one in pods if not one["metadata"]["name"].startswith("detector-w")]
    for pod in pods:
        if pod["metadata"]["name"].startswith("run"):
            pod["spec"]["nodeName"], pod["status"]["phase"] = "node-0", "Running"
    for group in groups:
        meta = group["metadata"]
        meta["creationTimestamp"] = f"{_DAY}10:00:02Z"
        if meta["name"] == "ray-run-llama-8b-pg":
            meta["annotations"] |= {
                PASSED_SINCE: f"{_DAY}10:03:00Z",
                PASSED_IN: "nlp",
                ADMITTED_AT: f"{_DAY}10:07:30.120000Z",
            }
    queues = [
        queue("root"),
        limited("research", cpu="16", memory="64Gi"),
        limited("nlp", "research", cpu="8", memory="32Gi"),
        limited("vision", "research", cpu="3"),
    ]
    return filled(workloads=workloads, pods=pods, groups=groups, queues=queues)


def _limit_runs(workloads: Iterable[JSON], groups: Iterable[JSON]) -> None:
    """What runs ends in less than two hours, and room is reserved for the first gang that waits."""
    for meta in (one["metadata"] for one in workloads):
        if meta["name"].startswith("run"):
            meta |= {**OF_A_JOB, "annotations": {RUNS_AT_MOST: "2h"}}
    for meta in (one["metadata"] for one in groups):
        if meta["name"].startswith("ray-run"):
            meta["annotations"][ADMITTED_AT] = text_of(time.time() - 600)
        if meta["name"] == "ray-bert-large-pg":
            meta["annotations"] |= {PASSED_SINCE: f"{_DAY}10:08:00Z", PASSED_IN: "nlp"}


def answered(page: Served) -> None:
    """Have the apiserver tell the pods and events of the gang that runs, whoever is asked about."""
    _, pods, _ = gangs(["run-llama-8b"], "nlp")
    for number, pod in enumerate(pods):
        pod["metadata"]["creationTimestamp"] = f"{_DAY}10:00:0{1 + number}Z"
        pod["spec"]["nodeName"] = f"node-{number}"
        pod["status"] = {
            "phase": "Running",
            "conditions": [
                {"type": kind, "status": "True", "lastTransitionTime": f"{_DAY}10:0{minute}:0{number}Z"}
                for kind, minute in (("PodScheduled", 8), ("Ready", 9))
            ],
        }
    told = [
        ("10:00:03", "WaitingForQuota", _WAITING.format(1)),
        ("10:07:30", "Admitted", 'holds cpu 3, memory 3Gi of queue "nlp"'),
        ("10:09:03", "Running", 'holds cpu 3, memory 3Gi of queue "nlp"'),
    ]
    events: list[JSON] = [
        {
            "eventTime": f"{_DAY}{time}.500000Z",
            "reason": reason,
            "note": note,
            "reportingController": "muster.dev/controller",
        }
        for time, reason, note in told
    ]
    page.apiserver.on("LIST", only(_EVENTS, reply(listing(1, *events)), reply(listing(1, *pods))))
    page.apiserver.on("GET", reply({}))


def an_hour(page: Served) -> None:
    """Let the page have seen forty minutes: load that rises, a queue that fills, and a gap."""
    ends = page.state.samples.began
    samples = page.state.samples = Samples(ends - SLOT * 80)
    for slot in range(80):
        at = ends - SLOT * (79 - slot)
        if slot in range(30, 36):
            samples.pass_to(at)
            continue
        levels = {
            "root": Level(None, 0),
            "research": Level(min(56, slot), 0),
            "nlp": Level(38 if slot < SLOTS // 3 else 75, max(0, slot // 20 - 1)),
            "vision": Level(100 if slot > 20 else 0, 0),
        }
        samples.note(at, levels)
