"""What happens in the chaos test, and in which order: decided by a seed alone, before anything happens.

A step names what it is about by the plan's own means: a gang by the name that the plan gave it, a process by its place
among those that run, a pod by its place among a gang's. Nothing of it depends on time or on what the cluster did, so
that the same seed gives the same steps, and a longer plan begins with the shorter one.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

DEFAULT_SEED, SHORT = 20261587, 40
"""A seed of which so few steps have everything in them that may happen, and kill every part."""

QUEUES = ("chaos-one", "chaos-two")
PARTS = ("kube-apiserver", "volcano-scheduler", "volcano-controllers", "kuberay", "training")
"""What may be killed beside muster's own processes."""
CONTROLLERS = 2
_MOST_CLUSTERS = 50
# The most pods of a gang, and a second more than any job runs.
_PODS, _LONGEST = 4, 8
_VERBS = {
    "cluster comes": 10,
    "job comes": 8,
    "cluster goes": 6,
    "cluster changes size": 3,
    "pod dies": 3,
    "somebody runs": 3,
    "controller dies": 2,
    "part dies": 3,
    "way is cut": 1,
}
_OF_A_CLUSTER = {"cluster goes", "cluster changes size", "pod dies", "somebody runs"}


@dataclass(frozen=True, slots=True)
class Planned:
    """A gang as the plan wants it: `seconds` is how long the pods of a job run, 0 for a cluster."""

    name: str
    queue: str
    workers: int
    seconds: int = 0


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that happens: the verb, the gang as it is to be from then on, and what is picked of several."""

    verb: str
    gang: Planned | None = None
    index: int = 0
    part: str = ""

    def __str__(self) -> str:
        """Say it in a line of the log."""
        about = f" {self.gang.name} ({self.gang.workers} workers, {self.gang.queue})" if self.gang else ""
        return f"{self.verb}{about}{f' {self.part}' if self.part else ''} [{self.index}]"


def plan(seed: int, steps: int) -> Sequence[Step]:
    """Return the first steps of this seed."""
    return tuple(islice(_steps(random.Random(seed)), steps))  # noqa: S311 - the same history for the same seed


def _steps(chance: random.Random) -> Iterator[Step]:
    clusters: dict[str, Planned] = {}
    made = 0
    while True:
        (verb,) = chance.choices(list(_VERBS), list(_VERBS.values()))
        if (verb in _OF_A_CLUSTER and not clusters) or (verb == "cluster comes" and len(clusters) >= _MOST_CLUSTERS):
            continue
        if verb in _OF_A_CLUSTER:
            yield _about(chance, verb, clusters)
        elif verb == "controller dies":
            yield Step(verb, index=chance.randrange(CONTROLLERS))
        elif verb == "part dies":
            yield Step(verb, part=chance.choice(PARTS))
        elif verb == "way is cut":
            yield Step(verb)
        else:
            made += 1
            name, queue = f"g{made:03}", chance.choice(QUEUES)
            if verb == "cluster comes":
                clusters[name] = gang = Planned(name, queue, chance.randrange(_PODS))
            else:
                gang = Planned(name, queue, chance.randrange(1, _PODS), seconds=chance.randrange(1, _LONGEST))
            yield Step(verb, gang)


def _about(chance: random.Random, verb: str, clusters: dict[str, Planned]) -> Step:
    gang = clusters[chance.choice(sorted(clusters))]
    if verb == "cluster goes":
        del clusters[gang.name]
    elif verb == "cluster changes size":
        clusters[gang.name] = gang = replace(gang, workers=chance.randrange(_PODS))
    elif verb == "pod dies":
        return Step(verb, gang, index=chance.randrange(_PODS))
    return Step(verb, gang)
