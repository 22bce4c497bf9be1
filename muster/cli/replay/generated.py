"""A generated day of short runs on a GPU cluster, the same for the same seed.

It has the shape that published traces of such clusters have (Hu et al., SC '21): most gangs have one GPU and large ones
most of the work, amounts are powers of two, run times are spread as a lognormal distribution, here with a median of ten
minutes, and each user's own are more alike. A quarter of the users set a time limit, which is up to ten times too long.
"""

from __future__ import annotations

import random
from math import exp, log, log2

from muster.cli.replay.load import Arrival, Load, needs
from muster.queueing.queue_view import ROOT, QueueView

_GPU = "nvidia.com/gpu"
_GPUS, _LARGEST = 256, 7
_SECONDS, _PART = 86400.0, 0.95
_MEDIAN, _OF_USERS, _OF_RUNS = 600.0, 1.0, 0.9
_USERS = 40
_DEPARTMENTS = ("research", "product")
_TEAMS = ("speech", "vision")
_LEAST_RUN = 10.0


def generated(seed: int, days: float = 1.0) -> Load:
    """Queues at three levels that share 256 GPUs, and gangs that need 95 % of them on average."""
    rng = random.Random(seed)  # noqa: S311
    queues = [QueueView(ROOT, "Open", needs(f"{_GPUS}", _GPU), parent="")]
    for department in _DEPARTMENTS:
        queues.append(QueueView(department, "Open", needs(f"{_GPUS * 3 // 4}", _GPU)))
        queues += [
            QueueView(f"{department}-{team}", "Open", needs(f"{_GPUS // 2}", _GPU), department) for team in _TEAMS
        ]
    leaves = [view.name for view in queues if "-" in view.name]
    users = [(f"user-{number}", rng.choice(leaves), rng.gauss(log(_MEDIAN), _OF_USERS)) for number in range(_USERS)]
    weights = [1 / (number + 1) for number in range(_USERS)]
    work, arrivals = _GPUS * _SECONDS * days * _PART, list[Arrival]()
    while work > 0:
        ((user, queue, usual),) = rng.choices(users, weights)
        size = min(int(-log2(1 - rng.random())), _LARGEST)
        runs = max(exp(rng.gauss(usual, _OF_RUNS)), _LEAST_RUN)
        limit = runs * rng.uniform(1, 10) if int(user[5:]) % 4 == 0 else None
        at = rng.uniform(0, _SECONDS * days)
        name = f"gang-{len(arrivals):06}"
        arrivals.append(Arrival(name, user, at, runs, needs(f"{2**size}", _GPU), queue, limit=limit))
        work -= runs * 2**size
    return Load(tuple(queues), tuple(sorted(arrivals, key=lambda one: (one.at, one.name))))
