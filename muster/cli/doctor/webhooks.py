"""Checks of the webhook configurations, and of the answer to a dry run."""

import re
from collections.abc import Iterator
from typing import Any

from muster.cli.doctor.diagnosis import Diagnosis, Unseen, fine, problem, seen, unknown
from muster.cli.doctor.installed import Installation, WebhookConfiguration
from muster.cli.doctor.sight import DryRun, Sight
from muster.model.names import GANG, GANG_SIZE, GATE, GROUP_NAME, QUEUE_LABEL
from muster.model.objects import decode
from muster.model.pods import Pod
from muster.model.texts import listed
from muster.queueing.sources import QUEUE_SOURCES
from muster.workloads import MAKERS

_OF_QUEUES = "queues.muster.dev"
ENTRIES: dict[str, dict[str, str]] = {
    "MutatingWebhookConfiguration": {
        f"{maker}.pods.muster.dev": "/mutate/pods"
        for maker in (*(one.lower() for one in MAKERS.values()), "cleanup", "plain")
    },
    "ValidatingWebhookConfiguration": {
        "workloads.muster.dev": "/validate/workloads",
        "namespaces.workloads.muster.dev": "/validate/workloads",
        "jobs.workloads.muster.dev": "/validate/workloads",
        "scale.workloads.muster.dev": "/validate/scale",
        "reach.muster.dev": "/validate/reach",
        _OF_QUEUES: "/validate/queues",
        "podgroups.muster.dev": "/validate/podgroups",
        "queues.pods.muster.dev": "/validate/pods",
    },
}
"""Every webhook of the chart, and the path that it calls."""
JUDGING = frozenset(
    name
    for name in ENTRIES["ValidatingWebhookConfiguration"]
    if name == _OF_QUEUES or name.endswith("workloads.muster.dev")
)
"""The webhooks that exist only when the chart value `validation` is not off."""
OF_VOLCANO = frozenset({"podgroups.muster.dev", "queues.pods.muster.dev"})
"""The webhooks that exist only when the chart value `queues.source` is volcano."""
_STRICT = {*ENTRIES["MutatingWebhookConfiguration"], *JUDGING} - {_OF_QUEUES}
"""The webhooks whose failurePolicy is a chart value."""
_OWN = re.compile(r'webhook "([a-z.]+\.muster\.dev)"')
_DENIED = "denied the request"
# Words in the error of the apiserver when a call fails, and the fix.
_CAUSES = (
    (
        re.compile(r"x509|certificate"),
        "the certificates do not match: see the check `certificates`, and the events of the webhook's Secret",
        "",
    ),
    (
        re.compile(r"no endpoints available|connection refused|no service port"),
        "no webhook pod accepts connections:",
        "kubectl -n {namespace} get pods -l app.kubernetes.io/component=webhook",
    ),
    (re.compile(r'service "[^"]*" not found'), "the Service is missing; helm makes it again:", "{upgrade}"),
    (
        re.compile(r"deadline exceeded|imeout|no route to host|unreachable"),
        "the apiserver does not reach port {port} of the pods in time: check NetworkPolicies, firewalls, and busy pods",
        "",
    ),
)
_OTHER_CAUSE = "see the log:", "kubectl -n {namespace} logs -l app.kubernetes.io/component=webhook --tail=50"
NAME = "muster-doctor"
"""The name of the gang."""
_META: dict[str, Any] = {"labels": {GANG: NAME}, "annotations": {GANG_SIZE: "1"}}
# Satisfies the restricted Pod Security Standard and ResourceQuotas.
_SPEC: dict[str, Any] = {
    "restartPolicy": "Never",
    "automountServiceAccountToken": False,
    "securityContext": {"runAsNonRoot": True, "runAsUser": 65532, "seccompProfile": {"type": "RuntimeDefault"}},
    "containers": [
        {
            "name": "none",
            "image": "none",
            "resources": {name: {"cpu": "1m", "memory": "1Mi"} for name in ("requests", "limits")},
            "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
        }
    ],
}
POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"generateName": f"{NAME}-", **_META},
    "spec": _SPEC,
}


def webhooks(sight: Sight) -> Iterator[Diagnosis]:
    """Both configurations exist, with all webhooks of the chart, which call its Service."""
    installed = sight.installed
    for kind, several in (
        ("MutatingWebhookConfiguration", sight.mutating),
        ("ValidatingWebhookConfiguration", sight.validating),
    ):
        if isinstance(several, Unseen):
            yield unknown(several, f"the {kind}")
            continue
        found = next((one for one in several if one.metadata.name == installed.name), None)
        if found is None:
            yield problem(
                f"{kind} {installed.name} is missing: objects are admitted without muster",
                "helm makes it again, unless it was removed on purpose (docs/runbook.md, Emergency):",
                installed.upgrade,
            )
            continue
        faults = list(_faults(kind, found, installed))
        closed = [one.name for one in found.webhooks if one.closed]
        if closed:
            yield problem(
                f"{kind} {installed.name}: the apiserver has not reached a webhook since the installation, and does "
                f"not call {listed(closed)} yet; objects are admitted without muster",
                "see why:",
                f"kubectl -n {installed.namespace} logs -l app.kubernetes.io/component=webhook --tail=50",
            )
        if faults:
            message = f"{kind} {installed.name}: {listed(faults)}"
            yield problem(message, "helm restores it; Helm 3 needs no --force-conflicts:", installed.overwrite)
        elif not closed:
            lax = [one.name for one in found.webhooks if one.name in _STRICT and one.failure_policy == "Ignore"]
            note = f"; failurePolicy Ignore, skipped while no webhook answers: {listed(lax)}" if lax else ""
            yield fine(f"{kind} {installed.name}: {len(found.webhooks)} entries are as installed{note}")


def _faults(kind: str, found: WebhookConfiguration, installed: Installation) -> Iterator[str]:
    """Differences from the chart that keep requests from muster."""
    there = {one.name: one for one in found.webhooks}
    # When the Deployment cannot be read: validation is off if none of its webhooks exist.
    off = installed.validation == "off" or (not installed.validation and JUDGING.isdisjoint(there))
    for name, path in ENTRIES[kind].items():
        if (name in JUDGING and off) or (name in OF_VOLCANO and installed.queue_source is not QUEUE_SOURCES["volcano"]):
            continue
        entry = there.get(name)
        if entry is None:
            yield f"entry {name} is missing"
        elif entry.target != f"{installed.namespace}/{installed.service}{path}":
            yield f"{name} calls {entry.target}"


def answers(sight: Sight) -> Iterator[Diagnosis]:
    """A dry run returns a gated pod with its PodGroup."""
    installed, answer = sight.installed, seen(sight.pod_answer, "how muster changes a pod")
    yield _refused(answer.refusal, installed) if answer.refusal else _of_pod(answer, installed, sight.namespace)


def _of_pod(answer: DryRun, installed: Installation, namespace: str) -> Diagnosis:
    bound = f"bound to PodGroup {answer.group} in queue {answer.queue or '-'}"
    if answer.gated:
        return fine(f"a pod of a gang would be held by muster's gate, {bound}")
    if answer.group:
        return fine(f"a pod of a gang would be {bound}, and not held (gate off)")
    return problem(
        f"a pod of a gang is admitted unchanged in namespace {namespace}: muster was not called, or did not answer and "
        "failurePolicy is Ignore",
        "see the check `webhooks`, and the pods:",
        f"kubectl -n {installed.namespace} get pods -l app.kubernetes.io/component=webhook",
    )


def _refused(refusal: str, installed: Installation) -> Diagnosis:
    own = _OWN.search(refusal)
    if own is None:
        why = f"another component refuses the dry run: {refusal}"
        return unknown(Unseen(why, "choose another namespace with -n"), "how muster changes a pod")
    if _DENIED in refusal:
        words = f"a pod of a gang is refused by {own[1]}: {refusal}"
        return problem(words, "docs/denials.md explains the refusal")
    cure, command = next((cure for cause, *cure in _CAUSES if cause.search(refusal)), _OTHER_CAUSE)
    return problem(
        f"a pod of a gang cannot be created: {refusal}",
        cure.format(port=installed.port),
        command.format(namespace=installed.namespace, upgrade=installed.upgrade),
    )


def answer_of(body: bytes) -> DryRun:
    """The changes to a pod."""
    pod = decode(body, Pod)
    meta = pod.metadata
    return DryRun(
        gated=pod.gated(GATE), group=meta.annotations.get(GROUP_NAME, ""), queue=meta.labels.get(QUEUE_LABEL, "")
    )
