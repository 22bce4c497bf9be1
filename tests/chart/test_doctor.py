"""What `muster doctor` expects is what the chart, and Volcano's installer, have."""

import yaml

from hack.testbed.modules import module_dir
from muster.cli.doctor.installed import Deployment, Installation, WebhookConfiguration, installations
from muster.cli.doctor.schedulers import VOLCANO, coscheduling
from muster.cli.doctor.webhooks import ENTRIES, JUDGING, OF_VOLCANO
from muster.model.objects import convert
from tests.support.chart.rendered import Program, Render, Rendered
from tests.support.cli.doctor_snapshots import found, ours

_OTHERS = "webhook.existingSecret=own"
_WITHOUT_VOLCANO = ("schedulers={coscheduling}", "queues.source=muster")


def installed(rendered: Rendered) -> Installation:
    """What the doctor would take it for."""
    deployments = [convert(one, Deployment) for one in rendered.documents if one["kind"] == "Deployment"]
    configurations = [convert(rendered.one(kind), WebhookConfiguration) for kind in ENTRIES]
    (found,) = installations(tuple(deployments), tuple(configurations))
    return found


def test_the_names_that_are_looked_for_are_the_charts(render: Render) -> None:
    rendered = render(release="gangs", namespace="batch")
    found = installed(rendered)
    assert (found.namespace, found.name, found.release) == ("batch", "gangs-muster", "gangs")
    assert found.secret == rendered.one("Secret")["metadata"]["name"]
    assert found.service == rendered.one("Service")["metadata"]["name"]
    assert f"--lease={found.lease}" in rendered.arguments("controller")
    assert (found.own_certificates, found.validation) == (True, "deny")


def test_others_certificates_are_looked_for_where_they_are(render: Render) -> None:
    found = installed(render(_OTHERS))
    assert (found.own_certificates, found.secret) == (False, "own")


def test_the_entries_that_are_looked_for_are_the_charts(render: Render) -> None:
    rendered = render()
    for kind, entries in ENTRIES.items():
        shown = {one["name"]: one["clientConfig"]["service"]["path"] for one in rendered.one(kind)["webhooks"]}
        assert shown == entries


def test_without_validation_those_that_judge_are_left_out(render: Render) -> None:
    entries = {name for kind in ENTRIES for name in ENTRIES[kind]}
    assert set(render("validation=off").webhooks()) == entries - JUDGING


def test_with_queues_of_musters_own_volcanos_are_nobodys_business(render: Render) -> None:
    rendered = render(*_WITHOUT_VOLCANO)
    entries = {name for kind in ENTRIES for name in ENTRIES[kind]}
    assert set(rendered.webhooks()) == entries - OF_VOLCANO
    (rule,) = rendered.webhooks()["queues.muster.dev"]["rules"]
    assert (rule["apiGroups"], rule["apiVersions"], rule["resources"]) == (["muster.dev"], ["v1alpha1"], ["gangqueues"])


def test_the_programs_of_volcano_are_known_as_its_installer_has_them() -> None:
    installer = (module_dir("volcano.sh/volcano") / "installer/volcano-development.yaml").read_bytes()
    manifests = [one for one in yaml.load_all(installer, yaml.CSafeLoader) if one and one["kind"] == "Deployment"]
    names = {program.image_name for one in manifests for program in convert(one, Deployment).programs}
    assert set(VOLCANO) <= names


def test_the_programs_of_scheduler_plugins_are_known_as_its_own_chart_installs_them(helm: Program) -> None:
    """The scheduler, and nothing else of it."""
    installer = module_dir("sigs.k8s.io/scheduler-plugins") / "manifests/install/charts/as-a-second-scheduler"
    manifests = yaml.load_all(helm("template", "sp", str(installer)).stdout, yaml.CSafeLoader)
    deployments = [convert(one, Deployment) for one in manifests if one and one["kind"] == "Deployment"]
    told = ("--schedulers=coscheduling", "--queue-source=muster")
    said = found(coscheduling, deployments=(ours("webhook", *told), ours("controller", *told), *deployments))
    assert sorted(one.message.partition("(")[2].partition(" v")[0] for one in said) == [
        "scheduler of scheduler-plugins",
    ]
