"""Label selectors of webhook configurations: whether muster is active in a namespace."""

import pytest

from muster.cli.doctor.installed import Webhook
from tests.support.manifests.observed import JSON, made

LABELS = {"kubernetes.io/metadata.name": "team", "muster": "pilot"}


def _one(operator: str, *values: str, key: str = "muster") -> JSON:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": [*values]}]}


@pytest.mark.parametrize(
    ("selector", "selected"),
    [
        ({}, True),
        ({"matchLabels": {"muster": "pilot"}}, True),
        ({"matchLabels": {"muster": "pilot", "team": "a"}}, False),
        (_one("In", "pilot", "team"), True),
        (_one("In", "team"), False),
        (_one("NotIn", "team"), True),
        (_one("NotIn", "team", key="kubernetes.io/metadata.name"), False),
        (_one("NotIn", "a", key="missing"), True),
        (_one("Exists"), True),
        (_one("Exists", key="missing"), False),
        (_one("DoesNotExist", key="missing"), True),
        (_one("DoesNotExist"), False),
        (_one("Near", "pilot"), False),
        ({**_one("In", "pilot"), "matchLabels": {"team": "a"}}, False),
    ],
)
def test_a_namespace_is_selected_as_the_apiserver_does_it(selector: JSON, *, selected: bool) -> None:
    assert made(Webhook, {"namespaceSelector": selector}).selects(LABELS) is selected
