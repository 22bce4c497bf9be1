"""What the operators do: each with its own gang flag, on a control plane where nothing is ever scheduled."""

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from hack.testbed import PATIENCE, Nodes, Testbed, TestbedError, wait_for
from hack.testbed.parts import PARTS
from muster.model.objects import convert
from muster.model.pods import Pod
from muster.resources.amounts import as_text
from muster.resources.pod_requests import pod_requests
from muster.workloads import KINDS
from tests.conformance.case import Case, Manifest, Operator
from tests.conformance.groups import PRIORITIES
from tests.conformance.prediction import Prediction
from tests.conformance.rules import NONE, REFUSED

# There are hundreds of cases at once.
_SECONDS = 2 * PATIENCE
# What samples expect to be there before them; without it no pod is made.
_ACCOUNT = re.compile(r'"serviceAccountName": "([^"]+)"')


@dataclass
class Observed:
    """What came of a case: its PodGroup, or REFUSED by the apiserver, or NONE; and where it was."""

    namespace: str
    group: Manifest | str
    requests: dict[str, set[str]] = field(default_factory=dict)
    """What the pods of each role ask for, as text; `observe_pods` fills it."""


@contextmanager
def control_plane(*operators: Operator) -> Iterator[Testbed]:
    """Start a testbed with these operators and Volcano's CRDs; no scheduler runs, so that no status interferes."""
    with Testbed.start(parts=["volcano"], nodes=Nodes(count=1, gpu=0), progress=print) as testbed:
        for part in ("volcano-scheduler", "volcano-controllers", "kube-scheduler", "kwok"):
            testbed.stop_part(part)
        for name, value in PRIORITIES.items():
            _create(testbed, [_object("scheduling.k8s.io/v1", "PriorityClass", name) | {"value": value}])
        for operator in operators:
            for needed in PARTS[operator.part].needs:
                if needed not in testbed.processes():
                    testbed.start_part(needed)
            testbed.start_part(operator.part, extra_args=operator.flags)
        yield testbed


def observe(testbed: Testbed, cases: Sequence[Case], predictions: Sequence[Prediction]) -> list[Observed]:
    """What comes of every case.

    All of them at once, each in a namespace of its own. Those that should have no group are looked at when a workload
    of their kind that was created after them has one. Raises TestbedError when a group does not come that should.
    """
    operator = cases[0].operator
    names = [f"{operator.part}-{index:03}" for index in range(len(cases))]
    _create(testbed, [_object("v1", "Namespace", name) for name in names])
    accounts = [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": account, "namespace": name}}
        for case, name in zip(cases, names, strict=True)
        for account in sorted(set(_ACCOUNT.findall(json.dumps([case.manifest, *case.context]))))
    ]
    _create(testbed, accounts)
    accepted = {name for name, prediction in zip(names, predictions, strict=True) if prediction.ends in (None, NONE)}
    created = _create_cases(testbed, zip(names, cases, strict=True), accepted)
    awaited = {
        name for name, prediction in zip(names, predictions, strict=True) if name in created and prediction.ends is None
    }
    found = _await_groups(testbed, awaited)
    last = {case.kind: case for case, name in zip(cases, names, strict=True) if name in awaited}
    ends = {f"{operator.part}-end-{kind.lower()}": case for kind, case in last.items()}
    _create(testbed, [_object("v1", "Namespace", name) for name in ends])
    _create_cases(testbed, ends.items(), set(ends))
    found = _await_groups(testbed, awaited | set(ends))
    return [Observed(name, found.get(name, NONE) if name in created else REFUSED) for name in names]


def observe_pods(testbed: Testbed, observed: Sequence[Observed], awaited: Mapping[str, set[str]]) -> None:
    """Fill in what the operators' pods ask for; `awaited` are the roles by namespace that must have a pod.

    The Training operator makes none before Volcano has let the group into its queue, so that is done here.
    """
    enqueued = [
        {
            "apiVersion": "scheduling.volcano.sh/v1beta1",
            "kind": "PodGroup",
            "metadata": {"name": one.group["metadata"]["name"], "namespace": one.namespace},
            "status": {"phase": "Inqueue"},
        }
        for one in observed
        if not isinstance(one.group, str)
    ]
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": enqueued})
    testbed.kubectl(
        "apply", "--server-side", "--force-conflicts", "--validate=ignore", "-f", "-", input=text, timeout=_SECONDS
    )
    missing: dict[str, set[str]] = {}

    def all_there() -> bool:
        seen = _requests(testbed)
        for one in observed:
            one.requests = seen[one.namespace]
        missing.clear()
        missing.update({name: roles - set(seen[name]) for name, roles in awaited.items() if roles - set(seen[name])})
        return not missing

    try:
        wait_for("the operators' pods", all_there, _SECONDS, interval=1)
    except TestbedError as error:
        raise TestbedError(f"{error}; missing {missing}") from error


def _requests(testbed: Testbed) -> defaultdict[str, dict[str, set[str]]]:
    """What the pods ask for, by namespace and role."""
    found: defaultdict[str, dict[str, set[str]]] = defaultdict(dict)
    for manifest in json.loads(testbed.kubectl("get", "pods", "-A", "-ojson").stdout)["items"]:
        pod = convert(manifest, Pod)
        role = next(
            (role for kind in KINDS if kind.pod_label in pod.metadata.labels and (role := kind.role_of(pod))), ""
        )
        text = ", ".join(f"{name} {amount}" for name, amount in as_text(pod_requests(pod.spec)).items())
        found[pod.metadata.namespace].setdefault(role, set()).add(text)
    return found


def _await_groups(testbed: Testbed, namespaces: set[str]) -> dict[str, Manifest]:
    groups: dict[str, Manifest] = {}

    def all_there() -> bool:
        items = json.loads(testbed.kubectl("get", "podgroups.scheduling.volcano.sh", "-A", "-ojson").stdout)["items"]
        groups.update({group["metadata"]["namespace"]: group for group in items})
        return namespaces <= groups.keys()

    try:
        wait_for("the operators' PodGroups", all_there, _SECONDS, interval=0.5)
    except TestbedError as error:
        raise TestbedError(f"{error}; missing in {', '.join(sorted(namespaces - groups.keys()))}") from error
    return groups


def _create_cases(testbed: Testbed, cases: Iterable[tuple[str, Case]], accepted: set[str]) -> set[str]:
    """Create the cases that can be, after what they are made from, each in its namespace; return their namespaces.

    `accepted` are those of the cases that should be taken.
    """
    cases = list(cases)
    _create(testbed, [_placed(one, name) for name, case in cases for one in case.context])
    created = _create(testbed, [_placed(case.manifest, name) for name, case in cases])

    def all_taken() -> bool:
        again = [_placed(case.manifest, name) for name, case in cases if name in accepted - created]
        if again:
            created.update(_create(testbed, again))
        return accepted <= created

    # What is still refused then is seen to be.
    with suppress(TestbedError):
        wait_for("the operators to take what they should", all_taken, interval=1)
    return created


def _placed(manifest: Manifest, namespace: str) -> Manifest:
    if manifest["kind"].startswith("Cluster"):
        return manifest
    return manifest | {"metadata": manifest["metadata"] | {"namespace": namespace}}


def _create(testbed: Testbed, objects: Sequence[Manifest]) -> set[str]:
    """Create what can be created and return its namespaces."""
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)})
    output = 'jsonpath={.metadata.namespace}{"\\n"}'
    done = testbed.kubectl(
        "create", "--validate=ignore", "-f", "-", "-o", output, input=text, check=False, timeout=_SECONDS
    )
    print(done.stderr)  # noqa: T201 (shown by pytest with a failure)
    return set(done.stdout.split())


def _object(api_version: str, kind: str, name: str) -> Manifest:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}}
