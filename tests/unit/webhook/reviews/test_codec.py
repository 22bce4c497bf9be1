"""AdmissionReviews in and out."""

import json

import pytest

from muster.model.findings import Finding, Reason
from muster.model.objects import InvalidObjectError, decode
from muster.model.pods import Pod
from tests.support.cases import cases
from tests.support.manifests.observed import JSON, as_json, pod, ray_cluster
from tests.support.webhook.admission_reviews import answered, patch_of, review
from webhook.reviews.codec import (
    AdmissionRequest,
    PodRequest,
    allow,
    decode_pod_review,
    decode_review,
    deny,
    encode_answer,
)

WHOLE = as_json(review(pod("a")))


def test_a_request_is_read_whole() -> None:
    request = decode_review(as_json(review(ray_cluster(), old=ray_cluster(), operation="UPDATE")).encode())
    assert (request.operation, request.namespace, request.dry_run) == ("UPDATE", "team", False)
    assert (request.kind.api_version, request.kind.kind) == ("ray.io/v1", "RayCluster")
    assert json.loads(bytes(request.object)) == ray_cluster()
    assert json.loads(bytes(request.old_object)) == ray_cluster()


def test_the_core_group_has_no_slash() -> None:
    assert decode_review(WHOLE.encode()).kind.api_version == "v1"


def test_a_pod_with_a_generated_name_comes_without_any() -> None:
    assert decode_review(WHOLE.encode()).name == ""


@cases(
    "body, found",
    ("empty", b"", "not an AdmissionReview: "),
    ("broken", b"{", "not an AdmissionReview: "),
    ("a list", b"[]", "not an AdmissionReview: expected an object, found a list"),
    ("nothing in it", b"{}", "not an AdmissionReview: apiVersion: required, and missing"),
    ("not UTF-8", b'{"kind": "\xff"}', "not an AdmissionReview: "),
    ("too deep", b'{"x": ' + b"[" * 100_000, "not an AdmissionReview: "),
    (
        "no request",
        b'{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": null}',
        "not an AdmissionReview: ",
    ),
    ("a request without uid", WHOLE.replace('"uid"', '"uuid"').encode(), "not an AdmissionReview: "),
    (
        "another version",
        WHOLE.replace("k8s.io/v1", "k8s.io/v1beta1").encode(),
        "expected admission.k8s.io/v1 AdmissionReview, got admission.k8s.io/v1beta1 AdmissionReview",
    ),
    (
        "another kind",
        WHOLE.replace("AdmissionReview", "ConversionReview").encode(),
        "expected admission.k8s.io/v1 AdmissionReview, got admission.k8s.io/v1 ConversionReview",
    ),
)
def test_a_body_that_is_no_review_is_refused(body: bytes, found: str) -> None:
    for read in (decode_review, decode_pod_review):
        with pytest.raises(InvalidObjectError) as refused:
            read(body)
        assert str(refused.value).startswith(found)


def test_a_new_pod_is_read_with_its_review() -> None:
    alone, together = decode_review(WHOLE.encode()), decode_pod_review(WHOLE.encode())
    assert isinstance(together, PodRequest)
    assert together.object == decode(alone.object, Pod)
    assert (together.uid, together.kind, together.namespace) == (alone.uid, alone.kind, alone.namespace)


@cases(
    "instead",
    ("no pod", {"spec": 1}),
    ("a null that means absent", {"metadata": {"labels": None}}),
    ("no object", None),
)
def test_what_cannot_be_read_as_a_pod_at_once_is_left_as_it_came(instead: JSON | None) -> None:
    asked = decode_pod_review(as_json(review(instead)).encode())
    assert isinstance(asked, AdmissionRequest)
    assert json.loads(bytes(asked.object)) == instead


def test_an_answer_carries_the_uid_and_no_patch_where_nothing_changes() -> None:
    """A patchType without a patch is an error to the apiserver."""
    assert json.loads(encode_answer("the-uid", allow())) == {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "response": {"uid": "the-uid", "allowed": True},
    }


def test_a_patch_is_base64_of_json() -> None:
    operations = [{"op": "add", "path": "/metadata/labels", "value": {"ä": "b"}}]
    assert patch_of(allow(operations)) == operations


def test_a_refusal_is_a_status_with_a_cause_for_each_reason() -> None:
    refusals = [Finding(Reason.QUEUE_NOT_FOUND, "a.b", "a.b: gone"), Finding(Reason.INVALID, "c", "c: wrong")]
    response = answered(deny(refusals))
    assert (response["allowed"], "patch" in response) == (False, False)
    assert (response["status"]["code"], response["status"]["reason"]) == (422, "QueueNotFound")
    assert response["status"]["message"] == "a.b: gone; c: wrong"
    assert [(cause["reason"], cause["field"]) for cause in response["status"]["details"]["causes"]] == [
        ("QueueNotFound", "a.b"),
        ("Invalid", "c"),
    ]


def told(*lines: str) -> list[str]:
    """The warnings of a yes."""
    warnings: list[str] = answered(allow(warnings=[Finding(Reason.NO_PODS, "", line) for line in lines]))["warnings"]
    return warnings


def test_warnings_pass_whole_as_long_as_the_apiserver_lets_them() -> None:
    lines = ["short", "x" * 300, "word " * 700]
    assert told(*lines) == lines


def test_too_many_warnings_are_cut_between_words_and_the_last_left_out() -> None:
    """The gravest come first."""
    lines = [f"{number}: " + "word " * 100 for number in range(20)]
    cut = told("first", *lines)
    assert cut[0] == "first"
    assert all(line.endswith("word...") and len(line) <= 256 for line in cut[1:])
    assert [line.partition(":")[0] for line in cut[1:]] == [str(number) for number in range(16)]
    assert sum(map(len, cut)) <= 4096


def test_a_word_without_end_is_cut_all_the_same() -> None:
    assert [len(line) for line in told("x" * 5000, "y")] == [256, 1]


def test_no_warning_begins_a_new_line() -> None:
    """Values that users write are quoted in them."""
    assert told("one\ntwo\r\x1b[31m") == ["one\\ntwo\\r\\x1b[31m"]
