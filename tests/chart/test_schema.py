"""values.schema.json: a value that is mistyped stops helm, with one line that names it."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from muster.model.findings import Reason
from tests.support.cases import cases
from tests.support.chart.rendered import Program


@cases(
    "value, said",
    ("no such part", "webhok.replicas=3", "'webhok' not allowed"),
    ("no such key", "webhook.replica=3", "at '/webhook': additional properties 'replica' not allowed"),
    ("deeper", "controller.lease.duration=3", "at '/controller/lease': additional"),
    ("case", "webhook.failurePolicy=fail", "value must be one of 'Fail', 'Ignore'"),
    ("beyond the apiserver's", "webhook.timeoutSeconds=31", "at '/webhook/timeoutSeconds': maximum"),
    ("a word", "webhook.replicas=two", "at '/webhook/replicas': got string, want integer"),
    ("gate", "gate=open", "at '/gate': value must be one of 'queue', 'assemble', 'off', false"),
    ("validation", "validation=maybe", "at '/validation': value must be one of 'deny', 'warn', 'off'"),
    ("a severity", "validationReasons.NoPods=no", "at '/validationReasons/NoPods': value must be"),
    ("reason", "validationReasons.NoPod=warn", "at '/validationReasons': additional properties 'NoPod'"),
    ("on or off", "enabled=maybe", "at '/enabled': got string, want boolean"),
    ("yes or no", "policies=maybe", "at '/policies': got string, want boolean"),
    ("no unit", "certManager.duration=90", "at '/certManager/duration': got number, want string"),
    ("interval", "podMonitor.interval=1.5m", "at '/podMonitor/interval': '1.5m' does not match pattern"),
    ("in its order", "serviceMonitor.interval=30s1m", "at '/serviceMonitor/interval': '30s1m' does not match"),
    (
        "no time at all",
        "controller.lease.retryPeriodSeconds=0.0",
        "at '/controller/lease/retryPeriodSeconds': '0.0' does not match pattern",
    ),
    ("two tags", "image.repository=own/muster:v1", "at '/image/repository': 'own/muster:v1' does not match"),
    ("an address", "image.repository=https://own/muster", "at '/image/repository': 'https://own/muster' does"),
    (
        "an issuer without a name",
        "certManager.issuerRef.kind=ClusterIssuer",
        "at '/certManager/issuerRef': missing property 'name'",
    ),
    ("an empty name", "certManager.issuerRef.name=", "at '/certManager/issuerRef/name': minLength"),
    ("an argument of nothing", "controller.extraArgs={}", "at '/controller/extraArgs/0': minLength"),
    ("digest", "image.digest=sha256:12", "at '/image/digest': 'sha256:12' does not match pattern"),
    ("no queue's name", "defaultQueue=Team_A", "at '/defaultQueue': 'Team_A' does not match pattern"),
    ("namespace", "excludedNamespaces={Infra}", "at '/excludedNamespaces/0': 'Infra' does not match"),
    ("no port", "webhook.ports.reviews=0", "at '/webhook/ports/reviews': minimum"),
    ("no name", "fullnameOverride=Gangs", "at '/fullnameOverride': 'Gangs' does not match"),
    (
        "in nothing",
        "namespaceSelector.matchExpressions[0].key=team,namespaceSelector.matchExpressions[0].operator=In",
        "at '/namespaceSelector/matchExpressions/0': missing property 'values'",
    ),
    (
        "exists with values",
        (
            "namespaceSelector.matchExpressions[0].key=team,namespaceSelector.matchExpressions[0].operator=Exists,"
            "namespaceSelector.matchExpressions[0].values={ml}"
        ),
        "at '/namespaceSelector/matchExpressions/0/values': maxItems: got 1, want 0",
    ),
    ("resources", "webhook.resources.limit.memory=1Gi", "'limit' not allowed"),
    (
        "of a probe that ends nobody",
        "webhook.probes.readiness.terminationGracePeriodSeconds=1",
        "at '/webhook/probes/readiness': additional properties 'terminationGracePeriodSeconds'",
    ),
    (
        "of more than all replicas",
        "webhook.podDisruptionBudget.maxUnavailable=200%",
        "at '/webhook/podDisruptionBudget/maxUnavailable': '200%' does not match pattern",
    ),
)
def test_a_mistake_is_named(helm: Program, chart: Path, value: str, said: str) -> None:
    done = helm("template", "muster", str(chart), "--set", f"image.repository=r,{value}")
    assert done.returncode
    assert said in done.stderr
    assert done.stderr.count("- at '") == 1


@pytest.mark.parametrize("value", ["image: {tag: 1.10}", "defaultQueue: 1.10", "excludedNamespaces: [1.10]"])
def test_a_number_that_yaml_has_cut_short_is_no_name(helm: Program, chart: Path, tmp_path: Path, value: str) -> None:
    """Nobody could say whether it was 1.1 or 1.10: an image of another version would run."""
    (tmp_path / "values.yaml").write_text(value)
    done = helm(
        "template", "muster", str(chart), "--set", "image.repository=r", "--values", str(tmp_path / "values.yaml")
    )
    assert done.returncode
    assert "got number, want" in done.stderr


@cases(
    "values, said",
    (
        "lease",
        "controller.lease.durationSeconds=5",
        (
            "controller.lease: durationSeconds (5) must be above renewDeadlineSeconds (10), and that above "
            "retryPeriodSeconds (2)"
        ),
    ),
    (
        "equal",
        "controller.lease.retryPeriodSeconds=10",
        (
            "controller.lease: durationSeconds (15) must be above renewDeadlineSeconds (10), and that above "
            "retryPeriodSeconds (10)"
        ),
    ),
    (
        "nobody serves",
        "webhook.replicas=0",
        (
            "webhook.replicas is 0 and webhook.failurePolicy is Fail: no pod of a gang could be created; set "
            "webhook.failurePolicy=Ignore, or run a replica"
        ),
    ),
    (
        "quotas that nobody heeds",
        "elasticQuotas=true,schedulers={volcano,kubernetes}",
        (
            "elasticQuotas is true, and coscheduling is not among schedulers: no other scheduler enforces "
            "ElasticQuotas; set elasticQuotas=false, or add coscheduling to schedulers"
        ),
    ),
    (
        "two schedulers of one name",
        "queues.source=muster,schedulers={coscheduling=default-scheduler,kubernetes}",
        (
            "schedulers: coscheduling=default-scheduler and kubernetes are both called default-scheduler, and pods "
            "name their scheduler by that alone; leave one out, or give one the schedulerName that its pods have "
            "(kubernetes=NAME)"
        ),
    ),
    (
        "two names of one's own",
        "schedulers={volcano=one,volcano,kubernetes=one}",
        "schedulers: volcano=one and kubernetes=one are both called one, and",
    ),
    (
        "nobody admits",
        "controller.replicas=0",
        "controller.replicas is 0: no gang would ever start; run a replica, or two",
    ),
    (
        "no account",
        "webhook.serviceAccount.create=false",
        (
            "webhook.serviceAccount.create is false, and webhook.serviceAccount.name is empty: name the ServiceAccount "
            "that is there, or let the chart create one"
        ),
    ),
    (
        "no account of the page",
        "page.enabled=true,page.existingSecret=s,page.serviceAccount.create=false",
        "page.serviceAccount.create is false, and page.serviceAccount.name is empty: name the",
    ),
    (
        "no name of a Service",
        "fullnameOverride=1st",
        (
            "a Service cannot have the name 1st-webhook: it begins with a letter, and has no dots; set "
            "fullnameOverride, or choose another name for the release"
        ),
    ),
    (
        "one account, created twice",
        "webhook.serviceAccount.name=m,controller.serviceAccount.name=m",
        (
            "webhook.serviceAccount and controller.serviceAccount are both m, and each would create it: choose two "
            "names, or set create=false for one of them"
        ),
    ),
    (
        "one port for reviews and probes",
        "webhook.ports.reviews=8080",
        "webhook.ports: reviews and health are both 8080: choose two ports",
    ),
    (
        "the same by the other",
        "webhook.ports.health=9443",
        "webhook.ports: reviews and health are both 9443: choose two ports",
    ),
    (
        "one port for page and probes",
        "page.enabled=true,page.existingSecret=s,page.ports.page=8080",
        "page.ports: page and health are both 8080: choose two ports",
    ),
    (
        "one port of a node for both",
        "webhook.hostNetwork=true,controller.hostNetwork=true",
        (
            "webhook.ports.health and controller.ports.health are both 8080, and both run on the nodes' network: no "
            "node could run both; choose two ports, or set hostNetwork=false for one of them"
        ),
    ),
    (
        "one port of a node for reviews and probes",
        "webhook.hostNetwork=true,controller.hostNetwork=true,controller.ports.health=9443",
        "webhook.ports.reviews and controller.ports.health are both 9443, and both run on",
    ),
    (
        "nobody may be evicted",
        "webhook.podDisruptionBudget.maxUnavailable=0",
        (
            "webhook.podDisruptionBudget.maxUnavailable is 0: no drain of a node would end; allow one replica to be "
            "evicted, or set enabled=false"
        ),
    ),
    (
        "nor a part of nobody",
        "controller.podDisruptionBudget.maxUnavailable=0%",
        "controller.podDisruptionBudget.maxUnavailable is 0%: no drain of a node would end",
    ),
    (
        "renewed before it is issued",
        "certManager.enabled=true,certManager.renewBefore=3000h",
        "certManager: renewBefore (3000h) must be below duration (2160h)",
    ),
    (
        "renewed as it is issued",
        "certManager.enabled=true,certManager.duration=1.5h,certManager.renewBefore=1h30m",
        "certManager: renewBefore (1h30m) must be below duration (1.5h)",
    ),
    (
        "two monitors",
        "podMonitor.enabled=true,serviceMonitor.enabled=true",
        (
            "podMonitor.enabled and serviceMonitor.enabled are both true: every series would be there twice; enable "
            "the one that your Prometheus selects"
        ),
    ),
)
def test_values_that_contradict_each_other_are_refused_in_a_sentence(
    helm: Program, chart: Path, values: str, said: str
) -> None:
    """Else a process would end with a traceback, or creations fail with nobody to blame."""
    done = helm("template", "muster", str(chart), "--set", f"image.repository=r,{values}")
    assert done.returncode
    assert said in done.stderr


@pytest.mark.parametrize("release", ["1st", "my.release"])
def test_a_release_whose_name_no_service_can_have_is_refused(helm: Program, chart: Path, release: str) -> None:
    """Helm takes it, and the apiserver would stop the installation in the middle."""
    done = helm("template", release, str(chart), "--set", "image.repository=r")
    assert done.returncode
    assert f"a Service cannot have the name {release}-muster-webhook" in done.stderr
    assert not helm("template", release, str(chart), "--set", "image.repository=r,fullnameOverride=muster").returncode


@cases(
    "values",
    ("nobody renews", "certManager.renewBefore=3000h"),
    ("just below", "certManager.enabled=true,certManager.duration=1h30m,certManager.renewBefore=89m59s999ms"),
    ("an account by name", "webhook.serviceAccount.create=false,webhook.serviceAccount.name=mine"),
    ("no page", "page.serviceAccount.create=false"),
    ("four schedulers, four names", "schedulers={volcano,volcano=own,coscheduling,kubernetes}"),
    ("a node's port and a pod's", "controller.hostNetwork=true"),
    ("two ports of a node", "webhook.hostNetwork=true,controller.hostNetwork=true,controller.ports.health=18080"),
    ("a percentage", "controller.podDisruptionBudget.maxUnavailable=10%"),
    ("a registry with a port", "image.repository=registry:5000/own/muster"),
    ("an interval", "podMonitor.enabled=true,podMonitor.interval=1m30s"),
    ("less than a second", "controller.lease.retryPeriodSeconds=0.5"),
    ("no budget", "webhook.podDisruptionBudget.enabled=false,webhook.podDisruptionBudget.maxUnavailable=0"),
)
def test_values_beside_those_that_contradict_each_other_are_taken(helm: Program, chart: Path, values: str) -> None:
    done = helm("template", "muster", str(chart), "--set", f"image.repository=r,{values}")
    assert not done.returncode, done.stderr


@cases("enabled, processes", ("on", "true", 2), ("off", "false", 0))
def test_an_umbrella_charts_condition_turns_it_on_and_off(
    helm: Program, chart: Path, tmp_path: Path, enabled: str, processes: int
) -> None:
    """Helm reads it from the values that the umbrella chart has for this one, and leaves it among them."""
    one = yaml.safe_load((chart / "Chart.yaml").read_text())
    wanted = {
        "name": one["name"],
        "version": one["version"],
        "repository": chart.as_uri(),
        "condition": "muster.enabled",
    }
    umbrella = {"apiVersion": "v2", "name": "platform", "version": "1.0.0", "dependencies": [wanted]}
    (tmp_path / "Chart.yaml").write_text(yaml.safe_dump(umbrella))
    (tmp_path / "charts").mkdir()
    (tmp_path / "charts" / "muster").symlink_to(chart)
    done = helm("template", "r", str(tmp_path), "--set", f"muster.image.repository=r,muster.enabled={enabled}")
    assert not done.returncode, done.stderr
    assert done.stdout.count("kind: Deployment\n") == processes


def test_every_reason_may_be_set(chart: Path) -> None:
    known = schema(chart)["properties"]["validationReasons"]["properties"]
    assert set(known) == set(map(str, Reason))


def schema(chart: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((chart / "values.schema.json").read_text())
    return found


# What helm puts among the values of a chart that an umbrella chart depends on, and no value of this chart.
_OF_HELM = {"global", "enabled"}


def test_every_value_is_described(chart: Path) -> None:
    """What values.yaml has is in the schema by its own name, and the schema names nothing else."""
    root = schema(chart)

    def both(part: dict[str, Any], values: dict[str, Any], path: str = "") -> None:
        assert set(part["properties"]) - (set() if path else _OF_HELM) == set(values), path
        for key, value in values.items():
            if value and "properties" in part["properties"][key]:
                both(part["properties"][key], value, f"{path}/{key}")

    both(root, yaml.safe_load((chart / "values.yaml").read_text()))


def test_no_part_takes_what_it_does_not_know(chart: Path) -> None:
    def parts(part: object) -> Iterator[dict[str, Any]]:
        if isinstance(part, dict):
            if "properties" in part and part.get("type") == "object":
                yield part
            for below in part.values():
                yield from parts(below)

    assert all(part["additionalProperties"] is False for part in parts(schema(chart)))
