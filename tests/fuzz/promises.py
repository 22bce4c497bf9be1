"""What holds for the answer to any review, whoever sent it and whatever is in it."""

import asyncio
import base64
import gc
import json
import signal
import time
from collections.abc import Callable, Coroutine
from types import FrameType
from typing import Any

import jsonpatch

from muster.kube.errors import ApiError
from muster.model.names import GANG, GATE
from muster.model.objects import InvalidObjectError, convert
from muster.model.pods import Pod
from muster.schedulers import SCHEDULERS
from tests.fuzz.worlds import Question
from tests.support.manifests.observed import JSON
from tests.support.pace import paced
from webhook.reviews.cluster_reader import ClusterReader
from webhook.reviews.codec import (
    AdmissionRequest,
    AdmissionResponse,
    decode_pod_review,
    decode_review,
    encode_answer,
)
from webhook.reviews.pods import review_pod

# CPU seconds of the thread for one answer, as docs/security.md promises; others wait behind it.
LONGEST = 1.0
# Once for all questions: the measure costs more than one of them.
_SLOWER = paced(1.0)
# All warnings together, as the apiserver passes them on.
_LONGEST_WARNINGS, _LONGEST_ANSWER = 4096, 2**16
# What muster may write into a pod. Anything else would make whoever holds its webhook's key master of every node.
_PATCHED = (
    *("/metadata/labels", "/metadata/annotations", "/spec/schedulingGates", "/spec/schedulerName"),
    *("/spec/priorityClassName", "/spec/priority", "/spec/preemptionPolicy"),
)


class HangError(Exception):
    """An answer took too much of the processor."""


def answered(question: Question, runner: asyncio.Runner) -> str:
    """Ask, and check the answer; gives in a word or two which it was.

    Raises AssertionError for a promise that is not kept, HangError, and whatever the webhook raises without meaning to.
    """
    knowledge = question.world.knowledge()

    def ask() -> tuple[AdmissionRequest, bytes]:
        request = decode_review(question.body)
        answer = _run(runner, _answer(request, question, knowledge))
        return request, encode_answer(request.uid, answer)

    try:
        decode_review(question.body)
    except InvalidObjectError:
        return "no review"
    try:
        request, raw = _within(LONGEST * _SLOWER, ask)
    except InvalidObjectError:
        return "no object"
    except ApiError:
        return "no answer"
    # As often as it is asked, whatever it was asked before.
    assert raw == ask()[1], "another answer to the same question"
    if question.review is review_pod:
        asked = decode_pod_review(question.body)
        assert raw == encode_answer(asked.uid, runner.run(review_pod(asked, knowledge)))
    response = _response(raw, request)
    if question.review is not review_pod:
        assert "patch" not in response, "nothing but pods is ever changed"
    if not response["allowed"]:
        _check_refusal(response)
        return "denied"
    if "patch" in response:
        patched = _check_patch(response, request)
        again = _run(runner, _answer(patched, question, knowledge))
        assert again.allowed
        assert not again.patch, f"a second round changes something: {again.patch}"
        _check_withdrawal(json.loads(bytes(patched.object)), runner, question, knowledge, request)
        return "patched"
    return "warned" if "warnings" in response else "allowed"


async def _answer(request: AdmissionRequest, question: Question, knowledge: ClusterReader) -> AdmissionResponse:
    return await question.review(request, knowledge)


def _run(runner: asyncio.Runner, asked: Coroutine[None, None, AdmissionResponse]) -> AdmissionResponse:
    # As `runner.run`, without its care for Ctrl-C, which takes a fifth of the time of a question.
    return runner.get_loop().run_until_complete(asked)


def _within(seconds: float, ask: Callable[[], tuple[AdmissionRequest, bytes]]) -> tuple[AdmissionRequest, bytes]:
    def over(_: int, frame: FrameType | None) -> None:
        raise HangError(f"no answer after {seconds} s of CPU, at {frame}")

    # What other questions and tests have left behind is not for this one to collect.
    gc.disable()
    before, started = signal.signal(signal.SIGVTALRM, over), time.thread_time()
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        return ask()
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
        spent = time.thread_time() - started
        gc.enable()
        if spent > seconds:
            raise HangError(f"{spent:.1f} s of CPU for an answer, of {seconds} s")


def _response(raw: bytes, request: AdmissionRequest) -> JSON:
    """The response of a review that the apiserver takes."""
    # The uid is the caller's; of anything else an answer says as much as it must, and does not give it all back.
    assert len(raw) <= _LONGEST_ANSWER + 6 * len(request.uid)
    document = json.loads(raw)
    assert (document["apiVersion"], document["kind"]) == ("admission.k8s.io/v1", "AdmissionReview")
    response: JSON = document["response"]
    assert response["uid"] == request.uid
    assert isinstance(response["allowed"], bool)
    assert response.keys() <= {"uid", "allowed", "warnings", "status", "patch", "patchType", "auditAnnotations"}
    for warning in response.get("warnings", ()):
        assert warning.isprintable(), f"not one line: {warning!r}"
    assert sum(map(len, response.get("warnings", ()))) <= _LONGEST_WARNINGS
    return response


def _check_refusal(response: JSON) -> None:
    assert "patch" not in response
    status = response["status"]
    assert status["code"] in (403, 422)
    assert status["reason"].isalnum()
    assert status["message"].isprintable(), f"not one line: {status['message']!r}"
    for cause in status["details"]["causes"]:
        assert cause["reason"].isalnum()
        assert cause["message"].isprintable()


def _check_patch(response: JSON, request: AdmissionRequest) -> AdmissionRequest:
    """The review of the pod as the patch has made it."""
    assert response["patchType"] == "JSONPatch"
    patch = json.loads(base64.b64decode(response["patch"], validate=True))
    assert patch
    for operation in patch:
        assert operation["op"] in ("add", "remove")
        assert any(operation["path"] == path or operation["path"].startswith(f"{path}/") for path in _PATCHED)
    # What is no text stands where muster does not look; an apiserver never sends any.
    new = json.loads(bytes(request.object).decode(errors="replace"))
    patched = jsonpatch.apply_patch(new, patch)
    _check_untouched(new, patched)
    pod = convert(patched, Pod)
    scheduler = SCHEDULERS.get(pod.spec.scheduler_name)
    bound = scheduler is not None and bool(scheduler.bound_to(pod))
    if pod.gated(GATE) and not convert(new, Pod).gated(GATE):
        assert bound, "held, and by nobody ever let go"
        assert pod.metadata.labels.get(GANG)
    return _with(request, patched)


def _check_withdrawal(
    pod: JSON, runner: asyncio.Runner, question: Question, knowledge: ClusterReader, request: AdmissionRequest
) -> None:
    """One that another webhook gives to another scheduler afterwards is not held: nobody would ever let it go."""
    pod["spec"]["schedulerName"] = "another"
    answer = _run(runner, _answer(_with(request, pod), question, knowledge))
    assert answer.allowed
    released = convert(jsonpatch.apply_patch(pod, json.loads(json.dumps(list(answer.patch)))), Pod)
    assert not released.gated(GATE)


def _check_untouched(new: Any, patched: Any) -> None:  # noqa: ANN401 - any JSON
    """Whatever muster does not write is as it was."""

    def rest(of: Any) -> Any:  # noqa: ANN401 - any JSON
        written = {path.rpartition("/")[2] for path in _PATCHED}
        return {
            part: {key: value for key, value in (of.get(part) or {}).items() if key not in written}
            for part in ("metadata", "spec")
        } | {key: value for key, value in of.items() if key not in ("metadata", "spec")}

    # As text: NaN is no equal of itself.
    assert json.dumps(rest(new), sort_keys=True) == json.dumps(rest(patched), sort_keys=True)


def _with(request: AdmissionRequest, patched: Any) -> AdmissionRequest:  # noqa: ANN401 - any JSON
    document: JSON = {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": request.uid,
            "kind": {"kind": request.kind.kind, "version": request.kind.version, "group": request.kind.group},
            "operation": request.operation,
            "namespace": request.namespace,
            "object": patched,
        },
    }
    return decode_review(json.dumps(document).encode())
