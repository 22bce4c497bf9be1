"""How much the templates of one workload may hold: what stands behind a small review is looked at on the event loop.

A workload that holds more is kept without all that counts, so that it takes neither the memory nor the time of what it
holds; `read` of its kind says so, and muster makes no gang of it. One that says nothing of gang scheduling is never
read, and passes as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import ClassVar

import msgspec

from muster.model.keep import Stubbed, entries
from muster.model.objects import InvalidObjectError
from muster.model.pods import PodTemplate

MOST = 10_000
"""The sum over all templates, in some 30 bytes that are kept.

A template itself counts `TEMPLATE`, a label or annotation `_TEXT`, and the rest as `entries` does.
"""
TEMPLATE, _TEXT = 30, 3


class Bounded(Stubbed, frozen=True):
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
        msgspec.structs.force_setattr(self, "too_much", 0)
        if size > MOST:
            self._empty(size)

    def stub(self) -> None:
        """As of too much, where a list or a map in it was not read to its end."""
        if not self.too_much:
            self._empty(MOST + 1)

    def _empty(self, size: int) -> None:
        defaults = {field.name: field.default for field in msgspec.structs.fields(type(self))}
        left = {name: defaults[name] for name in self.held} | dict(self.without()) | {"too_much": size}
        for name, value in left.items():
            msgspec.structs.force_setattr(self, name, value)

    def check(self, path: str) -> None:
        """Raise InvalidObjectError, with the path at which it stands, where it held too much."""
        if self.too_much:
            raise InvalidObjectError(
                path,
                f"it counts {self.too_much} or more, and muster reads {MOST} at most: each template counts {TEMPLATE}, "
                f"each container 10, each amount, label and annotation of a pod {_TEXT} or more; use fewer or smaller "
                "templates",
            )


def _size(template: PodTemplate) -> int:
    meta, spec = template.metadata, template.spec
    return TEMPLATE + _TEXT * (len(meta.labels) + len(meta.annotations)) + entries(spec)
