"""Pods at a steady rate, made by the real apiserver while something happens to the webhook, and what came of each."""

import json
import threading
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Self

from hack.testbed import wait_for
from hack.testbed.api import Answer, Api
from muster.model.names import GATE
from muster.model.resource import PODS
from tests.support.cluster.background import Meanwhile
from tests.support.cluster.desk import PATIENCE, Desk, Manifest

# Each waits for its own answer, so that a slow one keeps nobody from being asked on time.
_THREADS = 8


@dataclass(frozen=True, slots=True)
class Attempt:
    """One creation: when it was sent and answered (monotonic seconds), and the answer."""

    sent: float
    answered: float
    answer: Answer

    @property
    def held(self) -> bool:
        """Whether the pod was made, and muster had its say."""
        gates = self.answer.body.get("spec", {}).get("schedulingGates", [])
        return self.answer.ok and {"name": GATE} in gates


class Load(Meanwhile):
    """Creates members of one workload, so many a second, from entering until leaving."""

    def __init__(self, calls: Api, desk: Desk, owner: Manifest, per_second: float = 50) -> None:
        super().__init__(_THREADS)
        self._calls = calls
        self._path = PODS.path(desk.namespace)
        self._body = json.dumps(desk.member(owner, "worker")).encode()
        self._interval = 1 / per_second
        self._attempts: list[Attempt] = []
        self._turns = self._clock()
        self._turn = threading.Lock()

    def __enter__(self) -> Self:
        super().__enter__()
        self.lasts(0.5)
        return self

    def attempts(self) -> list[Attempt]:
        """Return what was answered until now."""
        return list(self._attempts)

    def failures(self) -> list[Attempt]:
        """Return those that made no pod with muster's gate."""
        return [one for one in self.attempts() if not one.held]

    def lasts(self, seconds: float) -> None:
        """Let so much of it come by, however slow the machine."""
        until = len(self._attempts) + seconds / self._interval
        wait_for(f"{seconds} s of load", lambda: len(self._attempts) >= until, PATIENCE)

    def _clock(self) -> Iterator[float]:
        due = time.monotonic()
        while True:
            # Behind on a busy machine it does not catch up in a burst.
            due = max(due + self._interval, time.monotonic() - self._interval)
            yield due

    def _work(self) -> None:
        while True:
            with self._turn:
                due = next(self._turns)
            if self._ended.wait(max(0.0, due - time.monotonic())):
                return
            sent = time.monotonic()
            answer = self._calls("POST", self._path, self._body)
            self._attempts.append(Attempt(sent, time.monotonic(), answer))


def kinds(failures: Iterable[Attempt]) -> set[str]:
    """What the apiserver said, once each, for messages."""
    return {one.answer.message or f"no gate: {one.answer.body.get('spec')}" for one in failures}
