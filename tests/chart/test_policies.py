"""The ValidatingAdmissionPolicies of the chart; tests/apiserver/test_policies.py has what they do."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest

from muster.model.names import (
    GANG,
    GANG_SPEC,
    GROUP_NAME,
    MESSAGE,
    POD_GROUP_LABEL,
    QUEUE_LABEL,
    STATE,
    TASK_SPEC,
    WORKLOAD,
)
from muster.observe.view import Mark

if TYPE_CHECKING:
    from tests.support.chart.rendered import JSON, Render, Rendered


def policy(rendered: Rendered, name: str) -> JSON:
    spec: JSON = rendered.one("ValidatingAdmissionPolicy", name)["spec"]
    return spec


def keys(expression: str) -> set[str]:
    """The names in the list with which an expression begins."""
    found = re.match(r"\[([^]]*)\]\.all", expression)
    assert found
    return set(re.findall(r"'([^']+)'", found[1]))


def test_each_policy_is_bound_and_denies(render: Render) -> None:
    rendered = render(release="gangs")
    for name in ("pods", "podgroups", "controller", "webhook"):
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
    marks = Mark(*("x" for _ in Mark.__slots__)).annotations
    label, annotations = policy(render(), "muster-podgroups")["validations"]
    assert keys(annotations["expression"]) == {*marks, STATE, MESSAGE, GANG_SPEC}
    assert f"labels[?'{STATE}']" in label["expression"]


def test_every_name_is_kept_by_which_a_pod_is_bound(render: Render) -> None:
    _, labels, annotations = policy(render(), "muster-pods")["validations"]
    assert keys(labels["expression"]) == {GANG, QUEUE_LABEL, POD_GROUP_LABEL}
    assert keys(annotations["expression"]) == {GROUP_NAME, TASK_SPEC, WORKLOAD}


def test_policies_leave_out_the_namespaces_that_the_webhooks_leave_out(render: Render) -> None:
    """But for those that hold muster's own accounts, which nobody else meets."""
    rendered = render("excludedNamespaces={infra}", "namespaceSelector.matchLabels.muster-pilot=on")
    left_out = rendered.webhooks()["ray.pods.muster.dev"]["namespaceSelector"]
    for name, selector in {"pods": left_out, "podgroups": left_out, "controller": None, "webhook": None}.items():
        assert policy(rendered, f"muster-{name}")["matchConstraints"].get("namespaceSelector") == selector


@pytest.mark.parametrize("kind", ["ValidatingAdmissionPolicy", "WebhookConfiguration"])
def test_no_expression_takes_a_spec_for_granted(render: Render, kind: str) -> None:
    """Most CRDs do not require one, and an error in a condition counts as a webhook that does not answer."""
    text = [json.dumps(item) for item in render().documents if item["kind"].endswith(kind)]
    assert text
    assert not re.findall(r"\w+\.spec\b[^\"]*", "\n".join(text))


@pytest.mark.parametrize(("release", "name"), [("muster", "muster"), ("gangs", "gangs-muster")])
def test_muster_is_known_by_its_service_accounts(render: Render, release: str, name: str) -> None:
    rendered = render(release=release, namespace="batch")
    condition, *_ = policy(rendered, f"{name}-controller")["matchConditions"]
    assert condition["expression"] == f"request.userInfo.username == 'system:serviceaccount:batch:{name}-controller'"
    (condition,) = policy(rendered, f"{name}-webhook")["matchConditions"]
    assert condition["expression"] == f"request.userInfo.username == 'system:serviceaccount:batch:{name}-webhook'"
    for process in ("controller", "webhook"):
        account = rendered.one("Deployment", f"{name}-{process}")["spec"]["template"]["spec"]["serviceAccountName"]
        assert account == f"{name}-{process}"


def test_who_is_to_release_needs_no_more_than_its_cluster_role(render: Render) -> None:
    assert render().one("ClusterRole", "muster-release")["rules"] == [
        {"apiGroups": ["muster.dev"], "resources": ["gangs"], "verbs": ["release"]},
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["list", "patch"]},
    ]
