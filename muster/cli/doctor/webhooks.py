"""Checks of the webhook configurations, and of what the apiserver makes of something that is created on trial."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from muster.cli.doctor.diagnosis import Check, Diagnosis, Unseen, fine, problem, unknown
from muster.cli.doctor.words import listed
from muster.workloads import KINDS, WATCHED_KINDS
from muster.workloads.plain import PLAIN_JOB, PLAIN_STATEFUL_SET
from muster.workloads.volcano_job import VOLCANO_JOB

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from muster.cli.doctor.installed import Installation
    from muster.cli.doctor.sight import ProbeAnswer, Rule, Sight, Webhook, WebhookConfiguration

__all__ = ["ENTRIES", "JUDGING", "answers", "webhooks"]

_CREATE = frozenset({"CREATE"})
_WRITE = frozenset({"CREATE", "UPDATE"})
_PODS = (("", "pods"),)
_PLAIN = tuple((kind.group, kind.plural) for kind in (PLAIN_STATEFUL_SET, PLAIN_JOB))
_SEEN = tuple(sorted({(kind.group, kind.plural) for kind in (*WATCHED_KINDS, VOLCANO_JOB)}))
_SCALED = tuple(sorted((kind.group, f"{kind.plural}/scale") for kind in KINDS if kind.scaled))

Things = tuple[tuple[str, str], ...]

ENTRIES: dict[str, dict[str, tuple[str, Things, frozenset[str]]]] = {
    "MutatingWebhookConfiguration": {
        f"{maker}.pods.muster.dev": ("/mutate/pods", _PODS, _CREATE)
        for maker in ("ray", "cleanup", "kubeflow", "jobset", "plain")
    },
    "ValidatingWebhookConfiguration": {
        "workloads.muster.dev": ("/validate/workloads", _SEEN, _WRITE),
        "namespaces.workloads.muster.dev": ("/validate/workloads", _SEEN, _WRITE),
        "jobs.workloads.muster.dev": ("/validate/workloads", _PLAIN, _WRITE),
        "scale.workloads.muster.dev": ("/validate/scale", _SCALED, frozenset({"UPDATE"})),
        "reach.muster.dev": ("/validate/reach", (("events.k8s.io", "events"),), _CREATE),
        "queues.muster.dev": ("/validate/queues", (("scheduling.volcano.sh", "queues"),), _WRITE),
        "podgroups.muster.dev": ("/validate/podgroups", (("scheduling.volcano.sh", "podgroups"),), _WRITE),
        "queues.pods.muster.dev": ("/validate/pods", _PODS, _CREATE),
    },
}
"""Every webhook of the chart: its path, the (group, resource) pairs and the operations that it is asked about."""

JUDGING = frozenset(
    name
    for name in ENTRIES["ValidatingWebhookConfiguration"]
    if name == "queues.muster.dev" or name.endswith("workloads.muster.dev")
)
"""Those that are there only where the chart's value `validation` is not off."""

_STRICT = {*ENTRIES["MutatingWebhookConfiguration"], *JUDGING} - {"queues.muster.dev"}
"""Those whose failurePolicy is a value of the chart."""

_OWN = re.compile(r'webhook "([a-z.]+\.muster\.dev)"')
_DENIED = "denied the request"
# What stands in the apiserver's words when a call failed, and what to do about it.
_CAUSES = (
    (
        re.compile(r"x509|certificate"),
        "the certificates do not fit: see the check `certificates`, and the events of the webhook's Secret",
    ),
    (
        re.compile(r"no endpoints available|connection refused|no service port"),
        "no webhook pod takes calls: kubectl -n {namespace} get pods -l app.kubernetes.io/component=webhook",
    ),
    (re.compile(r'service "[^"]*" not found'), "the Service is missing: {upgrade}"),
    (
        re.compile(r"deadline exceeded|imeout|no route to host|unreachable"),
        "the apiserver does not reach port 9443 of the pods in time: look for a NetworkPolicy, a firewall, busy pods",
    ),
)
_OTHER_CAUSE = "kubectl -n {namespace} logs -l app.kubernetes.io/component=webhook --tail=50"


def webhooks(sight: Sight) -> Iterator[Diagnosis]:
    """Both configurations are there, and ask muster about all that the chart has them ask about."""
    installed = sight.installation
    if installed is None:
        return
    for kind, seen in (
        ("MutatingWebhookConfiguration", sight.mutating),
        ("ValidatingWebhookConfiguration", sight.validating),
    ):
        if isinstance(seen, Unseen):
            yield unknown(Check.WEBHOOKS, seen, f"the {kind}")
            continue
        found = next((one for one in seen if one.metadata.name == installed.name), None)
        if found is None:
            yield problem(
                Check.WEBHOOKS,
                f"{kind} {installed.name} is missing: what it is for passes without muster",
                f"{installed.upgrade}, unless somebody took it away on purpose (docs/operations.md, Emergency)",
            )
            continue
        faults = list(_faults(kind, found, installed))
        closed = [one.name for one in found.webhooks if one.closed]
        if closed:
            yield problem(
                Check.WEBHOOKS,
                f"{kind} {installed.name}: the apiserver has not reached a webhook since the installation, and calls "
                f"none of {listed(closed)} before; what they are for passes without muster",
                f"kubectl -n {installed.namespace} logs -l app.kubernetes.io/component=webhook --tail=50",
            )
        if faults:
            yield problem(Check.WEBHOOKS, f"{kind} {installed.name}: {listed(faults)}", installed.overwrite)
        elif not closed:
            lax = [one.name for one in found.webhooks if one.name in _STRICT and one.failure_policy == "Ignore"]
            note = f"; while no webhook answers these pass without muster: {listed(lax)}" if lax else ""
            yield fine(Check.WEBHOOKS, f"{kind} {installed.name}: {len(found.webhooks)} entries are as installed{note}")


def _faults(kind: str, found: WebhookConfiguration, installed: Installation) -> Iterator[str]:
    """What differs from the chart's so that something is not seen."""
    there = {one.name: one for one in found.webhooks}
    # Without the Deployment's word: all of them are gone where nobody is to judge.
    off = installed.validation == "off" or (not installed.validation and JUDGING.isdisjoint(there))
    for name, (path, things, operations) in ENTRIES[kind].items():
        if name in JUDGING and off:
            continue
        entry = there.get(name)
        if entry is None:
            yield f"entry {name} is missing"
            continue
        unasked = [plural for group, plural in things if not _asked(entry.rules, group, plural, operations)]
        if unasked:
            yield f"{name} is not asked about {' and '.join(sorted(operations))} of {listed(unasked)}"
        if elsewhere := _elsewhere(entry, path, installed):
            yield f"{name} calls {elsewhere}"


def _asked(rules: Iterable[Rule], group: str, plural: str, operations: frozenset[str]) -> bool:
    heard: set[str] = set()
    for rule in rules:
        if {group, "*"} & set(rule.api_groups) and {plural, "*"} & set(rule.resources):
            heard |= set(rule.operations)
    return operations <= heard or "*" in heard


def _elsewhere(entry: Webhook, path: str, installed: Installation) -> str:
    """Where the calls go, when not to muster's Service and the path of these."""
    service = entry.client_config.service
    if entry.client_config.url:
        return entry.client_config.url
    expected = (installed.namespace, installed.service, path)
    found = (service.namespace, service.name, service.path)
    return "" if found == expected else f"{service.namespace}/{service.name}{service.path}"


def answers(sight: Sight) -> Iterator[Diagnosis]:
    """A pod of a gang comes back held and bound, and a Job in a queue that is not there is refused."""
    installed = sight.installation
    if installed is None:
        return
    if isinstance(sight.pod_answer, Unseen):
        yield unknown(Check.ANSWERS, sight.pod_answer, "what a pod would be made into")
    elif sight.pod_answer.refusal:
        yield _refused(sight.pod_answer.refusal, "a pod of a gang", installed)
    else:
        yield _of_pod(sight.pod_answer, installed, sight.namespace)
    if isinstance(sight.job_answer, Unseen):
        yield unknown(Check.ANSWERS, sight.job_answer, "what a workload would be told")
    elif not sight.job_answer.refusal:
        mode = f" (validation {installed.validation})" if installed.validation else ""
        asked = "a Job of a gang in a queue that is not there"
        if installed.refuses_lost_queues:
            yield problem(
                Check.ANSWERS,
                f"{asked} is taken, although validation is deny: nobody looked at it",
                "see the check `webhooks`: the entry jobs.workloads.muster.dev, its conditions and failurePolicy",
            )
        else:
            yield fine(Check.ANSWERS, f"{asked} would be taken{mode}")
    elif (said := _OWN.search(sight.job_answer.refusal)) and _DENIED in sight.job_answer.refusal:
        yield fine(Check.ANSWERS, f"a Job of a gang in a queue that is not there would be refused by {said[1]}")
    else:
        yield _refused(sight.job_answer.refusal, "a Job of a gang", installed)


def _of_pod(answer: ProbeAnswer, installed: Installation, namespace: str) -> Diagnosis:
    bound = f"bound to PodGroup {answer.group}, pointed at queue {answer.queue or '-'}"
    if answer.gated:
        return fine(Check.ANSWERS, f"a pod of a gang would be held by muster's gate, {bound}")
    if answer.group:
        return fine(Check.ANSWERS, f"a pod of a gang would be {bound}, and not held (gate off)")
    return problem(
        Check.ANSWERS,
        f"a pod of a gang passes untouched in namespace {namespace}: muster was not asked, or nobody answered and "
        "failurePolicy is Ignore",
        f"see the check `webhooks`; kubectl -n {installed.namespace} get pods -l app.kubernetes.io/component=webhook",
    )


def _refused(said: str, what: str, installed: Installation) -> Diagnosis:
    own = _OWN.search(said)
    if own is None:
        why = f"something else refuses what is made on trial: {said}"
        return unknown(Check.ANSWERS, Unseen(why, "name another namespace with -n"), f"what becomes of {what}")
    if _DENIED in said:
        return problem(Check.ANSWERS, f"{what} is refused by {own[1]}: {said}", "see docs/denials.md for what it says")
    cure = next((cure for cause, cure in _CAUSES if cause.search(said)), _OTHER_CAUSE)
    return problem(
        Check.ANSWERS,
        f"{what} cannot be created: {said}",
        cure.format(namespace=installed.namespace, upgrade=installed.upgrade),
    )
