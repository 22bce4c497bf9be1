"""Checks of muster itself: is it there once, does it run, who leads, are its policies in force, has it its rights."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

import muster
from muster.cli.doctor.diagnosis import Check, Diagnosis, Unseen, fine, problem, unknown, warning
from muster.cli.doctor.words import ago, listed
from muster.model.times import seconds_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from muster.cli.doctor.installed import Installation
    from muster.cli.doctor.rights import Right
    from muster.cli.doctor.sight import Deployment, Sight

__all__ = ["installation", "lease", "policies", "processes", "rights"]

_VERSION = "app.kubernetes.io/version"
_POLICIES = ("controller", "podgroups", "pods", "webhook")
# A leader renews its Lease several times within its duration; clocks of nodes differ by seconds.
_SKEW = 30.0


def installation(sight: Sight) -> Iterator[Diagnosis]:
    """There is one muster, of this command's version, and all of its pods are Ready."""
    if isinstance(sight.deployments, Unseen):
        yield unknown(Check.INSTALLATION, sight.deployments, "whether muster's pods run")
    if not sight.installations:
        seen = not any(isinstance(one, Unseen) for one in (sight.deployments, sight.mutating, sight.validating))
        if seen:
            yield problem(
                Check.INSTALLATION,
                "muster is not installed: no Deployment and no webhook configuration has its label",
                "helm install muster charts/muster --namespace muster-system --create-namespace",
            )
        return
    if len(sight.installations) > 1:
        names = listed([f"{one.release} in namespace {one.namespace}" for one in sight.installations])
        last = sight.installations[-1]
        yield problem(
            Check.INSTALLATION,
            f"muster is there {len(sight.installations)} times ({names}), and all decide about the same gangs",
            f"uninstall all but one: helm uninstall {last.release} --namespace {last.namespace}; delete webhook "
            "configurations that no release has any more",
        )
    if not isinstance(sight.deployments, Unseen):
        yield from processes(sight.installations[0])


def processes(installed: Installation) -> Iterator[Diagnosis]:
    """Both Deployments are there, with Ready pods of this command's version."""
    consequence = {
        "webhook": "nobody answers the apiserver",
        "controller": "gangs that wait go on waiting",
    }
    for component, deployment in (("webhook", installed.webhook), ("controller", installed.controller)):
        if deployment is None:
            yield problem(
                Check.INSTALLATION,
                f"Deployment {installed.namespace}/{installed.name}-{component} is missing: {consequence[component]}",
                installed.upgrade,
            )
            continue
        yield _ready(deployment, consequence[component])
        runs = deployment.metadata.labels.get(_VERSION, "")
        if runs != muster.__version__:
            yield warning(
                Check.INSTALLATION,
                f"{deployment.title} is of version {runs or 'unknown'}, and this command of {muster.__version__}: "
                "what it expects may differ",
                "use the command of the version that is installed",
            )


def _ready(deployment: Deployment, consequence: str) -> Diagnosis:
    wanted, ready = deployment.spec.replicas, deployment.status.ready_replicas
    counted = f"{deployment.title}: {ready} of {wanted} pods Ready"
    look = f"kubectl -n {deployment.metadata.namespace} describe pods -l app.kubernetes.io/name=muster"
    if wanted == 0:
        scale = f"kubectl -n {deployment.metadata.namespace} scale deployment {deployment.metadata.name} --replicas=2"
        return problem(Check.INSTALLATION, f"{deployment.title} is scaled to 0: {consequence}", scale)
    if ready == 0:
        return problem(Check.INSTALLATION, f"{counted}: {consequence}", look)
    if ready < wanted:
        return warning(Check.INSTALLATION, counted, look)
    return fine(Check.INSTALLATION, counted)


def lease(sight: Sight) -> Iterator[Diagnosis]:
    """Somebody leads, and has said so lately."""
    installed, found = sight.installation, sight.lease
    if installed is None:
        return
    where = f"Lease {installed.namespace}/{installed.lease}"
    logs = f"kubectl -n {installed.namespace} logs -l app.kubernetes.io/component=controller --tail=50"
    if isinstance(found, Unseen):
        yield unknown(Check.LEASE, found, "who leads")
    elif found is None:
        yield problem(Check.LEASE, f"{where} is missing: no controller has ever led", logs)
    elif not found.spec.holder_identity:
        yield problem(Check.LEASE, f"{where} is held by nobody: gangs that wait go on waiting", logs)
    else:
        spec = found.spec
        age = sight.now - (seconds_of(spec.renew_time) or 0.0)
        held = f"{where} is held by {spec.holder_identity}, renewed {ago(age)}"
        if age > spec.lease_duration_seconds + _SKEW:
            yield problem(
                Check.LEASE, f"{held}, for {spec.lease_duration_seconds} seconds: nobody leads any more", logs
            )
        elif age < -_SKEW:
            yield warning(Check.LEASE, f"{held}, by a clock that is ahead", "synchronise the clocks of the nodes (NTP)")
        else:
            yield fine(Check.LEASE, held)


def policies(sight: Sight) -> Iterator[Diagnosis]:
    """All of the chart's admission policies are in force, or the chart was told to have none."""
    installed = sight.installation
    if installed is None:
        return
    if isinstance(sight.policies, Unseen):
        yield unknown(Check.POLICIES, sight.policies)
        return
    if isinstance(sight.bindings, Unseen):
        yield unknown(Check.POLICIES, sight.bindings)
        return
    expected = {f"{installed.name}-{name}" for name in _POLICIES}
    there = {policy.metadata.name for policy in sight.policies} & expected
    bound = {one.spec.policy_name for one in sight.bindings if "Deny" in one.spec.validation_actions} & expected
    if not there and not bound:
        yield fine(Check.POLICIES, "none is installed (chart value policies): who may update pods may open gates")
    elif expected <= there & bound:
        yield fine(Check.POLICIES, f"{len(expected)} policies are in force")
    else:
        missing = listed(sorted(expected - (there & bound)))
        yield problem(
            Check.POLICIES,
            f"not in force: {missing} (the policy, or its binding with action Deny, is missing)",
            installed.overwrite,
        )


def rights(sight: Sight) -> Iterator[Diagnosis]:
    """No ServiceAccount of muster's or Volcano's lacks a right that gangs need."""
    if isinstance(sight.accounts, Unseen):
        yield unknown(Check.RIGHTS, sight.accounts, "rights of muster and Volcano")
        return
    for account in sight.accounts:
        if not account.lacks:
            yield fine(Check.RIGHTS, f"{account.title} may do all that gangs need")
            continue
        cure = "install Volcano's roles and bindings again, as its own chart or manifest has them"
        if account.ours and sight.installation is not None:
            cure = sight.installation.overwrite
        yield problem(Check.RIGHTS, f"{account.title} may not {listed(list(_lacking(account.lacks)))}", cure)


def _lacking(lacks: Iterable[Right]) -> Iterator[str]:
    """`patch, delete pods`, by resource."""
    for thing, same in groupby(sorted(lacks, key=lambda lack: lack.thing), lambda lack: lack.thing):
        yield f"{', '.join(lack.verb for lack in same)} {thing}"
