"""`muster explain` of a tenant who has Kubernetes' role `view` in one namespace, with the chart's `readerRole`."""

import json
import subprocess
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from controller.events import REPORTING_CONTROLLER
from hack.testbed import Testbed, wait_for
from hack.testbed.api import Api
from hack.testbed.muster import MusterInstall
from muster.kube.events import EventSource, Regarding
from muster.model.names import MESSAGE, QUEUE_LABEL, STATE
from muster.model.resource import EVENTS, POD_GROUPS, PODS, QUEUES
from muster.workloads import KINDS
from tests.apiserver.conftest import running
from tests.support.cli.in_process import muster
from tests.support.cluster.desk import PATIENCE, Desk, open_desk
from tests.support.cluster.grants import account, bind, grant, on
from tests.support.cluster.helm_release import CHART
from tests.support.manifests import applied
from tests.support.manifests.applied import ray_cluster

pytestmark = pytest.mark.part("commands")

RAY_CLUSTERS = KINDS[0].resource
ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
TRAINER = "/apis/trainer.kubeflow.org/v1alpha1"
WORDS = 'needs cpu 3 and memory 3Gi; queue "tenants" has cpu 1 free of cpu 4; position 1 of 1 waiting'
NO_LEASE = "no controller of muster holds the lease: states may be old, and no waiting gang starts"


class Tenant(NamedTuple):
    """A namespace, and the kubeconfig of an account that may only view it."""

    desk: Desk
    kubeconfig: Path

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """What the command answers."""
        return muster("explain", f"--kubeconfig={self.kubeconfig}", *words)

    def explained(self, *words: str) -> dict[str, Any]:
        """The one entry of the answer."""
        done = self.run(f"--namespace={self.desk.namespace}", "--output=json", *words)
        assert (done.returncode, done.stderr) == (0, "")
        (entry,) = json.loads(done.stdout)
        return dict(entry)


@pytest.fixture(scope="module")
def tenant(bare: Testbed, calls: Api, webhook_of_session: MusterInstall, every_kind: None) -> Iterator[Tenant]:
    """The role is aggregated by the real controller manager, and taken back in the end."""
    del every_kind
    running(webhook_of_session)
    text = bare.helm(
        *("template", "muster", str(CHART), "--namespace=muster-system", "--show-only=templates/rbac-reader.yaml"),
        *("--set=image.repository=r", "--set=readerRole=true"),
    ).stdout
    role = calls.create(ROLES, yaml.safe_load(text))["metadata"]["name"]
    with open_desk(bare, calls, "viewed") as desk:
        path = f"/api/v1/namespaces/{desk.namespace}/serviceaccounts"
        calls.create(path, {"metadata": {"name": "tenant"}})
        bind(calls, "tenant", "view", account(desk.namespace, "tenant"), namespace=desk.namespace)
        groups = partial(calls, "GET", POD_GROUPS.path(desk.namespace))
        who = f"system:serviceaccount:{desk.namespace}:tenant"
        wait_for("the role to be aggregated", lambda: groups(user=who).ok, PATIENCE)
        calls.create(QUEUES.path(), applied.queue("tenants", cpu="4"))
        yield Tenant(desk, bare.service_account_kubeconfig(desk.namespace, "tenant"))
        calls.delete(QUEUES.path(name="tenants"))
        calls.delete(f"{ROLES}/{role}")
        wait_for("the role to be taken back", lambda: not groups(user=who).ok, PATIENCE)


def waiting(desk: Desk, name: str) -> None:
    """A gang whose first pod is held, with the PodGroup that the controller makes of it."""
    made = desk.create(ray_cluster(name).label(QUEUE_LABEL, "tenants").workers(2).manifest())
    desk.create(desk.member(made, "headgroup"))
    group(desk, made, f"ray-{name}-pg", minMember=3)


def group(desk: Desk, workload: dict[str, Any], name: str, **spec: object) -> None:
    owner = {key: workload[key] for key in ("apiVersion", "kind")}
    owner |= {key: workload["metadata"][key] for key in ("name", "uid")}
    desk.create(
        {
            "apiVersion": POD_GROUPS.api_version,
            "kind": POD_GROUPS.kind,
            "metadata": {
                "name": name,
                "labels": {"app.kubernetes.io/managed-by": "muster"},
                "annotations": {STATE: "WaitingForQuota", MESSAGE: WORDS},
                "ownerReferences": [{**owner, "controller": True}],
            },
            "spec": {"queue": "tenants", **spec},
        },
    )


def test_a_viewer_hears_why_his_gang_waits_and_what_he_may_not_know(tenant: Tenant) -> None:
    """By each name that the gang has; without the right to list anything in the whole cluster."""
    desk = tenant.desk
    waiting(desk, "mine")
    pod = desk.list(PODS)[0]["metadata"]["name"]
    for word in ("raycluster/mine", "podgroup/ray-mine-pg", f"pod/{pod}"):
        entry = tenant.explained(word)
        assert (entry["workload"]["name"], entry["state"], entry["message"]) == ("mine", "WaitingForQuota", WORDS)
        assert (entry["scheduling"]["queue"], entry["needs"]["cpu"]) == ("tenants", "3")
        assert [(role["replicas"], role["gated"]) for role in entry["roles"]] == [(1, 1), (2, 0)]
        assert (entry["position"], entry["queues"]) == (None, [])
        limits = "cannot list queues.scheduling.volcano.sh: limits and free resources are unknown"
        assert entry["unknown"] == [NO_LEASE, limits]
        no_lease, others, *rest = tenant.explained("--ledger", word)["unknown"]
        assert no_lease == NO_LEASE
        assert others.startswith(f'can list only in "{desk.namespace}", not in all namespaces: pods, podgroups.')
        assert others.endswith("; gangs of other namespaces, what they hold, and all positions are unknown")
        assert rest == [
            limits,
            "cannot list priorityclasses.scheduling.k8s.io: all priorities count as 0, and positions may be wrong",
            "cannot list runtimeclasses.node.k8s.io: the overhead of pods is unknown",
            "cannot list clustertrainingruntimes.trainer.kubeflow.org: they are unknown",
        ]
    text = tenant.run(f"--namespace={desk.namespace}", "raycluster/mine").stdout
    assert max(map(len, text.splitlines())) <= 80


def test_who_may_not_read_podgroups_hears_the_newest_event_of_muster(tenant: Tenant, bare: Testbed) -> None:
    """As with the role `edit` and a chart without `readerRole`: nothing is said to be missing that is there."""
    desk = tenant.desk
    waiting(desk, "hidden")
    meta = desk.get(RAY_CLUSTERS, "hidden")["metadata"]
    about = Regarding(RAY_CLUSTERS.api_version, RAY_CLUSTERS.kind, desk.namespace, "hidden", meta["uid"])
    source = EventSource(REPORTING_CONTROLLER, "test", "Decide")
    looks = [on(resource, "get", "list") for resource in (PODS, EVENTS, RAY_CLUSTERS)]
    desk.api.create(f"/api/v1/namespaces/{desk.namespace}/serviceaccounts", {"metadata": {"name": "narrow"}})
    grant(desk.api, "narrow", looks, account(desk.namespace, "narrow"), namespace=desk.namespace)
    narrow = Tenant(desk, bare.service_account_kubeconfig(desk.namespace, "narrow"))
    wait_for("the right", lambda: narrow.run(f"-n{desk.namespace}", "raycluster/hidden").returncode == 0, PATIENCE)
    entry = narrow.explained("raycluster/hidden")
    words = "you may not read PodGroups, and it has no event of muster; the chart value readerRole adds this right"
    assert (entry["state"], entry["message"]) == ("", f"{words} to the roles view, edit and admin of a namespace")
    assert entry["gang"] == {"podGroup": "ray-hidden-pg", "exists": None, "phase": "", "minMember": None}
    event = source.event(about, "WaitingForQuota", WORDS, warning=False, seconds=time.time())
    desk.api.create(EVENTS.path(desk.namespace), event)
    entry = narrow.explained("raycluster/hidden")
    words = f"{WORDS} (its newest event; you may not read PodGroups)"
    assert (entry["state"], entry["message"]) == ("WaitingForQuota", words)


def test_a_runtime_that_a_viewer_may_not_read_is_not_said_to_be_missing(tenant: Tenant, calls: Api) -> None:
    """Of the TrainJob he hears what the controller has said, and before that what he may not read."""
    job = {"name": "node", "template": {"spec": {"template": {"spec": {"containers": [{"name": "node"}]}}}}}
    runtime = {
        "apiVersion": TRAINER.removeprefix("/apis/"),
        "kind": "ClusterTrainingRuntime",
        "metadata": {"name": "viewed"},
        "spec": {"template": {"spec": {"replicatedJobs": [job]}}},
    }
    train_job = {
        "apiVersion": TRAINER.removeprefix("/apis/"),
        "kind": "TrainJob",
        "metadata": {"name": "train", "labels": {QUEUE_LABEL: "tenants"}},
        "spec": {"runtimeRef": {"name": "viewed"}},
    }
    calls.create(f"{TRAINER}/clustertrainingruntimes", runtime)
    try:
        made = tenant.desk.create(train_job)
        entry = tenant.explained("trainjob/train")
        words = (
            'ClusterTrainingRuntime "viewed" cannot be read with your permissions, '
            "and the controller has not reported a state yet"
        )
        assert (entry["state"], entry["message"]) == ("", words)
        text = tenant.run(f"--namespace={tenant.desk.namespace}", "trainjob/train").stdout
        assert text.splitlines()[1].startswith('  unknown: ClusterTrainingRuntime "viewed" cannot be read')
        group(tenant.desk, made, entry["gang"]["podGroup"], minMember=1)
        entry = tenant.explained("trainjob/train")
        assert (entry["state"], entry["message"]) == ("WaitingForQuota", WORDS)
    finally:
        calls.delete(f"{TRAINER}/clustertrainingruntimes/viewed")


def test_a_viewer_who_asks_in_all_namespaces_is_told_to_name_one(tenant: Tenant) -> None:
    done = tenant.run("--all-namespaces", "raycluster/mine")
    words = (
        'cannot look for RayCluster "mine" in all namespaces: you may not list rayclusters.ray.io there; '
        "name a namespace with -n"
    )
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"muster explain: {words}\n")


def test_another_namespace_stays_closed(tenant: Tenant) -> None:
    done = tenant.run("--namespace=default", "raycluster/mine")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith('muster explain: 403 Forbidden: rayclusters.ray.io "mine" is forbidden')
    words = "the chart value readerRole adds this right to the roles view, edit and admin of a namespace"
    assert done.stderr.endswith(f"; {words}\n")
