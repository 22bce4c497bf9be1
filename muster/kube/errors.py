"""Errors of requests to the apiserver, its own and those of the network.

One family, so that a caller that only tries again later catches `ApiError`, and one that needs the reason reads its
properties. Bodies that are not a Kubernetes Status (a load balancer's HTML) become errors of the same kind.
"""

import msgspec

_EXCERPT = 200  # characters of a foreign body that a message quotes


class ApiError(Exception):
    """The apiserver refused or failed a request.

    `status` is the HTTP status (0 when there was no answer), `reason` the Status reason such as "NotFound" or
    "Conflict" ("" when the body named none), `message` the words for people, `retry_after` the seconds the server asked
    to wait, or None, `causes` the machine-readable causes in the Status details, such as "NamespaceTerminating".
    """

    def __init__(
        self,
        status: int,
        reason: str,
        message: str,
        *,
        retry_after: float | None = None,
        causes: frozenset[str] = frozenset(),
    ) -> None:
        super().__init__(status, reason, message)
        self.status = status
        self.reason = reason
        self.message = message
        self.retry_after = retry_after
        self.causes = causes

    def __str__(self) -> str:
        return f"{self.status} {self.reason}: {self.message}" if self.status else f"{self.reason}: {self.message}"

    @property
    def forbidden(self) -> bool:
        """The caller lacks the right, or a policy denies the request."""
        return self.status == 403  # noqa: PLR2004 - an HTTP status is its own name

    @property
    def not_found(self) -> bool:
        """The object, or the whole resource, does not exist."""
        return self.status == 404  # noqa: PLR2004

    @property
    def conflict(self) -> bool:
        """The object has changed since it was read, exists already, or has another UID than the given one."""
        return self.status == 409  # noqa: PLR2004

    @property
    def already_exists(self) -> bool:
        """A create found an object of that name."""
        return self.reason == "AlreadyExists"

    @property
    def namespace_terminating(self) -> bool:
        """The namespace is being deleted, and nothing can be created in it."""
        return "NamespaceTerminating" in self.causes

    @property
    def gone(self) -> bool:
        """The resource version, or the continue token, is too old: list again."""
        return self.status == 410 or self.reason == "Expired"  # noqa: PLR2004

    @property
    def timed_out(self) -> bool:
        """No whole answer came within the deadline."""
        return self.status == 0 and self.reason == "Timeout"

    @property
    def refused(self) -> bool:
        """The server understood and refused (4xx but 429): nothing was changed, and a repetition is in vain."""
        return 400 <= self.status < 500 and self.status != 429  # noqa: PLR2004

    @property
    def overloaded(self) -> bool:
        """The server could not serve now (429 or 5xx); the request itself was not judged."""
        return self.status == 429 or self.status >= 500  # noqa: PLR2004


class Unreachable(ApiError):  # noqa: N818 - a state of the network, and the word that callers use for it
    """No usable answer: refused, reset, timed out, or silent past the deadline. `status` is 0.

    The request may or may not have taken effect, unless the connection was refused (`connection_refused`).
    """

    def __init__(self, message: str, *, reason: str = "Unreachable", connection_refused: bool = False) -> None:
        super().__init__(0, reason, message)
        self.connection_refused = connection_refused


class WatchIdle(Unreachable):
    """A watch sent nothing for this time: nothing has changed, or the connection or the server is dead."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"nothing came for {seconds:g} s", reason="WatchIdle")


class OversizedAnswer(ApiError):  # noqa: N818 - as above
    """An answer is longer than the caller accepts; it was dropped. `status` is 0."""

    def __init__(self, limit: int) -> None:
        super().__init__(0, "OversizedAnswer", f"the answer is longer than {limit} bytes")


class _StatusCause(msgspec.Struct):
    reason: str | None = None


class _StatusDetails(msgspec.Struct, rename="camel"):
    retry_after_seconds: float | None = None
    causes: tuple[_StatusCause, ...] | None = None


class _Status(msgspec.Struct, rename="camel"):
    kind: str | None = None
    message: str | None = None
    reason: str | None = None
    code: int | None = None
    details: _StatusDetails | None = None


def error_from_response(status: int, body: bytes, retry_after: str | None = None, *, quote: bool = True) -> ApiError:
    """Make the error of an answer: its HTTP status, its body, and its Retry-After header.

    The message quotes a foreign body; without `quote`, for requests about Secrets, it has its length alone.

    With `status` 0 (an ERROR event of a watch, which has no HTTP status of its own) the Status code counts.
    """
    wait = _seconds(retry_after)
    try:
        decoded = msgspec.json.decode(body, type=_Status)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        # Whatever a proxy answers: callers expect an ApiError, and any other error would end a leader.
        decoded = _Status()
    if decoded.kind != "Status":
        text = repr(body[:_EXCERPT].decode("utf-8", errors="replace").strip()) if quote else f"{len(body)} bytes"
        return ApiError(status, "", f"not a Kubernetes answer: {text}", retry_after=wait)
    details = decoded.details or _StatusDetails()
    # A webhook may send any number, and a retry cannot be in the past.
    asked = max(details.retry_after_seconds or 0.0, 0.0)
    return ApiError(
        status or decoded.code or 0,
        decoded.reason or "",
        decoded.message or "",
        retry_after=wait if wait is not None else asked or None,
        causes=frozenset(cause.reason or "" for cause in details.causes or ()),
    )


def _seconds(header: str | None) -> float | None:
    # The apiserver sends whole seconds; a date, which proxies may send, falls back to our own backoff.
    text = (header or "").strip()
    return float(text) if text.isascii() and text.isdigit() else None
