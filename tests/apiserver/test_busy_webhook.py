"""What the apiserver makes of a webhook that takes no more for now, which is why muster's says when to come again."""

from pathlib import Path

import pytest

from hack.testbed.api import Api
from muster.model.resource import PODS
from tests.support.cases import cases
from tests.support.cluster.desk import Desk
from tests.support.cluster.other_webhooks import Injector, injecting
from tests.support.manifests import applied

pytestmark = pytest.mark.part("processes")

_AGAIN = {"Retry-After": "1"}


@cases(
    "refusal, created",
    ("429 that says when", (429, _AGAIN), True),
    ("503 that says when", (503, _AGAIN), True),
    ("429", (429, {}), False),
)
def test_the_apiserver_comes_again_where_it_is_told_when(
    desk: Desk, calls: Api, tmp_path: Path, refusal: tuple[int, dict[str, str]], *, created: bool
) -> None:
    """Within the time that it waits at all; otherwise the failure policy decides at once."""
    injector = Injector(lambda _: [])
    with injecting(injector, "busy", desk.namespace, calls=calls, folder=tmp_path):
        injector.refusals.append(refusal)
        answer = calls("POST", PODS.path(desk.namespace), applied.pod("p"))
    assert (answer.ok, len(injector.seen)) == (created, int(created)), answer.message
    assert not injector.refusals
