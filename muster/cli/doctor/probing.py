"""The probe of `muster doctor --probe`: whether kube-scheduler holds a gang together.

Where the feature gate of the scheduler is off, every object looks as it should, and the scheduler places the pods of a
gang one by one. So the probe makes a PodGroup of two pods, one with a gate of its own and one without, and then a plain
pod. When the plain pod has a node and the open pod of the gang has none, the scheduler works and holds the gang. The
probe deletes everything that it has made.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from muster.cli.doctor.diagnosis import Unseen
from muster.cli.doctor.sight import GangProbe
from muster.cli.reading import PATIENCE
from muster.kube.client import Client
from muster.kube.errors import ApiError, Unreachable
from muster.kube.resource import PODS, Resource
from muster.model.objects import InvalidObjectError, Pod, decode
from muster.observe.resources import pod_groups_of
from muster.schedulers import GangScheduler

LABEL = "muster.dev/probe"
"""The label of all objects of a probe, and the gate of its held pod. No webhook and no policy of muster's knows it."""

LONGEST = 30.0
"""Seconds for a pod to get a node, in a cluster that has room for it."""

# Seconds for which the open pod may still get its node after the plain pod has one: a scheduler writes both at a time.
_SETTLED = 3.0
_PAUSE = 0.25
# Seconds after which the kubelet ends a pod that nobody has deleted.
_OVER = 120


async def probe_all(
    client: Client, schedulers: Mapping[str, GangScheduler], namespace: str, image: str
) -> tuple[GangProbe | Unseen, ...]:
    """Probe each of these schedulers that has PodGroups of Kubernetes' own, one after the other."""
    native = [one for one in schedulers.values() if one.product == "kubernetes"]
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
        return replace(seen, left=left) if isinstance(seen, GangProbe) else replace(seen, why=_with(seen.why, left))

    async def _look(self) -> GangProbe:
        start = GangProbe(self.scheduler.name, self.namespace)
        groups = pod_groups_of(self.scheduler)
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
    """Whether the apiserver keeps the group of a pod."""
    return bool(decode(body, Pod).spec.scheduling_group.pod_group_name)


def _reason(pod: Pod) -> str:
    """What the scheduler says of a pod without a node."""
    return next((one.message for one in pod.status.conditions if one.type == "PodScheduled"), "")


def _refused(error: ApiError, namespace: str) -> Unseen:
    if isinstance(error, Unreachable):
        return Unseen(f"no answer of the apiserver: {error.message}", "try again")
    return Unseen(
        f"an object of the probe is refused in namespace {namespace}: {error.message or error}",
        "choose another namespace with -n, or get the permission to create, get and delete pods and PodGroups there",
    )


def _with(why: str, left: tuple[str, ...]) -> str:
    return f"{why}; could not delete {', '.join(left)} (label {LABEL})" if left else why
