"""Reviews of Queues."""

from collections.abc import Sequence
from typing import Any

import pytest

from muster.admitters import Admitter
from muster.gangs.intent import Defaults
from muster.model.findings import Reason, Severity, Validation
from muster.model.names import HOLD, NAMESPACE_SELECTOR
from muster.queueing.sources import QUEUE_SOURCES
from muster.schedulers import named
from tests.support.cases import cases
from tests.support.manifests.observed import DEFAULTS, JSON, pod_group, queue
from tests.support.webhook.admission_reviews import Reader, answered, knowing, request
from webhook.reviews.queues import review_queue

ORG = queue("org", cpu="8", memory="8Gi")
SMALL = queue("small", cpu="2")


def below(parent: str, name: str = "q", guarantee: dict[str, str] | None = None, **capability: str) -> JSON:
    made = queue(name)
    made["spec"] |= {"capability": capability, "parent": parent, "guarantee": {"resource": guarantee or {}}}
    return made


async def reviewed(
    new: JSON,
    *others: JSON,
    old: JSON | None = None,
    groups: Sequence[JSON] | None = (),
    defaults: Defaults = DEFAULTS,
) -> dict[str, Any]:
    there = [*others, *([old] if old else [])]
    knowledge = knowing(Reader(pod_groups=groups), queues=there, defaults=defaults)
    asked = request(new, old=old, operation="UPDATE" if old else "CREATE")
    return answered(await review_queue(asked, knowledge))


@cases(
    "new",
    ("below the root", queue(cpu="4")),
    ("below the root by name", below("root", cpu="4")),
    ("as large as the one above", below("org", cpu="8")),
    ("all of it guaranteed", below("org", cpu="8", guarantee={"cpu": "8"})),
    ("kept for some", queue(annotations={NAMESPACE_SELECTOR: "team in (a, b)"})),
)
async def test_a_sound_queue_passes(new: JSON) -> None:
    assert await reviewed(new, ORG) == {"uid": "u", "allowed": True}


@pytest.mark.parametrize(
    ("new", "line"),
    [
        (below("none"), 'spec.parent: queue "none" does not exist; create it first, or name another'),
        (below("q"), 'spec.parent: queue "q" is "q" itself or below it; name another parent'),
        (below("low"), 'spec.parent: queue "low" is "q" itself or below it; name another parent'),
        (below("org", cpu="9"), 'spec.capability: cpu 9 is above the cpu 8 of queue "org" above it; lower it'),
        (
            below("org", cpu="4", guarantee={"cpu": "5"}),
            "spec.guarantee.resource: cpu 5 is above spec.capability cpu 4; lower it",
        ),
        (
            below("org", guarantee={"cpu": "9"}),
            'spec.guarantee.resource: cpu 9 is above the cpu 8 of queue "org" above it; lower it',
        ),
        (
            below("org", guarantee={"cpu": "4"}),
            'spec.guarantee.resource: cpu 9 is guaranteed below queue "org", which has cpu 8; lower it',
        ),
        (
            below("through", guarantee={"cpu": "4"}),
            'cpu 9 is guaranteed below queue "through", and queue "org" above it has cpu 8; lower it',
        ),
        (queue(cpu="1"), 'spec.capability: cpu 1 is below the cpu 3 of queue "low" below it; lower that first'),
        (queue(cpu="four"), 'spec.capability.cpu: "four" is not a quantity'),
        (
            queue(annotations={"muster.dev/gate": "open"}),
            'metadata.annotations[muster.dev/gate]: "open" is not known; use queue or assemble or off',
        ),
        (
            queue(annotations={"muster.dev/patience": "long"}),
            'metadata.annotations[muster.dev/patience]: "long" is not a duration such as 30s, 10m or 1h30m',
        ),
        (
            queue(annotations={NAMESPACE_SELECTOR: ""}),
            "metadata.annotations[muster.dev/namespace-selector]: it is empty; write a label selector as kubectl's -l",
        ),
        *(
            (queue(annotations={f"muster.dev/{key}": "x"}), f'metadata.annotations[muster.dev/{key}]: "x" is not known')
            for key in ("queueing", "preemption", "bound")
        ),
    ],
)
async def test_what_cannot_be_is_refused_by_field(new: JSON, line: str) -> None:
    promised = below("org", "kept", guarantee={"cpu": "5"}), below("through", "held", guarantee={"cpu": "5"})
    response = await reviewed(new, ORG, below("q", "low", cpu="3"), below("org", "through"), *promised)
    assert not response["allowed"]
    assert line in response["status"]["message"]


BELOW_P = (below("p", "a", guarantee={"cpu": "8"}), below("p", "m"), below("m", "l", cpu="8"))


@cases(
    "old, new, line",
    (
        "less than is guaranteed to a queue, or than one further down has",
        queue("p", cpu="20"),
        queue("p", cpu="7"),
        'spec.capability: cpu 7 is below the cpu 8 of queue "a" and 1 more below it; lower that first',
    ),
    (
        "a capability where there was none",
        below("p", "m"),
        below("p", "m", cpu="4"),
        'spec.capability: cpu 4 is below the cpu 8 of queue "l" below it; lower that first',
    ),
    (
        "another parent that has less",
        below("p", "m"),
        below("x", "m"),
        (
            'spec.parent: the cpu 8 of queue "l" below it is above the cpu 4 that there is in queue "x"; '
            "lower that first, or name another parent"
        ),
    ),
    (
        "another parent below one that has less",
        below("p", "m"),
        below("y", "m"),
        (
            'spec.parent: the cpu 8 of queue "l" below it is above the cpu 4 that there is in queue "y"; '
            "lower that first, or name another parent"
        ),
    ),
    (
        "less than is guaranteed to all right below it together",
        below("root", "g", cpu="20"),
        below("root", "g", cpu="9"),
        "spec.capability: cpu 9 is below the cpu 10 that is guaranteed below it; lower that first",
    ),
    (
        "less than is guaranteed to all right below one that has no capability",
        below("root", "top", cpu="20"),
        below("root", "top", cpu="9"),
        "spec.capability: cpu 9 is below the cpu 10 that is guaranteed below it; lower that first",
    ),
    (
        "another parent that has less than is guaranteed to all right below it together",
        below("top", "free"),
        below("eight", "free"),
        (
            'spec.parent: the cpu 10 that is guaranteed below it is above the cpu 8 that there is in queue "eight"; '
            "lower that first, or name another parent"
        ),
    ),
)
async def test_a_queue_is_not_given_less_than_those_below_it_have(old: JSON, new: JSON, line: str) -> None:
    """However far below they are."""
    promised = [below("g", name, guarantee={"cpu": "5"}) for name in ("g1", "g2")]
    through = [below("top", "free"), *(below("free", name, guarantee={"cpu": "5"}) for name in ("f1", "f2"))]
    others = [queue("p", cpu="20"), *BELOW_P, queue("x", cpu="4"), below("x", "y"), *promised]
    others += [queue("top", cpu="20"), queue("eight", cpu="8"), *through]
    others = [one for one in others if one["metadata"]["name"] != new["metadata"]["name"]]
    response = await reviewed(new, *others, old=old)
    assert not response["allowed"]
    assert response["status"]["message"] == line


@cases(
    "old, new",
    ("more of what is too little", queue("p", cpu="4"), queue("p", cpu="6")),
    ("no capability any more", queue("p", cpu="4"), queue("p")),
    ("the queue above has too little as well", below("x", "m", cpu="2"), below("x", "m")),
    ("away from where there is too little", below("x", "m"), below("root", "m")),
    ("to where there is more of it", below("x", "m"), below("z", "m")),
)
async def test_queues_below_one_with_too_little_do_not_keep_it_from_being_put_right(old: JSON, new: JSON) -> None:
    others = [queue("x", cpu="4"), queue("z", cpu="6"), *BELOW_P]
    others = [one for one in others if one["metadata"]["name"] != new["metadata"]["name"]]
    assert (await reviewed(new, *others, old=old))["allowed"]


async def test_a_guarantee_below_a_parent_that_is_missing_is_refused_for_the_parent() -> None:
    """Also where the queue `root` is an object, as Volcano makes it: this guarantee is of none of its children."""
    response = await reviewed(below("none", guarantee={"cpu": "1"}), queue("root", cpu="8"))
    assert not response["allowed"]
    assert [one["field"] for one in response["status"]["details"]["causes"]] == ["spec.parent"]


async def test_what_was_wrong_before_stays_editable() -> None:
    old, new = below("none", cpu="4"), below("none", cpu="5")
    response = await reviewed(new, old=old)
    assert response["allowed"]
    assert response["warnings"] == ['spec.parent: queue "none" does not exist; create it first, or name another']


@cases(
    "old, new, line",
    (
        "another fault of the same field",
        below("none"),
        below("low"),
        'spec.parent: queue "low" is "q" itself or below it; name another parent',
    ),
    (
        "further above",
        below("org", cpu="9"),
        below("org", cpu="90"),
        'spec.capability: cpu 90 is above the cpu 8 of queue "org" above it; lower it',
    ),
    (
        "further below",
        queue(cpu="2"),
        queue(cpu="1"),
        'spec.capability: cpu 1 is below the cpu 3 of queue "low" below it; lower that first',
    ),
)
async def test_an_old_fault_excuses_no_worse_one(old: JSON, new: JSON, line: str) -> None:
    """A ring would stop the scheduling of the whole cluster."""
    response = await reviewed(new, ORG, below("q", "low", cpu="3"), old=old)
    assert not response["allowed"]
    assert response["status"]["message"] == line


@cases(
    "old, new",
    ("less far above", below("org", cpu="90"), below("org", cpu="9")),
    ("less far below", queue(cpu="1"), queue(cpu="2")),
    ("a guarantee", below("org", guarantee={"cpu": "20"}), below("org", guarantee={"cpu": "9"})),
)
async def test_an_old_fault_may_be_put_right_in_steps(old: JSON, new: JSON) -> None:
    response = await reviewed(new, ORG, below("q", "low", cpu="3"), old=old)
    assert response["allowed"]
    assert response["warnings"]


async def test_a_hold_that_does_nothing_is_no_new_fault_of_a_queue_that_had_it() -> None:
    """Where an administrator has it refused."""
    validation = Validation(reasons={Reason.VALUE_IGNORED: Severity.DENY})
    defaults = Defaults(admitters=(Admitter.KUEUE,), validation=validation)
    held = queue(cpu="4", annotations={HOLD: "true"})
    assert not (await reviewed(held, defaults=defaults))["allowed"]
    more = queue(cpu="5", annotations={HOLD: "true"})
    assert (await reviewed(more, old=held, defaults=defaults))["allowed"]


async def test_no_queue_is_put_below_one_that_holds_pod_groups() -> None:
    """One PodGroup in a queue that is no leaf stops the scheduling of the whole cluster."""
    groups = [pod_group("a", queue="org"), pod_group("b", queue="org"), pod_group("c", queue="other")]
    response = await reviewed(below("org"), ORG, groups=groups)
    assert response["status"]["message"] == (
        'spec.parent: queue "org" holds 2 PodGroups (team/a and others) itself, and would stop all scheduling; '
        "move what is there first"
    )
    assert (await reviewed(below("org"), ORG, groups=groups[2:]))["allowed"]
    assert (await reviewed(below("org"), ORG, below("org", "older"), groups=groups))["allowed"], "it is one already"


async def test_where_the_pod_groups_of_a_queue_cannot_be_read_it_gets_no_first_queue_below_it() -> None:
    """It can be tried again, and scheduling that has stopped stops for all."""
    response = await reviewed(below("org"), ORG, groups=None)
    assert response["status"]["message"] == (
        'spec.parent: queue "org" may hold PodGroups itself, which would stop all scheduling, and they cannot be read '
        "now; try again"
    )
    warns = Defaults(validation=Validation(reasons={Reason.QUEUE_HIERARCHY: Severity.WARN}))
    response = await reviewed(below("org"), ORG, groups=None, defaults=warns)
    assert (response["allowed"], len(response["warnings"])) == (True, 1)
    assert (await reviewed(below("org"), ORG, below("org", "older"), groups=None))["allowed"], "it is one already"


async def test_of_a_scheduler_whose_kind_is_not_served_there_are_no_pod_groups() -> None:
    """Its CRD may come later than the chart value that names it."""
    both = Defaults(schedulers=named("volcano", "coscheduling"))
    assert (await reviewed(below("org"), ORG, defaults=both))["allowed"]


async def test_a_lower_capability_says_what_it_leaves_outside() -> None:
    """What is held, and who waits for more than it allows; with numbers."""
    new = queue(cpu="2")
    new["status"]["allocated"] = {"cpu": "3", "memory": "1Gi"}
    groups = [
        pod_group("large", queue="q", minResources={"cpu": "4"}),
        pod_group("small", queue="q", minResources={"cpu": "1"}),
        pod_group("runs", queue="q", phase="Running", minResources={"cpu": "3"}),
        pod_group("elsewhere", queue="r", minResources={"cpu": "4"}),
    ]
    response = await reviewed(new, old=queue(cpu="4"), groups=groups)
    assert response["allowed"]
    assert response["warnings"] == [
        "spec.capability: cpu 2 is below the cpu 3 held there; it runs on, and nothing starts until less is held",
        "spec.capability: PodGroup team/large can never start with cpu 2, the first needs cpu 4",
    ]
    assert "warnings" not in await reviewed(new, old=queue(cpu="1"), groups=groups), "it was raised"
    assert len((await reviewed(new, old=queue(cpu="4"), groups=None))["warnings"]) == 1, "nobody knows who waits"


async def test_a_capability_that_leaves_something_outside_is_refused_where_that_is_wished() -> None:
    new = queue(cpu="2")
    new["status"]["allocated"] = {"cpu": "3"}
    defaults = Defaults(validation=Validation(reasons={Reason.CAPABILITY_LOWERED: Severity.DENY}))
    response = await reviewed(new, old=queue(cpu="4"), defaults=defaults)
    assert response["status"]["reason"] == "CapabilityLowered"
    assert (await reviewed(new, old=queue(cpu="1"), defaults=defaults))["allowed"], "it was raised"


@cases(
    "lowered, others",
    ("right below", "top", ()),
    ("further down", "top", (below("mid", "leaf"),)),
    ("all there are", "root", (queue("top"), below("mid", "leaf"))),
)
async def test_a_lower_capability_leaves_outside_what_waits_in_the_queues_below(
    lowered: str, others: tuple[JSON, ...]
) -> None:
    """A queue without a capability of its own has that of the one above it."""
    where = "leaf" if others else "mid"
    groups = [pod_group("large", queue=where, minResources={"cpu": "4"}), pod_group("other", queue="beside")]
    response = await reviewed(
        queue(lowered, cpu="2"), below("top", "mid"), *others, old=queue(lowered, cpu="8"), groups=groups
    )
    assert response["warnings"] == [
        "spec.capability: PodGroup team/large can never start with cpu 2, the first needs cpu 4"
    ]


async def test_without_validation_queues_are_the_administrators() -> None:
    off = Defaults(validation=Validation(Severity.OFF))
    assert (await reviewed(below("none"), defaults=off))["allowed"]
    warned = await reviewed(below("none"), defaults=Defaults(validation=Validation(Severity.WARN)))
    assert (warned["allowed"], len(warned["warnings"])) == (True, 1)


@cases(
    "spec, line",
    ("pods", {"capability": {"cpu": "4", "pods": 2}}, 'spec.capability: "pods"'),
    ("cpus", {"capability": {"cpus": 4}}, 'spec.capability: "cpus" (did you mean cpu?)'),
    ("gpu", {"capability": {"gpu": 4}}, 'spec.capability: "gpu"'),
    ("a capital", {"capability": {"Memory": 4}}, 'spec.capability: "Memory" (did you mean memory?)'),
    ("requests", {"capability": {"requests.cpu": 4}}, 'spec.capability: "requests.cpu" (did you mean cpu?)'),
    (
        "limits",
        {"capability": {"limits.nvidia.com/gpu": 4}},
        'spec.capability: "limits.nvidia.com/gpu" (did you mean nvidia.com/gpu?)',
    ),
    ("deserved", {"deserved": {"gpu": 4}}, 'spec.deserved: "gpu"'),
    ("guarantee", {"guarantee": {"resource": {"gpu": 4}}}, 'spec.guarantee.resource: "gpu"'),
)
@pytest.mark.parametrize("source", ["volcano", "muster"])
async def test_a_key_that_limits_nothing_is_named(source: str, spec: JSON, line: str) -> None:
    kept = QUEUE_SOURCES[source]
    new = {**queue("q"), "apiVersion": f"{kept.group}/{kept.version}", "kind": kept.kind, "spec": spec}
    (only,) = (await reviewed(new, defaults=Defaults(queue_source=kept)))["warnings"]
    assert only.startswith(f"{line}: no pod requests that, and it limits nothing; ")


@pytest.mark.parametrize("name", ["cpu", "memory", "ephemeral-storage", "hugepages-2Mi", "nvidia.com/gpu"])
async def test_what_pods_request_is_a_key_of_a_capability(name: str) -> None:
    new = queue("q")
    new["spec"]["capability"] = {name: 4}
    assert await reviewed(new) == {"uid": "u", "allowed": True}


async def test_an_annotation_that_nobody_reads_is_told_of_and_taken() -> None:
    response = await reviewed(queue("q", annotations={"muster.dev/patienc": "20m"}))
    assert response["allowed"]
    assert response["warnings"] == [
        "metadata.annotations[muster.dev/patienc]: unknown annotation; did you mean muster.dev/patience?"
    ]
