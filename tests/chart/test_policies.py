"""The ValidatingAdmissionPolicies of the chart; tests/apiserver/test_policies.py has what they do."""

import json
import re

import pytest

from muster.model.names import (
    GANG,
    GANG_SPEC,
    GANG_TIME_LIMIT,
    GROUP_NAME,
    MESSAGE,
    POD_GROUP_LABEL,
    QUEUE_LABEL,
    RUNS_ABOUT,
    STATE,
    TASK_SPEC,
    WORKLOAD,
)
from muster.planning.snapshot import AdmissionRecord
from tests.support.chart.rendered import JSON, Render, Rendered


def policy(rendered: Rendered, name: str) -> JSON:
    spec: JSON = rendered.one("ValidatingAdmissionPolicy", name)["spec"]
    return spec


def keys(expression: str) -> set[str]:
    """The names in the list that an expression goes through."""
    found = re.search(r"\[([^]]*)\]\.(?:all|exists)\(key", expression)
    assert found
    return set(re.findall(r"'([^']+)'", found[1]))


def condition(policy: JSON) -> str:
    (only,) = policy["matchConditions"]
    text: str = only["expression"]
    return text


def test_each_policy_is_bound_and_denies(render: Render) -> None:
    rendered = render(release="gangs")
    for name in ("pods", "other-pods", "podgroups", "workloads", "webhook"):
        binding = rendered.one("ValidatingAdmissionPolicyBinding", f"gangs-muster-{name}")
        assert binding["spec"] == {"policyName": f"gangs-muster-{name}", "validationActions": ["Deny"]}
        assert policy(rendered, f"gangs-muster-{name}")["failurePolicy"] == "Fail"


def test_without_the_api_they_are_left_out(render: Render) -> None:
    """Who held the verb holds it still: it costs nothing, and `muster release` needs its rights on pods."""
    rendered = render("policies=false")
    assert not [name for name in rendered.names() if name.startswith("ValidatingAdmissionPolicy")]
    assert rendered.one("ClusterRole", "muster-release")


def test_every_mark_of_muster_is_kept(render: Render) -> None:
    """All that the controller writes about a decision, and nothing that operators copy from workloads."""
    marks = AdmissionRecord(*("x" for _ in AdmissionRecord.__slots__)).annotations
    spec = policy(render(), "muster-podgroups")
    _, label, annotations, *_ = spec["validations"]
    assert keys(annotations["expression"]) == keys(condition(spec)) == {*marks, STATE, MESSAGE, GANG_SPEC, RUNS_ABOUT}
    assert f"labels[?'{STATE}']" in label["expression"]


def test_every_name_is_kept_by_which_a_pod_is_bound(render: Render) -> None:
    *_, labels, annotations = policy(render(), "muster-pods")["validations"]
    assert keys(labels["expression"]) == {GANG, QUEUE_LABEL, POD_GROUP_LABEL}
    assert keys(annotations["expression"]) == {GROUP_NAME, TASK_SPEC, WORKLOAD, GANG_TIME_LIMIT}


def test_no_selector_leaves_out_namespaces_for_muster_itself(render: Render) -> None:
    """What holds its accounts holds everywhere; tests/apiserver/test_policies.py has whom the rest concerns."""
    rendered = render("excludedNamespaces={infra}", "namespaceSelector.matchLabels.muster-pilot=on")
    for name in ("pods", "other-pods", "podgroups", "workloads", "webhook"):
        assert "namespaceSelector" not in policy(rendered, f"muster-{name}")["matchConstraints"]


def test_every_pod_is_under_one_policy_that_holds_the_controller(render: Render) -> None:
    """The same requests, by a label that is there or is not."""
    rendered = render()
    found = {name: policy(rendered, f"muster-{name}")["matchConstraints"] for name in ("pods", "other-pods")}
    operators = {name: one["objectSelector"]["matchExpressions"] for name, one in found.items()}
    assert operators == {
        "pods": [{"key": GANG, "operator": "Exists"}],
        "other-pods": [{"key": GANG, "operator": "DoesNotExist"}],
    }
    (others,) = found["other-pods"]["resourceRules"]
    assert others in found["pods"]["resourceRules"]


@pytest.mark.parametrize("kind", ["ValidatingAdmissionPolicy", "WebhookConfiguration"])
def test_no_expression_takes_a_spec_for_granted(render: Render, kind: str) -> None:
    """Most CRDs do not require one, and an error in a condition counts as a webhook that does not answer."""
    text = [json.dumps(item) for item in render().documents if item["kind"].endswith(kind)]
    assert text
    assert not re.findall(r"\w+\.spec\b[^\"]*", "\n".join(text))


@pytest.mark.parametrize(("release", "name"), [("muster", "muster"), ("gangs", "gangs-muster")])
def test_muster_is_known_by_its_service_accounts(render: Render, release: str, name: str) -> None:
    rendered = render(release=release, namespace="batch")
    by = "request.userInfo.username == 'system:serviceaccount:batch:{}'"
    for whose in ("other-pods", "workloads"):
        assert condition(policy(rendered, f"{name}-{whose}")) == by.format(f"{name}-controller")
    for whose in ("pods", "podgroups"):
        assert condition(policy(rendered, f"{name}-{whose}")).startswith(by.format(f"{name}-controller") + " ?")
    assert condition(policy(rendered, f"{name}-webhook")) == by.format(f"{name}-webhook")
    for process in ("controller", "webhook"):
        account = rendered.one("Deployment", f"{name}-{process}")["spec"]["template"]["spec"]["serviceAccountName"]
        assert account == f"{name}-{process}"


def test_who_is_to_release_needs_no_more_than_its_cluster_role(render: Render) -> None:
    assert render().one("ClusterRole", "muster-release")["rules"] == [
        {"apiGroups": ["muster.dev"], "resources": ["gangs"], "verbs": ["release"]},
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["list", "patch"]},
        {"apiGroups": ["scheduling.volcano.sh"], "resources": ["podgroups"], "verbs": ["list", "create"]},
    ]
