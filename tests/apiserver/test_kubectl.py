"""Every refusal as plain kubectl shows it: docs/kubectl.md."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml

from hack.testbed import Testbed, wait_for
from hack.testbed.api import Api
from hack.testbed.muster import MusterInstall
from muster.model.findings import Reason
from muster.model.names import MANAGED_BY, MUSTER, PRIORITY_CLASS_LABEL, QUEUE_LABEL, SCHEDULER_LABEL
from muster.model.resource import QUEUES
from tests.apiserver.conftest import running
from tests.support.cluster.backends import elastic_quota
from tests.support.cluster.desk import PATIENCE, Desk, Manifest, open_desk
from tests.support.manifests.applied import pytorch_job, queue, ray_cluster
from tests.support.manifests.batch import runtime, train_job, trainer
from tests.support.manifests.members import serve
from tests.support.pages.recorded import keep_refusal, refusing

pytestmark = [pytest.mark.long, pytest.mark.part("commands")]

_ELASTIC_QUOTAS = ("sigs.k8s.io/scheduler-plugins", "config/crd/bases/scheduling.x-k8s.io_elasticquotas.yaml")
# A queue for each fact, so that no test waits for another's.
_SMALL, _CLOSED, _ABOVE, _BELOW = "research", "research-old", "platform", "platform-ci"


class _Refused(NamedTuple):
    """What is applied, and as what it is refused."""

    file: str
    manifest: Manifest


@pytest.fixture(scope="module")
def desk(bare: Testbed, calls: Api, webhook_of_session: MusterInstall, every_kind: None) -> Iterator[Desk]:
    """A namespace, and queues, with the facts that the refusals are about; muster knows of two more schedulers."""
    del every_kind
    module, path = _ELASTIC_QUOTAS
    serve(bare, [bare.module_dir(module) / path])
    running(webhook_of_session)
    more = {"schedulers": "{volcano,coscheduling,kubernetes}", "elasticQuotas": "true"}
    webhook_of_session.upgrade(more)
    running(webhook_of_session)
    with open_desk(bare, calls, "transcripts") as opened:
        for name in (_SMALL, _CLOSED, _ABOVE):
            opened.create(queue(name, cpu="4"))
        below = queue(_BELOW, cpu="2")
        below["spec"]["parent"] = _ABOVE
        opened.create(below)
        calls.merge(f"{QUEUES.path(name=_CLOSED)}/status", {"status": {"state": "Closed"}})
        holder = opened.create(ray_cluster("holder").label(QUEUE_LABEL, _SMALL).manifest())
        opened.create(_pod_group_of(holder))
        opened.create(runtime("plain", trainer()))
        yield opened
        opened.delete(QUEUES, _BELOW, _SMALL, _CLOSED, _ABOVE)
    webhook_of_session.upgrade({"schedulers": "{volcano}", "elasticQuotas": "false"})
    running(webhook_of_session)


def _pod_group_of(workload: Manifest) -> Manifest:
    owner = {key: workload[key] for key in ("apiVersion", "kind")}
    owner |= {"name": workload["metadata"]["name"], "uid": workload["metadata"]["uid"], "controller": True}
    about = {"name": "ray-holder-pg", "labels": {MANAGED_BY: MUSTER}, "ownerReferences": [owner]}
    group = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup", "metadata": about}
    return {**group, "spec": {"minMember": 1, "queue": _SMALL}}


def _cluster(lane: str, workers: int = 1, label: str = "", value: str = "") -> Manifest:
    cluster = ray_cluster("bert").label(QUEUE_LABEL, lane).workers(workers).manifest()
    cluster["metadata"]["labels"] |= {label: value} if label else {}
    return cluster


def _elastic() -> Manifest:
    job = (
        pytorch_job("bert")
        .label(SCHEDULER_LABEL, "default-scheduler")
        .workers(2)
        .policy(queue=_SMALL, minAvailable=2)
        .manifest()
    )
    job["spec"]["elasticPolicy"] = {"minReplicas": 1, "maxReplicas": 4}
    return job


def _larger() -> Manifest:
    child = queue("platform-nightly", cpu="8")
    child["spec"]["parent"] = _ABOVE
    return child


_REFUSED: dict[Reason, _Refused] = {
    Reason.INVALID: _Refused(
        "job.yaml", pytorch_job("bert").workers(2).policy(queue=_SMALL, minAvailable=7).manifest()
    ),
    Reason.QUEUE_NOT_FOUND: _Refused("raycluster.yaml", _cluster("reserach")),
    Reason.QUEUE_CLOSED: _Refused("raycluster.yaml", _cluster(_CLOSED)),
    Reason.QUEUE_NOT_LEAF: _Refused("raycluster.yaml", _cluster(_ABOVE)),
    Reason.EXCEEDS_CAPABILITY: _Refused("raycluster.yaml", _cluster(_SMALL, 4)),
    Reason.EXCEEDS_RESOURCE_QUOTA: _Refused("raycluster.yaml", _cluster(_SMALL, 2)),
    Reason.EXCEEDS_ELASTIC_QUOTA: _Refused(
        "raycluster.yaml", _cluster(_ABOVE + "-free", 4, SCHEDULER_LABEL, "scheduler-plugins-scheduler")
    ),
    Reason.REQUIRED_BY_RESOURCE_QUOTA: _Refused("raycluster.yaml", _cluster(_SMALL)),
    Reason.OUTSIDE_LIMIT_RANGE: _Refused("raycluster.yaml", _cluster(_SMALL)),
    Reason.SCHEDULER_CANNOT: _Refused("job.yaml", _elastic()),
    Reason.POD_GROUP_TAKEN: _Refused("job.yaml", pytorch_job("ray-holder-pg").policy(queue=_SMALL).manifest()),
    Reason.UNKNOWN_PRIORITY_CLASS: _Refused("raycluster.yaml", _cluster(_SMALL, 1, PRIORITY_CLASS_LABEL, "hihg")),
    Reason.TRAINING_RUNTIME_NOT_FOUND: _Refused("trainjob.yaml", train_job("bert", "torch", {QUEUE_LABEL: _SMALL})),
    Reason.QUEUE_HIERARCHY: _Refused("queue.yaml", _larger()),
}


@pytest.fixture
def facts(desk: Desk, reason: Reason) -> Iterator[None]:
    """What only one refusal needs."""
    made: list[Manifest] = []
    about = {"apiVersion": "v1", "metadata": {"name": "team"}}
    if reason is Reason.EXCEEDS_RESOURCE_QUOTA:
        made = [{**about, "kind": "ResourceQuota", "spec": {"hard": {"requests.cpu": "2"}}}]
    if reason is Reason.REQUIRED_BY_RESOURCE_QUOTA:
        made = [{**about, "kind": "ResourceQuota", "spec": {"hard": {"limits.cpu": "64"}}}]
    if reason is Reason.OUTSIDE_LIMIT_RANGE:
        made = [{**about, "kind": "LimitRange", "spec": {"limits": [{"type": "Pod", "min": {"cpu": "2"}}]}}]
    if reason is Reason.EXCEEDS_ELASTIC_QUOTA:
        made = [elastic_quota("team", cpu="4", memory="64Gi"), queue(_ABOVE + "-free")]
    for one in made:
        desk.testbed.kubectl("apply", f"--namespace={desk.namespace}", "--filename=-", input=json.dumps(one))
    yield
    for one in made:
        desk.testbed.kubectl("delete", f"--namespace={desk.namespace}", "--filename=-", input=json.dumps(one))


@pytest.mark.parametrize("reason", list(_REFUSED))
def test_kubectl_shows_each_refusal(desk: Desk, facts: None, reason: Reason, tmp_path: Path) -> None:
    """What it shows is what the page has."""
    del facts
    file, manifest = _REFUSED[reason]
    path = tmp_path / file
    path.write_text(yaml.safe_dump(manifest, sort_keys=False))
    said: list[str] = []

    def refused() -> bool:
        done = desk.testbed.kubectl("apply", f"--namespace={desk.namespace}", f"--filename={path}", check=False)
        if not done.returncode:
            desk.testbed.kubectl("delete", f"--namespace={desk.namespace}", f"--filename={path}")
        said[:] = [done.stderr.replace(f"{tmp_path}/", "").replace(desk.namespace, "team")]
        return _MARKS[reason] in said[0]

    # The webhook knows it from its watches.
    wait_for(f"{reason} to be refused", refused, PATIENCE)
    keep_refusal(reason, f"$ kubectl apply -f {file}\n{said[0].rstrip()}\n")


_MARKS = {
    Reason.INVALID: "minAvailable: 7 is above",
    Reason.QUEUE_NOT_FOUND: "does not exist",
    Reason.QUEUE_CLOSED: "is Closed",
    Reason.QUEUE_NOT_LEAF: "has queues below it",
    Reason.EXCEEDS_CAPABILITY: "has capability cpu 4",
    Reason.EXCEEDS_RESOURCE_QUOTA: "ResourceQuota",
    Reason.EXCEEDS_ELASTIC_QUOTA: "ElasticQuota",
    Reason.REQUIRED_BY_RESOURCE_QUOTA: "demands of every container",
    Reason.OUTSIDE_LIMIT_RANGE: "LimitRange",
    Reason.SCHEDULER_CANNOT: "kube-scheduler places no pod",
    Reason.POD_GROUP_TAKEN: "belongs to another workload",
    Reason.UNKNOWN_PRIORITY_CLASS: "PriorityClass",
    Reason.TRAINING_RUNTIME_NOT_FOUND: "is not known",
    Reason.QUEUE_HIERARCHY: "of queue",
}


def test_all_refusals_are_made() -> None:
    assert list(_REFUSED) == refusing() == list(_MARKS)
