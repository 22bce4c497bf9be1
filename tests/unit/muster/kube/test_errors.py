import json

from muster.kube.errors import error_from_response
from tests.support.cases import cases


def _status(**fields: object) -> bytes:
    return json.dumps({"kind": "Status", **fields}).encode()


def test_a_status_is_read() -> None:
    """Reason, message and the seconds to wait come from the Status."""
    body = _status(reason="TooManyRequests", message="slow down", code=429, details={"retryAfterSeconds": 3})
    error = error_from_response(429, body)
    assert (error.status, error.reason, error.message, error.retry_after) == (429, "TooManyRequests", "slow down", 3)
    assert error.overloaded
    assert error_from_response(429, body, "7").retry_after == 7


def test_nobody_is_asked_to_come_back_in_the_past() -> None:
    """A webhook that refuses may say so, and who obeyed would ask again without a pause."""
    body = _status(reason="TooManyRequests", code=429, details={"retryAfterSeconds": -3600})
    assert error_from_response(429, body).retry_after is None


@cases(
    "body",
    ("html", b"<html>502</html>"),
    ("nothing", b""),
    ("not even text", b"\xff\xfe"),
    ("another json", b"[1]"),
    ("a status that is not UTF-8", b'{"kind": "Status", "message": "caf\xe9"}'),
    ("more levels than anybody reads", b'{"kind": "Status", "more": ' + b"[" * 100_000),
    ("a status of the wrong shape", b'{"kind": "Status", "code": "x"}'),
)
def test_foreign_bodies_are_errors_too(body: bytes) -> None:
    """What a load balancer answers keeps its HTTP status and never crashes the reader."""
    error = error_from_response(502, body, "Wed, 21 Oct 2026 07:28:00 GMT")
    assert (error.status, error.reason, error.retry_after) == (502, "", None)


def test_what_the_properties_mean() -> None:
    """The questions that callers ask."""
    assert error_from_response(404, _status(reason="NotFound")).not_found
    assert error_from_response(409, _status(reason="Conflict")).conflict
    assert error_from_response(409, _status(reason="AlreadyExists")).already_exists
    ending = _status(reason="Forbidden", details={"causes": [{"reason": "NamespaceTerminating"}, {"field": "x"}]})
    assert error_from_response(403, ending).namespace_terminating
    assert not error_from_response(403, _status(reason="Forbidden")).namespace_terminating
    assert error_from_response(410, _status(reason="Gone")).gone
    assert error_from_response(0, _status(reason="Expired", code=410)).gone
    assert error_from_response(0, _status(reason="Expired", code=410)).status == 410
