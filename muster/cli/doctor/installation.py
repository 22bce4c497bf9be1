"""Checks of muster itself: one installation, Ready pods, a leader, its policies in force."""

from collections.abc import Iterator

import muster
from muster.cli.doctor.diagnosis import Diagnosis, Unseen, fine, problem, seen, unknown, warning
from muster.cli.doctor.installed import Deployment, Installation
from muster.cli.doctor.sight import Sight
from muster.cli.ui import ago
from muster.model.texts import listed
from muster.model.times import seconds_of

_VERSION = "app.kubernetes.io/version"
_POLICIES = ("other-pods", "podgroups", "pods", "webhook", "workloads")
# A leader renews its Lease several times within its duration; clocks of nodes differ by seconds.
_SKEW = 30.0


def installation(sight: Sight) -> Iterator[Diagnosis]:
    """Muster is installed once, in the version of this command, and all of its pods are Ready."""
    if isinstance(sight.deployments, Unseen):
        yield unknown(sight.deployments, "the pods of muster")
    if not sight.installations:
        if not any(isinstance(one, Unseen) for one in (sight.deployments, sight.mutating, sight.validating)):
            yield problem(
                "muster is not installed: no Deployment and no webhook configuration has its labels",
                "install it:",
                "helm install muster charts/muster --namespace muster-system --create-namespace "
                "--set image.repository=REGISTRY/muster",
            )
        return
    if len(sight.installations) > 1:
        names = listed([f"{one.release} in namespace {one.namespace}" for one in sight.installations])
        last = sight.installations[-1]
        yield problem(
            f"muster is installed {len(sight.installations)} times ({names}); all installations act on the same gangs",
            "delete webhook configurations that belong to no release, and uninstall all but one:",
            f"helm uninstall {last.release} --namespace {last.namespace}",
        )
    if not isinstance(sight.deployments, Unseen):
        yield from processes(sight.installations[0])


def processes(installed: Installation) -> Iterator[Diagnosis]:
    """Both Deployments are there, with Ready pods of this command's version."""
    consequence = {"webhook": "the apiserver gets no answer", "controller": "waiting gangs keep waiting"}
    for component, deployment in (("webhook", installed.webhook), ("controller", installed.controller)):
        if deployment is None:
            yield problem(
                f"Deployment {installed.namespace}/{installed.name}-{component} is missing: {consequence[component]}",
                "helm makes it again:",
                installed.upgrade,
            )
            continue
        yield _ready(deployment, consequence[component])
        runs = deployment.metadata.labels.get(_VERSION, "")
        if runs != muster.__version__:
            yield warning(
                f"{deployment.title} runs version {runs or 'unknown'}, this command is version {muster.__version__}: "
                "some checks may not apply",
                "use the command of the installed version",
            )


def _ready(deployment: Deployment, consequence: str) -> Diagnosis:
    wanted, ready = deployment.replicas, deployment.ready
    counted = f"{deployment.title}: {ready} of {wanted} pods Ready"
    look = f"kubectl -n {deployment.metadata.namespace} describe pods -l app.kubernetes.io/name=muster"
    if wanted == 0:
        scale = f"kubectl -n {deployment.metadata.namespace} scale deployment {deployment.metadata.name} --replicas=2"
        return problem(f"{deployment.title} is scaled to 0: {consequence}", "scale it up:", scale)
    if ready == 0:
        return problem(f"{counted}: {consequence}", "see why:", look)
    if ready < wanted:
        return warning(counted, "see why:", look)
    return fine(counted)


def lease(sight: Sight) -> Iterator[Diagnosis]:
    """A controller holds the Lease and renews it."""
    installed, found = sight.installed, seen(sight.lease, "the leader")
    where = f"Lease {installed.namespace}/{installed.lease}"
    logs = "see why:", f"kubectl -n {installed.namespace} logs -l app.kubernetes.io/component=controller --tail=50"
    if found is None:
        yield problem(f"{where} is missing: no controller has ever been the leader", *logs)
    elif not found.spec.holder_identity:
        yield problem(f"{where} has no holder: waiting gangs keep waiting", *logs)
    else:
        spec = found.spec
        age = sight.now - (seconds_of(spec.renew_time) or 0.0)
        held = f"{where} is held by {spec.holder_identity}, renewed {ago(age)}"
        if age > spec.lease_duration_seconds:
            over = f"{held}, with a lease duration of {spec.lease_duration_seconds} seconds: "
            if age > spec.lease_duration_seconds + _SKEW:
                yield problem(f"{over}there is no leader", *logs)
            else:
                yield warning(f"{over}there is no leader, or the clocks of the nodes differ", *logs)
        elif age < -_SKEW:
            yield warning(f"{held}: its clock is ahead", "synchronise the clocks of the nodes (NTP)")
        else:
            yield fine(held)


def policies(sight: Sight) -> Iterator[Diagnosis]:
    """All admission policies of the chart are in force, or the chart installed none."""
    installed, made = sight.installed, seen(sight.policies, "policies")
    bindings = [one.spec for one in seen(sight.bindings, "policies")]
    expected = {f"{installed.name}-{name}" for name in _POLICIES}
    there = {policy.metadata.name for policy in made} & expected
    bound = {one.get("policyName") for one in bindings if "Deny" in one.get("validationActions", ())} & expected
    if not there and not bound:
        yield fine("none is installed (chart value `policies`): anyone who can update pods can open gates")
    elif expected <= there & bound:
        yield fine(f"{len(expected)} policies are in force")
    else:
        missing = listed(sorted(expected - (there & bound)))
        yield problem(
            f"not in force: {missing} (the policy, or its binding with action Deny, is missing)",
            "helm restores it; Helm 3 needs no --force-conflicts:",
            installed.overwrite,
        )
