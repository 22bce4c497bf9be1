"""What stands in every cluster of the fuzzer: queues of all sorts, PodGroups, classes, and what adds to pods."""

from tests.support.manifests.observed import (
    JSON,
    NAMESPACE,
    limit_range,
    priority_class,
    queue,
    resource_quota,
    runtime_class,
)

QUEUES = (
    queue(),
    queue("small", cpu="1", memory="1500000Ki"),
    queue("closed", state="Closed"),
    {**queue("parent"), "spec": {"parent": "root", "capability": {"cpu": "2"}}},
    {**queue("leaf"), "spec": {"parent": "parent"}},
    queue("off", annotations={"muster.dev/gate": "off"}),
    queue("theirs", annotations={"muster.dev/namespace-selector": "team=others"}),
    {**queue("full", cpu="4"), "status": {"state": "Open", "allocated": {"cpu": "3900m", "memory": "1Gi"}}},
    queue("zero", cpu="0"),
    queue("snug", cpu="4"),
)
GROUPS: tuple[JSON, ...] = (
    {"metadata": {"name": "g", "namespace": "a"}, "spec": {"queue": "q", "minResources": {"cpu": "3"}}},
    {"metadata": {"name": "h", "namespace": "a"}, "spec": {"queue": "small", "minResources": {"cpu": "many"}}},
    {"metadata": {"name": "i", "namespace": "b"}, "spec": {"queue": "leaf"}, "status": {"phase": "Running"}},
    *(
        {
            "metadata": {"name": name, "namespace": "b", "annotations": {"muster.dev/state": "WaitingForQuota"}},
            "spec": {"queue": "full", "priorityClassName": class_},
        }
        for name, class_ in (("j", "high"), ("k", "low"))
    ),
)
RANGES = (limit_range(memory="1Gi"),)
QUOTAS = (
    resource_quota({"requests.cpu": "4", "requests.nvidia.com/gpu": "1", "limits.cpu": "1", "count/pods": "9"}),
    {"metadata": {"name": "odd", "namespace": NAMESPACE}, "spec": {"hard": {"cpu": "1"}, "scopes": ["BestEffort"]}},
    {"metadata": {"name": "broken", "namespace": NAMESPACE}, "spec": {"hard": {"cpu": "many"}}},
)
RUNTIMES = (runtime_class("kata", cpu="100m"),)
CLASSES = (priority_class("high", 10), priority_class("low", -1), priority_class("usual", 1, default=True))
