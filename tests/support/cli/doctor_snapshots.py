"""A cluster in order as the doctor sees it, and what is changed in it by a test."""

import datetime as dt
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

from muster import __version__
from muster.cli.doctor.diagnosis import Diagnosis, Level, diagnoses_of
from muster.cli.doctor.installed import AnyObject, Deployment, WebhookConfiguration, installations
from muster.cli.doctor.sight import DryRun, Sight
from muster.cli.doctor.webhooks import ENTRIES
from muster.model.objects import Lease, Object, convert
from muster.model.times import text_of
from muster.process.certificates import Certificates, issue
from muster.workloads import WATCHED_KINDS

NAMESPACE = "muster-system"
NOW = dt.datetime(2026, 11, 22, 12, tzinfo=dt.UTC).timestamp()
HOUR = 3600.0
_COMMAND = re.compile(r"kubectl -|kubectl annotate|helm (upgrade|install|uninstall) \S|muster \w+ -")
HELD: Certificates = issue([f"muster-webhook.{NAMESPACE}.svc"], dt.datetime.fromtimestamp(NOW, dt.UTC))
_ARGUMENTS = {
    "webhook": ("--secret=muster-webhook-tls", "--service=muster-webhook", "--validation=deny"),
    "controller": ("--lease=muster-controller", "--default-queue=default"),
}


def deployment(name: str, image: str, *args: str, namespace: str = NAMESPACE, **more: Any) -> Deployment:  # noqa: ANN401
    """A Deployment with one Ready pod; `ready` and `replicas` say otherwise, `labels` what it is."""
    return convert(
        {
            "metadata": {"name": name, "namespace": namespace, "labels": more.get("labels", {})},
            "spec": {
                "replicas": more.get("replicas", 1),
                "template": {
                    "spec": {"serviceAccountName": name, "containers": [{"name": "c", "image": image, "args": args}]}
                },
            },
            "status": {"readyReplicas": more.get("ready", 1)},
        },
        Deployment,
    )


def ours(component: str, *args: str, **more: Any) -> Deployment:  # noqa: ANN401
    """A Deployment of muster's."""
    labels = {
        "app.kubernetes.io/name": "muster",
        "app.kubernetes.io/instance": "muster",
        "app.kubernetes.io/component": component,
        "app.kubernetes.io/version": __version__,
        **more.pop("labels", {}),
    }
    return deployment(f"muster-{component}", "own/muster", *_ARGUMENTS[component], *args, labels=labels, **more)


def configuration(kind: str, **fields: object) -> WebhookConfiguration:
    """A webhook configuration as the chart has it, with further fields of every entry."""
    entries = [
        {
            "name": name,
            "clientConfig": {
                "caBundle": HELD.secret_data()["ca.crt"],
                "service": {"namespace": NAMESPACE, "name": "muster-webhook", "path": path},
            },
            **fields,
        }
        for name, path in ENTRIES[kind].items()
    ]
    labels = {"app.kubernetes.io/instance": "muster"}
    return convert({"metadata": {"name": "muster", "labels": labels}, "webhooks": entries}, WebhookConfiguration)


def healthy(**changes: Any) -> Sight:  # noqa: ANN401
    """A cluster in order, but for these fields of the Sight."""
    policies = ("other-pods", "podgroups", "pods", "webhook", "workloads")
    sight = Sight(
        now=NOW,
        kubernetes="v1.36.3",
        namespace="default",
        installations=(),
        deployments=(
            ours("webhook"),
            ours("controller"),
            deployment("volcano-scheduler", "r/vc-scheduler:v1.14.4", namespace="volcano-system"),
            deployment("volcano-controllers", "r/vc-controller-manager:v1.14.4", namespace="volcano-system"),
        ),
        mutating=(configuration("MutatingWebhookConfiguration"),),
        validating=(configuration("ValidatingWebhookConfiguration"),),
        secret=HELD.secret_data(),
        lease=convert(
            {"spec": {"holderIdentity": "c-0", "leaseDurationSeconds": 15, "renewTime": text_of(NOW - 2)}}, Lease
        ),
        policies=tuple(convert({"metadata": {"name": f"muster-{name}"}}, Object) for name in policies),
        bindings=tuple(
            convert({"spec": {"policyName": f"muster-{name}", "validationActions": ["Deny"]}}, AnyObject)
            for name in policies
        ),
        served={
            "scheduling.volcano.sh/v1beta1": frozenset({"queues", "podgroups"}),
            **{
                f"{kind.group}/{kind.versions[0]}": frozenset(one.plural for one in WATCHED_KINDS)
                for kind in WATCHED_KINDS
            },
        },
        queues=(
            convert(
                {
                    "metadata": {"name": "default", "creationTimestamp": text_of(NOW - HOUR)},
                    "status": {"state": "Open"},
                },
                AnyObject,
            ),
        ),
        members=(),
        groups=(),
        pod_answer=DryRun(gated=True, group="muster-doctor", queue="default"),
    )
    sight = replace(sight, **changes)
    if "installations" in changes:
        return sight
    return replace(sight, installations=installations(sight.deployments, sight.mutating, sight.validating))


def found(check: Callable[..., Iterator[Diagnosis]], *arguments: object, **changes: object) -> list[Diagnosis]:
    """What a check says of a cluster in order but for this; whatever is not in order has a cure."""
    said = list(diagnoses_of(lambda sight: check(sight, *arguments), healthy(**changes)))
    assert all(bool(one.cure) is (one.level != "ok") for one in said), said
    # A command stands on a line of its own, whole: in a sentence it would be wrapped.
    assert not [one for one in said if _COMMAND.search(one.cure) or (one.command and not one.cure)], said
    return said


def levels(said: Iterable[Diagnosis]) -> set[Level]:
    """How bad it is."""
    return {one.level for one in said}


def messages(said: Iterable[Diagnosis]) -> list[str]:
    """What is not in order, in words."""
    return [one.message for one in said if one.level != "ok"]
