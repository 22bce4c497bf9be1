"""The ConfigMaps of the history, and a client that reads and writes them."""

import asyncio
import json
from typing import Any

from muster.kube.errors import ApiError
from tests.support.manifests.observed import JSON

NAMES = [OWN, STARTS] = ["muster-history", "muster-history-starts"]


class ConfigMaps:
    """The part of a client that reads and patches the ConfigMaps of the history."""

    def __init__(self, *names: str) -> None:
        self.data: dict[str, dict[str, Any]] = {name: {} for name in names or NAMES}
        self.fails: list[Exception] = []
        self.written: list[str] = []

    async def get(self, _: object, name: str, namespace: str, *, deadline: float) -> bytes:
        """Read one; the data of one that was never written is not there."""
        assert (namespace, deadline > 0) == ("muster", True)
        await asyncio.sleep(0)
        if self.fails:
            raise self.fails.pop(0)
        if name not in self.data:
            raise ApiError(404, "NotFound", f'configmaps "{name}" not found')
        return json.dumps({"metadata": {"name": name}, "data": self.data[name] or None}).encode()

    async def strategic_merge_patch(
        self, _: object, name: str, body: JSON, namespace: str, *, deadline: float, dry_run: bool
    ) -> bytes:
        """Write what is said of it."""
        assert (namespace, deadline > 0, dry_run) == ("muster", True, False)
        self.written.append(name)
        if self.fails:
            raise self.fails.pop(0)
        if name not in self.data:
            raise ApiError(404, "NotFound", f'configmaps "{name}" not found')
        self.data[name] |= body["data"]
        return b"{}"
