"""Events about the certificates, on their Secret: what an administrator should know before calls fail."""

from __future__ import annotations

import hashlib
import logging
from typing import Any

from muster.kube.client import Client
from muster.kube.errors import ApiError
from muster.kube.events import EventSource, Regarding
from muster.kube.resource import EVENTS, SECRETS

logger = logging.getLogger(__name__)

REPORTING_CONTROLLER = "muster.dev/webhook"
_HOUR = 3600


class Notices:
    """Reports the same at most once an hour, whichever replica reports it; `secret_uid` is known after a read."""

    def __init__(self, client: Client, namespace: str, secret: str, instance: str) -> None:
        self._client = client
        self._source = EventSource(REPORTING_CONTROLLER, instance, "ManageCertificates")
        self._namespace = namespace
        self._secret = secret
        self._said: set[str] = set()
        self._hour = 0
        self.secret_uid = ""

    async def warn(self, reason: str, note: str) -> None:
        """Something is wrong; `note` says what, in words that are the same in every replica."""
        await self._say(reason, note, warning=True)

    async def tell(self, reason: str, note: str) -> None:
        """Something was done."""
        await self._say(reason, note, warning=False)

    async def ask(self) -> None:
        """Have the apiserver review an event that is never stored. Raises ApiError when it reaches no replica."""
        event = self._event("Reached", "is never kept", warning=False, suffix="reached")
        await self._client.create(EVENTS, event, self._namespace, dry_run=True, deadline=2.0)

    async def _say(self, reason: str, note: str, *, warning: bool) -> None:
        seconds = self._client.now().timestamp()
        hour = int(seconds // _HOUR)
        # The name of the event is the same for every replica: the second to say it finds it said.
        suffix = f"{hashlib.sha256(f'{reason}: {note}'.encode()).hexdigest()[:10]}{hour:x}"
        if hour != self._hour:
            self._said.clear()
            self._hour = hour
        if suffix in self._said:
            return
        self._said.add(suffix)
        level = logging.WARNING if warning else logging.INFO
        logger.log(level, "%s: %s", reason, note, extra={"event": "certificate.notice"})
        event = self._event(reason, note, warning=warning, suffix=suffix)
        try:
            # Nothing waits for long: renewal is more than a word about it.
            await self._client.create(EVENTS, event, self._namespace, deadline=2.0)
        except ApiError as error:
            if not error.already_exists:
                logger.warning(
                    "cannot write an event about secret %s: %s",
                    self._secret,
                    error,
                    extra={"event": "certificate.event"},
                )

    def _event(self, reason: str, note: str, *, warning: bool, suffix: str) -> dict[str, Any]:
        about = Regarding(SECRETS.api_version, SECRETS.kind, self._namespace, self._secret, self.secret_uid)
        seconds = self._client.now().timestamp()
        return self._source.event(about, reason, note, warning=warning, seconds=seconds, suffix=suffix)
