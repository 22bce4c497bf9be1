"""The admission server: decode, ask the rules, answer.

An answer is always a review; what cannot be decided is an HTTP error, so that the failure policy of the webhook
configuration decides.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Any, Generic, TypeVar

from aiohttp import web

from muster.gangs.intent import Defaults
from muster.kube.errors import ApiError
from muster.model.objects import InvalidObjectError
from muster.process.logs import review_uid
from webhook.metrics import Metrics, Reviews
from webhook.reviews.admission_review import (
    AdmissionCall,
    AdmissionRequest,
    AdmissionResponse,
    InvalidReviewError,
    PodRequest,
    allow,
    decode_pod_review,
    decode_review,
    encode_answer,
)
from webhook.reviews.knowledge import Knowledge
from webhook.reviews.pods import review_pod
from webhook.reviews.queues import review_named_queue, review_pod_group, review_queue
from webhook.reviews.workloads import review_scale, review_workload
from webhook.server.deadlines import answer_within
from webhook.server.intake import Intake, Lane, Refused, grow
from webhook.server.listener import heard, outlived, proven
from webhook.server.review_thread import in_review_thread

logger = logging.getLogger(__name__)

T = TypeVar("T", bound=AdmissionCall)


def make_handler(
    knowledge: Knowledge, defaults: Defaults, metrics: Metrics, intake: Intake
) -> Callable[[web.BaseRequest], Awaitable[web.Response]]:
    """What answers the paths that the chart's webhook configurations call, and 404 to others.

    It is for aiohttp's plain server: the router of an application costs a third of a review (hack/bench/admission).
    """
    seldom = _Seldom(_QUIET_SECONDS)

    def path(
        name: str,
        read: Callable[[bytes | bytearray], T],
        review: Callable[[T, Knowledge, Defaults], Awaitable[AdmissionResponse]],
    ) -> _Path[T]:
        def decide(request: T) -> Awaitable[AdmissionResponse]:
            return review(request, knowledge, defaults)

        return _Path(read, decide, metrics.of(name), intake.lane(name), seldom)

    def read_pod(body: bytes | bytearray) -> AdmissionRequest | PodRequest:
        # A large pod is not for the event loop.
        return decode_review(body) if intake.limits.is_large(len(body)) else decode_pod_review(body)

    paths: dict[str, _Path[Any]] = {
        "/mutate/pods": path("pods", read_pod, review_pod),
        "/validate/workloads": path("workloads", decode_review, review_workload),
        "/validate/scale": path("scale", decode_review, review_scale),
        "/validate/queues": path("queues", decode_review, review_queue),
        "/validate/podgroups": path("podgroups", decode_review, review_pod_group),
        "/validate/pods": path("queues-of-pods", decode_review, review_named_queue),
        "/validate/reach": path("reach", decode_review, _reached),
    }

    async def handle(http: web.BaseRequest) -> web.Response:
        # As it came: the decoded URL costs more than the decision.
        found = paths.get(http.raw_path.partition("?")[0])
        if found is None:
            return _closing(HTTPStatus.NOT_FOUND, "no such path\n")
        if http.method != "POST":
            return _closing(HTTPStatus.METHOD_NOT_ALLOWED, "only POST\n", Allow="POST")
        return await found.handle(http)

    return handle


def _closing(status: HTTPStatus, text: str, **headers: str) -> web.Response:
    """An answer to what no apiserver asks, which ends its connection."""
    response = web.Response(status=status, text=text, headers=headers)
    response.force_close()
    return response


async def _reached(request: AdmissionRequest, knowledge: Knowledge, defaults: Defaults) -> AdmissionResponse:
    """That it was asked is all that is to be known."""
    del request, knowledge, defaults
    return allow()


class _Path(Generic[T]):
    """What is done with a request of one path."""

    def __init__(
        self,
        read: Callable[[bytes | bytearray], T],
        review: Callable[[T], Awaitable[AdmissionResponse]],
        reviews: Reviews,
        lane: Lane,
        seldom: _Seldom,
    ) -> None:
        self._read = read
        self._review = review
        self._reviews = reviews
        self._lane = lane
        self._seldom = seldom

    async def handle(self, http: web.BaseRequest) -> web.Response:
        """Answer one request, whatever comes."""
        started = time.perf_counter()
        with heard(http.protocol):
            try:
                request, answer, body = await self._decide(http)
            except ConnectionError as error:
                # Nobody is left to hear the answer.
                self._reviews.failed(_CLIENT_GONE, time.perf_counter() - started)
                response = web.Response(status=_CLIENT_GONE)
                _forget_body(error)
            except Exception as error:  # noqa: BLE001 - one review that fails must not end the server
                refused = _refusal(error, self._seldom)
                self._reviews.failed(refused.status, time.perf_counter() - started)
                response = web.Response(status=refused.status, text=f"{refused}\n")
                if refused.retry:
                    response.headers["Retry-After"] = "1"
                elif refused.status < HTTPStatus.INTERNAL_SERVER_ERROR:
                    # The apiserver asks nothing for which it gets this: somebody else would keep a place with it.
                    response.force_close()
                _forget_body(error)
            else:
                _log(request, answer)
                proven(http.protocol)
                response = web.Response(body=body, headers=_JSON)
                self._reviews.answered(answer, time.perf_counter() - started)
            if self._lane.closing or outlived(http.protocol) or not http.content.is_eof():
                response.force_close()
            return response

    async def _decide(self, http: web.BaseRequest) -> tuple[T, AdmissionResponse, bytes]:
        seconds = self._lane.seconds(http)
        answer_within(seconds)
        request = None
        with self._lane.place(http):
            try:
                body = await self._lane.body(http)
                if self._lane.limits.is_large(len(body)):
                    grow()
                request = self._read(body)
                review_uid.set(request.uid)
                answer = await self._review(request)
                return request, answer, await in_review_thread(encode_answer, request.uid, answer)
            except TimeoutError:
                if request is None:
                    raise Refused(HTTPStatus.REQUEST_TIMEOUT, f"the body did not come within {seconds:g} s") from None
                text = f"muster did not decide within {seconds:g} s"
                raise Refused(HTTPStatus.GATEWAY_TIMEOUT, text) from None


# An error may quote what it found.
_LONGEST_TEXT = 250
_JSON = {"Content-Type": "application/json"}
# As proxies count a client that left before its answer.
_CLIENT_GONE = 499


class _Seldom:
    """Lets one line pass in so many seconds, and counts the others."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._next = float("-inf")
        self._kept = 0

    def due(self, now: float) -> int | None:
        """How many were kept back since the last line, where one may be written; None where not."""
        if now < self._next:
            self._kept += 1
            return None
        self._next, kept, self._kept = now + self._seconds, self._kept, 0
        return kept


# Whoever reaches the port would fill the disk with them.
_QUIET_SECONDS = 10.0


def _refusal(error: Exception, seldom: _Seldom) -> Refused:
    """What the caller hears of an error; the log hears the rest."""
    if isinstance(error, InvalidReviewError | InvalidObjectError):
        error = Refused(HTTPStatus.BAD_REQUEST, str(error)[:_LONGEST_TEXT])
    if isinstance(error, Refused):
        # A flood of these is seen in the metrics.
        if error.retry:
            logger.debug("request refused with %d: %s", error.status, error, extra={"event": "request.refused"})
        elif (more := seldom.due(time.monotonic())) is not None:
            rest = f" (and {more} more in the last {_QUIET_SECONDS:g} s)" if more else ""
            logger.warning(
                "request refused with %d: %s%s", error.status, error, rest, extra={"event": "request.refused"}
            )
        return error
    if isinstance(error, ApiError):
        logger.warning(
            "cannot read from the apiserver what the review needs: %s", error, extra={"event": "review.unknown"}
        )
        text = "muster cannot read what it needs from the apiserver"
        # A right that is missing will not be there in a second.
        return Refused(HTTPStatus.SERVICE_UNAVAILABLE, text, retry=not error.refused)
    logger.error("internal error: a review failed", exc_info=error, extra={"event": "review.failed"})
    return Refused(HTTPStatus.INTERNAL_SERVER_ERROR, "muster failed; its log says how")


def _forget_body(error: Exception) -> None:
    """Break the circle in which an error holds its frames, and they the body and, by the request, the error.

    The cycle collector looks so seldom that bodies of megabytes would fill the memory first.
    """
    error.__traceback__ = None


def _log(request: AdmissionCall, answer: AdmissionResponse) -> None:
    if answer.patch or not answer.allowed:
        logger.info(
            "%s %s %s/%s: %s",
            request.operation,
            request.kind.kind,
            request.namespace,
            request.name or "(generated name)",
            "patched" if answer.allowed else answer.reasons[0],
            extra={"event": "review.answered"},
        )
