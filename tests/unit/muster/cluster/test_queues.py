"""Queues as webhook and controller read them."""

import pytest

from muster.cluster.stores import view_of
from muster.model.objects import Queue
from muster.resources.amounts import Resources
from tests.support.cases import cases
from tests.support.manifests.observed import JSON, amounts, made, queue


@cases(
    "manifest, limit, said",
    ("a queue", queue(cpu="4"), amounts(cpu="4"), ""),
    ("gone", None, None, ""),
    ("no quantity", queue(cpu="four"), None, "cannot read queue q; nothing new starts there"),
    (
        "no duration",
        queue(cpu="4", annotations={"muster.dev/patience": "long"}),
        amounts(cpu="4"),
        '"long" is not a duration such as 30s, 10m or 1h30m; it is ignored',
    ),
)
def test_what_cannot_be_read_of_a_queue_is_logged(
    manifest: JSON | None, limit: Resources | None, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    view = view_of(made(Queue, manifest) if manifest else None)
    assert (view.limit if view else None) == limit
    assert said in caplog.text
    assert bool(said) == bool(caplog.text)
