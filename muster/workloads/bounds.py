"""A bound on the templates of one workload: the objects behind a small review are read on the event loop.

A workload above the bound is kept without the counted parts, so that it takes neither the memory nor the time of its
content; `read` of its kind raises for it, and muster makes no gang of it. One that asks for no gang scheduling is never
read, and accepted as it is.
"""

from collections.abc import Iterable, Mapping
from typing import ClassVar

import msgspec

from muster.model.keep import Stubbed, entries
from muster.model.objects import InvalidObjectError
from muster.model.pods import PodTemplate

MOST = 10_000
"""The bound of the sum over all templates, in entries of some 30 bytes that are kept.

A template itself counts `TEMPLATE`, a label or annotation `_TEXT`, and the rest as `entries` does.
"""
TEMPLATE, _TEXT = 30, 3


class Bounded(Stubbed, frozen=True):
    """A part of a workload's spec that holds templates; `held` names the fields with those.

    `too_much` is its size if that was more than MOST, 0 otherwise; a value in the manifest is overwritten.
    """

    too_much: int = msgspec.field(default=0, name="muster.dev/too-much")
    held: ClassVar[tuple[str, ...]] = ()

    def templates(self) -> Iterable[PodTemplate]:
        """Return all templates in it."""
        raise NotImplementedError

    def extra_entries(self) -> int:
        """Return the number of entries, such as amounts, outside the templates."""
        return 0

    def without(self) -> Mapping[str, object]:
        """Return the fields with these entries, emptied: they are kept so above the bound."""
        return {}

    def __post_init__(self) -> None:
        size = self.extra_entries() + sum(map(_size, self.templates()))
        msgspec.structs.force_setattr(self, "too_much", 0)
        if size > MOST:
            self._empty(size)

    def stub(self) -> None:
        """Mark it as too large, as a list or a map in it was not read to its end."""
        if not self.too_much:
            self._empty(MOST + 1)

    def _empty(self, size: int) -> None:
        defaults = {field.name: field.default for field in msgspec.structs.fields(type(self))}
        left = {name: defaults[name] for name in self.held} | dict(self.without()) | {"too_much": size}
        for name, value in left.items():
            msgspec.structs.force_setattr(self, name, value)

    def check(self, path: str) -> None:
        """Raise InvalidObjectError, with its path, if it held too much."""
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
