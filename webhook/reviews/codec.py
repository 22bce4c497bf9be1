"""AdmissionReview v1: strict decoding of requests, and answers in the form that the apiserver expects."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import msgspec

from muster.gangs.pod_patch import Operation
from muster.model.findings import Finding
from muster.model.objects import InvalidObjectError, fault_of, not_json
from muster.model.pods import Pod
from muster.model.texts import printable

T = TypeVar("T")

_API_VERSION = "admission.k8s.io/v1"
# Characters of warnings that the apiserver passes on (k8s.io/apiserver/pkg/endpoints/filters/warning.go): up to 4096 of
# all together; if they have more, up to 256 of each.
_LONGEST_WARNING, _LONGEST_WARNINGS = 256, 4096
_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
# Characters of an unexpected kind that are quoted.
_LONGEST_WORDS = 100
# Characters of a refusal, which may quote megabytes of a manifest.
_LONGEST_TEXT = 4096


class GroupVersionKind(msgspec.Struct, frozen=True):
    """The kind of the object under review."""

    kind: str
    version: str
    group: str = ""

    @property
    def api_version(self) -> str:
        """The object's `apiVersion`."""
        return f"{self.group}/{self.version}" if self.group else self.version


class GroupVersionResource(msgspec.Struct, frozen=True):
    """The resource that the request is about; the object under review may be a subresource."""

    group: str = ""
    version: str = ""
    resource: str = ""


class AdmissionCall(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """A request of the apiserver, without its object."""

    uid: str
    kind: GroupVersionKind
    operation: str
    namespace: str = ""
    name: str = ""
    dry_run: bool = False


class AdmissionRequest(AdmissionCall, frozen=True):
    """A request about an object; `object` and `old_object` stay raw JSON."""

    resource: GroupVersionResource = GroupVersionResource()
    object: msgspec.Raw = msgspec.Raw(b"null")
    old_object: msgspec.Raw = msgspec.Raw(b"null")


class PodRequest(AdmissionCall, frozen=True, kw_only=True):
    """A request about a new pod, which is decoded together with the review."""

    object: Pod


class _Review(msgspec.Struct, Generic[T], frozen=True, rename="camel"):
    api_version: str
    kind: str
    request: T


_REVIEWS = msgspec.json.Decoder(_Review[AdmissionRequest])
_POD_REVIEWS = msgspec.json.Decoder(_Review[PodRequest])


@dataclass(frozen=True, slots=True)
class AdmissionResponse:
    """An answer, with warnings: allowed with a patch, or refused with a Status and its `reasons`."""

    allowed: bool
    patch: Sequence[Operation] = ()
    warnings: Sequence[Finding] = ()
    status: dict[str, Any] | None = None
    reasons: Sequence[str] = ()


def allow(patch: Sequence[Operation] = (), warnings: Sequence[Finding] = ()) -> AdmissionResponse:
    """Allow the object, with these changes."""
    return AdmissionResponse(allowed=True, patch=patch, warnings=warnings)


def deny(refusals: Sequence[Finding], warnings: Sequence[Finding] = ()) -> AdmissionResponse:
    """Refuse the object: all reasons in the message, and each as a cause for programs."""
    return AdmissionResponse(
        allowed=False,
        warnings=warnings,
        reasons=[str(refusal.reason) for refusal in refusals],
        status={
            "code": 422,
            "reason": str(refusals[0].reason),
            "message": "; ".join(refusal.message for refusal in refusals),
            "details": {
                "causes": [
                    # Without the field, which kubectl prints before the message of a cause.
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


def decode_review(body: bytes | bytearray) -> AdmissionRequest:
    """Read the request of a review; raises InvalidObjectError."""
    try:
        review = _REVIEWS.decode(body)
    except msgspec.ValidationError as error:
        raise InvalidObjectError("", f"not an AdmissionReview: {InvalidObjectError(*fault_of(error))}") from error
    except _UNREADABLE as error:
        raise InvalidObjectError("", f"not an AdmissionReview: {not_json(error)}") from error
    return _request_of(review)


def decode_pod_review(body: bytes | bytearray) -> AdmissionRequest | PodRequest:
    """As `decode_review`, with the pod decoded in the same pass if possible: two passes take twice as long.

    Otherwise `muster.model.objects.decode` finds the fault, or tolerates it.
    """
    try:
        review = _POD_REVIEWS.decode(body)
    except _UNREADABLE:
        return decode_review(body)
    return _request_of(review)


def _request_of(review: _Review[T]) -> T:
    if review.kind != "AdmissionReview" or review.api_version != _API_VERSION:
        found = f"{review.api_version} {review.kind}"[:_LONGEST_WORDS]
        raise InvalidObjectError("", f"expected {_API_VERSION} AdmissionReview, got {found}")
    return review.request


def encode_answer(uid: str, answer: AdmissionResponse) -> bytes:
    """The answer to the request of that uid, as JSON."""
    response: dict[str, Any] = {"uid": uid, "allowed": answer.allowed}
    if answer.warnings:
        response["warnings"] = _fitting([warning.message for warning in answer.warnings])
    if answer.status is not None:
        response["status"] = _in_lines(answer.status)
    if answer.patch:
        # bytes become base64 in JSON, which is what the apiserver expects of a patch.
        response |= {"patchType": "JSONPatch", "patch": msgspec.json.encode(list(answer.patch))}
    return msgspec.json.encode({"apiVersion": _API_VERSION, "kind": "AdmissionReview", "response": response})


def _in_lines(value: Any) -> Any:  # noqa: ANN401 - any JSON
    """The same JSON with every text on one line: a text may quote control characters, which a terminal would obey."""
    if isinstance(value, dict):
        return {key: _in_lines(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_in_lines(item) for item in value]
    return printable(value[:_LONGEST_TEXT]) if isinstance(value, str) else value


def _fitting(lines: Sequence[str]) -> list[str]:
    """The warnings that the apiserver passes on, cut between words and marked where they are cut."""
    lines = [printable(line[:_LONGEST_WARNINGS]) for line in lines]
    left = _LONGEST_WARNINGS
    if sum(map(len, lines)) > left:
        lines = [_cut(line) for line in lines]
    fitting = []
    for line in lines:
        left -= len(line)
        if left < 0:
            break
        fitting.append(line)
    return fitting


def _cut(line: str) -> str:
    if len(line) <= _LONGEST_WARNING:
        return line
    head = line[: _LONGEST_WARNING - 3]
    return f"{head.rpartition(' ')[0] or head}..."
