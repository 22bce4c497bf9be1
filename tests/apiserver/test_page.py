"""The page of the chart with its own ServiceAccount's real token: it shows everything, and may do nothing else.

tests/node has it in a real pod, behind the apiserver's service proxy.
"""

import html
import re
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from hack.testbed import Testbed, wait_for
from hack.testbed.api import answers
from hack.testbed.muster import MusterInstall
from hack.testbed.ports import free_port
from muster.model.names import QUEUE_LABEL
from muster.model.resource import QUEUES
from tests.support.cluster.desk import PATIENCE, Desk
from tests.support.manifests.applied import queue, ray_cluster

pytestmark = pytest.mark.part("commands")

_CHECKOUT = Path(__file__).parents[2]
_SECRET = "the-secret-of-this-test"  # noqa: S105 - of a test


class _Page(NamedTuple):
    url: str

    def get(self, path: str = "", *, secret: str = _SECRET) -> tuple[int, str]:
        """The status, and what a reader sees, in single blanks."""
        try:
            with urllib.request.urlopen(f"{self.url}/{secret}/{path}", timeout=30) as answer:  # noqa: S310 - loopback
                status, text = answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            status, text = error.code, error.read().decode()
        return status, " ".join(html.unescape(re.sub(r"<[^>]*>", " ", text)).split())


@pytest.fixture
def page(bare: Testbed, webhook_of_session: MusterInstall, desk: Desk, tmp_path: Path) -> Iterator[_Page]:
    """The process of the chart's Deployment, with its arguments and the token of its account."""
    del desk
    namespace = webhook_of_session.namespace
    args = bare.api().get(f"/apis/apps/v1/namespaces/{namespace}/deployments/muster-page")
    (container,) = args["spec"]["template"]["spec"]["containers"]
    secret = tmp_path / "secret"
    secret.write_text(_SECRET)
    port, health = free_port(), free_port()
    kubeconfig = bare.service_account_kubeconfig(namespace, "muster-page")
    more = (f"--kubeconfig={kubeconfig}", f"--secret-file={secret}", "--bind-address=127.0.0.1", f"--port={port}")
    process = bare.spawn(
        "page",
        [
            *(sys.executable, "-m", "muster.cli.page", *container["args"], *more),
            *("--health-bind-address=127.0.0.1", f"--health-port={health}"),
        ],
        env={"PYTHONPATH": str(_CHECKOUT)},
    )
    try:
        wait_for("the page to be ready", lambda: answers(f"http://127.0.0.1:{health}/readyz", bare.ca_file), PATIENCE)
        yield _Page(f"http://127.0.0.1:{port}")
    finally:
        process.stop(60)


def test_its_account_reads_all_that_the_page_shows_and_follows_it(page: _Page, desk: Desk) -> None:
    """Nothing stands under "Unknown", and what comes later appears."""
    lane = desk.namespace
    desk.create(queue(lane, cpu="4"))
    wait_for("the queue to appear", lambda: f" {lane} " in page.get()[1], PATIENCE)
    made = ray_cluster("bert").label(QUEUE_LABEL, lane)
    wait_for("the webhook to know the queue", lambda: desk.ask(made.manifest(), dry_run=True).ok, PATIENCE)
    desk.create(made.manifest())
    where = f"gang?namespace={lane}&name=ray-bert-pg"
    wait_for("the gang to have a page", lambda: page.get(where)[0] == 200, PATIENCE)
    for path in ("", where):
        _, seen = page.get(path)
        assert "This page shows what ServiceAccount muster-page of namespace muster-system may read" in seen
        assert " Unknown " not in seen
        assert "cannot list" not in seen
    desk.delete(QUEUES, lane)


def test_without_the_secret_it_says_nothing(page: _Page) -> None:
    status, seen = page.get(secret="guess")  # noqa: S106 - a wrong one
    assert status == 404
    assert "ask the person who installed muster for the whole address" in seen
