"""The admission server: decode, ask the rules, answer.

An answer is always a review. If muster cannot decide, it answers with an HTTP error, and the failure policy of the
webhook configuration decides.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Any, Generic, TypeVar

from aiohttp import web

from muster.kube.errors import ApiError
from muster.model.objects import InvalidObjectError
from muster.process.logs import review_uid
from webhook.metrics import ReviewMetrics, Reviews
from webhook.reviews import codec
from webhook.reviews.cluster_cache import ClusterCache
from webhook.reviews.cluster_reader import ClusterReader
from webhook.reviews.pods import review_pod
from webhook.reviews.queues import review_named_queue, review_pod_group, review_queue
from webhook.reviews.workloads import review_scale, review_workload
from webhook.server.limits import ActiveReview, Refused, ReviewClass, ReviewLimits
from webhook.server.listener import authenticated_by_review, past_max_age, request_in_progress

logger = logging.getLogger(__name__)

T = TypeVar("T", bound=codec.AdmissionCall)

# An error may quote what it found.
_LONGEST_TEXT = 250
_JSON = {"Content-Type": "application/json"}
# As proxies count a client that left before its answer.
_CLIENT_GONE = 499
# Seconds between two log lines about refused requests: any client that reaches the port could fill the disk with them.
_QUIET_SECONDS = 10.0


def make_handler(
    cache: ClusterCache, metrics: ReviewMetrics, limits: ReviewLimits
) -> Callable[[web.BaseRequest], Awaitable[web.Response]]:
    """The handler of the paths that the chart's webhook configurations call; it answers 404 to others.

    It is for aiohttp's plain server: the router of an application costs a third of a review (hack/bench/admission).
    """
    log = _RateLimit(_QUIET_SECONDS)

    def path(
        name: str,
        read: Callable[[bytes | bytearray], T],
        review: Callable[[T, ClusterReader], Awaitable[codec.AdmissionResponse]],
    ) -> _Path[T]:
        def reviewed(request: T, active: ActiveReview) -> Awaitable[codec.AdmissionResponse]:
            return review(request, ClusterReader(cache, active))

        return _Path(read, reviewed, limits.of(name), metrics.of(name), log)

    def read_pod(body: bytes | bytearray) -> codec.AdmissionRequest | codec.PodRequest:
        # A large pod is not for the event loop.
        return codec.decode_review(body) if limits.limits.is_large(len(body)) else codec.decode_pod_review(body)

    paths: dict[str, _Path[Any]] = {
        "/mutate/pods": path("pods", read_pod, review_pod),
        "/validate/workloads": path("workloads", codec.decode_review, review_workload),
        "/validate/scale": path("scale", codec.decode_review, review_scale),
        "/validate/queues": path("queues", codec.decode_review, review_queue),
        "/validate/podgroups": path("podgroups", codec.decode_review, review_pod_group),
        "/validate/pods": path("queues-of-pods", codec.decode_review, review_named_queue),
        "/validate/reach": path("reach", codec.decode_review, _reached),
    }

    async def handle(http: web.BaseRequest) -> web.Response:
        # The raw path: to decode the URL costs more than the decision.
        found = paths.get(http.raw_path.partition("?")[0])
        if found is None:
            return _closing(HTTPStatus.NOT_FOUND, "no such path\n")
        if http.method != "POST":
            return _closing(HTTPStatus.METHOD_NOT_ALLOWED, "only POST\n", Allow="POST")
        return await found.handle(http)

    return handle


def _closing(status: HTTPStatus, text: str, **headers: str) -> web.Response:
    """The answer to a request that no apiserver sends; it closes the connection."""
    response = web.Response(status=status, text=text, headers=headers)
    response.force_close()
    return response


async def _reached(request: codec.AdmissionRequest, cluster: ClusterReader) -> codec.AdmissionResponse:
    """The answer to the probe of the activation: that the apiserver reaches the webhook is all it needs."""
    del request, cluster
    return codec.allow()


class _Path(Generic[T]):
    """Answers the requests of one path."""

    def __init__(
        self,
        read: Callable[[bytes | bytearray], T],
        review: Callable[[T, ActiveReview], Awaitable[codec.AdmissionResponse]],
        review_class: ReviewClass,
        reviews: Reviews,
        log: _RateLimit,
    ) -> None:
        self._read = read
        self._review = review
        self._class = review_class
        self._reviews = reviews
        self._log = log

    async def handle(self, http: web.BaseRequest) -> web.Response:
        """Answer one request, also if the review fails in any way."""
        started = time.perf_counter()
        with request_in_progress(http.protocol):
            try:
                request, answer, body = await self._answer(http)
            except ConnectionError as error:
                # The client has gone; the response below is not sent.
                self._reviews.failed(_CLIENT_GONE, time.perf_counter() - started)
                response = web.Response(status=_CLIENT_GONE)
                _forget_body(error)
            except Exception as error:  # noqa: BLE001 - one review that fails must not end the server
                refused = _refusal(error, self._log)
                self._reviews.failed(refused.status, time.perf_counter() - started)
                response = web.Response(status=refused.status, text=f"{refused}\n")
                if refused.retry:
                    response.headers["Retry-After"] = "1"
                elif refused.status < HTTPStatus.INTERNAL_SERVER_ERROR:
                    # No apiserver sends such a request: another client would occupy a connection with it.
                    response.force_close()
                _forget_body(error)
            else:
                _log(request, answer)
                authenticated_by_review(http.protocol)
                response = web.Response(body=body, headers=_JSON)
                self._reviews.answered(answer, time.perf_counter() - started)
            if past_max_age(http.protocol) or not http.content.is_eof():
                response.force_close()
            return response

    async def _answer(self, http: web.BaseRequest) -> tuple[T, codec.AdmissionResponse, bytes]:
        request = None
        with self._class.admit(http) as active:
            try:
                body = await active.body(http)
                if self._class.limits.is_large(len(body)):
                    active.become_large()
                request = self._read(body)
                review_uid.set(request.uid)
                answer = await self._review(request, active)
                return request, answer, await active.run(codec.encode_answer, request.uid, answer)
            except TimeoutError:
                if request is None:
                    text = f"the body did not come within {active.seconds:g} s"
                    raise Refused(HTTPStatus.REQUEST_TIMEOUT, text) from None
                text = f"muster did not decide within {active.seconds:g} s"
                raise Refused(HTTPStatus.GATEWAY_TIMEOUT, text) from None


class _RateLimit:
    """Lets one log line pass per interval, in seconds, and counts the others."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._next = float("-inf")
        self._suppressed = 0

    def due(self, now: float) -> int | None:
        """The number of lines suppressed since the last one if a line may be written now; None if not."""
        if now < self._next:
            self._suppressed += 1
            return None
        self._next, suppressed, self._suppressed = now + self._seconds, self._suppressed, 0
        return suppressed


def _refusal(error: Exception, log: _RateLimit) -> Refused:
    """The answer to an error, with the little that its client may know; the log has the rest."""
    if isinstance(error, InvalidObjectError):
        error = Refused(HTTPStatus.BAD_REQUEST, str(error)[:_LONGEST_TEXT])
    if isinstance(error, Refused):
        # The metrics show a flood of these.
        if error.retry:
            logger.debug("request refused with %d: %s", error.status, error, extra={"event": "request.refused"})
        elif (more := log.due(time.monotonic())) is not None:
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
        # A missing permission will still be missing in a second.
        return Refused(HTTPStatus.SERVICE_UNAVAILABLE, text, retry=not error.refused)
    logger.error("internal error: a review failed", exc_info=error, extra={"event": "review.failed"})
    return Refused(HTTPStatus.INTERNAL_SERVER_ERROR, "internal error; see the log of muster-webhook")


def _forget_body(error: Exception) -> None:
    """Break the cycle in which an error holds its frames, and these the body and, by the request, the error.

    The cycle collector runs so seldom that bodies of megabytes would fill the memory first.
    """
    error.__traceback__ = None


def _log(request: codec.AdmissionCall, answer: codec.AdmissionResponse) -> None:
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
