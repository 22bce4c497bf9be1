"""The webhooks of the chart that see Queues, and what names one by itself: no call that is not needed."""

import re

import pytest

from muster.model import names
from muster.model.names import GROUP_NAME, QUEUE_ANNOTATION, QUEUE_LABEL
from muster.model.objects import Queue
from muster.queueing.queue_view import read_queue
from tests.support.cases import cases
from tests.support.chart.rendered import Render, Rendered
from tests.support.manifests.observed import made, queue


def conditions(rendered: Rendered, webhook: str) -> dict[str, str]:
    return {item["name"]: item["expression"] for item in rendered.webhooks()[webhook]["matchConditions"]}


def test_every_annotation_that_a_queue_is_read_by_is_looked_at(render: Render) -> None:
    """Each counts for something when it is wrong."""
    said = {value for name, value in vars(names).items() if name.isupper() and str(value).startswith("muster.dev/")}
    read = {key for key in said if read_queue(made(Queue, queue(annotations={key: "?"}))).problems}
    expression = conditions(render(), "queues.muster.dev")["says-something-new"]
    assert set(re.findall(r"'(muster\.dev/[^']+)'", expression)) == read


def test_a_podgroup_makes_a_call_when_somebody_else_names_its_queue(render: Render) -> None:
    """Volcano writes the status by updates of the whole; muster's controller makes a PodGroup for every gang."""
    found = conditions(render(namespace="batch"), "podgroups.muster.dev")
    assert found["names-another-queue"] == "oldObject == null || object.?spec.?queue != oldObject.?spec.?queue"
    user = "system:serviceaccount:batch:muster-controller"
    assert found["is-not-musters-own"] == f"request.userInfo.username != '{user}'"


def test_of_pods_those_make_a_call_that_name_a_queue_and_belong_to_no_gang(render: Render) -> None:
    found = conditions(render(), "queues.pods.muster.dev")
    assert all(f"'{key}' in" in found["names-a-queue"] for key in (QUEUE_ANNOTATION, QUEUE_LABEL))
    assert f"!('{GROUP_NAME}' in" in found["belongs-to-no-gang"]
    assert found["is-volcanos"].endswith(" in ['volcano']")


@cases(
    "schedulers, names",
    ("another name", "volcano=batch", "'batch'"),
    ("two names", "volcano,coscheduling,volcano=batch", "'volcano', 'batch'"),
    ("others place the gangs", "coscheduling", "'volcano'"),
)
def test_volcanos_pods_are_known_by_the_names_that_the_chart_is_told(
    render: Render, schedulers: str, names: str
) -> None:
    """Its controller makes PodGroups for the pods of each of its --scheduler-name."""
    found = conditions(render(f"schedulers={{{schedulers}}}"), "queues.pods.muster.dev")
    assert found["is-volcanos"] == f"object.?spec.?schedulerName.orValue('') in [{names}]"


@pytest.mark.parametrize(("mode", "seen"), [("deny", True), ("warn", True), ("off", False)])
def test_whose_a_queue_is_holds_without_validation(render: Render, mode: str, seen: bool) -> None:
    webhooks = render(f"validation={mode}").webhooks()
    assert {"podgroups.muster.dev", "queues.pods.muster.dev"} <= set(webhooks)
    assert ("queues.muster.dev" in webhooks) is seen
