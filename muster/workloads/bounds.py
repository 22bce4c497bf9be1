"""How much the templates of one workload may hold: what stands behind a small review is looked at on the event loop.

A workload that holds more is kept without all that counts, so that it takes neither the memory nor the time of what it
holds; `read` of its kind says so, and muster makes no gang of it. One that says nothing of gang scheduling is never
read, and passes as it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import msgspec

from muster.model.objects import InvalidObjectError, LocalObject

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from muster.model.objects import PodSpec, PodTemplate

__all__ = ["MOST", "TEMPLATE", "Bounded"]

MOST = 10_000
"""The sum over all templates: each container, amount, label and annotation counts 1, a template itself `TEMPLATE`."""
TEMPLATE = 20


class Bounded(LocalObject, frozen=True):
    """A part of a workload's spec that holds templates; `held` names the fields with those.

    `too_much` is what it held when that was more than MOST, 0 otherwise, whatever a manifest says there.
    """

    too_much: int = msgspec.field(default=0, name="muster.dev/too-much")
    held: ClassVar[tuple[str, ...]] = ()

    def templates(self) -> Iterable[PodTemplate]:
        """All templates in it."""
        raise NotImplementedError

    def beside(self) -> int:
        """How many amounts and the like it holds beside the templates."""
        return 0

    def without(self) -> Mapping[str, object]:
        """The fields that hold what is counted `beside` the templates, without it: as they are kept of too much."""
        return {}

    def __post_init__(self) -> None:
        size = self.beside() + sum(map(_size, self.templates()))
        msgspec.structs.force_setattr(self, "too_much", size if size > MOST else 0)
        if size > MOST:
            defaults = {field.name: field.default for field in msgspec.structs.fields(type(self))}
            for name, left in ({name: defaults[name] for name in self.held} | dict(self.without())).items():
                msgspec.structs.force_setattr(self, name, left)

    def check(self, path: str) -> None:
        """Raise InvalidObjectError, with the path at which it stands, where it held too much."""
        if self.too_much:
            raise InvalidObjectError(
                path,
                f"it holds {self.too_much} containers, amounts, labels and annotations of pods (each template counts "
                f"{TEMPLATE}), and muster reads {MOST} at most; use fewer or smaller templates",
            )


def _size(template: PodTemplate) -> int:
    meta, spec = template.metadata, template.spec
    return TEMPLATE + len(meta.labels) + len(meta.annotations) + _of_pod(spec)


def _of_pod(spec: PodSpec) -> int:
    resources = (spec.resources, *(one.resources for one in (*spec.containers, *spec.init_containers)))
    amounts = sum(len(one.requests) + len(one.limits) for one in resources)
    return len(resources) + sum(map(len, (spec.overhead, spec.scheduling_gates, spec.resource_claims))) + amounts
