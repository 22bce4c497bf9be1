"""AdmissionReview v1, decoded strictly and answered in the form that the apiserver wants."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from collections.abc import Sequence

    from muster.admission import Refusal
    from muster.injection import Operation

__all__ = ["Answer", "InvalidReviewError", "Request", "allow", "decode_review", "deny", "encode_answer"]

_API_VERSION = "admission.k8s.io/v1"
# What the apiserver passes on: 256 characters a warning, 4096 together.
_LONGEST_WARNING = 256


class InvalidReviewError(ValueError):
    """The body is no AdmissionReview of v1 with a request."""


class GroupVersionKind(msgspec.Struct, frozen=True):
    """The kind of the object under review."""

    kind: str
    version: str
    group: str = ""

    @property
    def api_version(self) -> str:
        """As in the object's `apiVersion`."""
        return f"{self.group}/{self.version}" if self.group else self.version


class Request(msgspec.Struct, frozen=True, rename="camel"):
    """What the apiserver asks; `object` and `old_object` are left as they came."""

    uid: str
    kind: GroupVersionKind
    operation: str
    namespace: str = ""
    name: str = ""
    dry_run: bool = False
    object: msgspec.Raw = msgspec.Raw(b"null")
    old_object: msgspec.Raw = msgspec.Raw(b"null")


class _Review(msgspec.Struct, frozen=True, rename="camel"):
    api_version: str
    kind: str
    request: Request


@dataclass(frozen=True, slots=True)
class Answer:
    """Yes with a patch, or no with a Status; warnings go with both."""

    allowed: bool
    patch: Sequence[Operation] = ()
    warnings: Sequence[str] = ()
    status: dict[str, Any] | None = None


def allow(patch: Sequence[Operation] = (), warnings: Sequence[str] = ()) -> Answer:
    """Let the object pass, with these changes."""
    return Answer(allowed=True, patch=patch, warnings=warnings)


def deny(refusals: Sequence[Refusal], *, code: int = 422) -> Answer:
    """Refuse the object: every reason in the message, and each as a cause for machines."""
    return Answer(
        allowed=False,
        status={
            "code": code,
            "reason": str(refusals[0].reason),
            "message": "; ".join(refusal.message for refusal in refusals),
            "details": {
                "causes": [
                    # Without the field, which kubectl writes before the message of a cause.
                    {
                        "reason": str(refusal.reason),
                        "field": refusal.field,
                        "message": refusal.message.removeprefix(f"{refusal.field}: "),
                    }
                    for refusal in refusals
                ],
            },
        },
    )


def decode_review(body: bytes) -> Request:
    """Read the request of a review; raises InvalidReviewError."""
    try:
        review = msgspec.json.decode(body, type=_Review)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidReviewError(f"not an AdmissionReview: {error}") from error
    if review.kind != "AdmissionReview" or review.api_version != _API_VERSION:
        raise InvalidReviewError(f"expected {_API_VERSION} AdmissionReview, got {review.api_version} {review.kind}")
    return review.request


def encode_answer(uid: str, answer: Answer) -> bytes:
    """The answer to the request of that uid, as JSON."""
    response: dict[str, Any] = {"uid": uid, "allowed": answer.allowed}
    if answer.warnings:
        response["warnings"] = [warning[:_LONGEST_WARNING] for warning in answer.warnings]
    if answer.status is not None:
        response["status"] = answer.status
    if answer.patch:
        # bytes become base64 in JSON, which is what the apiserver expects of a patch.
        response |= {"patchType": "JSONPatch", "patch": msgspec.json.encode(list(answer.patch))}
    return msgspec.json.encode({"apiVersion": _API_VERSION, "kind": "AdmissionReview", "response": response})
