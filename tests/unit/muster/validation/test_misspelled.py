"""What looks as if it were meant for muster, and is not read, is told with what was meant."""

from typing import Any

import pytest

from muster.gangs.intent import Defaults
from muster.model.findings import Reason, Severity, Validation
from muster.model.names import GANG, GANG_SIZE, KUEUE_QUEUE, MANAGED, QUEUE_LABEL, REQUEUE_AFTER
from muster.validation.context import Context
from tests.support.manifests.families import judged
from tests.support.manifests.observed import JSON, ray_cluster, template

Labels = dict[str, str]
NO_SUCH_KEY = "unknown label; did you mean"


def lines(labels: Labels, annotations: Labels | None = None, **manifest: Any) -> list[str]:  # noqa: ANN401 - JSON
    found = manifest or ray_cluster()
    found["metadata"] = {"name": "demo", "namespace": "team", "labels": labels, "annotations": annotations or {}}
    return [one.message for one in judged(found).warnings if one.reason is Reason.MISSPELLED]


@pytest.mark.parametrize(
    ("key", "meant"),
    [
        ("volcano.sh/queuename", "volcano.sh/queue-name"),
        ("volcano.sh/queue_name", "volcano.sh/queue-name"),
        ("volcano.sh/Queue-Name", "volcano.sh/queue-name"),
        ("volcano.sh/queue", "volcano.sh/queue-name"),
        ("volcano.sh/qeueu-name", "volcano.sh/queue-name"),
        ("vulcano.sh/queue-name", "volcano.sh/queue-name"),
        ("ray.io/schedulername", "ray.io/scheduler-name"),
        ("ray.io/scheduler", "ray.io/scheduler-name"),
        ("rayio/scheduler-name", "ray.io/scheduler-name"),
        ("ray.io/priority-class", "ray.io/priority-class-name"),
        ("ray.io/priority", "ray.io/priority-class-name"),
        ("muster.dev/manage", "muster.dev/managed"),
    ],
)
def test_a_label_that_is_nearly_one_is_told_with_the_right_one(key: str, meant: str) -> None:
    """Also of a workload that says nothing else: it would be nobody's gang without a word."""
    assert lines({key: "q"}) == [f"metadata.labels[{key}]: {NO_SUCH_KEY} {meant}?"]


@pytest.mark.parametrize(
    "key",
    [
        KUEUE_QUEUE,
        "kueue.x-k8s.io/priority-class",
        "ray.io/cluster",
        "ray.io/group",
        "ray.io/gang-scheduling-enabled",
        "volcano.sh/job-name",
        "volcano.sh/task-spec",
        "app.kubernetes.io/name",
        "queue-name",
        "team",
        "k" * 300,
    ],
)
def test_the_labels_of_others_are_theirs(key: str) -> None:
    assert lines({key: "q"}) == []


def test_a_right_key_beside_the_wrong_one_makes_that_somebody_elses() -> None:
    assert lines({"volcano.sh/queue-name": "q", "volcano.sh/queue": "q"}) == []


def test_a_key_in_the_wrong_map_is_told() -> None:
    assert lines({"scheduling.volcano.sh/queue-name": "q"}, {"volcano.sh/queue-name": "q"}) == [
        "metadata.labels[scheduling.volcano.sh/queue-name]: it is read in metadata.annotations; move it there",
        "metadata.annotations[volcano.sh/queue-name]: it is read in metadata.labels; move it there",
    ]
    assert lines({}, {"muster.dev/requeue_after": "1m"}) == [
        "metadata.annotations[muster.dev/requeue_after]: unknown annotation; did you mean muster.dev/requeue-after?"
    ]
    assert lines({"muster.dev/requeueafter": "1m"}) == [
        f"metadata.labels[muster.dev/requeueafter]: {NO_SUCH_KEY} muster.dev/requeue-after, in metadata.annotations?"
    ]


def test_of_musters_own_keys_any_that_it_does_not_know_is_told() -> None:
    assert lines({"muster.dev/colour": "red"}) == [
        "metadata.labels[muster.dev/colour]: unknown label of a workload; remove it"
    ]


@pytest.mark.parametrize(("version", "kind"), [("batch/v1", "Job"), ("apps/v1", "StatefulSet")])
def test_the_gang_label_of_a_job_belongs_into_its_template(version: str, kind: str) -> None:
    pods: JSON = {"spec": {"containers": [{"name": "c"}]}}
    said: JSON = {"metadata": {"labels": {GANG: "g"}, "annotations": {"muster.dev/gang-size": "1"}}, **pods}
    found: JSON = {"apiVersion": version, "kind": kind}
    words = "it is read on the pods; write it, and the gang's size, into spec.template.metadata"
    assert lines({GANG: "g"}, **found, spec={"template": pods}) == [f"metadata.labels[{GANG}]: {words}"]
    assert lines({GANG: "g"}, **found, spec={"template": said}) == []
    assert lines({}, **found, spec={"template": pods}) == []


def test_of_thousands_of_keys_few_are_compared() -> None:
    """To compare one with those that muster reads takes as long as to read a pod."""
    many = {f"volcano.sh/other-{number}": "x" for number in range(64)}
    assert lines({**many, "volcano.sh/queuename": "q"}) == []
    del many["volcano.sh/other-0"]
    assert len(lines({**many, "volcano.sh/queuename": "q"})) == 1


@pytest.mark.parametrize("name", ["g", ""])
def test_the_gang_label_of_a_plain_pod_is_where_it_is_read(name: str) -> None:
    """An empty one is a slip of another sort: there is no template into which it could go."""
    assert lines({GANG: name}, apiVersion="v1", kind="Pod", spec={"containers": [{"name": "c"}]}) == []


@pytest.mark.parametrize(("version", "kind"), [("batch/v1", "Job"), ("apps/v1", "StatefulSet")])
def test_what_the_pods_of_a_job_do_not_get_from_it_is_told(version: str, kind: str) -> None:
    """Kubernetes makes pods of the template; what the Job says itself is judged by nobody, Kueue's label apart."""
    of_pods = {"labels": {GANG: "g", QUEUE_LABEL: "q"}, "annotations": {GANG_SIZE: "1"}}
    template: JSON = {"metadata": of_pods, "spec": {"containers": [{"name": "c"}]}}
    found: JSON = {"apiVersion": version, "kind": kind, "spec": {"template": template}}
    words = "it is read on the pods, which do not get it from there; write it into spec.template.metadata"
    own = {QUEUE_LABEL: "other", MANAGED: "false", KUEUE_QUEUE: "jobs"}
    assert lines(own, {REQUEUE_AFTER: "1m"}, **found) == [
        f"metadata.labels[{QUEUE_LABEL}]: {words}",
        f"metadata.labels[{MANAGED}]: {words}",
        f"metadata.annotations[{REQUEUE_AFTER}]: {words}",
    ]
    assert lines({QUEUE_LABEL: "q"}, **found) == []


@pytest.mark.parametrize(
    ("reason", "label", "value"),
    [(Reason.MISSPELLED, "volcano.sh/queuename", "q"), (Reason.VALUE_IGNORED, MANAGED, "yes")],
)
def test_a_slip_is_refused_where_that_is_wished(reason: Reason, label: str, value: str) -> None:
    """Also of a workload that is nobody's gang for it; what is being deleted is refused nothing."""
    strict = Context(defaults=Defaults(validation=Validation(reasons={reason: Severity.DENY})))
    found = ray_cluster(labels={label: value})
    verdict = judged(found, strict)
    assert ([one.field for one in verdict.refusals], verdict.warnings) == ([f"metadata.labels[{label}]"], ())
    found["metadata"]["deletionTimestamp"] = "2026-11-21T10:00:00Z"
    assert judged(found, strict).refusals == ()


@pytest.mark.parametrize(
    ("labels", "annotations", "line"),
    [
        ({"volcano.sh/queuename": "q"}, {}, f"labels[volcano.sh/queuename]: {NO_SUCH_KEY} {QUEUE_LABEL}?"),
        (
            {},
            {QUEUE_LABEL: "q"},
            f"annotations[{QUEUE_LABEL}]: it is read in spec.template.metadata.labels; move it there",
        ),
        ({MANAGED: "no"}, {}, f'labels[{MANAGED}]: "no" is neither "true" nor "false"; it is ignored'),
    ],
)
def test_of_a_job_of_plain_pods_the_template_is_looked_at(labels: Labels, annotations: Labels, line: str) -> None:
    """There it is that its labels are read: a misspelled queue would be the default one without a word."""
    meta = {"labels": {GANG: "g", **labels}, "annotations": {GANG_SIZE: "1", **annotations}}
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "demo", "namespace": "team"},
        "spec": {"template": {"metadata": meta, **template()}},
    }
    assert [one.message for one in judged(job).warnings] == [f"spec.template.metadata.{line}"]


def test_a_queue_of_another_scheduler_is_told_of_on_a_gang() -> None:
    labels = {QUEUE_LABEL: "q", "kai.scheduler/queue": "theirs", "yunikorn.apache.org/queue": "root.theirs"}
    manifest = ray_cluster(labels=labels)
    found = [one for one in judged(manifest).warnings if one.reason is Reason.VALUE_IGNORED]
    assert {one.field for one in found} == {f"metadata.labels[{key}]" for key in [*labels][1:]}
    assert all("the label volcano.sh/queue-name names the queue" in one.message for one in found)
