"""The check `coscheduling`: scheduler-plugins runs, and its quotas count, where coscheduling places gangs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from muster.cli.doctor.diagnosis import Check, Diagnosis, Severity, Unseen, fine, unknown, warning
from muster.cli.doctor.volcano import program_of, readiness, version_of
from muster.cli.words import counted, listed

if TYPE_CHECKING:
    from muster.cli.doctor.objects import Container, Deployment
    from muster.cli.doctor.sight import Sight
    from muster.resources.elastic_quotas import ElasticQuota


_PROJECT = "scheduler-plugins"
_SCHEDULER, _CONTROLLER = "scheduler", "controller"
_DUTY = {
    _SCHEDULER: "no gang is placed",
    _CONTROLLER: "PodGroups and ElasticQuotas get no status; gangs are placed without it",
}
# Nothing that places gangs reads the status.
_WITHOUT = {_SCHEDULER: Severity.PROBLEM, _CONTROLLER: Severity.WARNING}
_IN_THE_PLACE_OF = "default-scheduler"
_GATED_APART = (0, 34)
"""Since 0.34.7 a gated pod does not count as a member that is there."""


def coscheduling(sight: Sight) -> Iterator[Diagnosis]:
    """Its scheduler and its controller run, and the scheduler is new enough."""
    installed = sight.installation
    if installed is None or isinstance(sight.deployments, Unseen):
        return  # the schedulers of an installation are read from its Deployment
    names = [name for name, one in installed.gang_schedulers.items() if one.product == "coscheduling"]
    if names:
        for part in (_SCHEDULER, _CONTROLLER):
            yield from _part(part, names, sight.deployments)
        yield from _quotas(sight.elastic_quotas, heeded=installed.elastic_quotas)


def _quotas(quotas: tuple[ElasticQuota, ...] | Unseen, *, heeded: bool) -> Iterator[Diagnosis]:
    """ElasticQuotas count for muster as they do for the scheduler."""
    if isinstance(quotas, Unseen):
        yield unknown(Check.COSCHEDULING, quotas, "whether there are ElasticQuotas")
        return
    per_namespace = Counter(one.metadata.namespace for one in quotas)
    if quotas and not heeded:
        yield warning(
            Check.COSCHEDULING,
            f"muster does not heed the ElasticQuotas of {listed(sorted(per_namespace))}: it admits gangs that they "
            "have no room for, whose pods find no node where the scheduler runs its plugin CapacityScheduling",
            "set the chart value elasticQuotas=true where that plugin is on",
        )
    elif quotas:
        yield fine(Check.COSCHEDULING, f"{counted(len(quotas), 'ElasticQuota')} in {listed(sorted(per_namespace))}")
    if heeded and (several := sorted(name for name, count in per_namespace.items() if count > 1)):
        yield warning(
            Check.COSCHEDULING,
            f"{listed(several)}: more than one ElasticQuota in a namespace; the scheduler heeds the last that it saw, "
            "muster the strictest amounts of all",
            "keep one ElasticQuota in each namespace",
        )


def _part(part: str, names: list[str], deployments: tuple[Deployment, ...]) -> Iterator[Diagnosis]:
    runs = [(one, found[0]) for one in deployments if (found := _containers(one, part))]
    if not runs and part == _SCHEDULER and names == [_IN_THE_PLACE_OF]:
        yield fine(
            Check.COSCHEDULING,
            f"no Deployment runs the scheduler of {_PROJECT}: {_IN_THE_PLACE_OF} is a static pod in most clusters",
        )
    elif not runs:
        placed = f" for {listed(names)}" if part == _SCHEDULER else ""
        yield warning(
            Check.COSCHEDULING,
            f"no Deployment runs the {part} of {_PROJECT}{placed}; unless it runs elsewhere, {_DUTY[part]}",
            f"install {_PROJECT} 0.34.7 or newer",
        )
    for deployment, container in runs:
        tag = container.image.partition("@")[0].rpartition(":")[2]
        version = version_of(tag)
        title = f"{deployment.title} ({part} of {_PROJECT}, {tag if version else 'of unknown version'})"
        if part == _SCHEDULER and version is not None and version < _GATED_APART:
            yield warning(
                Check.COSCHEDULING,
                f"{title} counts gated pods as members: the open pods of a gang may hold nodes while others are gated",
                f"upgrade {_PROJECT} to 0.34.7 or newer",
            )
        yield readiness(Check.COSCHEDULING, deployment, title, _DUTY[part], _WITHOUT[part])


def _containers(deployment: Deployment, part: str) -> list[Container]:
    return [one for one in deployment.containers if _part_of(deployment, one) == part]


def _part_of(deployment: Deployment, container: Container) -> str:
    """Which part of scheduler-plugins a container is, by its image, its name or its Deployment's; "" for none."""
    names = (container.name, deployment.metadata.name)
    if _PROJECT not in container.image and not any(name.startswith(_PROJECT) for name in names):
        return ""
    words = (program_of(container), *names)
    return next((part for part in (_CONTROLLER, _SCHEDULER) if any(word.endswith(part) for word in words)), "")
