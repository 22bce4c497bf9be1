"""What Kueue says by its Workloads; the states were seen with Kueue 0.19.2."""

from muster.admitters.kueue import Awaited, KueueAnswer, KueueTimeouts, KueueWorkload, answer_of, newest
from muster.model.times import seconds_of
from tests.support.cases import cases
from tests.support.manifests.kueue import ADMITTED, EVICTED, FINISHED, PENDING, RESERVED, kueue_workload
from tests.support.manifests.observed import JSON, made

OLD, NEW = "2026-11-21T10:00:00Z", "2026-11-21T11:00:00Z"
SLICE = {"kueue.x-k8s.io/workload-slice-replacement-for": "ns/old"}


def workload(conditions: list[JSON], **fields: object) -> KueueWorkload:
    return made(KueueWorkload, kueue_workload(conditions, **fields))  # type: ignore[arg-type]


def said(conditions: list[JSON], **fields: object) -> KueueAnswer:
    return answer_of(workload(conditions, **fields), labelled=True)


START = seconds_of(OLD) or 0.0
NOT_AWAITED = [one for one in ADMITTED if one["type"] != "PodsReady"]
READY, SCHEDULED = ({"type": name, "status": "True"} for name in ("PodsReady", "PodsScheduled"))
UNSCHEDULED = {"type": "PodsScheduled", "status": "False", "reason": "WaitForScheduling"}


def awaited(conditions: list[JSON], timeouts: KueueTimeouts) -> Awaited | None:
    return answer_of(workload(conditions), labelled=True, timeouts=timeouts).awaited


def test_admitted_is_admitted() -> None:
    answer = said(ADMITTED)
    assert (answer.admitted, answer.message) == (True, "")


def test_every_workload_that_speaks_for_a_gang_is_asked_where_its_own_has_none_too() -> None:
    first, second = workload(ADMITTED, name="first"), workload(ADMITTED, name="second")
    assert KueueAnswer(admitted=True, workload=first, others=(second,)).workloads == (first, second)
    assert KueueAnswer(admitted=True, others=(first, second)).workloads == (first, second)
    assert KueueAnswer(admitted=True).workloads == ()


def test_kueue_counts_its_timeout_from_the_admission_while_pods_are_not_ready() -> None:
    assert awaited(ADMITTED, KueueTimeouts(60)) == Awaited(START + 60, 60)
    assert awaited(ADMITTED, KueueTimeouts(0)) is None
    assert awaited(NOT_AWAITED, KueueTimeouts(60)) is None
    assert awaited([*NOT_AWAITED, READY], KueueTimeouts(60)) is None


def test_kueue_counts_it_from_the_loss_of_a_pod_that_was_ready() -> None:
    """Hours after its admission, which would be over long ago."""
    lost = {"type": "PodsReady", "status": "False", "reason": "WaitForRecovery", "lastTransitionTime": NEW}
    at = (seconds_of(NEW) or 0.0) + 60
    assert awaited([*NOT_AWAITED, lost], KueueTimeouts(60, 20)) == Awaited(at, 60)


@cases(
    "conditions, timeouts, expected",
    ("the shorter one", ADMITTED, KueueTimeouts(60, 20), Awaited(START + 20, 20, nodes=True)),
    ("the shorter one of the pods that are ready", ADMITTED, KueueTimeouts(60, 80), Awaited(START + 60, 60)),
    ("the only one", ADMITTED, KueueTimeouts(0, 20), Awaited(START + 20, 20, nodes=True)),
    (
        "pods that Kueue has not seen on nodes",
        [*ADMITTED, UNSCHEDULED],
        KueueTimeouts(0, 20),
        Awaited(START + 20, 20, nodes=True),
    ),
    ("pods with nodes", [*ADMITTED, SCHEDULED], KueueTimeouts(60, 20), Awaited(START + 60, 60)),
    ("pods with nodes, and no other", [*ADMITTED, SCHEDULED], KueueTimeouts(0, 20), None),
    (
        "before Kueue says whether pods are ready",
        NOT_AWAITED,
        KueueTimeouts(60, 20),
        Awaited(START + 20, 20, nodes=True),
    ),
    ("pods that are ready", [*NOT_AWAITED, READY], KueueTimeouts(60, 20), None),
)
def test_kueue_counts_until_pods_have_nodes_as_well(
    conditions: list[JSON], timeouts: KueueTimeouts, expected: Awaited | None
) -> None:
    assert awaited(conditions, timeouts) == expected


@cases(
    "conditions, fields, words",
    ("no quota is free", PENDING, {}, "Kueue has not admitted it: insufficient unused quota for cpu, 2 more needed"),
    ("admission checks", RESERVED, {}, "Kueue has reserved quota for it, and its admission checks are not done"),
    (
        "evicted while Admitted is still True",
        EVICTED,
        {"requeueState": {"count": 2, "requeueAt": NEW}},
        (
            "Kueue has taken its quota back, for its pods were not ready in time: Exceeded the PodsReady timeout ns/w; "
            f"it queues again at {NEW}, for the 2. time"
        ),
    ),
    (
        "preempted",
        [*ADMITTED, {"type": "Evicted", "status": "True", "reason": "Preempted", "message": "to accommodate a"}],
        {},
        "Kueue has preempted it: to accommodate a",
    ),
    (
        "evicted for a reason of another version",
        [*ADMITTED, {"type": "Evicted", "status": "True", "reason": "Another", "message": "so it is"}],
        {},
        "Kueue has evicted it (Another): so it is",
    ),
    (
        "no condition yet",
        [],
        {},
        (
            'Kueue has not said yet why Workload "raycluster-demo-4e95f" waits: it looks at one of several equal ones, '
            "and at none while its LocalQueue leads nowhere"
        ),
    ),
    (
        "deactivated",
        ADMITTED[:1],
        {"active": False},
        'Kueue keeps it from starting, for spec.active of its Workload "raycluster-demo-4e95f" is false',
    ),
    (
        "deactivated by Kueue itself",
        [
            {
                **EVICTED[-1],
                "reason": "DeactivatedDueToRequeuingLimitExceeded",
                "message": "The workload is given up",
            }
        ],
        {"active": False},
        (
            'Kueue keeps it from starting, for spec.active of its Workload "raycluster-demo-4e95f" is false: '
            "The workload is given up"
        ),
    ),
    (
        "deactivated after an eviction",
        EVICTED,
        {"active": False},
        'Kueue keeps it from starting, for spec.active of its Workload "raycluster-demo-4e95f" is false',
    ),
)
def test_what_is_not_admitted_says_why(conditions: list[JSON], fields: dict[str, object], words: str) -> None:
    answer = said(conditions, **fields)
    assert (answer.admitted, answer.message) == (False, words)


def test_a_workload_that_kueue_makes_of_another_one_is_nobody_elses() -> None:
    """With concurrent admission there is one of each flavor, with the labels of the job's Workload."""
    variant = kueue_workload(PENDING, created=NEW)
    variant["metadata"]["ownerReferences"][0] |= {"kind": "Workload", "uid": "uid-workload"}
    assert made(KueueWorkload, variant).owners == ("uid-workload",)


def test_a_workload_that_is_being_deleted_admits_nothing() -> None:
    manifest = kueue_workload(ADMITTED)
    manifest["metadata"]["deletionTimestamp"] = NEW
    answer = answer_of(made(KueueWorkload, manifest), labelled=True)
    assert (answer.admitted, answer.message) == (
        False,
        'Kueue\'s Workload "raycluster-demo-4e95f" is being deleted',
    )


def test_without_a_workload_the_label_tells_whether_one_may_come() -> None:
    assert "in none of its queues: label it kueue.x-k8s.io/queue-name" in answer_of(None, labelled=False).message
    waiting = answer_of(None, labelled=True)
    assert (waiting.admitted, waiting.settled) == (False, False)
    assert "has made no Workload of it yet" in waiting.message


@cases(
    "found, expected",
    ("the newest, though an older one is admitted", [(ADMITTED, OLD, {}), (PENDING, NEW, {})], NEW),
    ("none that has finished", [(PENDING, OLD, {}), (FINISHED, NEW, {})], OLD),
    ("the slice before one that waits", [(ADMITTED, OLD, {}), (PENDING, NEW, SLICE)], OLD),
    ("the slice that took its place", [(FINISHED, OLD, {}), (ADMITTED, NEW, SLICE)], NEW),
    ("the only one", [(PENDING, NEW, SLICE)], NEW),
)
def test_the_newest_unfinished_workload_counts(
    found: list[tuple[list[JSON], str, dict[str, str]]], expected: str
) -> None:
    chosen = newest(
        workload(conditions, created=created, uid=created, annotations=annotations)
        for conditions, created, annotations in found
    )
    assert chosen is not None
    assert chosen.metadata.uid == expected


def test_of_finished_workloads_none_counts() -> None:
    assert newest([workload(FINISHED)]) is None
