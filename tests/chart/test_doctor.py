"""What `muster doctor` expects is what the chart, and Volcano's installer, have."""

import pytest
import yaml

from hack.testbed.modules import module_dir
from muster.cli.doctor.installed import VOLCANO, Installation, installations, needed
from muster.cli.doctor.objects import Deployment, WebhookConfiguration
from muster.cli.doctor.schedulers import coscheduling, program_of
from muster.cli.doctor.webhooks import ENTRIES, JUDGING, OF_VOLCANO
from muster.model.objects import convert
from tests.support.cases import cases
from tests.support.chart.rendered import Program, Render, Rendered
from tests.support.cli.doctor_snapshots import found, ours
from tests.support.cluster.rbac import granted, of_rules

_OTHERS = "webhook.existingSecret=own"
_WITHOUT_VOLCANO = ("schedulers={coscheduling}", "queues.source=muster")
_BOTH = "schedulers={volcano,coscheduling=default-scheduler}"


def installed(rendered: Rendered) -> Installation:
    """What the doctor would take it for."""
    deployments = [convert(one, Deployment) for one in rendered.documents if one["kind"] == "Deployment"]
    configurations = [convert(rendered.one(kind), WebhookConfiguration) for kind in ENTRIES]
    (found,) = installations(tuple(deployments), tuple(configurations))
    return found


@pytest.mark.parametrize("component", ["webhook", "controller"])
@cases(
    "values",
    ("own certificates", ()),
    ("others'", (_OTHERS,)),
    ("two gang schedulers", (_BOTH,)),
    ("GangQueues", _WITHOUT_VOLCANO),
    ("ElasticQuotas", (_BOTH, "elasticQuotas=true")),
    ("Kueue", ("admitters={ledger,kueue}",)),
)
def test_the_rights_that_are_checked_are_the_charts(render: Render, component: str, values: tuple[str, ...]) -> None:
    """All of them and no others, under whatever name."""
    rendered = render(*values, release="gangs", namespace="batch")
    name = f"gangs-muster-{component}"
    assert sorted(needed(component, installed(rendered))) == sorted(granted(rendered.documents, name))
    assert installed(rendered).account(component) == name


def test_the_names_that_are_looked_for_are_the_charts(render: Render) -> None:
    rendered = render(release="gangs", namespace="batch")
    found = installed(rendered)
    assert (found.namespace, found.name, found.release) == ("batch", "gangs-muster", "gangs")
    assert found.secret == rendered.one("Secret")["metadata"]["name"]
    assert found.service == rendered.one("Service")["metadata"]["name"]
    assert f"--lease={found.lease}" in rendered.arguments("controller")
    assert (found.own_certificates, found.validation, found.refuses_lost_queues({})) == (True, "deny", True)


def test_others_certificates_are_looked_for_where_they_are(render: Render) -> None:
    found = installed(render(_OTHERS))
    assert (found.own_certificates, found.secret) == (False, "own")


def test_the_entries_that_are_looked_for_are_the_charts(render: Render) -> None:
    rendered = render()
    for kind, entries in ENTRIES.items():
        shown = {
            entry["name"]: (
                entry["clientConfig"]["service"]["path"],
                tuple(
                    sorted((rule["apiGroups"][0], plural) for rule in entry["rules"] for plural in rule["resources"])
                ),
                {operation for rule in entry["rules"] for operation in rule["operations"]},
            )
            for entry in rendered.one(kind)["webhooks"]
        }
        assert shown == {name: (path, things, set(operations)) for name, (path, things, operations) in entries.items()}


def test_without_validation_those_that_judge_are_left_out(render: Render) -> None:
    entries = {name for kind in ENTRIES for name in ENTRIES[kind]}
    assert set(render("validation=off").webhooks()) == entries - JUDGING


def test_with_queues_of_musters_own_volcanos_are_nobodys_business(render: Render) -> None:
    rendered = render(*_WITHOUT_VOLCANO)
    entries = {name for kind in ENTRIES for name in ENTRIES[kind]}
    assert set(rendered.webhooks()) == entries - OF_VOLCANO
    (rule,) = rendered.webhooks()["queues.muster.dev"]["rules"]
    assert (rule["apiGroups"], rule["apiVersions"], rule["resources"]) == (["muster.dev"], ["v1alpha1"], ["gangqueues"])


def test_the_rights_that_volcano_needs_are_among_those_that_its_installer_gives() -> None:
    """The tag of its images is one that the doctor knows them by."""
    installer = (module_dir("volcano.sh/volcano") / "installer/volcano-development.yaml").read_bytes()
    manifests = [one for one in yaml.load_all(installer, yaml.CSafeLoader) if one]
    programs = set()
    for manifest in manifests:
        if manifest["kind"] != "Deployment":
            continue
        deployment = convert(manifest, Deployment)
        for program in map(program_of, deployment.containers):
            if program in VOLCANO:
                programs.add(program)
                role = next(
                    one
                    for one in manifests
                    if (one["kind"], one["metadata"]["name"]) == ("ClusterRole", deployment.metadata.name)
                )
                assert set(VOLCANO[program]) <= set(of_rules(role["rules"]))
    assert programs == set(VOLCANO)


def test_the_programs_of_scheduler_plugins_are_known_as_its_own_chart_installs_them(helm: Program) -> None:
    """Both, and nothing else of it."""
    installer = module_dir("sigs.k8s.io/scheduler-plugins") / "manifests/install/charts/as-a-second-scheduler"
    manifests = yaml.load_all(helm("template", "sp", str(installer)).stdout, yaml.CSafeLoader)
    deployments = [convert(one, Deployment) for one in manifests if one and one["kind"] == "Deployment"]
    told = ("--schedulers=coscheduling", "--queue-source=muster")
    said = found(coscheduling, deployments=(ours("webhook", *told), ours("controller", *told), *deployments))
    assert sorted(one.message.partition("(")[2].partition(",")[0] for one in said) == [
        "controller of scheduler-plugins",
        "scheduler of scheduler-plugins",
    ]
