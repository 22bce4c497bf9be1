"""Checks of other components that act on workloads: operators with gang flags of their own, and Kueue.

Flags are read from the command lines of the Deployments; settings in a configuration file are not visible there.
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import yaml

from muster.cli.doctor.diagnosis import Diagnosis, diagnoses_of, fine, seen, warning
from muster.cli.doctor.installed import AS_INSTALLED, Deployment, Installation, flag
from muster.cli.doctor.sight import Sight
from muster.model.texts import listed
from muster.model.times import duration_of

_FALSE = ("false", "0", "f")


class _Operator(NamedTuple):
    """An operator: the word that identifies its image, name or labels, and its flags for gangs."""

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
    """No operator creates gangs itself, and Kueue holds no workload that muster manages."""
    deployments = seen(sight.deployments, "the gang flags of the operators")
    there = [(one, operator) for one in deployments for operator in _OPERATORS if _is(one, operator.word)]
    found = [warning for one, operator in there for warning in _flagged(one, operator)]
    found += diagnoses_of(_kueue, sight) if any(map(is_kueue, deployments)) else ()
    yield from found
    if not found:
        titles = sorted({operator.title for _, operator in there})
        yield fine(f"no gang flag is set: {listed(titles)}" if titles else "no operator with a gang flag found")


def _is(deployment: Deployment, word: str) -> bool:
    meta = deployment.metadata
    images = (one.image.partition("@")[0].rpartition(":")[0] or one.image for one in deployment.programs)
    return any(word in text for text in (meta.name, *meta.labels.values(), *images))


def _flagged(deployment: Deployment, operator: _Operator) -> Iterator[Diagnosis]:
    for program in deployment.programs:
        for name in operator.flags:
            value = flag(program.words, name)
            on = value is not None and (value or name.startswith("enable-")) and value.lower() not in _FALSE
            if on:
                setting = f"--{name}={value}" if value else f"--{name}"
                yield warning(
                    f"{operator.title} ({deployment.title}) has {setting}: it creates the gangs of "
                    f"{operator.workloads} itself; muster adds no gate and no PodGroup (state External), and only "
                    "refuses workloads that cannot fit",
                    f"remove {setting} from the Deployment, and recreate running workloads when convenient "
                    "(docs/operations.md, Workloads that run already)",
                )
        if operator.word == "kuberay" and flag(program.words, "config") is not None:
            yield warning(
                f"{operator.title} ({deployment.title}) reads its settings from a file (--config); its "
                "batchScheduler is not visible here",
                "check its ConfigMap: batchScheduler should be empty and enableBatchScheduler false",
            )


def is_kueue(deployment: Deployment) -> bool:
    """True if it is Kueue's controller."""
    return deployment.metadata.name.startswith("kueue-controller") or any(
        one.image_name == "kueue" for one in deployment.programs
    )


def _kueue(sight: Sight) -> Iterator[Diagnosis]:
    """Kueue manages workloads without its label only when it is configured to, and muster knows its patience."""
    for name, text in seen(sight.kueue, "which workloads Kueue manages").items():
        try:
            configuration: Any = yaml.safe_load(text)
        except yaml.YAMLError:
            continue
        if not isinstance(configuration, dict):
            continue
        yield from _patience(sight.installation or AS_INSTALLED, name, configuration)
        if configuration.get("manageJobsWithoutQueueName") is True:
            yield warning(
                f"Kueue also manages workloads without its label (manageJobsWithoutQueueName in {name}): a workload "
                "that both manage starts only when both admit it",
                "assign each namespace to one of them: Kueue's managedJobsNamespaceSelector, and muster's label "
                'muster.dev/managed: "false"',
            )


# Settings of Kueue's waitForPodsReady, the chart values that repeat them, what pods lack, and the value of none.
_TIMEOUTS = (
    ("timeout", "podsReadyTimeout", "are not ready", None),
    ("unscheduledTimeout", "unscheduledTimeout", "have no nodes", "0s"),
)


def _patience(installed: Installation, name: str, configuration: Mapping[str, Any]) -> Iterator[Diagnosis]:
    """The timeouts of Kueue that differ from those that muster warns of."""
    waits = configuration.get("waitForPodsReady")
    if not isinstance(waits, dict):
        return
    known = installed.kueue if "kueue" in installed.admitters else {}
    for setting, value, lack, otherwise in _TIMEOUTS:
        set_to = waits.get(setting, otherwise)
        seconds = duration_of(set_to) if isinstance(set_to, str) else None
        if setting in known and seconds is not None and seconds != known[setting]:
            after = f"after {set_to}" if seconds else "at no time"
            yield warning(
                f"Kueue takes its quota back from pods that {lack} {after} (waitForPodsReady.{setting} in {name}), "
                "and muster warns of another time",
                f"set the chart value kueue.{value}={set_to}",
            )
