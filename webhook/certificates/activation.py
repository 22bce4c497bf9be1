"""Activates the webhooks once the apiserver reaches a replica, and not before.

A first installation creates the webhook configurations before any replica serves. The chart gives webhooks that fail
closed a match condition that is always false, so that nothing is called and nothing fails. It is removed here, after
the apiserver has reached a replica behind the Service: with a review of an event that is never stored.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from muster.kube.errors import ApiError
from webhook.certificates.bundles import Bundles, ChangedMeanwhileError, Configuration
from webhook.certificates.notices import Notices

logger = logging.getLogger(__name__)

# Several apiservers and nodes hear of Service and configurations at different moments.
_TIMES, _PAUSE_SECONDS = 3, 0.3


class WebhookActivation:
    """Lets the apiserver call the webhooks of the configurations."""

    def __init__(self, bundles: Bundles, notices: Notices) -> None:
        self._bundles = bundles
        self._notices = notices

    async def open(self, configurations: Sequence[Configuration]) -> bool:
        """Remove the condition where it stands, if the webhook is reached; returns whether none is left."""
        if not any(configuration.closed for configuration in configurations):
            return True
        try:
            for turn in range(_TIMES):
                await asyncio.sleep(_PAUSE_SECONDS if turn else 0)
                await self._notices.ask()
            closed = [configuration for configuration in await self._bundles.read() if configuration.closed]
        except ApiError as error:
            logger.info("the apiserver does not reach the webhook yet: %s", error, extra={"event": "webhook.unreached"})
            return False
        return all([await self._activate(configuration) for configuration in closed])

    async def _activate(self, configuration: Configuration) -> bool:
        name = configuration.resource.full_name
        try:
            await self._bundles.open(configuration)
        except ChangedMeanwhileError:
            # The next look shows how it is now; another replica may have done it.
            return False
        except ApiError as error:
            logger.warning(
                "cannot activate the webhooks of %s: %s", name, error, extra={"event": "webhook.not_activated"}
            )
            if error.refused:
                note = f"the apiserver reaches the webhook, but the webhooks of {name} cannot be activated: {error}"
                await self._notices.warn("WebhookNotActivated", note)
            return False
        logger.info("the apiserver calls the webhooks of %s from now on", name, extra={"event": "webhook.activated"})
        return True
