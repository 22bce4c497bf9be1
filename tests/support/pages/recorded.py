"""What kubectl printed of every state and refusal, and the page that shows it: docs/kubectl.md.

A test on a cluster makes the state, or is refused, and holds what kubectl prints then against the file of
`tests/docs/recorded/`. With MUSTER_REWRITE=1 it writes the file, and tests/docs/test_kubectl.py the page.
"""

import os
import re
from pathlib import Path

from muster.model.findings import Reason, Severity, usual_severity
from muster.model.gang_states import GangState
from muster.model.names import STATE
from tests.support.cluster.scene import Scene
from tests.support.pages.blocks import whole

_FOLDER = Path(__file__).parents[2] / "docs" / "recorded"

PAGE = whole("docs/kubectl.md")
"""It shows nothing but what these tests have recorded."""

STATES: dict[GangState, str] = {
    GangState.ASSEMBLING: "A ResourceQuota of three pods, one used by a notebook; the RayCluster needs three.",
    GangState.WAITING_FOR_QUOTA: "A RayJob of three pods, and another job that holds 3 of the 4 cpu of their queue.",
    GangState.WAITING_FOR_KUEUE: "Kueue admits the gangs of this namespace, and its ClusterQueue is full.",
    GangState.EXCEEDS_KUEUE_QUOTA: "Kueue admits, and the gang is larger than every flavor of its ClusterQueue.",
    GangState.EXCEEDS_CAPABILITY: "The capability of the queue was lowered while the gang waited.",
    GangState.EXCEEDS_ELASTIC_QUOTA: "The ElasticQuota of the namespace was lowered while the gang waited.",
    GangState.QUEUE_NOT_FOUND: "The queue was deleted while the gang waited.",
    GangState.QUEUE_CLOSED: "The queue was closed while the gang waited.",
    GangState.QUEUE_NOT_LEAF: "The queue got a queue below it while the job was suspended. It has no PodGroup there.",
    GangState.ON_HOLD: "The user has put the RayCluster on hold.",
    GangState.DEADLINE_NEAR: "A PyTorchJob with `activeDeadlineSeconds: 20` in a full queue, just created.",
    GangState.DEADLINE_PASSED: "The same job, 20 seconds later.",
    GangState.ADMITTED: "The queue has room, and no node has the memory that the head requests.",
    GangState.UNSCHEDULABLE: "The same gang, later: the queue says `muster.dev/unplaced-after: 10s`.",
    GangState.REQUEUED: "The same with `muster.dev/requeue-after: 5s` on the RayCluster.",
    GangState.RUNNING: "A RayService whose RayCluster runs.",
    GangState.NOT_READY: "The image of a worker cannot be pulled; the queue says `muster.dev/unplaced-after: 5s`.",
    GangState.RUNS_LONGER: "A PyTorchJob with `muster.dev/runs-at-most: 1m`, a minute later.",
    GangState.EVICTED: "Volcano's action reclaim takes a worker of an elastic PyTorchJob for a queue below its share.",
    GangState.FINISHED: "A PyTorchJob whose pods have succeeded.",
    GangState.STILL_HELD: "The label of the queue was taken off the RayCluster while its gang waited.",
    GangState.SUSPENDED: "A PyTorchJob that waited, and was suspended.",
    GangState.INVALID: "A ResourceQuota of the namespace allows no PodGroup.",
    GangState.FOREIGN_POD_GROUP: "A PodGroup with the gang's name exists already.",
    GangState.EXTERNAL: "The pod templates of the RayCluster name a PodGroup themselves.",
    GangState.NOT_MANAGED: "The RayCluster was labelled `muster.dev/managed: false` while it ran.",
}
"""How each state came to be."""

MORE = {"TrainJob": "A TrainJob that waits; the Trainer makes its JobSet, JobSet the Jobs, and the Jobs the pods."}
"""Further transcripts of what users write."""

REFUSALS: dict[Reason, str] = {
    Reason.INVALID: "A PyTorchJob of three pods with `minAvailable: 7`.",
    Reason.QUEUE_NOT_FOUND: "A RayCluster that names a queue which does not exist.",
    Reason.EXCEEDS_CAPABILITY: "A RayCluster of 5 cpu for a queue of 4.",
}
"""The refusals that the page shows; tests/apiserver/test_kubectl.py compares all of them."""

_HEAD = """\
<!-- Written by MUSTER_REWRITE=1 pytest tests/docs/test_kubectl.py from tests/docs/recorded/. -->

# What kubectl shows

The event of each state of a gang, and refusals, as kubectl printed them on a real cluster.
[reasons.md](reasons.md) explains each state, [denials.md](denials.md) each refusal and warning.

`kubectl describe` of a workload shows the events, also for a RayJob, RayService or TrainJob whose gang an operator
creates. Other events are left out here. The state is also a label of the PodGroup:
"""
_REFUSED = """\
A refusal names its reason in parentheses, the file, the webhook, and the message; an object that cannot be read is
invalid. [denials.md](denials.md) has the message of every reason."""
_LISTED = GangState.WAITING_FOR_QUOTA
"""The state whose PodGroups the page shows."""
_MUSTERS = re.compile(r"^ +(Normal|Warning) +(\w+) +(.+?) +muster\.dev/controller +(.+)$", re.MULTILINE)


def refusing() -> list[Reason]:
    """The reasons for which muster refuses, in the order of the page."""
    return [reason for reason in Reason if usual_severity(reason) is Severity.DENY]


# The letters of the ends that Kubernetes gives to names (`rand.SafeEncodeString`): no vowels, so that no word is one.
_RANDOM_END = re.compile(r"-[bcdfghjklmnpqrstvwxz2456789]{5}\b")


def alike(text: str) -> str:
    """A line without what differs from one run to the next: numbers and the random ends of names."""
    return re.sub(r"\d+", "#", _RANDOM_END.sub("-*", " ".join(text.split())))


def told(text: str) -> set[tuple[str, str, str]]:
    """The events of muster's in what `kubectl describe` printed: type, reason and message."""
    return {(kind, reason, alike(message)) for kind, reason, _, message in _MUSTERS.findall(text)}


def keep_state(scene: Scene, state: GangState, subject: str, *, name: str = "", groups: str = "podgroups") -> None:
    """Hold what kubectl shows of `subject` (`rayjob/bert`) in this state against the record `name`, of the state.

    The event must be there by now. `groups` are the PodGroups of the scheduler, where several kinds may be served.
    """
    described = scene.kubectl("describe", subject).stdout
    _, found, events = described.partition("\nEvents:")
    assert found, described
    done = scene.kubectl("get", groups, "-L", STATE, check=False)
    listed = done.stdout or done.stderr
    text = (
        f"$ kubectl describe {subject}\n...\nEvents:{events.rstrip()}\n"
        f"$ kubectl get {groups} -L {STATE}\n{listed.rstrip()}\n"
    )
    assert any(reason == state for _, reason, _ in told(text)), text
    before, now = _of_state(recorded(name or state), state), _of_state(text, state)
    _keep(name or state, text, bool(before) and before <= now)


def _of_state(text: str, state: GangState) -> set[tuple[str, ...]]:
    """What must be there each time: its event, and the label where the gang is still so when kubectl lists it."""
    _, _, listed = text.partition("$ kubectl get podgroups")
    labelled = {("label", str(state)) for line in listed.splitlines()[2:] if line.split()[-1:] == [str(state)]}
    return {one for one in told(text) if one[1] == state} | labelled


def keep_refusal(reason: Reason, text: str) -> None:
    """Hold a transcript of a refusal against its record."""
    name = _refused(reason)
    _keep(
        name, text, {alike(line) for line in text.splitlines()} == {alike(line) for line in recorded(name).splitlines()}
    )


def _keep(name: str, text: str, same: bool) -> None:
    """Write the record anew, where that is asked for and it is not the same; else insist that it is."""
    file = _FOLDER / f"{name}.txt"
    if not same and os.environ.get("MUSTER_REWRITE"):
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
        return
    how = "MUSTER_REWRITE=1 with this test, then with tests/docs/test_kubectl.py, writes it"
    assert same, f"tests/docs/recorded/{file.name} is out of date; {how}. Now kubectl prints:\n{text}"


def _refused(reason: Reason) -> str:
    return f"Refused{reason}"


def recorded(name: str) -> str:
    """The transcript of that name; "" where there is none."""
    file = _FOLDER / f"{name}.txt"
    return file.read_text() if file.exists() else ""


def refusal(reason: Reason) -> str:
    """The transcript of a refusal; "" where there is none."""
    return recorded(_refused(reason))


def page() -> str:
    """The text of docs/kubectl.md."""
    _, command, listed = recorded(_LISTED).partition("$ kubectl get podgroups")
    parts = [_HEAD, f"```console\n{command}{listed}```\n", "## States\n"]
    parts += [_section(state, STATES[state], _events(recorded(state), state)) for state in GangState]
    parts += ["## More of what users write\n"]
    parts += [_section(name, how, _events(recorded(name))) for name, how in MORE.items()]
    parts += ["## Refusals\n", f"{_REFUSED}\n"]
    parts += [_section(one, how, refusal(one)) for one, how in REFUSALS.items()]
    return "\n".join(parts)


def _events(transcript: str, state: GangState | None = None) -> str:
    """The command of a transcript, and muster's events in its output, of all states or one: type, reason, message."""
    command, _, printed = transcript.partition("\n")
    found = _MUSTERS.findall(printed)
    events = [(kind, reason, message) for kind, reason, _, message in found if state in (None, reason)]
    return "\n".join([command, *(f"  {kind}  {reason}  {message}" for kind, reason, message in events), ""])


def _section(name: str, how: str, transcript: str) -> str:
    return f"### {name}\n\n{how}\n\n```console\n{transcript}```\n"
