"""When the apiserver may begin to call: once it reaches this release's webhook, and not before.

A first installation creates the webhook configurations before any replica serves. The chart writes a condition into
those of their webhooks that fail closed by which nothing is called, and so nothing fails. Here it is taken out, when
the apiserver has been seen to reach a replica behind the Service: by its question about an event that is never kept.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from muster.kube.errors import ApiError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webhook.certificates.bundles import Bundles, Configuration
    from webhook.certificates.notices import Notices

__all__ = ["WebhookActivation"]

logger = logging.getLogger(__name__)

# Several apiservers and nodes hear of Service and configurations at different moments.
_TIMES, _PAUSE_SECONDS = 3, 0.3


class WebhookActivation:
    """Lets the apiserver call the webhooks of the configurations."""

    def __init__(self, bundles: Bundles, notices: Notices) -> None:
        self._bundles = bundles
        self._notices = notices

    async def open(self, configurations: Sequence[Configuration]) -> bool:
        """Take the condition out, where it is and if the webhook is reached; whether nothing of it is left."""
        if not any(configuration.closed for configuration in configurations):
            return True
        try:
            for turn in range(_TIMES):
                await asyncio.sleep(_PAUSE_SECONDS if turn else 0)
                await self._notices.ask()
            for configuration in await self._bundles.read():
                if configuration.closed:
                    await self._bundles.open(configuration)
                    logger.info(
                        "the apiserver calls the webhooks of %s from now on",
                        configuration.resource.full_name,
                        extra={"event": "webhook.activated"},
                    )
        except ApiError as error:
            # Or another replica was quicker, which the next look shows.
            logger.info("the apiserver does not reach the webhook yet: %s", error, extra={"event": "webhook.unreached"})
            return False
        return True
