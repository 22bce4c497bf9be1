"""`muster doctor` on a real apiserver: a cluster in order, and each way to break it with what is said then."""

import copy
import datetime as dt
import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from hack.testbed import Testbed, wait_for
from hack.testbed.api import Api
from hack.testbed.muster import MusterInstall
from muster.model.names import MANAGED_BY, MUSTER
from muster.model.resource import (
    ADMISSION_POLICY_BINDINGS,
    DEPLOYMENTS,
    MUTATING_WEBHOOKS,
    POD_GROUPS,
    SECRETS,
    VALIDATING_WEBHOOKS,
)
from muster.process.certificates import issue
from tests.apiserver.conftest import EXCLUDED
from tests.support.cli.doctor import (
    LEASE,
    SOUND_VOLCANO,
    Doctor,
    edited,
    everywhere,
    in_order,
    lead,
    stand_down,
)
from tests.support.cluster.desk import PATIENCE, Desk
from tests.support.cluster.grants import account, bind, revoke

pytestmark = pytest.mark.part("commands")

_SECRET = SECRETS.path("muster-system", "muster-webhook-tls")
_NAMES = [f"muster-webhook.muster-system{end}" for end in (".svc", "")]


@pytest.fixture(scope="module")
def healthy(bare: Testbed, webhook_of_session: MusterInstall, calls: Api) -> Iterator[Testbed]:
    with in_order(bare, webhook_of_session, calls):
        yield bare


@pytest.fixture
def doctor(healthy: Testbed, capsys: pytest.CaptureFixture[str]) -> Doctor:
    capsys.readouterr()
    return Doctor(healthy, capsys)


@pytest.fixture
def down(healthy: Testbed, webhook_of_session: MusterInstall) -> None:
    """No webhook runs."""
    del healthy
    webhook_of_session.stop_webhooks()


@pytest.mark.usefixtures("webhook")
def test_a_cluster_in_order(doctor: Doctor) -> None:
    code, out, err = doctor.run()
    assert (code, err) == (0, "")
    assert out.endswith("\n0 problems, 0 warnings\n")
    assert "a pod of a gang would be held by muster's gate" in out
    levels = {one["level"] for one in yaml.safe_load(doctor.run("-oyaml")[1])["diagnoses"]}
    assert levels == {"ok"}


@pytest.mark.usefixtures("down")
def test_no_webhook_that_answers(doctor: Doctor) -> None:
    found = doctor.found()
    assert set(found) == {"problem answers"}
    (pod,) = found["problem answers"]
    assert pod.startswith('a pod of a gang cannot be created: Internal error occurred: failed calling webhook "plain.')


@pytest.mark.usefixtures("down")
def test_no_webhook_that_answers_and_nobody_waits_for_it(doctor: Doctor, calls: Api) -> None:
    ignore = {"failurePolicy": "Ignore"}
    with (
        edited(calls, MUTATING_WEBHOOKS.path(name="muster"), lambda one: everywhere(one, **ignore)),
        edited(calls, VALIDATING_WEBHOOKS.path(name="muster"), lambda one: everywhere(one, **ignore)),
    ):
        # The apiserver hears of it by a watch.
        (pod,) = wait_for(
            "nobody to wait",
            lambda: _starting(doctor.found()["problem answers"], "is admitted unchanged"),
            PATIENCE,
        )
    assert pod.startswith("a pod of a gang is admitted unchanged in namespace default")


def _starting(lines: list[str], *words: str) -> list[str]:
    """The lines, if each has its word."""
    return lines if all(word in line for word, line in zip(words, lines, strict=True)) else []


@pytest.mark.usefixtures("down")
def test_authorities_that_the_apiserver_does_not_trust(doctor: Doctor, calls: Api) -> None:
    """A webhook that runs would put them right."""
    now = dt.datetime.now(dt.UTC)
    issued = (issue(_NAMES, when).secret_data() for when in (now, now - dt.timedelta(days=400)))
    stranger, past = (data["ca.crt"] for data in issued)
    with (
        edited(calls, MUTATING_WEBHOOKS.path(name="muster"), lambda one: everywhere(one, caBundle=stranger)),
        edited(calls, VALIDATING_WEBHOOKS.path(name="muster"), lambda one: everywhere(one, caBundle=past)),
    ):
        found = doctor.found()["problem certificates"]
    assert [line.partition(":")[0] for line in found] == [
        "the caBundle holds a CA that did not sign the serving certificate",
        "the caBundle holds only certificates that are not valid now",
    ]
    with edited(calls, MUTATING_WEBHOOKS.path(name="muster"), lambda one: everywhere(one, caBundle="")):
        (line,) = doctor.found()["problem certificates"]
    assert line.startswith("the caBundle holds no certificate: ray.pods.muster.dev, ")


def test_what_was_edited_is_named_and_an_upgrade_puts_it_back(
    doctor: Doctor, webhook: MusterInstall, calls: Api
) -> None:
    """As the cure says."""
    path = VALIDATING_WEBHOOKS.path(name="muster")
    configuration = calls.done("GET", path)
    configuration["webhooks"] = [one for one in configuration["webhooks"] if one["name"] != "jobs.workloads.muster.dev"]
    calls.done("PUT", path, configuration)
    calls.delete(ADMISSION_POLICY_BINDINGS.path(name="muster-pods"))
    calls.delete(MUTATING_WEBHOOKS.path(name="muster"))
    found = doctor.found()
    assert found["problem webhooks"] == [
        "MutatingWebhookConfiguration muster is missing: objects are admitted without muster",
        "ValidatingWebhookConfiguration muster: entry jobs.workloads.muster.dev is missing",
    ]
    assert found["problem policies"] == [
        "not in force: muster-pods (the policy, or its binding with action Deny, is missing)"
    ]
    webhook.upgrade({}, "--force-conflicts")
    webhook.start_webhook()
    webhook.wait_ready(PATIENCE)
    wait_for("all to be in order again", lambda: doctor.found() == {}, PATIENCE)


@pytest.mark.usefixtures("webhook")
def test_a_kind_of_volcano_s_that_is_not_served(doctor: Doctor, calls: Api) -> None:
    """As when its CRD is gone; here nothing is lost."""

    def edit(definition: dict[str, Any]) -> None:
        for version in definition["spec"]["versions"]:
            version["served"] = False

    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/podgroups.scheduling.volcano.sh"
    with edited(calls, path, edit):
        wait_for("the apiserver to serve it no more", lambda: "problem kinds" in doctor.found(), PATIENCE)
        assert doctor.found()["problem kinds"] == [
            "scheduling.volcano.sh/v1beta1 is not served: no podgroups; no gang can be created"
        ]
    wait_for("it to be served", lambda: calls("GET", POD_GROUPS.path("default")).ok, PATIENCE)


def test_a_controller_that_is_gone(doctor: Doctor, webhook: MusterInstall, calls: Api) -> None:
    """And what it leaves: a PodGroup whose workload was deleted with `--cascade=orphan` is nobody's."""
    stand_down(webhook)
    assert doctor.found() == {
        "problem lease": ["Lease muster-system/muster-controller has no holder: waiting gangs keep waiting"]
    }

    orphan = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": "orphan", "labels": {MANAGED_BY: MUSTER}},
        "spec": {"minMember": 1, "queue": "default"},
    }
    calls.done("POST", POD_GROUPS.path("default"), orphan)
    (line,) = doctor.found()["warning podgroups"]
    assert line.startswith("PodGroup default/orphan (muster's, no phase) has had no owner and no pods for ")
    calls.done("DELETE", POD_GROUPS.path("default", "orphan"))

    def crashed(lease: dict[str, Any]) -> None:
        lease["spec"] |= {
            "holderIdentity": "ghost",
            "renewTime": "2026-01-01T00:00:00.000000Z",
            "leaseDurationSeconds": 15,
        }

    with edited(calls, LEASE, crashed):
        (line,) = doctor.found()["problem lease"]
    assert re.search(
        r"is held by ghost, renewed \d+ days ago, with a lease duration of 15 seconds: there is no leader$", line
    )
    calls.done("DELETE", LEASE)
    assert doctor.found()["problem lease"] == [
        "Lease muster-system/muster-controller is missing: no controller has ever been the leader"
    ]
    lead(webhook, calls)


@pytest.mark.usefixtures("webhook")
def test_deployments_without_pods(doctor: Doctor, calls: Api) -> None:
    def scale(deployment: dict[str, Any]) -> None:
        deployment["spec"]["replicas"] = 0

    with (
        edited(calls, DEPLOYMENTS.path("muster-system", "muster-controller"), scale),
        edited(calls, DEPLOYMENTS.path("volcano-system", "volcano-scheduler"), scale),
    ):
        wait_for(
            "their pods to be gone",
            lambda: set(doctor.found()) == {"problem installation", "problem volcano"},
            PATIENCE,
        )
        found = doctor.found()
    assert found["problem installation"] == [
        "Deployment muster-system/muster-controller is scaled to 0: waiting gangs keep waiting"
    ]
    (line,) = found["problem volcano"]
    assert line == (
        f"Deployment volcano-system/volcano-scheduler (vc-scheduler {SOUND_VOLCANO}): 0 of 0 pods Ready: no gang is "
        "placed"
    )
    wait_for("their pods to be back", lambda: doctor.found() == {}, PATIENCE)


def test_operators_with_gang_flags_of_their_own(doctor: Doctor, desk: Desk) -> None:
    """Their own manifests, with one more argument."""
    files = {
        "github.com/ray-project/kuberay/ray-operator": ("config/manager/manager.yaml", "--batch-scheduler=volcano"),
        "github.com/kubeflow/training-operator": ("manifests/base/deployment.yaml", "--gang-scheduler-name=volcano"),
        "github.com/kubeflow/mpi-operator": ("manifests/base/deployment.yaml", "--gang-scheduling=volcano"),
    }
    plain, flagged = [], []
    for module, (file, argument) in files.items():
        manifest = yaml.safe_load((doctor.testbed.module_dir(module) / file).read_bytes())
        manifest["metadata"].pop("namespace", None)
        plain.append(manifest)
        flagged.append(copy.deepcopy(manifest))
        (container,) = flagged[-1]["spec"]["template"]["spec"]["containers"]
        container["args"] = [*container.get("args", []), argument]
    for manifests, warned in ((plain, []), (flagged, list(files.values()))):
        for manifest in manifests:
            desk.api.apply(desk.path(DEPLOYMENTS, manifest["metadata"]["name"]), manifest)
        lines = doctor.found().get("warning operators", [])
        assert len(lines) == len(warned)
        for _, argument in warned:
            assert any(
                f"Deployment {desk.namespace}/" in line and f" has {argument}: it creates" in line for line in lines
            )
    desk.delete(DEPLOYMENTS, *(manifest["metadata"]["name"] for manifest in plain))


def test_rights_that_the_caller_lacks_are_said(doctor: Doctor, desk: Desk) -> None:
    """First those of nobody, then of who may view the cluster."""
    kubeconfig = doctor.testbed.service_account_kubeconfig(desk.namespace, "default")
    found = doctor.found(kubeconfig=kubeconfig)
    assert {level.partition(" ")[0] for level in found} == {"unknown"}
    lines = [line for several in found.values() for line in several]
    assert all(line.startswith("could not check ") for line in lines)
    assert "could not check the pods of muster: you cannot list deployments.apps" in lines
    viewer = f"{desk.namespace}-viewer"
    bind(desk.api, viewer, "view", account(desk.namespace))
    wait_for(
        "RBAC to have heard of it",
        lambda: "unknown installation" not in doctor.found(kubeconfig=kubeconfig),
        PATIENCE,
    )
    found = doctor.found(kubeconfig=kubeconfig)
    revoke(desk.api, viewer)
    assert found["unknown certificates"] == [
        (
            "could not check the contents of Secret muster-system/muster-webhook-tls: you cannot get secrets "
            "muster-webhook-tls in namespace muster-system"
        )
    ]
    assert found["unknown answers"][0] == (
        "could not check how muster changes a pod: you cannot create pods in namespace default (as a dry run)"
    )


@pytest.mark.usefixtures("webhook")
@pytest.mark.parametrize("namespace", ["muster-system", EXCLUDED])
def test_a_trial_where_muster_looks_away_proves_nothing(doctor: Doctor, namespace: str) -> None:
    found = doctor.found(f"--namespace={namespace}")
    assert found["unknown answers"][0] == (
        f"could not check how muster changes a pod: muster is not active in namespace {namespace}"
    )
