"""The check `kubernetes`: whether kube-scheduler holds gangs together, by the probe of `muster doctor --probe`."""

from __future__ import annotations

from collections.abc import Iterator

from muster.cli.doctor.diagnosis import Check, Diagnosis, Unseen, fine, problem, unknown, warning
from muster.cli.doctor.probing import LABEL, LONGEST
from muster.cli.doctor.sight import GangProbe, Sight
from muster.cli.words import lasting, listed

_WHAT = "whether kube-scheduler holds gangs together"
_API = "PodGroups of scheduling.k8s.io/v1beta1"
_GATE = "--feature-gates=GenericWorkload=true"
_SERVE = "--runtime-config=scheduling.k8s.io/v1beta1=true"
# Words of kube-scheduler for a pod that it has tried to place.
_OF_NODES = "nodes are available"


def kubernetes(sight: Sight) -> Iterator[Diagnosis]:
    """A gang of two pods, one of them gated, stays without a node; where kube-scheduler places gangs, and if asked."""
    installed = sight.installation
    places = installed is not None and any(one.product == "kubernetes" for one in installed.schedulers)
    if sight.probes is None:
        if places:
            yield fine(Check.KUBERNETES, f"not tested without --probe: {_WHAT}, with its feature gate GenericWorkload")
    else:
        yield from found(sight.probes)


def found(probes: tuple[GangProbe | Unseen, ...]) -> Iterator[Diagnosis]:
    """What the probes show, of each scheduler."""
    if not probes:
        yield fine(Check.KUBERNETES, "nothing to probe: kubernetes is not in the chart value schedulers")
    for one in probes:
        yield from verdict(one)


def verdict(seen: GangProbe | Unseen) -> Iterator[Diagnosis]:
    """What a probe shows of the apiserver and the scheduler, and what it left behind."""
    if isinstance(seen, Unseen):
        yield unknown(Check.KUBERNETES, seen, _WHAT)
        return
    yield _of_apiserver(seen) or _of_scheduler(seen)
    if seen.left:
        yield warning(
            Check.KUBERNETES,
            f"the probe could not delete {listed(seen.left)} in namespace {seen.namespace}",
            f"kubectl -n {seen.namespace} delete pods,podgroups.scheduling.k8s.io -l {LABEL}",
        )


def _of_apiserver(seen: GangProbe) -> Diagnosis | None:
    """A gang would be placed pod by pod, or no pod at all."""
    if seen.served and seen.kept:
        return None
    if seen.kept:
        return problem(
            Check.KUBERNETES,
            f"the apiserver has feature gate GenericWorkload and does not serve {_API}: a kube-scheduler with the gate "
            "places no pod at all, not even plain ones",
            f"start kube-apiserver with {_SERVE}",
        )
    served = "serves" if seen.served else "does not serve"
    return problem(
        Check.KUBERNETES,
        f"the apiserver drops spec.schedulingGroup of pods, and {served} {_API}: gangs cannot be placed as a whole",
        f"start kube-apiserver with {_GATE} and {_SERVE}, kube-scheduler and kube-controller-manager with {_GATE}",
    )


def _of_scheduler(seen: GangProbe) -> Diagnosis:
    name = f"kube-scheduler ({seen.scheduler})"
    if seen.open_placed:
        return problem(
            Check.KUBERNETES,
            f"{name} has placed a pod of a gang whose other pod is gated: it places the pods of gangs one by one",
            f"start kube-scheduler with {_GATE}",
        )
    if not seen.plain_placed:
        said = seen.plain_reason or "the scheduler has said nothing"
        return unknown(
            Check.KUBERNETES,
            Unseen(
                f"{name} has not placed a plain pod within {lasting(LONGEST)}: {said}",
                "make room for a pod of 1m cpu on a node without taints, see the log of kube-scheduler, and try again",
            ),
            _WHAT,
        )
    if _OF_NODES in seen.open_reason:
        why = f"{name} had room for one pod alone: {seen.open_reason}"
        return unknown(Check.KUBERNETES, Unseen(why, "try again when a node has room"), _WHAT)
    return fine(Check.KUBERNETES, f"{name} holds a pod of a gang whose other pod is gated, and places a plain pod")
