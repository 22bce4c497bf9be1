"""Checks of what muster depends on: Kubernetes, the served kinds, Volcano and its queues, scheduler-plugins."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from muster.cli.doctor.diagnosis import Diagnosis, Level, Unseen, diagnoses_of, fine, problem, seen, warning
from muster.cli.doctor.installed import AS_INSTALLED, AnyObject, Deployment, Installation, Program
from muster.cli.doctor.sight import Sight
from muster.cli.ui import counted, lasting
from muster.model.texts import listed
from muster.model.times import seconds_of
from muster.queueing.sources import QUEUE_SOURCES, QueueSource
from muster.resources.elastic_quotas import ElasticQuota
from muster.schedulers import PRODUCTS
from muster.workloads import WATCHED_KINDS

_OLDEST_KUBERNETES = (1, 30)
_OLDEST_VOLCANO = (1, 11)
_GATED_APART = (0, 34)
"""The minor release of scheduler-plugins since which a gated pod does not count as a member that is there (0.34.7)."""
_VERSION = re.compile(r"v?(\d+)\.(\d+)(?:\.(\d+))?")
_CLOSED = ("Closed", "Closing")
# Seconds after which Volcano has set the state of a new queue.
_QUEUE_AGE = 60.0


class _Needed(NamedTuple):
    """A program that gangs need.

    :ivar name: its name in messages
    :ivar release: the project and the first release of it that will do
    :ivar harm: what happens without it
    :ivar oldest: the first two numbers of that release
    :ivar fault: what is wrong with an older one
    :ivar old: how bad an older one is
    """

    name: str
    release: str
    harm: str
    oldest: tuple[int, int] = (0, 0)
    fault: str = ""
    old: Level = Level.PROBLEM


_TOO_OLD = "is too old: it does not support scheduling gates"
VOLCANO = {
    name: _Needed(name, "Volcano 1.11", harm, oldest=_OLDEST_VOLCANO, fault=_TOO_OLD)
    for name, harm in (
        ("vc-scheduler", "no gang is placed"),
        ("vc-controller-manager", "queues get no state, and no gang is placed"),
    )
}
"""The programs of Volcano that gangs need, by the last part of their image's name."""
_COSCHEDULING = _Needed(
    "the scheduler of scheduler-plugins",
    "scheduler-plugins 0.34.7",
    "no gang is placed",
    oldest=_GATED_APART,
    fault="counts gated pods as members: the open pods of a gang may hold nodes while others are gated",
    old=Level.WARNING,
)
_Runs = list[tuple[Deployment, Program]]
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
    served = seen(sight.served, "which kinds are served")
    for api, plurals in _needed(sight.installation or AS_INSTALLED).items():
        missing = [plural for plural in plurals if plural not in served.get(api, ())]
        if missing:
            yield problem(f"{api} is not served: no {listed(missing)}; no gang can be created", _CRDS[api])
        else:
            yield fine(f"{api}: {listed(plurals)}")
    yield from _workloads(served)


def _needed(installed: Installation) -> dict[str, list[str]]:
    """The kinds that gangs need: the PodGroups of their schedulers, their queues, and what Kueue makes of them."""
    groups = [PRODUCTS[one] for one in sorted(installed.products)]
    needed = {f"{one.group}/{one.version}": ["podgroups"] for one in groups}
    source = installed.queue_source
    needed.setdefault(f"{source.group}/{source.version}", []).append(source.plural)
    if "kueue" in installed.admitters:
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
    if "volcano" in (sight.installation or AS_INSTALLED).products:
        yield from diagnoses_of(_programs, sight)
    yield from _queues(sight)


def _programs(sight: Sight) -> Iterator[Diagnosis]:
    deployments = seen(sight.deployments, "whether Volcano's programs run")
    for needed in VOLCANO.values():
        yield from _program(needed, _running(deployments, needed.name))
    yield from _vulnerable(_running(deployments, *VOLCANO, "vc-webhook-manager"))


def _running(deployments: tuple[Deployment, ...], *names: str) -> _Runs:
    return [(one, program) for one in deployments for program in one.programs if program.image_name in names]


def _program(needed: _Needed, runs: _Runs, places: str = "") -> Iterator[Diagnosis]:
    """The program runs with all of its pods Ready, and is new enough; `places` are the schedulers that it would be."""
    if not runs:
        yield warning(
            f"no Deployment runs {needed.name}{places}; unless it runs elsewhere, {needed.harm}",
            f"install {needed.release} or newer",
        )
    for deployment, program in runs:
        version, name = version_of(program.tag), needed.name.removeprefix("the ")
        title = f"{deployment.title} ({name} {program.tag if version else 'of unknown version'})"
        if version is not None and version < needed.oldest:
            cure = f"upgrade {needed.release.replace(' ', ' to ')} or newer"
            yield Diagnosis(needed.old, f"{title} {needed.fault}", cure)
        look = f"kubectl -n {deployment.metadata.namespace} describe deployment {deployment.metadata.name}"
        counts = f"{title}: {deployment.ready} of {deployment.replicas} pods Ready"
        if deployment.ready == 0:
            yield problem(f"{counts}: {needed.harm}", "see why:", look)
        else:
            yield warning(counts, "see why:", look) if deployment.ready < deployment.replicas else fine(counts)


def _vulnerable(runs: _Runs) -> Iterator[Diagnosis]:
    """The releases with published vulnerabilities that programs of Volcano run."""
    releases: dict[tuple[int, int, int], list[str]] = {}
    for deployment, program in runs:
        match = _VERSION.match(program.tag)
        if match and match[3]:
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


def _queues(sight: Sight) -> Iterator[Diagnosis]:
    queues = seen(sight.queues, "queues")
    installed = sight.installation or AS_INSTALLED
    source, name = installed.queue_source, installed.default_queue
    api = f"{source.group}/{source.version}"
    if not isinstance(sight.served, Unseen) and source.plural not in sight.served.get(api, ()):
        return  # the check `kinds` reports it
    stateless = [
        one
        for one in queues
        if source is QUEUE_SOURCES["volcano"] and not one.status.get("state") and _age(one, sight.now) > _QUEUE_AGE
    ]
    if stateless:
        yield problem(
            f"Volcano has set no state on queue {listed([one.metadata.name for one in stateless])} for "
            f"{lasting(max(_age(one, sight.now) for one in stateless))}: gangs in it are not placed",
            "see the log of vc-controller-manager; it needs all CRDs of Volcano, including those of jobflow",
        )
    default = next((one for one in queues if one.metadata.name == name), None)
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
        yield fine(f"{len(queues)} queues; {name} is {state}")


def _state(queue: AnyObject, source: QueueSource) -> str:
    """The state that Volcano sets on a Queue; of a GangQueue, from its field `closed`."""
    if source is QUEUE_SOURCES["muster"]:
        return "Closed" if queue.spec.get("closed") else "Open"
    return str(queue.status.get("state") or "new")


def _age(queue: AnyObject, now: float) -> float:
    return now - (seconds_of(queue.metadata.creation_timestamp) or now)


def version_of(text: str) -> tuple[int, int] | None:
    """The first two numbers of a version such as v1.14.1; None where it is none."""
    match = _VERSION.match(text)
    return (int(match[1]), int(match[2])) if match else None


def coscheduling(sight: Sight) -> Iterator[Diagnosis]:
    """Its scheduler runs and is new enough, and its ElasticQuotas count."""
    installed = sight.installed
    if isinstance(sight.deployments, Unseen):
        return  # the schedulers of an installation are read from its Deployment
    names = [name for name, one in installed.gang_schedulers.items() if one.product == "coscheduling"]
    if not names:
        return
    runs = [(one, program) for one in sight.deployments for program in one.programs if _is_coscheduling(one, program)]
    if not runs and names == ["default-scheduler"]:
        yield fine(f"no Deployment runs {_COSCHEDULING.name}: {names[0]} is a static pod in most clusters")
    else:
        yield from _program(_COSCHEDULING, runs, f" for {listed(names)}")
    yield from _quotas(seen(sight.elastic_quotas, "whether there are ElasticQuotas"), used=installed.elastic_quotas)


def _is_coscheduling(deployment: Deployment, program: Program) -> bool:
    """True for the scheduler of scheduler-plugins, by its image, its name or its Deployment's."""
    names = (program.name, deployment.metadata.name)
    project = "scheduler-plugins" in program.image or any(name.startswith("scheduler-plugins") for name in names)
    words = (program.image_name, *names)
    return project and any(word.endswith("scheduler") for word in words) and not words[0].endswith("controller")


def _quotas(quotas: tuple[ElasticQuota, ...], *, used: bool) -> Iterator[Diagnosis]:
    """ElasticQuotas count for muster as they do for the scheduler."""
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
