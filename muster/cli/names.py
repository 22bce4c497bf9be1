"""Names of objects on a command line, as kubectl takes and prints them: `raycluster demo`, `raycluster.ray.io/demo`."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from muster.cli.ui import CommandError
from muster.model.resource import Resource
from muster.queueing.sources import QUEUE_SOURCES
from muster.schedulers import SCHEDULERS
from muster.workloads import KINDS, Kind

_SHORT_QUEUE = {"volcano": "q", "muster": "gq"}
_SHORT = {"Pod": "po", "StatefulSet": "sts"}
# In an address each would lead elsewhere.
_NO_NAMES = ("", ".", "..")
_POD_GROUP = ("podgroup", "podgroups", "pg")


class UnknownSubjectError(CommandError):
    """No object of that kind and name exists; the message names it."""


class ObjectName(NamedTuple):
    """A kind, as the user wrote it but in lower case, and the name of an object."""

    kind: str
    name: str


def parse_names(words: Sequence[str]) -> list[ObjectName]:
    """The names of `KIND/NAME ...` or `KIND NAME ...`, each once; raises UnknownSubjectError for another form."""
    if any("/" in word for word in words):
        parts = [word.partition("/") for word in words]
    else:
        parts = [(words[0], "/", word) for word in words[1:]]
    if not parts or not all(
        kind and slash and "/" not in name and name not in _NO_NAMES for kind, slash, name in parts
    ):
        raise UnknownSubjectError(f'"{" ".join(words)}" is not KIND/NAME or KIND NAME, for example raycluster/demo')
    return list(dict.fromkeys(ObjectName(kind.lower(), name) for kind, _, name in parts))


def is_pod_group(word: str) -> bool:
    """True if the word means the kind PodGroup."""
    return bool(pod_groups_meant(word))


def pod_groups_meant(word: str) -> list[Resource]:
    """The kinds of PodGroups that a word may mean, one for each scheduler; none where it means no PodGroup.

    A user need not know which scheduler places gangs in the cluster.
    """
    kinds = [(one.resource, (one.version, *one.versions)) for one in SCHEDULERS.values()]
    return [kind for kind, versions in kinds if word in _POD_GROUP or word in _full_names(kind, versions)]


def _full_names(kind: Resource | Kind, versions: Iterable[str]) -> set[str]:
    """The names of a kind with its API group, with and without a version."""
    groups = (kind.group, *(f"{version}.{kind.group}" for version in versions)) if kind.group else ()
    return {f"{word}.{group}" for word in (kind.kind.lower(), kind.plural) for group in groups}


def is_queue(word: str) -> bool:
    """True if the word means a queue of any source."""
    return bool(queues_meant(word))


def queues_meant(word: str) -> list[Resource]:
    """The kinds of queues that a word may mean; none where it means no queue.

    A queue is of either source: a user need not know which of them the installation has.
    """
    kinds = [(source.resource, _SHORT_QUEUE[name]) for name, source in QUEUE_SOURCES.items()]
    named = {
        kind: {kind.kind.lower(), kind.plural, short, *_full_names(kind, (kind.version,))} for kind, short in kinds
    }
    return [kind for kind, words in named.items() if word in words or word in ("queue", "queues")]


def kinds_of(word: str) -> list[Kind]:
    """The kinds of workloads that a word means: MPIJob v1 and v2beta1 share one. Raises UnknownSubjectError."""
    found = [kind for kind in KINDS if word in (kind.kind.lower(), kind.plural, _SHORT.get(kind.kind))]
    found = found or [kind for kind in KINDS if word in _full_names(kind, kind.versions)]
    if not found:
        known = ", ".join(dict.fromkeys(one.kind for one in KINDS))
        raise UnknownSubjectError(f'muster does not support the kind "{word}"; it supports {known}, PodGroup')
    return found
