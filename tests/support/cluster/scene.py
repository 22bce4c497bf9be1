"""One test's part of the cluster: a namespace, its queues, everything that happens in it on record."""

import re
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus

from hack.testbed import Testbed, wait_for
from muster.model.names import GATE, QUEUE_LABEL
from muster.model.resource import EVENTS, NAMESPACES, POD_GROUPS, PODS, QUEUES, RESOURCE_QUOTAS, Resource
from muster.resources.quantity import Quantity, parse_quantity
from tests.support.cluster.judge import Judge
from tests.support.cluster.objects import (
    admitted,
    alive,
    gang_of,
    gates,
    has_condition,
    message,
    node_of,
    phase,
    state,
)
from tests.support.cluster.recorder import PYTORCH_JOBS, RAY_CLUSTERS, Manifest, Recorder, State
from tests.support.cluster.steps import Meter
from tests.support.cluster.verbs import PATIENCE, Verbs, make_namespace
from tests.support.manifests import applied

__all__ = [
    "PATIENCE",
    "Scene",
    "admitted",
    "alive",
    "gates",
    "has_condition",
    "message",
    "node_of",
    "open_scene",
    "phase",
    "state",
]


class Scene(Verbs):
    """A namespace with a record of everything in it, kubectl's verbs, and the waits that tests need.

    Its `judge` looks at what muster opened at the end of every test that has it, whether the test asks or not.
    """

    def __init__(self, testbed: Testbed, namespace: str, recorder: Recorder, meter: Meter | None = None) -> None:
        super().__init__(testbed.api(), namespace)
        self.testbed = testbed
        self.recorder = recorder
        self._meter = meter
        self._queues: list[str] = []
        self.judge = Judge(self._record)

    # Writing

    def kubectl(self, *args: str, text: str | None = None, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run kubectl in the namespace, where a test is about what kubectl does."""
        return self.testbed.kubectl(f"--namespace={self.namespace}", *args, input=text, check=check)

    def queue(self, suffix: str = "", **capability: str) -> str:
        """Make a queue of this test's own, wait until it is open, and return its name."""
        name = f"{self.namespace}{suffix}"
        self.adopt_queue(name)
        self.apply(applied.queue(name, **capability))
        self.await_queue(name)
        return name

    def adopt_queue(self, name: str) -> None:
        """Have a queue deleted at the end of the test, whoever makes it."""
        self._queues.append(name)

    def await_queue(self, name: str, wanted: str = "Open") -> None:
        """Wait for a queue's state."""
        path = QUEUES.path(name=name)
        wait_for(
            f"queue {name} to be {wanted}",
            lambda: self.api.get(path).get("status", {}).get("state") == wanted,
            PATIENCE,
        )

    def resource_quota(self, hard: Mapping[str, str], used: Mapping[str, str]) -> None:
        """Bound the namespace by the ResourceQuota `team`, and wait until what is there is charged to it.

        Until then the apiserver counts without it, and lets one too many in.
        """
        about = {"apiVersion": RESOURCE_QUOTAS.api_version, "kind": RESOURCE_QUOTAS.kind, "metadata": {"name": "team"}}
        self.create({**about, "spec": {"hard": dict(hard)}})

        def charged() -> Mapping[str, str]:
            found: Mapping[str, str] = self.get(RESOURCE_QUOTAS, "team").get("status", {}).get("used", {})
            return found

        wait_for(f"{dict(used)} to be charged in {self.namespace}", lambda: charged() == used, PATIENCE)

    def operate_queue(self, name: str, action: str) -> None:
        """What `vcctl queue operate` does: `CloseQueue` or `OpenQueue`."""
        uid = self.api.get(QUEUES.path(name=name))["metadata"]["uid"]
        target = {"apiVersion": QUEUES.api_version, "kind": QUEUES.kind, "name": name, "uid": uid, "controller": True}
        self.api.create(
            "/apis/bus.volcano.sh/v1alpha1/namespaces/default/commands",
            {
                "apiVersion": "bus.volcano.sh/v1alpha1",
                "kind": "Command",
                "metadata": {"generateName": f"{name}-"},
                "target": target,
                "action": action,
            },
        )

    def close(self) -> None:
        """Delete the namespace and the queues; the record stays with the testbed's logs."""
        self.recorder.write(self.testbed.logs / f"record-{self.namespace}.jsonl")
        for kind in self.recorder.kinds:
            if kind.namespaced and kind != EVENTS:
                self.delete_all(kind)
        self.delete(NAMESPACES, self.namespace, wait=False)
        path = PODS.path(self.namespace)
        # Whatever still ran would count against the next test's time.
        wait_for(f"{self.namespace} to be empty", lambda: not self.api.get(path)["items"], PATIENCE)
        self.delete(QUEUES, *self._queues, wait=False, missing_ok=True)

    def end(self, gang: str) -> None:
        """Let every pod of the gang succeed now.

        The first one may end the workload, whose operator then deletes the others before they are asked to end.
        """
        patch = {"metadata": {"annotations": {applied.RUN_SECONDS: "0"}}}
        for pod in self.pods(gang):
            if alive(pod):
                path = self.path(PODS, pod["metadata"]["name"])
                answer = self.api("PATCH", path, patch, patch="merge")
                assert answer.ok or answer.status == HTTPStatus.NOT_FOUND, answer

    # Looking and waiting

    def wait(
        self, description: str, condition: Callable[[], object], timeout: float = PATIENCE, *, step: str = ""
    ) -> None:
        """Wait for a condition; when it never comes, say what there is instead.

        A `step` is also held against what muster's work on such steps is known to be, see `steps`.
        """
        wait_for(f"{description}", lambda: bool(condition()) or _Not(self.picture), timeout)
        if self._meter is not None:
            self._meter.step(step)

    def picture(self) -> str:
        """Return what there is now, for error messages."""
        lines = [f"{self.namespace}:"]
        lines += [f"pod {p['metadata']['name']} {phase(p)} gates {gates(p)} node {node_of(p)}" for p in self.pods()]
        lines += [
            f"podgroup {group['metadata']['name']} {phase(group)} {state(group)}: {message(group)}"
            for group in self.recorder.now(POD_GROUPS)
        ]
        for kind in (RAY_CLUSTERS, PYTORCH_JOBS):
            for item in self.recorder.now(kind):
                conditions = [c["type"] for c in item.get("status", {}).get("conditions", []) if c["status"] == "True"]
                lines.append(f"{kind.kind} {item['metadata']['name']} {conditions}")
        return "\n  ".join(lines)

    def pods(self, gang: str | None = None) -> list[Manifest]:
        """Return the pods of the namespace, or of one gang (by the name of its PodGroup)."""
        return [pod for pod in self.recorder.now(PODS) if gang is None or gang_of(pod) == gang]

    def pod_group(self, name: str) -> Manifest:
        """Return a PodGroup as it is now, {} when there is none."""
        return self.recorder.get(POD_GROUPS, name) or {"metadata": {}, "spec": {}}

    def await_state(self, gang: str, wanted: str) -> Manifest:
        """Wait until muster says this of the gang and return the PodGroup."""
        group: Manifest = {}

        def there() -> bool:
            group.clear()
            group.update(self.pod_group(gang))
            return state(group) == wanted

        self.wait(f"gang {gang} to be {wanted}", there, step=f"a gang says {wanted}")
        return group

    def await_running(self, gang: str, pods: int) -> list[Manifest]:
        """Wait until so many pods of the gang run and Volcano and muster both say so; return these pods."""
        members: list[Manifest] = []

        def runs() -> bool:
            members[:] = [pod for pod in self.pods(gang) if alive(pod)]
            group = self.pod_group(gang)
            return (
                len(members) == pods
                and all(phase(pod) == "Running" for pod in members)
                and phase(group) == "Running"
                and state(group) == "Running"
            )

        self.wait(f"gang {gang} to run with {pods} pods", runs, step=f"a gang of {pods} runs")
        return members

    def await_gated(self, gang: str, pods: int) -> list[Manifest]:
        """Wait until so many pods of the gang exist, all held by muster's gate; return them."""
        members: list[Manifest] = []

        def held() -> bool:
            members[:] = self.pods(gang)
            return len(members) == pods and all(gates(pod) == [GATE] for pod in members)

        self.wait(f"{pods} gated pods of {gang}", held, step=f"a gang of {pods} is held")
        return members

    def events(self, workload: str, reason: str) -> list[str]:
        """Return the notes of muster's events on a workload with that reason; its PodGroup has the same."""
        return [
            event["note"]
            for event in self.recorder.now(EVENTS)
            if event["regarding"]["name"] == workload
            and event["regarding"]["kind"] != POD_GROUPS.kind
            and event["reason"] == reason
            and event.get("reportingController") == "muster.dev/controller"
        ]

    def await_event(self, workload: str, reason: str) -> str:
        """Wait for muster's first event on a workload with that reason and return its note."""
        self.wait(f"event {reason} on {workload}", lambda: self.events(workload, reason), step=f"event {reason}")
        return self.events(workload, reason)[0]

    def await_ended(self, job: str) -> int:
        """Wait until a PyTorchJob has succeeded and return the resource version from which it had."""
        self.wait(f"{job} to succeed", lambda: self._succeeded(self.recorder.get(PYTORCH_JOBS, job) or {}))
        return self.succeeded(job)

    # Order, from the record

    def succeeded(self, job: str) -> int:
        """Return the resource version from which a PyTorchJob had succeeded."""
        found = self.recorder.first(
            PYTORCH_JOBS, lambda item: item["metadata"]["name"] == job and self._succeeded(item), f"succeeded ({job})"
        )
        return found.version

    @staticmethod
    def _succeeded(job: Manifest) -> bool:
        return has_condition(job, "Succeeded")

    def first_bound(self, gang: str) -> int:
        """Return the resource version at which the first pod of the gang had a node."""
        return self.recorder.first(
            PODS, lambda pod: gang_of(pod) == gang and bool(node_of(pod)), f"a node ({gang})"
        ).version

    def last_ungated(self, gang: str, pods: int) -> int:
        """Return the resource version from which so many pods of the gang were without muster's gate."""
        opened: dict[str, int] = {}
        for seen in self.recorder.history(PODS):
            if gang_of(seen.object) == gang and GATE not in gates(seen.object):
                opened.setdefault(seen.object["metadata"]["uid"], seen.version)
        assert len(opened) >= pods, f"only {len(opened)} of {pods} pods of {gang} were ever opened"
        return sorted(opened.values())[pods - 1]

    def assert_started_together(self, gang: str, pods: int) -> None:
        """No pod of the gang had a node before all of its minimum existed and was opened."""
        self.recorder.settle()
        assert self.first_bound(gang) > self.last_ungated(gang, pods), f"a part of {gang} was placed before the rest"

    def assert_never_above(self, capability: dict[str, str], queue: str = "") -> None:
        """Neither pods with nodes nor what muster opened ever took more than there is.

        The first is said of the capability given, for one queue or all, the second of the limits that the queues had.
        """
        self.assert_never_placed_above(capability, queue)
        self.assert_never_open_above()

    def assert_never_placed_above(self, capability: dict[str, str], queue: str = "") -> None:
        """At no moment did the living pods with a node, of one queue or of all, ask for more than the capability.

        A pod that is being deleted does not count, as it does not with Volcano.
        """
        self.recorder.settle()
        limit = {name: parse_quantity(text) for name, text in capability.items()}
        held: dict[str, dict[str, Quantity]] = {}
        for seen in self.recorder.history(PODS):
            uid = seen.object["metadata"]["uid"]
            if queue and (seen.object["metadata"].get("labels") or {}).get(QUEUE_LABEL) != queue:
                continue
            if seen.gone or not alive(seen.object) or not node_of(seen.object):
                held.pop(uid, None)
            else:
                held[uid] = _requests(seen.object, limit)
            for name, most in limit.items():
                used = sum((asked[name] for asked in held.values()), parse_quantity("0"))
                assert used <= most, f"at version {seen.version} the pods held {name} {used} of {most}"

    def assert_never_open_above(self, acts: int = 1) -> None:
        """No act of muster's opened more than a queue, or one above it, has room for; see `open_claims` for the rule.

        There must have been so many acts that took room, or nothing was judged. That nothing was above is judged at the
        end of the test in any case.
        """
        judged = self.judge.judge()
        assert judged >= acts, f"only {judged} acts of muster's are on record"

    def _record(self) -> list[State]:
        self.recorder.settle()
        return self.recorder.everything()


class _Not:
    """A false answer that says, when the wait is over, what there was."""

    def __init__(self, picture: Callable[[], str]) -> None:
        self._picture = picture

    def __bool__(self) -> bool:
        return False

    def __str__(self) -> str:
        return self._picture()


@contextmanager
def open_scene(
    testbed: Testbed,
    name: str,
    kinds: Iterable[Resource] = (RAY_CLUSTERS, PYTORCH_JOBS),
    *,
    gaps: bool = False,
    made: type[Scene] = Scene,
) -> Iterator[Scene]:
    """Make a namespace with this name, in what a label allows, and delete it in the end; `gaps` as of Recorder.

    `made` is the kind of scene.
    """
    namespace = re.sub(r"[^a-z0-9-]+", "-", name.lower())[:40].strip("-")
    make_namespace(testbed.api(), namespace)
    with Recorder(testbed, namespace, kinds, gaps=gaps) as recorder:
        # Where the apiserver itself dies nothing can be counted.
        scene = made(testbed, namespace, recorder, None if gaps else Meter(testbed, recorder.count))
        try:
            with scene.judge.on_duty():
                yield scene
        finally:
            scene.close()


def _requests(pod: Manifest, names: Iterable[str]) -> dict[str, Quantity]:
    """What the containers ask for; test pods have no larger init containers."""
    return {
        name: sum(
            (parse_quantity(c["resources"].get("requests", {}).get(name, "0")) for c in pod["spec"]["containers"]),
            parse_quantity("0"),
        )
        for name in names
    }
