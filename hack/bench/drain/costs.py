"""What a stretch of a run took: CPU seconds of each process, and the apiserver's calls by verb and resource."""

from __future__ import annotations

import os
import re
from collections import Counter
from typing import TYPE_CHECKING

from hack.bench.usage import cpu_seconds

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hack.testbed import Testbed
    from hack.testbed.muster import MusterInstall

__all__ = ["Costs", "calls"]

_PARTS = (
    *("kube-apiserver", "etcd", "kube-controller-manager", "kube-scheduler"),
    *("volcano-scheduler", "volcano-controllers", "volcano-webhooks", "kwok"),
)
_RARE = 0.05  # calls of a gang
_REQUESTS = re.compile(r"^apiserver_request_total\{([^}]*)\} (\S+)$", re.MULTILINE)
_LABEL = re.compile(r'(\w+)="([^"]*)"')


def calls(testbed: Testbed) -> Counter[str]:
    """What the apiserver was asked so far, watches and leases apart."""
    found: Counter[str] = Counter()
    answer = testbed.api()("GET", "/metrics")
    for labels, value in _REQUESTS.findall(answer.message):
        of = dict(_LABEL.findall(labels))
        if of["verb"] not in ("WATCH", "CONNECT") and of["resource"] not in ("", "leases"):
            part = f"/{of['subresource']}" if of["subresource"] else ""
            found[f"{of['verb']} {of['resource']}{part}"] += int(float(value))
    return found


class Costs:
    """Counts from its making on."""

    def __init__(self, testbed: Testbed, muster: MusterInstall) -> None:
        self._testbed = testbed
        parts = testbed.processes()
        self._pids = {name: parts[name].pid for name in _PARTS if name in parts and parts[name].alive()}
        self._pids |= {"webhook": muster.webhooks[0].pid, "bench": os.getpid()}
        if muster.controllers:
            self._pids["controller"] = muster.controllers[0].pid
        self._cpu = self._now()
        self._calls = calls(testbed)

    def _now(self) -> dict[str, float]:
        return {name: cpu_seconds(pid) for name, pid in self._pids.items()}

    def each(self, gangs: int) -> tuple[Mapping[str, float], Mapping[str, float]]:
        """CPU milliseconds by process, and calls by kind, for each of so many gangs."""
        spent = {name: 1000 * (now - self._cpu[name]) / gangs for name, now in self._now().items()}
        made = calls(self._testbed) - self._calls
        return spent, {kind: number / gangs for kind, number in made.most_common() if number / gangs >= _RARE}
