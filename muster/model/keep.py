"""The parts of an object that stores keep: annotations that are copied, and one object for all equal templates."""

import sys
from collections import OrderedDict
from collections.abc import Mapping
from enum import Enum

import msgspec

from muster.model.objects import LocalObject
from muster.model.pods import PodSpec, PodTemplate

TEXT_MAPS = ("labels", "annotations")

# Most bytes of a template that is kept once for all equal ones, and most templates that are remembered for that.
_MOST_SHARED, _MOST_TEMPLATES = 2_048, 1_024
_templates: OrderedDict[bytes, PodTemplate] = OrderedDict()
# Bookkeeping of other tools that does not concern the gang.
_NOT_COPIED = ("kubectl.kubernetes.io/", "muster.dev/", "meta.helm.sh/", "argocd.argoproj.io/")
# Bytes, as they are sent and as Python keeps them. An object may have 262,144: the rest is for the annotations of
# muster and of others on the PodGroup.
_MOST_COPIED = 131_072


class Keep(Enum):
    """The labels and annotations of an object that are kept in addition to those that muster reads."""

    READ = "read"
    """None."""
    COPIED = "copied"
    """The annotations that muster copies from a workload to its PodGroup."""
    ALL = "all"
    """All: the selectors of administrators may name any label of a namespace."""


class Stubbed(LocalObject, frozen=True):
    """A part of an object that can be marked as too large to be read."""

    def stub(self) -> None:
        """Drop its content, and mark it as too large."""
        raise NotImplementedError


def copied(annotations: Mapping[str, str]) -> dict[str, str]:
    """Return the annotations that may concern the gang; of too many the shortest, as those of schedulers are."""
    found = {key: value for key, value in annotations.items() if not key.startswith(_NOT_COPIED)}
    sizes = {key: _size(key) + _size(value) for key, value in found.items()}
    whole = sum(sizes.values())
    for key in sorted(sizes, key=lambda key: sizes[key], reverse=True):
        if whole <= _MOST_COPIED:
            break
        whole -= sizes[key]
        del found[key]
    return found


def _size(text: str) -> int:
    return max(len(text.encode()), sys.getsizeof(text))


def entries(spec: PodSpec) -> int:
    """Return the number of entries of a pod that are kept, of some 30 bytes each."""
    resources = (spec.resources, *(one.resources for one in (*spec.containers, *spec.init_containers)))
    amounts = (*(found for one in resources for found in (one.requests, one.limits) if found), spec.overhead)
    names = sum(3 + len(name) // 16 for found in amounts for name in found)
    return 10 * (len(resources) - 1) + 3 * (len(spec.scheduling_gates) + len(spec.resource_claims)) + names


def shared_template(template: PodTemplate) -> PodTemplate:
    """Return the same object for all equal templates: most of a cluster's are equal."""
    encoded = msgspec.msgpack.encode(template)
    if len(encoded) > _MOST_SHARED:
        return template
    same = _templates.setdefault(encoded, template)
    _templates.move_to_end(encoded)
    if len(_templates) > _MOST_TEMPLATES:
        _templates.popitem(last=False)
    return same
