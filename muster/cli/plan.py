"""`muster plan`: what the webhook would answer and the controller would write, by the same code, without a cluster."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import jsonpatch
import msgspec
import yaml

from muster.admission import Context, Verdict, judge
from muster.cli.known import Known, from_cluster
from muster.cli.manifests import Document, InputError, read_manifests
from muster.cli.table import print_table
from muster.injection import inject, is_free
from muster.intent import Defaults
from muster.names import GATE
from muster.objects import InvalidObjectError, ObjectMeta, OwnerReference, Pod, convert
from muster.resources import as_text
from muster.schedulers import SCHEDULERS
from muster.workloads import Kind, kind_of

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable

    from muster.gang import Gang, Role
    from muster.intent import Intent
    from muster.workloads import Workload

__all__ = ["plan", "run"]

_REFUSED, _UNREADABLE = 1, 2
# What stands in a name where the apiserver will put five letters of its own.
_GENERATED = "xxxxx"


def run(arguments: argparse.Namespace) -> int:
    """The exit code of `muster plan`."""
    try:
        documents = read_manifests(arguments.filename)
        defaults = Defaults(queue=arguments.default_queue, schedulers=frozenset(SCHEDULERS))
        known = from_cluster(arguments.kubeconfig) if arguments.cluster else Known()
        entries = plan(documents, defaults, known)
    except InputError as error:
        print(f"muster plan: {error}", file=sys.stderr)
        return _UNREADABLE
    if arguments.output == "json":
        print(json.dumps(entries, indent=2))
    elif arguments.output == "yaml":
        print(yaml.safe_dump(entries, sort_keys=False), end="")
    else:
        print_table(entries, sys.stdout)
    return 0 if all(entry["verdict"]["allowed"] for entry in entries) else _REFUSED


def plan(documents: Iterable[Document], defaults: Defaults, known: Known | None = None) -> list[dict[str, Any]]:
    """One entry per workload, in input order; documents of other kinds are context, or noted on standard error.

    `known` is context from elsewhere; what the documents say goes before it.
    """
    documents = list(documents)
    known = known or Known()
    workloads = []
    for document in documents:
        kind = kind_of(document.api_version, document.kind)
        if kind is not None:
            workloads.append((document, kind))
        elif not known.learn(document):
            print(f"muster plan: {document.source}: muster has no rules for {document.kind}; skipped", file=sys.stderr)
    return [_entry(document, kind, known, defaults) for document, kind in workloads]


def _entry(document: Document, kind: Kind, known: Known, defaults: Defaults) -> dict[str, Any]:
    meta = document.manifest.get("metadata")
    meta = dict(meta) if isinstance(meta, dict) else {}
    if not meta.get("name") and meta.get("generateName"):
        meta["name"] = f"{meta['generateName']}{_GENERATED}"
    meta.setdefault("namespace", "default")
    context = known.context(str(meta["namespace"]), defaults)
    try:
        verdict = judge(kind, convert({**document.manifest, "metadata": meta}, kind.decoded), context)
    except InvalidObjectError as error:
        raise InputError(f"{document.source}: {error}") from error
    entry: dict[str, Any] = {
        "workload": {
            "apiVersion": document.api_version,
            "kind": kind.kind,
            "namespace": meta["namespace"],
            "name": meta.get("name", ""),
        },
        "intent": None,
        "podGroup": None,
        "roles": [],
        "verdict": _verdict(verdict, context),
    }
    if verdict.workload and verdict.intent and verdict.gang:
        entry["intent"] = _intent(verdict.intent)
        manifest = SCHEDULERS[verdict.intent.scheduler].pod_group(verdict.gang, verdict.intent, verdict.workload)
        for owner in manifest["metadata"]["ownerReferences"]:
            if not owner["uid"]:
                # Nobody knows it before the workload exists.
                del owner["uid"]
        entry["podGroup"] = manifest
        entry["roles"] = [
            _role(role, verdict.workload, verdict.gang, verdict.intent, context) for role in verdict.gang.roles
        ]
    return entry


def _verdict(verdict: Verdict, context: Context) -> dict[str, Any]:
    first = verdict.refusals[0] if verdict.refusals else None
    message = "; ".join(refusal.message for refusal in verdict.refusals)
    if verdict.allowed and verdict.intent is None:
        message = "muster leaves this workload alone"
    elif verdict.allowed and context.queue is None:
        message = "no Queue in the input: not judged by what its queue can hold"
    return {
        "allowed": verdict.allowed,
        "reason": str(first.reason) if first else "",
        "message": message,
        "warnings": list(verdict.warnings),
    }


def _intent(intent: Intent) -> dict[str, Any]:
    return {
        "scheduler": intent.scheduler,
        "queue": intent.queue,
        "priorityClassName": intent.priority_class,
        "from": dict(intent.said),
    }


def _role(role: Role, workload: Workload, gang: Gang, intent: Intent, context: Context) -> dict[str, Any]:
    return {
        "name": role.name,
        "replicas": role.replicas,
        "minMember": role.minimum,
        "gated": role.gated and workload.kind.owns_gang,
        "requests": as_text(role.requests),
        "patch": _patch(role, workload, gang, intent, context),
    }


def _patch(role: Role, workload: Workload, gang: Gang, intent: Intent, context: Context) -> list[dict[str, Any]]:
    """The patch of a pod of that role, applied once to see that it does what it should."""
    spec = workload.role(role.name)
    if spec is None or not workload.kind.owns_gang:
        return []
    scheduler = SCHEDULERS[intent.scheduler]
    template = spec.template
    priorities = context.priorities or {}
    # As the pod comes to the webhook: made by the operator, and defaulted by the apiserver.
    pod = Pod(
        metadata=ObjectMeta(
            namespace=gang.namespace,
            labels={**template.metadata.labels, **workload.kind.pod_labels(workload, spec)},
            annotations=template.metadata.annotations,
            owner_references=(
                OwnerReference(
                    api_version=workload.api_version,
                    kind=workload.kind.kind,
                    name=workload.metadata.name,
                    uid=workload.metadata.uid,
                    controller=True,
                ),
            ),
        ),
        spec=msgspec.structs.replace(
            template.spec,
            scheduler_name=template.spec.scheduler_name or "default-scheduler",
            priority=priorities.get(template.spec.priority_class_name, 0),
            preemption_policy=template.spec.preemption_policy or "PreemptLowerPriority",
        ),
    )
    if not is_free(pod, gang, scheduler):
        return []
    operations = inject(pod, spec, gang, intent, scheduler)
    patched = convert(jsonpatch.apply_patch(msgspec.to_builtins(pod), operations), Pod)
    if patched.gated(GATE) != spec.gated or inject(patched, spec, gang, intent, scheduler):
        raise AssertionError(f"the patch for {role.name} does not hold the pod: please report this with the manifest")
    return operations
