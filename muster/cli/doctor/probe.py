"""The probe of `muster doctor --probe`: whether kube-scheduler holds a gang together.

Where the feature gate of the scheduler is off, every object looks as it should, and the scheduler places the pods of a
gang one by one. So the probe makes a PodGroup of two pods, one with a gate of its own and one without, and then a plain
pod. When the plain pod has a node and the open pod of the gang has none, the scheduler works and holds the gang. The
probe deletes everything that it has made.
"""

import asyncio
import secrets
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from muster.cli.connecting import PATIENCE
from muster.cli.doctor.diagnosis import Diagnosis, Unseen, fine, problem, unknown, warning
from muster.cli.doctor.installed import AS_INSTALLED
from muster.cli.doctor.sight import GangProbe, Sight
from muster.cli.ui import lasting
from muster.cluster.served import choose_versions
from muster.kube.client import Client
from muster.kube.errors import ApiError, Unreachable
from muster.model.objects import InvalidObjectError, decode
from muster.model.pods import Pod
from muster.model.resource import PODS, Resource
from muster.model.texts import listed
from muster.schedulers import GangScheduler

LABEL = "muster.dev/probe"
"""The label of all objects of a probe, and the gate of its held pod. No webhook and no policy of muster's knows it."""
LONGEST = 30.0
"""Seconds for a pod to get a node, in a cluster that has room for it."""
# Seconds for which the open pod may still get its node after the plain pod has one: a scheduler writes both at a time.
_SETTLED = 3.0
_PAUSE = 0.25
# Seconds after which the kubelet ends a pod that was not deleted.
_OVER = 120
_WHAT = "whether kube-scheduler holds gangs together"
_API = "PodGroups of scheduling.k8s.io/v1beta1"
_GATE = "--feature-gates=GenericWorkload=true"
_SERVE = "--runtime-config=scheduling.k8s.io/v1beta1=true"
# Words of kube-scheduler for a pod that it has tried to place.
_OF_NODES = "nodes are available"


async def probe_all(
    client: Client, schedulers: Mapping[str, GangScheduler], namespace: str, image: str
) -> tuple[GangProbe | Unseen, ...]:
    """Probe each of these schedulers that has PodGroups of Kubernetes' own, one after the other."""
    native = [one for one in schedulers.values() if one.product == "kubernetes"]
    await choose_versions(client, native)
    return tuple([await _Probe(client, one, namespace, image).run() for one in native])


@dataclass(slots=True)
class _Probe:
    client: Client
    scheduler: GangScheduler
    namespace: str
    image: str
    name: str = field(default_factory=lambda: f"muster-probe-{secrets.token_hex(3)}")
    made: list[tuple[Resource, str]] = field(default_factory=list)

    async def run(self) -> GangProbe | Unseen:
        """Make the objects, look at what becomes of them, and delete them in any case."""
        seen: GangProbe | Unseen
        try:
            seen = await self._look()
        except ApiError as error:
            seen = _refused(error, self.namespace)
        except InvalidObjectError as error:
            seen = Unseen(f"a pod of the probe cannot be decoded: {error}", "choose another namespace with -n")
        finally:
            left = await self._delete()
        if isinstance(seen, GangProbe):
            return replace(seen, left=left)
        more = f"; could not delete {', '.join(left)} (label {LABEL})" if left else ""
        return replace(seen, why=seen.why + more)

    async def _look(self) -> GangProbe:
        start = GangProbe(self.scheduler.name, self.namespace)
        groups = self.scheduler.resource
        try:
            await self._create(groups, self.name, {"schedulingPolicy": {"gang": {"minCount": 2}}})
        except ApiError as error:
            if not error.not_found:
                raise
            # There is no such kind, or no such namespace: then this fails, too.
            body = await self._create(PODS, self._named("open"), self._pod("open"), dry_run=True)
            return replace(start, served=False, kept=_in_group(body))
        await self._create(PODS, self._named("gated"), {**self._pod("gated"), "schedulingGates": [{"name": LABEL}]})
        if not _in_group(await self._create(PODS, self._named("open"), self._pod("open"))):
            return replace(start, kept=False)
        # The plain pod comes last: a scheduler takes pods in their order.
        await self._create(PODS, self._named("plain"), self._pod("plain"))
        return await self._wait(start)

    async def _wait(self, start: GangProbe) -> GangProbe:
        """Until the open pod has a node, or the plain one has had one for a while, or neither got one for too long."""
        until, settled = time.monotonic() + LONGEST, None
        while True:
            opened, plain = await asyncio.gather(self._read("open"), self._read("plain"))
            seen = replace(
                start,
                open_placed=bool(opened.spec.node_name),
                plain_placed=bool(plain.spec.node_name),
                open_reason=_reason(opened),
                plain_reason=_reason(plain),
            )
            now = time.monotonic()
            if seen.plain_placed and settled is None:
                settled = now + _SETTLED
            if seen.open_placed or now >= (until if settled is None else settled):
                return seen
            await asyncio.sleep(_PAUSE)

    async def _create(self, resource: Resource, name: str, spec: dict[str, Any], *, dry_run: bool = False) -> bytes:
        manifest = {
            "apiVersion": resource.api_version,
            "kind": resource.kind,
            "metadata": {"name": name, "labels": {LABEL: self.name}},
            "spec": spec,
        }
        if not dry_run:
            self.made.append((resource, name))
        try:
            return await self.client.create(resource, manifest, self.namespace, dry_run=dry_run, deadline=PATIENCE)
        except ApiError as error:
            # Without an answer the object may exist.
            if not dry_run and not isinstance(error, Unreachable):
                self.made.pop()
            raise

    async def _read(self, role: str) -> Pod:
        return decode(await self.client.get(PODS, self._named(role), self.namespace, deadline=PATIENCE), Pod)

    async def _delete(self) -> tuple[str, ...]:
        """Delete what was made, pods first, and give what could not be deleted."""
        left = []
        for resource, name in reversed(self.made):
            try:
                await self.client.delete(resource, name, self.namespace, deadline=PATIENCE)
            except ApiError:
                left.append(f"{resource.full_name}/{name}")
        return tuple(left)

    def _named(self, role: str) -> str:
        return f"{self.name}-{role}"

    def _pod(self, role: str) -> dict[str, Any]:
        """The spec of a pod that ends at once; the restricted Pod Security Standard and ResourceQuotas allow it."""
        group = {} if role == "plain" else {"schedulingGroup": {"podGroupName": self.name}}
        return {
            **group,
            "schedulerName": self.scheduler.name,
            "restartPolicy": "Never",
            "activeDeadlineSeconds": _OVER,
            "terminationGracePeriodSeconds": 1,
            "automountServiceAccountToken": False,
            "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
            "containers": [
                {
                    "name": "probe",
                    "image": self.image,
                    "command": ["muster", "version"],
                    "resources": {
                        "requests": {"cpu": "1m", "memory": "1Mi"},
                        "limits": {"cpu": "100m", "memory": "64Mi"},
                    },
                    "securityContext": {
                        "allowPrivilegeEscalation": False,
                        "readOnlyRootFilesystem": True,
                        "capabilities": {"drop": ["ALL"]},
                    },
                }
            ],
        }


def _in_group(body: bytes) -> bool:
    """True if the apiserver keeps the group of a pod."""
    return bool(decode(body, Pod).spec.scheduling_group.pod_group_name)


def _reason(pod: Pod) -> str:
    """The scheduler's reason for a pod without a node."""
    return next((one.message for one in pod.status.conditions if one.type == "PodScheduled"), "")


def _refused(error: ApiError, namespace: str) -> Unseen:
    if isinstance(error, Unreachable):
        return Unseen(f"no answer of the apiserver: {error.message}", "try again")
    return Unseen(
        f"an object of the probe is refused in namespace {namespace}: {error.message or error}",
        "choose another namespace with -n, or get the permission to create, get and delete pods and PodGroups there",
    )


def kubernetes(sight: Sight) -> Iterator[Diagnosis]:
    """A gang of two pods, one of them gated, stays without a node; where kube-scheduler places gangs, and if asked."""
    if sight.probes is not None:
        yield from found(sight.probes)
    elif "kubernetes" in (sight.installation or AS_INSTALLED).products:
        yield fine(f"not tested without --probe: {_WHAT}, with its feature gate GenericWorkload")


def found(probes: tuple[GangProbe | Unseen, ...]) -> Iterator[Diagnosis]:
    """The diagnoses of the probes, one after another."""
    if not probes:
        yield fine("nothing to probe: kubernetes is not in the chart value schedulers")
    for one in probes:
        yield from verdict(one)


def verdict(seen: GangProbe | Unseen) -> Iterator[Diagnosis]:
    """The diagnosis of one probe, and the objects that it left behind."""
    if isinstance(seen, Unseen):
        yield unknown(seen, _WHAT)
        return
    yield _of_apiserver(seen) or _of_scheduler(seen)
    if seen.left:
        yield warning(
            f"the probe could not delete {listed(seen.left)} in namespace {seen.namespace}",
            "delete it:",
            f"kubectl -n {seen.namespace} delete pods,podgroups.scheduling.k8s.io -l {LABEL}",
        )


def _of_apiserver(seen: GangProbe) -> Diagnosis | None:
    """A gang would be placed pod by pod, or no pod at all."""
    if seen.served and seen.kept:
        return None
    if seen.kept:
        return problem(
            f"the apiserver has feature gate GenericWorkload and does not serve {_API}: a kube-scheduler with the gate "
            "places no pod at all, not even plain ones",
            f"start kube-apiserver with {_SERVE}",
        )
    served = "serves" if seen.served else "does not serve"
    return problem(
        f"the apiserver drops spec.schedulingGroup of pods, and {served} {_API}: gangs cannot be placed as a whole",
        f"start kube-apiserver with {_GATE} and {_SERVE}, kube-scheduler and kube-controller-manager with {_GATE}",
    )


def _of_scheduler(seen: GangProbe) -> Diagnosis:
    name = f"kube-scheduler ({seen.scheduler})"
    if seen.open_placed:
        return problem(
            f"{name} has placed a pod of a gang whose other pod is gated: it places the pods of gangs one by one",
            f"start kube-scheduler with {_GATE}",
        )
    if not seen.plain_placed:
        reason = seen.plain_reason or "the scheduler has said nothing"
        return unknown(
            Unseen(
                f"{name} has not placed a plain pod within {lasting(LONGEST)}: {reason}",
                "make room for a pod of 1m cpu on a node without taints, see the log of kube-scheduler, and try again",
            ),
            _WHAT,
        )
    if _OF_NODES in seen.open_reason:
        why = f"{name} had room for one pod alone: {seen.open_reason}"
        return unknown(Unseen(why, "try again when a node has room"), _WHAT)
    return fine(f"{name} holds a pod of a gang whose other pod is gated, and places a plain pod")
