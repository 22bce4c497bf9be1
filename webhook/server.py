"""The admission server: decode, ask the rules, answer.

An answer is always a review; what cannot be decided is an HTTP error, so that the failure policy of the webhook
configuration decides.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from aiohttp import web

from muster.kube.errors import ApiError
from muster.objects import InvalidObjectError
from webhook.pods import review_pod
from webhook.review import Answer, InvalidReviewError, Request, decode_review, encode_answer
from webhook.workloads import review_workload

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from muster.intent import Defaults
    from webhook.knowledge import Knowledge

__all__ = ["make_app"]

logger = logging.getLogger(__name__)

# Two objects of the 3 MiB that the apiserver takes, and the review around them.
_LARGEST_BODY = 7 * 2**20


def make_app(knowledge: Knowledge, defaults: Defaults, decision_seconds: float = 4.0) -> web.Application:
    """The two paths that the chart's webhook configurations call.

    A decision may take `decision_seconds`; when that is less than the apiserver waits it hears why there is none.
    """
    app = web.Application(client_max_size=_LARGEST_BODY)
    app.add_routes(
        [
            web.post("/mutate/pods", _handler(review_pod, knowledge, defaults, decision_seconds)),
            web.post("/validate/workloads", _handler(review_workload, knowledge, defaults, decision_seconds)),
        ],
    )
    return app


def _handler(
    review: Callable[[Request, Knowledge, Defaults], Awaitable[Answer]],
    knowledge: Knowledge,
    defaults: Defaults,
    decision_seconds: float,
) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def handle(http: web.Request) -> web.Response:
        try:
            async with asyncio.timeout(decision_seconds):
                request = decode_review(await http.read())
                answer = await review(request, knowledge, defaults)
        except (InvalidReviewError, InvalidObjectError) as error:
            return web.Response(status=400, text=f"{error}\n")
        except ApiError as error:
            logger.warning("%s: the apiserver did not say what the decision needs: %s", http.path, error)
            return web.Response(status=503, text="muster cannot read what it needs from the apiserver\n")
        except TimeoutError:
            return web.Response(status=504, text=f"muster did not decide within {decision_seconds} s\n")
        if answer.patch or not answer.allowed:
            logger.info(
                "%s %s %s/%s: %s",
                request.operation,
                request.kind.kind,
                request.namespace,
                request.name or "(generated name)",
                "patched" if answer.allowed else answer.status and answer.status["reason"],
            )
        return web.Response(body=encode_answer(request.uid, answer), content_type="application/json")

    return handle
