"""Changes of a TrainJob to its runtime's JobSet: `runtimePatches`, before Trainer 2.2 `podTemplateOverrides`.

The apiserver drops the field that the installed version does not know. Neither can give the pods a priority class or a
scheduler, nor a container resources; the JobSet's metadata, which a patch may change, may name both for muster.
"""

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import NamedTuple

from msgspec.structs import replace

from muster.model.objects import LocalObject
from muster.model.pods import PodTemplate, SchedulingGate, TemplateMeta
from muster.workloads.bounds import TEMPLATE
from muster.workloads.jobset import JobSetSpec, ReplicatedJob
from muster.workloads.model import IntentSource


class JobSetTemplate(LocalObject, frozen=True):
    """The template of a JobSet; in a patch the part that it changes."""

    metadata: TemplateMeta = TemplateMeta()
    spec: JobSetSpec = JobSetSpec()


class _TrainingRuntimeSpec(LocalObject, frozen=True):
    template: JobSetTemplate = JobSetTemplate()


class RuntimePatch(LocalObject, frozen=True):
    """One manager's patch (Trainer 2.2), merged over the runtime's template and over the patches before it."""

    training_runtime_spec: _TrainingRuntimeSpec = _TrainingRuntimeSpec()

    @property
    def template(self) -> JobSetTemplate:
        """The part of the JobSet that it changes."""
        return self.training_runtime_spec.template

    def extra_entries(self) -> int:
        """Return the number of its entries outside its pod templates."""
        metas = (self.template.metadata, *(job.template.metadata for job in self.template.spec.replicated_jobs))
        return self.template.spec.too_much + TEMPLATE + sum(map(_entries, metas))


class _TargetJob(LocalObject, frozen=True):
    name: str = ""


class _OverrideSpec(LocalObject, frozen=True):
    scheduling_gates: tuple[SchedulingGate, ...] = ()


class Override(LocalObject, frozen=True):
    """One of `podTemplateOverrides` (Trainer 2.1)."""

    target_jobs: tuple[_TargetJob, ...] = ()
    metadata: TemplateMeta = TemplateMeta()
    spec: _OverrideSpec = _OverrideSpec()

    def extra_entries(self) -> int:
        """Return the number of its entries; it is applied to each job that it names."""
        each = TEMPLATE + _entries(self.metadata) + len(self.spec.scheduling_gates)
        return (1 + len(self.target_jobs)) * each


def _entries(meta: TemplateMeta) -> int:
    return len(meta.labels) + len(meta.annotations)


class _Change(NamedTuple):
    """The changes to one replicated job."""

    of_job: TemplateMeta
    of_pods: TemplateMeta
    gates: tuple[SchedulingGate, ...]


class RuntimeChanges:
    """All changes, in the order in which the Trainer makes them."""

    def __init__(self, overrides: Iterable[Override], patches: Iterable[RuntimePatch]) -> None:
        self._patches = tuple(patches)
        self._of: dict[str, list[_Change]] = {}
        for override in overrides:
            # An override that names a job twice is applied once.
            for name in dict.fromkeys(target.name for target in override.target_jobs):
                change = _Change(TemplateMeta(), override.metadata, override.spec.scheduling_gates)
                self._of.setdefault(name, []).append(change)
        for patch in self._patches:
            for job in patch.template.spec.replicated_jobs:
                pod = job.template.spec.template
                change = _Change(job.template.metadata, pod.metadata, pod.spec.scheduling_gates)
                self._of.setdefault(job.name, []).append(change)

    def intent_sources(self) -> Iterator[IntentSource]:
        """Yield the sources of the JobSet's metadata, the last patch first."""
        for index in reversed(range(len(self._patches))):
            meta = self._patches[index].template.metadata
            path = f"spec.runtimePatches[{index}].trainingRuntimeSpec.template.metadata"
            yield IntentSource(path, meta.labels, meta.annotations)

    def made_in(self, job: ReplicatedJob) -> ReplicatedJob:
        """Return the replicated job with the changes."""
        changes = self._of.get(job.name)
        if changes is None:
            return job
        pod = job.template.spec.template
        gates = {gate.name: gate for gate in chain(pod.spec.scheduling_gates, *(one.gates for one in changes))}
        pod = PodTemplate(
            metadata=_merged(pod.metadata, (one.of_pods for one in changes)),
            spec=replace(pod.spec, scheduling_gates=tuple(gates.values())),
        )
        template = replace(
            job.template,
            metadata=_merged(job.template.metadata, (one.of_job for one in changes)),
            spec=replace(job.template.spec, template=pod),
        )
        return replace(job, template=template)


def _merged(meta: TemplateMeta, over: Iterable[TemplateMeta]) -> TemplateMeta:
    labels, annotations = dict(meta.labels), dict(meta.annotations)
    for one in over:
        labels |= one.labels
        annotations |= one.annotations
    return TemplateMeta(labels=labels, annotations=annotations)
