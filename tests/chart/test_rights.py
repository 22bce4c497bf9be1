"""docs/security.md lists what muster's ServiceAccounts may do, each line with what it is for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.docs.test_security import PAGE
from tests.rights import granted, listed

if TYPE_CHECKING:
    from tests.chart.rendered import Render


@pytest.mark.parametrize("process", ["muster-webhook", "muster-controller", "muster-uninstall"])
def test_the_page_lists_what_the_chart_grants(render: Render, process: str) -> None:
    """Read by people, and neither more nor less than the roles."""
    rights = granted(render().documents, process)
    assert rights
    assert sorted(listed(PAGE, process, "muster-system")) == sorted(rights)


def test_nobody_else_is_bound_to_anything(render: Render) -> None:
    """A further account, or a user or a group, would have rights that the page does not list."""
    documents = render().documents
    bindings = [item for item in documents if item["kind"].endswith("RoleBinding")]
    subjects = [subject for binding in bindings for subject in binding["subjects"]]
    assert {(subject["kind"], subject["name"], subject["namespace"]) for subject in subjects} == {
        ("ServiceAccount", name, "muster-system")
        for name in ("muster-webhook", "muster-controller", "muster-uninstall")
    }
    accounts = {item["metadata"]["name"] for item in documents if item["kind"] == "ServiceAccount"}
    assert accounts == {subject["name"] for subject in subjects}


@pytest.mark.parametrize("values", ["certManager.enabled=true", "webhook.existingSecret=mine"])
def test_with_certificates_of_others_the_webhook_has_no_secret(render: Render, values: str) -> None:
    """What it writes are events, and that its configurations may be called; a policy keeps it from their caBundles."""
    rights = granted(render(values).documents, "muster-webhook")
    kinds = {f"{kind}webhookconfigurations" for kind in ("mutating", "validating")}
    written = {right.resource for right in rights if right.verb not in ("get", "list", "watch")}
    assert written == {"events", *kinds}
    assert {right.name for right in rights if right.resource in kinds} == {"muster"}
    assert "secrets" not in {right.resource for right in rights}
