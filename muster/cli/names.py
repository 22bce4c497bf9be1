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
    schedulers = SCHEDULERS.values()
    return [one.resource for one in schedulers if word in _POD_GROUP or word in _full_names(one.resource, one.versions)]


def _full_names(kind: Resource, versions: Iterable[str] = ()) -> set[str]:
    words = (kind.kind.lower(), kind.plural)
    groups = (kind.group, *(f"{version}.{kind.group}" for version in (kind.version, *versions)))
    return {f"{word}.{group}" for word in words for group in groups}


def is_queue(word: str) -> bool:
    """True if the word means a queue of any source."""
    return bool(queues_meant(word))


def queues_meant(word: str) -> list[Resource]:
    """The kinds of queues that a word may mean; none where it means no queue.

    A queue is of either source: a user need not know which of them the installation has.
    """
    if word in ("queue", "queues"):
        return [source.resource for source in QUEUE_SOURCES.values()]
    return [source.resource for name, source in QUEUE_SOURCES.items() if word in _words_of_queue(name)]


def _words_of_queue(name: str) -> set[str]:
    source = QUEUE_SOURCES[name]
    words = (source.kind.lower(), source.plural)
    groups = (source.group, f"{source.version}.{source.group}")
    full = {f"{word}.{group}" for word in words for group in groups}
    return {*full, _SHORT_QUEUE[name], *words} - {"queue", "queues"}


def kinds_of(word: str) -> list[Kind]:
    """The kinds of workloads that a word means: MPIJob v1 and v2beta1 share one. Raises UnknownSubjectError."""
    found = [kind for kind in KINDS if word in _words(kind)]
    if not found:
        known = ", ".join(dict.fromkeys(one.kind for one in KINDS))
        raise UnknownSubjectError(f'muster does not support the kind "{word}"; it supports {known}, PodGroup')
    return found


def _words(kind: Kind) -> set[str]:
    names = (kind.kind.lower(), kind.plural)
    groups = (kind.group, *(f"{version}.{kind.group}" for version in kind.versions)) if kind.group else ()
    return {*names, _SHORT.get(kind.kind, names[0]), *(f"{name}.{group}" for name in names for group in groups)}
