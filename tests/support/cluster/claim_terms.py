"""PodGroups and queues of every kind, as the judge of `open_claims` reads them: in the words of Volcano's."""

from __future__ import annotations

import json
from dataclasses import dataclass

from muster.model.names import GANG_SPEC, GATE_MODE, GROUP_NAME, PREEMPTION, UNPLACED_AFTER, label_value
from muster.model.resource import POD_GROUPS, QUEUES, Resource
from muster.queueing.sources import QUEUE_SOURCES
from muster.schedulers import SCHEDULERS
from tests.support.cluster.objects import Manifest, annotations_of

ALL_POD_GROUPS = frozenset(one.resource for one in SCHEDULERS.values())
"""The PodGroups of all gang schedulers."""
GANG_QUEUES = QUEUE_SOURCES["muster"].resource
"""muster's own queues."""
ALL_QUEUES = frozenset({QUEUES, GANG_QUEUES})

# What stands in an annotation of Volcano's Queue is a field of muster's.
_FIELDS = {UNPLACED_AFTER: "unplacedAfter", PREEMPTION: "preemption", GATE_MODE: "gate"}


@dataclass(frozen=True)
class Terms:
    """What a gang is admitted for, or is to be: so much, in this queue ("" where none is said).

    `needs` is what its pods really asked for, where that is known.
    """

    resources: Manifest
    queue: str
    needs: Manifest

    @classmethod
    def of(cls, said: Manifest) -> Terms:
        """The terms in Volcano's words, from a PodGroup's specification or from muster's mark."""
        return cls(said.get("minResources", {}), said.get("queue", ""), said.get("needs", {}))


def gang_of_group(resource: Resource, group: Manifest) -> str:
    """The gang of a PodGroup, as a label of its pods has it: other schedulers than Volcano may not allow its name."""
    own: str = group["metadata"]["name"]
    return label_value(own if resource == POD_GROUPS else annotations_of(group).get(GROUP_NAME, own))


def asked_of(group: Manifest) -> Terms:
    """What a PodGroup asks for. What its kind has no field for stands in an annotation of muster's."""
    return Terms.of({**group["spec"], **json.loads(annotations_of(group).get(GANG_SPEC) or "{}")})


def settings_of(resource: Resource, queue: Manifest) -> dict[str, str]:
    """What a queue says of how its gangs wait, by the names of muster's annotations on Volcano's Queue."""
    if resource == QUEUES:
        return annotations_of(queue)
    return {name: queue["spec"][field] for name, field in _FIELDS.items() if queue["spec"].get(field)}
