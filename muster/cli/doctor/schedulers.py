"""Checks of what muster depends on: Kubernetes, the served kinds, Volcano and its queues, scheduler-plugins."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from muster.cli.doctor.diagnosis import Diagnosis, Severity, Unseen, fine, problem, unknown, warning
from muster.cli.doctor.installed import VOLCANO, Installation
from muster.cli.doctor.objects import Container, Deployment, QueueSeen
from muster.cli.doctor.sight import Sight
from muster.cli.ui import counted, lasting, listed
from muster.model.times import seconds_of
from muster.queueing.sources import QUEUE_SOURCES, QueueSource
from muster.resources.elastic_quotas import ElasticQuota
from muster.schedulers import PRODUCTS
from muster.workloads import WATCHED_KINDS

_OLDEST_KUBERNETES = (1, 30)
_OLDEST_VOLCANO = (1, 11)
"""It respects scheduling gates since then."""
_VERSION = re.compile(r"v?(\d+)\.(\d+)(?:\.(\d+))?")
_CLOSED = ("Closed", "Closing")
# Seconds after which Volcano has set the state of a new queue.
_QUEUE_AGE = 60.0
_PROGRAMS = (*VOLCANO, "vc-webhook-manager")
_DUTY = {"vc-scheduler": "no gang is placed", "vc-controller-manager": "queues get no state, and no gang is placed"}
_PROJECT = "scheduler-plugins"
_SCHEDULER, _CONTROLLER = "scheduler", "controller"
_DUTY_OF_PART = {
    _SCHEDULER: "no gang is placed",
    _CONTROLLER: "PodGroups and ElasticQuotas get no status; gangs are placed without it",
}
# Nothing that places gangs reads the status.
_WITHOUT = {_SCHEDULER: Severity.PROBLEM, _CONTROLLER: Severity.WARNING}
_IN_THE_PLACE_OF = "default-scheduler"
_GATED_APART = (0, 34)
"""Since 0.34.7 a gated pod does not count as a member that is there."""
_CRDS = {
    "scheduling.volcano.sh/v1beta1": "install the CRDs of Volcano (directory crds of its chart, or `kubectl apply "
    "--server-side`)",
    "scheduling.x-k8s.io/v1alpha1": "install the CRDs of scheduler-plugins",
    "scheduling.k8s.io/v1beta1": "run Kubernetes 1.37 or newer, the apiserver with feature gate GenericWorkload and "
    "--runtime-config=scheduling.k8s.io/v1beta1=true",
    "kueue.x-k8s.io/v1beta2": "install Kueue 0.19 or newer, or take kueue out of the chart value admitters",
    "muster.dev/v1alpha1": "run helm upgrade: the chart of muster has the CRD",
}


class _Advisory(NamedTuple):
    """A published vulnerability of Volcano, the first release that has it, and the first of each line without it."""

    name: str
    words: str
    since: tuple[int, int, int]
    fixed: tuple[tuple[int, int, int], ...]

    def cure(self, release: tuple[int, int, int]) -> tuple[int, int, int] | None:
        """The first release of its line without it, else the newest of them; None where this one does not have it."""
        of_line = [one for one in self.fixed if one[:2] == release[:2]]
        return next((one for one in of_line or self.fixed[-1:] if self.since <= release < one), None)


ADVISORIES = (
    _Advisory(
        "CVE-2026-44247",
        "a large request of any pod ends the webhook manager",
        (0, 0, 0),
        ((1, 12, 4), (1, 13, 3), (1, 14, 2)),
    ),
    _Advisory("GHSA-j38h-7pfq-cxmw", "a ResourceClaim can stop all scheduling", (1, 15, 0), ((1, 15, 2),)),
)


def kinds(sight: Sight) -> Iterator[Diagnosis]:
    """Kubernetes is new enough, and the kinds of Volcano and of workloads are served in supported versions."""
    version = version_of(sight.kubernetes)
    if version is not None and version < _OLDEST_KUBERNETES:
        yield problem(f"Kubernetes {sight.kubernetes} is too old", "muster needs 1.30 or newer: upgrade the cluster")
    else:
        yield fine(f"Kubernetes {sight.kubernetes}")
    if isinstance(sight.served, Unseen):
        yield unknown(sight.served, "which kinds are served")
        return
    served = sight.served
    for api, plurals in _needed(sight.installation).items():
        missing = [plural for plural in plurals if plural not in served.get(api, ())]
        if missing:
            yield problem(f"{api} is not served: no {listed(missing)}; no gang can be created", _CRDS[api])
        else:
            yield fine(f"{api}: {listed(plurals)}")
    yield from _elastic_quotas(sight.installation, served)
    yield from _workloads(served)


def _elastic_quotas(installed: Installation | None, served: Mapping[str, frozenset[str]]) -> Iterator[Diagnosis]:
    """The kind that the chart value `elasticQuotas` needs; gangs are created without it, too."""
    if installed is None or not installed.elastic_quotas:
        return
    api = PRODUCTS["coscheduling"]().api_version
    if "elasticquotas" in served.get(api, ()):
        yield fine(f"{api}: elasticquotas")
    else:
        yield warning(
            f"{api} serves no elasticquotas: the chart value elasticQuotas limits no gang",
            "install the CRDs of scheduler-plugins, or set the chart value elasticQuotas=false",
        )


def _needed(installed: Installation | None) -> dict[str, list[str]]:
    """The kinds that gangs need: the PodGroups of their schedulers, their queues, and what Kueue makes of them."""
    schedulers = installed.schedulers if installed is not None else (PRODUCTS["volcano"],)
    source = installed.queue_source if installed is not None else QUEUE_SOURCES["volcano"]
    needed: dict[str, list[str]] = {}
    for group, version, plural in (
        *((scheduler.group, scheduler.version, "podgroups") for scheduler in schedulers),
        (source.group, source.version, source.plural),
    ):
        needed.setdefault(f"{group}/{version}", []).append(plural)
    if installed is not None and "kueue" in installed.admitters:
        needed["kueue.x-k8s.io/v1beta2"] = ["clusterqueues", "localqueues", "workloads"]
    return needed


def _workloads(served: Mapping[str, frozenset[str]]) -> Iterator[Diagnosis]:
    groups = {api_version.rpartition("/")[0] for api_version in served}
    found: dict[str, list[str]] = {}
    for kind in WATCHED_KINDS:
        versions = [f"{kind.group}/{version}" for version in kind.versions]
        there = [one for one in versions if kind.plural in served.get(one, ())]
        if there:
            found.setdefault(there[0], []).append(kind.plural)
    for group in sorted({kind.group for kind in WATCHED_KINDS} & groups):
        if not any(one.rpartition("/")[0] == group for one in found):
            others = listed(sorted(one for one in served if one.rpartition("/")[0] == group))
            yield warning(
                f"{others} is served, a version that muster does not support: its workloads are not gangs",
                "upgrade the operator or muster",
            )
    for api_version, plurals in sorted(found.items()):
        yield fine(f"{api_version}: {listed(plurals)}")
    if not found:
        yield warning(
            "the apiserver serves no kind of a supported operator: only plain pods, Jobs and StatefulSets can be gangs",
            "install an operator, for example KubeRay (docs/gangs.md has all kinds)",
        )


def volcano(sight: Sight) -> Iterator[Diagnosis]:
    """Volcano's scheduler and controllers run, are new enough, and look after the queues; where it places gangs."""
    if sight.installation is not None and PRODUCTS["volcano"] not in sight.installation.schedulers:
        yield from _queues(sight)
        return
    if isinstance(sight.deployments, Unseen):
        yield unknown(sight.deployments, "whether Volcano's programs run")
    else:
        for program in VOLCANO:
            yield from _program(program, sight.deployments)
        yield from _vulnerable(sight.deployments)
    yield from _queues(sight)


def _program(program: str, deployments: tuple[Deployment, ...]) -> Iterator[Diagnosis]:
    runs = [(one, container) for one in deployments for container in one.containers if program_of(container) == program]
    if not runs:
        yield warning(
            f"no Deployment runs {program}; unless it runs elsewhere, {_DUTY[program]}", "install Volcano 1.11 or newer"
        )
    for deployment, container in runs:
        tag = container.image.partition("@")[0].rpartition(":")[2]
        version = version_of(tag)
        title = f"{deployment.title} ({program} {tag if version else 'of unknown version'})"
        if version is not None and version < _OLDEST_VOLCANO:
            yield problem(
                f"{title} is too old: it does not support scheduling gates", "upgrade Volcano to 1.11 or newer"
            )
        else:
            yield readiness(deployment, title, _DUTY[program])


def _vulnerable(deployments: tuple[Deployment, ...]) -> Iterator[Diagnosis]:
    """The releases with published vulnerabilities that programs of Volcano run."""
    releases: dict[tuple[int, int, int], list[str]] = {}
    for deployment in deployments:
        for container in deployment.containers:
            match = _VERSION.match(container.image.partition("@")[0].rpartition(":")[2])
            if match and match[3] and program_of(container) in _PROGRAMS:
                release = int(match[1]), int(match[2]), int(match[3])
                releases.setdefault(release, []).append(deployment.title)
    for release, titles in sorted(releases.items()):
        for one in ADVISORIES:
            if (fixed := one.cure(release)) is not None:
                title = f"Volcano {_text(release)} ({listed(titles)})"
                yield warning(
                    f"{title} has a published vulnerability, {one.name}: {one.words}",
                    f"upgrade Volcano to {_text(fixed)} or newer",
                )


def _text(release: tuple[int, int, int]) -> str:
    return ".".join(map(str, release))


def readiness(deployment: Deployment, title: str, duty: str, without: Severity = Severity.PROBLEM) -> Diagnosis:
    """The Ready pods of a program; without any, `duty` is the harm, and `without` its severity."""
    ready, wanted = deployment.status.ready_replicas, deployment.spec.replicas
    look = f"kubectl -n {deployment.metadata.namespace} describe deployment {deployment.metadata.name}"
    counted = f"{title}: {ready} of {wanted} pods Ready"
    if ready == 0:
        return Diagnosis(without, f"{counted}: {duty}", look)
    return warning(counted, look) if ready < wanted else fine(counted)


def _queues(sight: Sight) -> Iterator[Diagnosis]:
    if isinstance(sight.queues, Unseen):
        yield unknown(sight.queues, "queues")
        return
    source = sight.installation.queue_source if sight.installation is not None else QUEUE_SOURCES["volcano"]
    api = f"{source.group}/{source.version}"
    if not isinstance(sight.served, Unseen) and source.plural not in sight.served.get(api, ()):
        return  # the check `kinds` reports it
    stateless = [
        one
        for one in sight.queues
        if source is QUEUE_SOURCES["volcano"] and not one.status.state and _age(one, sight.now) > _QUEUE_AGE
    ]
    if stateless:
        yield problem(
            f"Volcano has set no state on queue {listed([one.metadata.name for one in stateless])} for "
            f"{lasting(max(_age(one, sight.now) for one in stateless))}: gangs in it are not placed",
            "see the log of vc-controller-manager; it needs all CRDs of Volcano, including those of jobflow",
        )
    name = sight.installation.default_queue if sight.installation is not None else "default"
    default = next((one for one in sight.queues if one.metadata.name == name), None)
    if default is None:
        yield warning(
            f"the default queue {name} does not exist: workloads that name no queue are refused",
            "create it, or set the chart value `defaultQueue` to another queue",
        )
    elif (state := _state(default, source)) in _CLOSED:
        yield warning(
            f"the default queue {name} is {state}: gangs that name no queue do not start",
            "open it, or set the chart value `defaultQueue` to another queue",
        )
    elif not stateless:
        yield fine(f"{len(sight.queues)} queues; {name} is {state}")


def _state(queue: QueueSeen, source: QueueSource) -> str:
    """The state that Volcano sets on a Queue; of a GangQueue, from its field `closed`."""
    if source is QUEUE_SOURCES["muster"]:
        return "Closed" if queue.spec.closed else "Open"
    return queue.status.state or "new"


def _age(queue: QueueSeen, now: float) -> float:
    return now - (seconds_of(queue.metadata.creation_timestamp) or now)


def program_of(container: Container) -> str:
    """The last part of the image's name, without tag and digest: `vc-scheduler`."""
    return container.image.partition("@")[0].rpartition("/")[2].partition(":")[0]


def version_of(text: str) -> tuple[int, int] | None:
    """The first two numbers of a version such as v1.14.1; None where it is none."""
    match = _VERSION.match(text)
    return (int(match[1]), int(match[2])) if match else None


def coscheduling(sight: Sight) -> Iterator[Diagnosis]:
    """Its scheduler and its controller run, and the scheduler is new enough."""
    installed = sight.installation
    if installed is None or isinstance(sight.deployments, Unseen):
        return  # the schedulers of an installation are read from its Deployment
    names = [name for name, one in installed.gang_schedulers.items() if one.product == "coscheduling"]
    if names:
        for part in (_SCHEDULER, _CONTROLLER):
            yield from _part(part, names, sight.deployments)
        yield from _quotas(sight.elastic_quotas, used=installed.elastic_quotas)


def _quotas(quotas: tuple[ElasticQuota, ...] | Unseen, *, used: bool) -> Iterator[Diagnosis]:
    """ElasticQuotas count for muster as they do for the scheduler."""
    if isinstance(quotas, Unseen):
        yield unknown(quotas, "whether there are ElasticQuotas")
        return
    per_namespace = Counter(one.metadata.namespace for one in quotas)
    if quotas and not used:
        yield warning(
            f"muster does not count the ElasticQuotas of {listed(sorted(per_namespace))}: it admits gangs that they "
            "have no room for, whose pods find no node where the scheduler runs its plugin CapacityScheduling",
            "set the chart value elasticQuotas=true where that plugin is on",
        )
    elif quotas:
        yield fine(f"{counted(len(quotas), 'ElasticQuota')} in {listed(sorted(per_namespace))}")
    if used and (several := sorted(name for name, count in per_namespace.items() if count > 1)):
        yield warning(
            f"{listed(several)}: more than one ElasticQuota in a namespace; the scheduler counts the last that it saw, "
            "muster the strictest amounts of all",
            "keep one ElasticQuota in each namespace",
        )


def _part(part: str, names: list[str], deployments: tuple[Deployment, ...]) -> Iterator[Diagnosis]:
    runs = [(one, found[0]) for one in deployments if (found := _containers(one, part))]
    if not runs and part == _SCHEDULER and names == [_IN_THE_PLACE_OF]:
        yield fine(
            f"no Deployment runs the scheduler of {_PROJECT}: {_IN_THE_PLACE_OF} is a static pod in most clusters"
        )
    elif not runs:
        placed = f" for {listed(names)}" if part == _SCHEDULER else ""
        yield warning(
            f"no Deployment runs the {part} of {_PROJECT}{placed}; unless it runs elsewhere, {_DUTY_OF_PART[part]}",
            f"install {_PROJECT} 0.34.7 or newer",
        )
    for deployment, container in runs:
        tag = container.image.partition("@")[0].rpartition(":")[2]
        version = version_of(tag)
        title = f"{deployment.title} ({part} of {_PROJECT}, {tag if version else 'of unknown version'})"
        if part == _SCHEDULER and version is not None and version < _GATED_APART:
            yield warning(
                f"{title} counts gated pods as members: the open pods of a gang may hold nodes while others are gated",
                f"upgrade {_PROJECT} to 0.34.7 or newer",
            )
        yield readiness(deployment, title, _DUTY_OF_PART[part], _WITHOUT[part])


def _containers(deployment: Deployment, part: str) -> list[Container]:
    return [one for one in deployment.containers if _part_of(deployment, one) == part]


def _part_of(deployment: Deployment, container: Container) -> str:
    """The part of scheduler-plugins that a container is, by its image, its name or its Deployment's; "" for none."""
    names = (container.name, deployment.metadata.name)
    if _PROJECT not in container.image and not any(name.startswith(_PROJECT) for name in names):
        return ""
    words = (program_of(container), *names)
    return next((part for part in (_CONTROLLER, _SCHEDULER) if any(word.endswith(part) for word in words)), "")
