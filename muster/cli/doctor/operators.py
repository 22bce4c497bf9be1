"""Checks of who else acts on the workloads: operators with gang flags of their own, and Kueue.

Flags are read from the Deployments' command lines; what an operator is told by a file cannot be seen there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import yaml

from muster.cli.doctor.diagnosis import Check, Diagnosis, Unseen, fine, unknown, warning
from muster.cli.doctor.sight import flag
from muster.cli.doctor.words import listed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from muster.cli.doctor.sight import Deployment, Sight

__all__ = ["is_kueue", "operators"]

_FALSE = ("false", "0", "f")


class _Operator(NamedTuple):
    """An operator: the word by which its image, name or labels are known, and its flags for gangs."""

    title: str
    word: str
    flags: tuple[str, ...]
    workloads: str


_OPERATORS = (
    _Operator("KubeRay", "kuberay", ("batch-scheduler", "enable-batch-scheduler"), "RayClusters"),
    _Operator("the Training operator", "training-operator", ("gang-scheduler-name",), "jobs of kubeflow.org/v1"),
    _Operator("the MPI operator", "mpi-operator", ("gang-scheduling",), "MPIJobs"),
)


def operators(sight: Sight) -> Iterator[Diagnosis]:
    """No operator makes gangs itself, and Kueue holds no workload that is muster's."""
    if isinstance(sight.deployments, Unseen):
        yield unknown(Check.OPERATORS, sight.deployments, "operators' own gang flags")
        return
    seen, found = [], []
    for deployment in sight.deployments:
        for operator in _OPERATORS:
            if _is(deployment, operator.word):
                seen.append(operator.title)
                found += list(_flagged(deployment, operator))
    found += list(_kueue(sight, sight.deployments))
    yield from found
    if not found:
        yield fine(
            Check.OPERATORS,
            f"no gang flag is on: {listed(sorted(set(seen)))}" if seen else "no operator with a gang flag is seen",
        )


def _is(deployment: Deployment, word: str) -> bool:
    meta = deployment.metadata
    images = (
        container.image.partition("@")[0].rpartition(":")[0] or container.image for container in deployment.containers
    )
    return any(word in text for text in (meta.name, *meta.labels.values(), *images))


def _flagged(deployment: Deployment, operator: _Operator) -> Iterator[Diagnosis]:
    for container in deployment.containers:
        for name in operator.flags:
            value = flag(container.words, name)
            on = value is not None and (value or name.startswith("enable-")) and value.lower() not in _FALSE
            if on:
                said = f"--{name}={value}" if value else f"--{name}"
                yield warning(
                    Check.OPERATORS,
                    f"{operator.title} ({deployment.title}) has {said}: it makes the gangs of {operator.workloads} "
                    "itself; muster adds no gate and no PodGroup to them (state External), and only refuses what "
                    "cannot fit",
                    f"take {said} out of the Deployment, and make workloads that run anew when it suits "
                    "(docs/operations.md, Workloads that run already)",
                )
        if operator.word == "kuberay" and flag(container.words, "config") is not None:
            yield warning(
                Check.OPERATORS,
                f"{operator.title} ({deployment.title}) takes its settings from a file (--config), where its "
                "batchScheduler cannot be seen",
                "look into its ConfigMap: batchScheduler should be empty and enableBatchScheduler false",
            )


def is_kueue(deployment: Deployment) -> bool:
    """Whether it is Kueue's controller."""
    return any(
        container.image.partition("@")[0].rpartition("/")[2].partition(":")[0] == "kueue"
        for container in deployment.containers
    ) or deployment.metadata.name.startswith("kueue-controller")


def _kueue(sight: Sight, deployments: tuple[Deployment, ...]) -> Iterator[Diagnosis]:
    """Kueue takes workloads that have no label of its own only where it is told so."""
    if not any(map(is_kueue, deployments)):
        return
    if isinstance(sight.kueue, Unseen):
        yield unknown(Check.OPERATORS, sight.kueue, "what Kueue manages")
        return
    for name, text in sight.kueue.items():
        try:
            configuration: Any = yaml.safe_load(text)
        except yaml.YAMLError:
            continue
        if isinstance(configuration, dict) and configuration.get("manageJobsWithoutQueueName") is True:
            yield warning(
                Check.OPERATORS,
                f"Kueue takes workloads without its label too (manageJobsWithoutQueueName in {name}): what asks for "
                "muster as well starts when both let it go",
                "give each namespace to one of them: Kueue's managedJobsNamespaceSelector, and muster's label "
                'muster.dev/managed: "false"',
            )
