"""What `helm install` installs."""

from __future__ import annotations

import argparse
import json
import re
from typing import TYPE_CHECKING

import pytest
import yaml

import muster
from muster.names import GANG, MANAGED, PRIORITY_CLASS_LABEL, QUEUE_ANNOTATION, QUEUE_LABEL, SCHEDULER_LABEL
from muster.workloads import GANG_KINDS, SOURCES, WATCHED_KINDS, Kind
from webhook.bundles import CLOSED

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.chart.rendered import JSON, Render, Rendered

    Helm = Callable[..., subprocess.CompletedProcess[str]]

DIGEST = f"sha256:{'0123456789abcdef' * 4}"
READ = ["get", "list", "watch"]
# Two versions of MPIJob are one resource.
WATCHED = {(kind.group, kind.plural) for kind in WATCHED_KINDS}
OWNERS = {(kind.group, kind.plural) for kind in GANG_KINDS}
SPEAKERS = WATCHED - OWNERS | {(source.group, source.plural) for source in SOURCES}


# The webhooks that see pods.
POLICIES = ("controller", "podgroups", "pods", "webhook")
# It sees one event of muster's own, which is never kept.
REACH = "reach.muster.dev"
PODS = ("ray.pods.muster.dev", "kubeflow.pods.muster.dev", "jobset.pods.muster.dev", "plain.pods.muster.dev")


@pytest.fixture(scope="session")
def default(render: Render) -> Rendered:
    return render()


def rules(rendered: Rendered, kind: str, name: str) -> list[tuple[str, str, tuple[str, ...], tuple[str, ...]]]:
    """(group/resource, names, verbs) of a role, one line for each resource."""
    return sorted(
        (group, resource, tuple(rule.get("resourceNames", ())), tuple(rule["verbs"]))
        for rule in rendered.one(kind, name)["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    )


def readable(*more: str) -> Iterator[tuple[str, str, tuple[str, ...], tuple[str, ...]]]:
    """The rights to see all workloads and what speaks for them, and `more` on those that are gangs."""
    for group, plural in OWNERS | SPEAKERS:
        yield group, plural, (), (*READ, *(more if (group, plural) in OWNERS else ()))


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param((), id="as installed"),
        pytest.param(
            ("networkPolicy", "podMonitor", "prometheusRule", "grafanaDashboard", "certManager"), id="everything on"
        ),
    ],
)
def test_helm_finds_nothing_to_complain_about(helm: Helm, chart: Path, parts: tuple[str, ...]) -> None:
    settings = [f"--set={part}.enabled=true" for part in parts]
    done = helm("lint", "--strict", str(chart), "--set", "image.repository=r", *settings)
    assert done.returncode == 0, done.stdout + done.stderr


def test_everything_that_is_installed(default: Rendered) -> None:
    assert default.names() == [
        "ClusterRole/muster-controller",
        "ClusterRole/muster-release",
        "ClusterRole/muster-uninstall",
        "ClusterRole/muster-webhook",
        "ClusterRoleBinding/muster-controller",
        "ClusterRoleBinding/muster-uninstall",
        "ClusterRoleBinding/muster-webhook",
        "Deployment/muster-controller",
        "Deployment/muster-webhook",
        "Job/muster-uninstall",
        "MutatingWebhookConfiguration/muster",
        "Pod/muster-test",
        "PodDisruptionBudget/muster-controller",
        "PodDisruptionBudget/muster-webhook",
        "Role/muster-controller",
        "Role/muster-webhook",
        "RoleBinding/muster-controller",
        "RoleBinding/muster-webhook",
        "Secret/muster-webhook-tls",
        "Service/muster-webhook",
        "ServiceAccount/muster-controller",
        "ServiceAccount/muster-uninstall",
        "ServiceAccount/muster-webhook",
        *(f"ValidatingAdmissionPolicy/muster-{name}" for name in POLICIES),
        *(f"ValidatingAdmissionPolicyBinding/muster-{name}" for name in POLICIES),
        "ValidatingWebhookConfiguration/muster",
    ]


def test_without_an_image_one_line_says_what_to_do(helm: Helm, chart: Path) -> None:
    done = helm("template", "muster", str(chart))
    assert done.returncode
    assert "image.repository is not set: push muster's image to a registry of your own and name it" in done.stderr


@pytest.mark.parametrize(
    ("values", "image"),
    [
        pytest.param([], f"own/muster:{muster.__version__}", id="the chart's own version"),
        pytest.param(["image.tag=v2"], "own/muster:v2", id="a tag"),
        pytest.param(["image.tag=12"], "own/muster:12", id="a tag that looks like a number"),
        pytest.param(["image.repository=r:5000/m"], f"r:5000/m:{muster.__version__}", id="a registry with a port"),
        pytest.param([f"image.digest={DIGEST}"], f"own/muster@{DIGEST}", id="a digest"),
        pytest.param([f"image.digest={DIGEST}", "image.tag=v2"], f"own/muster@{DIGEST}", id="a digest before a tag"),
    ],
)
def test_all_pods_run_the_same_image(render: Render, values: list[str], image: str) -> None:
    """Those of both processes, and that of `helm test`."""
    rendered = render(*values)
    pods = [item["spec"]["template"] for item in rendered.documents if item["kind"] == "Deployment"]
    pods.append(rendered.one("Pod"))
    assert [pod["spec"]["containers"][0]["image"] for pod in pods] == [image] * 3


def test_the_charts_version_is_the_programs(chart: Path) -> None:
    described = yaml.safe_load((chart / "Chart.yaml").read_text())
    assert described["appVersion"] == muster.__version__


def test_the_secret_has_no_data(default: Rendered) -> None:
    """An upgrade then leaves the certificates in it alone."""
    secret = default.one("Secret")
    assert {"data", "stringData"}.isdisjoint(secret)


# What each process may do: nothing else, nowhere, ever.
def test_rights_of_the_webhook_in_the_cluster(default: Rendered) -> None:
    bundle = (*READ, "patch")
    assert rules(default, "ClusterRole", "muster-webhook") == sorted(
        [
            ("", "limitranges", (), tuple(READ)),
            ("", "namespaces", (), tuple(READ)),
            ("", "pods", (), tuple(READ)),
            ("admissionregistration.k8s.io", "mutatingwebhookconfigurations", ("muster",), bundle),
            ("admissionregistration.k8s.io", "validatingwebhookconfigurations", ("muster",), bundle),
            ("batch", "jobs", (), ("get",)),
            ("node.k8s.io", "runtimeclasses", (), tuple(READ)),
            ("scheduling.k8s.io", "priorityclasses", (), tuple(READ)),
            ("scheduling.volcano.sh", "podgroups", (), ("list",)),
            ("scheduling.volcano.sh", "queues", (), tuple(READ)),
            *readable(),
        ]
    )


def test_rights_of_the_webhook_in_its_namespace(default: Rendered) -> None:
    assert rules(default, "Role", "muster-webhook") == [
        ("", "secrets", ("muster-webhook-tls",), (*READ, "update")),
        ("events.k8s.io", "events", (), ("create",)),
    ]


def test_rights_of_the_controller_in_the_cluster(default: Rendered) -> None:
    assert rules(default, "ClusterRole", "muster-controller") == sorted(
        [
            ("", "limitranges", (), tuple(READ)),
            ("", "namespaces", (), tuple(READ)),
            ("", "nodes", (), tuple(READ)),
            ("", "pods", (), (*READ, "patch", "delete")),
            ("batch", "jobs", (), ("list", "patch")),
            ("events.k8s.io", "events", (), ("create",)),
            ("muster.dev", "gangs", (), ("release",)),
            ("node.k8s.io", "runtimeclasses", (), tuple(READ)),
            ("scheduling.k8s.io", "priorityclasses", (), tuple(READ)),
            ("scheduling.volcano.sh", "podgroups", (), (*READ, "create", "patch", "delete")),
            ("scheduling.volcano.sh", "queues", (), tuple(READ)),
            *readable("patch"),
            *((group, f"{plural}/finalizers", (), ("update",)) for group, plural in OWNERS),
        ]
    )


def test_rights_of_the_controller_in_its_namespace(default: Rendered) -> None:
    assert rules(default, "Role", "muster-controller") == [
        ("coordination.k8s.io", "leases", (), ("create",)),
        ("coordination.k8s.io", "leases", ("muster-controller",), ("get", "update")),
    ]


def test_no_right_is_a_wildcard(default: Rendered) -> None:
    roles = [item for item in default.documents if item["kind"] in {"Role", "ClusterRole"}]
    assert "*" not in yaml.safe_dump([role["rules"] for role in roles])


@pytest.mark.parametrize("process", ["muster-webhook", "muster-controller"])
def test_rights_go_to_the_processs_own_service_account(default: Rendered, process: str) -> None:
    subject = {"kind": "ServiceAccount", "name": process, "namespace": "muster-system"}
    for kind, role in (("ClusterRoleBinding", "ClusterRole"), ("RoleBinding", "Role")):
        binding = default.one(kind, process)
        assert binding["subjects"] == [subject]
        assert (binding["roleRef"]["kind"], binding["roleRef"]["name"]) == (role, process)
    assert default.one("Deployment", process)["spec"]["template"]["spec"]["serviceAccountName"] == process


# The webhooks are narrow, so that their outage cannot hurt a cluster.
def test_which_webhooks_there_are(default: Rendered) -> None:
    assert set(default.webhooks()) == {
        *PODS,
        "workloads.muster.dev",
        "namespaces.workloads.muster.dev",
        "jobs.workloads.muster.dev",
        "queues.muster.dev",
        "podgroups.muster.dev",
        "queues.pods.muster.dev",
        REACH,
    }


@pytest.mark.parametrize("kind", GANG_KINDS, ids=lambda kind: str(kind.kind))
def test_the_pods_of_every_kind_are_seen_by_their_label(default: Rendered, kind: Kind) -> None:
    selected = [
        expression
        for webhook in default.webhooks().values()
        for expression in webhook.get("objectSelector", {}).get("matchExpressions", [])
    ]
    assert {"key": kind.pod_label, "operator": "Exists"} in selected


@pytest.mark.parametrize("name", PODS)
def test_of_pods_only_their_creation_is_seen(default: Rendered, name: str) -> None:
    """Opening a gate is an update: it must not call us."""
    webhook = default.webhooks()[name]
    assert webhook["rules"] == [
        {
            "apiGroups": [""],
            "apiVersions": ["v1"],
            "resources": ["pods"],
            "operations": ["CREATE"],
            "scope": "Namespaced",
        },
    ]
    assert webhook["reinvocationPolicy"] == "IfNeeded"


@pytest.mark.parametrize("name", PODS)
def test_pods_that_are_no_members_are_never_seen_unless_they_say_they_are(default: Rendered, name: str) -> None:
    """What the expression lets through is tried on the apiserver (tests/apiserver/test_outage.py)."""
    (condition,) = default.webhooks()[name]["matchConditions"]
    claims, _, rest = condition["expression"].partition(" || ")
    assert claims == f"'{GANG}' in object.metadata.?labels.orValue({{}})"
    assert all(word in rest for word in ("nodeName", "DaemonSet", "redis-cleanup"))


@pytest.mark.parametrize("name", ["workloads.muster.dev", "namespaces.workloads.muster.dev"])
def test_of_workloads_the_resource_is_seen_and_never_its_status(default: Rendered, name: str) -> None:
    seen = default.webhooks()[name]["rules"]
    assert {(rule["apiGroups"][0], plural) for rule in seen for plural in rule["resources"]} == WATCHED | {
        ("batch.volcano.sh", "jobs")
    }
    versions = {rule["apiGroups"][0]: rule["apiVersions"] for rule in seen}
    assert all(kind.versions[0] in versions[kind.group] for kind in WATCHED_KINDS)
    assert all(rule["operations"] == ["CREATE", "UPDATE"] for rule in seen)
    assert not [resource for rule in seen for resource in rule["resources"] if "/" in resource]


def test_of_jobs_only_those_are_seen_whose_pods_join_a_gang(default: Rendered) -> None:
    """A cluster has many others."""
    webhook = default.webhooks()["jobs.workloads.muster.dev"]
    assert [(rule["apiGroups"], rule["resources"]) for rule in webhook["rules"]] == [(["batch"], ["jobs"])]
    joins = webhook["matchConditions"][0]["expression"]
    assert joins == f"object.?spec.?template.?metadata.?labels[?'{GANG}'].hasValue()"


def test_pods_that_another_entry_has_seen_are_not_seen_again(default: Rendered) -> None:
    """That one has written the label on them by which plain pods are known."""
    webhooks = default.webhooks()
    others = {webhooks[name]["objectSelector"]["matchExpressions"][0]["key"] for name in PODS} - {GANG}
    expressions = webhooks["plain.pods.muster.dev"]["objectSelector"]["matchExpressions"]
    assert {one["key"] for one in expressions if one["operator"] == "DoesNotExist"} == others


def test_the_condition_on_workloads_names_what_says_intent(default: Rendered) -> None:
    """It must let through exactly what `muster.intent.speaks` would look into."""
    conditions = {
        item["name"]: item["expression"] for item in default.webhooks()["workloads.muster.dev"]["matchConditions"]
    }
    labels = re.findall(r"'([^']+)'", re.search(r"key in\s*\[([^]]*)\]", conditions["asks-for-gang-scheduling"])[1])  # type: ignore[index]
    assert set(labels) == {SCHEDULER_LABEL, QUEUE_LABEL, PRIORITY_CLASS_LABEL, MANAGED}
    assert f"'{QUEUE_ANNOTATION}' in annotations" in conditions["asks-for-gang-scheduling"]
    assert "schedulingPolicy" in conditions["asks-for-gang-scheduling"]
    assert set(conditions) == {"asks-for-gang-scheduling", "says-something-new", "is-not-being-deleted"}


def test_in_opted_in_namespaces_exactly_those_are_seen_beside_that_do_not_ask_themselves(default: Rendered) -> None:
    """No workload makes two calls."""
    asking, opted = (default.webhooks()[name] for name in ("workloads.muster.dev", "namespaces.workloads.muster.dev"))
    first, *others = opted["matchConditions"]
    asks, *same = asking["matchConditions"]
    assert first["expression"] == f"!({asks['expression']})"
    assert others == same
    labels = opted["namespaceSelector"]["matchExpressions"]
    assert {"key": MANAGED, "operator": "In", "values": ["true"]} in labels


def in_namespaces(rendered: Rendered) -> list[JSON]:
    """The webhooks that a namespace can be kept from: Queues are in none."""
    return [webhook for name, webhook in rendered.webhooks().items() if name not in {"queues.muster.dev", REACH}]


def test_neither_kube_system_nor_its_own_namespace_is_ever_seen(default: Rendered) -> None:
    for webhook in in_namespaces(default):
        assert {
            "key": "kubernetes.io/metadata.name",
            "operator": "NotIn",
            "values": ["kube-system", "muster-system"],
        } in webhook["namespaceSelector"]["matchExpressions"]


def test_namespaces_may_be_excluded_whatever_they_are_called(render: Render) -> None:
    for webhook in in_namespaces(render("excludedNamespaces={infra,123}")):
        expression, *_ = webhook["namespaceSelector"]["matchExpressions"]
        assert expression["values"] == ["kube-system", "muster-system", "infra", "123"]


@pytest.mark.parametrize(
    ("values", "policy", "timeout"),
    [
        pytest.param([], "Fail", 5, id="default"),
        pytest.param(["webhook.failurePolicy=Ignore", "webhook.timeoutSeconds=3"], "Ignore", 3, id="chosen"),
    ],
)
def test_what_an_outage_means_is_a_value(render: Render, values: list[str], policy: str, timeout: int) -> None:
    for name, webhook in render(*values).webhooks().items():
        # What these tell is also told, or kept out, elsewhere.
        chosen = "Ignore" if "workloads" not in name and name not in PODS else policy
        if name == REACH:
            chosen = "Fail"
        assert (webhook["failurePolicy"], webhook["timeoutSeconds"]) == (chosen, timeout)
        assert (webhook["sideEffects"], webhook["admissionReviewVersions"]) == ("None", ["v1"])


def test_nobody_elses_event_is_seen_nor_any_that_is_kept(default: Rendered) -> None:
    webhook = default.webhooks()[REACH]
    assert webhook["namespaceSelector"] == {"matchLabels": {"kubernetes.io/metadata.name": "muster-system"}}
    assert [condition["expression"] for condition in webhook["matchConditions"]] == [
        "request.dryRun",
        "request.userInfo.username == 'system:serviceaccount:muster-system:muster-webhook'",
    ]


def test_without_a_cluster_to_ask_nothing_is_kept_from_being_called(default: Rendered) -> None:
    """Who applies the output of `helm template` again and again must not close what was opened."""
    assert CLOSED not in json.dumps(list(default.webhooks().values()))


def test_helm_writes_no_authority(default: Rendered) -> None:
    """The webhook fills it in; a value here would be put back by every upgrade."""
    assert all("caBundle" not in webhook["clientConfig"] for webhook in default.webhooks().values())


@pytest.mark.parametrize("values", [[], ["webhook.service.port=8443"]], ids=["default", "another port"])
def test_the_calls_end_where_the_webhook_listens(render: Render, values: list[str]) -> None:
    """Configuration, Service, container port and flag agree."""
    rendered = render(*values)
    service = rendered.one("Service")
    (port,) = service["spec"]["ports"]
    for webhook in rendered.webhooks().values():
        called = webhook["clientConfig"]["service"]
        assert (called["name"], called["namespace"]) == (service["metadata"]["name"], "muster-system")
        assert called["port"] == port["port"]
    (container,) = rendered.one("Deployment", "muster-webhook")["spec"]["template"]["spec"]["containers"]
    ports = {item["name"]: item["containerPort"] for item in container["ports"]}
    assert f"--port={ports[port['targetPort']]}" in container["args"]
    assert f"--service={service['metadata']['name']}" in container["args"]


def test_the_calls_go_to_the_paths_that_are_served(default: Rendered) -> None:
    paths = {name: webhook["clientConfig"]["service"]["path"] for name, webhook in default.webhooks().items()}
    assert paths == {
        **dict.fromkeys(PODS, "/mutate/pods"),
        "workloads.muster.dev": "/validate/workloads",
        "namespaces.workloads.muster.dev": "/validate/workloads",
        "jobs.workloads.muster.dev": "/validate/workloads",
        "queues.muster.dev": "/validate/queues",
        "podgroups.muster.dev": "/validate/podgroups",
        "queues.pods.muster.dev": "/validate/pods",
        REACH: "/validate/reach",
    }


def test_the_service_finds_the_webhooks_pods_and_no_others(default: Rendered) -> None:
    selector = default.one("Service")["spec"]["selector"].items()
    labels = {
        name: default.one("Deployment", name)["spec"]["template"]["metadata"]["labels"].items()
        for name in ("muster-webhook", "muster-controller")
    }
    assert selector <= labels["muster-webhook"]
    assert not selector <= labels["muster-controller"]


@pytest.mark.parametrize("process", ["muster-webhook", "muster-controller"])
def test_a_deployment_selects_its_own_pods(default: Rendered, process: str) -> None:
    spec = default.one("Deployment", process)["spec"]
    assert spec["selector"]["matchLabels"].items() <= spec["template"]["metadata"]["labels"].items()
    assert spec["replicas"] == 2


@pytest.mark.parametrize("process", ["muster-webhook", "muster-controller"])
def test_pods_meet_the_restricted_standard(default: Rendered, process: str) -> None:
    """PodSecurity `restricted`, and a root file system that nobody writes."""
    spec = default.one("Deployment", process)["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    assert (spec["securityContext"]["runAsNonRoot"], spec["securityContext"]["seccompProfile"]["type"]) == (
        True,
        "RuntimeDefault",
    )
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert container["resources"]["limits"]["memory"]


@pytest.mark.parametrize("process", ["muster-webhook", "muster-controller"])
def test_probes_ask_the_port_that_is_served(default: Rendered, process: str) -> None:
    (container,) = default.one("Deployment", process)["spec"]["template"]["spec"]["containers"]
    ports = {item["name"]: item["containerPort"] for item in container["ports"]}
    assert f"--health-port={ports['health']}" in container["args"]
    for probe, path in (("livenessProbe", "/healthz"), ("readinessProbe", "/readyz")):
        assert container[probe]["httpGet"] == {"path": path, "port": "health"}


@pytest.mark.parametrize("process", ["muster-webhook", "muster-controller"])
def test_the_process_learns_who_it_is(default: Rendered, process: str) -> None:
    (container,) = default.one("Deployment", process)["spec"]["template"]["spec"]["containers"]
    assert {item["name"]: item["valueFrom"]["fieldRef"]["fieldPath"] for item in container["env"]} == {
        "POD_NAME": "metadata.name",
        "POD_NAMESPACE": "metadata.namespace",
    }


@pytest.mark.parametrize(
    ("value", "component", "argument"),
    [
        ("defaultQueue=shared", "webhook", "--default-queue=shared"),
        ("defaultQueue=shared", "controller", "--default-queue=shared"),
        ("gate=assemble", "webhook", "--gate=assemble"),
        ("gate=assemble", "controller", "--gate=assemble"),
        ("gate=off", "webhook", "--gate=off"),
        ("gate=false", "webhook", "--gate=off"),
        ("validation=warn", "webhook", "--validation=warn"),
        ("validation=off", "webhook", "--validation=off"),
        ("validation=false", "webhook", "--validation=off"),
        ("validationReasons.QueueNotFound=warn", "webhook", "--validation-reason=QueueNotFound=warn"),
        ("validationReasons.NoPods=off", "webhook", "--validation-reason=NoPods=off"),
        ("validationReasons.NoPods=false", "webhook", "--validation-reason=NoPods=off"),
        ("webhook.logLevel=debug", "webhook", "--log-level=debug"),
        ("controller.logLevel=debug", "controller", "--log-level=debug"),
        ("logFormat=json", "webhook", "--log-format=json"),
        ("logFormat=json", "controller", "--log-format=json"),
        ("webhook.shutdownDelaySeconds=9", "webhook", "--shutdown-delay=9"),
        ("controller.lease.durationSeconds=30", "controller", "--lease-duration=30"),
        ("controller.lease.renewDeadlineSeconds=20", "controller", "--renew-deadline=20"),
        ("controller.lease.retryPeriodSeconds=4", "controller", "--retry-period=4"),
        ("controller.lease.retryPeriodSeconds=0.5", "controller", "--retry-period=0.5"),
    ],
)
def test_values_reach_the_processes(render: Render, value: str, component: str, argument: str) -> None:
    assert argument in render(value).arguments(component)


def test_without_validation_no_workload_makes_a_call(render: Render) -> None:
    assert not [name for name in render("validation=off").webhooks() if name.endswith("workloads.muster.dev")]


@pytest.mark.parametrize("delay", [0, 5, 60])
def test_the_kubelet_waits_longer_than_the_webhook_goes_on(render: Render, delay: int) -> None:
    """The delay, then what is under way."""
    spec = render(f"webhook.shutdownDelaySeconds={delay}").one("Deployment", "muster-webhook")
    assert spec["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] > delay + 8


@pytest.mark.parametrize(
    ("component", "module"), [("webhook", "webhook.__main__"), ("controller", "controller.__main__")]
)
def test_every_argument_is_one_that_the_process_takes(
    default: Rendered, component: str, module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Parsed by the process's own parser, which stops at anything that it does not know."""
    program = __import__(module, fromlist=["main"])
    parsed: list[argparse.Namespace] = []

    def keep(self: argparse.ArgumentParser, *_: object) -> argparse.Namespace:
        found, unknown = self.parse_known_args(default.arguments(component))
        assert unknown == []
        parsed.append(found)
        raise KeyboardInterrupt

    monkeypatch.setattr(argparse.ArgumentParser, "parse_args", keep)
    with pytest.raises(KeyboardInterrupt):
        program.main()
    assert parsed[0].health_port == 8080


def test_secrets_for_pulling_the_image(render: Render) -> None:
    rendered = render("imagePullSecrets[0].name=registry")
    for process in ("muster-webhook", "muster-controller"):
        spec = rendered.one("Deployment", process)["spec"]["template"]["spec"]
        assert spec["imagePullSecrets"] == [{"name": "registry"}]


@pytest.mark.parametrize(
    ("release", "prefix"),
    [
        ("muster", "muster"),
        ("my-muster", "my-muster"),
        ("gangs", "gangs-muster"),
        ("x" * 45, "x" * 40),
        ("x" * 39 + "-y", "x" * 39),
    ],
)
def test_everything_is_named_after_the_release(render: Render, release: str, prefix: str) -> None:
    rendered = render(release=release)
    assert all(item["metadata"]["name"].startswith(prefix) for item in rendered.documents)
    assert all(len(item["metadata"]["name"]) <= 63 for item in rendered.documents)
    assert f"--configuration={prefix}" in rendered.arguments("webhook")
    assert f"--secret={prefix}-webhook-tls" in rendered.arguments("webhook")
    assert f"--lease={prefix}-controller" in rendered.arguments("controller")


def test_two_releases_share_no_object(render: Render) -> None:
    assert set(render(release="one").names()).isdisjoint(render(release="two").names())


def test_two_releases_do_not_select_each_others_pods(render: Render) -> None:
    one, two = render(release="one"), render(release="two")
    selector: JSON = one.one("Service")["spec"]["selector"]
    labels = two.one("Deployment", "two-muster-webhook")["spec"]["template"]["metadata"]["labels"]
    assert not selector.items() <= labels.items()


def test_everything_namespaced_is_in_the_releases_namespace(render: Render) -> None:
    for item in render(namespace="elsewhere").documents:
        cluster_wide = re.match(r"Cluster|.*WebhookConfiguration|ValidatingAdmissionPolicy", item["kind"])
        assert item["metadata"].get("namespace") == (None if cluster_wide else "elsewhere")
